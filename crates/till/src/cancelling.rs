//! Cancelling an operation: at once where it was never sent, else as a wish that is brought to the bank.

use crate::{Measure, Operation, Right, TillError, audit, audit::Signature, operations, pay, rights};
use outbox::{CancelAs, CancelError, Cancelled, State};
use protocol::Key;
use rusqlite::Connection;
use serde_json::json;

/// What a wish to cancel did.
pub(crate) struct Done {
    pub(crate) operation: Operation,
    /// What waited for it and was cancelled with it.
    pub(crate) refunds: Vec<Operation>,
}

/// Saves the wish, or the end where it was never sent, with what it means for the sale.
pub(crate) fn cancel(tx: &Connection, signature: &Signature, key: Key) -> Result<Done, TillError> {
    let before = outbox::by_key(tx, &key)?;
    // The bank did not know what to make of it: whoever gives it up answers for that, as for a payment that is written off.
    let needs_right = before
        .is_some_and(|operation| operation.state == State::NeedsAttention && operation.cancel_wished_at.is_none());
    let signature = &match needs_right {
        true => rights::allow(tx, signature, Right::WriteOff, Measure::Whole)?,
        false => signature.clone(),
    };
    let cancelled = outbox::cancel(tx, &key, CancelAs::Wish, signature.at).map_err(|error| match error {
        CancelError::Unknown => TillError::NotFound("operation"),
        CancelError::Final(operation) => {
            TillError::AlreadyFinal(format!("it can't be cancelled: it is {} already", operation.state))
        }
        CancelError::AcceptedOffline(_) => TillError::AcceptedOffline(
            "it can't be cancelled: its goods were handed over before the bank answered; a manager writes it off"
                .to_owned(),
        ),
        CancelError::Sqlite(error) => error.into(),
    })?;
    let Cancelled { operation, refunds, changed } = cancelled;
    let shown = |operation: &outbox::Operation| operations::show(tx, operation);
    if changed {
        let sale_id = shown(&operation)?.sale_id;
        let details = json!({
            "key": operation.key, "short_code": operation.short_code, "kind": operation.kind, "state": operation.state,
        });
        audit::append(tx, signature, "cancel-wished", Some(sale_id), &details)?;
        for operation in std::iter::once(&operation).chain(&refunds) {
            pay::settled(tx, signature, operation)?;
        }
    }
    let refunds = refunds.iter().map(shown).collect::<Result<_, _>>()?;
    Ok(Done { operation: shown(&operation)?, refunds })
}

/// What a wish did whose commit's outcome was not known, where it did something: none where the wish is not in the file.
pub(crate) fn done(conn: &Connection, key: Key) -> Result<Option<Done>, TillError> {
    let wished = outbox::by_key(conn, &key)?
        .filter(|operation| operation.state == State::Cancelled || operation.cancel_wished_at.is_some());
    let Some(operation) = wished else { return Ok(None) };
    let refunds = outbox::refunds_of(conn, &key)?;
    let refunds = refunds.iter().filter(|refund| refund.state == State::Cancelled);
    let refunds = refunds.map(|refund| operations::show(conn, refund)).collect::<Result<_, _>>()?;
    Ok(Some(Done { operation: operations::show(conn, &operation)?, refunds }))
}
