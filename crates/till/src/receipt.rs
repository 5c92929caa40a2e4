//! The receipt, out of the frozen rows: printing it again shows the same figures. It is put together once, as a [`document`], and
//! then written as text, as a page and for a printer, so that the three never differ.

mod content;
mod document;
mod escpos;
mod html;
mod layout;
mod slip;
mod void_slip;
mod words;

pub use escpos::CodePages;
pub use layout::Paper;
pub use words::Language;

use crate::{
    Return, ReturnLeg, SaleState, Settings, TillError, operations, printing, printing::PrintOf, refunds, restore,
    returns, sale, settings, voids,
};
use document::Piece;
use jiff::tz::TimeZone;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use std::collections::HashMap;
use uuid::Uuid;

pub(crate) use content::Content;
#[cfg(test)]
pub(crate) use content::{ContentLine, ContentTender, HowPaid};
pub(crate) use slip::Slip;
#[cfg(test)]
pub(crate) use slip::{SlipCard, SlipLeg, SlipLine};
pub(crate) use void_slip::VoidSlip;

/// The receipt of one sale, or the slip of what came back of one, or of one that was voided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The sale.
    pub sale_id: Uuid,
    /// The return, of a slip.
    pub return_id: Option<Uuid>,
    /// Its number; of a sale, once that is completed. What was voided has none.
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

/// What is written: the receipt of a sale, the slip of a return, or that of a sale which was voided.
#[derive(Debug, Clone)]
pub(crate) enum Sheet {
    Sale(Content),
    Return(Slip),
    Void(VoidSlip),
}

impl Sheet {
    fn pieces(&self, language: Language) -> Vec<Piece> {
        match self {
            Self::Sale(content) => document::pieces(content, language),
            Self::Return(slip) => slip.pieces(language),
            Self::Void(slip) => slip.pieces(language),
        }
    }

    fn title(&self, language: Language) -> String {
        match self {
            Self::Sale(content) => document::title(content, language),
            Self::Return(slip) => slip.title(language),
            Self::Void(slip) => slip.title(language),
        }
    }

    fn opens_drawer(&self) -> bool {
        match self {
            Self::Sale(content) => content.opens_drawer(),
            Self::Return(slip) => slip.opens_drawer(),
            Self::Void(slip) => slip.opens_drawer(),
        }
    }

    /// Its number, once it has one.
    pub(crate) fn receipt_number(&self) -> Option<i64> {
        match self {
            Self::Sale(content) => content.receipt_number,
            Self::Return(slip) => Some(slip.receipt_number),
            Self::Void(_) => None,
        }
    }

    pub(crate) fn set_copy(&mut self, number: Option<u32>) {
        match self {
            Self::Sale(Content { copy, .. }) | Self::Return(Slip { copy, .. }) | Self::Void(VoidSlip { copy, .. }) => {
                *copy = number;
            }
        }
    }

    /// What a file that holds it is called.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Sale(Content { till, receipt_number: Some(number), .. }) => format!("{till}-receipt-{number}"),
            Self::Sale(Content { till, sale_number, .. }) => format!("{till}-sale-{}", sale_number.unwrap_or_default()),
            Self::Return(Slip { till, receipt_number, .. }) => format!("{till}-refund-{receipt_number}"),
            Self::Void(VoidSlip { till, sale_number, .. }) => {
                format!("{till}-void-{}", sale_number.unwrap_or_default())
            }
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
        PrintOf::Void(sale_id) => Ok(Sheet::Void(void_slip(conn, sale_id)?)),
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
    let settings = shop_then(conn, made.id)?;
    let till_name = restore::name_of_receipt(conn, made.receipt_number)?;
    let zone = settings::zone(settings.time_zone.as_deref());
    let mut paid = HashMap::new();
    for tender_id in made.legs.iter().filter_map(|leg| leg.tender_id) {
        paid.insert(tender_id, operations::by_intent(conn, tender_id)?);
    }
    let paid = |leg: &ReturnLeg| paid.get(&leg.tender_id?).cloned().flatten();
    Ok(Slip::of(made, &Settings { till_name, ..settings }, zone, paid))
}

fn void_slip(conn: &Connection, sale_id: Uuid) -> Result<VoidSlip, TillError> {
    let void = voids::of_sale(conn, sale_id)?.ok_or(TillError::NotFound("void"))?;
    let sale = sale::read(conn, sale_id)?;
    let mut legs = Vec::new();
    for tender in &sale.tenders {
        legs.extend(refunds::beside_legs(conn, tender.id)?);
    }
    legs.extend(void.legs.iter().cloned());
    let paid = |leg: &ReturnLeg| sale.tenders.iter().find(|tender| Some(tender.id) == leg.tender_id)?.operation.clone();
    let legs: Vec<_> = legs.into_iter().map(|leg| (leg.clone(), paid(&leg))).collect();
    let (settings, zone) = shop_of(conn, void.id, sale.number, None)?;
    Ok(VoidSlip::of(&sale, &void, &legs, &settings, zone))
}

/// Keeps what stands at the head of a receipt or slip: from now on it says the same, whatever the shop's settings become.
pub(crate) fn keep_head(tx: &Connection, id: Uuid) -> Result<(), TillError> {
    let Settings { shop_name, time_zone, .. } = settings::read(tx)?;
    let time_zone = time_zone.or_else(|| TimeZone::system().iana_name().map(str::to_owned));
    tx.prepare_cached("INSERT INTO receipt_heads (id, shop_name, time_zone) VALUES (?1, ?2, ?3)")?.execute(params![
        id.to_string(),
        shop_name,
        time_zone
    ])?;
    Ok(())
}

/// The settings with the shop's name and zone as they were kept for a sale, a return or a void; as they are now where none were.
fn shop_then(conn: &Connection, id: Uuid) -> Result<Settings, TillError> {
    let now = settings::read(conn)?;
    let kept: Option<(String, Option<String>)> = conn
        .prepare_cached("SELECT shop_name, time_zone FROM receipt_heads WHERE id = ?1")?
        .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match kept {
        Some((shop_name, time_zone)) => Settings { shop_name, time_zone, ..now },
        None => now,
    })
}

/// The shop as it stands on paper of a sale or a void: under the name of the series in which its number was given, that of the receipt
/// once it is one.
fn shop_of(
    conn: &Connection,
    id: Uuid,
    sale_number: Option<i64>,
    receipt_number: Option<i64>,
) -> Result<(Settings, TimeZone), TillError> {
    let settings = shop_then(conn, id)?;
    let till_name = match receipt_number {
        Some(number) => restore::name_of_receipt(conn, number)?,
        None => restore::name_of_sale(conn, sale_number)?,
    };
    let zone = settings::zone(settings.time_zone.as_deref());
    Ok((Settings { till_name, ..settings }, zone))
}

/// What stands on the receipt of a sale.
pub(crate) fn content(conn: &Connection, sale_id: Uuid) -> Result<Content, TillError> {
    let sale = sale::read(conn, sale_id)?;
    let refused = |why: &str| Err(TillError::SaleChanged(why.to_owned()));
    match sale.state {
        SaleState::Paying | SaleState::Completed => {}
        SaleState::Voided => return refused("this sale was voided: it has a slip of what went back, and no receipt"),
        SaleState::Open | SaleState::Dropped => return refused("this sale has no receipt: it is not paid"),
    }
    let (settings, zone) = shop_of(conn, sale.id, sale.number, sale.receipt_number)?;
    Ok(Content::of(&sale, &settings, zone))
}
