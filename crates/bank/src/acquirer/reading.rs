//! What the gateway's answer means. Pure, because it decides whether money moved.

use crate::{gateway::wire::Moved, metrics::Ended};
use bytes::Bytes;
use protocol::{Amount, Currency, Outcome, Problem, ProblemType};

/// An answer as it came.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after_s: Option<u32>,
    pub(crate) body: Bytes,
}

/// What was asked for: an answer about anything else is not ours.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) reference: String,
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The gateway's own word on our request.
    Known(Moved),
    /// Nobody knows whether the money moved: the gateway failed, or something else answered in its place. Ask again under
    /// the same key.
    Unknown { why: &'static str, retry_after_s: Option<u32> },
    /// The gateway is at it, and does not know itself yet. Ask again under the same key.
    InProgress { retry_after_s: Option<u32> },
    /// The gateway ran it and has dropped its answer: ask by reference.
    Expired,
    /// The gateway knows nothing of that reference.
    NotThere,
    /// A definite answer that settles nothing. A person must look.
    NeedsAttention(&'static str),
    /// It is another gateway than the one that the request was meant for.
    OtherGateway,
}

impl Reading {
    /// What it is counted as.
    pub(crate) fn ended(&self) -> Ended {
        match self {
            Self::Known(_) => Ended::Known,
            Self::Unknown { .. } => Ended::Unknown,
            Self::InProgress { .. } => Ended::InProgress,
            Self::Expired => Ended::Expired,
            Self::NotThere => Ended::NotThere,
            Self::NeedsAttention(_) => Ended::NeedsAttention,
            Self::OtherGateway => Ended::OtherGateway,
        }
    }
}

/// Reads the answer to a keyed request.
pub(crate) fn of_request(raw: &Raw, expected: &Expected) -> Reading {
    let unknown = |why| Reading::Unknown { why, retry_after_s: raw.retry_after_s };
    match raw.status {
        200 | 201 | 402 => moved(raw, expected),
        400..=499 => match problem(raw) {
            None => unknown("a refusal that is not the gateway's"),
            Some(ProblemType::InProgress) => Reading::InProgress { retry_after_s: raw.retry_after_s },
            Some(ProblemType::RateLimited) => unknown("the gateway has too much to do"),
            Some(ProblemType::KeyExpired) => Reading::Expired,
            Some(ProblemType::Forbidden) => Reading::OtherGateway,
            Some(ProblemType::KeyReused) => Reading::NeedsAttention("the gateway knows our key for another request"),
            Some(_) => Reading::NeedsAttention("the gateway refused the request"),
        },
        500..=599 => unknown("the gateway failed"),
        _ => unknown("an answer that is not the gateway's"),
    }
}

/// Reads the answer to a question by reference.
pub(crate) fn of_question(raw: &Raw, expected: &Expected) -> Reading {
    let unknown = |why| Reading::Unknown { why, retry_after_s: raw.retry_after_s };
    match raw.status {
        200 => moved(raw, expected),
        400..=499 => match problem(raw) {
            None => unknown("a refusal that is not the gateway's"),
            Some(ProblemType::InProgress) => Reading::InProgress { retry_after_s: raw.retry_after_s },
            Some(ProblemType::RateLimited) => unknown("the gateway has too much to do"),
            Some(ProblemType::PaymentUnknown) => Reading::NotThere,
            Some(ProblemType::Forbidden) => Reading::OtherGateway,
            Some(_) => Reading::NeedsAttention("the gateway refused to be asked by reference"),
        },
        _ => unknown("the gateway could not be asked by reference"),
    }
}

fn problem(raw: &Raw) -> Option<ProblemType> {
    if !raw.content_type.starts_with(Problem::MEDIA_TYPE) {
        return None;
    }
    serde_json::from_slice::<Problem>(&raw.body).ok().map(|problem| problem.problem)
}

fn moved(raw: &Raw, expected: &Expected) -> Reading {
    let unknown = |why| Reading::Unknown { why, retry_after_s: raw.retry_after_s };
    if !raw.content_type.starts_with("application/json") {
        return unknown("an answer that is not the gateway's");
    }
    let Ok(moved) = serde_json::from_slice::<Moved>(&raw.body) else {
        return unknown("a torn answer");
    };
    if (moved.amount, moved.currency, &moved.reference) != (expected.amount, expected.currency, &expected.reference) {
        return Reading::NeedsAttention("the gateway's answer is about something else than we asked");
    }
    let fits = match (raw.status, moved.status) {
        (200, _) | (201, Outcome::Approved) => true,
        (402, Outcome::Declined) => moved.decline_code.is_some(),
        _ => false,
    };
    if fits { Reading::Known(moved) } else { Reading::NeedsAttention("the gateway's answer contradicts itself") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn expected() -> Expected {
        Expected { amount: Amount::new(2490).unwrap(), currency: Currency::EUR, reference: "kassa-1".into() }
    }

    fn raw(status: u16, content_type: &str, body: impl Into<Bytes>) -> Raw {
        Raw { status, content_type: content_type.into(), retry_after_s: Some(2), body: body.into() }
    }

    fn approved() -> Value {
        json!({"id": "ch_1", "status": "approved", "amount": 2490, "currency": "EUR", "reference": "kassa-1", "approval_code": "A"})
    }

    fn answer(status: u16, body: &Value) -> Reading {
        of_request(&raw(status, "application/json", body.to_string()), &expected())
    }

    fn refused(name: &str, status: u16) -> Reading {
        let body = json!({"type": format!("/problems/{name}"), "title": "t", "status": status, "detail": "d", "retryable": false});
        of_request(&raw(status, "application/problem+json", body.to_string()), &expected())
    }

    #[test]
    fn the_gateways_own_word_is_known() {
        assert!(matches!(answer(201, &approved()), Reading::Known(moved) if moved.status == Outcome::Approved));
        let declined = json!({"id": "ch_1", "status": "declined", "amount": 2490, "currency": "EUR", "reference": "kassa-1", "decline_code": "lost"});
        assert!(
            matches!(answer(402, &declined), Reading::Known(moved) if moved.decline_code.as_deref() == Some("lost"))
        );
    }

    #[test]
    fn an_answer_about_something_else_needs_a_person() {
        for (member, value) in [("amount", json!(2491)), ("currency", json!("USD")), ("reference", json!("kassa-2"))] {
            let mut foreign = approved();
            foreign[member] = value;
            assert!(matches!(answer(201, &foreign), Reading::NeedsAttention(_)), "{member}");
        }
        assert!(matches!(answer(402, &approved()), Reading::NeedsAttention(_)), "approved, and 402");
        for name in ["request-invalid", "key-reused", "payment-unknown", "operation-cancelled", "unauthorized"] {
            let status = ProblemType::from_name(name).unwrap().status();
            assert!(matches!(refused(name, status), Reading::NeedsAttention(_)), "{name}");
        }
        assert_eq!(refused("forbidden", 403), Reading::OtherGateway);
        assert_eq!(refused("key-expired", 410), Reading::Expired);
    }

    #[test]
    fn all_else_is_unknown() {
        let unknown = |reading| matches!(reading, Reading::Unknown { retry_after_s: Some(2), .. });
        for (name, status) in [("rate-limited", 429), ("internal", 500), ("unavailable", 503)] {
            assert!(unknown(refused(name, status)), "{name}");
        }
        assert_eq!(refused("in-progress", 409), Reading::InProgress { retry_after_s: Some(2) });
        let page = "<!doctype html><html></html>";
        for status in [200, 201, 402, 403, 404, 422, 302, 100, 500, 502, 599] {
            assert!(unknown(of_request(&raw(status, "text/html", page), &expected())), "{status}");
        }
        let whole = approved().to_string();
        for cut in 0..whole.len() {
            assert!(unknown(of_request(&raw(201, "application/json", whole[..cut].to_owned()), &expected())), "{cut}");
        }
    }

    #[test]
    fn a_question_by_reference_is_answered_or_not_known() {
        let ask = |status, content_type: &str, body: Value| {
            of_question(&raw(status, content_type, body.to_string()), &expected())
        };
        assert!(matches!(ask(200, "application/json", approved()), Reading::Known(_)));
        let gone = json!({"type": "/problems/payment-unknown", "title": "t", "status": 404, "detail": "d", "retryable": false});
        assert_eq!(ask(404, "application/problem+json", gone), Reading::NotThere);
        assert!(matches!(ask(404, "text/html", json!("x")), Reading::Unknown { .. }));
        let refused = |name: &str, status: u16| {
            let problem = json!({"type": format!("/problems/{name}"), "title": "t", "status": status, "detail": "d", "retryable": false});
            ask(status, "application/problem+json", problem)
        };
        for (name, status) in
            [("request-invalid", 400), ("unauthorized", 401), ("not-found", 404), ("key-expired", 410)]
        {
            assert!(matches!(refused(name, status), Reading::NeedsAttention(_)), "{name}");
        }
        assert_eq!(refused("forbidden", 403), Reading::OtherGateway);
        assert_eq!(refused("in-progress", 409), Reading::InProgress { retry_after_s: Some(2) });
        assert!(matches!(refused("rate-limited", 429), Reading::Unknown { .. }));
        assert!(matches!(ask(503, "application/problem+json", json!({})), Reading::Unknown { .. }));
    }
}
