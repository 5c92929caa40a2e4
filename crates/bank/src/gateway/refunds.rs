//! Giving money back, in part, or in whole as a reversal.

use crate::{
    gateway::{
        accounts,
        wire::{Moved, RefundRequest},
    },
    ids,
};
use idempotency::{Begin, Claim};
use protocol::Outcome;
use rusqlite::{Connection, OptionalExtension};

/// A charge, as far as a refund needs it.
struct Charge {
    operation: i64,
    currency: String,
    account: Option<u8>,
}

fn charge(connection: &Connection, reference: &str) -> rusqlite::Result<Option<Charge>> {
    connection
        .prepare_cached(
            "SELECT operation, currency, account FROM charges WHERE reference = ?1 AND status = 'approved'
             ORDER BY operation DESC LIMIT 1",
        )?
        .query_row([reference], |row| {
            Ok(Charge { operation: row.get(0)?, currency: row.get(1)?, account: row.get(2)? })
        })
        .optional()
}

/// Moves the money back, or doesn't, in the claim's own commit.
pub(crate) fn begin(tx: &Connection, claim: Claim, request: &RefundRequest) -> rusqlite::Result<Begin> {
    let Some(charge) = charge(tx, &request.charge)? else {
        return Ok(Begin::Refused("no approved charge has this reference"));
    };
    let amount = request.amount.get();
    let decline_code = if charge.currency == request.currency.code() {
        let taken = tx
            .prepare_cached(
                "UPDATE charges SET refunded = refunded + ?2 WHERE operation = ?1 AND refunded + ?2 <= amount",
            )?
            .execute((charge.operation, amount))?;
        (taken == 0).then_some("exceeds_refundable")
    } else {
        Some("other_currency")
    };
    if let (None, Some(account)) = (decline_code, charge.account) {
        accounts::give_back(tx, account, &charge.currency, amount)?;
    }
    let refund = Moved {
        id: ids::new_id("rf", claim.created_at),
        status: if decline_code.is_none() { Outcome::Approved } else { Outcome::Declined },
        amount: request.amount,
        currency: request.currency,
        reference: request.reference.clone(),
        card: None,
        approval_code: None,
        decline_code: decline_code.map(str::to_owned),
    };
    tx.prepare_cached(
        "INSERT INTO refunds (operation, id, charge, reference, status, amount, currency, decline_code, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        claim.id,
        &refund.id,
        charge.operation,
        &refund.reference,
        super::word(refund.status),
        amount,
        refund.currency.code(),
        &refund.decline_code,
        claim.created_at.as_millisecond(),
    ))?;
    super::settled(&refund, super::wire::REFUNDS_PATH)
}

/// The refund of that reference, as it was answered.
pub(crate) fn by_reference(connection: &Connection, reference: &str) -> rusqlite::Result<Option<Moved>> {
    connection
        .prepare_cached(
            "SELECT id, status, amount, currency, reference, NULL, decline_code FROM refunds WHERE reference = ?1
             ORDER BY operation DESC LIMIT 1",
        )?
        .query_row([reference], super::moved)
        .optional()
}
