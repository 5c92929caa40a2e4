//! Refunds.

use crate::{
    acquirer::contract::{
        REFUND, REFUND_KEY, approved_refund, echo, id, links, location, payments::where_status, replayed,
    },
    openapi::call::{Answered, Call, PAYMENT_EXAMPLE},
};
use protocol::{ProblemType, REFUNDS_PATH, Refund, RefundRequest};
use serde_json::json;

pub(crate) fn create() -> Call {
    let mut over = approved_refund();
    over["status"] = json!("declined");
    over["decline_code"] = json!("exceeds_refundable");
    let stored = |answered: Answered| {
        let answered = answered
            .header(protocol::IDEMPOTENT_REPLAYED, replayed())
            .header(protocol::IDEMPOTENCY_KEY, echo())
            .header("location", location(REFUNDS_PATH));
        links(answered, "getRefund")
    };
    let approved = Answered::json_where::<Refund>(
        "Approved: the money was given back.",
        where_status("approved"),
        &[("approved", "Approved", approved_refund())],
    );
    let declined = Answered::json_where::<Refund>(
        "Declined. `exceeds_refundable`: so much is not left of the payment, refunds that are `processing` counted, or the payment was declined itself.",
        where_status("declined").required("decline_code"),
        &[("declined", "More than is left", over)],
    );
    Call::post(REFUNDS_PATH, "createRefund")
        .tag("Refunds")
        .says(
            "Give money back",
            "Gives back a part of a payment, or all of it, once for each key. A payment can have many refunds; together they \
             never exceed it. Everything that is said of keys holds here too: the key is the refund's own, not the payment's.\n\n\
             A `payment_id` that this merchant doesn't have is 404 and claims nothing, unless the key is known: what is known \
             of the key is told first.",
        )
        .of_merchant()
        .keyed(REFUND_KEY)
        .refuses(&[ProblemType::PaymentUnknown])
        .body::<RefundRequest>("What to give back.", &[("part", "A part", json!({"payment_id": PAYMENT_EXAMPLE, "amount": 500}))])
        .answers(201, stored(approved))
        .answers(402, stored(declined))
}

pub(crate) fn get() -> Call {
    Call::get(&format!("{REFUNDS_PATH}/{{id}}"), "getRefund")
        .tag("Refunds")
        .says(
            "Get a refund",
            "The refund as it is stored, once it has ended. One that is `processing` is 404 here; ask by its key.",
        )
        .of_merchant()
        .in_path("id", "The refund's `id`.", id("re"), REFUND)
        .refuses(&[ProblemType::PaymentUnknown])
        .answers(200, Answered::json::<Refund>("The refund.", &[("approved", "Approved", approved_refund())]))
}
