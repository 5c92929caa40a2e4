//! What became of a key, and making sure that one never charges.

use crate::{
    acquirer::{Inner, payments, refunds},
    http::{
        answer::{self, Refusal},
        gate::Merchant,
        keyed,
        segment::Segment,
    },
};
use axum::{Extension, extract::State, http::StatusCode, response::Response};
use idempotency::{Cancel, Record, State as EngineState};
use protocol::{Key, Kind, Operation, OperationState, ProblemType};
use serde_json::Value;
use std::sync::Arc;

/// `GET /v1/operations/{key}`
pub(crate) async fn show(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    Segment(key): Segment,
) -> Result<Response, Refusal> {
    let key = keyed::key_in_path(&key)?;
    let found = bank.engine.lookup(&merchant, *key.as_bytes()).await;
    let Some(record) = found.map_err(Refusal::from)? else {
        return Err(Refusal::new(ProblemType::OperationUnknown, "this merchant never used this key"));
    };
    Ok(answer::json(StatusCode::OK, &operation(&bank, key, record).await?))
}

/// `PUT /v1/operations/{key}/cancellation`
pub(crate) async fn cancel(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    Segment(key): Segment,
) -> Result<Response, Refusal> {
    let key = keyed::key_in_path(&key)?;
    // In a task of its own: the wish is carried out also where the client hangs up.
    let engine = bank.engine.clone();
    let task = engine.spawn(async move {
        let cancelled = bank.engine.cancel(&merchant, *key.as_bytes()).await;
        match cancelled.map_err(|error| Refusal::from(error).of(key))? {
            Cancel::Is(record) => Ok(answer::json(StatusCode::OK, &operation(&bank, key, *record).await?)),
            Cancel::Settling => Err(Refusal::new(
                ProblemType::InProgress,
                "the wish is stored; the operation settles first and is then cancelled; ask again later",
            )
            .state(OperationState::Processing)
            .of(key)),
        }
    });
    task.await.unwrap_or_else(|_| {
        tracing::error!("a cancellation panicked");
        Err(Refusal::new(ProblemType::Internal, "the bank failed; send the same request again later").of(key))
    })
}

/// How far an operation is, in the words of the contract.
pub(crate) fn state(record: &Record) -> OperationState {
    match &record.state {
        EngineState::Processing => OperationState::Processing,
        EngineState::Cancelled => OperationState::Cancelled,
        EngineState::NeedsAttention { .. } => OperationState::NeedsAttention,
        // A word that this version doesn't know says nothing of the money.
        EngineState::Settled { outcome } => answer::outcome_state(outcome).unwrap_or(OperationState::NeedsAttention),
    }
}

/// What was asked for in an operation.
pub(crate) fn kind(record: &Record) -> Option<Kind> {
    let name = record.kind.as_deref()?;
    [Kind::Payment, Kind::Refund].into_iter().find(|kind| kind.as_str() == name)
}

/// An operation in the words of the contract.
pub(crate) async fn operation(bank: &Inner, key: Key, record: Record) -> Result<Operation, Refusal> {
    let kind = kind(&record);
    let state = state(&record);
    let result = match (state, kind) {
        (OperationState::Approved | OperationState::Declined, Some(kind)) => result(bank, record.id, kind).await?,
        _ => None,
    };
    Ok(Operation { key, state, kind, result, created_at: record.created_at, completed_at: record.completed_at })
}

/// The object that an operation made; it is there long after the stored response has expired.
async fn result(bank: &Inner, operation: i64, kind: Kind) -> Result<Option<Value>, Refusal> {
    let found = bank.store.read(move |connection| {
        Ok::<_, rusqlite::Error>(match kind {
            Kind::Payment => payments::by_operation(connection, operation)?.map(serde_json::to_value),
            Kind::Refund => refunds::by_operation(connection, operation)?.map(serde_json::to_value),
        })
    });
    let found = found.await.map_err(Refusal::from)?;
    found.transpose().map_err(|_| Refusal::new(ProblemType::Internal, "the stored result can't be written as JSON"))
}
