//! What the file, the disk or SQLite said, for whoever stands at the till: what is wrong, and what to do about it. What was said
//! stands in brackets behind it, for whoever helps.

use rusqlite::ErrorCode;
use std::{io, path::Path};
use store::{LockError, OpenError, StorageError};

/// Why the file did not do what was asked of it.
pub(crate) fn of_sqlite(error: &rusqlite::Error) -> String {
    let what = match error.sqlite_error_code() {
        _ if store::is_damage(error) => DAMAGED,
        Some(ErrorCode::DiskFull) => "there is no room left on the disk: make room and do it again",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the till's file: close that program and do it again"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => READ_ONLY,
        Some(ErrorCode::SystemIoFailure) => "the disk is full or it fails: make room or mend it, and do it again",
        Some(ErrorCode::CannotOpen) => "the till's file can't be opened: look at the folder and its disk",
        _ => return error.to_string(),
    };
    format!("{what} ({error})")
}

const READ_ONLY: &str = "the till's file is read-only: let this user write to it and do it again";
const MOVED: &str = "the till's file was removed, moved or replaced while the till ran, so nothing is saved or sent any more: put \
                     that file back in its place, or a backup where it is lost, and start again";
const DAMAGED: &str = "the till's file is damaged: keep a copy of its folder, and put a backup in its place";

pub(crate) fn of_storage(error: &StorageError) -> String {
    match error {
        StorageError::Sqlite(error) => of_sqlite(error),
        StorageError::Reopen(error) => match &**error {
            OpenError::Sqlite(error) | OpenError::Damaged(error) => of_sqlite(error),
            OpenError::ReadOnly { .. } => format!("{READ_ONLY} ({error})"),
            other => other.to_string(),
        },
        moved @ StorageError::Moved { .. } => format!("{MOVED} ({moved})"),
        other => other.to_string(),
    }
}

/// Whether the file itself is broken or gone, so that no waiting helps.
pub(crate) fn is_lasting(error: &StorageError) -> bool {
    error.is_damage() || matches!(error, StorageError::Moved { .. })
}

/// Why a file can't be opened that is not to blame itself: the same start may succeed later. None where the file is refused.
pub(crate) fn of_open(error: &OpenError, file: &Path) -> Option<String> {
    match error {
        OpenError::Sqlite(error) => Some(of_sqlite(error)),
        OpenError::Migration { cause, .. } => match cause.sqlite_error_code() {
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::DatabaseBusy) => Some(of_sqlite(cause)),
            _ => None,
        },
        OpenError::ReadOnly { .. } => Some(format!("{READ_ONLY} ({error})")),
        OpenError::Io(error) => Some(of_io(error, file)),
        OpenError::Copy { .. } => Some(error.to_string()),
        _ => None,
    }
}

pub(crate) fn of_lock(error: &LockError) -> String {
    match error {
        LockError::Io { path, cause } => of_io(cause, path),
        held @ LockError::Held { .. } => held.to_string(),
    }
}

pub(crate) fn of_io(error: &io::Error, path: &Path) -> String {
    let what = match error.kind() {
        io::ErrorKind::StorageFull => "there is no room left on the disk: make room and do it again",
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only: mount it for writing and do it again",
        io::ErrorKind::PermissionDenied => "this user may not write there: let it, and do it again",
        _ => return format!("{}: {error}", path.display()),
    };
    format!("{what} ({}: {error})", path.display())
}
