//! A payment that the lost file made, and the sale here that it pays. What pays none as things stand is kept with the number of its sale:
//! it is tried again when a payment of that sale turns out not to have paid, and until then nobody pays for the sale.

use super::names::named;
use crate::{
    SaleState, TenderKind, TenderState, TillError, acknowledging, amounts::format_amount, audit, audit::Signature,
    clock, columns, doctor::BankPayment, late, late::LateRow, lines, pay, sale, sales, sales::SaleRow, tenders,
    tenders::TenderRow,
};
use outbox::{BankIdentity, CancelAs, CancelError, State};
use protocol::{Outcome, PAYMENTS_PATH};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Value, json};
use uuid::Uuid;

/// What became of a payment of the bank's list.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It stands in the sale of this number now.
    Paid(i64),
    /// It has no place, and why.
    Kept(String),
    /// It was known, or kept, before.
    Nothing,
}

/// Where in this file a payment belongs.
enum Place {
    /// It pays what is due.
    Due(SaleRow),
    /// It pays all that is due of a sale that went back to the cart.
    Cart(SaleRow),
    /// It collects again what was declined late.
    Late(SaleRow, LateRow),
}

/// Whether a payment of the bank's list is one of this till's that the file does not know, or has no place for yet.
pub(crate) fn is_missing(conn: &Connection, payment: &BankPayment) -> Result<bool, TillError> {
    if payment.status != Outcome::Approved || outbox::by_key(conn, &payment.operation)?.is_some() {
        return Ok(false);
    }
    let Some(reference) = payment.reference.as_deref() else { return Ok(false) };
    if named(conn, reference)?.is_none() || is_ended(conn, payment)? {
        return Ok(false);
    }
    // Somebody may have said what became of it before the copy was made.
    Ok(acknowledging::find(&acknowledging::all(conn)?, payment).is_none())
}

fn is_ended(conn: &Connection, payment: &BankPayment) -> Result<bool, TillError> {
    Ok(conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM unmatched_payments WHERE payment_id = ?1 AND ended IS NOT NULL)")?
        .query_row([&payment.id], |row| row.get(0))?)
}

/// Takes a payment over that the lost file made: its sale is paid by it, as it was there. One that has no place is kept.
pub(crate) fn take_over(
    tx: &Connection,
    signature: &Signature,
    payment: &BankPayment,
    bank: &BankIdentity,
) -> Result<Taken, TillError> {
    if !is_missing(tx, payment)? {
        return Ok(Taken::Nothing);
    }
    match place(tx, payment)? {
        Ok(place) => Ok(Taken::Paid(put(tx, signature, place, payment, bank)?)),
        Err(why) => keep(tx, signature, payment, bank, why),
    }
}

/// The sale of a number that a payment was put into.
pub(crate) fn sale_id(conn: &Connection, number: i64) -> Result<Option<Uuid>, TillError> {
    let found = conn
        .prepare_cached("SELECT id FROM sales WHERE number = ?1")?
        .query_row([number], |row| columns::uuid(row, 0))
        .optional()?;
    Ok(found)
}

fn number_here(conn: &Connection, payment: &BankPayment) -> Result<Option<i64>, TillError> {
    let named = named(conn, payment.reference.as_deref().unwrap_or_default())?;
    Ok(named.filter(|named| named.is_here).and_then(|named| named.number))
}

fn sale_here(conn: &Connection, payment: &BankPayment) -> Result<Option<SaleRow>, TillError> {
    let Some(number) = number_here(conn, payment)? else { return Ok(None) };
    sale_id(conn, number)?.map(|id| sales::by_id(conn, id)).transpose()
}

/// The place of a payment, or why it has none.
fn place(conn: &Connection, payment: &BankPayment) -> Result<Result<Place, &'static str>, TillError> {
    let reference = payment.reference.as_deref().unwrap_or_default();
    if named(conn, reference)?.is_none_or(|named| named.number.is_none()) {
        return Ok(Err("its reference names no sale"));
    }
    let Some(sale) = sale_here(conn, payment)? else { return Ok(Err("this file has no sale of that number")) };
    if sale.currency != payment.currency {
        return Ok(Err("its sale is in another currency"));
    }
    let amount = payment.amount.get();
    let others = tenders::of_sale(conn, sale.id)?;
    match (sale.state, sale.frozen) {
        (SaleState::Paying, Some(frozen)) => {
            let fits = amount <= sale::balance(&sale, frozen.total, &others)?.rest;
            Ok(if fits { Ok(Place::Due(sale)) } else { Err("it is more than is due on that sale") })
        }
        (SaleState::Open, _) => {
            let line_rows = lines::of_sale(conn, sale.id)?;
            // A part of it says nothing of what the rest was paid with, or of what was in the cart by then.
            let fits = !line_rows.is_empty() && sale::figures(conn, &sale, &line_rows)?.total == amount;
            Ok(if fits {
                Ok(Place::Cart(sale))
            } else {
                Err("that sale went back to the cart, and comes to another amount")
            })
        }
        (SaleState::Completed, _) => {
            let owed = late::open_of_sale(conn, sale.id)?.into_iter().find(|late| late.amount == amount);
            Ok(owed
                .map(|late| Place::Late(sale, late))
                .ok_or("this file has no sale of that number that waits to be paid"))
        }
        _ => Ok(Err("that sale was given up")),
    }
}

fn put(
    tx: &Connection,
    signature: &Signature,
    place: Place,
    payment: &BankPayment,
    bank: &BankIdentity,
) -> Result<i64, TillError> {
    let (sale, late) = match place {
        Place::Due(sale) => (sale, None),
        Place::Cart(sale) => (pay::under_payment(tx, signature, sale)?, None),
        Place::Late(sale, late) => (sale, Some(late)),
    };
    let number = sale.number.ok_or_else(|| TillError::Internal("a sale under payment has no number".to_owned()))?;
    let others = tenders::of_sale(tx, sale.id)?;
    let tender = TenderRow {
        id: clock::id_at(signature.at),
        sale_id: sale.id,
        position: pay::next_position(&others),
        kind: TenderKind::Card,
        state: TenderState::Settling,
        amount: payment.amount.get(),
        tendered: None,
        change: None,
        reference: payment.reference.clone(),
        replaces: late.as_ref().map_or_else(|| tenders::to_replace(&others), |late| Some(late.last_tender_id)),
        collects: late.as_ref().map(|late| late.tender_id),
        created_at: signature.at,
        taken_offline_at: None,
    };
    insert_operation(tx, signature, &tender, payment, bank)?;
    tenders::insert(tx, &tender)?;
    if let Some(late) = &late {
        late::collected_elsewhere(tx, signature, late, tender.id)?;
    }
    let operation = outbox::by_key(tx, &payment.operation)?
        .ok_or_else(|| TillError::Internal("what was just taken over is not there".to_owned()))?;
    end(tx, signature, &payment.id, "matched")?;
    let details = json!({
        "sale": number, "key": payment.operation, "amount": payment.amount, "bank_reference": payment.id,
        "collects": tender.collects,
    });
    audit::append(tx, signature, "payment-taken-over", Some(sale.id), &details)?;
    pay::settled(tx, signature, &operation)?;
    Ok(number)
}

/// Keeps a payment that has no place. An open payment of the same sale stands in its way, and is not to charge the card as well: only its
/// cancellation goes out from now on, and the bank says how it ended.
fn keep(
    tx: &Connection,
    signature: &Signature,
    payment: &BankPayment,
    bank: &BankIdentity,
    why: &str,
) -> Result<Taken, TillError> {
    let reference = payment.reference.clone().unwrap_or_default();
    let sale = sale_here(tx, payment)?;
    let kept = tx
        .prepare_cached(
            "INSERT INTO unmatched_payments (payment_id, key, reference, sale_number, payment, bank_id, merchant, found_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            payment.id,
            payment.operation.as_bytes(),
            reference,
            sale.as_ref().and_then(|sale| sale.number),
            payment.whole.to_string(),
            bank.bank_id.as_bytes(),
            bank.merchant,
            signature.at.as_millisecond()
        ])?;
    if kept == 0 {
        return Ok(Taken::Nothing);
    }
    let details = json!({
        "payment": payment.id, "key": payment.operation, "amount": payment.amount, "currency": payment.currency,
        "reference": reference, "why": why,
    });
    audit::append(tx, signature, "payment-without-place", sale.as_ref().map(|sale| sale.id), &details)?;
    if let Some(sale) = &sale {
        cancel_open(tx, signature, sale.id)?;
        if is_ended(tx, payment)? {
            return Ok(Taken::Paid(sale.number.unwrap_or_default()));
        }
    }
    Ok(Taken::Kept(format!(
        "payment {} of {} {} for {reference}, key {}: {why}",
        payment.id,
        format_amount(payment.amount.get(), payment.currency),
        payment.currency,
        payment.operation
    )))
}

fn cancel_open(tx: &Connection, signature: &Signature, sale_id: Uuid) -> Result<(), TillError> {
    for tender in tenders::of_sale(tx, sale_id)? {
        let operation = outbox::by_intent(tx, tender.id)?;
        let is_open =
            |operation: &outbox::Operation| matches!(operation.state, State::Saved | State::Sending | State::Unknown);
        let Some(operation) = operation.filter(is_open) else { continue };
        // Also where the goods were handed over: the lost file took another payment for them.
        let cancelled = outbox::cancel(tx, &operation.key, CancelAs::WriteOff, signature.at);
        let cancelled = cancelled.map_err(|error| match error {
            CancelError::Sqlite(error) => error.into(),
            error => TillError::Internal(error.to_string()),
        })?;
        if !cancelled.changed {
            continue;
        }
        let operation = cancelled.operation;
        let details = json!({
            "key": operation.key, "short_code": operation.short_code, "kind": operation.kind, "state": operation.state,
        });
        audit::append(tx, signature, "cancel-wished", Some(sale_id), &details)?;
        for operation in std::iter::once(&operation).chain(&cancelled.refunds) {
            pay::settled(tx, signature, operation)?;
        }
    }
    Ok(())
}

/// A payment of this sale has turned out not to have paid: what was kept for it may have its place now.
pub(crate) fn match_again(tx: &Connection, signature: &Signature, sale_id: Uuid) -> Result<(), TillError> {
    let mut statement = tx.prepare_cached(
        "SELECT payment, bank_id, merchant FROM sales CROSS JOIN unmatched_payments AS kept ON kept.sale_number = sales.number
         WHERE sales.id = ?1 AND kept.ended IS NULL ORDER BY kept.found_at, kept.payment_id",
    )?;
    let rows = statement.query_map([sale_id.to_string()], |row| {
        Ok((columns::json(row, 0)?, row.get::<_, [u8; 16]>(1)?, row.get::<_, String>(2)?))
    })?;
    let kept: Vec<(Value, [u8; 16], String)> = rows.collect::<Result<_, _>>()?;
    for (whole, bank_id, merchant) in kept {
        let payment = BankPayment::read(whole)
            .map_err(|error| TillError::Internal(format!("a payment that was kept can't be read: {error}")))?;
        let bank = BankIdentity { bank_id: Uuid::from_bytes(bank_id), merchant };
        if outbox::by_key(tx, &payment.operation)?.is_none()
            && let Ok(place) = place(tx, &payment)?
        {
            put(tx, signature, place, &payment, &bank)?;
        }
    }
    Ok(())
}

/// Somebody said what became of a payment: it holds its sale up no more.
pub(crate) fn acknowledged(tx: &Connection, signature: &Signature, payment: &BankPayment) -> Result<(), TillError> {
    end(tx, signature, &payment.id, "acknowledged")
}

fn end(tx: &Connection, signature: &Signature, payment_id: &str, how: &str) -> Result<(), TillError> {
    tx.prepare_cached(
        "UPDATE unmatched_payments SET ended = ?2, ended_at = ?3 WHERE payment_id = ?1 AND ended IS NULL",
    )?
    .execute(params![payment_id, how, signature.at.as_millisecond()])?;
    Ok(())
}

/// The operation of a payment that another file sent. Its bytes went with that file: what stands here names what was asked, and is
/// never sent, because it has its end.
fn insert_operation(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    payment: &BankPayment,
    bank: &BankIdentity,
) -> Result<(), TillError> {
    let asked = json!({"amount": payment.amount.get(), "currency": payment.currency, "reference": payment.reference});
    let result: &Value = &payment.whole;
    let (key, now) = (payment.operation, signature.at.as_millisecond());
    tx.prepare_cached(
        "INSERT INTO operations (key, intent_id, replaces, lane, kind, method, path, body, body_version, amount, currency, state, ask,
             attempts, result, bank_id, merchant, created_at, updated_at, settled_at)
         VALUES (?1, ?2, ?3, ?4, 'payment', 'POST', ?5, ?6, 1, ?7, ?8, 'approved', 'look_up', 0, ?9, ?10, ?11, ?12, ?12, ?12)",
    )?
    .execute(params![
        key.as_bytes(),
        tender.id.as_bytes(),
        tender.replaces.as_ref().map(Uuid::as_bytes),
        tender.sale_id.to_string(),
        PAYMENTS_PATH,
        asked.to_string().as_bytes(),
        payment.amount.get(),
        payment.currency.code(),
        result.to_string(),
        bank.bank_id.as_bytes(),
        bank.merchant,
        now
    ])?;
    tx.execute(
        "INSERT INTO attempts (key, attempt, at, event, reading, detail) VALUES (?1, 0, ?2, 'answer', 'approved', ?3)",
        params![key.as_bytes(), now, "found in the bank's list after the file was restored"],
    )?;
    Ok(())
}
