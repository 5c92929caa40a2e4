//! Receipts on paper: the printer's settings, and each print counted in the file before it is made. A printer never touches a sale.

mod printer;

pub(crate) use printer::{Job, print};
pub use printer::{PrintFault, Printer};

use crate::{
    CodePages, Language, Paper, ReceiptForm, TillError, audit, audit::Signature, columns, receipt, receipt::Sheet,
};
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// What the print of a voided sale's slip is called in the audit.
const VOID_PRINTED: &str = "void-printed";

/// Where receipts are printed, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrinterSettings {
    /// The printer.
    pub printer: Printer,
    /// Its paper, and the language of receipts, shown ones too.
    pub form: ReceiptForm,
    /// Which of its pages of characters it is to use.
    pub code_pages: CodePages,
}

/// A print that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Printed {
    /// The sale.
    pub sale_id: Uuid,
    /// The return, of a slip.
    pub return_id: Option<Uuid>,
    /// Which print of it, from 1, those that failed counted.
    pub print: u32,
    /// Which copy it is marked as; 0 for the original.
    pub copy: u32,
}

/// What is printed: the receipt of a sale, the slip of a return, or that of a sale which was voided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PrintOf {
    Sale(Uuid),
    Return(Uuid),
    /// By its sale.
    Void(Uuid),
}

/// A print that is counted and has no outcome yet.
pub(crate) struct Begun {
    pub(crate) printed: Printed,
    pub(crate) settings: PrinterSettings,
    pub(crate) sheet: Sheet,
}

fn row(row: &Row<'_>) -> rusqlite::Result<PrinterSettings> {
    let (kind, target): (String, String) = (row.get(0)?, row.get(1)?);
    let paper: i64 = row.get(2)?;
    let paper = Paper::ALL.into_iter().find(|known| i64::try_from(known.columns()) == Ok(paper));
    Ok(PrinterSettings {
        printer: Printer::of(&kind, target),
        // The table refuses every other width.
        form: ReceiptForm {
            paper: paper.unwrap_or(Paper::Columns42),
            language: columns::word(row, 3, Language::parse)?,
        },
        code_pages: columns::word(row, 4, |word| CodePages::ALL.into_iter().find(|pages| pages.as_str() == word))?,
    })
}

/// The settings as they are.
pub(crate) fn settings(conn: &Connection) -> Result<PrinterSettings, TillError> {
    Ok(conn
        .prepare_cached("SELECT kind, target, columns, language, code_pages FROM receipt_printer WHERE id = 1")?
        .query_row([], row)?)
}

/// Saves the settings.
pub(crate) fn save(tx: &Connection, signature: &Signature, settings: &PrinterSettings) -> Result<(), TillError> {
    let before = self::settings(tx)?;
    if before == *settings {
        return Ok(());
    }
    settings.printer.check()?;
    tx.prepare_cached(
        "UPDATE receipt_printer SET kind = ?1, target = ?2, columns = ?3, language = ?4, code_pages = ?5 WHERE id = 1",
    )?
    .execute(params![
        settings.printer.kind(),
        settings.printer.target(),
        i64::try_from(settings.form.paper.columns()).unwrap_or(i64::MAX),
        settings.form.language.code(),
        settings.code_pages.as_str()
    ])?;
    audit::append(tx, signature, "printer-changed", None, &json!({"before": before, "after": settings}))
}

/// The sale, and of a slip the return.
pub(crate) fn ids(conn: &Connection, of: PrintOf) -> Result<(Uuid, Option<Uuid>), TillError> {
    match of {
        PrintOf::Sale(sale_id) | PrintOf::Void(sale_id) => Ok((sale_id, None)),
        PrintOf::Return(return_id) => {
            let sale_id = conn
                .prepare_cached("SELECT sale_id FROM returns WHERE id = ?1")?
                .query_row([return_id.to_string()], |row| columns::uuid(row, 0))?;
            Ok((sale_id, Some(return_id)))
        }
    }
}

/// How often it was printed, or may have been: a sale as a receipt, or before it was paid.
pub(crate) fn printed(conn: &Connection, of: PrintOf, of_receipt: bool) -> Result<u32, TillError> {
    Ok(match of {
        PrintOf::Sale(sale_id) => conn
            .prepare_cached(
                "SELECT count(*) FROM receipt_prints
                 WHERE sale_id = ?1 AND of_receipt = ?2 AND outcome IS NOT 'not_printed'",
            )?
            .query_row(params![sale_id.to_string(), of_receipt], |row| row.get(0))?,
        PrintOf::Return(return_id) => conn
            .prepare_cached("SELECT count(*) FROM return_prints WHERE return_id = ?1 AND outcome IS NOT 'not_printed'")?
            .query_row([return_id.to_string()], |row| row.get(0))?,
        // Before it was given up it was perhaps printed as one that is not paid yet, which is another paper: the audit tells them apart.
        PrintOf::Void(sale_id) => conn
            .prepare_cached(
                "SELECT count(*) FROM audit JOIN receipt_prints AS prints
                     ON prints.sale_id = audit.sale_id AND prints.print = json_extract(audit.details, '$.print')
                 WHERE audit.sale_id = ?1 AND audit.what = ?2 AND prints.outcome IS NOT 'not_printed'",
            )?
            .query_row(params![sale_id.to_string(), VOID_PRINTED], |row| row.get(0))?,
    })
}

/// Counts a print, and gives what is to be printed.
pub(crate) fn begin(tx: &Connection, signature: &Signature, of: PrintOf) -> Result<Begun, TillError> {
    let settings = settings(tx)?;
    if settings.printer == Printer::None {
        return Err(PrintFault::NoPrinter.into());
    }
    let mut sheet = receipt::sheet(tx, of)?;
    let of_receipt = sheet.receipt_number().is_some();
    let copy = printed(tx, of, of_receipt)?;
    sheet.set_copy((copy > 0).then_some(copy));
    let print = count(tx, of, of_receipt, copy, signature)?;
    let (sale_id, return_id) = ids(tx, of)?;
    let what = match of {
        PrintOf::Sale(_) if of_receipt => "receipt-printed",
        PrintOf::Sale(_) => "slip-printed",
        PrintOf::Return(_) => "return-printed",
        PrintOf::Void(_) => VOID_PRINTED,
    };
    let details = json!({
        "print": print, "copy": copy, "receipt_number": sheet.receipt_number(), "return": return_id, "printer": settings.printer,
    });
    audit::append(tx, signature, what, Some(sale_id), &details)?;
    Ok(Begun { printed: Printed { sale_id, return_id, print, copy }, settings, sheet })
}

fn count(tx: &Connection, of: PrintOf, of_receipt: bool, copy: u32, signature: &Signature) -> Result<u32, TillError> {
    let at = signature.at.as_millisecond();
    let copy = match of {
        // The file counts all that is no receipt of this sale together.
        PrintOf::Void(sale_id) => printed(tx, PrintOf::Sale(sale_id), false)?,
        PrintOf::Sale(_) | PrintOf::Return(_) => copy,
    };
    Ok(match of {
        PrintOf::Sale(sale_id) | PrintOf::Void(sale_id) => tx
            .prepare_cached(
                "INSERT INTO receipt_prints (sale_id, print, of_receipt, copy, at)
                 VALUES (?1, (SELECT coalesce(max(print), 0) + 1 FROM receipt_prints WHERE sale_id = ?1), ?2, ?3, ?4)
                 RETURNING print",
            )?
            .query_row(params![sale_id.to_string(), of_receipt, copy, at], |row| row.get(0))?,
        PrintOf::Return(return_id) => tx
            .prepare_cached(
                "INSERT INTO return_prints (return_id, print, copy, at)
                 VALUES (?1, (SELECT coalesce(max(print), 0) + 1 FROM return_prints WHERE return_id = ?1), ?2, ?3)
                 RETURNING print",
            )?
            .query_row(params![return_id.to_string(), copy, at], |row| row.get(0))?,
    })
}

/// Notes what became of a print.
pub(crate) fn end(
    tx: &Connection,
    signature: &Signature,
    print: Printed,
    fault: Option<&PrintFault>,
) -> Result<(), TillError> {
    let outcome = match fault {
        None => "printed",
        Some(fault) if fault.printed_nothing() => "not_printed",
        Some(_) => "unsure",
    };
    let (sql, id) = match print.return_id {
        None => ("UPDATE receipt_prints SET outcome = ?3, fault = ?4 WHERE sale_id = ?1 AND print = ?2", print.sale_id),
        Some(id) => ("UPDATE return_prints SET outcome = ?3, fault = ?4 WHERE return_id = ?1 AND print = ?2", id),
    };
    tx.prepare_cached(sql)?.execute(params![id.to_string(), print.print, outcome, fault.map(PrintFault::code)])?;
    match fault {
        None => Ok(()),
        Some(fault) => {
            let details = json!({
                "print": print.print, "return": print.return_id, "outcome": outcome, "fault": fault.code(), "why": fault.to_string(),
            });
            audit::append(tx, signature, "print-failed", Some(print.sale_id), &details)
        }
    }
}
