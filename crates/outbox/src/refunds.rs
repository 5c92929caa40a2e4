//! Refunds that wait for their payment: they end, or get their bytes, in the commit that stores how the payment ended.

use jiff::Timestamp;
use protocol::{Amount, Key, RefundRequest};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::attempts::{self, Entry};
use crate::columns::ms;
use crate::one_row::one_row;
use crate::operations::{Kind, Operation, by_key, refunds_of};
use crate::state::State;

/// What a payment that is final now does to the refunds that waited for it: an approved one gives them its id to name, any
/// other end cancels them, as nothing of them was ever sent from here. Gives back those that changed.
pub(crate) fn follow(tx: &Connection, payment: &Operation, now: Timestamp) -> rusqlite::Result<Vec<Operation>> {
    if payment.kind != Kind::Payment || !payment.state.is_final() {
        return Ok(Vec::new());
    }
    let waiting: Vec<Operation> = refunds_waiting(tx, &payment.key)?;
    waiting
        .into_iter()
        .map(|refund| {
            match payment.state {
                State::Approved => make_ready(tx, &refund, payment, now)?,
                _ => cancel_with_payment(tx, &refund, payment, now)?,
            }
            by_key(tx, &refund.key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
        })
        .collect()
}

fn refunds_waiting(tx: &Connection, payment: &Key) -> rusqlite::Result<Vec<Operation>> {
    let mut waiting = refunds_of(tx, payment)?;
    waiting.retain(|refund| refund.state == State::Saved);
    Ok(waiting)
}

/// It belongs to the bank of its payment: no other can give that money back.
fn make_ready(tx: &Connection, refund: &Operation, payment: &Operation, now: Timestamp) -> rusqlite::Result<()> {
    let amount = refund.money.and_then(|money| Amount::new(money.amount).ok());
    // The file holds no refund without an amount, and an approved payment was only stored with the bank's id of it.
    let (Some(amount), Some(payment_id)) = (amount, payment.bank_reference()) else {
        return Err(rusqlite::Error::InvalidQuery);
    };
    let body = RefundRequest { payment_id: payment_id.to_owned(), amount }.encode();
    tx.prepare_cached(
        "UPDATE operations SET body = ?2, due_at = ?3, updated_at = ?3, bank_id = ?4, merchant = ?5 \
         WHERE key = ?1 AND state = 'saved' AND body IS NULL",
    )?
    .execute(params![
        refund.key.as_bytes(),
        body,
        ms(now),
        payment.bank_id.as_ref().map(Uuid::as_bytes),
        payment.merchant
    ])
    .and_then(one_row)?;
    let detail = "its payment is approved";
    attempts::append(tx, &Entry { detail, ..Entry::new(&refund.key, refund.attempts, now, "ready") })?;
    store::points::reach(store::points::Point::RefundReady);
    Ok(())
}

/// Where it is the bank's word how the payment ended, no copy of this file can ever have given any of it back. A payment that was cancelled
/// here alone is another matter: a copy may have both charged it and given it back.
fn cancel_with_payment(
    tx: &Connection,
    refund: &Operation,
    payment: &Operation,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let reason = format!("payment-{}", payment.state);
    tx.prepare_cached(
        "UPDATE operations SET state = 'cancelled', reason = ?2, not_before = NULL, settled_at = ?3, updated_at = ?3, \
             ask = 'cancel', tombstone = ?4, due_at = CASE WHEN ?4 THEN ?3 END, bank_id = ?5, merchant = ?6 \
         WHERE key = ?1 AND state = 'saved' AND body IS NULL",
    )?
    .execute(params![
        refund.key.as_bytes(),
        reason,
        ms(now),
        payment.tombstone,
        payment.bank_id.as_ref().map(Uuid::as_bytes),
        payment.merchant
    ])
    .and_then(one_row)?;
    attempts::append(tx, &Entry { detail: &reason, ..Entry::new(&refund.key, refund.attempts, now, "cancelled") })
}
