//! What somebody who waits until everything is settled asks beside the figures: short queries, made often.

use protocol::Key;
use rusqlite::{Connection, OptionalExtension, params};

use crate::step::BankIdentity;

/// Of the operations that were cancelled here, those that this bank is still to be told of. One that belongs to another bank or
/// merchant waits for that one, however long.
///
/// # Errors
/// The file could not be read.
pub fn tombstones_for(conn: &Connection, bank: &BankIdentity) -> rusqlite::Result<u32> {
    conn.prepare_cached(concat!(
        "SELECT count(*) FROM operations INDEXED BY operations_open WHERE ",
        open!(),
        " AND tombstone = 1 AND (bank_id IS NULL OR (bank_id, merchant) IS (?1, ?2))"
    ))?
    .query_row(params![bank.bank_id.as_bytes(), bank.merchant], |row| row.get(0))
}

/// How often settling was started on this file. What the file says of the bank before the start that is waited for is an earlier
/// one's: perhaps of another bank.
///
/// # Errors
/// The file could not be read.
pub fn starts(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("SELECT epoch FROM outbox WHERE id = 1")?.query_row([], |row| row.get(0))
}

/// The place in the log ([`Attempt::seq`](crate::Attempt::seq)) of the last thing that the bank said of an operation; none where it
/// never said anything. Reads the log from its end on, however long it is.
///
/// # Errors
/// The file could not be read.
pub fn last_answer(conn: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT seq FROM attempts WHERE key = ?1 AND answer IS NOT NULL ORDER BY seq DESC LIMIT 1")?
        .query_row([key.as_bytes()], |row| row.get(0))
        .optional()
}
