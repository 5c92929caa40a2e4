//! What changed since a place in the log of attempts, by the order of the log and never by a clock, which may be set back.

use protocol::Key;
use rusqlite::{Connection, OptionalExtension};

use crate::columns::{Stored, stored};
use crate::operations::{Operation, by_key};
use crate::step::BankIdentity;

/// How many rows of the log are read at a time.
const ROWS_MAX: usize = 500;

/// What changed, and how far the log was read for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The operations as they are now, each once, in the order of their last change.
    pub operations: Vec<Operation>,
    /// The place in the log up to which this is: an [`Attempt::seq`](crate::Attempt::seq), or where it was asked from.
    pub up_to: i64,
    /// Whether the log goes on.
    pub more: bool,
}

/// The end of the log of attempts, for [`changed_since`]; 0 where it is empty.
///
/// # Errors
/// The file could not be read.
pub fn last_change(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM attempts")?.query_row([], |row| row.get(0))
}

/// What changed after a place in the log: for a listener that missed events, or that starts. Page on with `up_to` while there is
/// more; 500 lines of the log are read at a time.
///
/// # Errors
/// The file could not be read.
pub fn changed_since(conn: &Connection, place: i64) -> rusqlite::Result<Changes> {
    let rows: Vec<(i64, Key)> = conn
        .prepare_cached("SELECT seq, key FROM attempts WHERE seq > ?1 ORDER BY seq LIMIT ?2")?
        .query_map([place, ROWS_MAX as i64], |row| {
            let Stored(key) = row.get(1)?;
            Ok((row.get(0)?, key))
        })?
        .collect::<Result<_, _>>()?;
    let mut operations = Vec::new();
    for (at, (_, key)) in rows.iter().enumerate() {
        if rows[at + 1..].iter().all(|(_, later)| later != key) {
            operations.push(by_key(conn, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?);
        }
    }
    let up_to = rows.last().map_or(place, |(seq, _)| *seq);
    Ok(Changes { operations, up_to, more: rows.len() >= ROWS_MAX })
}

/// The bank that is asked now, once it has said who it is and while nothing is in the way of asking it.
///
/// # Errors
/// The file could not be read.
pub fn bank_asked(conn: &Connection) -> rusqlite::Result<Option<BankIdentity>> {
    conn.prepare_cached(
        "SELECT bank_id, merchant FROM outbox \
         WHERE bank_id IS NOT NULL AND merchant IS NOT NULL AND reachable = 1 AND why IS NULL",
    )?
    .query_row([], |row| Ok(BankIdentity { bank_id: stored(row, "bank_id")?, merchant: row.get("merchant")? }))
    .optional()
}
