//! The lab's calls that both services have. What is of one service alone stands with that service.

use crate::{
    acquirer::contract::lab as contract,
    http::{
        answer::{self, Refusal},
        body,
    },
    lab::{Lab, rules::Rule},
    metrics::Metrics,
    openapi::Calls,
};
use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use protocol::ProblemType;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use std::sync::Arc;

/// Where the rules are.
pub(crate) const FAULTS_PATH: &str = "/lab/faults";
/// Where the clock is.
pub(crate) const CLOCK_PATH: &str = "/lab/clock";

/// The calls under `/lab`.
pub(crate) fn calls(lab: Arc<Lab>, metrics: Arc<Metrics>) -> Calls<()> {
    Calls::new(metrics)
        .call(contract::faults(), show)
        .call(contract::replace_faults(), replace)
        .call(contract::clear_faults(), clear)
        .call(contract::clock(), set_clock)
        .with_state(lab)
}

async fn show(State(lab): State<Arc<Lab>>) -> Response {
    answer::json(StatusCode::OK, &lab.rules.shown())
}

async fn replace(State(lab): State<Arc<Lab>>, request: Request) -> Result<Response, Refusal> {
    let sent: Vec<Rule> = decode(request).await?;
    let mut rules = Vec::with_capacity(sent.len());
    for (i, rule) in sent.into_iter().enumerate() {
        let checked = lab.rules.check(rule);
        rules.push(checked.map_err(|why| Refusal::new(ProblemType::RequestInvalid, format!("rule {i}: {why}")))?);
    }
    lab.rules.replace(rules);
    Ok(show(State(lab)).await)
}

async fn clear(State(lab): State<Arc<Lab>>) -> Response {
    lab.clear();
    StatusCode::NO_CONTENT.into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetClock {
    offset_s: i64,
}

async fn set_clock(State(lab): State<Arc<Lab>>, request: Request) -> Result<Response, Refusal> {
    let SetClock { offset_s } = decode(request).await?;
    lab.clock.set_offset_s(offset_s);
    Ok(answer::json(StatusCode::OK, &json!({"offset_s": offset_s})))
}

async fn decode<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let (parts, body) = request.into_parts();
    body::check_media_type(&parts.headers)?;
    let body = body::read(&parts.headers, body).await?;
    serde_json::from_slice(&body).map_err(|error| Refusal::new(ProblemType::RequestInvalid, error.to_string()))
}
