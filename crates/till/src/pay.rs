//! Pay: from the click to the one commit that holds sale, tender, operation and audit entry.

use crate::{
    Operation, Sale, SaleState, Settings, TenderKind, TenderState, TillError, amounts::format_amount, audit,
    audit::Signature, clock, given, late, lines, operations, refunds, restore, sale, sales, sales::SaleRow, settings,
    shifts, tenders, tenders::TenderRow,
};
use checkout::{CashDue, Tender as Paid};
use jiff::Timestamp;
use outbox::{EnqueueError, Enqueued, NewOperation, Request};
use protocol::{Amount, CardToken, Currency, Key, PaymentRequest};
use rusqlite::Connection;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use uuid::Uuid;

/// In how many parts a sale is paid at most, those that did not pay not counted.
pub(crate) const PARTS_MAX: usize = 200;

/// What the dialog of a tender begins with. Nothing of it is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenderBegun {
    /// The tender's id: whatever is clicked in this dialog, and how often, is this one tender.
    pub tender_id: Uuid,
    /// What no other tender covers, in minor units.
    pub due: i64,
    /// The same in coins that there are.
    pub cash_due: i64,
    /// What customers are likely to hand over, the exact amount first.
    pub cash_notes: Vec<i64>,
    /// What paying it in cash adds, or with a minus takes away.
    pub rounding: i64,
}

/// A card payment that was clicked.
#[derive(Clone)]
pub struct CardPayment {
    /// The id given when the dialog opened.
    pub tender_id: Uuid,
    /// The sale to pay.
    pub sale_id: Uuid,
    /// How much of it, in minor units.
    pub amount: i64,
    /// What the card reader gave.
    pub card: String,
}

impl fmt::Debug for CardPayment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardPayment")
            .field("tender_id", &self.tender_id)
            .field("sale_id", &self.sale_id)
            .field("amount", &self.amount)
            .finish_non_exhaustive()
    }
}

/// A cash payment that was clicked.
#[derive(Debug, Clone)]
pub struct CashPayment {
    /// The id given when the dialog opened.
    pub tender_id: Uuid,
    /// The sale to pay.
    pub sale_id: Uuid,
    /// What the customer handed over, in minor units. Less than is due pays a part.
    pub tendered: i64,
}

/// Cash that was taken.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CashTaken {
    /// The sale after it.
    pub sale: Sale,
    /// What to give back, in minor units.
    pub change: i64,
    /// What cash rounding added, or with a minus took away.
    pub rounding: i64,
    /// By how much the drawer holds more.
    pub drawer: i64,
}

/// What is due on a sale, and an id for the tender that is to pay it.
pub(crate) fn begin(conn: &Connection, sale_id: Uuid) -> Result<TenderBegun, TillError> {
    let sale = sales::by_id(conn, sale_id)?;
    let rest = due(conn, &sale)?;
    begun(&sale, rest)
}

/// What a tender dialog begins with where so much is due.
pub(crate) fn begun(sale: &SaleRow, rest: i64) -> Result<TenderBegun, TillError> {
    let CashDue { due: cash_due, rounding } = checkout::cash_due(rest, sale.cash).map_err(sale::broken)?;
    let currency = sale::engine_currency(sale.currency).map_err(sale::broken)?;
    let cash_notes =
        checkout::cash_notes(cash_due, currency).into_iter().filter(|&note| sale.cash.takes(note)).collect();
    Ok(TenderBegun { tender_id: clock::new_id(), due: rest, cash_due, cash_notes, rounding })
}

/// What no tender of the sale covers, where there is something to pay at all.
pub(crate) fn due(conn: &Connection, sale: &SaleRow) -> Result<i64, TillError> {
    let line_rows = lines::of_sale(conn, sale.id)?;
    if line_rows.is_empty() {
        return Err(TillError::InvalidAmount("there is nothing to pay: the sale is empty".to_owned()));
    }
    let total = sale::figures(conn, sale, &line_rows)?.total;
    let tender_rows = tenders::of_sale(conn, sale.id)?;
    let rest = sale::balance(sale, total, &tender_rows)?.rest;
    match sale.state {
        SaleState::Completed => Err(TillError::SaleChanged("this sale is completed: it is paid".to_owned())),
        SaleState::Dropped => Err(TillError::SaleChanged("this sale was dropped: begin a new one".to_owned())),
        SaleState::Voided => Err(TillError::SaleChanged("this sale was voided: begin a new one".to_owned())),
        SaleState::Paying if rest == 0 && tender_rows.iter().any(|tender| tender.state.counts()) => {
            Err(TillError::SaleFrozen("this sale is being paid: wait for the bank's answer".to_owned()))
        }
        SaleState::Open | SaleState::Paying => Ok(rest),
    }
}

/// Freezes an open sale; one under payment is frozen already.
pub(crate) fn under_payment(tx: &Connection, signature: &Signature, sale: SaleRow) -> Result<SaleRow, TillError> {
    if sale.state != SaleState::Open {
        return Ok(sale);
    }
    let line_rows = lines::of_sale(tx, sale.id)?;
    given::check_at_pay(tx, signature, &sale, &line_rows)?;
    let priced = sale::price(&sale, &line_rows).map_err(sale::broken)?;
    lines::freeze(tx, sale.id, &line_rows, &priced)?;
    sales::freeze(tx, signature, &sale, &priced)
}

/// Saves a card payment: sale, tender, operation and audit entry, or nothing. The same tender id gives the same operation
/// back, in whatever state it is by now.
pub(crate) fn card(tx: &Connection, signature: &Signature, payment: &CardPayment) -> Result<Operation, TillError> {
    let amount = Amount::new(payment.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    let card = card_token(&payment.card)?;
    let sale = sales::by_id(tx, payment.sale_id)?;
    if let Some(tender) = tenders::by_id(tx, payment.tender_id)? {
        let is_same = tender.sale_id == sale.id && tender.kind == TenderKind::Card && tender.amount == amount.get();
        return if is_same { again(tx, signature, &sale, &tender, amount, card) } else { Err(reused()) };
    }
    let due = due(tx, &sale)?;
    if amount.get() > due {
        return Err(TillError::OverDue { amount: amount.get(), due, currency: sale.currency });
    }
    let sale = under_payment(tx, signature, sale)?;
    let reference = reference(&settings::read(tx)?, &sale)?;
    let replaces = tenders::to_replace(&tenders::of_sale(tx, sale.id)?);
    let new = NewCard { tender_id: payment.tender_id, amount, card, reference, replaces, collects: None };
    begin_card(tx, signature, &sale, new)
}

/// A card tender that is about to begin.
pub(crate) struct NewCard {
    pub(crate) tender_id: Uuid,
    pub(crate) amount: Amount,
    pub(crate) card: CardToken,
    /// What the bank is to be given.
    pub(crate) reference: String,
    /// The tender in whose place it is made.
    pub(crate) replaces: Option<Uuid>,
    /// The late decline that it collects.
    pub(crate) collects: Option<Uuid>,
}

/// The tender and its operation, on a sale that is frozen.
pub(crate) fn begin_card(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    new: NewCard,
) -> Result<Operation, TillError> {
    begin_card_at(tx, signature, sale, new, None)
}

/// The same for goods that are handed over before the bank is asked.
pub(crate) fn begin_card_at(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    new: NewCard,
    accepted_offline_at: Option<Timestamp>,
) -> Result<Operation, TillError> {
    let NewCard { tender_id, amount, card, reference, replaces, collects } = new;
    let others = tenders::of_sale(tx, sale.id)?;
    check_parts(&others)?;
    let tender = TenderRow {
        id: tender_id,
        sale_id: sale.id,
        position: next_position(&others),
        kind: TenderKind::Card,
        state: TenderState::Settling,
        amount: amount.get(),
        tendered: None,
        change: None,
        reference: Some(reference),
        replaces,
        collects,
        created_at: signature.at,
        taken_offline_at: None,
    };
    tenders::insert(tx, &tender)?;
    let enqueued = enqueue(tx, signature, sale, &tender, amount, card, accepted_offline_at)?;
    if enqueued.existed {
        // A tender that is new cannot have an operation: the id was used for something that is no tender of this till.
        return Err(reused());
    }
    let details = json!({
        "sale": sale.number, "tender": tender.id, "kind": "card", "amount": tender.amount, "currency": sale.currency,
        "total": frozen_total(sale)?, "key": enqueued.operation.key,
        "short_code": enqueued.operation.short_code, "reference": tender.reference, "replaces": tender.replaces,
        "collects": tender.collects,
        "accepted_offline": accepted_offline_at.is_some(),
    });
    audit::append(tx, signature, "payment-begun", Some(sale.id), &details)?;
    operations::show(tx, &enqueued.operation)
}

/// The operation that this tender has had since its first click. Its card is compared by the outbox, which has the bytes.
pub(crate) fn again(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    tender: &TenderRow,
    amount: Amount,
    card: CardToken,
) -> Result<Operation, TillError> {
    let enqueued = enqueue(tx, signature, sale, tender, amount, card, None)?;
    if !enqueued.existed {
        return Err(TillError::Internal("a tender had no operation".to_owned()));
    }
    operations::show(tx, &enqueued.operation)
}

fn enqueue(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    tender: &TenderRow,
    amount: Amount,
    card: CardToken,
    accepted_offline_at: Option<Timestamp>,
) -> Result<Enqueued, TillError> {
    let request = PaymentRequest {
        amount,
        currency: sale.currency,
        card,
        reference: tender.reference.clone(),
        accepted_offline_at,
    };
    let operation = NewOperation {
        intent_id: tender.id,
        replaces: tender.replaces,
        lane: sale.id.to_string(),
        request: Request::Payment(request),
    };
    outbox::enqueue(tx, &operation, Key::v7(signature.at, rand::random()), signature.at).map_err(|error| match error {
        EnqueueError::IntentReused(_) => reused(),
        EnqueueError::Sqlite(error) => error.into(),
        // The tenders and the operations replace each other in the same commits.
        error => TillError::Internal(error.to_string()),
    })
}

fn frozen_total(sale: &SaleRow) -> Result<i64, TillError> {
    let frozen = sale.frozen.ok_or_else(|| TillError::Internal("a sale under payment is not frozen".to_owned()))?;
    Ok(frozen.total)
}

/// Whether one more part may pay: what pays a sale is added up again at each look at it.
fn check_parts(others: &[TenderRow]) -> Result<(), TillError> {
    if others.iter().filter(|tender| tender.state.counts()).count() < PARTS_MAX {
        return Ok(());
    }
    Err(TillError::InvalidAmount(format!("a sale is paid in at most {PARTS_MAX} parts")))
}

pub(crate) fn next_position(others: &[TenderRow]) -> i64 {
    others.iter().map(|tender| tender.position).max().unwrap_or(0) + 1
}

pub(crate) fn card_token(card: &str) -> Result<CardToken, TillError> {
    CardToken::new(card).map_err(|error| TillError::InvalidCard(error.to_string()))
}

pub(crate) fn reused() -> TillError {
    TillError::IntentReused("this payment was already asked for with another amount, card or sale".to_owned())
}

/// What the till calls this sale at the bank.
pub(crate) fn reference(settings: &Settings, sale: &SaleRow) -> Result<String, TillError> {
    let number = sale.number.ok_or_else(|| TillError::Internal("a frozen sale has no number".to_owned()))?;
    Ok(format!("{}/{number}", settings.till_name))
}

/// Takes cash for what is due or for a part of it, and completes the sale where nothing else is open. The same tender id gives the
/// same answer back.
pub(crate) fn cash(tx: &Connection, signature: &Signature, payment: &CashPayment) -> Result<CashTaken, TillError> {
    let sale = sales::by_id(tx, payment.sale_id)?;
    if let Some(tender) = tenders::by_id(tx, payment.tender_id)? {
        let is_same =
            tender.sale_id == sale.id && tender.kind == TenderKind::Cash && tender.tendered == Some(payment.tendered);
        return if is_same { taken(tx, &tender) } else { Err(reused()) };
    }
    check_tendered(payment.tendered, sale.currency)?;
    let due = due(tx, &sale)?;
    shifts::check_cash(tx, sale.currency)?;
    let cash_due = checkout::cash_due(due, sale.cash).map_err(sale::broken)?.due;
    if payment.tendered == 0 && cash_due > 0 {
        let due = format_amount(cash_due, sale.currency);
        return Err(TillError::InvalidAmount(format!("nothing was handed over: {due} is due")));
    }
    let sale = under_payment(tx, signature, sale)?;
    let others = tenders::of_sale(tx, sale.id)?;
    check_parts(&others)?;
    let mut counted = sale::counted(&others);
    counted.push(Paid::Cash { tendered: payment.tendered });
    let total = frozen_total(&sale)?;
    let balance =
        checkout::balance(total, &counted, sale.cash).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    let tender = TenderRow {
        id: payment.tender_id,
        sale_id: sale.id,
        position: next_position(&others),
        kind: TenderKind::Cash,
        state: TenderState::Taken,
        amount: balance.tenders.last().map_or(0, |tender| tender.amount),
        tendered: Some(payment.tendered),
        change: Some(balance.change),
        reference: None,
        replaces: tenders::to_replace(&others),
        collects: None,
        created_at: signature.at,
        taken_offline_at: None,
    };
    tenders::insert(tx, &tender)?;
    let details = json!({
        "sale": sale.number, "tender": tender.id, "kind": "cash", "amount": tender.amount, "tendered": tender.tendered,
        "change": tender.change, "rounding": balance.rounding, "currency": sale.currency, "total": total,
        "replaces": tender.replaces,
    });
    audit::append(tx, signature, "cash-taken", Some(sale.id), &details)?;
    complete_if_paid(tx, signature, sale.id)?;
    taken(tx, &tender)
}

/// Whether so much can be handed over: as much as a drawer holds.
pub(crate) fn check_tendered(tendered: i64, currency: Currency) -> Result<(), TillError> {
    if (0..=shifts::AMOUNT_MAX).contains(&tendered) {
        return Ok(());
    }
    let [least, most] = [0, shifts::AMOUNT_MAX].map(|amount| format_amount(amount, currency));
    Err(TillError::InvalidAmount(format!("what is handed over must be from {least} to {most}")))
}

/// The answer to a cash payment that was saved.
pub(crate) fn cash_taken(conn: &Connection, tender_id: Uuid) -> Result<Option<CashTaken>, TillError> {
    tenders::by_id(conn, tender_id)?.map(|tender| taken(conn, &tender)).transpose()
}

pub(crate) fn taken(conn: &Connection, tender: &TenderRow) -> Result<CashTaken, TillError> {
    let sale = sale::read(conn, tender.sale_id)?;
    Ok(CashTaken { change: tender.change.unwrap_or(0), rounding: sale.rounding, drawer: tender.amount, sale })
}

/// Completes a sale when its last tender has paid, and gives it its receipt number in the same commit.
pub(crate) fn complete_if_paid(tx: &Connection, signature: &Signature, sale_id: Uuid) -> Result<(), TillError> {
    let sale = sales::by_id(tx, sale_id)?;
    let (SaleState::Paying, Some(frozen)) = (sale.state, sale.frozen) else { return Ok(()) };
    let rows = tenders::of_sale(tx, sale_id)?;
    let mut counting = rows.iter().filter(|tender| tender.state.counts());
    if !counting.all(TenderRow::lets_complete) {
        return Ok(());
    }
    let balance = sale::balance(&sale, frozen.total, &rows)?;
    if balance.rest != 0 || !rows.iter().any(TenderRow::lets_complete) {
        return Ok(());
    }
    let receipt_number = sales::complete(tx, signature, sale_id, balance.rounding)?;
    let details = json!({
        "sale": sale.number, "receipt": receipt_number, "total": frozen.total, "rounding": balance.rounding,
        "currency": sale.currency,
    });
    audit::append(tx, signature, "sale-completed", Some(sale_id), &details)?;
    late::completed(tx, signature, &rows)
}

/// Writes what the bank said of a card into its tender, and completes the sale where that was the last of it. Runs in the
/// commit that stores the result.
pub(crate) fn settled(tx: &Connection, signature: &Signature, operation: &outbox::Operation) -> Result<(), TillError> {
    if let Some(refund) = refunds::by_id(tx, operation.intent_id)? {
        return refunds::settled(tx, signature, &refund, operation);
    }
    let Some(tender) = tenders::by_id(tx, operation.intent_id)? else {
        tracing::error!(code = %operation.short_code, "an operation belongs to no tender");
        return Ok(());
    };
    let state = operations::tender_state(operation.state);
    if state == tender.state {
        return Ok(());
    }
    if tender.taken_offline_at.is_some() {
        // Of what an older program took, where the start could not write: what the bank says of it must not come before its sale is over.
        complete_if_paid(tx, signature, tender.sale_id)?;
    }
    tenders::set_state(tx, signature, tender.id, state)?;
    if let Some((_, last4)) = operation.card() {
        sales::listing::mark_card(tx, tender.sale_id, last4)?;
    }
    let details = json!({
        "tender": tender.id, "key": operation.key, "short_code": operation.short_code, "amount": tender.amount,
        "before": tender.state.as_str(), "after": state.as_str(),
    });
    audit::append(tx, signature, "payment-settled", Some(tender.sale_id), &details)?;
    complete_if_paid(tx, signature, tender.sale_id)?;
    late::settled(tx, signature, &tender, state)?;
    if state.counts() { Ok(()) } else { restore::match_again(tx, signature, tender.sale_id) }
}

/// Writes into the audit that the bank said another end of a payment than the one that holds. Money may have moved that this
/// till knows nothing of: a person must look.
pub(crate) fn contradicted(
    tx: &Connection,
    signature: &Signature,
    operation: &outbox::Operation,
    late: &outbox::LateAnswer,
) -> Result<(), TillError> {
    let sale_id = operations::show(tx, operation)?.sale_id;
    let details = json!({
        "intent": operation.intent_id, "key": operation.key, "short_code": operation.short_code,
        "amount": operation.money.map(|money| money.amount), "currency": operation.money.map(|money| money.currency), "holds": operation.state.as_str(),
        "came": late.state.as_str(),
        "result": late.result.as_ref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
    });
    audit::append(tx, signature, audit::LATE_ANSWER, Some(sale_id), &details)
}
