//! The raw connection that the outbox is compared with: what somebody who knows SQLite writes who wants these rows durable.

use anyhow::{Result, ensure};
use measure::ready::Setting;
use rusqlite::Connection;
use std::path::Path;

/// What makes a commit durable, as SQLite gives it back: `synchronous` is FULL. The cache is that of the store's writer, so that no
/// file is more in memory than the other.
const SETTINGS: [(&str, &str, &str); 5] = [
    ("journal_mode", "wal", "wal"),
    ("synchronous", "full", "2"),
    ("foreign_keys", "on", "1"),
    ("recursive_triggers", "on", "1"),
    ("cache_size", "-16384", "-16384"),
];

/// Opens a file, and reads back what was set.
pub(crate) fn open(path: &Path) -> Result<(Connection, Vec<Setting>)> {
    let db = Connection::open(path)?;
    db.set_prepared_statement_cache_capacity(64);
    let mut settings = Vec::new();
    for (name, value, wanted) in SETTINGS {
        db.pragma_update_and_check(None, name, value, |_| Ok(())).or_else(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => Ok(()),
            error => Err(error),
        })?;
        settings.push(Setting::read(name, text(&db, name)?, Some(wanted))?);
    }
    Ok((db, settings))
}

/// A setting as text.
pub(crate) fn text(db: &Connection, name: &str) -> Result<String> {
    Ok(db.pragma_query_value(None, name, |row| {
        Ok(match row.get::<_, rusqlite::types::Value>(0)? {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        })
    })?)
}

/// One transaction, as short as it can be.
pub(crate) fn commit<T>(db: &Connection, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = work(db)?;
    db.prepare_cached("COMMIT")?.execute([])?;
    ensure!(db.is_autocommit(), "the transaction is still open");
    Ok(done)
}
