//! What changed since a place in the log of attempts: for a listener that missed events, by the order of the log and never by
//! a clock, which may be set back. The log is append-only, a row for each change.

use crate::{Operation, Till, TillError, operations};
use outbox::by_key;
use protocol::Key;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

/// How many rows of the log are read at a time.
const ROWS_MAX: u32 = 500;
/// After how many told changes a listener's place moves on: more than any queue of events holds, so that what is not told by
/// then was told as missed.
const TOLD_MAX: u32 = 8_192;

/// What changed, and how far the log was read for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The operations as they are now, each once, in the order of their last change.
    pub operations: Vec<Operation>,
    /// The place in the log up to which this is.
    pub up_to: i64,
    /// Whether the log goes on.
    pub more: bool,
}

/// A bank, as it calls itself and its merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankIdentity {
    /// The bank.
    pub bank_id: Uuid,
    /// The shop that the secret stands for.
    pub merchant: String,
}

impl BankIdentity {
    /// Whether the operation was first sent to another bank, or for another merchant, and so waits for that one.
    #[must_use]
    pub fn is_foreign_to(&self, operation: &Operation) -> bool {
        operation.bank_id.is_some_and(|bank_id| bank_id != self.bank_id)
            || operation.merchant.as_ref().is_some_and(|merchant| *merchant != self.merchant)
    }
}

impl Till {
    /// The end of the log of changes, for [`Till::changed_since`].
    ///
    /// # Errors
    /// [`TillError::Storage`] where the file can't be read.
    pub async fn last_change(&self) -> Result<i64, TillError> {
        self.read(last).await
    }

    /// What changed after a place in the log.
    ///
    /// # Errors
    /// [`TillError::Storage`] where the file can't be read.
    pub async fn changed_since(&self, place: i64) -> Result<Changes, TillError> {
        self.read(move |conn| since(conn, place)).await
    }

    /// The bank that is asked now, once it has said who it is and while nothing is in the way of asking it.
    ///
    /// # Errors
    /// [`TillError::Storage`] where the file can't be read.
    pub async fn bank_asked(&self) -> Result<Option<BankIdentity>, TillError> {
        self.read(bank_asked).await
    }
}

pub(crate) fn last(conn: &Connection) -> Result<i64, TillError> {
    Ok(conn.prepare_cached("SELECT coalesce(max(seq), 0) FROM attempts")?.query_row([], |row| row.get(0))?)
}

fn since(conn: &Connection, place: i64) -> Result<Changes, TillError> {
    let mut statement = conn.prepare_cached("SELECT seq, key FROM attempts WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let rows: Vec<(i64, [u8; 16])> = statement
        .query_map([place, i64::from(ROWS_MAX)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut operations = Vec::new();
    for (at, (_, key)) in rows.iter().enumerate() {
        if rows[at + 1..].iter().any(|(_, later)| later == key) {
            continue;
        }
        let key = Key::from_bytes(*key).map_err(|error| TillError::Internal(error.to_string()))?;
        let operation = by_key(conn, &key)?.ok_or(TillError::NotFound("operation"))?;
        operations.push(operations::show(conn, &operation)?);
    }
    let up_to = rows.last().map_or(place, |(seq, _)| *seq);
    Ok(Changes { operations, up_to, more: rows.len() >= ROWS_MAX as usize })
}

fn bank_asked(conn: &Connection) -> Result<Option<BankIdentity>, TillError> {
    let found = conn
        .prepare_cached(
            "SELECT bank_id, merchant FROM outbox
             WHERE bank_id IS NOT NULL AND merchant IS NOT NULL AND reachable = 1 AND why IS NULL",
        )?
        .query_row([], |row| {
            Ok(BankIdentity { bank_id: Uuid::from_bytes(row.get::<_, [u8; 16]>(0)?), merchant: row.get(1)? })
        })
        .optional()?;
    Ok(found)
}

/// A listener's place in the log, to catch up from where events were missed.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Everything up to here was told.
    from: i64,
    /// The end of the log some time ago, from where on `told` counts.
    mark: i64,
    told: u32,
}

impl Place {
    /// Begins at a place of the log: see [`Till::last_change`].
    #[must_use]
    pub fn at(place: i64) -> Self {
        Self { from: place, mark: place, told: 0 }
    }

    /// Where to catch up from. Some of it may have been told.
    #[must_use]
    pub fn to_catch_up_from(&self) -> i64 {
        self.from
    }

    /// Counts a change that was told, and moves on now and then. An event comes a moment after its row, in another order
    /// perhaps, and waits behind others: so the place is always one that more events lie behind than can wait.
    ///
    /// # Errors
    /// [`TillError::Storage`] where the file can't be read.
    pub async fn told_one(&mut self, till: &Till) -> Result<(), TillError> {
        self.told += 1;
        if self.told >= TOLD_MAX {
            let mark = till.last_change().await?;
            *self = Self { from: self.mark, mark, told: 0 };
        }
        Ok(())
    }
}
