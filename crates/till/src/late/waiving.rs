//! Goods that come back of what nobody has paid: they lower what is owed, or make up for the loss, and no money goes back for them.

use super::{
    LateState, note,
    rows::{LateRow, of_late, of_sale},
};
use crate::{TillError, audit::Signature, offline, refunds};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use uuid::Uuid;

/// What of a return one late decline takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waived {
    /// The tender that was taken offline.
    tender_id: Uuid,
    pub(crate) amount: i64,
    /// What is still owed, or lost and not back, after it.
    rest: i64,
    /// It was written off before: the loss stays booked as it was.
    was_lost: bool,
}

/// How the late declines of a sale share in what comes back of it.
pub(crate) struct Shared {
    /// Those that take a part which nobody paid: the owed ones before those that were written off, each from the oldest on.
    pub(crate) waived: Vec<Waived>,
    /// What is left of the return.
    pub(crate) rest: i64,
    /// The tenders of which the bank has not said whether they pay what may be owed: what is left goes to them first, and waits with them.
    pub(crate) in_doubt: Vec<Uuid>,
}

/// Shares out what comes back. Who owes for goods gets no money for others of the same sale: first the debt goes down, then the loss, then
/// what may still be either.
///
/// # Errors
/// [`TillError::CardMayBeCharged`] where a part falls on a payment that is being cancelled, which can give nothing back and may have paid.
pub(crate) fn share(conn: &Connection, sale_id: Uuid, total: i64) -> Result<Shared, TillError> {
    let rows = of_sale(conn, sale_id)?;
    let (mut waived, mut rest) = (Vec::new(), total);
    for state in [LateState::Open, LateState::WrittenOff] {
        for row in rows.iter().filter(|row| row.state == state) {
            let left = row.amount - if state == LateState::WrittenOff { made_up_for(conn, row)? } else { 0 };
            let amount = left.min(rest);
            if amount > 0 {
                rest -= amount;
                let was_lost = state == LateState::WrittenOff;
                waived.push(Waived { tender_id: row.tender_id, amount, rest: left - amount, was_lost });
            }
        }
    }
    let in_doubt = rows
        .iter()
        .filter(|row| matches!(row.state, LateState::WritingOff | LateState::Attention | LateState::Collecting));
    let in_doubt: Vec<Uuid> = in_doubt.map(|row| row.last_tender_id).collect();
    if rest > 0 {
        in_doubt.iter().try_for_each(|tender_id| check_to_wait(conn, *tender_id))?;
    }
    Ok(Shared { waived, rest, in_doubt })
}

/// Whether a refund can wait for a payment: not where that is being cancelled, unless nothing of it is left.
fn check_to_wait(conn: &Connection, tender_id: Uuid) -> Result<(), TillError> {
    let tender = offline::card_tender(conn, tender_id)?;
    if offline::of_tender(conn, &tender)?.cancel_wished_at.is_none() || refunds::left_of(conn, &tender)? == 0 {
        return Ok(());
    }
    Err(TillError::CardMayBeCharged(
        "a payment of this sale is being given up, and the bank has not said whether it charged: wait for its answer, then take the goods \
         back"
            .to_owned(),
    ))
}

/// What came back against a loss so far.
fn made_up_for(conn: &Connection, row: &LateRow) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached("SELECT coalesce(sum(amount), 0) FROM return_waived WHERE tender_id = ?1 AND was_lost = 1")?
        .query_row([row.tender_id.to_string()], |row| row.get(0))?)
}

/// Saves what is waived of a return, before the return itself, and gives it for the audit.
pub(crate) fn begin(tx: &Connection, return_id: Uuid, waived: &[Waived]) -> Result<Value, TillError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO return_waived (return_id, tender_id, amount, rest, was_lost) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut said = Vec::with_capacity(waived.len());
    for Waived { tender_id, amount, rest, was_lost } in waived {
        insert.execute(params![return_id.to_string(), tender_id.to_string(), amount, rest, was_lost])?;
        said.push(json!({"tender": tender_id, "amount": amount, "rest": rest, "was_lost": was_lost}));
    }
    Ok(said.into())
}

/// Writes into the audit which late declines a return has lowered. The file itself lowers them, in the return's own commit.
pub(crate) fn lowered(
    tx: &Connection,
    signature: &Signature,
    return_id: Uuid,
    waived: &[Waived],
) -> Result<(), TillError> {
    for Waived { tender_id, .. } in waived.iter().filter(|waived| !waived.was_lost) {
        let (row, tender) = (of_late(tx, *tender_id)?, offline::card_tender(tx, *tender_id)?);
        let details = json!({"amount": row.amount, "returned": row.returned, "return": return_id});
        note(tx, signature, &tender, Some(LateState::Open), row.state, details)?;
    }
    Ok(())
}

/// What of a return goes back to nobody, as it was never paid, in minor units.
pub(crate) fn of_return(conn: &Connection, return_id: Uuid) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached("SELECT coalesce(sum(amount), 0) FROM return_waived WHERE return_id = ?1")?
        .query_row([return_id.to_string()], |row| row.get(0))?)
}
