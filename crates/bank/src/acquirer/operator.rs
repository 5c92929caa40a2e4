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
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::Response,
};
use idempotency::{Clock, Record, State as EngineState};
use jiff::Timestamp;
use protocol::{Key, Kind, ProblemType, ShortCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// Where what needs attention is listed.
pub(crate) const ATTENTION_PATH: &str = "/operator/attention";
/// Operations in a page of it at most.
pub(crate) const ATTENTION_MAX: usize = 256;
/// Where an operation is put back to work.
pub(crate) const REQUEUE_PATH: &str = "/operator/operations/{merchant}/{key}/requeue";

/// An operation that needs attention.
#[derive(Serialize, ToSchema)]
pub(crate) struct Attention {
    /// Whose operation it is.
    merchant: String,
    /// The merchant's key.
    key: Key,
    /// The short form of the key.
    short_code: ShortCode,
    /// What was asked for.
    #[schema(required)]
    kind: Option<Kind>,
    /// Why the bank could not finish it.
    reason: String,
    /// When the key was claimed.
    created_at: Timestamp,
    /// How long ago that was, in seconds.
    age_s: i64,
    /// The bank's own key for it at the gateway.
    #[schema(required)]
    gateway_key: Option<Key>,
    /// How often the request was sent. Questions by reference don't count.
    gateway_attempts: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    #[serde(default)]
    after: i64,
}

/// Oldest first, a page at a time.
pub(crate) async fn list(
    State(bank): State<Arc<Inner>>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Refusal> {
    let invalid = |_| Refusal::new(ProblemType::RequestInvalid, "`after` must be a `next` of this list");
    let Query(page) = page.map_err(invalid)?;
    // One more than is shown, to know whether there is a next page.
    let found = bank.engine.needing_attention(page.after, ATTENTION_MAX as u32 + 1).await;
    let mut records = found.map_err(Refusal::from)?;
    let more = records.len() > ATTENTION_MAX;
    records.truncate(ATTENTION_MAX);
    let ids: Vec<(i64, Purpose)> = records.iter().map(|record| (record.id, purpose(record))).collect();
    let found = bank.store.read(move |connection| {
        ids.into_iter().map(|(id, purpose)| calls::get(connection, id, purpose)).collect::<rusqlite::Result<Vec<_>>>()
    });
    let found = found.await.map_err(Refusal::from)?;
    let next = records.last().filter(|_| more).map(|record| record.id);
    let now = bank.clock.now();
    let data: Vec<_> =
        records.into_iter().zip(found).filter_map(|(record, call)| attention(record, call, now)).collect();
    Ok(answer::json(StatusCode::OK, &json!({"data": data, "next": next})))
}

fn attention(record: Record, call: Option<Call>, now: Timestamp) -> Option<Attention> {
    let kind = operations::kind(&record);
    let EngineState::NeedsAttention { reason } = record.state else { return None };
    let key = Key::from_bytes(record.key).ok()?;
    Some(Attention {
        merchant: record.scope.to_string(),
        key,
        short_code: key.short_code(),
        kind,
        reason,
        created_at: record.created_at,
        age_s: now.duration_since(record.created_at).as_secs(),
        gateway_key: call.map(|call| call.key),
        gateway_attempts: call.map_or(0, |call| call.attempts),
    })
}

/// Puts an operation back to work. Its run looks at the gateway first, and sends again, under the same gateway key, only what the
/// gateway doesn't know. One that needs no attention is left as it is.
pub(crate) async fn requeue(
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
    if operations::kind(record) == Some(Kind::Refund) { Purpose::Refund } else { Purpose::Charge }
}
