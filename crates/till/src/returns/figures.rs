//! What came back in a time or a shift.

use crate::{SaleTax, TillError, Total, columns, span::Span};
use protocol::Currency;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

/// What came back in a time or a shift. Amounts in minor units of one currency. What the returns came to and what rounding added is
/// what was waived, went back before, goes back to cards and was handed over in cash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnFigures {
    /// How many returns.
    pub returns: i64,
    /// Their goods without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
    /// Their tips.
    pub tips: i64,
    /// What they came to.
    pub total: i64,
    /// The tax by its rate, lowest first.
    pub taxes: Vec<SaleTax>,
    /// What of it goes back to nobody, as it was never paid; the count is of late declines.
    #[serde(default)]
    pub waived: Total,
    /// What of it went back before, as money alone.
    #[serde(default)]
    pub refunded_before: Total,
    /// What of it goes back to cards, whatever the bank says of it.
    pub cards: Total,
    /// What of it was handed over in cash.
    pub cash: Total,
    /// What of that cash is there because of the coins that there are.
    pub rounding: i64,
    /// What was handed over in the place of refunds to cards that did not go through, of these returns or of others, or of a void.
    pub paid_out: Total,
    /// What of that is there because of the coins that there are.
    pub paid_out_rounding: i64,
}

/// The returns of one currency.
pub(crate) fn of_span(conn: &Connection, currency: Currency, span: Span) -> Result<ReturnFigures, TillError> {
    let (from, to) = span.ends();
    let within = span.within("returns.created_at", "returns.shift");
    let of_returns = format!("JOIN sales ON sales.id = returns.sale_id WHERE {within} AND sales.currency = ?3");
    let period = params![from, to, currency.code()];
    let (returns, net, tax, tips, total) = conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(returns.net), 0), coalesce(sum(returns.tax), 0), coalesce(sum(returns.tip), 0),
                 coalesce(sum(returns.total), 0)
             FROM returns {of_returns}"
        ))?
        .query_row(period, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    let cards = conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(refunds.amount), 0)
             FROM returns JOIN refunds ON refunds.return_id = returns.id AND refunds.replaces IS NULL {of_returns}"
        ))?
        .query_row(period, |row| total_at(row, 0))?;
    let waived = conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(return_waived.amount), 0)
             FROM returns JOIN return_waived ON return_waived.return_id = returns.id {of_returns}"
        ))?
        .query_row(period, |row| total_at(row, 0))?;
    let refunded_before = conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(return_refunded.amount), 0)
             FROM returns JOIN return_refunded ON return_refunded.return_id = returns.id {of_returns}"
        ))?
        .query_row(period, |row| total_at(row, 0))?;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT return_taxes.rate, sum(return_taxes.net), sum(return_taxes.tax)
         FROM returns JOIN return_taxes ON return_taxes.return_id = returns.id {of_returns}
         GROUP BY return_taxes.rate ORDER BY return_taxes.rate"
    ))?;
    let taxes = statement.query_map(period, |row| {
        Ok(SaleTax { rate: columns::rate(row, 0)?.to_string(), net: row.get(1)?, tax: row.get(2)? })
    })?;
    let taxes = taxes.collect::<Result<_, _>>()?;
    let (cash, rounding) = handed_over(conn, currency, span, "cash.instead_of IS NULL AND cash.void_id IS NULL")?;
    let (paid_out, paid_out_rounding) = handed_over(conn, currency, span, "cash.instead_of IS NOT NULL")?;
    Ok(ReturnFigures {
        returns,
        net,
        tax,
        tips,
        total,
        taxes,
        waived,
        refunded_before,
        cards,
        cash,
        rounding,
        paid_out,
        paid_out_rounding,
    })
}

fn total_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Total> {
    Ok(Total { count: row.get(at)?, amount: row.get(at + 1)? })
}

/// Cash of returns, or in the place of a card's refund, of a void's also.
fn handed_over(conn: &Connection, currency: Currency, span: Span, which: &str) -> Result<(Total, i64), TillError> {
    let (from, to) = span.ends();
    let within = span.within("cash.created_at", "cash.shift");
    Ok(conn
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(cash.amount), 0), coalesce(sum(cash.rounding), 0)
             FROM cash_refunds AS cash LEFT JOIN returns ON returns.id = cash.return_id LEFT JOIN voids ON voids.id = cash.void_id
                 JOIN sales ON sales.id = coalesce(returns.sale_id, voids.sale_id)
             WHERE {within} AND sales.currency = ?3 AND {which}"
        ))?
        .query_row(params![from, to, currency.code()], |row| Ok((total_at(row, 0)?, row.get(2)?)))?)
}
