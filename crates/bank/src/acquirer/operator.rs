//! For the bank's own people: what needs attention, and trying one again.

use crate::{
    acquirer::{Inner, calls, calls::Call, names::Purpose, operations},
    http::{
        answer::{self, Refusal},
        keyed,
        segment::Segment,
    },
};
use axum::{
    Router,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use idempotency::{Clock, Record, State as EngineState};
use jiff::Timestamp;
use protocol::{Key, Kind, ProblemType, ShortCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn router() -> Router<Arc<Inner>> {
    Router::new()
        .route("/operator/attention", get(list))
        .route("/operator/operations/{merchant}/{key}/requeue", post(requeue))
}

/// An operation that needs attention.
#[derive(Serialize)]
struct Attention {
    merchant: String,
    key: Key,
    short_code: ShortCode,
    kind: Option<String>,
    reason: String,
    created_at: Timestamp,
    /// How long ago the key was claimed.
    age_s: i64,
    gateway_key: Option<Key>,
    gateway_attempts: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    after: i64,
}

/// Oldest first, a page at a time.
async fn list(State(bank): State<Arc<Inner>>, page: Result<Query<Page>, QueryRejection>) -> Result<Response, Refusal> {
    let invalid = |_| Refusal::new(ProblemType::RequestInvalid, "`after` must be a `next` of this list");
    let Query(page) = page.map_err(invalid)?;
    let records = bank.engine.needing_attention(page.after).await.map_err(Refusal::from)?;
    let ids: Vec<(i64, Purpose)> = records.iter().map(|record| (record.id, purpose(record))).collect();
    let found = bank.store.read(move |connection| {
        ids.into_iter().map(|(id, purpose)| calls::get(connection, id, purpose)).collect::<rusqlite::Result<Vec<_>>>()
    });
    let found = found.await.map_err(Refusal::from)?;
    let next = records.last().map(|record| record.id);
    let now = bank.clock.now();
    let data: Vec<_> =
        records.into_iter().zip(found).filter_map(|(record, call)| attention(record, call, now)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"data": data, "next": next})))
}

fn attention(record: Record, call: Option<Call>, now: Timestamp) -> Option<Attention> {
    let EngineState::NeedsAttention { reason } = record.state else { return None };
    let key = Key::from_bytes(record.key).ok()?;
    Some(Attention {
        merchant: record.scope.to_string(),
        key,
        short_code: key.short_code(),
        kind: record.kind,
        reason,
        created_at: record.created_at,
        age_s: now.duration_since(record.created_at).as_secs(),
        gateway_key: call.map(|call| call.key),
        gateway_attempts: call.map_or(0, |call| call.attempts),
    })
}

/// Puts an operation back to work. Its run looks at the gateway first, and sends again, under the same gateway key, only what the
/// gateway doesn't know. One that needs no attention is left as it is.
async fn requeue(
    State(bank): State<Arc<Inner>>,
    Segment((merchant, key)): Segment<(String, String)>,
) -> Result<Response, Refusal> {
    let key = keyed::key_in_path(&key)?;
    bank.engine.requeue(&merchant, *key.as_bytes()).await.map_err(Refusal::from)?;
    let found = bank.engine.lookup(&merchant, *key.as_bytes()).await.map_err(Refusal::from)?;
    match found {
        Some(record) => Ok(answer::json(StatusCode::OK, &operations::operation(&bank, key, record).await?)),
        None => Err(Refusal::new(ProblemType::OperationUnknown, "this merchant never used this key")),
    }
}

/// What the gateway was asked for in an operation.
pub(crate) fn purpose(record: &Record) -> Purpose {
    if record.kind.as_deref() == Some(Kind::Refund.as_str()) { Purpose::Refund } else { Purpose::Charge }
}
