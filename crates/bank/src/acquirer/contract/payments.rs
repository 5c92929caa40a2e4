//! Payments.

use crate::{
    acquirer::contract::{approved_payment, declined_payment, echo, id, links, location, replayed},
    openapi::{
        call::{Answered, Call, KEY_EXAMPLE, PAYMENT_EXAMPLE, text},
        reference_to,
    },
};
use protocol::{PAYMENTS_PATH, Payment, PaymentRequest, ProblemType};
use serde_json::json;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Type, link::LinkBuilder, schema::SchemaType};

pub(crate) fn create() -> Call {
    let examples = [
        (
            "approved",
            "A card that pays",
            json!({"amount": 2490, "currency": "EUR", "card": "tok_visa", "reference": "till-1/1042"}),
        ),
        (
            "declined",
            "A card that doesn't",
            json!({"amount": 2490, "currency": "EUR", "card": "tok_insufficient_funds"}),
        ),
        (
            "offline",
            "Goods that were handed over before the bank was asked",
            json!({"amount": 990, "currency": "EUR", "card": "tok_late_decline", "accepted_offline_at": "2026-11-29T09:58:00Z"}),
        ),
    ];
    let refund = LinkBuilder::new()
        .operation_id("createRefund")
        .request_body(Some(json!({"payment_id": "$response.body#/id", "amount": 1})))
        .description(
            "Give some of it back. The caller makes its `Idempotency-Key`, which no answer can hold: a new UUID, stored before the \
             refund is asked for.",
        )
        .build();
    let approved = Answered::json_where::<Payment>(
        "Approved: the money moved.",
        where_status("approved").required("card").required("approval_code"),
        &[("approved", "Approved", approved_payment())],
    );
    let declined = Answered::json_where::<Payment>(
        "Declined: the money did not move, and will not for this key.",
        where_status("declined").required("decline_code"),
        &[("declined", "Declined", declined_payment())],
    );
    let stored = |answered: Answered| {
        let answered = answered
            .header(protocol::IDEMPOTENT_REPLAYED, replayed())
            .header(protocol::IDEMPOTENCY_KEY, echo())
            .header("location", location(PAYMENTS_PATH));
        links(answered, "getPayment")
    };
    Call::post(PAYMENTS_PATH, "createPayment")
        .tag("Payments")
        .says(
            "Charge a card",
            "Claims the key, charges the card once, stores the whole answer in the same commit as the ledger entry, and gives \
             it to every repeat of the request.\n\n\
             The execution belongs to the bank, not to the connection: if you hang up, it goes on. While it runs, a repeat \
             waits for the outcome for up to the policy's `wait_ms`, and is then told 409 `in-progress`. With \
             `\"state\":\"needs_attention\"` in the 409 the bank can't find out by itself how it ended, and its people look \
             at it; it is never charged again by itself.\n\n\
             A card that is declined is a result like any other: 402, stored, replayed. To try the card again, make a new key.",
        )
        .of_merchant()
        .keyed(KEY_EXAMPLE)
        .body::<PaymentRequest>("What to charge.", &examples)
        .answers(201, stored(approved).link("createRefund", refund))
        .answers(402, stored(declined))
}

pub(super) fn where_status(status: &str) -> ObjectBuilder {
    let fixed = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([status]));
    ObjectBuilder::new().schema_type(Type::Object).property("status", fixed)
}

pub(crate) fn list() -> Call {
    let limit =
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100)).default(Some(json!(20)));
    let next = text()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some("What to send as `after` for the next page; `null` on the last one."));
    let page = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("data", ArrayBuilder::new().items(reference_to::<Payment>()).max_items(Some(100)))
        .required("data")
        .property("next", next)
        .required("next");
    let example = json!({"data": [approved_payment()], "next": null});
    Call::get(PAYMENTS_PATH, "listPayments")
        .tag("Payments")
        .says("List payments", "This merchant's payments that have ended, approved and declined, newest first.")
        .of_merchant()
        .in_query("limit", "How many at most.", limit)
        .in_query("after", "The `next` of the page before. Anything else is 400.", text())
        .answers(200, Answered::json_of("A page.", page, &[("page", "The only page", example)]).knows::<Payment>())
}

pub(crate) fn get() -> Call {
    Call::get(&format!("{PAYMENTS_PATH}/{{id}}"), "getPayment")
        .tag("Payments")
        .says("Get a payment", "The payment as it is stored: what was told when it was made.")
        .of_merchant()
        .in_path("id", "The payment's `id`.", id("pay"), PAYMENT_EXAMPLE)
        .refuses(&[ProblemType::PaymentUnknown])
        .answers(200, Answered::json::<Payment>("The payment.", &[("approved", "Approved", approved_payment())]))
}
