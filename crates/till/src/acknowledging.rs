//! Payments of the bank's that no sale of this file can have, such as those of sales that were rung up after a copy which was brought
//! back: looked at by a person, and from then on known. They stand in the audit, nothing is owed or paid by it, and the sale that one of them
//! held up is free.

use crate::{
    Measure, Right, TillError, audit, audit::Signature, doctor, doctor::BankPayment, editing, restore, rights,
};
use protocol::Outcome;
use rusqlite::Connection;
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

/// The payments that are known, by their ids.
pub(crate) fn all(conn: &Connection) -> Result<HashMap<String, Known>, TillError> {
    let mut statement = conn.prepare("SELECT details FROM audit WHERE what = ?1 ORDER BY seq")?;
    let rows = statement.query_map([WHAT], |row| crate::columns::json(row, 0))?;
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

/// Takes a payment for known. The same again changes nothing.
pub(crate) fn acknowledge(
    tx: &Connection,
    signature: &Signature,
    payment: &BankPayment,
    reason: &str,
) -> Result<(), TillError> {
    let signature = &rights::allow(tx, signature, Right::Restore, Measure::Whole)?;
    let reason = editing::needed_reason(reason)?;
    if find(&all(tx)?, payment).is_some() {
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
