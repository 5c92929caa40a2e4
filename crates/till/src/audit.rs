//! The audit: who did what, when, in the commit that did it. The database refuses to change or drop an entry.

use crate::TillError;
use jiff::{Timestamp, tz::TimeZone};
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// Who acts, and when: what every change of the file is signed with.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) who: String,
    pub(crate) at: Timestamp,
}

/// The bank, as the one whose word settled a tender.
pub(crate) const BANK: &str = "bank";

/// What an entry about an end that the bank said after another one is called.
pub(crate) const LATE_ANSWER: &str = "late-answer";

/// An entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Its place, without gaps from 1.
    pub seq: i64,
    /// When, by the till's clock.
    pub at: Timestamp,
    /// The till's offset from UTC at that moment, in seconds, east positive.
    pub offset_s: i32,
    /// Who.
    pub who: String,
    /// What was done, such as `payment-begun`.
    pub what: String,
    /// The sale it was done to.
    pub sale_id: Option<Uuid>,
    /// The particulars: before and after, amounts in minor units.
    pub details: Value,
}

/// Adds an entry. Called inside the transaction that makes the change.
pub(crate) fn append(
    tx: &Connection,
    signature: &Signature,
    what: &str,
    sale_id: Option<Uuid>,
    details: &Value,
) -> Result<(), TillError> {
    let offset_s = TimeZone::system().to_offset(signature.at).seconds();
    tx.prepare_cached(
        "INSERT INTO audit (seq, at, offset_s, who, what, sale_id, details)
         VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM audit), ?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        signature.at.as_millisecond(),
        offset_s,
        signature.who,
        what,
        sale_id.map(|id| id.to_string()),
        details.to_string()
    ])?;
    Ok(())
}

/// The place of the last entry; 0 where there is none.
pub(crate) fn end(conn: &Connection) -> Result<i64, TillError> {
    Ok(conn.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?)
}

/// The entries of one sale, or of all with `None`; oldest first, after `after_seq`.
pub(crate) fn list(
    conn: &Connection,
    sale_id: Option<Uuid>,
    after_seq: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, at, offset_s, who, what, sale_id, details FROM audit
         WHERE seq > ?1 AND (?2 IS NULL OR sale_id = ?2) ORDER BY seq LIMIT ?3",
    )?;
    let rows = statement.query_map(params![after_seq, sale_id.map(|id| id.to_string()), limit], |row| {
        Ok(AuditEntry {
            seq: row.get(0)?,
            at: crate::columns::timestamp(row, 1)?,
            offset_s: row.get(2)?,
            who: row.get(3)?,
            what: row.get(4)?,
            sale_id: crate::columns::optional_uuid(row, 5)?,
            details: crate::columns::json(row, 6)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
