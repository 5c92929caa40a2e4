//! Answers that are not what they should be.

use crate::http::{
    answer::{self, Refusal},
    connections::Hangup,
};
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header, response::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Full};
use protocol::{Amount, Key, ProblemType};
use serde_json::Value;
use std::io;

/// What is done to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tamper {
    /// No answer; the connection is closed.
    Drop,
    /// This status, as the problem document that goes with it.
    Status { status: u16, retry_after_s: Option<u32> },
    /// Half of the body, and the connection is closed.
    Truncate,
    /// 200 and a page of HTML.
    Garbage,
    /// Well formed, and for another amount.
    Foreign,
}

impl Tamper {
    /// Makes the answer to send in place of `real`.
    pub(crate) async fn apply(self, real: Response, key: Key) -> Response {
        match self {
            Self::Drop => {
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(Hangup);
                response
            }
            Self::Status { status, retry_after_s } => {
                let mut refusal = Refusal::new(problem_of(status), "the fault lab answers this").of(key);
                refusal.problem.status = status;
                refusal.retry_after_s = retry_after_s.or(refusal.retry_after_s);
                refusal.into_response()
            }
            Self::Garbage => {
                let page = "<!doctype html><html><body><h1>Please sign in to the network</h1></body></html>";
                ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
            }
            Self::Truncate => truncate(real).await,
            Self::Foreign => foreign(real).await,
        }
    }
}

/// The problem document that goes with a status; the nearest in its class where there is none of it.
fn problem_of(status: u16) -> ProblemType {
    match status {
        400 => ProblemType::RequestInvalid,
        401 => ProblemType::Unauthorized,
        404 => ProblemType::NotFound,
        405 => ProblemType::MethodNotAllowed,
        409 => ProblemType::InProgress,
        410 => ProblemType::KeyExpired,
        413 => ProblemType::PayloadTooLarge,
        415 => ProblemType::UnsupportedMediaType,
        422 => ProblemType::KeyReused,
        429 => ProblemType::RateLimited,
        503 => ProblemType::Unavailable,
        500.. => ProblemType::Internal,
        _ => ProblemType::Forbidden,
    }
}

async fn whole(response: Response) -> (Parts, Bytes) {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    (parts, bytes)
}

async fn truncate(real: Response) -> Response {
    let (mut parts, body) = whole(real).await;
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    let half = body.slice(..body.len() / 2);
    let cut = async {
        // What comes before the error is sent only where the connection finds nothing to do in between.
        tokio::task::yield_now().await;
        Err(io::Error::other("the fault lab cuts the answer"))
    };
    let torn = futures::stream::iter([Ok(half)]).chain(futures::stream::once(cut));
    Response::from_parts(parts, Body::from_stream(torn))
}

async fn foreign(real: Response) -> Response {
    let (mut parts, body) = whole(real).await;
    let mut value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(amount) = value.get("amount").and_then(Value::as_i64) {
        value["amount"] = if amount == Amount::MAX.get() { amount - 1 } else { amount + 1 }.into();
    }
    let body = value.to_string();
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Response::from_parts(parts, Body::new(Full::from(body)))
}

/// A well-formed approval that nobody made: what a rule cuts, or changes, where there is no answer yet.
pub(crate) fn invented(amount: i64, more: &Value, key: Key) -> Response {
    let mut value = serde_json::json!({"id": "invented", "status": "approved", "amount": amount});
    if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
        value.extend(more.clone());
    }
    let mut response = answer::json(StatusCode::CREATED, &value);
    answer::echo(response.headers_mut(), &key);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key() -> Key {
        Key::from_bytes([1; 16]).unwrap()
    }

    fn real() -> Response {
        invented(100, &json!({"currency": "EUR"}), key())
    }

    #[tokio::test]
    async fn a_status_brings_its_problem_and_the_keys_echo() {
        for (status, name, retry) in [
            (503, "unavailable", Some("7")),
            (429, "rate-limited", Some("7")),
            (422, "key-reused", Some("7")),
            (502, "internal", Some("7")),
        ] {
            let response = Tamper::Status { status, retry_after_s: Some(7) }.apply(real(), key()).await;
            let (parts, body) = whole(response).await;
            assert_eq!(parts.status, status);
            assert_eq!(parts.headers.get("retry-after").map(|value| value.to_str().unwrap()), retry);
            assert_eq!(parts.headers[protocol::IDEMPOTENCY_KEY], key().to_string());
            let problem: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(problem["type"], format!("/problems/{name}"));
            assert_eq!(problem["status"], status);
        }
    }

    #[tokio::test]
    async fn a_foreign_answer_is_well_formed_and_for_another_amount() {
        let (parts, body) = whole(Tamper::Foreign.apply(real(), key()).await).await;
        assert_eq!(parts.status, 201);
        let value: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&value["amount"], &value["currency"]), (&json!(101), &json!("EUR")));
    }

    #[tokio::test]
    async fn half_of_the_body_comes_and_then_an_error() {
        let (_, whole_body) = whole(real()).await;
        let response = Tamper::Truncate.apply(real(), key()).await;
        assert_eq!(response.headers()[header::CONTENT_LENGTH], whole_body.len().to_string());
        let mut body = response.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, whole_body.slice(..whole_body.len() / 2));
        assert!(body.frame().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn garbage_is_html_and_a_drop_is_marked() {
        let garbage = Tamper::Garbage.apply(real(), key()).await;
        assert_eq!(garbage.status(), 200);
        assert!(garbage.headers()[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/html"));
        assert!(Tamper::Drop.apply(real(), key()).await.extensions().get::<Hangup>().is_some());
    }
}
