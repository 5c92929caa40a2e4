//! Operations and the queue as they are shown: the outbox's rows, with the sale they belong to.

use crate::{TenderState, TillError, alarms, refunds, sales, tenders};
use jiff::Timestamp;
use outbox::{Attempt, BankIdentity, Filter, State};
use protocol::{Currency, Key, Kind};
use rusqlite::Connection;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// How many operations one answer holds at most.
pub(crate) const OPERATIONS_MAX: u32 = 500;

/// One thing asked of the bank, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its place in the order of clicks.
    pub seq: i64,
    /// The idempotency key: the same in every attempt.
    pub key: Key,
    /// The key's short form, for people to name it by.
    pub short_code: String,
    /// Payment or refund.
    pub kind: Kind,
    /// How far it is.
    pub state: State,
    /// What is asked for, in minor units.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// How many attempts were begun.
    pub attempts: u32,
    /// When Pay was clicked.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it is tried again, while it waits.
    pub due_at: Option<Timestamp>,
    /// Before when the bank does not want to be asked.
    pub not_before: Option<Timestamp>,
    /// The goods were handed over before the bank answered.
    pub accepted_offline: bool,
    /// Somebody wished it cancelled: from then on only its cancellation is sent.
    pub cancel_wished: bool,
    /// Why it needs attention, for whom it waits, or, with an end, that the bank said another one since (`late-answer`): a code, or
    /// a code, a colon and more.
    pub reason: Option<String>,
    /// Why it is not final yet: a word such as `no-connection`, `in-progress`, `rate-limited`.
    pub last_answer: Option<String>,
    /// The bank of its first attempt; it goes to no other.
    pub bank_id: Option<Uuid>,
    /// The merchant of its first attempt.
    pub merchant: Option<String>,
    /// The sale it pays, or gives back for.
    pub sale_id: Uuid,
    /// The number of that sale.
    pub sale_number: Option<i64>,
    /// The number of that sale's receipt, once it is completed.
    pub receipt_number: Option<i64>,
    /// What the bank was given as the reference.
    pub reference: Option<String>,
    /// The bank's id of the payment.
    pub bank_reference: Option<String>,
    /// Approved: the code for the receipt.
    pub approval_code: Option<String>,
    /// Declined: why.
    pub decline_code: Option<String>,
    /// The card's brand.
    pub card_brand: Option<String>,
    /// The last four digits of the card.
    pub last4: Option<String>,
    /// The bank's object, word for word.
    pub result: Option<Value>,
}

impl Operation {
    /// Whether it was first sent to another bank than this, or for another merchant, and so waits for that one.
    #[must_use]
    pub fn is_for_another_than(&self, bank: &BankIdentity) -> bool {
        self.bank_id.is_some_and(|bank_id| bank_id != bank.bank_id)
            || self.merchant.as_ref().is_some_and(|merchant| *merchant != bank.merchant)
    }
}

/// Which operations are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationQuery {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only payments, or only refunds.
    pub kind: Option<Kind>,
    /// Only those over just so much, in minor units of whichever currency.
    pub amount: Option<i64>,
    /// Only those clicked at this time or later, by the till's clock of then.
    pub clicked_from: Option<Timestamp>,
    /// Only those clicked before this time, by the till's clock of then.
    pub clicked_before: Option<Timestamp>,
    /// Only those clicked before the one in this place.
    pub before: Option<i64>,
    /// Only those clicked after the one in this place.
    pub after: Option<i64>,
    /// Oldest first; else newest first.
    pub oldest_first: bool,
    /// How many; at most 500.
    pub limit: Option<u32>,
}

/// A page of operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operations {
    /// Those found.
    pub operations: Vec<Operation>,
    /// Whether there are more.
    pub more: bool,
}

/// One entry of an operation's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineEntry {
    /// When, by the till's clock.
    pub at: Timestamp,
    /// Of which attempt; 0 before the first.
    pub attempt: u32,
    /// What happened: a word such as `saved`, `sent`, `answer`.
    pub event: String,
    /// In words.
    pub detail: String,
}

/// Where the tender of an operation stands.
pub(crate) fn tender_state(state: State) -> TenderState {
    match state {
        State::Saved | State::Sending | State::Unknown => TenderState::Settling,
        State::Approved => TenderState::Approved,
        State::Declined => TenderState::Declined,
        State::Cancelled => TenderState::Cancelled,
        State::NeedsAttention => TenderState::NeedsAttention,
    }
}

/// The operation of a tender or a refund.
pub(crate) fn by_intent(conn: &Connection, intent_id: Uuid) -> Result<Option<Operation>, TillError> {
    outbox::by_intent(conn, intent_id)?.map(|operation| show(conn, &operation)).transpose()
}

/// The operation of a key.
pub(crate) fn by_key(conn: &Connection, key: Key) -> Result<Operation, TillError> {
    show(conn, &outbox::by_key(conn, &key)?.ok_or(TillError::NotFound("operation"))?)
}

/// A page of operations.
pub(crate) fn list(conn: &Connection, query: &OperationQuery) -> Result<Operations, TillError> {
    let limit = query.limit.unwrap_or(OPERATIONS_MAX).clamp(1, OPERATIONS_MAX);
    let filter = Filter {
        state: query.state,
        kind: query.kind.map(|kind| match kind {
            Kind::Payment => outbox::Kind::Payment,
            Kind::Refund => outbox::Kind::Refund,
        }),
        amount: query.amount,
        created_from: query.clicked_from,
        created_before: query.clicked_before,
        before_seq: query.before,
        after_seq: query.after,
        newest_first: !query.oldest_first,
        limit: limit + 1,
    };
    let mut found = outbox::list(conn, filter)?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    Ok(Operations { operations: found.iter().map(|operation| show(conn, operation)).collect::<Result<_, _>>()?, more })
}

/// Adds to an operation what the till knows of it.
pub(crate) fn show(conn: &Connection, operation: &outbox::Operation) -> Result<Operation, TillError> {
    let broken = || TillError::Internal(format!("operation {} belongs to no tender", operation.key));
    let (kind, tender_id) = match operation.kind {
        outbox::Kind::Payment => (Kind::Payment, operation.intent_id),
        outbox::Kind::Refund => {
            (Kind::Refund, refunds::by_id(conn, operation.intent_id)?.ok_or_else(broken)?.tender_id)
        }
        // A till sends none.
        outbox::Kind::Message => return Err(broken()),
    };
    let tender = tenders::by_id(conn, tender_id)?.ok_or_else(broken)?;
    let money = operation.money.ok_or_else(broken)?;
    let sale = sales::by_id(conn, tender.sale_id)?;
    let alarm = if operation.state.is_final() { alarms::reason(conn, sale.id, operation.key)? } else { None };
    Ok(Operation {
        seq: operation.seq,
        key: operation.key,
        short_code: operation.short_code.to_string(),
        kind,
        state: operation.state,
        amount: money.amount,
        currency: money.currency,
        attempts: operation.attempts,
        created_at: operation.created_at,
        updated_at: operation.updated_at,
        due_at: operation.due_at,
        not_before: operation.not_before,
        accepted_offline: operation.accepted_offline_at.is_some(),
        cancel_wished: operation.cancel_wished_at.is_some(),
        reason: alarm.or_else(|| operation.reason.clone()),
        last_answer: operation.last_answer.clone(),
        bank_id: operation.bank_id,
        merchant: operation.merchant.clone(),
        sale_id: sale.id,
        sale_number: sale.number,
        receipt_number: sale.receipt_number,
        reference: tender.reference,
        bank_reference: operation.bank_reference().map(str::to_owned),
        approval_code: operation.approval_code().map(str::to_owned),
        decline_code: operation.decline_code().map(str::to_owned),
        card_brand: operation.card().map(|(brand, _)| brand.to_owned()),
        last4: operation.card().map(|(_, last4)| last4.to_owned()),
        result: operation.result.clone(),
    })
}

/// What happened to an operation, oldest first.
pub(crate) fn attempts(conn: &Connection, key: Key) -> Result<Vec<Attempt>, TillError> {
    if outbox::by_key(conn, &key)?.is_none() {
        return Err(TillError::NotFound("operation"));
    }
    Ok(outbox::attempts(conn, &key)?)
}

/// The same, each entry in a line of words.
pub(crate) fn timeline(conn: &Connection, key: Key) -> Result<Vec<TimelineEntry>, TillError> {
    Ok(attempts(conn, key)?.into_iter().map(entry).collect())
}

fn entry(attempt: Attempt) -> TimelineEntry {
    let answer = attempt.answer.map(|status| status.to_string());
    let parts = [attempt.sent, answer, attempt.reading, Some(attempt.detail).filter(|detail| !detail.is_empty())];
    let detail = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    TimelineEntry { at: attempt.at, attempt: attempt.attempt, event: attempt.event, detail }
}
