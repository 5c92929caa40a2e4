//! The receipt, out of the frozen rows: printing it again shows the same figures. It is put together once, as a [`document`], and
//! then written as text, as a page and for a printer, so that the three never differ.

mod content;
mod document;
mod escpos;
mod html;
mod layout;
mod slip;
mod words;

pub use escpos::CodePages;
pub use layout::Paper;
pub use words::Language;

use crate::{
    Return, ReturnLeg, SaleState, Settings, TillError, operations, printing, printing::PrintOf, restore, returns, sale,
    settings,
};
use document::Piece;
use rusqlite::Connection;
use serde::Serialize;
use std::collections::HashMap;
use uuid::Uuid;

pub(crate) use content::Content;
#[cfg(test)]
pub(crate) use content::{ContentLine, ContentTender, HowPaid};
pub(crate) use slip::Slip;
#[cfg(test)]
pub(crate) use slip::{SlipCard, SlipLeg, SlipLine};

/// The receipt of one sale, or the slip of what came back of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The sale.
    pub sale_id: Uuid,
    /// The return, of a slip.
    pub return_id: Option<Uuid>,
    /// Its number; of a sale, once that is completed.
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

/// What is written: the receipt of a sale, or the slip of a return.
#[derive(Debug, Clone)]
pub(crate) enum Sheet {
    Sale(Content),
    Return(Slip),
}

impl Sheet {
    fn pieces(&self, language: Language) -> Vec<Piece> {
        match self {
            Self::Sale(content) => document::pieces(content, language),
            Self::Return(slip) => slip.pieces(language),
        }
    }

    fn title(&self, language: Language) -> String {
        match self {
            Self::Sale(content) => document::title(content, language),
            Self::Return(slip) => slip.title(language),
        }
    }

    fn opens_drawer(&self) -> bool {
        match self {
            Self::Sale(content) => content.opens_drawer(),
            Self::Return(slip) => slip.opens_drawer(),
        }
    }

    /// Its number, once it has one.
    pub(crate) fn receipt_number(&self) -> Option<i64> {
        match self {
            Self::Sale(content) => content.receipt_number,
            Self::Return(slip) => Some(slip.receipt_number),
        }
    }

    pub(crate) fn set_copy(&mut self, number: Option<u32>) {
        match self {
            Self::Sale(Content { copy, .. }) | Self::Return(Slip { copy, .. }) => *copy = number,
        }
    }

    /// What a file that holds it is called.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Sale(Content { till, receipt_number: Some(number), .. }) => format!("{till}-receipt-{number}"),
            Self::Sale(Content { till, sale_number, .. }) => format!("{till}-sale-{}", sale_number.unwrap_or_default()),
            Self::Return(Slip { till, receipt_number, .. }) => format!("{till}-refund-{receipt_number}"),
        }
    }

    /// As text.
    pub(crate) fn text(&self, form: ReceiptForm) -> String {
        let mut text = String::new();
        for line in self.lines(form) {
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// As a page.
    pub(crate) fn page(&self, language: Language) -> String {
        html::page(&self.pieces(language), &self.title(language), language)
    }

    /// As what a printer takes.
    pub(crate) fn printer_bytes(&self, form: ReceiptForm, pages: CodePages) -> Vec<u8> {
        escpos::bytes(&self.lines(form), pages, self.opens_drawer())
    }

    fn lines(&self, form: ReceiptForm) -> Vec<layout::Line> {
        layout::lines(&self.pieces(form.language), form.paper)
    }
}

/// What stands on the receipt or the slip.
pub(crate) fn sheet(conn: &Connection, of: PrintOf) -> Result<Sheet, TillError> {
    match of {
        PrintOf::Sale(sale_id) => Ok(Sheet::Sale(content(conn, sale_id)?)),
        PrintOf::Return(return_id) => {
            let made = returns::by_id(conn, return_id)?.ok_or(TillError::NotFound("return"))?;
            Ok(Sheet::Return(slip(conn, &made)?))
        }
    }
}

/// The receipt of a sale that is paid, or under payment and then says so; or the slip of a return, as far as that is. Where no form is
/// asked for, that of the printer's settings.
pub(crate) fn receipt(conn: &Connection, of: PrintOf, form: Option<ReceiptForm>) -> Result<Receipt, TillError> {
    let sheet = sheet(conn, of)?;
    let form = match form {
        Some(form) => form,
        None => printing::settings(conn)?.form,
    };
    let (sale_id, return_id) = printing::ids(conn, of)?;
    Ok(Receipt {
        sale_id,
        return_id,
        receipt_number: sheet.receipt_number(),
        lines: sheet.lines(form).into_iter().map(|line| line.text).collect(),
        text: sheet.text(form),
        html: sheet.page(form.language),
        printed: printing::printed(conn, of, sheet.receipt_number().is_some())?,
    })
}

fn slip(conn: &Connection, made: &Return) -> Result<Slip, TillError> {
    let settings = settings::read(conn)?;
    let till_name = restore::name_of_receipt(conn, made.receipt_number)?;
    let zone = settings::zone(settings.time_zone.as_deref());
    let mut paid = HashMap::new();
    for tender_id in made.legs.iter().filter_map(|leg| leg.tender_id) {
        paid.insert(tender_id, operations::by_intent(conn, tender_id)?);
    }
    let paid = |leg: &ReturnLeg| paid.get(&leg.tender_id?).cloned().flatten();
    Ok(Slip::of(made, &Settings { till_name, ..settings }, zone, paid))
}

/// What stands on the receipt of a sale.
pub(crate) fn content(conn: &Connection, sale_id: Uuid) -> Result<Content, TillError> {
    let sale = sale::read(conn, sale_id)?;
    if !matches!(sale.state, SaleState::Paying | SaleState::Completed) {
        return Err(TillError::SaleChanged("this sale has no receipt: it is not paid".to_owned()));
    }
    let settings = settings::read(conn)?;
    // Of the series in which its number was given: that of the receipt, once it is one.
    let till_name = match sale.receipt_number {
        Some(number) => restore::name_of_receipt(conn, number)?,
        None => restore::name_of_sale(conn, sale.number)?,
    };
    let zone = settings::zone(settings.time_zone.as_deref());
    Ok(Content::of(&sale, &Settings { till_name, ..settings }, zone))
}
