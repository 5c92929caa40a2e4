//! The operator's calls.

use crate::{
    acquirer::{
        contract::operations,
        operator::{ATTENTION_MAX, ATTENTION_PATH, Attention, REQUEUE_PATH},
    },
    openapi::{
        call::{Answered, Call, KEY_EXAMPLE, text},
        reference_to,
    },
};
use protocol::{Operation, Payment, ProblemType, Refund};
use serde_json::json;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Type, schema::SchemaType};

pub(crate) fn list() -> Call {
    let next = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .description(Some("What to send as `after` for the next page; `null` on the last one."));
    let page = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("data", ArrayBuilder::new().items(reference_to::<Attention>()).max_items(Some(ATTENTION_MAX)))
        .required("data")
        .property("next", next)
        .required("next");
    let example = json!({
        "data": [{
            "merchant": "shop_a", "key": KEY_EXAMPLE, "short_code": super::short_code(KEY_EXAMPLE), "kind": "payment",
            "reason": "the gateway's answer is about something else than we asked", "created_at": "2026-11-29T10:00:00.123Z",
            "age_s": 340, "gateway_key": "3f2504e0-4f89-51d3-9a0c-0305e82c3301", "gateway_attempts": 1,
        }],
        "next": null,
    });
    let after = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(i64::MIN)).maximum(Some(i64::MAX));
    Call::get(ATTENTION_PATH, "listAttention")
        .tag("Operator")
        .says(
            "What needs attention",
            "Operations of all merchants that the bank could not finish by itself, oldest first, with their age and the reason. \
             Such an operation is never charged again by itself.",
        )
        .of_operator()
        .in_query("after", "The `next` of the page before.", after)
        .answers(200, Answered::json_of("A page.", page, &[("page", "One operation", example)]).knows::<Attention>())
}

pub(crate) fn requeue() -> Call {
    Call::post(REQUEUE_PATH, "requeueOperation")
        .tag("Operator")
        .says(
            "Try an operation again",
            "Puts an operation that needs attention back to work. It looks at the gateway first, and sends again, under the \
             same gateway key, only what the gateway doesn't know. One that needs no attention is left as it is and told.",
        )
        .of_operator()
        .in_path("merchant", "Whose operation it is.", text(), "shop_a")
        .key_in_path()
        .refuses(&[ProblemType::OperationUnknown])
        .answers(
            200,
            Answered::json::<Operation>(
                "The operation as it is now.",
                &[("processing", "Back at work", operations::processing())],
            )
            .knows::<Payment>()
            .knows::<Refund>(),
        )
}
