//! The append-only log of attempts: enough to tell the whole history of an operation, and no secret in it.

use jiff::Timestamp;
use protocol::Key;
use rusqlite::{Connection, Row, named_params};
use serde::Serialize;

use crate::columns::{Ms, ms, stored, time};

/// One thing that happened to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Its place in the log of all operations.
    pub seq: i64,
    /// Whose.
    pub key: Key,
    /// Which attempt it belongs to; 0 before the first.
    pub attempt: u32,
    /// When, by our clock.
    pub at: Timestamp,
    /// What the bank's clock said in its answer.
    pub bank_at: Option<Timestamp>,
    /// What happened: `saved`, `ready` (its payment is approved), `sent`, `asked`, `answer`, `no-answer`, `resumed`, `stopped`,
    /// `put-back`, `panicked`, `accepted-offline`, `cancel-wished`, `cancelled`, `late-answer`, `not-kept`.
    pub event: String,
    /// What was sent: method and path.
    pub sent: Option<String>,
    /// The HTTP status that came back.
    pub answer: Option<u16>,
    /// How it was read: `approved`, `in-progress`, `time-out`, …
    pub reading: Option<String>,
    /// More, for people.
    pub detail: String,
}

/// A row to append.
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a Key,
    pub(crate) attempt: u32,
    pub(crate) at: Timestamp,
    pub(crate) bank_at: Option<Timestamp>,
    pub(crate) event: &'a str,
    pub(crate) sent: Option<&'a str>,
    pub(crate) answer: Option<u16>,
    pub(crate) reading: Option<&'a str>,
    pub(crate) detail: &'a str,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(key: &'a Key, attempt: u32, at: Timestamp, event: &'a str) -> Self {
        Entry { key, attempt, at, bank_at: None, event, sent: None, answer: None, reading: None, detail: "" }
    }
}

pub(crate) fn append(tx: &Connection, entry: &Entry<'_>) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO attempts (key, attempt, at, bank_at, event, sent, answer, reading, detail) \
         VALUES (:key, :attempt, :at, :bank_at, :event, :sent, :answer, :reading, :detail)",
    )?
    .execute(named_params! {
        ":key": entry.key.as_bytes(),
        ":attempt": entry.attempt,
        ":at": ms(entry.at),
        ":bank_at": entry.bank_at.map(ms),
        ":event": entry.event,
        ":sent": entry.sent,
        ":answer": entry.answer,
        ":reading": entry.reading,
        ":detail": entry.detail,
    })
    .map(|_| ())
}

/// What happened to an operation, oldest first.
///
/// # Errors
/// The file could not be read.
pub fn attempts(conn: &Connection, key: &Key) -> rusqlite::Result<Vec<Attempt>> {
    conn.prepare_cached(
        "SELECT seq, key, attempt, at, bank_at, event, sent, answer, reading, detail FROM attempts WHERE key = ?1 ORDER BY seq",
    )?
    .query_map([key.as_bytes()], from_row)?
    .collect()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        seq: row.get("seq")?,
        key: stored(row, "key")?,
        attempt: row.get("attempt")?,
        at: row.get::<_, Ms>("at")?.0,
        bank_at: time(row, "bank_at")?,
        event: row.get("event")?,
        sent: row.get("sent")?,
        answer: row.get("answer")?,
        reading: row.get("reading")?,
        detail: row.get("detail")?,
    })
}
