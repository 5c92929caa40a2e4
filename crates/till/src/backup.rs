//! A copy of the file, made while the till sells: by SQLite's own online backup, out of one reading transaction, so that it is one
//! state of the file however many sales come meanwhile, and never begins anew.

use crate::{TillError, trouble};
use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};
use serde::Serialize;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// Pages that are copied between two words on the progress.
const STEP_PAGES: i32 = 1_000;

/// A copy that was made and looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// How large it is.
    pub bytes: u64,
}

/// A copy that was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The till's name from now on.
    pub till_name: String,
    /// The name it had.
    pub till_name_before: String,
    /// Where the file went that was there.
    pub aside: Option<PathBuf>,
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages that are copied.
    pub done: u32,
    /// Pages that there are.
    pub of: u32,
}

/// The name of a copy, taken before there is one, and what is written until it is whole. Both go where it comes to nothing.
pub(crate) struct Place {
    target: PathBuf,
    partial: PathBuf,
    is_whole: bool,
}

impl Place {
    /// Takes a name that nothing has yet.
    pub(crate) fn take(target: &Path) -> Result<Self, TillError> {
        let target = std::path::absolute(target).map_err(|error| refused(target, &error))?;
        let mut name = target.file_name().map(ToOwned::to_owned).ok_or_else(|| {
            TillError::Backup(format!("{} names no file: name the file that the copy is to be", target.display()))
        })?;
        name.push(".partial");
        // An empty file under the name: from here on nobody else gets it, and whoever finds it sees that it is no copy.
        create(&target)?;
        let place = Self { partial: target.with_file_name(name), target, is_whole: false };
        // Of a copy that a kill cut short: the name was free, so nobody is at it.
        match fs::remove_file(&place.partial) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(refused(&place.partial, &error)),
            _ => {}
        }
        create(&place.partial)?;
        Ok(place)
    }

    /// Copies the file there. Called in a reading transaction.
    pub(crate) fn copy(&self, from: &Connection, mut tell: impl FnMut(BackupProgress)) -> Result<(), TillError> {
        // The transaction begins with its first look; a copy outside of one would begin anew at each sale.
        from.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let mut copy = Connection::open_with_flags(
            &self.partial,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(|error| self.not_copied(&error))?;
        {
            let backup = Backup::new(from, &mut copy).map_err(|error| self.not_copied(&error))?;
            loop {
                let step = backup.step(STEP_PAGES).map_err(|error| self.not_copied(&error))?;
                let left = backup.progress();
                let pages = |count: i32| u32::try_from(count).unwrap_or_default();
                tell(BackupProgress { done: pages(left.pagecount - left.remaining), of: pages(left.pagecount) });
                match step {
                    StepResult::Done => break,
                    StepResult::More => {}
                    // Nobody else has the copy, and the source is read in a transaction that is begun.
                    other => {
                        return Err(TillError::Backup(format!(
                            "{}: the copy stopped ({other:?})",
                            self.target.display()
                        )));
                    }
                }
            }
        }
        // One file, with no log beside it: it can be carried away and looked at on a disk that takes no write.
        copy.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))
            .map_err(|error| self.not_copied(&error))?;
        copy.close().map_err(|(_, error)| self.not_copied(&error))
    }

    /// Looks the copy through, makes it durable and gives it its name.
    pub(crate) fn finish(mut self) -> Result<BackedUp, TillError> {
        self.verify()?;
        let io = |error: io::Error| refused(&self.target, &error);
        let file = OpenOptions::new().write(true).open(&self.partial).map_err(io)?;
        file.sync_all().map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        drop(file);
        fs::rename(&self.partial, &self.target).map_err(io)?;
        self.is_whole = true;
        #[cfg(unix)]
        if let Some(folder) = self.target.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| refused(&self.target, &error))?;
        }
        Ok(BackedUp { bytes })
    }

    fn verify(&self) -> Result<(), TillError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let look = || -> rusqlite::Result<String> {
            let copy = Connection::open_with_flags(&self.partial, flags)?;
            copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        };
        match look() {
            Ok(said) if said == "ok" => Ok(()),
            Ok(said) => Err(TillError::Damaged(format!(
                "no copy was made: the till's file is damaged, or the copy came out so ({said}). `kassa-till doctor` tells which"
            ))),
            Err(error) => Err(self.not_copied(&error)),
        }
    }

    fn not_copied(&self, error: &rusqlite::Error) -> TillError {
        TillError::Backup(format!("{}: {}", self.target.display(), trouble::of_sqlite(error)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        for path in [&self.partial, &self.target] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "what is left of a copy could not be removed");
            }
        }
    }
}

/// Makes an empty file that only its owner can read; refuses where there is one.
fn create(path: &Path) -> Result<File, TillError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> TillError {
    TillError::Backup(match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{} is there already: a copy never takes the place of a file", path.display())
        }
        _ => trouble::of_io(error, path),
    })
}
