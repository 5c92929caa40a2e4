//! Payments: what the file holds of them.

use crate::acquirer::{calls, ledger, names::Purpose};
use jiff::Timestamp;
use protocol::{Amount, Card, Currency, Outcome, Payment};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

/// Columns in the order in which [`read`] takes them.
const SELECT: &str = "SELECT p.id, p.status, p.amount, p.currency, p.brand, p.last4, p.reference, p.approval_code, p.decline_code, o.key,
                             o.created_ms, p.operation
                      FROM payments p JOIN operations o ON o.id = p.operation";

/// Stores a payment with its ledger entry.
pub(crate) fn insert(tx: &Connection, operation: i64, merchant: &str, payment: &Payment) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO payments (operation, id, merchant, status, amount, currency, brand, last4, reference, approval_code, decline_code)
         VALUES (:operation, :id, :merchant, :status, :amount, :currency, :brand, :last4, :reference, :approval_code, :decline_code)",
    )?
    .execute(named_params! {
        ":operation": operation, ":id": payment.id, ":merchant": merchant, ":status": word(payment.status),
        ":amount": payment.amount.get(), ":currency": payment.currency.code(),
        ":brand": payment.card.as_ref().map(|card| &card.brand), ":last4": payment.card.as_ref().map(|card| &card.last4),
        ":reference": payment.reference, ":approval_code": payment.approval_code, ":decline_code": payment.decline_code,
    })?;
    if payment.status == Outcome::Approved {
        ledger::post(tx, operation, Purpose::Charge, merchant, payment.currency, payment.amount.get())?;
    }
    Ok(())
}

/// The payment that an operation made.
pub(crate) fn by_operation(connection: &Connection, operation: i64) -> rusqlite::Result<Option<Payment>> {
    connection.prepare_cached(&format!("{SELECT} WHERE p.operation = ?1"))?.query_row([operation], read).optional()
}

/// A merchant's payment of that id.
pub(crate) fn by_id(connection: &Connection, merchant: &str, id: &str) -> rusqlite::Result<Option<Payment>> {
    connection
        .prepare_cached(&format!("{SELECT} WHERE p.id = ?1 AND p.merchant = ?2"))?
        .query_row((id, merchant), read)
        .optional()
}

/// The place of a payment in its merchant's list.
pub(crate) fn place(connection: &Connection, merchant: &str, id: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT operation FROM payments WHERE id = ?1 AND merchant = ?2")?
        .query_row((id, merchant), |row| row.get(0))
        .optional()
}

/// A merchant's payments before a place, newest first.
pub(crate) fn list(connection: &Connection, merchant: &str, before: i64, limit: u32) -> rusqlite::Result<Vec<Payment>> {
    connection
        .prepare_cached(&format!(
            "{SELECT} WHERE p.merchant = ?1 AND p.operation < ?2 ORDER BY p.operation DESC LIMIT ?3"
        ))?
        .query_map((merchant, before, limit), read)?
        .collect()
}

/// The word for an outcome in the file and in the engine.
pub(crate) const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Approved => "approved",
        Outcome::Declined => "declined",
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Payment> {
    let key = calls::key(row, 9)?;
    Ok(Payment {
        id: row.get(0)?,
        status: outcome(&row.get::<_, String>(1)?),
        amount: amount(row, 2)?,
        currency: currency(row, 3)?,
        card: match (row.get(4)?, row.get(5)?) {
            (Some(brand), Some(last4)) => Some(Card { brand, last4 }),
            _ => None,
        },
        reference: row.get(6)?,
        approval_code: row.get(7)?,
        decline_code: row.get(8)?,
        operation: key,
        short_code: key.short_code(),
        created_at: time(row, 10)?,
    })
}

/// Reads an outcome; the file holds no other words.
pub(crate) fn outcome(word: &str) -> Outcome {
    if word == self::word(Outcome::Approved) { Outcome::Approved } else { Outcome::Declined }
}

/// Reads an amount out of a column.
pub(crate) fn amount(row: &Row<'_>, column: usize) -> rusqlite::Result<Amount> {
    Amount::new(row.get(column)?).map_err(|error| broken(column, error))
}

/// Reads a currency out of a column.
pub(crate) fn currency(row: &Row<'_>, column: usize) -> rusqlite::Result<Currency> {
    Currency::parse(&row.get::<_, String>(column)?).map_err(|error| broken(column, error))
}

/// Reads a time out of a column.
pub(crate) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(row.get(column)?).map_err(|error| broken(column, error))
}

fn broken(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}
