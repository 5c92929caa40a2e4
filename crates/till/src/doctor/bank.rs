//! The till's operations and payments against the bank's.

use super::{Finding, money::Money, operations};
use crate::TillError;
use jiff::Timestamp;
use outbox::State;
use protocol::{Amount, Currency, Key, OperationState, Outcome};
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::Value;

/// What the bank says of a key.
#[derive(Debug, Clone)]
pub(crate) enum BankSide {
    /// It knows the key.
    Known(protocol::Operation),
    /// It never saw it.
    Unknown,
}

/// What differs between an operation and what the bank says of it.
pub(crate) fn operation(ours: &outbox::Operation, theirs: &BankSide) -> Option<Finding> {
    let found = |code, what: String| Some(Finding::new(code, operations::subject(ours), what));
    let state = ours.state.as_str();
    let theirs = match theirs {
        BankSide::Known(theirs) => theirs,
        BankSide::Unknown => {
            // What was never sent, or ended before it was, is nothing that a bank could know.
            return match ours.state {
                State::Approved | State::Declined => {
                    found("bank-unknown", format!("it is {state} here, and the bank does not know it"))
                }
                _ => None,
            };
        }
    };
    let said = theirs.state.as_str();
    if let Some(amount) = theirs.result.as_ref().and_then(|result| result.get("amount")?.as_i64())
        && Some(amount) != ours.money.map(|money| money.amount)
    {
        let asked = ours.money.map(|money| (money.amount, Money(money.currency.code())));
        let what = match asked {
            Some((asked, money)) => {
                format!("the bank has it over {}, and {} was asked for", money.of(amount), money.of(asked))
            }
            None => format!("the bank has it over {amount} minor units, and no amount was asked for"),
        };
        return found("bank-amount", what);
    }
    match (ours.state, theirs.state) {
        (State::Approved, OperationState::Approved)
        | (State::Declined, OperationState::Declined)
        | (State::Cancelled, OperationState::Cancelled) => {
            let id = theirs.result.as_ref().and_then(|result| result.get("id")?.as_str());
            match (ours.bank_reference(), id) {
                (Some(ours), Some(id)) if ours != id => {
                    found("bank-reference", format!("the bank calls it {id}, and {ours} stands here"))
                }
                _ => None,
            }
        }
        // A cancellation that the bank has not heard of yet.
        (State::Cancelled, OperationState::Processing) if ours.tombstone => None,
        (State::Approved | State::Declined | State::Cancelled, _) => {
            found("bank-state", format!("it is {state} here, and {said} at the bank"))
        }
        (_, theirs) if theirs.is_final() => {
            found("bank-ahead", format!("it is {state} here, and {said} at the bank: `kassa-till sync` brings it over"))
        }
        _ => None,
    }
}

/// What is said of such a payment that a person took for known.
pub(crate) fn known(finding: Finding, reason: &str) -> Finding {
    Finding { code: "bank-payment-known", what: format!("{}; it is known: {reason}", finding.what), ..finding }
}

/// A payment of the bank's list.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BankPayment {
    /// The bank's own object, word for word.
    #[serde(skip)]
    pub(crate) whole: Value,
    pub(crate) id: String,
    pub(crate) status: Outcome,
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) reference: Option<String>,
    pub(crate) operation: Key,
    pub(crate) created_at: Timestamp,
}

impl BankPayment {
    pub(crate) fn read(whole: Value) -> serde_json::Result<Self> {
        Ok(Self { whole: whole.clone(), ..serde_json::from_value(whole)? })
    }
}

/// What differs between a payment of the bank's and what this till knows of it. Other tills of the shop stand in the bank's list too:
/// one that this till does not know is this till's where its reference is of a name that this till has, or had before it was restored.
pub(crate) fn payment(conn: &Connection, names: &[String], theirs: &BankPayment) -> Result<Option<Finding>, TillError> {
    if outbox::by_key(conn, &theirs.operation)?.is_some() {
        // Compared by its key.
        return Ok(None);
    }
    let of_this_till = |reference: &str| {
        names.iter().any(|name| reference.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    let Some(reference) = theirs.reference.as_deref().filter(|reference| of_this_till(reference)) else {
        return Ok(None);
    };
    let what = format!(
        "the bank has it {} over {} for {reference} under the key {}, and this till does not know it",
        if theirs.status == Outcome::Approved { "approved" } else { "declined" },
        Money(theirs.currency.code()).of(theirs.amount.get()),
        theirs.operation
    );
    Ok(Some(Finding::new("bank-payment-unknown", format!("payment {}", theirs.id), what)))
}
