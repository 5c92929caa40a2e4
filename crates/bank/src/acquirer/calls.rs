//! What the bank's file holds of its calls to the gateway.

use crate::acquirer::names::Purpose;
use protocol::Key;
use rusqlite::{Connection, OptionalExtension, named_params};
use uuid::Uuid;

/// What is asked of the gateway for one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) key: Key,
    /// The gateway that it goes to; none until that is known.
    pub(crate) gateway: Option<Uuid>,
    /// Attempts that may have been made. Counted before each is made, so never too few.
    pub(crate) attempts: u32,
}

/// Stores a call before its first use. A call that is known stays as it is.
pub(crate) fn insert(tx: &Connection, operation: i64, purpose: Purpose, call: &Call) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO gateway_calls (operation, purpose, key, gateway, attempts)
         VALUES (:operation, :purpose, :key, :gateway, :attempts) ON CONFLICT DO NOTHING",
    )?
    .execute(named_params! {
        ":operation": operation, ":purpose": purpose.as_str(), ":key": call.key.as_bytes(),
        ":gateway": call.gateway.map(Uuid::into_bytes), ":attempts": call.attempts,
    })
    .map(|_| ())
}

/// Counts an attempt that is about to be made at `gateway`, and gives the call as it is then.
pub(crate) fn count(tx: &Connection, operation: i64, purpose: Purpose, gateway: Uuid) -> rusqlite::Result<Call> {
    tx.prepare_cached(
        "UPDATE gateway_calls SET attempts = attempts + 1, gateway = coalesce(gateway, ?3) WHERE operation = ?1 AND purpose = ?2
         RETURNING key, gateway, attempts",
    )?
    .query_row((operation, purpose.as_str(), gateway.into_bytes()), read)
}

/// Reads a call.
pub(crate) fn get(connection: &Connection, operation: i64, purpose: Purpose) -> rusqlite::Result<Option<Call>> {
    connection
        .prepare_cached("SELECT key, gateway, attempts FROM gateway_calls WHERE operation = ?1 AND purpose = ?2")?
        .query_row((operation, purpose.as_str()), read)
        .optional()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Call> {
    Ok(Call {
        key: key(row, 0)?,
        gateway: row.get::<_, Option<[u8; 16]>>(1)?.map(Uuid::from_bytes),
        attempts: row.get(2)?,
    })
}

/// Reads a key out of a column.
pub(crate) fn key(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Key> {
    Key::from_bytes(row.get(column)?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, error.into()))
}
