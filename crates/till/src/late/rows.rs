//! The rows of late declines, and what they mean for what their sale is still owed.

use super::LateState;
use crate::{TillError, columns, tenders::TenderRow};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;

/// A row of `late_declines`.
#[derive(Debug, Clone)]
pub(crate) struct LateRow {
    pub(super) seq: i64,
    pub(crate) tender_id: Uuid,
    pub(crate) last_tender_id: Uuid,
    pub(crate) state: LateState,
    pub(crate) amount: i64,
    pub(super) returned: i64,
    pub(super) rounding: i64,
    pub(super) declined_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) reason: Option<String>,
    pub(super) written_off_by: Option<String>,
}

pub(super) const COLUMNS: &str =
    "seq, tender_id, last_tender_id, state, amount, returned, declined_at, ended_at, reason, written_off_by, rounding";

pub(super) fn late_row(row: &Row<'_>) -> rusqlite::Result<LateRow> {
    Ok(LateRow {
        seq: row.get(0)?,
        tender_id: columns::uuid(row, 1)?,
        last_tender_id: columns::uuid(row, 2)?,
        state: columns::word(row, 3, LateState::read)?,
        amount: row.get(4)?,
        returned: row.get(5)?,
        declined_at: columns::optional_timestamp(row, 6)?,
        ended_at: columns::optional_timestamp(row, 7)?,
        reason: row.get(8)?,
        written_off_by: row.get(9)?,
        rounding: row.get(10)?,
    })
}

/// The late decline in which this tender is the first or the last one.
pub(super) fn of_tender(conn: &Connection, which: &str, tender_id: Uuid) -> Result<Option<LateRow>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM late_declines WHERE {which} = ?1"))?
        .query_row([tender_id.to_string()], late_row)
        .optional()?;
    Ok(found)
}

/// The late declines of a sale, in the order of their coming up. The plus sign keeps SQLite from reading all of them in that order.
pub(super) fn of_sale(conn: &Connection, sale_id: Uuid) -> Result<Vec<LateRow>, TillError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM late_declines WHERE tender_id IN (SELECT id FROM tenders WHERE sale_id = ?1) ORDER BY +seq"
    ))?;
    let rows = statement.query_map([sale_id.to_string()], late_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Those of a sale that nobody has begun to collect.
pub(crate) fn open_of_sale(conn: &Connection, sale_id: Uuid) -> Result<Vec<LateRow>, TillError> {
    Ok(of_sale(conn, sale_id)?.into_iter().filter(|row| row.state == LateState::Open).collect())
}

pub(super) fn of_late(conn: &Connection, late_tender_id: Uuid) -> Result<LateRow, TillError> {
    of_tender(conn, "tender_id", late_tender_id)?.ok_or(TillError::NotFound("late decline"))
}

/// What late declines mean for what their sale is still owed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Since {
    /// Not to be paid any more, though no tender covers it: written off, or its goods came back.
    pub(crate) waived: i64,
    /// What collecting in cash added for the coins, or with a minus took away.
    pub(crate) rounding: i64,
}

/// What became of a sale's payments that were declined after it was completed.
pub(crate) fn since(conn: &Connection, tenders: &[TenderRow]) -> Result<Since, TillError> {
    let mut since = Since::default();
    for tender in tenders.iter().filter(|tender| tender.taken_offline_at.is_some() && !tender.state.counts()) {
        if let Some(row) = of_tender(conn, "tender_id", tender.id)? {
            since.waived += row.returned + if row.state == LateState::WrittenOff { row.amount } else { 0 };
            since.rounding += row.rounding;
        }
    }
    Ok(since)
}
