//! Late declines as they are shown.

use super::{
    LateDecline,
    rows::{COLUMNS, LateRow, late_row, of_tender},
};
use crate::{TenderKind, TillError, columns, offline, operations, sales, tenders};
use protocol::Key;
use rusqlite::{Connection, params};
use serde::Serialize;
use uuid::Uuid;

/// How many one answer holds at most.
const LATE_MAX: u32 = 200;

/// Which late declines are asked for, the newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateQuery {
    /// Also those that are settled or written off.
    pub with_ended: bool,
    /// Only those that came up before the one in this place.
    pub before: Option<i64>,
    /// How many; at most 200.
    pub limit: Option<u32>,
}

/// A page of late declines.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LateDeclines {
    /// Those found.
    pub late: Vec<LateDecline>,
    /// Whether there are more.
    pub more: bool,
}

/// A page, the newest first.
pub(crate) fn list(conn: &Connection, query: LateQuery) -> Result<LateDeclines, TillError> {
    let limit = query.limit.unwrap_or(LATE_MAX).clamp(1, LATE_MAX);
    let among = if query.with_ended { "" } else { "AND ended_at IS NULL" };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM late_declines WHERE seq < ?1 {among} ORDER BY seq DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![query.before.unwrap_or(i64::MAX), i64::from(limit) + 1], late_row)?;
    let mut rows: Vec<LateRow> = rows.collect::<Result<_, _>>()?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    Ok(LateDeclines { late: rows.iter().map(|row| show(conn, row)).collect::<Result<_, _>>()?, more })
}

/// The late decline of a tender that was taken offline.
pub(crate) fn by_tender(conn: &Connection, tender_id: Uuid) -> Result<Option<LateDecline>, TillError> {
    of_tender(conn, "tender_id", tender_id)?.map(|row| show(conn, &row)).transpose()
}

/// The late decline for which the operation of this intent was begun last.
pub(crate) fn by_last(conn: &Connection, intent_id: Uuid) -> Result<Option<LateDecline>, TillError> {
    of_tender(conn, "last_tender_id", intent_id)?.map(|row| show(conn, &row)).transpose()
}

/// The late declines for which these operations were begun last.
pub(crate) fn of_operations(conn: &Connection, keys: &[Key]) -> Result<Vec<LateDecline>, TillError> {
    let mut late = Vec::new();
    for key in keys {
        if let Some(operation) = outbox::by_key(conn, key)? {
            late.extend(by_last(conn, operation.intent_id)?);
        }
    }
    Ok(late)
}

/// The late declines that a return has lowered.
pub(crate) fn lowered_by(conn: &Connection, return_id: Uuid) -> Result<Vec<LateDecline>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT tender_id FROM return_waived WHERE return_id = ?1 AND was_lost = 0 ORDER BY tender_id",
    )?;
    let ids = statement.query_map([return_id.to_string()], |row| columns::uuid(row, 0))?;
    let ids: Vec<Uuid> = ids.collect::<Result<_, _>>()?;
    ids.into_iter().filter_map(|id| by_tender(conn, id).transpose()).collect()
}

fn show(conn: &Connection, row: &LateRow) -> Result<LateDecline, TillError> {
    let first = offline::card_tender(conn, row.tender_id)?;
    let broken = || TillError::Internal("what a late decline was collected by is not there".to_owned());
    let mut last = tenders::by_id(conn, row.last_tender_id)?.ok_or_else(broken)?;
    let mut cash = None;
    if last.kind == TenderKind::Cash {
        cash = Some(last.amount);
        last = offline::card_tender(conn, last.replaces.ok_or_else(broken)?)?;
    }
    let sale = sales::by_id(conn, first.sale_id)?;
    let taken_at = first.taken_offline_at.unwrap_or(first.created_at);
    Ok(LateDecline {
        seq: row.seq,
        tender_id: row.tender_id,
        sale_id: sale.id,
        sale_number: sale.number,
        receipt_number: sale.receipt_number,
        taken_at,
        declined_at: row.declined_at,
        state: row.state,
        amount: row.amount,
        returned: row.returned,
        currency: sale.currency,
        contact: offline::contact(conn, row.tender_id)?,
        operation: operations::show(conn, &offline::of_tender(conn, &last)?)?,
        cash,
        ended_at: row.ended_at,
        reason: row.reason.clone(),
        written_off_by: row.written_off_by.clone(),
    })
}
