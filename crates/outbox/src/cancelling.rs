//! The wish to cancel an operation, and the mark that its goods are gone already: each excludes the other, in one commit.

use jiff::Timestamp;
use protocol::Key;
use rusqlite::{Connection, params};

use crate::attempts::{self, Entry};
use crate::columns::ms;
use crate::one_row::one_row;
use crate::operations::{Kind, Operation, by_key};
use crate::refunds;
use crate::state::State;

/// Who cancels. Whether somebody may, the caller has found out before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAs {
    /// Anybody, while the goods are still here.
    Wish,
    /// Somebody who may write the goods off that were handed over before the bank answered.
    WriteOff,
}

/// What [`cancel`] did.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancelled {
    /// The operation: `cancelled` where it was never sent; else as it was, and from now on only its cancellation is sent.
    pub operation: Operation,
    /// The refunds that waited for it, cancelled with it.
    pub refunds: Vec<Operation>,
    /// Something was written. Else it was cancelled, or wished so, before.
    pub changed: bool,
}

/// Why an operation is not cancelled. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// There is no operation of that key.
    #[error("there is no operation of that key")]
    Unknown,
    /// It ended approved or declined.
    #[error("it is {} already", .0.state)]
    Final(Box<Operation>),
    /// The goods were handed over for it: only a write-off ([`CancelAs::WriteOff`]) cancels it.
    #[error("its goods were handed over before the bank answered: cancelling it is a write-off")]
    AcceptedOffline(Box<Operation>),
    /// The file.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Cancels an operation, in the caller's transaction. Wake the outbox after the commit.
///
/// One that was never sent is `cancelled` here and now. The bank is told all the same, in the background, because this file may
/// be a copy of one that did send it; an answer other than `cancelled` comes to
/// [`on_late_answer`](crate::Outbox::on_late_answer). Of one that was perhaps sent the wish is saved, and brought to the bank
/// until it says `cancelled`, or that it ended otherwise after all. The refunds that wait for a payment which is cancelled here
/// and now go with it. No hook runs: what the caller keeps beside it, it writes in this same transaction.
///
/// It is no method of [`Outbox`](crate::Outbox), and `now` is the caller's, because it is a part of the caller's transaction: what
/// stands beside it there (an entry of an audit) has the same time, and a program that settles nothing can cancel too.
///
/// A [`Contract`](crate::Contract) without a call for [`Ask::Cancel`](crate::Ask::Cancel) tells nobody: then cancel only what is
/// `saved`; all else would need attention, for good.
///
/// # Errors
/// See [`CancelError`].
pub fn cancel(tx: &Connection, key: &Key, by: CancelAs, now: Timestamp) -> Result<Cancelled, CancelError> {
    let operation = by_key(tx, key)?.ok_or(CancelError::Unknown)?;
    if operation.state == State::Cancelled || (!operation.state.is_final() && operation.cancel_wished_at.is_some()) {
        return Ok(Cancelled { operation, refunds: Vec::new(), changed: false });
    }
    if operation.state.is_final() {
        return Err(CancelError::Final(Box::new(operation)));
    }
    if operation.accepted_offline_at.is_some() && by == CancelAs::Wish {
        return Err(CancelError::AcceptedOffline(Box::new(operation)));
    }
    let event = if operation.state == State::Saved { "cancelled" } else { "cancel-wished" };
    if operation.state == State::Saved {
        cancel_here(tx, key, by, now)?
    } else {
        wish(tx, key, by, now)?
    }
    attempts::append(tx, &Entry::new(key, operation.attempts, now, event))?;
    let operation = by_key(tx, key)?.ok_or(CancelError::Unknown)?;
    let refunds = refunds::follow(tx, &operation, now)?;
    Ok(Cancelled { operation, refunds, changed: true })
}

/// A refund that waits for its payment has no bytes here, but a copy of the file may have got them with the payment's approval, under the
/// same key: it is told as cancelled like all others, to the payment's bank where that is known.
fn cancel_here(tx: &Connection, key: &Key, by: CancelAs, now: Timestamp) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE operations SET state = 'cancelled', settled_at = ?2, updated_at = ?2, \
             cancel_wished_at = coalesce(cancel_wished_at, ?2), write_off = max(write_off, ?3), \
             ask = 'cancel', failures = 0, reason = NULL, last_answer = NULL, not_before = NULL, tombstone = 1, due_at = ?2, \
             (bank_id, merchant) = (SELECT bank.bank_id, bank.merchant FROM operations AS bank \
                 WHERE bank.key = CASE WHEN operations.bank_id IS NULL THEN coalesce(operations.payment_key, operations.key) \
                     ELSE operations.key END) \
         WHERE key = ?1 AND state = 'saved'",
    )?
    .execute(params![key.as_bytes(), ms(now), by == CancelAs::WriteOff])
    .and_then(one_row)
}

/// Cancels one that somebody wished cancelled while a call ran, and of which the call showed that it never left after all.
pub(crate) fn cancel_unsent(tx: &Connection, operation: &Operation, now: Timestamp) -> rusqlite::Result<()> {
    cancel_here(tx, &operation.key, CancelAs::Wish, now)?;
    attempts::append(tx, &Entry::new(&operation.key, operation.attempts, now, "cancelled"))
}

/// A call that is running ends first; what it brings counts.
fn wish(tx: &Connection, key: &Key, by: CancelAs, now: Timestamp) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE operations SET cancel_wished_at = ?2, write_off = ?3, ask = 'cancel', updated_at = ?2, \
             due_at = CASE WHEN due_at IS NOT NULL THEN ?2 END \
         WHERE key = ?1 AND state IN ('sending', 'unknown', 'needs_attention') AND cancel_wished_at IS NULL",
    )?
    .execute(params![key.as_bytes(), ms(now), by == CancelAs::WriteOff])
    .and_then(one_row)
}

/// Why an operation is not accepted offline. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// There is no payment of that key: refunds and messages are not accepted offline.
    #[error("there is no payment of that key")]
    Unknown,
    /// It has ended: there is nothing to accept.
    #[error("it is {} already", .0.state)]
    Final(Box<Operation>),
    /// It is to be cancelled.
    #[error("it is being cancelled")]
    CancelWished(Box<Operation>),
    /// The file.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// Marks a payment as accepted before the bank has answered, in the caller's transaction: the goods are gone, at the shop's
/// risk. Its bytes stay as they are, and it goes on being tried. The same again changes nothing. No hook runs, and `now` is the
/// caller's, as with [`cancel`].
///
/// # Errors
/// See [`AcceptError`].
pub fn accept_offline(tx: &Connection, key: &Key, now: Timestamp) -> Result<Operation, AcceptError> {
    let operation = by_key(tx, key)?.filter(|operation| operation.kind == Kind::Payment).ok_or(AcceptError::Unknown)?;
    if operation.accepted_offline_at.is_some() {
        return Ok(operation);
    }
    if operation.state.is_final() {
        return Err(AcceptError::Final(Box::new(operation)));
    }
    if operation.cancel_wished_at.is_some() {
        return Err(AcceptError::CancelWished(Box::new(operation)));
    }
    tx.prepare_cached(
        "UPDATE operations SET accepted_offline_at = ?2, updated_at = ?2 \
         WHERE key = ?1 AND settled_at IS NULL AND accepted_offline_at IS NULL AND cancel_wished_at IS NULL",
    )?
    .execute(params![key.as_bytes(), ms(now)])
    .and_then(one_row)?;
    attempts::append(tx, &Entry::new(key, operation.attempts, now, "accepted-offline"))?;
    by_key(tx, key)?.ok_or(AcceptError::Unknown)
}
