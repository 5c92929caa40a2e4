//! Whether the bank can work.

use crate::{acquirer::Inner, http::answer};
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long each part may take to say that it works.
const TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
    store: &'static str,
    gateway: &'static str,
}

/// `GET /healthz`: 200 while the store can be written. A gateway that is away, or fails each call, is named and is
/// no failure: the bank takes requests and finishes them when it is back.
pub(crate) async fn show(State(bank): State<Arc<Inner>>) -> Response {
    // A claim needs a write that reaches the disk. One that changes nothing goes through on a full disk too.
    let writing = timeout(TIME_MAX, bank.store.probe());
    let reaching = timeout(TIME_MAX, bank.gateway.client.reach());
    let (written, reached) = tokio::join!(writing, reaching);
    let store = matches!(written, Ok(Ok(())));
    let gateway = match reached {
        Ok(Ok(_)) if bank.gateway.breaker.is_open() => "failing",
        Ok(Ok(_)) => "ok",
        _ => "away",
    };
    let health = Health {
        status: match (store, gateway) {
            (true, "ok") => "ok",
            (true, _) => "degraded",
            (false, _) => "unavailable",
        },
        store: if store { "ok" } else { "unavailable" },
        gateway,
    };
    answer::json(if store { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}
