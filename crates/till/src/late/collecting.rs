//! Collecting again what was declined late: all of it at once, by another card payment of the same sale or in cash.

use super::{
    LateState, note,
    rows::{LateRow, of_late},
};
use crate::{
    CashTaken, Operation, TenderBegun, TenderKind, TenderState, TillError, amounts::format_amount, audit,
    audit::Signature, offline, pay, pay::NewCard, sale, sales, settings, shifts, tenders, tenders::TenderRow,
};
use checkout::CashDue;
use protocol::Amount;
use rusqlite::{Connection, params};
use serde_json::json;
use std::fmt;
use uuid::Uuid;

/// A payment that collects again what was declined late.
#[derive(Clone)]
pub struct CollectAgain {
    /// The id given when its dialog opened.
    pub tender_id: Uuid,
    /// The tender that was taken offline.
    pub late_tender_id: Uuid,
    /// What the card reader gave.
    pub card: String,
}

impl fmt::Debug for CollectAgain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectAgain")
            .field("tender_id", &self.tender_id)
            .field("late_tender_id", &self.late_tender_id)
            .finish_non_exhaustive()
    }
}

/// Cash that collects again what was declined late: the customer came back with it.
#[derive(Debug, Clone)]
pub struct CollectInCash {
    /// The id given when its dialog opened.
    pub tender_id: Uuid,
    /// The tender that was taken offline.
    pub late_tender_id: Uuid,
    /// What the customer handed over, in minor units: all that is owed, or more.
    pub tendered: i64,
}

/// Collects again what was declined, all of it, by a payment in the place of the last one. The same tender id gives the same operation
/// back; while one is with the bank, there is no other.
pub(crate) fn collect_again(
    tx: &Connection,
    signature: &Signature,
    collect: &CollectAgain,
) -> Result<Operation, TillError> {
    let card = pay::card_token(&collect.card)?;
    let row = of_late(tx, collect.late_tender_id)?;
    let first = offline::card_tender(tx, row.tender_id)?;
    let sale = sales::by_id(tx, first.sale_id)?;
    if let Some(tender) = tenders::by_id(tx, collect.tender_id)? {
        let is_same = tender.collects == Some(row.tender_id);
        let amount = Amount::new(tender.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
        return if is_same { pay::again(tx, signature, &sale, &tender, amount, card) } else { Err(pay::reused()) };
    }
    row.check_to_collect()?;
    let amount = Amount::new(row.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    let reference = pay::reference(&settings::read(tx)?, &sale)?;
    let (tender_id, replaces, collects) = (collect.tender_id, Some(row.last_tender_id), Some(row.tender_id));
    let new = NewCard { tender_id, amount, card, reference, replaces, collects };
    let operation = pay::begin_card(tx, signature, &sale, new)?;
    collecting(tx, signature, &row, &first, tender_id)?;
    Ok(operation)
}

fn collecting(
    tx: &Connection,
    signature: &Signature,
    row: &LateRow,
    first: &TenderRow,
    by: Uuid,
) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE late_declines SET state = 'collecting', last_tender_id = ?2 WHERE seq = ?1")?
        .execute(params![row.seq, by.to_string()])?;
    let details = json!({"amount": row.amount, "by": by});
    note(tx, signature, first, Some(row.state), LateState::Collecting, details)
}

/// A payment that collects it was made by another file, and its tender stands here now.
pub(crate) fn collected_elsewhere(
    tx: &Connection,
    signature: &Signature,
    row: &LateRow,
    by: Uuid,
) -> Result<(), TillError> {
    collecting(tx, signature, row, &offline::card_tender(tx, row.tender_id)?, by)
}

impl LateRow {
    fn check_to_collect(&self) -> Result<(), TillError> {
        match self.state {
            LateState::Open => Ok(()),
            LateState::Collecting => {
                Err(TillError::SaleFrozen("this is being collected already: wait for the bank's answer".to_owned()))
            }
            LateState::Attention | LateState::WritingOff => Err(TillError::CardMayBeCharged(
                "the card may be charged: nothing is collected before the bank has said that it was not".to_owned(),
            )),
            LateState::Settled => Err(TillError::AlreadyFinal("nothing is owed any more".to_owned())),
            LateState::WrittenOff => Err(TillError::AlreadyFinal("this was written off".to_owned())),
        }
    }
}

/// What is owed, and an id for the tender that is to collect it.
pub(crate) fn begin_collecting(conn: &Connection, late_tender_id: Uuid) -> Result<TenderBegun, TillError> {
    let row = of_late(conn, late_tender_id)?;
    row.check_to_collect()?;
    let sale = sales::by_id(conn, offline::card_tender(conn, late_tender_id)?.sale_id)?;
    pay::begun(&sale, row.amount)
}

/// Collects again what was declined, all of it, in cash: it goes into the drawer of the open shift, and nothing is owed any more. The
/// same tender id gives the same answer back.
pub(crate) fn collect_in_cash(
    tx: &Connection,
    signature: &Signature,
    collect: &CollectInCash,
) -> Result<CashTaken, TillError> {
    let row = of_late(tx, collect.late_tender_id)?;
    if let Some(tender) = tenders::by_id(tx, collect.tender_id)? {
        let is_same = tender.collects == Some(row.tender_id)
            && tender.kind == TenderKind::Cash
            && tender.tendered == Some(collect.tendered);
        return if is_same { pay::taken(tx, &tender) } else { Err(pay::reused()) };
    }
    row.check_to_collect()?;
    let first = offline::card_tender(tx, row.tender_id)?;
    let sale = sales::by_id(tx, first.sale_id)?;
    pay::check_tendered(collect.tendered, sale.currency)?;
    shifts::check_cash(tx, sale.currency)?;
    let CashDue { due, rounding } = checkout::cash_due(row.amount, sale.cash).map_err(sale::broken)?;
    if !sale.cash.takes(collect.tendered) {
        return Err(TillError::InvalidAmount("there are no coins for this amount".to_owned()));
    }
    if collect.tendered < due {
        let due = format_amount(due, sale.currency);
        return Err(TillError::InvalidAmount(format!("all of it is collected at once: {due} is owed")));
    }
    let tender = TenderRow {
        id: collect.tender_id,
        sale_id: sale.id,
        position: pay::next_position(&tenders::of_sale(tx, sale.id)?),
        kind: TenderKind::Cash,
        state: TenderState::Taken,
        amount: due,
        tendered: Some(collect.tendered),
        change: Some(collect.tendered - due),
        reference: None,
        replaces: Some(row.last_tender_id),
        collects: Some(row.tender_id),
        created_at: signature.at,
        taken_offline_at: None,
    };
    tenders::insert(tx, &tender)?;
    let details = json!({
        "sale": sale.number, "tender": tender.id, "kind": "cash", "amount": due, "tendered": tender.tendered, "change": tender.change,
        "rounding": rounding, "currency": sale.currency, "replaces": tender.replaces, "collects": tender.collects,
    });
    audit::append(tx, signature, "cash-taken", Some(sale.id), &details)?;
    tx.prepare_cached(
        "UPDATE late_declines SET state = 'settled', last_tender_id = ?2, rounding = ?3, ended_at = ?4,
             ended_shift = (SELECT number FROM shift_now)
         WHERE seq = ?1",
    )?
    .execute(params![row.seq, tender.id.to_string(), rounding, signature.at.as_millisecond()])?;
    let details = json!({"amount": row.amount, "by": tender.id, "cash": due, "rounding": rounding});
    note(tx, signature, &first, Some(row.state), LateState::Settled, details)?;
    pay::taken(tx, &tender)
}
