//! Whether the bank can work.

use crate::{acquirer::Inner, http::answer};
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use store::Priority;
use tokio::time::timeout;

/// How long each part may take to say that it works.
const TIME_MAX: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
    store: &'static str,
    gateway: &'static str,
}

/// `GET /healthz`: 200 while the store can be written. A gateway that is away is named and is no failure: the bank takes requests and
/// finishes them when it is back.
pub(crate) async fn show(State(bank): State<Arc<Inner>>) -> Response {
    // An empty piece of work takes the write lock and commits, which is what a claim needs.
    let writing = timeout(TIME_MAX, bank.store.write(Priority::Background, |_| Ok::<_, std::convert::Infallible>(())));
    let reaching = timeout(TIME_MAX, bank.gateway.client.reach());
    let (written, reached) = tokio::join!(writing, reaching);
    let store = matches!(written, Ok(Ok(())));
    let gateway = matches!(reached, Ok(Ok(_)));
    let health = Health {
        status: match (store, gateway) {
            (true, true) => "ok",
            (true, false) => "degraded",
            (false, _) => "unavailable",
        },
        store: if store { "ok" } else { "unavailable" },
        gateway: if gateway { "ok" } else { "away" },
    };
    answer::json(if store { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}
