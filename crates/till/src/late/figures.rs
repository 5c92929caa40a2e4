//! What late declines came to in a time or a shift.

use crate::{TillError, span::Span};
use protocol::Currency;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

/// How many, and what together in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateTotal {
    /// How many.
    pub count: i64,
    /// In minor units.
    pub amount: i64,
}

/// What became of late declines in a time or a shift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LateFigures {
    /// Declined then, whatever became of them since: the whole of those payments, also where some of their goods were back or are.
    pub declined: LateTotal,
    /// What of that came back before the decline, so that it was never to be collected.
    pub returned_before: LateTotal,
    /// Collected then, after they were declined.
    pub collected: LateTotal,
    /// What of it was collected in cash.
    pub collected_in_cash: LateTotal,
    /// What that added for the coins, or with a minus took away.
    pub rounding: i64,
    /// Goods that came back then, after the decline, so that it is not owed any more; the count is of returns by late declines.
    pub returned: LateTotal,
    /// Written off then.
    pub written_off: LateTotal,
    /// Goods that came back then of what was written off before.
    pub lost_returned: LateTotal,
    /// Not ended when this was asked, whenever they came up.
    pub open: LateTotal,
}

/// What of a late decline's goods came back before it was one.
const BACK_BEFORE: &str = "(late.returned - (SELECT coalesce(sum(amount), 0) FROM return_waived
    WHERE return_waived.tender_id = late.tender_id AND was_lost = 0))";

/// The late declines of one currency.
pub(crate) fn of_span(conn: &Connection, currency: Currency, span: Span) -> Result<LateFigures, TillError> {
    let (from, to) = span.ends();
    let (declined, ended) =
        (span.within("late.declined_at", "late.declined_shift"), span.within("late.ended_at", "late.ended_shift"));
    let sum = |amount: &str, which: &str| -> Result<LateTotal, TillError> {
        Ok(conn
            .prepare_cached(&format!(
                "SELECT count(*), coalesce(sum({amount}), 0)
                 FROM late_declines AS late JOIN tenders ON tenders.id = late.tender_id JOIN sales ON sales.id = tenders.sale_id
                 WHERE {which} AND ?1 <= ?2 AND sales.currency = ?3"
            ))?
            .query_row(params![from, to, currency.code()], |row| {
                Ok(LateTotal { count: row.get(0)?, amount: row.get(1)? })
            })?)
    };
    let (returned, lost_returned) = (waived(conn, currency, span, false)?, waived(conn, currency, span, true)?);
    let by_cash = format!(
        "{ended} AND late.state = 'settled'
             AND EXISTS (SELECT 1 FROM tenders AS last WHERE last.id = late.last_tender_id AND last.kind = 'cash')"
    );
    Ok(LateFigures {
        declined: sum("late.amount + late.returned", &declined)?,
        returned_before: sum(BACK_BEFORE, &format!("{declined} AND {BACK_BEFORE} > 0"))?,
        // What settled because its goods came back was collected by nobody.
        collected: sum(
            "late.amount",
            &format!("{ended} AND late.state = 'settled' AND late.declined_at IS NOT NULL AND late.amount > 0"),
        )?,
        collected_in_cash: sum("late.amount", &by_cash)?,
        rounding: sum("late.rounding", &by_cash)?.amount,
        returned,
        written_off: sum("late.amount", &format!("{ended} AND late.state = 'written_off'"))?,
        lost_returned,
        open: sum("late.amount", "late.ended_at IS NULL")?,
    })
}

/// What came back of what nobody had paid: against what was owed, or against losses.
fn waived(conn: &Connection, currency: Currency, span: Span, was_lost: bool) -> Result<LateTotal, TillError> {
    let (from, to) = span.ends();
    let within = span.within("returns.created_at", "returns.shift");
    Ok(conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(waived.amount), 0)
             FROM returns JOIN return_waived AS waived ON waived.return_id = returns.id JOIN sales ON sales.id = returns.sale_id
             WHERE {within} AND sales.currency = ?3 AND waived.was_lost = ?4"
        ))?
        .query_row(params![from, to, currency.code(), was_lost], |row| {
            Ok(LateTotal { count: row.get(0)?, amount: row.get(1)? })
        })?)
}
