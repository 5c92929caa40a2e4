//! What the bank's calls are, in words and schemas: the OpenAPI document is made of this.

pub(crate) mod lab;
pub(crate) mod operations;
pub(crate) mod operator;
pub(crate) mod payments;
pub(crate) mod refunds;
pub(crate) mod service;

use crate::openapi::{
    About,
    call::{KEY_EXAMPLE, OPERATOR, PAYMENT_EXAMPLE, SECRET, pretty, text},
    reference_to,
};
use protocol::Key;
use serde_json::{Value, json};
use utoipa::openapi::{
    Header, HeaderBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, ServerBuilder, Type,
    link::LinkBuilder,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    tag::TagBuilder,
};

/// What to know before the calls.
const GUIDE: &str = include_str!("guide.md");

/// The id of the examples' refund.
const REFUND: &str = "re_01kb7vt0m2f6zk1w8s5n3j7e9a";

/// The key of the examples' refund.
const REFUND_KEY: &str = "0194f3a5-7b1e-7c40-9d2f-6e8a1b3c5d7f";

/// What the document holds besides the calls.
pub(crate) fn about(lab: bool) -> About {
    let licence = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Kassa's bank")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(GUIDE))
        .license(Some(licence))
        .build();
    let mut tags = vec![
        ("Payments", "Charge a card, and look at what was charged."),
        ("Refunds", "Give money back, in one or many parts, together never more than was paid."),
        ("Operations", "What became of a key, and making sure that one never charges."),
        ("Policy", "What this bank promises, and which bank it is."),
        ("Operator", "For the bank's own people. Only there where the bank was started with `--operator`."),
        ("Service", "Health, metrics and documents. No authorization."),
    ];
    if lab {
        tags.push(("Lab", "Failing on command. Only there where the bank was started with `--lab`; inside the app they need the run's secret."));
    }
    let tags = tags.into_iter().map(|(name, says)| TagBuilder::new().name(name).description(Some(says)).build());
    let bearer = |says: &str| {
        SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(says)).build())
    };
    let security = vec![
        (SECRET, bearer("A merchant's secret; it names the merchant. Several secrets may name one.")),
        (OPERATOR, bearer("The secret of the bank's own people.")),
    ];
    let own = ServerBuilder::new().url("/").description(Some("The bank that serves this document.")).build();
    About { info, tags: tags.collect(), servers: vec![own], security }
}

/// The headers of a stored answer.
fn replayed() -> Header {
    let words = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["true", "false"]));
    let says = "`false` where this request made the claim, `true` where an earlier one did. All else is the same, byte by byte.";
    HeaderBuilder::new().description(Some(says)).schema(Some(words)).build()
}

fn echo() -> Header {
    HeaderBuilder::new()
        .description(Some("The key of the request, in its one canonical spelling."))
        .schema(Some(reference_to::<Key>()))
        .build()
}

/// The schema of an object's id in a path.
fn id(prefix: &str) -> ObjectBuilder {
    text().pattern(Some(format!("^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$")))
}

fn location(of: &str) -> Header {
    let path = ObjectBuilder::new().schema_type(Type::String).pattern(Some(format!("^{of}/[a-z0-9_]+$")));
    HeaderBuilder::new().description(Some("Where the object is.")).schema(Some(path)).build()
}

/// Links from a stored answer to what can be asked next: by its id, and by its key.
fn links(answered: crate::openapi::call::Answered, by_id: &str) -> crate::openapi::call::Answered {
    let by = |operation: &str, parameter: &str, value: &str| {
        LinkBuilder::new().operation_id(operation).parameter(parameter, value).build()
    };
    let key = format!("$response.header.{}", pretty(protocol::IDEMPOTENCY_KEY));
    answered
        .link(by_id, by(by_id, "id", "$response.body#/id"))
        .link("getOperation", by("getOperation", "key", &key))
        .link("cancelOperation", by("cancelOperation", "key", &key))
}

/// The payment of the examples.
fn approved_payment() -> Value {
    json!({
        "id": PAYMENT_EXAMPLE, "status": "approved", "amount": 2490, "currency": "EUR",
        "card": {"brand": "visa", "last4": "4242"}, "reference": "till-1/1042", "approval_code": "8F21K0",
        "operation": KEY_EXAMPLE, "short_code": short_code(KEY_EXAMPLE), "created_at": "2026-11-29T10:00:00.123Z",
    })
}

fn declined_payment() -> Value {
    json!({
        "id": PAYMENT_EXAMPLE, "status": "declined", "amount": 2490, "currency": "EUR",
        "card": {"brand": "visa", "last4": "9995"}, "reference": "till-1/1042", "decline_code": "insufficient_funds",
        "operation": KEY_EXAMPLE, "short_code": short_code(KEY_EXAMPLE), "created_at": "2026-11-29T10:00:00.123Z",
    })
}

fn approved_refund() -> Value {
    json!({
        "id": REFUND, "status": "approved", "payment_id": PAYMENT_EXAMPLE, "amount": 500, "currency": "EUR",
        "operation": REFUND_KEY, "short_code": short_code(REFUND_KEY), "created_at": "2026-11-29T10:05:00.456Z",
    })
}

fn short_code(key: &str) -> Value {
    Key::parse(key).map_or(Value::Null, |key| json!(key.short_code()))
}
