//! What the end of a payment means where its goods were gone before: it begins a late decline, or moves one on.

use super::{
    LateState, note,
    rows::{LateRow, of_tender},
};
use crate::{TenderState, TillError, audit::Signature, refunds, sales, tenders::TenderRow};
use rusqlite::{Connection, params};
use serde_json::json;

/// What the end of a card payment, or that it needs a look, means where its goods were gone before. Runs in the commit that stores it.
pub(crate) fn settled(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    state: TenderState,
) -> Result<(), TillError> {
    if tender.taken_offline_at.is_none() && tender.replaces.is_none() {
        return Ok(());
    }
    if let Some(row) = of_tender(tx, "last_tender_id", tender.id)? {
        return moved(tx, signature, tender, &row, state);
    }
    let comes_late = matches!(state, TenderState::Declined | TenderState::Cancelled | TenderState::NeedsAttention);
    let sale = sales::by_id(tx, tender.sale_id)?;
    if tender.taken_offline_at.is_none() || !comes_late || sale.completed_at.is_none() {
        return Ok(());
    }
    let attention = state == TenderState::NeedsAttention;
    let returned = if attention { 0 } else { given_back(tx, tender)? };
    let after = match (attention, tender.amount - returned) {
        (true, _) => LateState::Attention,
        (false, 0) => LateState::Settled,
        (false, _) => LateState::Open,
    };
    begin(tx, signature, tender, after, returned, None)
}

/// A sale completed: what of it needs a look is late from now on.
pub(crate) fn completed(tx: &Connection, signature: &Signature, tenders: &[TenderRow]) -> Result<(), TillError> {
    let attention = tenders.iter().filter(|tender| tender.state == TenderState::NeedsAttention);
    attention.into_iter().try_for_each(|tender| begin(tx, signature, tender, LateState::Attention, 0, None))
}

/// What of a payment was to be given back when its end came: goods that came back before, so that nobody owes for them, also where
/// somebody cancelled that refund. In the commit that stores the end, the open ones are still open; they are cancelled right after.
fn given_back(tx: &Connection, tender: &TenderRow) -> Result<i64, TillError> {
    Ok(tender.amount - refunds::left_of(tx, tender)?)
}

pub(super) fn begin(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    state: LateState,
    returned: i64,
    reason: Option<&str>,
) -> Result<(), TillError> {
    let at = signature.at.as_millisecond();
    let is_declined = matches!(state, LateState::Open | LateState::Settled);
    tx.prepare_cached(
        "INSERT INTO late_declines (tender_id, last_tender_id, state, amount, returned, declined_at, declined_shift, ended_at, ended_shift,
             reason, written_off_by)
         SELECT ?1, ?1, ?2, ?3, ?4, ?5, iif(?5 IS NULL, NULL, number), ?6, iif(?6 IS NULL, NULL, number), ?7, ?8 FROM shift_now",
    )?
    .execute(params![
        tender.id.to_string(),
        state.as_str(),
        tender.amount - returned,
        returned,
        is_declined.then_some(at),
        state.is_final().then_some(at),
        reason,
        reason.map(|_| signature.who())
    ])?;
    note(tx, signature, tender, None, state, json!({"amount": tender.amount - returned, "returned": returned}))
}

/// A step of a late decline whose last payment is now in this state.
fn moved(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    row: &LateRow,
    state: TenderState,
) -> Result<(), TillError> {
    let is_declined = matches!(state, TenderState::Declined | TenderState::Cancelled);
    let returned = if is_declined { given_back(tx, tender)? } else { 0 };
    let left = row.amount - returned;
    let after = match (row.state, state) {
        (LateState::Attention | LateState::Collecting | LateState::WritingOff, TenderState::Approved) => {
            LateState::Settled
        }
        (LateState::Attention | LateState::Collecting | LateState::WritingOff, _) if is_declined && left == 0 => {
            LateState::Settled
        }
        (LateState::Attention | LateState::Collecting, _) if is_declined => LateState::Open,
        (LateState::WritingOff, _) if is_declined => LateState::WrittenOff,
        // It needs a look while it is being collected or given up: that is seen at its operation.
        _ => return Ok(()),
    };
    let at = signature.at.as_millisecond();
    tx.prepare_cached(
        "UPDATE late_declines SET state = ?2, amount = amount - ?3, returned = returned + ?3,
             declined_shift = coalesce(declined_shift, iif(?4 IS NULL, NULL, (SELECT number FROM shift_now))),
             declined_at = coalesce(declined_at, ?4), ended_shift = iif(?5 IS NULL, NULL, (SELECT number FROM shift_now)), ended_at = ?5
         WHERE seq = ?1",
    )?
    .execute(params![
        row.seq,
        after.as_str(),
        returned,
        is_declined.then_some(at),
        after.is_final().then_some(at)
    ])?;
    let details = json!({"amount": left, "returned": row.returned + returned});
    note(tx, signature, tender, Some(row.state), after, details)
}
