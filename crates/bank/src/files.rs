//! The files of a service: its lock, its database, its secret.

use idempotency::Unavailable;
use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};
use store::{LockError, LockFile, Schema, Store};
use thiserror::Error;

/// Why a service can't be opened. One line that can be shown as it is.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has the database, or the lock file can't be made.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database can't be used.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The database can't be written.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A file, a socket or a thread can't be had.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The gateway's address can't be used.
    #[error("the gateway's address can't be used: {0}")]
    GatewayUrl(&'static str),
}

impl OpenError {
    pub(crate) fn store(error: impl std::fmt::Display) -> Self {
        Self::Io(io::Error::other(format!("the database can't be written: {error}")))
    }
}

/// Takes the lock beside the database, and opens the database: in that order, so that nothing is written to what
/// another process has.
pub(crate) async fn open(db: PathBuf, schema: Schema) -> Result<(LockFile, Store), OpenError> {
    let opening = tokio::task::spawn_blocking(move || {
        let lock = LockFile::acquire(&beside(&real(&db), ".lock"))?;
        let store = Store::open(&db, &schema)?;
        Ok((lock, store))
    });
    opening.await.map_err(|error| OpenError::Io(io::Error::other(error)))?
}

/// The file that a path leads to over links, so that a database has one lock whatever it is called. As it is, where there is
/// nothing yet.
fn real(db: &Path) -> PathBuf {
    fs::canonicalize(db).unwrap_or_else(|_| db.to_owned())
}

/// The file beside a database that is named after it.
pub(crate) fn beside(db: &Path, ending: &str) -> PathBuf {
    let mut name = db.file_name().map_or_else(OsString::new, OsString::from);
    name.push(ending);
    db.with_file_name(name)
}

/// The secret in a private file, made at the first start.
pub(crate) fn secret(path: &Path, new: impl FnOnce() -> String) -> io::Result<String> {
    kept(path, new).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn kept(path: &Path, new: impl FnOnce() -> String) -> io::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = new();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_kept_to_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = beside(&dir.path().join("bank.db"), ".secret");
        assert!(path.ends_with("bank.db.secret"));
        assert_eq!(secret(&path, || "sk_1".into()).unwrap(), "sk_1");
        assert_eq!(secret(&path, || "sk_2".into()).unwrap(), "sk_1");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
    }
}
