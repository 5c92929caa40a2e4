//! The gateway's calls.

use crate::{
    gateway::{
        Inner, accounts, cards, charges, ledger, refunds,
        wire::{CHARGES_PATH, ChargeRequest, GATEWAY_ID, IDENTITY_PATH, Identity, REFUNDS_PATH, RefundRequest},
    },
    http::{
        answer::{self, Refusal},
        body, keyed,
        segment::Segment,
    },
    lab::{self, rules::Point, tamper},
    metrics,
    openapi::Calls,
};
use axum::{
    Router,
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use idempotency::BeginFn;
use protocol::{Amount, Currency, Key, ProblemType};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Priority;
use utoipa::openapi::HttpMethod;

/// Whose keys the gateway's keys are: there is one bank.
pub(crate) const SCOPE: &str = "bank";

pub(crate) fn router(gateway: Arc<Inner>) -> Router {
    let (lab, metrics) = (gateway.lab.clone(), gateway.metrics.clone());
    // Between the bank and its gateway: `wire.rs` is what there is to know, and no document is made of it.
    let mut calls = Calls::new(metrics.clone())
        .undescribed(HttpMethod::Get, IDENTITY_PATH, identity)
        .undescribed(HttpMethod::Post, CHARGES_PATH, charge)
        .undescribed(HttpMethod::Get, &format!("{CHARGES_PATH}/{{reference}}"), show_charge)
        .undescribed(HttpMethod::Post, REFUNDS_PATH, refund)
        .undescribed(HttpMethod::Get, &format!("{REFUNDS_PATH}/{{reference}}"), show_refund)
        .undescribed(HttpMethod::Get, metrics::PATH, show_metrics);
    if lab.is_some() {
        calls = calls
            .undescribed(HttpMethod::Get, "/lab/ledger", show_ledger)
            .undescribed(HttpMethod::Put, "/lab/accounts/{number}", set_balance)
            .undescribed(HttpMethod::Post, "/lab/purge", purge);
    }
    let mut calls = calls.with_state(gateway);
    if let Some(lab) = lab {
        calls = calls.merge(lab::routes::calls(lab, metrics));
    }
    calls.into_router().fallback(answer::not_found).method_not_allowed_fallback(answer::method_not_allowed)
}

/// `GET /metrics`
async fn show_metrics(State(gateway): State<Arc<Inner>>) -> Result<Response, Refusal> {
    gateway.metrics.answer(&gateway.engine, &gateway.store, &*gateway.clock, None).await
}

async fn identity(State(gateway): State<Arc<Inner>>) -> Response {
    answer::json(StatusCode::OK, &Identity { gateway_id: gateway.id })
}

async fn charge(State(gateway): State<Arc<Inner>>, request: Request) -> Result<Response, Refusal> {
    let (key, charge) = decode::<ChargeRequest>(&gateway, request).await?;
    let members = vec![
        ("amount", charge.amount.get().to_string().into_bytes()),
        ("currency", charge.currency.code().as_bytes().to_vec()),
        ("card", charge.card.as_bytes().to_vec()),
        ("reference", charge.reference.as_bytes().to_vec()),
        ("offline", vec![u8::from(charge.offline)]),
    ];
    let asked = Asked {
        kind: "charge",
        route: CHARGES_PATH,
        members,
        amount: charge.amount,
        more: json!({"currency": charge.currency, "reference": charge.reference, "approval_code": "INVENT"}),
    };
    run(gateway, key, asked, Box::new(move |tx, claim| charges::begin(tx, claim, &charge))).await
}

async fn refund(State(gateway): State<Arc<Inner>>, request: Request) -> Result<Response, Refusal> {
    let (key, refund) = decode::<RefundRequest>(&gateway, request).await?;
    let members = vec![
        ("charge", refund.charge.as_bytes().to_vec()),
        ("amount", refund.amount.get().to_string().into_bytes()),
        ("currency", refund.currency.code().as_bytes().to_vec()),
        ("reference", refund.reference.as_bytes().to_vec()),
    ];
    let asked = Asked {
        kind: "refund",
        route: REFUNDS_PATH,
        members,
        amount: refund.amount,
        more: json!({"currency": refund.currency, "reference": refund.reference}),
    };
    run(gateway, key, asked, Box::new(move |tx, claim| refunds::begin(tx, claim, &refund))).await
}

/// Reads a keyed request that is meant for this gateway.
async fn decode<T: DeserializeOwned>(gateway: &Inner, request: Request) -> Result<(Key, T), Refusal> {
    let (parts, body) = request.into_parts();
    let key = keyed::key(&parts.headers)?;
    let reading = async {
        if let Some(meant) = parts.headers.get(GATEWAY_ID)
            && meant.as_bytes() != gateway.id.to_string().as_bytes()
        {
            return Err(Refusal::new(ProblemType::Forbidden, "the request is meant for another gateway"));
        }
        body::check_media_type(&parts.headers)?;
        let body = body::read(&parts.headers, body).await?;
        // Not the parser's own words: they may quote what it read.
        serde_json::from_slice(&body).map_err(|error| {
            let detail = format!("the body is not this request (line {}, column {})", error.line(), error.column());
            Refusal::new(ProblemType::RequestInvalid, detail)
        })
    };
    Ok((key, reading.await.map_err(|refusal| refusal.of(key))?))
}

struct Asked {
    kind: &'static str,
    route: &'static str,
    members: Vec<(&'static str, Vec<u8>)>,
    amount: Amount,
    /// What an invented answer has besides the amount.
    more: Value,
}

/// Runs a keyed request in a task of its own, past the lab's points.
async fn run(gateway: Arc<Inner>, key: Key, asked: Asked, begin: BeginFn) -> Result<Response, Refusal> {
    let engine = gateway.engine.clone();
    let task = engine.spawn(async move {
        if let Some(lab) = &gateway.lab {
            let counted = gateway.store.write(Priority::Click, move |tx| ledger::count(tx, &key)).await;
            if let Err(error) = counted {
                tracing::warn!(%error, "a request could not be counted");
                return Refusal::from(error).of(key).into_response();
            }
            if let Some(tamper) = lab.pass(Point::Received, &key).await {
                return tamper.apply(tamper::invented(asked.amount.get(), &asked.more, key), key).await;
            }
        }
        let answer = gateway
            .engine
            .run(idempotency::Request {
                scope: SCOPE.into(),
                key: *key.as_bytes(),
                kind: asked.kind,
                route: format!("{} {}", Method::POST, asked.route),
                members: asked.members,
                payload: Vec::new(),
                begin,
                context: (),
            })
            .await;
        let committed = matches!(answer, idempotency::Answer::Done { .. });
        let response = answer::of_engine(answer, key);
        match &gateway.lab {
            Some(lab) if committed => match lab.pass(Point::Committed, &key).await {
                Some(tamper) => tamper.apply(response, key).await,
                None => response,
            },
            _ => response,
        }
    });
    task.await.map_err(|_| {
        tracing::error!("a request panicked");
        Refusal::new(ProblemType::Internal, "the gateway failed; send the same request again later").of(key)
    })
}

async fn show_charge(State(gateway): State<Arc<Inner>>, Segment(reference): Segment) -> Result<Response, Refusal> {
    let found = gateway.store.read(move |connection| charges::by_reference(connection, &reference)).await;
    found.map_err(Refusal::from)?.map_or_else(unknown, |charge| Ok(answer::json(StatusCode::OK, &charge)))
}

async fn show_refund(State(gateway): State<Arc<Inner>>, Segment(reference): Segment) -> Result<Response, Refusal> {
    let found = gateway.store.read(move |connection| refunds::by_reference(connection, &reference)).await;
    found.map_err(Refusal::from)?.map_or_else(unknown, |refund| Ok(answer::json(StatusCode::OK, &refund)))
}

fn unknown() -> Result<Response, Refusal> {
    Err(Refusal::new(ProblemType::PaymentUnknown, "nothing has this reference"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerQuery {
    gateway_key: Option<String>,
}

async fn show_ledger(
    State(gateway): State<Arc<Inner>>,
    query: Result<Query<LedgerQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|error| Refusal::new(ProblemType::RequestInvalid, error.body_text()))?;
    let key = query.gateway_key.as_deref().map(keyed::key_in_path).transpose()?;
    // Read by the writer, so that it stands behind every request that was counted before it.
    let ledger = gateway.store.write(Priority::Click, move |tx| ledger::read(tx, key.as_ref())).await;
    Ok(answer::json(StatusCode::OK, &ledger.map_err(Refusal::from)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetBalance {
    currency: Currency,
    balance: i64,
}

/// Sets what is left on an account, as if its holder had spent it elsewhere. No charge: the ledger stays as it is.
async fn set_balance(
    State(gateway): State<Arc<Inner>>,
    Segment(number): Segment,
    request: Request,
) -> Result<Response, Refusal> {
    let refused = |detail: &str| Refusal::new(ProblemType::RequestInvalid, detail);
    let number = cards::account(&number).ok_or_else(|| refused("an account has a number from 1 to 100"))?;
    let (parts, body) = request.into_parts();
    body::check_media_type(&parts.headers)?;
    let body = body::read(&parts.headers, body).await?;
    let SetBalance { currency, balance } =
        serde_json::from_slice(&body).map_err(|error| refused(&error.to_string()))?;
    if balance < 0 {
        return Err(refused("`balance` must not be negative"));
    }
    let set = gateway.store.write(Priority::Click, move |tx| accounts::set(tx, number, currency, balance)).await;
    set.map_err(Refusal::from)?;
    Ok(answer::json(StatusCode::OK, &json!({"number": number, "currency": currency, "balance": balance})))
}

async fn purge(State(gateway): State<Arc<Inner>>) -> Result<Response, Refusal> {
    let purged = gateway.engine.purge().await.map_err(Refusal::from)?;
    Ok(answer::json(StatusCode::OK, &json!({"purged": purged})))
}
