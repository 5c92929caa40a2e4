//! The table of answers, row by row: what came back, how it is read, and what becomes of the operation.

mod becoming;
mod reading;

use jiff::Timestamp;
use outbox::answer::{Answer, Reading};
use outbox::bank::{Expected, read};
use protocol::{Currency, Key, Kind, Problem, ProblemType};
use serde_json::{Value, json};

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

pub(crate) fn key() -> Key {
    "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b".parse().unwrap_or_else(|_| unreachable!("a valid key"))
}

pub(crate) fn expected() -> Expected {
    Expected { key: key(), kind: Kind::Payment, amount: 2490, currency: Currency::EUR, payment_id: None }
}

pub(crate) fn payment(status: &str) -> Value {
    let mut payment = json!({
        "id": "pay_1", "status": status, "amount": 2490, "currency": "EUR", "card": {"brand": "visa", "last4": "4242"},
        "reference": "till-1/1042", "operation": key(), "short_code": key().short_code(),
        "created_at": "2026-11-29T10:00:00Z",
    });
    if status == "approved" {
        payment["approval_code"] = json!("8F21K0");
    } else {
        payment["decline_code"] = json!("insufficient_funds");
    }
    payment
}

pub(crate) fn with(mut object: Value, member: &str, value: Value) -> Value {
    object[member] = value;
    object
}

pub(crate) fn answer(status: u16, content_type: &str, body: impl ToString) -> Answer {
    Answer {
        status,
        content_type: Some(content_type.to_owned()),
        retry_after: None,
        key: Some(key().to_string()),
        date: None,
        body: body.to_string().into_bytes(),
    }
}

pub(crate) fn ok(status: u16, body: &Value) -> Answer {
    answer(status, "application/json", body)
}

pub(crate) fn problem(problem: ProblemType) -> Answer {
    let document = serde_json::to_value(Problem::new(problem, "why")).unwrap_or_default();
    answer(problem.status(), "application/problem+json", document)
}

pub(crate) fn retry_after(answer: Answer, text: &str) -> Answer {
    Answer { retry_after: Some(text.to_owned()), ..answer }
}

pub(crate) fn reads(answer: &Answer) -> Reading {
    read(&expected(), answer, NOW)
}
