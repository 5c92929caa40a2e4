//! What has become of the payments.

use crate::{
    ExportFormat, Exported, Operation, OperationQuery, Operations, Summary, Till, TillError, TimelineEntry, clock,
    export, operations, queue,
};
use protocol::Key;
use std::io::Write;

impl Till {
    /// One operation.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn operation(&self, key: Key) -> Result<Operation, TillError> {
        self.read(move |conn| operations::by_key(conn, key)).await
    }

    /// A page of operations.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn operations(&self, query: OperationQuery) -> Result<Operations, TillError> {
        self.read(move |conn| operations::list(conn, &query)).await
    }

    /// Everything that happened to an operation, oldest first.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn attempts(&self, key: Key) -> Result<Vec<outbox::Attempt>, TillError> {
        self.read(move |conn| operations::attempts(conn, key)).await
    }

    /// Writes all of a kind, oldest first, and gives the number of rows. One state of the file, while others work on; no card token
    /// and no secret. Of payments as JSON every attempt comes along.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read, [`TillError::Export`] where it can't be written where it is to go;
    /// of the audit [`TillError::NotAllowed`] and [`TillError::Locked`].
    pub async fn export(
        &self,
        what: Exported,
        format: ExportFormat,
        mut out: Box<dyn Write + Send>,
    ) -> Result<u64, TillError> {
        if what == Exported::Audit {
            self.see_audit().await?;
        }
        self.read(move |conn| export::export(conn, what, format, &mut out)).await
    }

    /// The same in words, for the window.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn timeline(&self, key: Key) -> Result<Vec<TimelineEntry>, TillError> {
        self.read(move |conn| operations::timeline(conn, key)).await
    }

    /// How the queue stands.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn summary(&self) -> Result<Summary, TillError> {
        let (now, settles) = (clock::now(), self.inner.owner.settles());
        self.read(move |conn| queue::summary(conn, now, settles)).await
    }
}
