//! What the gateway's answer means. Pure, because it decides whether money moved.

use crate::{gateway::wire::Moved, metrics::Ended};
use bytes::Bytes;
use protocol::{Amount, CardToken, Currency, Outcome, Problem, ProblemType};

/// Why a definite answer is not told on.
const CONTRADICTION: &str = "the gateway's answer contradicts itself";

/// Characters of an id, a code or a brand of the gateway's at most.
const TEXT_CHARS_MAX: usize = 64;
/// From so many characters on, a token that is no word stands in no text by chance.
const TELLING_CHARS_MIN: usize = 8;

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
    /// The card that is charged; none where money is given back.
    pub(crate) card: Option<CardToken>,
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
    let is_told_as_it_is =
        matches!((raw.status, moved.status), (200, _) | (201, Outcome::Approved) | (402, Outcome::Declined));
    if is_told_as_it_is && is_whole(&moved, expected) && has_plain_texts(&moved, expected.card.as_ref()) {
        Reading::Known(moved)
    } else {
        Reading::NeedsAttention(CONTRADICTION)
    }
}

/// Whether all is there that goes with the outcome, and nothing that goes with the other.
fn is_whole(moved: &Moved, expected: &Expected) -> bool {
    match moved.status {
        Outcome::Declined => moved.decline_code.is_some() && moved.approval_code.is_none(),
        Outcome::Approved => {
            // Money that is given back has neither card nor code.
            let is_charged = moved.card.is_some() && moved.approval_code.is_some();
            moved.decline_code.is_none() && (is_charged || expected.card.is_none())
        }
    }
}

/// Whether the texts may be stored, told on and printed on a receipt: they are a stranger's.
fn has_plain_texts(moved: &Moved, charged: Option<&CardToken>) -> bool {
    let card = moved.card.as_ref();
    let texts = [
        Some(&moved.id),
        moved.approval_code.as_ref(),
        moved.decline_code.as_ref(),
        card.map(|card| &card.brand),
        card.map(|card| &card.last4),
    ];
    let last4 = card.is_none_or(|card| card.last4.len() == 4 && card.last4.bytes().all(|byte| byte.is_ascii_digit()));
    last4 && texts.into_iter().flatten().all(|text| is_plain(text) && charged.is_none_or(|card| !tells(text, card)))
}

fn is_plain(text: &str) -> bool {
    (1..=TEXT_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether a text gives the card's token away. A token that is short or like a word may stand in a text by chance, as `card`
/// does in `unknown_card`.
fn tells(text: &str, card: &CardToken) -> bool {
    let token = card.expose();
    let is_like_a_word = token.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let is_telling = token.starts_with("tok_") || (token.len() >= TELLING_CHARS_MIN && !is_like_a_word);
    is_telling && text.contains(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn expected() -> Expected {
        Expected {
            amount: Amount::new(2490).unwrap(),
            currency: Currency::EUR,
            reference: "kassa-1".into(),
            card: Some(CardToken::new("tok_visa").unwrap()),
        }
    }

    fn raw(status: u16, content_type: &str, body: impl Into<Bytes>) -> Raw {
        Raw { status, content_type: content_type.into(), retry_after_s: Some(2), body: body.into() }
    }

    fn approved() -> Value {
        json!({"id": "ch_1", "status": "approved", "amount": 2490, "currency": "EUR", "reference": "kassa-1", "approval_code": "A",
               "card": {"brand": "visa", "last4": "4242"}})
    }

    fn declined() -> Value {
        json!({"id": "ch_1", "status": "declined", "amount": 2490, "currency": "EUR", "reference": "kassa-1", "decline_code": "lost"})
    }

    fn with(mut body: Value, member: &str, value: Value) -> Value {
        body[member] = value;
        body
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
        assert!(
            matches!(answer(402, &declined()), Reading::Known(moved) if moved.decline_code.as_deref() == Some("lost"))
        );
        let card = json!({"brand": "visa", "last4": "9987"});
        for known in [declined(), with(declined(), "card", card), with(declined(), "approval_code", Value::Null)] {
            assert!(matches!(answer(402, &known), Reading::Known(_)), "{known}");
            assert!(matches!(answer(200, &known), Reading::Known(_)), "{known}");
        }
    }

    #[test]
    fn an_answer_that_contradicts_itself_or_holds_no_plain_texts_needs_a_person() {
        let (a_card, long) = (|brand: &str, last4: &str| json!({"brand": brand, "last4": last4}), "A".repeat(65));
        let approvals = [
            with(approved(), "card", Value::Null),
            with(approved(), "card", a_card("", "4242")),
            with(approved(), "card", a_card("vi sa", "4242")),
            with(approved(), "card", a_card("tok_visa", "4242")),
            with(approved(), "card", a_card(&long, "4242")),
            with(approved(), "card", a_card("visa", "tok_visa")),
            with(approved(), "card", a_card("visa", "424")),
            with(approved(), "card", a_card("visa", "42424")),
            with(approved(), "card", a_card("visa", "424a")),
            with(approved(), "approval_code", Value::Null),
            with(approved(), "approval_code", json!("")),
            with(approved(), "approval_code", json!("A".repeat(50_000))),
            with(approved(), "approval_code", json!("A\r\nX: y\u{0}")),
            with(approved(), "approval_code", json!("tok_visa")),
            with(approved(), "approval_code", json!("A-tok_visa-A")),
            with(approved(), "decline_code", json!("lost")),
            with(approved(), "id", json!("")),
            with(approved(), "id", json!(long)),
            with(approved(), "id", json!("ch_tok_visa")),
        ];
        for body in &approvals {
            for status in [200, 201] {
                assert_eq!(answer(status, body), Reading::NeedsAttention(CONTRADICTION), "{status} {body:.300}");
            }
            let found = of_question(&raw(200, "application/json", body.to_string()), &expected());
            assert_eq!(found, Reading::NeedsAttention(CONTRADICTION), "{body:.300}");
        }
        let declines = [
            with(declined(), "decline_code", Value::Null),
            with(declined(), "decline_code", json!("")),
            with(declined(), "decline_code", json!("tok_visa")),
            with(declined(), "decline_code", json!(long)),
            with(declined(), "decline_code", json!("<b>")),
            with(declined(), "approval_code", json!("A")),
        ];
        for (status, body) in [200, 402].into_iter().flat_map(|status| declines.iter().map(move |body| (status, body)))
        {
            assert_eq!(answer(status, body), Reading::NeedsAttention(CONTRADICTION), "{status} {body:.300}");
        }
        assert_eq!(answer(201, &declined()), Reading::NeedsAttention(CONTRADICTION));
    }

    #[test]
    fn money_that_is_given_back_has_neither_card_nor_code() {
        let giving_back = Expected { card: None, ..expected() };
        let ask = |status, body: Value| of_request(&raw(status, "application/json", body.to_string()), &giving_back);
        let mut given = approved();
        given.as_object_mut().unwrap().retain(|name, _| !["card", "approval_code"].contains(&name.as_str()));
        assert!(matches!(ask(201, given.clone()), Reading::Known(_)));
        assert_eq!(ask(201, with(given, "id", json!(""))), Reading::NeedsAttention(CONTRADICTION));
        assert!(matches!(ask(402, declined()), Reading::Known(_)));
        assert_eq!(ask(200, with(declined(), "decline_code", Value::Null)), Reading::NeedsAttention(CONTRADICTION));
    }

    #[test]
    fn a_token_that_reads_like_a_word_hides_no_decline() {
        for token in ["card", "a", "unknown_card", "0", "lost", "42"] {
            let charged = Expected { card: Some(CardToken::new(token).unwrap()), ..expected() };
            let unknown = with(with(declined(), "decline_code", json!("unknown_card")), "id", json!("ch_01042"));
            let read = of_request(&raw(402, "application/json", unknown.to_string()), &charged);
            assert!(matches!(read, Reading::Known(_)), "{token}");
        }
        let charged = Expected { card: Some(CardToken::new("4242424242424241").unwrap()), ..expected() };
        let told = with(approved(), "approval_code", json!("4242424242424241"));
        let read = of_request(&raw(201, "application/json", told.to_string()), &charged);
        assert_eq!(read, Reading::NeedsAttention(CONTRADICTION));
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
