//! The settings that durability and safety rest on: set at every open, and read back, because SQLite ignores a pragma
//! that it doesn't know or can't honour without a word.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, OpenFlags, ffi};

use crate::error::OpenError;
use crate::file;

/// How long to wait for another program that holds the file's lock. Short: a cashier is waiting, and a bank has an
/// honest answer for "not now".
pub(crate) const BUSY_MS: u64 = 1_000;

/// What the write-ahead log is cut back to after a checkpoint, in bytes.
const JOURNAL_BYTES_MAX: i64 = 8 * 1024 * 1024;

/// Prepared statements kept per connection; more than till and bank have.
const STATEMENTS_MAX: usize = 128;

/// What the writing connection keeps of the file in memory, in KiB. SQLite's own 2 MiB is less than the index of the keys has
/// after a day, and where keys come in no order each then reads its page anew.
const WRITER_CACHE_KIB: i64 = 16 * 1024;

/// Opens the writing connection.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Where it may not be written SQLite opens it all the same, and refuses each write.
    if connection.is_readonly(MAIN_DB)? {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    common(&connection)?;
    set(&connection, "journal_mode", "wal".to_owned().into(), "wal".to_owned().into())?;
    // FULL is what makes an answered commit survive a power loss; NORMAL loses the last ones in WAL mode.
    set(&connection, "synchronous", "full".to_owned().into(), 2.into())?;
    set(&connection, "fullfsync", 1.into(), 1.into())?;
    set(&connection, "checkpoint_fullfsync", 1.into(), 1.into())?;
    set_foreign_keys(&connection, true)?;
    // Without it REPLACE would pass by the delete triggers that keep append-only tables append-only.
    set(&connection, "recursive_triggers", 1.into(), 1.into())?;
    // SQLite takes a negative number as KiB, a positive one as pages.
    set(&connection, "cache_size", (-WRITER_CACHE_KIB).into(), (-WRITER_CACHE_KIB).into())?;
    set(&connection, "journal_size_limit", JOURNAL_BYTES_MAX.into(), JOURNAL_BYTES_MAX.into())?;
    Ok(connection)
}

/// Does `work` with no patience for another program that holds the file.
pub(crate) fn without_waiting<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(Duration::ZERO)?;
    let done = work(connection);
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    done
}

/// Opens a connection that can't write.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Beside a file with a log SQLite makes an index of that log, which it can't on a disk that takes no write: there the index can't
    // be made, or, on a full one, not grow. Where there is no log the file is all there is, and on such a disk nobody else can make an
    // index either, and so change the file meanwhile.
    let can_be_read = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    let connection = match can_be_read {
        Err(error) if lacks_index(&error) && file::is_missing_or_empty(&file::beside(path, "-wal"))? => {
            Connection::open_with_flags(file::immutable_uri(path)?, flags | OpenFlags::SQLITE_OPEN_URI)?
        }
        _ => connection,
    };
    common(&connection)?;
    set(&connection, "query_only", 1.into(), 1.into())?;
    Ok(connection)
}

/// Whether it was the index of the log that could not be made.
fn lacks_index(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(ffi::SQLITE_CANTOPEN | ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE))
}

/// Writes the file's first page again, as it is: SQLite leaves out no write of a header field, also of the value that it has.
/// Call it in a transaction.
pub(crate) fn rewrite_header(connection: &Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", version)
}

/// Turns foreign keys on, as they always are, or off for a migration. Does nothing in a transaction, which is found out here.
pub(crate) fn set_foreign_keys(connection: &Connection, on: bool) -> Result<(), OpenError> {
    set(connection, "foreign_keys", i64::from(on).into(), i64::from(on).into())
}

fn common(connection: &Connection) -> Result<(), OpenError> {
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    let busy_ms = i64::try_from(BUSY_MS).unwrap_or(i64::MAX);
    check(connection, "busy_timeout", &busy_ms.into())?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    set(connection, "trusted_schema", 0.into(), 0.into())?;
    // A plan holds for every value. Else SQLite prepares a statement anew, at each run, where one of its values stands beside a
    // partial index: that is most of what such a statement costs.
    let stable = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    if !connection.set_db_config(stable, true)? {
        return Err(OpenError::Pragma {
            name: "query planner stability",
            wanted: "1".to_owned(),
            found: "0".to_owned(),
        });
    }
    // A mapped file turns another process's truncation into a crash.
    connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).or_else(no_row)?;
    // Builds without memory mapping answer no row at all, which is as good.
    match connection.pragma_query_value(None, "mmap_size", |row| row.get::<_, Value>(0)) {
        Ok(Value::Integer(0)) | Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Ok(found) => Err(OpenError::Pragma { name: "mmap_size", wanted: "0".to_owned(), found: shown(&found) }),
        Err(error) => Err(error.into()),
    }
}

fn set(connection: &Connection, name: &'static str, value: Value, wanted: Value) -> Result<(), OpenError> {
    // Some pragmas answer the new value, some nothing.
    connection.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(no_row)?;
    check(connection, name, &wanted)
}

fn check(connection: &Connection, name: &'static str, wanted: &Value) -> Result<(), OpenError> {
    let found: Value = connection.pragma_query_value(None, name, |row| row.get(0))?;
    if found == *wanted { Ok(()) } else { Err(OpenError::Pragma { name, wanted: shown(wanted), found: shown(&found) }) }
}

fn no_row(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        error => Err(error),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}
