//! What can go wrong with a file, and what is known of a write afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

/// Why a file could not be opened. Each message is one line that can be shown as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing to read.
    #[error("{path}: no such file", path = path.display())]
    Missing {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// A folder, a pipe or a device bears the name.
    #[error("{path}: not a file", path = path.display())]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// The file has another name too (a hard link), beside which its log and its lock may lie.
    #[error("{path}: the file has a second name (a hard link), under which another program may be writing it: end every program that uses it, keep the name that has a -wal file beside it, if one has, and remove the other", path = path.display())]
    SecondName {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// A SQLite file of another program, or of the other half of this one.
    #[error("{path}: not a file of this program (application id {found:#x}, not {expected:#x})", path = path.display())]
    WrongApplication {
        /// The file that was asked for.
        path: PathBuf,
        /// What the file says it belongs to.
        found: i32,
        /// What was expected.
        expected: i32,
    },
    /// Written by a newer version of the program. The file has not been touched.
    #[error("{path}: written by a newer version (its format is {found}, this version knows {newest}): use that version, the file was left as it is", path = path.display())]
    Newer {
        /// The file that was asked for.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The newest version this program knows.
        newest: u32,
    },
    /// The file can be read and not written.
    #[error("{path}: may be read and not written", path = path.display())]
    ReadOnly {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// An older file, asked for by a command that only reads.
    #[error("{path}: its format is {found}, reading needs {newest}: start the program once to bring it up to date", path = path.display())]
    NeedsMigration {
        /// The file that was asked for.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The version that reading needs.
        newest: u32,
    },
    /// A pragma that durability or safety rests on did not take.
    #[error("SQLite did not accept {name}: wanted {wanted}, has {found}")]
    Pragma {
        /// The pragma's name.
        name: &'static str,
        /// What was asked for.
        wanted: String,
        /// What it reads back as.
        found: String,
    },
    /// SQLite before 3.51.3 can lose a commit in WAL mode.
    #[error("SQLite {found} can lose commits, 3.51.3 or newer is needed")]
    OldSqlite {
        /// The version that is linked.
        found: &'static str,
    },
    /// The migrations given are not numbered 1, 2, 3, …: a mistake of the program.
    #[error("migration {name} is numbered {version}, expected {expected}")]
    Numbering {
        /// The migration's name.
        name: &'static str,
        /// Its number.
        version: u32,
        /// The number that it should have.
        expected: u32,
    },
    /// A migration failed and was rolled back; the file is as it was.
    #[error("migration {version} ({name}) failed: {cause}")]
    Migration {
        /// The migration's number.
        version: u32,
        /// Its name.
        name: &'static str,
        /// What SQLite said.
        cause: rusqlite::Error,
    },
    /// No copy could be made before a migration, so it was not run.
    #[error("no copy could be made at {path} before the migration: {cause}", path = path.display())]
    Copy {
        /// Where the copy was to go.
        path: PathBuf,
        /// What went wrong.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is damaged, or no database at all. Trying again doesn't help.
    #[error("damaged, or not a database: {0}")]
    Damaged(rusqlite::Error),
    /// It was moved, removed or replaced while it was opened, or nobody can look whether it was.
    #[error("{0}")]
    Place(StorageError),
    /// SQLite could not open or read the file now.
    #[error("{0}")]
    Sqlite(rusqlite::Error),
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        if crate::is_damage(&error) { OpenError::Damaged(error) } else { OpenError::Sqlite(error) }
    }
}

/// Why the file did not do what was asked of it. Cheap to clone: one failure answers a whole batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// SQLite said so: locked by another program, disk full, I/O error, …
    #[error("{0}")]
    Sqlite(Arc<rusqlite::Error>),
    /// The file could not be opened again after an error.
    #[error("could not be opened again: {0}")]
    Reopen(Arc<OpenError>),
    /// It was moved, removed or replaced while it was open, or its log was: what is written into it is lost with this program.
    #[error("{path} is not there any more, or another file is in its place", path = path.display())]
    Moved {
        /// Where it was.
        path: Arc<Path>,
    },
    /// Nobody can look whether it is still in its place: its folder may not be entered now, or its disk does not answer.
    #[error("{path} can't be looked at: {cause}", path = path.display())]
    NotSeen {
        /// Where it was.
        path: Arc<Path>,
        /// What the file system said.
        cause: Arc<std::io::Error>,
    },
    /// SQLite rolled the whole transaction back because of an error in one of its pieces.
    #[error("the transaction was rolled back after an error in it")]
    RolledBack,
    /// A piece ended the transaction by itself, which it must not.
    #[error("the transaction was ended from inside")]
    TransactionEnded,
    /// The piece panicked; it was rolled back.
    #[error("the work on the file panicked: {0}")]
    Panicked(Arc<str>),
    /// The file was opened for reading only.
    #[error("the file was opened for reading only")]
    ReadOnly,
    /// It was asked for from inside other work on the same file, which would have to wait for itself. A mistake of the program.
    #[error("work on the file must not wait for more of it")]
    Nested,
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        StorageError::Sqlite(Arc::new(error))
    }
}

impl StorageError {
    /// SQLite's own class of the error, where it came from there.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            StorageError::Sqlite(error) => error.sqlite_error_code(),
            _ => None,
        }
    }

    /// Another program holds the file's lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// The file itself is broken, so that no waiting helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            StorageError::Reopen(error) => matches!(**error, OpenError::Damaged(_)),
            StorageError::Sqlite(error) => crate::is_damage(error),
            _ => false,
        }
    }

    /// There is no room left for the file.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DiskFull))
    }
}

/// Why a write was not answered as done, by what is known of it.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// The piece itself said no, and was rolled back alone. **Nothing of it is in the file.** Its error may be an
    /// SQLite error that the piece ran into.
    #[error("{0}")]
    Refused(E),
    /// The file could not be written. **Nothing of the piece is in the file.**
    #[error("nothing was saved: {0}")]
    Storage(StorageError),
    /// COMMIT itself failed, and the file has taken a durable commit since. The piece **may or may not be in the file**: look
    /// the row up before saying anything. What the look finds holds, also after the next start.
    #[error("it is not known whether it was saved: {0}")]
    Uncertain(StorageError),
    /// The file, whose log was empty, has taken no durable commit since it was opened, so the piece did not run: **nothing of it is in the
    /// file.** What a look finds there, of earlier work, may be on no disk and be gone at the next start; what it doesn't find is not
    /// saved, and doesn't come back. Each write tries to make such a commit.
    #[error("nothing was saved: {0}")]
    Unproven(StorageError),
    /// The file has taken no durable commit since a COMMIT failed, or since it was opened with something in its log. **Nothing may be told**, neither as
    /// saved nor as not saved: what a failed COMMIT left in the log may come into the file at the next start, and what a look
    /// finds may be on no disk. Writes go on as soon as such a commit succeeds; each tries to make one.
    #[error("nothing can be said of what is saved until the file can be written again: {0}")]
    Untrusted(StorageError),
    /// The store is closing; the piece did not run.
    #[error("the file is closed")]
    Closed,
    /// Too much is waiting already; the piece did not run.
    #[error("too many writes are waiting")]
    Overloaded,
}

/// Why a read gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E> {
    /// The look itself failed.
    #[error("{0}")]
    Failed(E),
    /// The file could not be read.
    #[error("{0}")]
    Storage(StorageError),
    /// The store is closing.
    #[error("the file is closed")]
    Closed,
    /// Too many reads are waiting already.
    #[error("too many reads are waiting")]
    Overloaded,
}

/// What a panic said, for the log and the caller.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> Arc<str> {
    if let Some(text) = payload.downcast_ref::<&str>() {
        Arc::from(*text)
    } else if let Some(text) = payload.downcast_ref::<String>() {
        Arc::from(text.as_str())
    } else {
        Arc::from("no message")
    }
}
