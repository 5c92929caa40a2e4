//! The ways in which money of a return or a void goes back: to the cards that paid, and in cash.

use super::{ReturnLeg, listing};
use crate::{
    Operation, Right, TenderKind, TenderState, TillError, audit,
    audit::Signature,
    clock, late,
    late::Waived,
    offline, operations, refunds,
    refunds::{LegOf, NewLeg, RefundRow},
    rights, sale, sales,
    sales::SaleRow,
    shifts::drawer,
    tenders,
    tenders::TenderRow,
};
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// How the money of a return is shared out.
pub(super) struct Legs {
    /// What goes back to nobody, as it was never paid.
    pub(super) waived: Vec<Waived>,
    /// What went back before, as money alone.
    pub(super) refunded_before: i64,
    pub(super) cards: Vec<CardLeg>,
    pub(super) cash: Option<CashLeg>,
}

/// To a card that paid.
pub(super) struct CardLeg {
    pub(super) tender: TenderRow,
    pub(super) amount: i64,
}

/// Out of the drawer.
#[derive(Debug, Clone, Copy)]
pub(super) struct CashLeg {
    /// What is handed over.
    pub(super) amount: i64,
    /// What of that is there because of the coins that there are.
    pub(super) rounding: i64,
}

impl Legs {
    /// What goes back to nobody, in minor units.
    pub(super) fn waived(&self) -> i64 {
        self.waived.iter().map(|waived| waived.amount).sum()
    }
}

/// Shares an amount out over what was never paid of a sale, and then over what paid it: first the cards of which nobody knows whether they
/// pay what may be owed, then the others in the order in which they paid, then cash. What is more than all of that went back before, as
/// money alone, and gives nothing back a second time.
///
/// Cash is rounded cumulatively, as a line is: what was handed over after this return is what all of them together come to, rounded
/// once. So the cash that goes back in parts is the cash that came, and not a coin less for each of them.
pub(super) fn share(conn: &Connection, sale: &SaleRow, total: i64) -> Result<Legs, TillError> {
    let rows = tenders::of_sale(conn, sale.id)?;
    let late::Shared { waived, mut rest, in_doubt } = late::share(conn, sale.id, total)?;
    let mut paying: Vec<_> =
        rows.iter().filter(|tender| tender.kind == TenderKind::Card && tender.state.counts()).collect();
    paying.sort_by_key(|tender| !in_doubt.contains(&tender.id));
    let mut cards = Vec::new();
    for tender in paying {
        let amount = refunds::left_of(conn, tender)?.min(rest);
        if amount > 0 {
            rest -= amount;
            cards.push(CardLeg { tender: tender.clone(), amount });
        }
    }
    let taken: i64 = rows.iter().filter(|tender| tender.kind == TenderKind::Cash).map(|tender| tender.amount).sum();
    let back = sum_of_cash(conn, CASH_BACK, sale.id)?;
    let rounding = sale.rounding.unwrap_or(0) + late::since(conn, &rows)?.rounding;
    let left = taken - rounding - back.exact;
    let refunded_before = (rest - left).max(0);
    if refunded_before > refunds::alone_uncounted(conn, sale.id)? {
        return Err(TillError::OverRefund { amount: total, left: total - rest + left, currency: sale.currency });
    }
    rest -= refunded_before;
    if rest == 0 {
        return Ok(Legs { waived, refunded_before, cards, cash: None });
    }
    let due = checkout::cash_due(back.exact + rest, sale.cash).map_err(sale::broken)?.due;
    // What was collected late was rounded by itself: the last part gives what is left of both, and no part gives more.
    let due = if rest == left { taken } else { due.min(taken) };
    let amount = due - back.handed;
    Ok(Legs { waived, refunded_before, cards, cash: Some(CashLeg { amount, rounding: amount - rest }) })
}

/// What went back in cash so far.
struct CashBack {
    handed: i64,
    /// Without what the coins made of it.
    exact: i64,
}

/// Not what was paid out in the place of a card's refund: that was the card's money. The plus sign keeps SQLite from the index of
/// `instead_of`, in which nearly every cash refund of the file is the same nothing.
pub(crate) const CASH_BACK: &str =
    "SELECT coalesce(sum(cash_refunds.amount), 0), coalesce(sum(cash_refunds.amount - cash_refunds.rounding), 0)
     FROM returns CROSS JOIN cash_refunds ON cash_refunds.return_id = returns.id
     WHERE returns.sale_id = ?1 AND +cash_refunds.instead_of IS NULL";

/// What was paid out of a sale in the place of refunds to its cards.
pub(crate) const PAID_OUT: &str =
    "SELECT coalesce(sum(cash_refunds.amount), 0), coalesce(sum(cash_refunds.amount - cash_refunds.rounding), 0)
     FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
     CROSS JOIN cash_refunds ON cash_refunds.instead_of = refunds.id WHERE tenders.sale_id = ?1";

fn sum_of_cash(conn: &Connection, sql: &str, sale_id: Uuid) -> Result<CashBack, TillError> {
    Ok(conn
        .prepare_cached(sql)?
        .query_row([sale_id.to_string()], |row| Ok(CashBack { handed: row.get(0)?, exact: row.get(1)? }))?)
}

/// Saves the legs of a return, an operation for each card, and what went back before; and gives the legs for the audit.
pub(super) fn begin(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    return_id: Uuid,
    legs: &Legs,
) -> Result<Value, TillError> {
    if legs.refunded_before > 0 {
        tx.prepare_cached("INSERT INTO return_refunded (return_id, amount) VALUES (?1, ?2)")?
            .execute(params![return_id.to_string(), legs.refunded_before])?;
    }
    let mut said = Vec::new();
    for CardLeg { tender, amount } in &legs.cards {
        let id = clock::id_at(signature.at);
        let leg_of = LegOf::Return(return_id);
        let new = NewLeg { id, leg_of, replaces: None, tender, amount: *amount };
        let operation = refunds::begin_leg(tx, signature, sale, &new)?;
        said.push(json!({"refund": id, "tender": tender.id, "amount": amount, "key": operation.key}));
    }
    if let Some(CashLeg { amount, rounding }) = legs.cash {
        let id = clock::id_at(signature.at);
        hand_over(
            tx,
            signature,
            sale.currency,
            &CashOut { id, leg_of: LegOf::Return(return_id), instead_of: None, amount, rounding },
        )?;
        said.push(json!({"cash": id, "amount": amount, "rounding": rounding}));
    }
    Ok(said.into())
}

/// Cash that leaves the drawer for a return or a void.
pub(crate) struct CashOut {
    pub(crate) id: Uuid,
    pub(crate) leg_of: LegOf,
    /// The refund to a card in whose place it is.
    pub(crate) instead_of: Option<Uuid>,
    pub(crate) amount: i64,
    pub(crate) rounding: i64,
}

pub(crate) fn hand_over(
    tx: &Connection,
    signature: &Signature,
    currency: Currency,
    cash: &CashOut,
) -> Result<(), TillError> {
    // First: the file takes no cash that is given back and left no drawer.
    drawer::give_back(tx, signature, cash.id, cash.amount, currency)?;
    let (return_id, void_id) = cash.leg_of.columns();
    tx.prepare_cached(
        "INSERT INTO cash_refunds (id, return_id, void_id, instead_of, amount, rounding, created_at, shift)
         VALUES (?1, ?2, ?7, ?3, ?4, ?5, ?6, (SELECT number FROM shift_now))",
    )?
    .execute(params![
        cash.id.to_string(),
        return_id,
        cash.instead_of.map(|id| id.to_string()),
        cash.amount,
        cash.rounding,
        signature.at.as_millisecond(),
        void_id
    ])?;
    Ok(())
}

/// Cash that was paid out in the place of a refund to a card.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaidOut {
    /// The sale that was paid by that card.
    pub sale_id: Uuid,
    /// What was handed over.
    pub leg: ReturnLeg,
}

/// A leg to a card that did not go through, and that nobody has done anything about.
struct Stuck {
    refund: RefundRow,
    leg_of: LegOf,
    tender: TenderRow,
    sale: SaleRow,
}

fn stuck(tx: &Connection, leg_id: Uuid) -> Result<Stuck, TillError> {
    let refund = refunds::by_id(tx, leg_id)?.ok_or(TillError::NotFound("refund"))?;
    let leg_of = refund.leg_of.ok_or(TillError::NotFound("refund of a return"))?;
    let tender = offline::card_tender(tx, refund.tender_id)?;
    match refund.state {
        TenderState::Declined | TenderState::Cancelled => {}
        TenderState::Settling | TenderState::NeedsAttention => {
            return Err(TillError::CardMayBeCharged(
                "this refund may still go through: wait for the bank's answer".to_owned(),
            ));
        }
        TenderState::Approved | TenderState::Taken => {
            return Err(TillError::AlreadyFinal("this refund went through".to_owned()));
        }
    }
    if matches!(tender.state, TenderState::Settling | TenderState::NeedsAttention) {
        return Err(TillError::CardMayBeCharged(
            "its payment is still open: wait for the bank's answer, then give this back".to_owned(),
        ));
    }
    if tender.state != TenderState::Approved {
        return Err(TillError::NotRefundable("its payment did not pay: there is nothing to give back".to_owned()));
    }
    if refunds::is_resolved(tx, leg_id)? {
        return Err(TillError::AlreadyFinal("this was tried again or paid out already".to_owned()));
    }
    let sale = sales::by_id(tx, tender.sale_id)?;
    Ok(Stuck { refund, leg_of, tender, sale })
}

/// Tries a refund again that the bank refused, or that was cancelled: a new operation in its place. The same new id gives the same
/// operation back.
pub(crate) fn try_again(
    tx: &Connection,
    signature: &Signature,
    leg_id: Uuid,
    new_id: Uuid,
) -> Result<Operation, TillError> {
    if let Some(done) = refunds::by_id(tx, new_id)? {
        let operation = operations::by_intent(tx, new_id)?.filter(|_| done.replaces == Some(leg_id));
        return operation.ok_or_else(reused);
    }
    let Stuck { refund, leg_of, tender, sale } = stuck(tx, leg_id)?;
    let new = NewLeg { id: new_id, leg_of, replaces: Some(leg_id), tender: &tender, amount: refund.amount };
    refunds::begin_leg(tx, signature, &sale, &new)
}

/// Pays a refund out in cash that the card's bank refused, or that was cancelled. The same new id gives the same leg back.
pub(crate) fn pay_out(
    tx: &Connection,
    signature: &Signature,
    leg_id: Uuid,
    new_id: Uuid,
) -> Result<PaidOut, TillError> {
    let broken = || TillError::Internal("what was paid out was not saved".to_owned());
    let done: Option<Option<String>> = tx
        .prepare_cached("SELECT instead_of FROM cash_refunds WHERE id = ?1")?
        .query_row([new_id.to_string()], |row| row.get(0))
        .optional()?;
    if let Some(instead_of) = done {
        let is_same = instead_of == Some(leg_id.to_string());
        return if is_same { paid_out(tx, new_id)?.ok_or_else(broken) } else { Err(reused()) };
    }
    let Stuck { refund, leg_of, sale, .. } = stuck(tx, leg_id)?;
    let (amount, rounding) = in_coins(tx, &sale, refund.amount)?;
    let signature = &rights::allow_amount(tx, signature, Right::CashOut, (amount, sale.currency))?;
    hand_over(
        tx,
        signature,
        sale.currency,
        &CashOut { id: new_id, leg_of, instead_of: Some(leg_id), amount, rounding },
    )?;
    let (return_id, void_id) = leg_of.columns();
    let details = json!({
        "return": return_id, "void": void_id, "instead_of": leg_id, "cash": new_id, "amount": amount, "rounding": rounding,
        "currency": sale.currency,
    });
    audit::append(tx, signature, "refund-paid-out", Some(sale.id), &details)?;
    paid_out(tx, new_id)?.ok_or_else(broken)
}

/// What was paid out in cash by this id, in the place of a refund to a card.
pub(crate) fn paid_out(conn: &Connection, id: Uuid) -> Result<Option<PaidOut>, TillError> {
    let Some(leg) = listing::cash_leg(conn, id)? else { return Ok(None) };
    let Some(instead_of) = leg.replaces else { return Ok(None) };
    let refund = refunds::by_id(conn, instead_of)?.ok_or(TillError::NotFound("refund"))?;
    let tender = offline::card_tender(conn, refund.tender_id)?;
    Ok(Some(PaidOut { sale_id: tender.sale_id, leg }))
}

/// What is handed over for `amount`, and what of it is rounding: with what of this sale was paid out so before it is what all of that comes
/// to, rounded once. An older file may hold more or less than that already, rounded one by one: this piece is never more than a coin apart.
fn in_coins(conn: &Connection, sale: &SaleRow, amount: i64) -> Result<(i64, i64), TillError> {
    let before = sum_of_cash(conn, PAID_OUT, sale.id)?;
    let due = checkout::cash_due(before.exact + amount, sale.cash).map_err(sale::broken)?.due;
    let below = amount - amount % sale.cash.step();
    let above = if below == amount { amount } else { below + sale.cash.step() };
    let handed = (due - before.handed).clamp(below, above);
    Ok((handed, handed - amount))
}

fn reused() -> TillError {
    TillError::IntentReused("this was already asked for with another refund".to_owned())
}
