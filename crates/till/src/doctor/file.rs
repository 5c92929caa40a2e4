//! The file as SQLite sees it: whole, with its references and all that guards it.

use super::Notes;
use crate::{TillError, schema};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;

/// Lines of SQLite's own about damage: the rest says no more.
const DAMAGES_MAX: u32 = 20;
const READ: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Whether SQLite finds its pages, indices and checks whole. On a connection of its own: the check of a full-text index believes what its
/// connection remembers of that index, and one that was kept open while another wrote to it finds damage in a whole file.
pub(super) fn is_whole(conn: &Connection, notes: &mut Notes<'_>) -> Result<bool, TillError> {
    let fresh =
        conn.path().filter(|path| !path.is_empty()).map(|path| Connection::open_with_flags(path, READ)).transpose()?;
    let mut statement = fresh.as_ref().unwrap_or(conn).prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    let mut rows = statement.query([])?;
    let mut is_whole = true;
    while let Some(row) = rows.next()? {
        let said: String = row.get(0)?;
        if said != "ok" {
            // A value that a CHECK forbids is no damage: it is looked at like any other.
            is_whole &= said.starts_with("CHECK constraint failed") || said.starts_with("NULL value in");
            notes.found("file-damaged", "file", said);
        }
    }
    Ok(is_whole)
}

pub(super) fn check_references(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut statement = conn.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, rowid, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let which = rowid.map_or_else(String::new, |rowid| format!(" {rowid}"));
        notes.found(
            "reference-broken",
            format!("row{which} of {table}"),
            format!("refers to a row of {parent} that is not there"),
        );
    }
    Ok(())
}

/// Whether every table, index and trigger is there as the program makes it: what is not guarded may have been changed.
pub(super) fn check_schema(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let fresh = Connection::open_in_memory()?;
    schema::prepare(&fresh)?;
    for migration in schema::schema().migrations {
        fresh.execute_batch(migration.sql)?;
    }
    let (should, is) = (objects(&fresh)?, objects(conn)?);
    for (name, (kind, sql)) in &should {
        match is.get(name) {
            None => notes.found(
                "schema-changed",
                format!("{kind} {name}"),
                "is gone: what it guarded may have been changed",
            ),
            Some((_, other)) if other != sql => {
                notes.found("schema-changed", format!("{kind} {name}"), "is another than the program makes");
            }
            Some(_) => {}
        }
    }
    for (name, (kind, _)) in is.iter().filter(|(name, _)| !should.contains_key(*name)) {
        notes.found("schema-changed", format!("{kind} {name}"), "is none of the program's");
    }
    Ok(())
}

type Objects = BTreeMap<String, (String, Option<String>)>;

fn objects(conn: &Connection) -> Result<Objects, TillError> {
    let mut statement = conn.prepare("SELECT name, type, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
