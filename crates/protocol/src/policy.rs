//! What the bank promises to this merchant.

use crate::Currency;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The answer of `GET /v1/policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The bank's own id, made with its store. A till binds its operations to it.
    pub bank_id: Uuid,
    /// Whom the secret names.
    pub merchant: String,
    /// How long a claim on a key holds: `permanent`.
    pub claims: String,
    /// How long a response is stored, in seconds. After it the outcome is told by the lookup alone.
    pub retention_s: u64,
    /// What a key looks like: `uuid`.
    pub key_format: String,
    /// The largest body that is read, in bytes.
    pub max_body_bytes: u64,
    /// How long a repeat waits for a running operation, in milliseconds, before it is told to come again.
    pub wait_ms: u64,
    /// The currencies that are taken.
    pub currencies: Vec<Currency>,
}

impl Policy {
    /// The word for claims that never expire.
    pub const CLAIMS_PERMANENT: &'static str = "permanent";

    /// Whether a key, once used, is never executed again however old it is. Only then is it safe to send a key again after
    /// the retention.
    #[must_use]
    pub fn claims_are_permanent(&self) -> bool {
        self.claims == Self::CLAIMS_PERMANENT
    }
}
