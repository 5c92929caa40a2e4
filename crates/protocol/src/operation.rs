//! What became of a key, as `GET /v1/operations/{key}` tells it.

use crate::Key;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is asked of the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A charge of a card.
    Payment,
    /// Money given back.
    Refund,
}

impl Kind {
    /// The word on the wire and in both databases.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::Refund => "refund",
        }
    }
}

/// The state of an operation at the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// Claimed, and not yet known how it ends.
    Processing,
    /// Ended: the money moved.
    Approved,
    /// Ended: the money did not move.
    Declined,
    /// Ended: this key never charges.
    Cancelled,
    /// The bank can't find out by itself how it ended; its people look at it.
    NeedsAttention,
}

impl OperationState {
    /// The word on the wire and in the bank's database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::NeedsAttention => "needs_attention",
        }
    }

    /// Whether it never changes any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Approved | Self::Declined | Self::Cancelled)
    }
}

/// What became of a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Operation {
    /// The key that was asked about.
    pub key: Key,
    /// How far it is.
    pub state: OperationState,
    /// What was asked for; none where the key was cancelled before any request came.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub kind: Option<Kind>,
    /// The stored payment or refund, once there is one.
    #[cfg_attr(feature = "openapi", schema(required, schema_with = crate::openapi::result_or_null))]
    pub result: Option<Value>,
    /// When the key was claimed.
    pub created_at: Timestamp,
    /// When it became final.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub completed_at: Option<Timestamp>,
}
