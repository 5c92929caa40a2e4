//! The bank lab: what the bundled bank and its gateway have in their books, and the faults that they can be given.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Count, CurrencyAmount, Minor, OperationKind, OperationState};

/// The bundled bank beside the till.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabState {
    /// Whether the bank runs; while it does not, its connections are refused and its books are not to be had.
    pub(crate) running: bool,
    pub(crate) faults: Vec<LabFaultHits>,
    pub(crate) bank: Option<LabBankBooks>,
    pub(crate) gateway: Option<LabGatewayBooks>,
    /// The till's last operations, newest first, with what bank and gateway have of each.
    pub(crate) operations: Vec<LabOperation>,
}

/// What the bank has in its books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabBankBooks {
    pub(crate) charges: Count,
    pub(crate) refunds: Count,
    pub(crate) charged: Vec<CurrencyAmount>,
    pub(crate) refunded: Vec<CurrencyAmount>,
    /// Whether debit and credit come to the same.
    pub(crate) balanced: bool,
}

/// What the gateway has in its books: the truth. A reversal counts as a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabGatewayBooks {
    pub(crate) requests: Count,
    pub(crate) distinct_keys: Count,
    pub(crate) charges: Count,
    pub(crate) refunds: Count,
    pub(crate) charged: Vec<CurrencyAmount>,
    pub(crate) refunded: Vec<CurrencyAmount>,
}

/// One of the till's operations in all three books.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabOperation {
    pub(crate) key: String,
    pub(crate) short_code: String,
    pub(crate) kind: OperationKind,
    pub(crate) amount: Minor,
    pub(crate) currency: String,
    pub(crate) till_state: OperationState,
    pub(crate) till_attempts: u32,
    /// None where the bank does not know the key, or can't be asked.
    pub(crate) bank: Option<LabBankOperation>,
    /// What the gateway has under the bank's key for it; none before the bank asked.
    pub(crate) gateway: Option<LabGatewayOperation>,
}

/// What the bank has of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabBankOperation {
    /// `processing`, `approved`, `declined`, `cancelled` or `needs_attention`.
    pub(crate) state: String,
    /// How often the bank asked its gateway.
    pub(crate) gateway_attempts: u32,
}

/// What the gateway has of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabGatewayOperation {
    /// The bank's own key for it, never the till's.
    pub(crate) key: String,
    pub(crate) requests: Count,
    pub(crate) charges: Count,
    pub(crate) refunds: Count,
}

/// What the bundled bank can be made to do wrong. A connection that is refused is none of them: the bank is stopped for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LabFault {
    /// It takes the request and never answers. Not charged.
    Hang,
    /// It answers three seconds late. Charged once.
    Slow,
    /// Its gateway takes eight seconds, so that the bank says it is still working on it (409). Charged once.
    GatewaySlow,
    /// It charges, and closes the connection without an answer.
    DropAfterCharge,
    /// It charges, and answers with status 500.
    ErrorAfterCharge,
    /// It charges, and half of the answer comes.
    Truncated,
    /// It charges, and answers with a page of HTML.
    Garbage,
    /// It charges, and answers about another amount.
    ForeignAmount,
    /// Too many requests (429), come back in five seconds. Not charged.
    RateLimited,
    /// Unavailable (503), come back in five seconds. Not charged.
    Unavailable,
    /// The gateway charges, and the bank gets no answer from it.
    GatewayDrop,
}

/// A fault to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LabFaultRule {
    pub(crate) fault: LabFault,
    /// For so many requests; none: until it is cleared.
    pub(crate) times: Option<u32>,
}

/// A fault that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabFaultHits {
    pub(crate) fault: LabFault,
    pub(crate) times: Option<u32>,
    /// How many requests it met so far.
    pub(crate) hits: u32,
}
