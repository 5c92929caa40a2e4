//! What goes between bank and gateway.

use protocol::{Amount, Card, Currency, Outcome};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Where charges are made, and asked for by reference.
pub(crate) const CHARGES_PATH: &str = "/v1/charges";
/// Where refunds and reversals are made, and asked for by reference.
pub(crate) const REFUNDS_PATH: &str = "/v1/refunds";
/// Where a gateway says which one it is.
pub(crate) const IDENTITY_PATH: &str = "/v1/gateway";
/// The header that says for which gateway a request is meant; another one refuses it.
pub(crate) const GATEWAY_ID: &str = "gateway-id";

/// Which gateway this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) gateway_id: Uuid,
}

/// Charge a card.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChargeRequest {
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) card: String,
    /// The bank's own name for the charge, by which it can ask for it.
    pub(crate) reference: String,
    /// Whether the goods were handed over before anyone was asked.
    pub(crate) offline: bool,
}

/// Give money back for a charge, in whole or in part.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundRequest {
    /// The reference of the charge.
    pub(crate) charge: String,
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) reference: String,
}

/// What became of a charge or a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) id: String,
    pub(crate) status: Outcome,
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) card: Option<Card>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decline_code: Option<String>,
}
