//! Returns as they are shown.

use crate::{
    Operation, SaleTax, TenderKind, TenderState, TillError, Unit, columns, late, lines, operations, refunds,
    refunds::LegOf, sales, sales::SaleRow, tenders,
};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use uuid::Uuid;

/// Goods that came back. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Return {
    /// Its id.
    pub id: Uuid,
    /// The number of its own receipt, of the same series as the sales'.
    pub receipt_number: i64,
    /// The sale in which they were sold.
    pub sale_id: Uuid,
    /// That sale's number.
    pub sale_number: Option<i64>,
    /// The number of that sale's receipt.
    pub sale_receipt_number: Option<i64>,
    /// What came back.
    pub lines: Vec<ReturnLine>,
    /// The tax table, lowest rate first.
    pub taxes: Vec<SaleTax>,
    /// The goods without tax.
    pub net: i64,
    /// All tax.
    pub tax: i64,
    /// The tip.
    pub tip: i64,
    /// What its goods and its tip come to: its first legs, before cash is rounded, what is waived, and what went back before.
    pub total: i64,
    /// What of it goes back to nobody, as it was never paid: a late decline is lower by it, or it was written off before.
    pub waived: i64,
    /// What of it went back before, as money alone.
    pub refunded_before: i64,
    /// What cash rounding added to it, or with a minus took away.
    pub rounding: i64,
    /// The currency of every amount here.
    pub currency: Currency,
    /// How the money goes back: to cards in the order in which they paid, then in cash, then what was tried again or paid out.
    pub legs: Vec<ReturnLeg>,
    /// How far it is.
    pub state: ReturnState,
    /// Why they came back.
    pub reason: Option<String>,
    /// When.
    pub created_at: Timestamp,
}

/// What came back of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnLine {
    /// The line.
    pub line_id: i64,
    /// The article's SKU.
    pub sku: String,
    /// The article's name at that time.
    pub name: String,
    /// How it is sold.
    pub unit: Unit,
    /// How much, as the shortest decimal.
    pub quantity: String,
    /// What it gave back, with or without tax as the sale's prices are.
    pub amount: i64,
    /// Percent, as the shortest decimal.
    pub tax_rate: String,
}

/// One way in which money of a return goes back.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnLeg {
    /// Its id: of a card, the intent of its operation.
    pub id: Uuid,
    /// To a card or in cash.
    pub kind: TenderKind,
    /// How much. In cash, what was handed over.
    pub amount: i64,
    /// What of it is there because of the coins that there are.
    pub rounding: i64,
    /// How far it is.
    pub state: LegState,
    /// The leg in whose place it is.
    pub replaces: Option<Uuid>,
    /// The tender whose card gets it.
    pub tender_id: Option<Uuid>,
    /// A card's operation.
    pub operation: Option<Operation>,
}

/// How far a leg is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LegState {
    /// A card: the bank has not said its final word, or its payment is open.
    Settling,
    /// A card: it has its money.
    Approved,
    /// A card: refused or cancelled, so that the customer has nothing yet. It is tried again or paid out.
    Owed,
    /// A card: refused or cancelled, and another leg took its place.
    Replaced,
    /// A card: its payment turned out not to have paid, so there is nothing to give back.
    Void,
    /// A card: a person must look.
    NeedsAttention,
    /// Cash: handed over.
    HandedOver,
}

/// How far a return is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnState {
    /// The customer has all of it.
    Done,
    /// A card waits for the bank.
    Settling,
    /// A card did not get it: it is tried again or paid out.
    Owed,
    /// A person must look.
    NeedsAttention,
}

const COLUMNS: &str = "id, sale_id, receipt_number, net, tax, tip, total, reason, created_at";

struct ReturnRow {
    id: Uuid,
    sale_id: Uuid,
    receipt_number: i64,
    net: i64,
    tax: i64,
    tip: i64,
    total: i64,
    reason: Option<String>,
    created_at: Timestamp,
}

fn return_row(row: &Row<'_>) -> rusqlite::Result<ReturnRow> {
    Ok(ReturnRow {
        id: columns::uuid(row, 0)?,
        sale_id: columns::uuid(row, 1)?,
        receipt_number: row.get(2)?,
        net: row.get(3)?,
        tax: row.get(4)?,
        tip: row.get(5)?,
        total: row.get(6)?,
        reason: row.get(7)?,
        created_at: columns::timestamp(row, 8)?,
    })
}

/// One return.
pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<Return>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM returns WHERE id = ?1"))?
        .query_row([id.to_string()], return_row)
        .optional()?;
    found.map(|row| show(conn, row)).transpose()
}

/// The returns of a sale, oldest first.
pub(crate) fn of_sale(conn: &Connection, sale_id: Uuid) -> Result<Vec<Return>, TillError> {
    let mut statement =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM returns WHERE sale_id = ?1 ORDER BY receipt_number"))?;
    let rows: Vec<ReturnRow> = statement.query_map([sale_id.to_string()], return_row)?.collect::<Result<_, _>>()?;
    rows.into_iter().map(|row| show(conn, row)).collect()
}

/// The returns of which a card did not get its part, and nobody has done anything about it, oldest first.
pub(crate) fn owed(conn: &Connection) -> Result<Vec<Return>, TillError> {
    refunds::owed(conn, "return_id")?.into_iter().filter_map(|id| by_id(conn, id).transpose()).collect()
}

fn show(conn: &Connection, row: ReturnRow) -> Result<Return, TillError> {
    let sale = sales::by_id(conn, row.sale_id)?;
    let legs = legs(conn, LegOf::Return(row.id))?;
    let first_cash = legs.iter().filter(|leg| leg.kind == TenderKind::Cash && leg.replaces.is_none());
    Ok(Return {
        id: row.id,
        receipt_number: row.receipt_number,
        sale_id: sale.id,
        sale_number: sale.number,
        sale_receipt_number: sale.receipt_number,
        lines: lines(conn, &sale, row.id)?,
        taxes: taxes(conn, row.id)?,
        net: row.net,
        tax: row.tax,
        tip: row.tip,
        total: row.total,
        waived: late::waived_of(conn, row.id)?,
        refunded_before: refunds::before_return(conn, row.id)?,
        rounding: first_cash.map(|leg| leg.rounding).sum(),
        currency: sale.currency,
        state: state(&legs),
        legs,
        reason: row.reason,
        created_at: row.created_at,
    })
}

/// How far all of it is.
pub(crate) fn state(legs: &[ReturnLeg]) -> ReturnState {
    let has = |state: LegState| legs.iter().any(|leg| leg.state == state);
    if has(LegState::NeedsAttention) {
        ReturnState::NeedsAttention
    } else if has(LegState::Owed) {
        ReturnState::Owed
    } else if has(LegState::Settling) {
        ReturnState::Settling
    } else {
        ReturnState::Done
    }
}

/// In the order of the sale's lines.
fn lines(conn: &Connection, sale: &SaleRow, return_id: Uuid) -> Result<Vec<ReturnLine>, TillError> {
    let sold = lines::of_sale(conn, sale.id)?;
    let mut statement = conn
        .prepare_cached("SELECT line_id, quantity, amount FROM return_lines WHERE return_id = ?1 ORDER BY line_id")?;
    let rows = statement.query_map([return_id.to_string()], |row| {
        Ok((row.get::<_, i64>(0)?, columns::quantity(row, 1)?, row.get::<_, i64>(2)?))
    })?;
    rows.map(|row| {
        let (line_id, quantity, amount) = row?;
        let line = sold.iter().find(|line| line.id == line_id);
        let line = line.ok_or_else(|| TillError::Internal("a return is of another sale's line".to_owned()))?;
        Ok(ReturnLine {
            line_id,
            sku: line.sku.clone(),
            name: line.name.clone(),
            unit: line.unit,
            quantity: quantity.to_string(),
            amount,
            tax_rate: line.tax_rate.to_string(),
        })
    })
    .collect()
}

fn taxes(conn: &Connection, return_id: Uuid) -> Result<Vec<SaleTax>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT rate, net, tax FROM return_taxes WHERE return_id = ?1 ORDER BY rate")?;
    let rows = statement.query_map([return_id.to_string()], |row| {
        Ok(SaleTax { rate: columns::rate(row, 0)?.to_string(), net: row.get(1)?, tax: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn cash_row(row: &Row<'_>) -> rusqlite::Result<ReturnLeg> {
    Ok(ReturnLeg {
        id: columns::uuid(row, 0)?,
        kind: TenderKind::Cash,
        amount: row.get(2)?,
        rounding: row.get(3)?,
        state: LegState::HandedOver,
        replaces: columns::optional_uuid(row, 1)?,
        tender_id: None,
        operation: None,
    })
}

/// One leg in cash.
pub(super) fn cash_leg(conn: &Connection, id: Uuid) -> Result<Option<ReturnLeg>, TillError> {
    let found = conn
        .prepare_cached("SELECT id, instead_of, amount, rounding FROM cash_refunds WHERE id = ?1")?
        .query_row([id.to_string()], cash_row)
        .optional()?;
    Ok(found)
}

/// The legs of a return or a void.
pub(crate) fn legs(conn: &Connection, leg_of: LegOf) -> Result<Vec<ReturnLeg>, TillError> {
    let (column, id) = match leg_of {
        LegOf::Return(id) => ("return_id", id),
        LegOf::Void(id) => ("void_id", id),
    };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT id, instead_of, amount, rounding FROM cash_refunds WHERE {column} = ?1 ORDER BY created_at, id"
    ))?;
    let cash: Vec<ReturnLeg> = statement.query_map([id.to_string()], cash_row)?.collect::<Result<_, _>>()?;
    let mut legs = Vec::new();
    for refund in refunds::legs_of(conn, leg_of)? {
        let state = match refund.state {
            TenderState::Settling => LegState::Settling,
            TenderState::Approved | TenderState::Taken => LegState::Approved,
            TenderState::NeedsAttention => LegState::NeedsAttention,
            TenderState::Declined | TenderState::Cancelled if refunds::is_resolved(conn, refund.id)? => {
                LegState::Replaced
            }
            TenderState::Declined | TenderState::Cancelled => {
                let paid = tenders::by_id(conn, refund.tender_id)?;
                let is_void = paid.is_none_or(|tender| !tender.state.counts());
                if is_void { LegState::Void } else { LegState::Owed }
            }
        };
        legs.push(ReturnLeg {
            id: refund.id,
            kind: TenderKind::Card,
            amount: refund.amount,
            rounding: 0,
            state,
            replaces: refund.replaces,
            tender_id: Some(refund.tender_id),
            operation: operations::by_intent(conn, refund.id)?,
        });
    }
    legs.extend(cash);
    // Those of the return itself stand before those that took a place.
    legs.sort_by_key(|leg| leg.replaces.is_some());
    Ok(legs)
}
