//! Whether the bank can work.

use crate::{acquirer::Inner, http::answer};
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use utoipa::ToSchema;

/// How long each part may take to say that it works.
const TIME_MAX: Duration = Duration::from_secs(2);

/// How the bank is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// All in one word.
    status: HealthStatus,
    /// Whether a durable write goes through.
    store: HealthOfStore,
    /// Whether the gateway answers.
    gateway: HealthOfGateway,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HealthStatus {
    Ok,
    Degraded,
    Unavailable,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HealthOfStore {
    Ok,
    Unavailable,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HealthOfGateway {
    Ok,
    Failing,
    Away,
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
        Ok(Ok(_)) if bank.gateway.breaker.is_open() => HealthOfGateway::Failing,
        Ok(Ok(_)) => HealthOfGateway::Ok,
        _ => HealthOfGateway::Away,
    };
    let health = Health {
        status: match (store, gateway) {
            (true, HealthOfGateway::Ok) => HealthStatus::Ok,
            (true, _) => HealthStatus::Degraded,
            (false, _) => HealthStatus::Unavailable,
        },
        store: if store { HealthOfStore::Ok } else { HealthOfStore::Unavailable },
        gateway,
    };
    answer::json(if store { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}
