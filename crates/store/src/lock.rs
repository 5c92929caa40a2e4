//! One owner for a file or a data folder, proved by the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::file;

/// An exclusive lock that lasts as long as this value, and no longer than the process: the system lets go of it at
/// the owner's death, however it died. So a lock that can be taken proves that the last owner is gone.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another owner is alive.
    #[error("{path}: in use by {}", holder(*pid), path = path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The owner's process id, where it could be read.
        pid: Option<u32>,
    },
    /// The lock file could not be made or locked.
    #[error("{path}: {cause}", path = path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the file system said.
        cause: std::io::Error,
    },
}

/// Who has it, in words.
fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => "this process already".to_owned(),
        Some(pid) => format!("another process (pid {pid})"),
        None => "another process".to_owned(),
    }
}

/// Writes over what an earlier owner left, which takes no room where there was something. Where it can't be, nobody is named rather than
/// somebody who is gone.
fn name_owner(file: &mut File) -> std::io::Result<()> {
    let text = format!("{}\n", std::process::id());
    let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(text.as_bytes()));
    let kept = if written.is_ok() { text.len() as u64 } else { 0 };
    written.and(file.set_len(kept))
}

impl LockFile {
    /// Takes the lock at once or not at all. The file holds the owner's process id, for people, where the disk has room for it; it stays
    /// behind when the lock is let go, because removing it would let two owners in.
    ///
    /// # Errors
    /// [`LockError::Held`] where another process, or another value in this one, has it.
    pub fn acquire(path: &Path) -> Result<LockFile, LockError> {
        let io = |cause| LockError::Io { path: path.to_owned(), cause };
        file::make_private(path).map_err(io)?;
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(LockError::Held { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(cause)) => return Err(io(cause)),
        }
        if let Err(error) = name_owner(&mut file) {
            // Only for people: the lock is the system's. What is wrong with the disk says whoever has something to write there.
            tracing::warn!(path = %path.display(), %error, "the owner's process id could not be written into the lock file");
        }
        Ok(LockFile { path: path.to_owned(), _file: file })
    }

    /// Where the lock file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
