//! The file on disk: made private, never opened behind SQLite's back.
//!
//! POSIX locks of a file vanish when *any* handle of the process on it is closed, so nothing here opens a database file
//! that may be open in SQLite already: existing files are only looked at by name.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// Makes the file (0600) and its folder (0700) where they are missing, and makes their names durable.
///
/// # Errors
/// The file system refused.
pub fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = folder_of(path)
        && !folder.try_exists()?
    {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        if let Some(above) = folder_of(folder) {
            sync_folder(above)?;
        }
    }
    match create_private(path) {
        Ok(_) => folder_of(path).map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Where the file really is, whatever its name goes through and wherever the program goes afterwards: SQLite puts the log beside the
/// file, and not beside a link to it.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    // Elsewhere the name that is answered is of a form that SQLite may not take.
    if cfg!(unix) { path.canonicalize() } else { std::path::absolute(path) }
}

/// What lies there can be a database's file, and lies there only. A pipe would let nobody come back from opening it. A file with a second
/// name would have a lock and a log beside each of them, and two owners that know nothing of each other.
pub(crate) fn check_kind(path: &Path) -> Result<(), OpenError> {
    let found = path.metadata()?;
    if !found.is_file() {
        return Err(OpenError::NotAFile { path: path.to_owned() });
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&found) > 1 {
        return Err(OpenError::SecondName { path: path.to_owned() });
    }
    Ok(())
}

/// Makes a new file that only its owner can read; fails where there is one.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the names in a folder durable. Only Unix can; elsewhere the file system does it by itself.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// The folder that holds the file; the current one for a bare name.
pub(crate) fn folder_of(path: &Path) -> Option<&Path> {
    path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// The file's name with something after it: SQLite's side files, copies.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Whether nothing at all is in the file.
pub(crate) fn is_missing_or_empty(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// The file as a URI that tells SQLite to read it without a lock or a side file.
pub(crate) fn immutable_uri(path: &Path) -> io::Result<String> {
    let absolute = std::path::absolute(path)?;
    let text = absolute.as_os_str().as_encoded_bytes();
    let mut uri = String::from("file://");
    if !text.starts_with(b"/") {
        uri.push('/');
    }
    for &byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => uri.push(byte.into()),
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    Ok(uri)
}
