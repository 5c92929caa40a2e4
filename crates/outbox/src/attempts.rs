//! The append-only log of attempts: enough to tell the whole history of an operation, and no secret in it.

use jiff::Timestamp;
use protocol::Key;
use rusqlite::{Connection, Row, named_params};
use serde::Serialize;

use crate::columns::{Ms, ms, stored, time};

/// One thing that happened to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Its place in the log of all operations, ascending, for [`changed_since`](crate::changed_since).
    pub seq: i64,
    /// Whose.
    pub key: Key,
    /// Which attempt it belongs to, as [`Operation::attempts`](crate::Operation::attempts) counts; 0 before the first.
    pub attempt: u32,
    /// When, by our clock, to the millisecond.
    pub at: Timestamp,
    /// What the bank's clock said in its answer, to the second.
    pub bank_at: Option<Timestamp>,
    /// What happened:
    /// - `saved`; `ready` (a refund: its payment is approved); `accepted-offline`; `cancel-wished`; `cancelled` (here, at once);
    /// - `sent` (its request is about to be sent: counted); `asked` (a look-up or its cancellation is);
    /// - `answer`, `no-answer` (with how it was read); `late-answer` (another end after its end: an alarm, no change); `not-kept`
    ///   (the row was not as it was left, so it is asked for again);
    /// - `other-bank` (it belongs to another bank than the one that answers now, and waits for that one); `bank-back` (its bank is the
    ///   one that answers again);
    /// - `resumed` (its owner died with it in flight); `stopped` (the program ended while its call ran); `put-back` (counted, and
    ///   not sent after all); `panicked` (a fault of this program or of a hook).
    pub event: String,
    /// What was sent: method and path, no header and no body.
    pub sent: Option<String>,
    /// The HTTP status that came back.
    pub answer: Option<u16>,
    /// How it was read ([`Reading::name`](crate::answer::Reading::name)): `approved`, `in-progress`, `time-out`, …
    pub reading: Option<String>,
    /// More, for people: up to some hundred characters on one line, of the bank's own text too.
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

/// What happened to an operation, oldest first; nothing where no operation has that key.
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
