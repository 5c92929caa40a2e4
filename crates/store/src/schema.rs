//! Whose file it is, how new it is, and how it is brought up to date.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, ffi};

use crate::error::OpenError;
use crate::points::{self, Point};
use crate::{file, pragmas};

/// The oldest SQLite whose WAL mode does not lose a commit.
const SQLITE_MIN: i32 = 3_051_003;

/// One step of the schema. A step that has been shipped never changes; the next change is the next step.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// 1, 2, 3, …, without gaps. Kept in the file as `user_version`.
    pub version: u32,
    /// For messages.
    pub name: &'static str,
    /// What to run, in one transaction.
    pub sql: &'static str,
}

/// Whose file it is, and how it came to look as it does.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Marks the file as this program's, in SQLite's header.
    pub application_id: i32,
    /// In order.
    pub migrations: Vec<Migration>,
}

impl Schema {
    fn newest(&self) -> u32 {
        self.migrations.last().map_or(0, |migration| migration.version)
    }

    pub(crate) fn check_numbering(&self) -> Result<(), OpenError> {
        for (migration, expected) in self.migrations.iter().zip(1..) {
            if migration.version != expected {
                return Err(OpenError::Numbering { name: migration.name, version: migration.version, expected });
            }
        }
        Ok(())
    }
}

/// Refuses a SQLite that is too old to be trusted with money.
pub(crate) fn check_sqlite() -> Result<(), OpenError> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(OpenError::OldSqlite { found: rusqlite::version() });
    }
    Ok(())
}

/// Looks at the file before anything is opened for writing, so that a file that is refused stays as it is, to the byte:
/// even an unchanged file would be checkpointed by the last writing connection that closes.
pub(crate) fn preflight(path: &Path, schema: &Schema) -> Result<(), OpenError> {
    let connection = if file::beside(path, "-journal").try_exists()? {
        // A rollback was cut short. Only a writing connection can finish it, and only then can anything be read.
        return Ok(());
    } else if !file::is_missing_or_empty(&file::beside(path, "-wal"))? {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?
    } else {
        // Nothing stands in the log: the file is all there is, and can be read where its disk has room for nothing beside it.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        Connection::open_with_flags(file::immutable_uri(path)?, flags)?
    };
    connection.busy_timeout(std::time::Duration::from_millis(pragmas::BUSY_MS))?;
    check_ours(&connection, path, schema).map(|_| ())
}

/// The file's version, 0 for a new one, if the file is ours or empty and not newer than we are.
fn check_ours(connection: &Connection, path: &Path, schema: &Schema) -> Result<u32, OpenError> {
    let found_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let is_empty = || connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get::<_, bool>(0));
    if found_id != schema.application_id && !(found_id == 0 && version == 0 && is_empty()?) {
        return Err(OpenError::WrongApplication {
            path: path.to_owned(),
            found: found_id,
            expected: schema.application_id,
        });
    }
    let newest = schema.newest();
    match u32::try_from(version) {
        Ok(version) if version <= newest => Ok(version),
        // A negative version is nothing that we ever wrote.
        found => Err(OpenError::Newer { path: path.to_owned(), found: found.unwrap_or(u32::MAX), newest }),
    }
}

/// Checks that the file can be read as it is.
pub(crate) fn check_readable(connection: &Connection, path: &Path, schema: &Schema) -> Result<(), OpenError> {
    let found = check_ours(connection, path, schema)?;
    let newest = schema.newest();
    if found == newest { Ok(()) } else { Err(OpenError::NeedsMigration { path: path.to_owned(), found, newest }) }
}

/// Brings the file up to date: a copy first where there is something to lose, then one transaction for each step.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, schema: &Schema) -> Result<(), OpenError> {
    let found = check_ours(connection, path, schema)?;
    let missing: Vec<_> = schema.migrations.iter().filter(|migration| migration.version > found).collect();
    if found > 0 && !missing.is_empty() {
        copy_aside(connection, path, found)?;
        points::reach(Point::Copied);
    }
    if missing.is_empty() {
        return Ok(());
    }
    // A table whose constraints change is made anew and the old one dropped, which foreign keys would forbid while it happens.
    // Each step's end is checked instead. The pragma does nothing inside a transaction, so it stands around all of them.
    pragmas::set_foreign_keys(connection, false)?;
    let migrated = missing.into_iter().try_for_each(|migration| {
        step(connection, schema, migration).map_err(|cause| OpenError::Migration {
            version: migration.version,
            name: migration.name,
            cause,
        })?;
        points::reach(Point::Migrated);
        tracing::info!(file = %path.display(), version = migration.version, name = migration.name, "migrated");
        Ok(())
    });
    pragmas::set_foreign_keys(connection, true)?;
    migrated
}

fn step(connection: &mut Connection, schema: &Schema, migration: &Migration) -> rusqlite::Result<()> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(migration.sql)?;
    if let Some(table) = tx.query_row("PRAGMA foreign_key_check", [], |row| row.get::<_, String>(0)).optional()? {
        let what = format!("rows of {table} refer to rows that are not there");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CONSTRAINT_FOREIGNKEY), Some(what)));
    }
    tx.pragma_update(None, "application_id", schema.application_id)?;
    tx.pragma_update(None, "user_version", migration.version)?;
    points::reach(Point::Migrating);
    tx.commit()
}

/// Copies the file to `NAME.before-N`, N the version that follows, by SQLite's own backup, so that what is still in the
/// write-ahead log comes along.
fn copy_aside(connection: &Connection, path: &Path, found: u32) -> Result<(), OpenError> {
    let target = file::beside(path, &format!(".before-{}", found + 1));
    copy_to(connection, path, &target).map_err(|cause| OpenError::Copy { path: target, cause })
}

fn copy_to(
    connection: &Connection,
    path: &Path,
    target: &Path,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // Under another name until it is whole: a copy that was cut short must not look like one.
    let partial = file::beside(target, ".partial");
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let made = file::create_private(&partial)?;
    let mut copy = Connection::open(&partial)?;
    match Backup::new(connection, &mut copy)?.step(-1)? {
        StepResult::Done => {}
        other => return Err(format!("the copy stopped: {other:?}").into()),
    }
    copy.close().map_err(|(_, error)| error)?;
    made.sync_all()?;
    points::reach(Point::Copying);
    std::fs::rename(&partial, target)?;
    if let Some(folder) = file::folder_of(path) {
        file::sync_folder(folder)?;
    }
    Ok(())
}
