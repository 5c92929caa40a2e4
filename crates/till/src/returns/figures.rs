//! What came back in a time, for the report of a shift.

use crate::{SaleTax, TillError, columns};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, params};
use serde::Serialize;

/// What came back in a time. Amounts in minor units of one currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// How often cash was handed over, also in the place of a card's refund.
    pub cash_count: i64,
    /// What was handed over in cash.
    pub cash: i64,
    /// What of that is there because of the coins that there are.
    pub rounding: i64,
}

/// The returns of one currency, from a moment on and before another.
pub(crate) fn of_period(
    conn: &Connection,
    currency: Currency,
    from: Timestamp,
    before: Timestamp,
) -> Result<ReturnFigures, TillError> {
    let period = params![from.as_millisecond(), before.as_millisecond(), currency.code()];
    let (returns, net, tax, tips, total) = conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(returns.net), 0), coalesce(sum(returns.tax), 0), coalesce(sum(returns.tip), 0),
                 coalesce(sum(returns.total), 0)
             FROM returns JOIN sales ON sales.id = returns.sale_id
             WHERE returns.created_at >= ?1 AND returns.created_at < ?2 AND sales.currency = ?3",
        )?
        .query_row(period, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    let (cash_count, cash, rounding) = conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(cash_refunds.amount), 0), coalesce(sum(cash_refunds.rounding), 0)
             FROM cash_refunds JOIN returns ON returns.id = cash_refunds.return_id JOIN sales ON sales.id = returns.sale_id
             WHERE cash_refunds.created_at >= ?1 AND cash_refunds.created_at < ?2 AND sales.currency = ?3",
        )?
        .query_row(period, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut statement = conn.prepare_cached(
        "SELECT return_taxes.rate, sum(return_taxes.net), sum(return_taxes.tax)
         FROM returns JOIN return_taxes ON return_taxes.return_id = returns.id JOIN sales ON sales.id = returns.sale_id
         WHERE returns.created_at >= ?1 AND returns.created_at < ?2 AND sales.currency = ?3
         GROUP BY return_taxes.rate ORDER BY return_taxes.rate",
    )?;
    let taxes = statement.query_map(period, |row| {
        Ok(SaleTax { rate: columns::rate(row, 0)?.to_string(), net: row.get(1)?, tax: row.get(2)? })
    })?;
    let taxes = taxes.collect::<Result<_, _>>()?;
    Ok(ReturnFigures { returns, net, tax, tips, total, taxes, cash_count, cash, rounding })
}
