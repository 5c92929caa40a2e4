//! The mark that a till was begun in a folder. SQLite takes a file that is empty, or gone, for a new one: with the mark beside it a
//! shop's data that were lost are not taken for a till that begins.

use crate::{TillError, trouble};
use std::{
    io,
    path::{Path, PathBuf},
};

const MARK_NAME: &str = "till.begun";

fn mark(file: &Path) -> PathBuf {
    file.with_file_name(MARK_NAME)
}

/// Refuses a till's file that is empty or gone, where a till was begun.
pub(crate) fn check(file: &Path) -> Result<(), TillError> {
    let storage = |error: io::Error| TillError::Storage(trouble::of_io(&error, file));
    let what = match file.metadata() {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => "is empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "is gone",
        Err(error) => return Err(storage(error)),
    };
    let mark = mark(file);
    if !mark.try_exists().map_err(storage)? {
        return Ok(());
    }
    Err(TillError::Refused(format!(
        "{} {what}, and a till was begun here: put a copy of it back, or, to begin anew with nothing, remove {}",
        file.display(),
        mark.display()
    )))
}

/// Marks that a till was begun, once its file has something in it.
pub(crate) fn set(file: &Path) {
    if let Err(error) = store::make_private(&mark(file)) {
        // On a full disk the till still shows what is open. The next start marks it.
        tracing::warn!(%error, "it could not be marked that a till was begun here");
    }
}
