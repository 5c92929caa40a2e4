//! The wire between till and bank: the idempotency key, requests, results and problem documents.
//!
//! Both ends use these types, so there is one place that says what a byte on the wire means. Nothing in here performs I/O,
//! reads a clock or draws a random number: what varies is handed in.
//!
//! The crate's one invariant: **what decodes is valid, and nothing that is refused is repeated**. A request that came out of
//! [`PaymentRequest::decode`] keeps every limit of the bank's contract, and an error names the member at fault, never its
//! value, so that no card token can reach an answer or a log line by way of an error message.

mod card_number;
mod instant;
mod invisible;
mod key;
mod money;
#[cfg(feature = "openapi")]
mod openapi;
mod operation;
mod policy;
mod problem;
mod request;
mod result;
mod rfc3339;
mod strict;

pub use card_number::holds_card_number;
pub use instant::{ClockError, check_clock, instant};
pub use invisible::{is_invisible, is_unseen};
pub use key::{Key, KeyError, ShortCode};
pub use money::{Amount, AmountError, Currency, CurrencyError};
pub use operation::{Kind, Operation, OperationState};
pub use policy::Policy;
pub use problem::{Problem, ProblemType};
pub use request::{CardToken, DecodeError, DecodeErrorKind, PaymentRequest, REFERENCE_CHARS_MAX, RefundRequest};
pub use result::{Card, Outcome, Payment, Refund};

/// The header by which a request says which bank it is meant for, by the policy's `bank_id`. Another bank refuses it with 403,
/// before it claims anything.
pub const BANK_ID: &str = "kassa-bank-id";

/// The header by which a request says which merchant it believes its secret to name. It is refused in the same way.
pub const MERCHANT: &str = "kassa-merchant";

/// The largest request body that the bank reads, in bytes.
pub const BODY_BYTES_MAX: usize = 65_536;

/// Where payments are made and listed.
pub const PAYMENTS_PATH: &str = "/v1/payments";

/// Where refunds are made.
pub const REFUNDS_PATH: &str = "/v1/refunds";

/// Where the bank says who it is and how long it stores responses.
pub const POLICY_PATH: &str = "/v1/policy";

/// The header that carries the key of an operation, in every attempt.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header by which the bank tells a stored answer (`true`) from a first one (`false`).
pub const IDEMPOTENT_REPLAYED: &str = "idempotent-replayed";

/// Where the bank tells what became of a key.
#[must_use]
pub fn operation_path(key: &Key) -> String {
    format!("/v1/operations/{key}")
}

/// Where the bank is told that a key must never charge.
#[must_use]
pub fn cancellation_path(key: &Key) -> String {
    format!("/v1/operations/{key}/cancellation")
}
