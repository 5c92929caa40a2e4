//! Whether the bank can work.

use crate::{
    acquirer::{Inner, one_asks::OneAsks},
    http::answer,
};
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use utoipa::ToSchema;

/// How long each part may take to say that it works.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How often it is found out at most. Nobody has to say who they are to ask, and each finding out costs a commit that reaches
/// the disk and a call to the gateway that waits for no breaker.
const PAUSE: Duration = Duration::from_millis(250);

/// How the bank is.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Health {
    /// All in one word.
    status: HealthStatus,
    /// Whether a durable write goes through.
    store: HealthOfStore,
    /// Whether the gateway answers.
    gateway: HealthOfGateway,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum HealthStatus {
    Ok,
    Degraded,
    Unavailable,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
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

/// What all who ask for the bank's health share.
pub(crate) fn asked() -> OneAsks<Health> {
    OneAsks::new(PAUSE)
}

/// `GET /healthz`: 200 while the store can be written. A gateway that is away, or fails each call, is named and is
/// no failure: the bank takes requests and finishes them when it is back.
///
/// It is found out once for all who ask at the same time, and then not again for a while, for which the next ones wait. An
/// answer is not kept for them instead: it would say for that long that all is well after the disk was full.
pub(crate) async fn show(State(bank): State<Arc<Inner>>) -> Response {
    let health = bank.health.ask(find_out(&bank)).await;
    let works = health.store == HealthOfStore::Ok;
    answer::json(if works { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}

async fn find_out(bank: &Inner) -> Health {
    // A claim needs a write that reaches the disk. One that changes nothing goes through on a full disk too.
    let writing = timeout(TIME_MAX, bank.store.probe());
    let reaching = timeout(TIME_MAX, bank.gateway.client.reach());
    let (written, reached) = tokio::join!(writing, reaching);
    let store = if matches!(written, Ok(Ok(()))) { HealthOfStore::Ok } else { HealthOfStore::Unavailable };
    let gateway = match reached {
        Ok(Ok(_)) if bank.gateway.breaker.is_open() => HealthOfGateway::Failing,
        Ok(Ok(_)) => HealthOfGateway::Ok,
        _ => HealthOfGateway::Away,
    };
    let status = match (store, gateway) {
        (HealthOfStore::Ok, HealthOfGateway::Ok) => HealthStatus::Ok,
        (HealthOfStore::Ok, _) => HealthStatus::Degraded,
        (HealthOfStore::Unavailable, _) => HealthStatus::Unavailable,
    };
    Health { status, store, gateway }
}
