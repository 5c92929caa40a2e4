//! The lab's calls that only the bank has.

use crate::{
    acquirer::{Inner, calls, ledger, names::Purpose, operations},
    http::{
        answer::{self, Refusal},
        keyed,
    },
};
use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use protocol::{Kind, ProblemType};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn router() -> Router<Arc<Inner>> {
    Router::new()
        .route("/lab/ledger", get(show_ledger))
        .route("/lab/operations/{key}", get(show_operation))
        .route("/lab/purge", post(purge))
}

async fn show_ledger(State(bank): State<Arc<Inner>>) -> Result<Response, Refusal> {
    let books = bank.store.read(ledger::read).await.map_err(|_| Refusal::store_unavailable())?;
    Ok(answer::json(StatusCode::OK, &books))
}

/// The operation of that key, of whichever merchant has it; the first in the order of their names where several have.
async fn show_operation(State(bank): State<Arc<Inner>>, Path(key): Path<String>) -> Result<Response, Refusal> {
    let key = keyed::key_in_path(&key)?;
    for merchant in &bank.merchants {
        let found = bank.engine.lookup(merchant, *key.as_bytes()).await;
        let Some(record) = found.map_err(|_| Refusal::store_unavailable())? else { continue };
        let purpose =
            if record.kind.as_deref() == Some(Kind::Refund.as_str()) { Purpose::Refund } else { Purpose::Charge };
        let call = bank.store.read(move |connection| calls::get(connection, record.id, purpose)).await;
        let call = call.map_err(|_| Refusal::store_unavailable())?;
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
    let purged = bank.engine.purge().await.map_err(|_| Refusal::store_unavailable())?;
    Ok(answer::json(StatusCode::OK, &json!({"purged": purged})))
}
