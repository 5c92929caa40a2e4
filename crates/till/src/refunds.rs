//! Refunds of a card tender: an operation of their own, saved before a byte leaves, and waiting for their payment's end.

use crate::{
    Operation, TenderState, TillError, audit, audit::Signature, columns, operations, rights, rights::Measure,
    rights::Right, tenders,
};
use outbox::{EnqueueError, Enqueued, Kind, NewOperation, Request};
use protocol::{Amount, Key};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
use uuid::Uuid;

/// Money to give back.
#[derive(Debug, Clone, Copy)]
pub struct Refund {
    /// Names the intent: the same again gives the same operation back.
    pub intent_id: Uuid,
    /// The key of the payment, which may still be open.
    pub payment: Key,
    /// How much of it, in minor units of its currency.
    pub amount: Amount,
}

#[derive(Debug, Clone)]
pub(crate) struct RefundRow {
    pub(crate) id: Uuid,
    pub(crate) tender_id: Uuid,
    pub(crate) state: TenderState,
    pub(crate) amount: i64,
}

pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<Option<RefundRow>, TillError> {
    let found = conn
        .prepare_cached("SELECT id, tender_id, state, amount FROM refunds WHERE id = ?1")?
        .query_row([id.to_string()], |row| {
            Ok(RefundRow {
                id: columns::uuid(row, 0)?,
                tender_id: columns::uuid(row, 1)?,
                state: columns::word(row, 2, TenderState::read)?,
                amount: row.get(3)?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Saves a refund: its row, operation and audit entry in one commit, or nothing. The same intent gives the same operation back.
pub(crate) fn refund(tx: &Connection, signature: &Signature, refund: &Refund) -> Result<Operation, TillError> {
    let payment = outbox::by_key(tx, &refund.payment)?.filter(|operation| operation.kind == Kind::Payment);
    let payment = payment.ok_or(TillError::NotFound("payment"))?;
    let tender = tenders::by_id(tx, payment.intent_id)?
        .ok_or_else(|| TillError::Internal(format!("payment {} belongs to no tender", payment.key)))?;
    // What was saved before is given back to whoever asks.
    let signature = &match outbox::by_intent(tx, refund.intent_id)? {
        Some(_) => signature.clone(),
        None => rights::allow(tx, signature, Right::Refund, Measure::Amount(refund.amount.get()))?,
    };
    let Enqueued { operation, existed } = enqueue(tx, signature, refund, &payment.lane)?;
    if existed {
        return operations::show(tx, &operation);
    }
    tx.prepare_cached(
        "INSERT INTO refunds (id, tender_id, state, amount, created_at, updated_at) VALUES (?1, ?2, 'settling', ?3, ?4, ?4)",
    )?
    .execute(params![
        refund.intent_id.to_string(),
        tender.id.to_string(),
        refund.amount.get(),
        signature.at.as_millisecond()
    ])?;
    let details = json!({
        "refund": refund.intent_id, "tender": tender.id, "amount": refund.amount, "payment": payment.key,
        "key": operation.key, "short_code": operation.short_code,
    });
    audit::append(tx, signature, "refund-begun", Some(tender.sale_id), &details)?;
    operations::show(tx, &operation)
}

fn enqueue(tx: &Connection, signature: &Signature, refund: &Refund, lane: &str) -> Result<Enqueued, TillError> {
    let new = NewOperation {
        intent_id: refund.intent_id,
        replaces: None,
        lane: lane.to_owned(),
        request: Request::Refund { payment: refund.payment, amount: refund.amount },
    };
    let saved = outbox::enqueue(tx, &new, Key::v7(signature.at, rand::random()), signature.at);
    saved.map_err(|error| match error {
        EnqueueError::IntentReused(_) => {
            TillError::IntentReused("this was already asked for with another amount or payment".to_owned())
        }
        EnqueueError::OverRefund { asked, left } => TillError::OverRefund { amount: asked, left },
        EnqueueError::PaymentUnknown => TillError::NotFound("payment"),
        error @ EnqueueError::NothingToRefund(_) => TillError::NotRefundable(error.to_string()),
        EnqueueError::Sqlite(error) => error.into(),
        error => TillError::Internal(error.to_string()),
    })
}

/// Writes into the refund how far its operation is. Runs in the commit that changed it.
pub(crate) fn settled(
    tx: &Connection,
    signature: &Signature,
    refund: &RefundRow,
    operation: &outbox::Operation,
) -> Result<(), TillError> {
    let state = operations::tender_state(operation.state);
    if state == refund.state {
        return Ok(());
    }
    tx.prepare_cached("UPDATE refunds SET state = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        refund.id.to_string(),
        state.as_str(),
        signature.at.as_millisecond()
    ])?;
    let details = json!({
        "refund": refund.id, "tender": refund.tender_id, "key": operation.key, "short_code": operation.short_code,
        "amount": refund.amount, "before": refund.state.as_str(), "after": state.as_str(),
    });
    let sale_id = tenders::by_id(tx, refund.tender_id)?.map(|tender| tender.sale_id);
    audit::append(tx, signature, "refund-settled", sale_id, &details)
}
