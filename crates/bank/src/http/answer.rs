//! Answers: stored responses, plain JSON, and the problem documents that all else is.

use crate::http::body;
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use idempotency::{Answer, Hindrance, Unavailable};
use protocol::{DecodeError, DecodeErrorKind, Key, OperationState, Problem, ProblemType};
use rand::Rng;
use serde::Serialize;
use std::ops::RangeInclusive;
use store::{ReadError, WriteError};

/// Whole seconds after which a running operation is asked for again.
const IN_PROGRESS_RETRY_S: RangeInclusive<u32> = 1..=3;
/// Whole seconds after which all else is tried again.
const OTHER_RETRY_S: RangeInclusive<u32> = 1..=10;

const JSON: &str = "application/json";

/// An error on its way out: a problem document with the headers that belong to it.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) problem: Box<Problem>,
    pub(crate) retry_after_s: Option<u32>,
    pub(crate) key: Option<Key>,
    /// The connection can't be used any more, because not all of the request was read.
    pub(crate) close: bool,
}

impl Refusal {
    /// A problem of that type. What may be tried again says when, jittered, so that those who were refused
    /// together don't come back together.
    pub(crate) fn new(problem: ProblemType, detail: impl Into<String>) -> Self {
        let retry_after_s = match problem {
            ProblemType::InProgress => Some(rand::rng().random_range(IN_PROGRESS_RETRY_S)),
            ProblemType::RateLimited | ProblemType::Unavailable => Some(rand::rng().random_range(OTHER_RETRY_S)),
            _ => None,
        };
        Self { problem: Box::new(Problem::new(problem, detail)), retry_after_s, key: None, close: false }
    }

    /// Echoes the key of the request.
    #[must_use]
    pub(crate) fn of(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Tells how far the operation is.
    #[must_use]
    pub(crate) fn state(mut self, state: OperationState) -> Self {
        self.problem.state = Some(state);
        self
    }

    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.close = true;
        self
    }
}

impl From<Hindrance> for Refusal {
    fn from(why: Hindrance) -> Self {
        let problem = match why {
            Hindrance::TooMuchOfScope => ProblemType::RateLimited,
            Hindrance::Store | Hindrance::TooMuch | Hindrance::Ending | Hindrance::Newer => ProblemType::Unavailable,
        };
        Self::new(
            problem,
            match why {
                Hindrance::Store => "the bank's store can't be used right now; send the same request again later",
                Hindrance::TooMuch => "the bank has too much in hand right now; send the same request again later",
                Hindrance::TooMuchOfScope => {
                    "the bank has too many operations of this merchant in hand right now; send the same request again later"
                }
                Hindrance::Ending => "the service is going down; send the same request again later",
                Hindrance::Newer => "a newer version of the bank wrote what is stored of the key; this one can't tell",
            },
        )
    }
}

impl From<Unavailable> for Refusal {
    fn from(error: Unavailable) -> Self {
        error.why().into()
    }
}

impl<E: std::fmt::Display> From<ReadError<E>> for Refusal {
    fn from(error: ReadError<E>) -> Self {
        Unavailable::from(error).into()
    }
}

impl<E: std::fmt::Display> From<WriteError<E>> for Refusal {
    fn from(error: WriteError<E>) -> Self {
        Unavailable::from(error).into()
    }
}

impl From<DecodeError> for Refusal {
    fn from(error: DecodeError) -> Self {
        let problem = match error.kind {
            DecodeErrorKind::Malformed => ProblemType::RequestMalformed,
            DecodeErrorKind::Invalid => ProblemType::RequestInvalid,
        };
        Self::new(problem, error.detail)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json_of(status, Problem::MEDIA_TYPE, &self.problem);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(key) = self.key {
            echo(headers, &key);
        }
        if self.close {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    json_of(status, JSON, value)
}

fn json_of(status: StatusCode, media_type: &'static str, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => (status, [(header::CONTENT_TYPE, media_type)], body).into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// What is told where the bank itself failed.
pub(crate) fn failed(what: &'static str) -> Refusal {
    tracing::error!(what, "an answer could not be made");
    Refusal::new(ProblemType::Internal, "the bank failed; send the same request again later")
}

/// What is answered at a path where nothing is.
pub(crate) async fn not_found(request: Request) -> Refusal {
    body::discard(request.into_body()).await;
    Refusal::new(ProblemType::NotFound, "there is nothing at this path")
}

/// What is answered to a method that a path doesn't have. The router adds `Allow`.
pub(crate) async fn method_not_allowed(request: Request) -> Refusal {
    body::discard(request.into_body()).await;
    Refusal::new(ProblemType::MethodNotAllowed, "this path has other methods, see Allow")
}

/// The answer of the engine to a keyed request.
pub(crate) fn of_engine(answer: Answer, key: Key) -> Response {
    let refusal = match answer {
        Answer::Done { response, replayed } => return stored(response, replayed, key),
        Answer::InProgress => Refusal::new(
            ProblemType::InProgress,
            "the operation runs and its outcome is not known yet; send the same request again later",
        )
        .state(OperationState::Processing),
        Answer::NeedsAttention => Refusal::new(
            ProblemType::InProgress,
            "the bank can't find out by itself how the operation ended; its people look at it",
        )
        .state(OperationState::NeedsAttention),
        Answer::Reused { differs } => {
            let mut refusal = Refusal::new(
                ProblemType::KeyReused,
                format!("the key belongs to another request, which differs in: {}", differs.join(", ")),
            );
            refusal.problem.differs = Some(differs);
            refusal
        }
        Answer::Expired { kind, outcome, subject } => {
            let mut refusal = Refusal::new(
                ProblemType::KeyExpired,
                "the stored response has expired, and the operation was not run again; ask what became of it by its key",
            );
            refusal.problem.state = outcome_state(&outcome);
            if kind.as_deref() == Some(protocol::Kind::Refund.as_str()) {
                refusal.problem.refund_id = subject;
            } else {
                refusal.problem.payment_id = subject;
            }
            refusal
        }
        Answer::Cancelled => Refusal::new(ProblemType::OperationCancelled, "the key was cancelled and never charges"),
        Answer::Refused(why) => Refusal::new(ProblemType::PaymentUnknown, why),
        Answer::Unavailable(why) => why.into(),
    };
    refusal.of(key).into_response()
}

/// The state that goes with a stored outcome.
pub(crate) fn outcome_state(outcome: &str) -> Option<OperationState> {
    [OperationState::Approved, OperationState::Declined].into_iter().find(|state| state.as_str() == outcome)
}

fn stored(stored: idempotency::Response, replayed: bool, key: Key) -> Response {
    let mut response = Response::new(Body::from(stored.body));
    *response.status_mut() = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    set(headers, header::CONTENT_TYPE, &stored.content_type);
    if let Some(location) = &stored.location {
        set(headers, header::LOCATION, location);
    }
    headers.insert(
        HeaderName::from_static(protocol::IDEMPOTENT_REPLAYED),
        HeaderValue::from_static(if replayed { "true" } else { "false" }),
    );
    echo(headers, &key);
    response
}

/// Whether an answer is a problem document.
pub(crate) fn is_problem(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|media_type| media_type == Problem::MEDIA_TYPE)
}

/// Echoes the key, in its one canonical spelling.
pub(crate) fn echo(headers: &mut HeaderMap, key: &Key) {
    set(headers, HeaderName::from_static(protocol::IDEMPOTENCY_KEY), &key.to_string());
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => {
            headers.insert(name, value);
        }
        Err(_) => tracing::error!(%name, "a stored header can't be sent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use idempotency::Response as Stored;

    const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";

    /// Status line, headers but the jittered one, and body, as they go out.
    async fn shown(answer: Answer) -> String {
        let response = of_engine(answer, Key::parse(KEY).unwrap());
        let (parts, body) = response.into_parts();
        let mut text = format!("{}\n", parts.status.as_u16());
        for (name, value) in &parts.headers {
            if name == header::RETRY_AFTER {
                let seconds: u32 = value.to_str().unwrap().parse().unwrap();
                assert!((1..=60).contains(&seconds));
                text += "retry-after\n";
            } else {
                text += &format!("{name}: {}\n", value.to_str().unwrap());
            }
        }
        text + std::str::from_utf8(&body.collect().await.unwrap().to_bytes()).unwrap()
    }

    #[tokio::test]
    async fn a_stored_response_goes_out_as_it_is_stored() {
        let response = Stored {
            status: 402,
            content_type: "application/json".into(),
            location: Some("/v1/payments/pay_1".into()),
            body: "{\"id\":\"pay_1\"}".into(),
        };
        assert_eq!(
            shown(Answer::Done { response, replayed: true }).await,
            "402\ncontent-type: application/json\nlocation: /v1/payments/pay_1\nidempotent-replayed: true\n\
             idempotency-key: 0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b\n{\"id\":\"pay_1\"}"
        );
    }

    #[tokio::test]
    async fn each_problem_has_its_document() {
        let head = "content-type: application/problem+json\n";
        let echo = "idempotency-key: 0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b\n";
        assert_eq!(
            shown(Answer::InProgress).await,
            format!(
                "409\n{head}retry-after\n{echo}{}",
                r#"{"type":"/problems/in-progress","title":"The operation is not finished","status":409,"detail":"the operation runs and its outcome is not known yet; send the same request again later","retryable":true,"state":"processing"}"#
            )
        );
        assert_eq!(
            shown(Answer::NeedsAttention).await,
            format!(
                "409\n{head}retry-after\n{echo}{}",
                r#"{"type":"/problems/in-progress","title":"The operation is not finished","status":409,"detail":"the bank can't find out by itself how the operation ended; its people look at it","retryable":true,"state":"needs_attention"}"#
            )
        );
        assert_eq!(
            shown(Answer::Reused { differs: vec!["amount".into(), "card".into()] }).await,
            format!(
                "422\n{head}{echo}{}",
                r#"{"type":"/problems/key-reused","title":"The key belongs to another request","status":422,"detail":"the key belongs to another request, which differs in: amount, card","retryable":false,"differs":["amount","card"]}"#
            )
        );
        let expired = |kind: &str, subject: &str| Answer::Expired {
            kind: Some(kind.into()),
            outcome: "approved".into(),
            subject: Some(subject.into()),
        };
        let document = |member: &str| {
            format!(
                "410\n{head}{echo}{{\"type\":\"/problems/key-expired\",\"title\":\"The stored response has expired\",\"status\":410,\"detail\":\"the stored response has expired, and the operation was not run again; ask what became of it by its key\",\"retryable\":false,\"state\":\"approved\",{member}}}"
            )
        };
        assert_eq!(shown(expired("payment", "pay_1")).await, document("\"payment_id\":\"pay_1\""));
        assert_eq!(shown(expired("refund", "re_1")).await, document("\"refund_id\":\"re_1\""));
        assert_eq!(
            shown(Answer::Cancelled).await,
            format!(
                "410\n{head}{echo}{}",
                r#"{"type":"/problems/operation-cancelled","title":"The operation was cancelled and never charges","status":410,"detail":"the key was cancelled and never charges","retryable":false}"#
            )
        );
        assert_eq!(
            shown(Answer::Unavailable(Hindrance::Store)).await,
            format!(
                "503\n{head}retry-after\n{echo}{}",
                r#"{"type":"/problems/unavailable","title":"The bank can't take requests now","status":503,"detail":"the bank's store can't be used right now; send the same request again later","retryable":true}"#
            )
        );
    }

    #[test]
    fn a_hindrance_is_told_as_what_it_is() {
        let detail = |why: Hindrance| Refusal::from(why).problem.detail;
        assert!(detail(Hindrance::Store).contains("store"));
        for other in [Hindrance::TooMuch, Hindrance::Ending, Hindrance::Newer] {
            assert!(!detail(other).contains("the bank's store can't be used"), "{other:?}");
            assert_eq!(Refusal::from(other).problem.status, 503);
        }
        assert_eq!(Refusal::from(Hindrance::TooMuchOfScope).problem.status, 429);
    }

    #[test]
    fn the_time_to_come_again_is_within_bounds_and_jittered() {
        let seconds = |problem| -> std::collections::BTreeSet<u32> {
            (0..300).filter_map(|_| Refusal::new(problem, "why").retry_after_s).collect()
        };
        assert_eq!(seconds(ProblemType::InProgress), [1, 2, 3].into());
        assert!(seconds(ProblemType::Unavailable).len() > 5);
        assert!(seconds(ProblemType::KeyReused).is_empty());
    }
}
