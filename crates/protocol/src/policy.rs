//! What the bank promises to this merchant.

use crate::Currency;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// The answer of `GET /v1/policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Policy {
    /// The bank's own id, made with its store. A till binds its operations to it.
    pub bank_id: Uuid,
    /// Whom the secret names.
    pub merchant: String,
    /// How long a claim on a key holds: `permanent`.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::openapi::claims))]
    pub claims: String,
    /// How long a response is stored, in seconds. After it the outcome is told by the lookup alone.
    pub retention_s: u64,
    /// What a key looks like: `uuid`.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::openapi::key_format))]
    pub key_format: String,
    /// The largest body that is read, in bytes.
    pub max_body_bytes: u64,
    /// How long a repeat waits for a running operation, in milliseconds, before it is told to come again.
    pub wait_ms: u64,
    /// The currencies that are taken, as far as this program knows them: a bank may learn one before a till does.
    #[serde(deserialize_with = "known_currencies")]
    pub currencies: Vec<Currency>,
}

fn known_currencies<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Currency>, D::Error> {
    let codes = Vec::<String>::deserialize(deserializer)?;
    Ok(codes.iter().filter_map(|code| Currency::parse(code).ok()).collect())
}

impl Policy {
    /// The word for claims that never expire.
    pub const CLAIMS_PERMANENT: &'static str = "permanent";
    /// The word for keys that are UUIDs.
    pub const KEY_FORMAT_UUID: &'static str = "uuid";

    /// Whether a key, once used, is never executed again however old it is. Only then is it safe to send a key again after
    /// the retention.
    #[must_use]
    pub fn claims_are_permanent(&self) -> bool {
        self.claims == Self::CLAIMS_PERMANENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_currency_that_only_the_bank_knows_is_left_out() {
        let policy: Policy = serde_json::from_value(serde_json::json!({
            "bank_id": "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b", "merchant": "shop_a", "claims": "permanent",
            "retention_s": 86_400, "key_format": "uuid", "max_body_bytes": 65_536, "wait_ms": 3_000,
            "currencies": ["ABC", "EUR"],
        }))
        .unwrap();
        assert_eq!(policy.currencies, [Currency::EUR]);
        assert!(policy.claims_are_permanent());
    }
}
