//! Charging cards.

use crate::{
    gateway::{
        accounts, cards,
        cards::Told,
        wire::{ChargeRequest, Moved},
    },
    ids,
};
use idempotency::{Begin, Claim};
use protocol::{Card, Outcome};
use rusqlite::{Connection, OptionalExtension, named_params};

/// Moves the money, or doesn't, in the claim's own commit.
pub(crate) fn begin(tx: &Connection, claim: Claim, request: &ChargeRequest) -> rusqlite::Result<Begin> {
    let (account, card, decline_code) = match cards::read(&request.card, request.offline) {
        Told::Approves(card) => (None, Some(card), None),
        Told::Declines(code, card) => (None, card, Some(code)),
        Told::DrawsOn(number, card) => {
            let drawn = accounts::draw(tx, number, request.currency, request.amount.get())?;
            (Some(number), Some(card), (!drawn).then_some("insufficient_funds"))
        }
    };
    let charge = Moved {
        id: ids::new_id("ch", claim.created_at),
        status: if decline_code.is_none() { Outcome::Approved } else { Outcome::Declined },
        amount: request.amount,
        currency: request.currency,
        reference: request.reference.clone(),
        card,
        approval_code: decline_code.is_none().then(ids::approval_code),
        decline_code: decline_code.map(str::to_owned),
    };
    insert(tx, claim, &charge, account)?;
    super::settled(&charge, super::wire::CHARGES_PATH)
}

fn insert(tx: &Connection, claim: Claim, charge: &Moved, account: Option<u8>) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO charges (operation, id, reference, status, amount, currency, account, brand, last4, approval_code,
                              decline_code, created_ms)
         VALUES (:operation, :id, :reference, :status, :amount, :currency, :account, :brand, :last4, :approval_code,
                 :decline_code, :created_ms)",
    )?
    .execute(named_params! {
        ":operation": claim.id, ":id": charge.id, ":reference": charge.reference, ":status": super::word(charge.status),
        ":amount": charge.amount.get(), ":currency": charge.currency.code(), ":account": account,
        ":brand": charge.card.as_ref().map(|card| &card.brand), ":last4": charge.card.as_ref().map(|card| &card.last4),
        ":approval_code": charge.approval_code, ":decline_code": charge.decline_code, ":created_ms": claim.created_at.as_millisecond(),
    })
    .map(|_| ())
}

/// The charge of that reference, as it was answered.
pub(crate) fn by_reference(connection: &Connection, reference: &str) -> rusqlite::Result<Option<Moved>> {
    connection
        .prepare_cached(
            "SELECT id, status, amount, currency, reference, approval_code, decline_code, brand, last4
             FROM charges WHERE reference = ?1 ORDER BY operation DESC LIMIT 1",
        )?
        .query_row([reference], |row| {
            let mut charge = super::moved(row)?;
            charge.card = match (row.get(7)?, row.get(8)?) {
                (Some(brand), Some(last4)) => Some(Card { brand, last4 }),
                _ => None,
            };
            Ok(charge)
        })
        .optional()
}
