//! Everything of a kind written out, oldest first, a few rows at a time: a file of any size takes the same memory.

mod csv;
mod sales;
mod taxes;

use crate::{AuditEntry, Operation, OperationQuery, TillError, amounts::format_amount, audit, operations};
use csv::Csv;
use jiff::Timestamp;
use outbox::ExportError;
use rusqlite::{Connection, OptionalExtension as _};
use sales::SALES;
use serde::Serialize;
use std::io::{self, Write};
use taxes::TAXES;

/// Rows that are read at a time.
const PAGE: u32 = 500;

/// What is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exported {
    /// Sales that were paid or are under payment, by their number, each with what became of it.
    Sales,
    /// The tax of completed sales and of goods that came back, by its rate.
    Taxes,
    /// Payments and refunds, in the order of their clicks.
    Payments,
    /// The audit.
    Audit,
}

/// How it is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A JSON document a line, with all there is.
    Json,
    /// A table as RFC 4180 has it, in UTF-8 with a mark at its begin, for a spreadsheet: see the `COLUMNS` of each kind in `docs/EXPORT.md`.
    /// Amounts are decimals of their currency; a text that a spreadsheet would take for a formula has an apostrophe before it.
    Csv,
}

/// Writes all of a kind, and gives the number of rows. Call it in one reading transaction: then it is one state of the file.
pub(crate) fn export(
    conn: &Connection,
    what: Exported,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<u64, TillError> {
    let written = match (what, format) {
        // With every attempt.
        (Exported::Payments, ExportFormat::Json) => match outbox::export(conn, out) {
            Ok(written) => return Ok(written),
            Err(ExportError::Sqlite(error)) => return Err(error.into()),
            Err(ExportError::Io(error)) => return Err(TillError::Export(error)),
        },
        (Exported::Sales, ExportFormat::Json) => sales::each(conn, |sale| json(out, sale)),
        (Exported::Taxes, ExportFormat::Json) => taxes::each(conn, |entry| json(out, entry)),
        (Exported::Audit, ExportFormat::Json) => entries(conn, |entry| json(out, entry)),
        (Exported::Sales, ExportFormat::Csv) => {
            let mut csv = Csv::begin(out, &SALES).map_err(TillError::Export)?;
            sales::each(conn, |sale| sale.table().try_for_each(|row| csv.row(&row)))
        }
        (Exported::Taxes, ExportFormat::Csv) => {
            let mut csv = Csv::begin(out, &TAXES).map_err(TillError::Export)?;
            taxes::each(conn, |entry| csv.row(&entry.cells()))
        }
        (Exported::Payments, ExportFormat::Csv) => {
            let mut csv = Csv::begin(out, &PAYMENTS).map_err(TillError::Export)?;
            payments(conn, |operation, shift| csv.row(&payment_row(operation, shift)))
        }
        (Exported::Audit, ExportFormat::Csv) => {
            let mut csv = Csv::begin(out, &AUDIT).map_err(TillError::Export)?;
            entries(conn, |entry| csv.row(&audit_row(entry)))
        }
    }?;
    out.flush().map_err(TillError::Export)?;
    Ok(written)
}

fn json(out: &mut dyn Write, row: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, row).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// With the shift that a refund belongs to.
fn payments(
    conn: &Connection,
    mut write: impl FnMut(&Operation, Option<i64>) -> io::Result<()>,
) -> Result<u64, TillError> {
    let mut shift_of = conn.prepare("SELECT shift FROM refunds WHERE id = ?1 AND shift > 0")?;
    let (mut after, mut written) = (None, 0);
    loop {
        let query = OperationQuery { after, oldest_first: true, limit: Some(PAGE), ..OperationQuery::default() };
        let page = operations::list(conn, &query)?;
        for operation in &page.operations {
            let refund = match operation.kind {
                protocol::Kind::Payment => None,
                protocol::Kind::Refund => outbox::by_key(conn, &operation.key)?,
            };
            let shift = match refund {
                None => None,
                Some(refund) => shift_of.query_row([refund.intent_id.to_string()], |row| row.get(0)).optional()?,
            };
            write(operation, shift).map_err(TillError::Export)?;
            written += 1;
        }
        after = page.operations.last().map(|operation| operation.seq);
        if !page.more {
            return Ok(written);
        }
    }
}

fn entries(conn: &Connection, mut write: impl FnMut(&AuditEntry) -> io::Result<()>) -> Result<u64, TillError> {
    let (mut after, mut written) = (0, 0);
    loop {
        let page = audit::list(conn, None, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(written) };
        after = last.seq;
        for entry in &page {
            write(entry).map_err(TillError::Export)?;
            written += 1;
        }
    }
}

/// A cell of a table.
pub(crate) enum Cell<'a> {
    /// In somebody's words: guarded against being a formula.
    Text(&'a str),
    /// The program's own, such as a number.
    Plain(String),
    Nothing,
}

impl<'a> Cell<'a> {
    fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }

    fn number(number: Option<i64>) -> Self {
        number.map_or(Self::Nothing, |number| Self::Plain(number.to_string()))
    }

    fn time(at: Option<Timestamp>) -> Self {
        at.map_or(Self::Nothing, |at| Self::Plain(at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()))
    }
}

/// A row an operation.
pub(crate) const PAYMENTS: [&str; 20] = [
    "key",
    "short_code",
    "kind",
    "state",
    "amount",
    "currency",
    "sale_number",
    "receipt_number",
    "reference",
    "card_brand",
    "last4",
    "approval_code",
    "decline_code",
    "bank_reference",
    "accepted_offline",
    "attempts",
    "created_at",
    "updated_at",
    "reason",
    "shift",
];

fn payment_row(operation: &Operation, shift: Option<i64>) -> [Cell<'_>; PAYMENTS.len()] {
    let kind = match operation.kind {
        protocol::Kind::Payment => "payment",
        protocol::Kind::Refund => "refund",
    };
    [
        Cell::Plain(operation.key.to_string()),
        Cell::Text(&operation.short_code),
        Cell::Plain(kind.to_owned()),
        Cell::Plain(operation.state.as_str().to_owned()),
        Cell::Plain(format_amount(operation.amount, operation.currency)),
        Cell::Plain(operation.currency.code().to_owned()),
        Cell::number(operation.sale_number),
        Cell::number(operation.receipt_number),
        Cell::text(operation.reference.as_deref()),
        Cell::text(operation.card_brand.as_deref()),
        Cell::text(operation.last4.as_deref()),
        Cell::text(operation.approval_code.as_deref()),
        Cell::text(operation.decline_code.as_deref()),
        Cell::text(operation.bank_reference.as_deref()),
        Cell::Plain(if operation.accepted_offline { "yes" } else { "no" }.to_owned()),
        Cell::Plain(operation.attempts.to_string()),
        Cell::time(Some(operation.created_at)),
        Cell::time(Some(operation.updated_at)),
        Cell::text(operation.reason.as_deref()),
        Cell::number(shift),
    ]
}

/// A row an entry.
pub(crate) const AUDIT: [&str; 12] = [
    "seq",
    "at",
    "offset_s",
    "app_version",
    "who",
    "person_id",
    "approved_by",
    "approver_id",
    "what",
    "sale_id",
    "details",
    "hash",
];

fn audit_row(entry: &AuditEntry) -> [Cell<'_>; AUDIT.len()] {
    [
        Cell::Plain(entry.seq.to_string()),
        Cell::time(Some(entry.at)),
        Cell::Plain(entry.offset_s.to_string()),
        Cell::text(entry.app_version.as_deref()),
        Cell::Text(&entry.who),
        Cell::number(entry.person_id),
        Cell::text(entry.approved_by.as_deref()),
        Cell::number(entry.approver_id),
        Cell::Text(&entry.what),
        entry.sale_id.map_or(Cell::Nothing, |id| Cell::Plain(id.to_string())),
        Cell::Plain(entry.details.to_string()),
        Cell::Plain(entry.hash.clone()),
    ]
}
