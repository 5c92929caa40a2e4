//! The receipt, out of the frozen rows: printing it again shows the same figures. It is put together once, as a [`document`], and
//! then written as text, as a page and for a printer, so that the three never differ.

mod content;
mod document;
mod escpos;
mod html;
mod layout;
mod words;

pub use escpos::CodePages;
pub use layout::Paper;
pub use words::Language;

use crate::{SaleState, Settings, TillError, printing, restore, sale, settings};
use rusqlite::Connection;
use serde::Serialize;
use uuid::Uuid;

pub(crate) use content::Content;
#[cfg(test)]
pub(crate) use content::{ContentLine, ContentTender, HowPaid};

/// The receipt of one sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The sale.
    pub sale_id: Uuid,
    /// Its number, once the sale is completed.
    pub receipt_number: Option<i64>,
    /// Its lines, none wider than the paper.
    pub lines: Vec<String>,
    /// All of it.
    pub text: String,
    /// The same as a page of its own: no script, nothing fetched.
    pub html: String,
    /// How often it was printed, or may have been.
    pub printed: u32,
}

/// On what, and in which language, a receipt is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReceiptForm {
    /// How wide the paper is.
    pub paper: Paper,
    /// The language of its words. What the shop named, such as articles, stays as it is.
    pub language: Language,
}

/// The receipt of a sale that is paid, or under payment and then says so. Where no form is asked for, that of the printer's settings.
pub(crate) fn receipt(conn: &Connection, sale_id: Uuid, form: Option<ReceiptForm>) -> Result<Receipt, TillError> {
    let content = content(conn, sale_id)?;
    let form = match form {
        Some(form) => form,
        None => printing::settings(conn)?.form,
    };
    let lines: Vec<_> = layout::lines(&document::pieces(&content, form.language), form.paper)
        .into_iter()
        .map(|line| line.text)
        .collect();
    Ok(Receipt {
        sale_id,
        receipt_number: content.receipt_number,
        text: lines.join("\n") + "\n",
        lines,
        html: page(&content, form.language),
        printed: printing::printed(conn, sale_id, content.receipt_number.is_some())?,
    })
}

/// What stands on the receipt of a sale.
pub(crate) fn content(conn: &Connection, sale_id: Uuid) -> Result<Content, TillError> {
    let sale = sale::read(conn, sale_id)?;
    if !matches!(sale.state, SaleState::Paying | SaleState::Completed) {
        return Err(TillError::SaleChanged("this sale has no receipt: it is not paid".to_owned()));
    }
    let settings = settings::read(conn)?;
    let till_name = restore::name_of_sale(conn, sale.number, settings.till_name.clone())?;
    // Of the series in which its number was given.
    let zone = settings::zone(settings.time_zone.as_deref());
    Ok(Content::of(&sale, &Settings { till_name, ..settings }, zone))
}

/// The receipt as text.
pub(crate) fn text(content: &Content, form: ReceiptForm) -> String {
    let mut text = String::new();
    for line in layout::lines(&document::pieces(content, form.language), form.paper) {
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// The receipt as a page.
pub(crate) fn page(content: &Content, language: Language) -> String {
    html::page(&document::pieces(content, language), &document::title(content, language), language)
}

/// The receipt as what a printer takes.
pub(crate) fn printer_bytes(content: &Content, form: ReceiptForm, pages: CodePages) -> Vec<u8> {
    let lines = layout::lines(&document::pieces(content, form.language), form.paper);
    escpos::bytes(&lines, pages, content.opens_drawer())
}
