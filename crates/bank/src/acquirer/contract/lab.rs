//! The fault lab's calls.

use crate::{
    acquirer::{
        lab_calls::{LEDGER_PATH, OPERATION_PATH, PURGE_PATH},
        ledger::Books,
    },
    lab::{
        routes::{CLOCK_PATH, FAULTS_PATH},
        rules::{Do, Point, Rule},
    },
    openapi::{
        call::{Answered, Call, KEY_EXAMPLE},
        reference_to,
    },
};
use protocol::{OperationState, ProblemType};
use serde_json::json;
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, Type};

fn call(call: Call, summary: &str, prose: &str) -> Call {
    call.tag("Lab").says(summary, prose).refuses(&[ProblemType::Unauthorized])
}

fn with_body(call: Call) -> Call {
    call.refuses(&[ProblemType::RequestMalformed, ProblemType::RequestInvalid, ProblemType::UnsupportedMediaType])
}

fn rules() -> Answered {
    let hits = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let shown = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("at", reference_to::<Point>())
        .required("at")
        .property("do", reference_to::<Do>())
        .required("do")
        .property("hits", hits.description(Some("How many passes the rule took.")))
        .required("hits")
        .description(Some("The rule as it was sent, with its hits."));
    let list = ArrayBuilder::new().items(shown);
    let example = json!([{"at": "saved", "do": "drop", "times": 2, "hits": 1}]);
    Answered::json_of("The rules, each with what it has taken.", list, &[("drop", "One rule", example)]).knows::<Rule>()
}

pub(crate) fn faults() -> Call {
    call(Call::get(FAULTS_PATH, "listFaults"), "List the rules", "The rules with their `hits`.").answers(200, rules())
}

pub(crate) fn replace_faults() -> Call {
    let list = ArrayBuilder::new().items(reference_to::<Rule>());
    let example = json!([{"at": "saved", "do": "drop", "times": 2}]);
    let prose = "Takes the place of the whole list; a restart clears it. Points are passed by keyed requests only: `received` (decoded, \
                 not claimed), `claimed` (not sent to the gateway yet), `gateway_answered` (not saved yet), `saved` (not answered yet; a \
                 replay passes here too). The gateway has a lab of its own, at `gateway_url` of the ready line, with the points \
                 `received` and `committed` (charged, not answered yet).\n\n\
                 `delay` waits `ms`; `hang` waits until the rules are cleared; `drop` closes without an answer; `status` answers \
                 `status`, with `retry_after` if given; `truncate` sends half the body; `garbage` sends a web page; `foreign` a well-formed \
                 answer for another amount; `abort` ends the process at once. At `received` an answer takes the place of the handling, so \
                 nothing is claimed or charged; elsewhere it changes what the caller gets and nothing that is stored: the \
                 payment goes on.\n\n\
                 The first rule that is due takes the pass. Without `times` a rule holds until it is cleared; `skip` lets the first \
                 n matches pass; `key` is for one key; `probability` with a `seed` is repeatable.";
    with_body(call(Call::put(FAULTS_PATH, "replaceFaults"), "Replace the rules", prose))
        .body_of(list, "The rules.", &[("drop", "Lose the next two answers", example)])
        .answers(200, rules())
}

pub(crate) fn clear_faults() -> Call {
    let prose = "Drops all rules, and lets go whatever hangs.";
    call(Call::delete(FAULTS_PATH, "clearFaults"), "Clear the rules", prose).answers(204, Answered::empty("Done."))
}

pub(crate) fn clock() -> Call {
    let offset = || {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer).description(Some("Seconds before or behind."));
        ObjectBuilder::new().schema_type(Type::Object).property("offset_s", seconds).required("offset_s")
    };
    let example = [("day", "A day and an hour on", json!({"offset_s": 90_000}))];
    with_body(call(
        Call::put(CLOCK_PATH, "moveClock"),
        "Move the clock",
        "Moves the bank's clock, by which stored responses expire.",
    ))
    .body_of(offset(), "How far.", &example)
    .answers(200, Answered::json_of("Moved.", offset(), &example))
}

pub(crate) fn ledger() -> Call {
    let example =
        json!({"charges": 2, "refunds": 1, "charged": {"EUR": 4980}, "refunded": {"EUR": 500}, "balanced": true});
    call(
        Call::get(LEDGER_PATH, "getLedger"),
        "The books",
        "What the double-entry ledger holds, and whether it balances.",
    )
    .answers(200, Answered::json::<Books>("The books.", &[("books", "Two payments and a refund", example)]))
}

pub(crate) fn operation() -> Call {
    let key = ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::SchemaType::from_iter([Type::String, Type::Null]))
        .description(Some("The bank's own key at the gateway."));
    let shown = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("gateway_key", key)
        .required("gateway_key")
        .property(
            "gateway_attempts",
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(0))
                .description(Some("How often the request was sent. Questions by reference don't count.")),
        )
        .required("gateway_attempts")
        .property("state", reference_to::<OperationState>())
        .required("state")
        .property(
            "owner",
            ObjectBuilder::new().schema_type(Type::String).description(Some("Process and run that own it.")),
        )
        .required("owner");
    let example = json!({
        "gateway_key": "3f2504e0-4f89-51d3-9a0c-0305e82c3301", "gateway_attempts": 1, "state": "approved", "owner": "1.7",
    });
    let prose = format!("Of whichever merchant used the key, such as `{KEY_EXAMPLE}`.");
    call(Call::get(OPERATION_PATH, "inspectOperation"), "Behind an operation", &prose)
        .key_in_path()
        .refuses(&[ProblemType::OperationUnknown])
        .answers(
            200,
            Answered::json_of("What the bank asked the gateway.", shown, &[("approved", "Approved", example)])
                .knows::<OperationState>(),
        )
}

pub(crate) fn purge() -> Call {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let purged = ObjectBuilder::new().schema_type(Type::Object).property("purged", count).required("purged");
    call(Call::post(PURGE_PATH, "purge"), "Purge now", "Drops the stored responses that have expired.")
        .answers(200, Answered::json_of("How many.", purged, &[("some", "Some", json!({"purged": 3}))]))
}
