//! Calls that only read: payments, refunds, the policy.

use crate::{
    acquirer::{Inner, payments, refunds},
    http::{
        answer::{self, Refusal},
        gate::Merchant,
        segment::Segment,
    },
};
use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
    response::Response,
};
use protocol::{BODY_BYTES_MAX, Currency, Policy, ProblemType};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Payments in a page where nothing else is asked for.
const LIMIT: u32 = 20;
/// Payments in a page at most.
const LIMIT_MAX: u32 = 100;

/// `GET /v1/payments/{id}`
pub(crate) async fn show_payment(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    Segment(id): Segment,
) -> Result<Response, Refusal> {
    let found = bank.store.read(move |connection| payments::by_id(connection, &merchant, &id)).await;
    match found.map_err(Refusal::from)? {
        Some(payment) => Ok(answer::json(StatusCode::OK, &payment)),
        None => Err(unknown()),
    }
}

/// `GET /v1/refunds/{id}`
pub(crate) async fn show_refund(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    Segment(id): Segment,
) -> Result<Response, Refusal> {
    let found = bank.store.read(move |connection| refunds::by_id(connection, &merchant, &id)).await;
    match found.map_err(Refusal::from)? {
        Some(refund) => Ok(answer::json(StatusCode::OK, &refund)),
        None => Err(unknown()),
    }
}

fn unknown() -> Refusal {
    Refusal::new(ProblemType::PaymentUnknown, "this merchant has nothing of that id")
}

/// What part of the list is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    limit: Option<u32>,
    after: Option<String>,
}

/// `GET /v1/payments`
pub(crate) async fn list_payments(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Refusal> {
    let invalid = |detail: &str| Refusal::new(ProblemType::RequestInvalid, detail);
    let Query(page) = page.map_err(|_| invalid("`limit` and `after` are the only members, `limit` a whole number"))?;
    let limit = page.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(invalid("`limit` must be from 1 to 100"));
    }
    let listed = bank.store.read(move |connection| {
        let before = match &page.after {
            None => Some(i64::MAX),
            Some(id) => payments::place(connection, &merchant, id)?,
        };
        // One more than is shown, to know whether there is a next page.
        before.map(|before| payments::list(connection, &merchant, before, limit + 1)).transpose()
    });
    let listed = listed.await.map_err(|error: store::ReadError<rusqlite::Error>| Refusal::from(error))?;
    let mut data = listed.ok_or_else(|| invalid("`after` must be a `next` of this list"))?;
    let more = data.len() > limit as usize;
    data.truncate(limit as usize);
    let next = data.last().filter(|_| more).map(|payment| payment.id.clone());
    Ok(answer::json(StatusCode::OK, &json!({"data": data, "next": next})))
}

/// `GET /v1/policy`
pub(crate) async fn policy(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
) -> Response {
    let policy = Policy {
        bank_id: bank.id,
        merchant: merchant.to_string(),
        claims: Policy::CLAIMS_PERMANENT.to_owned(),
        retention_s: bank.retention.as_secs(),
        key_format: Policy::KEY_FORMAT_UUID.to_owned(),
        max_body_bytes: BODY_BYTES_MAX as u64,
        wait_ms: u64::try_from(bank.wait.as_millis()).unwrap_or(u64::MAX),
        currencies: Currency::supported().collect(),
    };
    answer::json(StatusCode::OK, &policy)
}
