//! Giving up a payment that was taken offline: at once where it is known not to pay, else once the bank says so.

use super::{
    LateDecline, LateState, by_tender, ending, note,
    rows::{LateRow, of_tender},
};
use crate::{
    Measure, Right, TenderState, TillError, audit::Signature, editing, offline, pay, rights, sales, tenders::TenderRow,
};
use outbox::{CancelAs, CancelError};
use rusqlite::{Connection, params};
use serde_json::json;
use uuid::Uuid;

/// Gives a payment up that was taken offline: at once where it is known not to pay; else the bank is told to cancel it, and the loss is
/// there once it says so. The same again changes nothing.
pub(crate) fn write_off(
    tx: &Connection,
    signature: &Signature,
    late_tender_id: Uuid,
    reason: &str,
) -> Result<LateDecline, TillError> {
    let reason = editing::needed_reason(reason)?;
    let tender = offline::card_tender(tx, late_tender_id)?;
    match of_tender(tx, "tender_id", late_tender_id)? {
        Some(row) => match row.state {
            LateState::WrittenOff | LateState::WritingOff => {}
            LateState::Settled => return Err(TillError::AlreadyFinal("nothing is owed any more".to_owned())),
            LateState::Collecting => {
                return Err(TillError::SaleFrozen(
                    "this is being collected: cancel that payment first, or wait for the bank's answer".to_owned(),
                ));
            }
            LateState::Open | LateState::Attention => give_up(tx, signature, &tender, &row, &reason)?,
        },
        None => give_up_before(tx, signature, &tender, &reason)?,
    }
    by_tender(tx, late_tender_id)?.ok_or_else(|| TillError::Internal("a write-off was not saved".to_owned()))
}

fn give_up(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    row: &LateRow,
    reason: &str,
) -> Result<(), TillError> {
    let signature = &rights::allow(tx, signature, Right::WriteOff, Measure::Whole)?;
    let after = if row.state == LateState::Open { LateState::WrittenOff } else { LateState::WritingOff };
    tx.prepare_cached(
        "UPDATE late_declines SET state = ?2, reason = ?3, written_off_by = ?4, ended_at = ?5,
             ended_shift = iif(?5 IS NULL, NULL, (SELECT number FROM shift_now))
         WHERE seq = ?1",
    )?
    .execute(params![
        row.seq,
        after.as_str(),
        reason,
        signature.who(),
        after.is_final().then_some(signature.at.as_millisecond())
    ])?;
    note(tx, signature, tender, Some(row.state), after, json!({"amount": row.amount, "reason": reason}))?;
    if after == LateState::WritingOff { cancel(tx, signature, tender) } else { Ok(()) }
}

/// Gives up what the bank has not answered yet.
fn give_up_before(tx: &Connection, signature: &Signature, tender: &TenderRow, reason: &str) -> Result<(), TillError> {
    let sale = sales::by_id(tx, tender.sale_id)?;
    if tender.taken_offline_at.is_none() || sale.completed_at.is_none() {
        return Err(TillError::NotFound("payment that was taken offline"));
    }
    if !matches!(tender.state, TenderState::Settling | TenderState::NeedsAttention) {
        return Err(TillError::AlreadyFinal("the card has paid: there is nothing to write off".to_owned()));
    }
    let signature = &rights::allow(tx, signature, Right::WriteOff, Measure::Whole)?;
    ending::begin(tx, signature, tender, LateState::WritingOff, 0, Some(reason))?;
    cancel(tx, signature, tender)
}

/// Has the bank told that a payment is not to charge any more, though its goods are gone.
fn cancel(tx: &Connection, signature: &Signature, tender: &TenderRow) -> Result<(), TillError> {
    let operation = offline::of_tender(tx, tender)?;
    let cancelled =
        outbox::cancel(tx, &operation.key, CancelAs::WriteOff, signature.at).map_err(|error| match error {
            CancelError::Sqlite(error) => error.into(),
            error => TillError::AlreadyFinal(error.to_string()),
        })?;
    for operation in std::iter::once(&cancelled.operation).chain(&cancelled.refunds) {
        pay::settled(tx, signature, operation)?;
    }
    Ok(())
}
