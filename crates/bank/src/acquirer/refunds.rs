//! Refunds: what the file holds of them. A refund is there from its claim on, so that what runs is taken from
//! what is left.

use crate::acquirer::{
    calls, ledger,
    names::Purpose,
    payments::{amount, currency, outcome, time, word},
};
use protocol::{Amount, Currency, Key, Outcome, Refund};
use rusqlite::{Connection, OptionalExtension};

/// The payment behind a refund.
#[derive(Debug, Clone)]
pub(crate) struct Refunded {
    pub(crate) operation: i64,
    pub(crate) id: String,
    pub(crate) currency: Currency,
    /// The key of the payment.
    pub(crate) key: Key,
}

/// A merchant's payment, as far as a refund needs it.
pub(crate) fn payment(connection: &Connection, merchant: &str, id: &str) -> rusqlite::Result<Option<Refunded>> {
    connection
        .prepare_cached(
            "SELECT p.operation, p.id, p.currency, o.key FROM payments p JOIN operations o ON o.id = p.operation
             WHERE p.id = ?1 AND p.merchant = ?2",
        )?
        .query_row((id, merchant), |row| {
            Ok(Refunded {
                operation: row.get(0)?,
                id: row.get(1)?,
                currency: currency(row, 2)?,
                key: calls::key(row, 3)?,
            })
        })
        .optional()
}

/// Whether so much is left of a payment, with running refunds taken off.
pub(crate) fn is_left(tx: &Connection, payment: i64, wanted: Amount) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT p.status = 'approved'
                AND p.amount - (SELECT coalesce(sum(r.amount), 0) FROM refunds r
                                WHERE r.payment = p.operation AND r.status IN ('processing', 'approved')) >= ?2
         FROM payments p WHERE p.operation = ?1",
    )?
    .query_row((payment, wanted.get()), |row| row.get(0))
}

/// Stores a refund that runs.
pub(crate) fn insert(
    tx: &Connection,
    operation: i64,
    merchant: &str,
    payment: i64,
    refund: &Refund,
) -> rusqlite::Result<()> {
    let status = match refund.decline_code {
        Some(_) => word(Outcome::Declined),
        None => "processing",
    };
    tx.prepare_cached(
        "INSERT INTO refunds (operation, id, merchant, payment, status, amount, decline_code) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((operation, &refund.id, merchant, payment, status, refund.amount.get(), &refund.decline_code))
    .map(|_| ())
}

/// Stores how a refund ended, with its ledger entry.
pub(crate) fn settle(tx: &Connection, operation: i64, merchant: &str, refund: &Refund) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE refunds SET status = ?2, decline_code = ?3 WHERE operation = ?1")?.execute((
        operation,
        word(refund.status),
        &refund.decline_code,
    ))?;
    if refund.status == Outcome::Approved {
        ledger::post(tx, operation, Purpose::Refund, merchant, refund.currency, refund.amount.get())?;
    }
    Ok(())
}

/// Stores that a refund was cancelled: it takes nothing from what is left any more.
pub(crate) fn cancel(tx: &Connection, operation: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE refunds SET status = 'cancelled' WHERE operation = ?1")?.execute([operation]).map(|_| ())
}

/// Columns in the order in which [`read`] takes them.
const SELECT: &str = "SELECT r.id, r.status, p.id, r.amount, p.currency, r.decline_code, o.key, o.created_ms
                      FROM refunds r JOIN payments p ON p.operation = r.payment JOIN operations o ON o.id = r.operation";

/// The refund that an operation made, or is making: then its status says nothing yet.
pub(crate) fn by_operation(connection: &Connection, operation: i64) -> rusqlite::Result<Option<Refund>> {
    connection.prepare_cached(&format!("{SELECT} WHERE r.operation = ?1"))?.query_row([operation], read).optional()
}

/// A merchant's refund of that id, once it has ended.
pub(crate) fn by_id(connection: &Connection, merchant: &str, id: &str) -> rusqlite::Result<Option<Refund>> {
    connection
        .prepare_cached(&format!(
            "{SELECT} WHERE r.id = ?1 AND r.merchant = ?2 AND r.status IN ('approved', 'declined')"
        ))?
        .query_row((id, merchant), read)
        .optional()
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Refund> {
    let key = calls::key(row, 6)?;
    Ok(Refund {
        id: row.get(0)?,
        status: outcome(&row.get::<_, String>(1)?),
        payment_id: row.get(2)?,
        amount: amount(row, 3)?,
        currency: currency(row, 4)?,
        decline_code: row.get(5)?,
        operation: key,
        short_code: key.short_code(),
        created_at: time(row, 7)?,
    })
}
