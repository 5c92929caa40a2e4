//! Damage of the file that somebody came upon. It does not pass, so whoever asks later is told too.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use rusqlite::{ErrorCode, ffi};

use crate::error::StorageError;

/// Whether SQLite says that the file itself is broken, so that no waiting helps: that it can't be, or is shorter than it was.
#[must_use]
pub fn is_damage(error: &rusqlite::Error) -> bool {
    let is_cut = error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHORT_READ);
    is_cut || matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

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
        if let Some(error) = error.downcast_ref() {
            self.note_said(error);
        }
    }

    /// The same of what SQLite itself said.
    pub(crate) fn note_said(&self, error: &rusqlite::Error) {
        if let rusqlite::Error::SqliteFailure(code, said) = error
            && is_damage(error)
        {
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
