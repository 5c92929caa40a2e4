//! How an answer is read.

use jiff::SignedDuration;
use outbox::answer::{Answer, Reading};
use outbox::bank::{Expected, read, read_lookup, read_policy};
use protocol::{Currency, Kind, OperationState, Outcome, Policy, Problem, ProblemType};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::*;

#[test]
fn a_valid_result_is_final_with_the_banks_own_bytes() {
    for (status, word, outcome) in [(201, "approved", Outcome::Approved), (402, "declined", Outcome::Declined)] {
        let body = serde_json::to_string_pretty(&payment(word)).unwrap();
        let given = answer(status, "Application/JSON; charset=utf-8", &body);
        assert_eq!(reads(&given), Reading::Final { outcome, result: body.clone() });
        // The body repeats the key; the header need not.
        assert_eq!(reads(&Answer { key: None, ..given }), Reading::Final { outcome, result: body });
    }
}

/// The end of a payment holds, whatever stands beside it; but no word is kept that a receipt could not show.
#[test]
fn what_is_no_card_and_no_code_is_not_kept_and_the_end_is() {
    let card = |brand: &str, last4: &str| json!({"brand": brand, "last4": last4});
    let long = "v".repeat(3_000);
    let strange = [
        ("card", card("visa", "4242424242424242")),
        ("card", card("visa", "")),
        ("card", card("visa", "424")),
        ("card", card("visa", "42a2")),
        ("card", card(&long, "4242")),
        ("card", card("visa\nTOTAL 0.01", "4242")),
        ("card", card("vi\u{202e}sa", "4242")),
        ("card", card(" ", "4242")),
        ("approval_code", json!(long)),
        ("approval_code", json!("")),
        ("approval_code", json!("8F\u{1b}@")),
    ];
    for (member, value) in strange {
        let given = with(payment("approved"), member, value.clone());
        let Reading::Final { outcome: Outcome::Approved, result } = reads(&ok(201, &given)) else {
            panic!("{member} {value} lost the bank's word")
        };
        let mut kept = payment("approved");
        kept.as_object_mut().unwrap().remove(member);
        assert_eq!(serde_json::from_str::<Value>(&result).unwrap(), kept, "{member} {value}");
    }
}

#[test]
fn a_result_that_is_not_ours_is_no_answer() {
    let approved = || payment("approved");
    let other = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c";
    let body = approved().to_string();
    let more = |value: &str| body.replacen('{', &format!("{{\"more\":{value},"), 1);
    assert!(matches!(reads(&answer(201, "application/json", more("[[1e9, \"é\"]]"))), Reading::Final { .. }));
    let cases = [
        ("another amount", ok(201, &with(approved(), "amount", json!(2491)))),
        ("another currency", ok(201, &with(approved(), "currency", json!("USD")))),
        ("another key", ok(201, &with(approved(), "operation", json!(other)))),
        ("another key in the header", Answer { key: Some(other.to_owned()), ..ok(201, &approved()) }),
        ("no key in the header's place", Answer { key: Some("yes".to_owned()), ..ok(201, &approved()) }),
        ("declined with 201", ok(201, &payment("declined"))),
        ("approved with 402", ok(402, &approved())),
        ("approved and declined", ok(201, &with(approved(), "decline_code", json!("lost")))),
        ("approved without a code", ok(201, &with(approved(), "approval_code", Value::Null))),
        ("declined without a reason", ok(402, &with(payment("declined"), "decline_code", Value::Null))),
        ("a word for an amount", ok(201, &with(approved(), "amount", json!("2490")))),
        ("a fraction", ok(201, &with(approved(), "amount", json!(2490.5)))),
        ("half of it", answer(201, "application/json", &body[..body.len() / 2])),
        ("nothing", answer(201, "application/json", "")),
        ("two of it", answer(201, "application/json", format!("{body}{body}"))),
        ("a doubled amount", answer(201, "application/json", body.replacen('{', r#"{"amount":2490,"#, 1))),
        (
            "too deep a member",
            answer(201, "application/json", more(&format!("{}{}", "[".repeat(200), "]".repeat(200)))),
        ),
        ("too large a number", answer(201, "application/json", more("1e999"))),
        ("half a character", answer(201, "application/json", more("\"\\ud800\""))),
        ("a list", ok(201, &json!([approved()]))),
        ("HTML that says JSON", answer(201, "application/json", "<html>welcome</html>")),
        ("HTML", answer(201, "text/html", &body)),
        ("a problem document's type", answer(201, "application/problem+json", &body)),
        ("no content type", Answer { content_type: None, ..ok(201, &approved()) }),
        ("not text", Answer { body: vec![0xff, 0xfe], ..ok(201, &approved()) }),
        ("200", ok(200, &approved())),
        ("202", ok(202, &approved())),
        ("a portal", answer(200, "text/html", "<html>sign in</html>")),
        ("a redirect", answer(301, "text/html", "")),
        ("204", answer(204, "", "")),
    ];
    for (what, answer) in cases {
        assert!(matches!(reads(&answer), Reading::Foreign(_)), "{what}: {:?}", reads(&answer));
    }
}

#[test]
fn a_refund_must_name_its_payment() {
    let refund = json!({
        "id": "re_1", "status": "approved", "payment_id": "pay_1", "amount": 2490, "currency": "EUR",
        "operation": key(), "short_code": key().short_code(), "created_at": "2026-11-29T10:00:00Z",
    });
    let expected = |payment: &str| Expected { kind: Kind::Refund, payment_id: Some(payment.to_owned()), ..expected() };
    assert!(matches!(read(&expected("pay_1"), &ok(201, &refund), NOW), Reading::Final { .. }));
    assert!(matches!(read(&expected("pay_2"), &ok(201, &refund), NOW), Reading::Foreign(_)));
    assert!(matches!(read(&expected("pay_1"), &ok(201, &payment("approved")), NOW), Reading::Foreign(_)));
}

#[test]
fn each_problem_of_ours_has_its_reading() {
    use ProblemType as P;
    for kind in P::ALL {
        let reading = reads(&problem(kind));
        let fits = match kind {
            P::InProgress => reading == Reading::InProgress(None),
            P::KeyExpired => reading == Reading::Expired,
            P::OperationCancelled => reading == Reading::Cancelled,
            P::Unauthorized | P::Forbidden => reading == Reading::not_allowed(kind.name()),
            P::RateLimited | P::Internal | P::Unavailable => reading == Reading::trouble(kind.name()),
            _ => matches!(&reading, Reading::Refused { problem, detail } if *problem == kind.name() && detail == "why"),
        };
        assert!(fits, "{kind:?}: {reading:?}");
    }
}

#[test]
fn a_409_can_say_that_the_banks_people_must_look() {
    let document =
        Problem { state: Some(OperationState::NeedsAttention), ..Problem::new(ProblemType::InProgress, "odd") };
    let document = serde_json::to_value(document).unwrap();
    let reading = reads(&answer(409, "application/problem+json", document));
    assert_eq!(reading, Reading::BankAttention("odd".to_owned()));
}

#[test]
fn a_problem_that_is_not_ours_is_no_answer() {
    let document = |kind: ProblemType| serde_json::to_value(Problem::new(kind, "why")).unwrap();
    let keyed = || document(ProblemType::InProgress);
    let other = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c";
    let json_problem = "application/problem+json";
    let cases = [
        ("a foreign type", answer(409, json_problem, with(keyed(), "type", json!("/problems/conflict")))),
        ("no type", answer(422, json_problem, json!({"detail": "no"}))),
        ("another status inside", answer(409, json_problem, with(keyed(), "status", json!(422)))),
        ("another status outside", answer(422, json_problem, keyed())),
        (
            "a type of another status",
            answer(500, json_problem, with(document(ProblemType::Internal), "type", json!("/problems/unavailable"))),
        ),
        ("plain JSON", answer(409, "application/json", keyed())),
        ("HTML with 401", answer(401, "text/html", "<html>proxy</html>")),
        ("HTML with 404", answer(404, "text/html", "<html>nginx</html>")),
        ("HTML with 422", answer(422, "text/html", "<html>nginx</html>")),
        ("HTML with 502", answer(502, "text/html", "<html>nginx</html>")),
        ("nothing with 500", Answer { status: 500, ..Answer::default() }),
        ("408", answer(408, "text/plain", "time")),
        ("425", answer(425, "text/plain", "early")),
    ];
    for (what, answer) in cases {
        assert!(matches!(reads(&answer), Reading::Foreign(_)), "{what}: {:?}", reads(&answer));
    }
    for kind in
        [ProblemType::InProgress, ProblemType::KeyExpired, ProblemType::OperationCancelled, ProblemType::KeyReused]
    {
        for key in [None, Some(other.to_owned())] {
            let answer = Answer { key, ..problem(kind) };
            assert!(matches!(reads(&answer), Reading::Foreign(_)), "{kind:?} without our key");
        }
    }
}

#[test]
fn retry_after_is_seconds_or_a_date_and_is_never_negative() {
    let read_from = |text: &str| match reads(&retry_after(problem(ProblemType::Unavailable), text)) {
        Reading::Busy { retry_after, problem } if problem == "unavailable" => Some(retry_after.as_secs()),
        _ => None,
    };
    assert_eq!(read_from("7"), Some(7));
    assert_eq!(read_from(" 7 "), Some(7));
    assert_eq!(read_from("-7"), Some(0));
    assert_eq!(read_from("0"), Some(0));
    assert_eq!(read_from("999999999999999999999999"), Some(i64::MAX));
    assert_eq!(read_from("Thu, 01 Jan 1970 00:01:30 GMT"), Some(90));
    assert_eq!(read_from("Wed, 31 Dec 1969 23:00:00 GMT"), Some(0));
    for nonsense in ["", "soon", "1.5", "-", "7 s"] {
        assert_eq!(read_from(nonsense), None, "{nonsense:?}");
    }
    assert_eq!(
        reads(&retry_after(problem(ProblemType::InProgress), "2")),
        Reading::InProgress(Some(SignedDuration::from_secs(2)))
    );
    // Nobody but the bank may hold its queue: a portal's page asks in vain.
    for status in [429, 503] {
        let portal = retry_after(answer(status, "text/html", "busy"), "900");
        let looked_up = read_lookup(&expected(), &portal, NOW);
        let policy = read_policy(&portal, NOW).unwrap_err();
        for reading in [reads(&portal), looked_up, policy] {
            assert!(matches!(reading, Reading::Foreign(_)) && reading.is_transport(), "{reading:?}");
        }
    }
}

#[test]
fn a_lookup_counts_only_for_our_key_kind_amount_and_currency() {
    let operation = |state: &str, kind: Value, result: Value| {
        json!({"key": key(), "state": state, "kind": kind, "result": result, "created_at": "2026-11-29T10:00:00Z",
               "completed_at": null})
    };
    let looked_up = |operation: &Value| read_lookup(&expected(), &ok(200, operation), NOW);
    let approved = payment("approved");
    assert_eq!(
        looked_up(&operation("approved", json!("payment"), approved.clone())),
        Reading::Final { outcome: Outcome::Approved, result: approved.to_string() }
    );
    assert_eq!(looked_up(&operation("declined", json!("payment"), payment("declined"))).name(), "declined");
    assert_eq!(looked_up(&operation("cancelled", Value::Null, Value::Null)), Reading::Cancelled);
    assert_eq!(looked_up(&operation("cancelled", json!("payment"), Value::Null)), Reading::Cancelled);
    assert_eq!(looked_up(&operation("processing", json!("payment"), Value::Null)), Reading::InProgress(None));
    assert_eq!(looked_up(&operation("needs_attention", json!("payment"), Value::Null)).name(), "needs-attention");
    assert_eq!(read_lookup(&expected(), &problem(ProblemType::OperationUnknown), NOW), Reading::UnknownKey);
    assert_eq!(read_lookup(&expected(), &problem(ProblemType::NotFound), NOW).name(), "not-found");
    assert_eq!(
        read_lookup(&expected(), &problem(ProblemType::Unauthorized), NOW),
        Reading::not_allowed("unauthorized")
    );
    let other_key = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c";
    let wrong = [
        ("another key", with(operation("approved", json!("payment"), approved.clone()), "key", json!(other_key))),
        ("another kind", operation("approved", json!("refund"), approved.clone())),
        ("no kind", operation("approved", Value::Null, approved.clone())),
        ("no result", operation("approved", json!("payment"), Value::Null)),
        ("another state than its result", operation("declined", json!("payment"), approved.clone())),
        ("another amount", operation("approved", json!("payment"), with(approved.clone(), "amount", json!(1)))),
        ("another currency", operation("approved", json!("payment"), with(approved, "currency", json!("USD")))),
        ("a state of its own", operation("done", json!("payment"), Value::Null)),
    ];
    for (what, operation) in wrong {
        assert!(matches!(looked_up(&operation), Reading::Foreign(_)), "{what}");
    }
    let portal = answer(200, "text/html", "<html>sign in</html>");
    assert!(matches!(read_lookup(&expected(), &portal, NOW), Reading::Foreign(_)));
}

#[test]
fn a_policy_is_one_or_none() {
    let policy = serde_json::to_value(Policy {
        bank_id: Uuid::from_u128(7),
        merchant: "demo".to_owned(),
        claims: Policy::CLAIMS_PERMANENT.to_owned(),
        retention_s: 86_400,
        key_format: "uuid".to_owned(),
        max_body_bytes: 65_536,
        wait_ms: 3_000,
        currencies: vec![Currency::EUR],
    })
    .unwrap();
    assert_eq!(read_policy(&ok(200, &policy), NOW).unwrap().merchant, "demo");
    for (what, answer, name) in [
        ("HTML", answer(200, "text/html", "<html>"), "not-the-bank"),
        ("half", answer(200, "application/json", &policy.to_string()[..30]), "not-the-bank"),
        ("refused", problem(ProblemType::Unauthorized), "unauthorized"),
        ("busy", retry_after(problem(ProblemType::RateLimited), "3"), "rate-limited"),
        ("failed", problem(ProblemType::Internal), "internal"),
        ("not there", problem(ProblemType::NotFound), "not-found"),
    ] {
        assert_eq!(read_policy(&answer, NOW).unwrap_err().name(), name, "{what}");
    }
}
