//! Whether the file that is open is still the one that bears its name. SQLite goes on writing into a file that was removed or
//! replaced, without a word, and all of it is gone when the program ends.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::{OpenError, StorageError};
use crate::file;

/// The place of an open file, and what lay there when it was opened.
#[derive(Clone)]
pub(crate) struct Place(Arc<Inner>);

struct Inner {
    path: PathBuf,
    log: PathBuf,
    file_was: Identity,
    /// Only where this program writes, and so has the log open for as long as the file: where it only reads, the writer makes and
    /// removes it. None where it had gone before it was ever seen: then nobody can tell the one that bears its name later.
    log_was: OnceLock<Option<Identity>>,
}

/// What tells a file from all others, whatever their names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Place {
    /// Notes what lies there. Call it before the file is opened, and [`Place::check`] after it.
    pub(crate) fn of(path: &Path) -> Result<Place, OpenError> {
        Ok(Place(Arc::new(Inner {
            path: path.to_owned(),
            log: file::beside(path, "-wal"),
            file_was: identity(path)?,
            log_was: OnceLock::new(),
        })))
    }

    /// Notes the log, once this program has it open for writing, and checks as [`Place::check`] does. A log that is missing right after
    /// a commit that succeeded was removed meanwhile.
    ///
    /// # Errors
    /// As [`Place::check`].
    pub(crate) fn note_log(&self) -> Result<(), StorageError> {
        if self.0.log_was.get().is_none() {
            let found = match identity(&self.0.log) {
                Ok(found) => Some(found),
                Err(error) if is_absence(&error) => None,
                Err(error) => return Err(not_seen(&self.0.log, error)),
            };
            let _ = self.0.log_was.set(found);
        }
        self.check()
    }

    /// Whether file and log are still the ones that were opened: a look at two names, no more.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        is_still(&self.0.path, self.0.file_was)?;
        match self.0.log_was.get() {
            Some(&Some(log_was)) => is_still(&self.0.log, log_was),
            Some(None) => Err(StorageError::Moved { path: self.0.log.as_path().into() }),
            None => Ok(()),
        }
    }
}

fn is_still(path: &Path, was: Identity) -> Result<(), StorageError> {
    match identity(path) {
        Ok(found) if found == was => Ok(()),
        Err(error) if !is_absence(&error) => Err(not_seen(path, error)),
        Ok(_) | Err(_) => Err(StorageError::Moved { path: path.into() }),
    }
}

fn not_seen(path: &Path, error: std::io::Error) -> StorageError {
    StorageError::NotSeen { path: path.into(), cause: Arc::new(error) }
}

/// Whether nothing is there, rather than that nobody can look.
fn is_absence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

#[cfg(unix)]
fn identity(path: &Path) -> std::io::Result<Identity> {
    let found = path.metadata()?;
    Ok(Identity {
        device: std::os::unix::fs::MetadataExt::dev(&found),
        inode: std::os::unix::fs::MetadataExt::ino(&found),
    })
}

/// Elsewhere an open file keeps its name: the system does not let it be moved.
#[cfg(not(unix))]
fn identity(path: &Path) -> std::io::Result<Identity> {
    path.metadata().map(|_| Identity {})
}
