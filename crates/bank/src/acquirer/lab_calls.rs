//! The lab's calls that only the bank has.

use crate::{
    acquirer::{Inner, calls, contract, ledger, operations, operator},
    http::{
        answer::{self, Refusal},
        keyed,
        segment::Segment,
    },
    openapi::Calls,
};
use axum::{extract::State, http::StatusCode, response::Response};
use protocol::ProblemType;
use serde_json::json;
use std::sync::Arc;

/// Where the books are.
pub(crate) const LEDGER_PATH: &str = "/lab/ledger";
/// Where is what stands behind an operation.
pub(crate) const OPERATION_PATH: &str = "/lab/operations/{key}";
/// Where what has expired is dropped.
pub(crate) const PURGE_PATH: &str = "/lab/purge";

/// The calls, with their descriptions.
pub(crate) fn add(calls: Calls<Arc<Inner>>) -> Calls<Arc<Inner>> {
    calls
        .call(contract::lab::ledger(), show_ledger)
        .call(contract::lab::operation(), show_operation)
        .call(contract::lab::purge(), purge)
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
