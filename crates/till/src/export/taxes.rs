//! The table of taxes: a row for each rate of each receipt, so that the sums of a shift's rows are the tax table of its Z report.

use super::{Cell, sales::numbered};
use crate::{TillError, amounts::format_amount, columns};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use serde::Serialize;
use std::io;

/// Columns of the table of taxes.
pub(crate) const TAXES: [&str; 9] =
    ["kind", "shift", "number", "receipt_number", "completed_at", "currency", "rate", "net", "tax"];

/// A rate of a completed sale, or of goods that came back, which are below zero. Minor units.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaxEntry {
    kind: String,
    shift: Option<i64>,
    number: i64,
    receipt_number: i64,
    completed_at: Timestamp,
    currency: Currency,
    rate: String,
    net: i64,
    tax: i64,
}

impl TaxEntry {
    pub(super) fn cells(&self) -> [Cell<'_>; TAXES.len()] {
        let amount = |minor_units| Cell::Plain(format_amount(minor_units, self.currency));
        [
            Cell::Plain(self.kind.clone()),
            Cell::number(self.shift),
            Cell::number(Some(self.number)),
            Cell::number(Some(self.receipt_number)),
            Cell::time(Some(self.completed_at)),
            Cell::Plain(self.currency.code().to_owned()),
            Cell::Plain(self.rate.clone()),
            amount(self.net),
            amount(self.tax),
        ]
    }
}

/// Hands each rate of each completed sale and each return to `write`, by the receipts' numbers.
pub(super) fn each(conn: &Connection, mut write: impl FnMut(&TaxEntry) -> io::Result<()>) -> Result<u64, TillError> {
    let mut statement = conn.prepare(
        "SELECT 'sale', shift, number, receipt_number AS receipt, completed_at, currency, rate, sale_taxes.net, sale_taxes.tax
         FROM sales JOIN sale_taxes ON sale_taxes.sale_id = sales.id WHERE receipt_number IS NOT NULL
         UNION ALL
         SELECT 'return', returns.shift, sales.number, returns.receipt_number, returns.created_at, sales.currency, rate,
             -return_taxes.net, -return_taxes.tax
         FROM returns JOIN return_taxes ON return_taxes.return_id = returns.id JOIN sales ON sales.id = returns.sale_id
         ORDER BY receipt, rate",
    )?;
    let mut rows = statement.query([])?;
    let mut written = 0;
    while let Some(row) = rows.next()? {
        let entry = TaxEntry {
            kind: row.get(0)?,
            shift: numbered(row.get(1)?),
            number: row.get(2)?,
            receipt_number: row.get(3)?,
            completed_at: columns::timestamp(row, 4)?,
            currency: columns::currency(row, 5)?,
            rate: columns::rate(row, 6)?.to_string(),
            net: row.get(7)?,
            tax: row.get(8)?,
        };
        write(&entry).map_err(TillError::Export)?;
        written += 1;
    }
    Ok(written)
}
