//! Copies of the file.

use crate::{BackedUp, BackupProgress, Till, TillError, backup::Place};
use std::path::Path;

impl Till {
    /// Copies the till's file, as one state of it, to a new file that only its owner can read, and looks the copy through before it has
    /// its name. Others sell on meanwhile, here and in other processes. Also of a till that was opened only to read.
    ///
    /// # Errors
    /// [`TillError::Backup`] where there is a file already or it can't be written, [`TillError::Damaged`] where the copy is not whole,
    /// [`TillError::NotRead`] where the till's own can't be read. Nothing is left under the name then. It holds the whole audit:
    /// [`TillError::NotAllowed`] and [`TillError::Locked`] for who may not export that.
    pub async fn backup(
        &self,
        to: &Path,
        tell: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackedUp, TillError> {
        self.see_audit().await?;
        let place = Place::take(to)?;
        let place = self
            .read(move |conn| {
                place.copy(conn, tell)?;
                Ok(place)
            })
            .await?;
        // Outside of the look, which keeps the till's log from being cut back.
        let finishing = tokio::task::spawn_blocking(move || place.finish());
        finishing.await.map_err(|error| TillError::Internal(format!("a copy ended by a fault: {error}")))?
    }
}
