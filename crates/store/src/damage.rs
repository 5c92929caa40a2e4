//! Damage of the file that somebody came upon. It does not pass, so whoever asks later is told too.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use rusqlite::ErrorCode;

use crate::error::StorageError;

/// The first damage that was met since the file was opened.
#[derive(Clone, Default)]
pub(crate) struct Damage(Arc<OnceLock<StorageError>>);

impl Damage {
    pub(crate) fn met(&self) -> Option<StorageError> {
        self.0.get().cloned()
    }

    /// Notes what a piece of work or a look ended with, where it is SQLite's own word that the file is damaged. Of an error that is
    /// another's own, nothing is known.
    pub(crate) fn note(&self, error: &dyn Any) {
        let Some(rusqlite::Error::SqliteFailure(code, said)) = error.downcast_ref() else { return };
        if matches!(code.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) {
            self.set(rusqlite::Error::SqliteFailure(*code, said.clone()).into());
        }
    }

    /// The same of an error of the file itself.
    pub(crate) fn note_of_file(&self, error: &StorageError) {
        if error.is_damage() {
            self.set(error.clone());
        }
    }

    fn set(&self, error: StorageError) {
        if self.0.set(error).is_ok() {
            tracing::error!("the file is damaged");
        }
    }
}
