//! Payments of the bank's that no sale of this file can have, such as those of sales that were rung up after a copy which was brought
//! back: looked at by a person, and from then on known. They stand in the audit, nothing is owed or paid by it, and the sale that one of them
//! held up is free.

use crate::{
    Measure, Right, TillError, audit, audit::Signature, doctor, doctor::BankPayment, editing, restore, rights,
};
use protocol::Outcome;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::collections::HashMap;

/// What the entry is called.
const WHAT: &str = "bank-payment-known";

/// What is known of a payment: another amount under the same id would be another payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    details: Value,
}

impl Known {
    fn is(&self, payment: &BankPayment) -> bool {
        let same = |member: &str, value: Value| self.details.get(member) == Some(&value);
        same("key", json!(payment.operation))
            && same("amount", json!(payment.amount))
            && same("currency", json!(payment.currency))
            && same("approved", json!(payment.status == Outcome::Approved))
    }

    /// Why it was taken for known.
    pub(crate) fn reason(&self) -> &str {
        self.details.get("reason").and_then(Value::as_str).unwrap_or_default()
    }
}

/// What the audit has of known payments up to one of its entries.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    known: HashMap<String, Known>,
    up_to: i64,
}

/// Reads the whole audit for them: of a file of many years that takes its time, and nobody may wait for it who writes.
pub(crate) fn read(conn: &Connection) -> Result<Read, TillError> {
    Ok(Read { up_to: audit::end(conn)?, known: all(conn)? })
}

/// The payments that are known, by their ids.
pub(crate) fn all(conn: &Connection) -> Result<HashMap<String, Known>, TillError> {
    since(conn, 0)
}

/// Those that the audit has after one of its entries.
fn since(conn: &Connection, after: i64) -> Result<HashMap<String, Known>, TillError> {
    let mut statement = conn.prepare("SELECT details FROM audit WHERE seq > ?2 AND what = ?1 ORDER BY seq")?;
    let rows = statement.query_map(params![WHAT, after], |row| crate::columns::json(row, 0))?;
    let mut known = HashMap::new();
    for details in rows {
        let details: Value = details?;
        if let Some(id) = details.get("payment").and_then(Value::as_str) {
            known.insert(id.to_owned(), Known { details: details.clone() });
        }
    }
    Ok(known)
}

/// The one of them that this payment is, if any.
pub(crate) fn find<'a>(known: &'a HashMap<String, Known>, payment: &BankPayment) -> Option<&'a Known> {
    known.get(&payment.id).filter(|known| known.is(payment))
}

/// Takes a payment for known, with what was read of the audit before. The same again changes nothing, also where it came meanwhile.
pub(crate) fn acknowledge(
    tx: &Connection,
    signature: &Signature,
    payment: &BankPayment,
    reason: &str,
    read: &Read,
) -> Result<(), TillError> {
    let signature = &rights::allow(tx, signature, Right::Restore, Measure::Whole)?;
    let reason = editing::needed_reason(reason)?;
    let later = since(tx, read.up_to)?;
    let known = if later.contains_key(&payment.id) { &later } else { &read.known };
    if find(known, payment).is_some() {
        return restore::acknowledged(tx, signature, payment);
    }
    if doctor::payment(tx, &restore::names(tx)?, payment)?.is_none() {
        return Err(TillError::NotFound("payment that only the bank knows"));
    }
    let details = json!({
        "payment": payment.id, "key": payment.operation, "amount": payment.amount, "currency": payment.currency,
        "reference": payment.reference, "approved": payment.status == Outcome::Approved, "reason": reason,
    });
    audit::append(tx, signature, WHAT, None, &details)?;
    restore::acknowledged(tx, signature, payment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Till;
    use jiff::Timestamp;
    use serde_json::json;
    use store::Priority;

    #[tokio::test]
    async fn two_at_once_make_one_entry_and_the_writer_reads_what_came_meanwhile_alone() -> Result<(), TillError> {
        let dir = tempfile::tempdir().map_err(TillError::Export)?;
        let till = Till::open(&dir.path().join("data"))?;
        let payment = json!({"id": "pay_1", "status": "approved", "amount": 185, "currency": "EUR", "reference": "till-1/9",
            "operation": "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b", "created_at": "2026-11-30T09:00:00Z"});
        let payment = BankPayment::read(payment).map_err(|error| TillError::Internal(error.to_string()))?;
        let known = async |read: Read| {
            let payment = payment.clone();
            let signature = Signature::of_program("test", Timestamp::now());
            let write = move |tx: &Connection| acknowledge(tx, &signature, &payment, "known", &read);
            till.inner
                .store
                .write(Priority::Click, write)
                .await
                .map_err(|error| TillError::Internal(format!("{error:?}")))
        };
        let entries = async || till.read(audit::end).await;
        let before = entries().await?;
        let (one, other) = (till.read(read).await?, till.read(read).await?);
        known(one).await?;
        known(other).await?;
        assert_eq!(entries().await?, before + 1, "both had read the audit before either wrote");
        known(till.read(read).await?).await?;
        assert_eq!(entries().await?, before + 1);
        // What was not read before, and is not from after it, is not looked for.
        known(Read { known: HashMap::new(), up_to: before + 1 }).await?;
        assert_eq!(entries().await?, before + 2);
        Ok(())
    }
}
