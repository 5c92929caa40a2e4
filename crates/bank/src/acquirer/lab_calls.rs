//! The lab's calls that only the bank has.

use crate::{
    acquirer::{Inner, calls, ledger, operations, operator},
    http::{
        answer::{self, Refusal},
        keyed,
        segment::Segment,
    },
};
use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use protocol::ProblemType;
use serde_json::json;
use std::sync::Arc;

pub(crate) fn router() -> Router<Arc<Inner>> {
    Router::new()
        .route("/lab/ledger", get(show_ledger))
        .route("/lab/operations/{key}", get(show_operation))
        .route("/lab/purge", post(purge))
}

async fn show_ledger(State(bank): State<Arc<Inner>>) -> Result<Response, Refusal> {
    let books = bank.store.read(ledger::read).await.map_err(Refusal::from)?;
    Ok(answer::json(StatusCode::OK, &books))
}

/// The operation of that key, of whichever merchant has it; the first in the order of their names where several have.
async fn show_operation(State(bank): State<Arc<Inner>>, Segment(key): Segment) -> Result<Response, Refusal> {
    let key = keyed::key_in_path(&key)?;
    for merchant in bank.shares.merchants() {
        let found = bank.engine.lookup(merchant, *key.as_bytes()).await;
        let Some(record) = found.map_err(Refusal::from)? else { continue };
        let purpose = operator::purpose(&record);
        let call = bank.store.read(move |connection| calls::get(connection, record.id, purpose)).await;
        let call = call.map_err(Refusal::from)?;
        let shown = json!({
            "gateway_key": call.map(|call| call.key),
            "gateway_attempts": call.map_or(0, |call| call.attempts),
            "state": operations::state(&record),
            "owner": record.owner.to_string(),
        });
        return Ok(answer::json(StatusCode::OK, &shown));
    }
    Err(Refusal::new(ProblemType::OperationUnknown, "no merchant used this key"))
}

async fn purge(State(bank): State<Arc<Inner>>) -> Result<Response, Refusal> {
    let purged = bank.engine.purge().await.map_err(Refusal::from)?;
    Ok(answer::json(StatusCode::OK, &json!({"purged": purged})))
}
