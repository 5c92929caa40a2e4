//! Operations by their key, and the policy.

use crate::{
    acquirer::contract::approved_payment,
    openapi::call::{Answered, Call, KEY_EXAMPLE},
};
use protocol::{Currency, Operation, POLICY_PATH, Payment, Policy, ProblemType, Refund};
use serde_json::{Value, json};

/// The path of an operation.
pub(crate) const PATH: &str = "/v1/operations/{key}";
/// The path of its cancellation.
pub(crate) const CANCELLATION_PATH: &str = "/v1/operations/{key}/cancellation";

pub(super) fn approved() -> Value {
    json!({
        "key": KEY_EXAMPLE, "state": "approved", "kind": "payment", "result": approved_payment(),
        "created_at": "2026-11-29T10:00:00.123Z", "completed_at": "2026-11-29T10:00:00.208Z",
    })
}

pub(super) fn processing() -> Value {
    json!({
        "key": KEY_EXAMPLE, "state": "processing", "kind": "payment", "result": null,
        "created_at": "2026-11-29T10:00:00.123Z", "completed_at": null,
    })
}

fn tombstone() -> Value {
    json!({
        "key": KEY_EXAMPLE, "state": "cancelled", "kind": null, "result": null,
        "created_at": "2026-11-29T10:00:00.123Z", "completed_at": "2026-11-29T10:00:00.123Z",
    })
}

pub(crate) fn get() -> Call {
    let examples = [
        ("approved", "A payment that went through", approved()),
        ("processing", "It is not known yet how it ends", processing()),
    ];
    Call::get(PATH, "getOperation")
        .tag("Operations")
        .says(
            "What became of a key",
            "Tells how far an operation is, and what came of it, also long after the stored response has expired. It changes \
             nothing. 404 `operation-unknown` says that the bank never saw the key: a request that was sent and not answered \
             did not arrive, or has not arrived yet.",
        )
        .of_merchant()
        .key_in_path()
        .refuses(&[ProblemType::OperationUnknown])
        .answers(200, Answered::json::<Operation>("The operation.", &examples).knows::<Payment>().knows::<Refund>())
}

pub(crate) fn cancel() -> Call {
    let examples = [
        ("cancelled", "A key that was never used, and never will be", tombstone()),
        ("approved", "It was final already, and nothing is changed", approved()),
    ];
    Call::put(CANCELLATION_PATH, "cancelOperation")
        .tag("Operations")
        .says(
            "Make sure that a key never charges",
            "An unknown key gets a tombstone, under which a late original is refused for ever with 410. For an operation that \
             is `processing` the wish is stored: it settles first, and a charge that went through meanwhile is reversed at the gateway; \
             a refund that went through stays `approved`. Until then the answer is 409, and asking again is safe. What is \
             final, or needs attention, is left as it is and told. Needs no `Idempotency-Key`: the key is in the path.",
        )
        .of_merchant()
        .key_in_path()
        .refuses(&[ProblemType::InProgress])
        .answers(
            200,
            Answered::json::<Operation>("The operation as it is now. Look at `state`.", &examples).knows::<Payment>().knows::<Refund>(),
        )
}

pub(crate) fn policy() -> Call {
    let currencies: Vec<Currency> = Currency::supported().collect();
    let example = json!({
        "bank_id": "0194f39f-8f00-7000-8000-000000000001", "merchant": "shop_a", "claims": "permanent", "retention_s": 86_400,
        "key_format": "uuid", "max_body_bytes": protocol::BODY_BYTES_MAX, "wait_ms": 3_000, "currencies": currencies,
    });
    Call::get(POLICY_PATH, "getPolicy")
        .tag("Policy")
        .says(
            "What this bank promises",
            "Which bank it is, whom your secret names, how long responses are stored, and which currencies are taken. \
             `claims` is `permanent`: a key that was used once is never run again, however old it is. `bank_id` is made with \
             the bank's store and never changes: bind your operations to it.",
        )
        .of_merchant()
        .answers(200, Answered::json::<Policy>("The policy.", &[("policy", "With the defaults", example)]))
}
