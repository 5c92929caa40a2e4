//! A sale as it is shown: its lines, its figures, its tenders. Figures come from the engine while it is open and out of the
//! rows from Pay on.

use crate::{
    Asked, Operation, Origin, ReturnLeg, SaleState, TenderKind, TenderState, TillError, Unit, late, late::Since, lines,
    lines::LineRow, operations, refunds, sales, sales::SaleRow, tenders, tenders::TenderRow, undo,
};
use checkout::{Balance, Cart, Line, PriceError, Priced, PricedLine, TaxGroup, Tender as Paid};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a customer buys at once. All amounts in minor units of its currency.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sale {
    /// Its id.
    pub id: Uuid,
    /// Its number at this till, from the first Pay on: what the bank gets as the reference.
    pub number: Option<i64>,
    /// How far it is.
    pub state: SaleState,
    /// Whether it is out of the way: put aside, or completed and followed by another.
    pub held: bool,
    /// The name under which it was parked.
    pub name: Option<String>,
    /// The articles, in the order in which they were rung up.
    pub lines: Vec<SaleLine>,
    /// The tax table, lowest rate first.
    pub taxes: Vec<SaleTax>,
    /// The goods without tax.
    pub net: i64,
    /// All tax.
    pub tax: i64,
    /// The tip.
    pub tip: i64,
    /// The tip as it was asked for.
    pub tip_asked: Option<Asked>,
    /// The discount on the sale, beside those of its lines.
    pub discount: i64,
    /// The same as it was asked for.
    pub discount_asked: Option<Asked>,
    /// What is to pay.
    pub total: i64,
    /// What is paid: approved by the bank or taken in cash.
    pub paid: i64,
    /// What no tender covers yet; nothing once it is voided. A card payment that is not settled covers its amount: it may turn out to
    /// have paid.
    pub due: i64,
    /// What is not to be paid any more, of a payment that was taken offline and then declined: it was written off, or its goods came
    /// back.
    pub waived: i64,
    /// What cash rounding added, or with a minus took away, also where a late decline was collected in cash.
    pub rounding: i64,
    /// The currency of every amount here.
    pub currency: Currency,
    /// The ways of paying, in the order in which they were begun, those that did not pay included.
    pub tenders: Vec<Tender>,
    /// Money alone that went back to its cards or is on its way, in the order of the tenders.
    pub money_back: Vec<ReturnLeg>,
    /// The number of its receipt, once it is completed.
    pub receipt_number: Option<i64>,
    /// What the next undo takes back: the word of that change, such as `line-removed`.
    pub undo: Option<String>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
}

/// One article of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleLine {
    /// Its id, never used for another line.
    pub id: i64,
    /// Its place in the sale, from 1.
    pub position: u32,
    /// The article's SKU.
    pub sku: String,
    /// The article's name at that time.
    pub name: String,
    /// How the article is sold.
    pub unit: Unit,
    /// For one piece or one kilogram.
    pub unit_price: i64,
    /// The shortest decimal: `2`, `0.755`.
    pub quantity: String,
    /// Quantity × unit price.
    pub gross: i64,
    /// What was taken off: the line's own discount and its share of the sale's.
    pub discount: i64,
    /// Its share of the sale's discount alone.
    pub sale_discount: i64,
    /// The line's own discount as it was asked for.
    pub discount_asked: Option<Asked>,
    /// What is left.
    pub total: i64,
    /// Percent, as the shortest decimal.
    pub tax_rate: String,
    /// How its price came.
    pub origin: Origin,
    /// The price before a cashier set another.
    pub list_price: Option<i64>,
    /// What the cashier noted.
    pub note: Option<String>,
}

/// One rate of the tax table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleTax {
    /// Percent, as the shortest decimal.
    pub rate: String,
    /// The goods of this rate without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
}

/// A way of paying a part of a sale.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tender {
    /// Its id, made when its dialog opened: the intent of its operation.
    pub id: Uuid,
    /// How it pays.
    pub kind: TenderKind,
    /// How much of the sale it pays.
    pub amount: i64,
    /// Cash: what was handed over.
    pub tendered: Option<i64>,
    /// Cash: what was given back.
    pub change: Option<i64>,
    /// How far it is.
    pub state: TenderState,
    /// The declined or cancelled tender in whose place it was made.
    pub replaces: Option<Uuid>,
    /// A card: when its goods were handed over before the bank had answered.
    pub taken_offline_at: Option<Timestamp>,
    /// A card's operation.
    pub operation: Option<Operation>,
}

/// What the engine, or the frozen rows, say of a sale.
pub(crate) struct Figures {
    pub(crate) lines: Vec<PricedLine>,
    pub(crate) taxes: Vec<TaxGroup>,
    pub(crate) net: i64,
    pub(crate) tax: i64,
    pub(crate) tip: i64,
    pub(crate) discount: i64,
    pub(crate) total: i64,
}

/// The currency of a sale as the engine takes it.
pub(crate) fn engine_currency(currency: Currency) -> Result<checkout::Currency, PriceError> {
    checkout::Currency::try_from(currency.iso()).map_err(|error| PriceError {
        code: checkout::Code::InvalidValue,
        message: error.to_string(),
        path: "currency".into(),
    })
}

/// Prices an open sale.
pub(crate) fn price(sale: &SaleRow, lines: &[LineRow]) -> Result<Priced, PriceError> {
    let currency = engine_currency(sale.currency)?;
    checkout::price(&Cart {
        prices_include_tax: sale.prices_include_tax,
        cash: sale.cash,
        lines: lines
            .iter()
            .map(|line| Line {
                unit_price: line.unit_price,
                quantity: line.quantity,
                tax_rate: line.tax_rate,
                discount: line.discount.map(Asked::discount),
            })
            .collect(),
        discount: sale.terms.discount.map(Asked::discount),
        tip: sale.terms.tip.map(Asked::tip),
        ..Cart::new(currency)
    })
}

pub(crate) fn figures(conn: &Connection, sale: &SaleRow, lines: &[LineRow]) -> Result<Figures, TillError> {
    let Some(frozen) = sale.frozen else {
        let Priced { lines, discount, taxes, net, tax, tip, total, balance: _ } = price(sale, lines).map_err(broken)?;
        return Ok(Figures { lines, taxes, net, tax, tip, discount, total });
    };
    let lines = lines.iter().map(|line| line.frozen).collect::<Option<_>>();
    Ok(Figures {
        lines: lines.ok_or_else(|| TillError::Internal("a line of a frozen sale is not frozen".to_owned()))?,
        taxes: lines::taxes(conn, sale.id)?,
        net: frozen.net,
        tax: frozen.tax,
        tip: frozen.tip,
        discount: frozen.discount,
        total: frozen.total,
    })
}

/// A sale that was accepted line by line and cannot be priced: a fault of the program.
pub(crate) fn broken(error: PriceError) -> TillError {
    TillError::Internal(format!("the sale cannot be priced: {error}"))
}

/// The tenders that pay or may have paid, as the engine takes them. Cash stands with what of it stayed in the drawer: its
/// change was given.
pub(crate) fn counted(tenders: &[TenderRow]) -> Vec<Paid> {
    tenders
        .iter()
        .filter(|tender| tender.state.counts())
        .map(|tender| match tender.kind {
            TenderKind::Card => Paid::Card { amount: tender.amount },
            TenderKind::Cash => Paid::Cash { tendered: tender.amount },
        })
        .collect()
}

/// What the tenders of a sale leave of its total.
pub(crate) fn balance(sale: &SaleRow, total: i64, tenders: &[TenderRow]) -> Result<Balance, TillError> {
    checkout::balance(total, &counted(tenders), sale.cash).map_err(broken)
}

/// Reads a sale as it is shown.
pub(crate) fn read(conn: &Connection, id: Uuid) -> Result<Sale, TillError> {
    show(conn, &sales::by_id(conn, id)?)
}

pub(crate) fn show(conn: &Connection, sale: &SaleRow) -> Result<Sale, TillError> {
    let line_rows = lines::of_sale(conn, sale.id)?;
    let tender_rows = tenders::of_sale(conn, sale.id)?;
    let figures = figures(conn, sale, &line_rows)?;
    let since = late::since(conn, &tender_rows)?;
    let (due, rounding) = match sale.state {
        SaleState::Voided => (0, 0),
        _ => rest(sale, figures.total, &tender_rows, since)?,
    };
    let mut money_back = Vec::new();
    for tender in tender_rows.iter().filter(|tender| tender.kind == TenderKind::Card) {
        money_back.extend(refunds::beside_legs(conn, tender.id)?);
    }
    let paid = tender_rows.iter().filter(|tender| tender.state.paid()).map(|tender| tender.amount).sum();
    Ok(Sale {
        id: sale.id,
        number: sale.number,
        state: sale.state,
        held: sale.held,
        name: sale.name.clone(),
        lines: line_rows
            .iter()
            .zip(figures.lines)
            .zip(1..)
            .map(|((row, priced), at)| show_line(row, priced, at))
            .collect(),
        taxes: figures
            .taxes
            .iter()
            .map(|group| SaleTax { rate: group.rate.to_string(), net: group.net, tax: group.tax })
            .collect(),
        net: figures.net,
        tax: figures.tax,
        tip: figures.tip,
        tip_asked: sale.terms.tip,
        discount: figures.discount,
        discount_asked: sale.terms.discount,
        total: figures.total,
        paid,
        due,
        waived: since.waived,
        rounding,
        currency: sale.currency,
        tenders: tender_rows.iter().map(|row| show_tender(conn, row)).collect::<Result<_, _>>()?,
        money_back,
        receipt_number: sale.receipt_number,
        undo: undo::next(conn, sale)?,
        created_at: sale.created_at,
        completed_at: sale.completed_at,
    })
}

/// What is still due, and what rounding did. A completed sale keeps its rounding: what is due then was declined after it.
fn rest(sale: &SaleRow, total: i64, tenders: &[TenderRow], since: Since) -> Result<(i64, i64), TillError> {
    let Some(rounding) = sale.rounding else {
        let balance = balance(sale, total, tenders)?;
        return Ok((balance.rest, balance.rounding));
    };
    let covered: i64 = tenders.iter().filter(|tender| tender.state.counts()).map(|tender| tender.amount).sum();
    let rounding = rounding + since.rounding;
    Ok((total + rounding - covered - since.waived, rounding))
}

fn show_line(row: &LineRow, priced: PricedLine, position: u32) -> SaleLine {
    SaleLine {
        id: row.id,
        position,
        sku: row.sku.clone(),
        name: row.name.clone(),
        unit: row.unit,
        unit_price: row.unit_price,
        quantity: row.quantity.to_string(),
        gross: priced.gross,
        discount: priced.gross - priced.total,
        sale_discount: priced.sale_discount,
        discount_asked: row.discount,
        total: priced.total,
        tax_rate: row.tax_rate.to_string(),
        origin: row.origin,
        list_price: row.list_price,
        note: row.note.clone(),
    }
}

fn show_tender(conn: &Connection, row: &TenderRow) -> Result<Tender, TillError> {
    Ok(Tender {
        id: row.id,
        kind: row.kind,
        amount: row.amount,
        tendered: row.tendered,
        change: row.change,
        state: row.state,
        replaces: row.replaces,
        taken_offline_at: row.taken_offline_at,
        operation: match row.kind {
            TenderKind::Card => operations::by_intent(conn, row.id)?,
            TenderKind::Cash => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_currency_of_the_wire_is_one_of_the_engine() {
        for currency in Currency::supported() {
            let engine = engine_currency(currency).unwrap();
            assert_eq!((engine.code(), engine.minor_digits()), (currency.code(), currency.minor_digits()));
        }
    }
}
