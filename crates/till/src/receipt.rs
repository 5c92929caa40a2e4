//! The receipt as text, out of the frozen rows: printing it again shows the same figures.

use crate::{
    Sale, SaleLine, SaleState, Settings, Tender, TenderKind, TenderState, TillError, Unit, amounts::format_amount,
    sale, settings,
};
use jiff::tz::TimeZone;
use rusqlite::Connection;
use serde::Serialize;
use uuid::Uuid;

/// Characters of a line: what an 80 mm printer has.
pub(crate) const WIDTH: usize = 42;
/// What stands on a receipt whose goods were handed over before the bank had answered.
const OFFLINE: &str = "Accepted, not yet approved by the bank";

/// The receipt of one sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The sale.
    pub sale_id: Uuid,
    /// Its number, once the sale is completed.
    pub receipt_number: Option<i64>,
    /// Its lines, of 42 characters at most.
    pub lines: Vec<String>,
    /// All of it.
    pub text: String,
}

/// The receipt of a sale that is paid, or under payment and then says so.
pub(crate) fn receipt(conn: &Connection, sale_id: Uuid) -> Result<Receipt, TillError> {
    let sale = sale::read(conn, sale_id)?;
    if matches!(sale.state, SaleState::Open | SaleState::Dropped) {
        return Err(TillError::SaleChanged("this sale has no receipt: it is not paid".to_owned()));
    }
    let lines = write(&sale, &settings::read(conn)?);
    Ok(Receipt { sale_id, receipt_number: sale.receipt_number, text: lines.join("\n") + "\n", lines })
}

fn write(sale: &Sale, settings: &Settings) -> Vec<String> {
    let mut lines = vec![centred(&settings.shop_name), String::new()];
    let amount = |minor_units| format_amount(minor_units, sale.currency);
    let at = sale.completed_at.unwrap_or(sale.created_at).to_zoned_datetime(TimeZone::system());
    let title = sale.receipt_number.map_or_else(|| "NOT PAID YET".to_owned(), |number| format!("Receipt {number}"));
    lines.push(apart(&title, &at.strftime("%Y-%m-%d %H:%M").to_string()));
    lines.push(apart(&settings.till_name, &sale.number.map_or_else(String::new, |number| format!("Sale {number}"))));
    lines.push(rule());
    for line in &sale.lines {
        write_line(line, sale, &mut lines);
    }
    lines.push(rule());
    if sale.tip != 0 {
        lines.push(apart("Tip", &amount(sale.tip)));
    }
    lines.push(apart(&format!("TOTAL {}", sale.currency), &amount(sale.total)));
    if sale.rounding != 0 {
        lines.push(apart("Cash rounding", &amount(sale.rounding)));
    }
    for tender in &sale.tenders {
        write_tender(tender, sale, &mut lines);
    }
    if sale.due != 0 {
        lines.push(apart("STILL DUE", &amount(sale.due)));
    }
    lines.push(rule());
    lines.push(columns(["Tax", "Net", "Tax", "Gross"]));
    for tax in &sale.taxes {
        lines.push(columns([
            &format!("{} %", tax.rate),
            &amount(tax.net),
            &amount(tax.tax),
            &amount(tax.net + tax.tax),
        ]));
    }
    lines
}

fn write_line(line: &SaleLine, sale: &Sale, lines: &mut Vec<String>) {
    let amount = |minor_units| format_amount(minor_units, sale.currency);
    lines.push(cut(&line.name, WIDTH));
    let unit = match line.unit {
        Unit::Piece => "",
        Unit::Weight => " kg",
    };
    lines.push(apart(&format!("  {}{unit} × {}", line.quantity, amount(line.unit_price)), &amount(line.gross)));
    if line.discount != 0 {
        lines.push(apart("  Discount", &amount(-line.discount)));
    }
}

fn write_tender(tender: &Tender, sale: &Sale, lines: &mut Vec<String>) {
    let amount = |minor_units| format_amount(minor_units, sale.currency);
    match tender.kind {
        TenderKind::Cash => {
            lines.push(apart("Cash", &amount(tender.tendered.unwrap_or(tender.amount))));
            if let Some(change) = tender.change.filter(|&change| change != 0) {
                lines.push(apart("  Change", &amount(-change)));
            }
        }
        TenderKind::Card => {
            let operation = tender.operation.as_ref();
            let card =
                operation.and_then(|operation| Some((operation.card_brand.as_deref()?, operation.last4.as_deref()?)));
            let name = card.map_or_else(|| "Card".to_owned(), |(brand, last4)| format!("Card {brand} ··{last4}"));
            lines.push(apart(&name, &amount(tender.amount)));
            let approval = operation.and_then(|operation| operation.approval_code.as_deref());
            let offline = tender.taken_offline_at.is_some() && !tender.state.paid() && tender.state.counts();
            let state = if offline { OFFLINE.to_owned() } else { state(tender.state, approval) };
            lines.push(format!("  {state}"));
            if let Some(operation) = operation {
                lines.push(apart(
                    &format!("  Payment {}", operation.short_code),
                    operation.reference.as_deref().unwrap_or_default(),
                ));
                lines.extend(operation.bank_reference.iter().map(|id| format!("  Bank {id}")));
            }
        }
    }
}

fn state(state: TenderState, approval: Option<&str>) -> String {
    match state {
        TenderState::Approved => approval.map_or_else(|| "Approved".to_owned(), |code| format!("Approved {code}")),
        TenderState::Declined => "Declined. Not charged.".to_owned(),
        TenderState::Cancelled => "Cancelled. Not charged.".to_owned(),
        TenderState::Settling => "Waiting for the bank".to_owned(),
        TenderState::NeedsAttention => "Waiting for a look at it".to_owned(),
        TenderState::Taken => "Taken".to_owned(),
    }
}

pub(crate) fn rule() -> String {
    "-".repeat(WIDTH)
}

pub(crate) fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

pub(crate) fn centred(text: &str) -> String {
    format!("{:^WIDTH$}", cut(text, WIDTH)).trim_end().to_owned()
}

/// A text at the left and one at the right edge, the left one cut where there is no room for both.
pub(crate) fn apart(left: &str, right: &str) -> String {
    let right = cut(right, WIDTH);
    let room = WIDTH - right.chars().count();
    let left = cut(left, room.saturating_sub(1));
    format!("{left:<room$}{right}").trim_end().to_owned()
}

pub(crate) fn columns([rate, net, tax, gross]: [&str; 4]) -> String {
    format!("{rate:<9}{net:>11}{tax:>11}{gross:>11}")
}
