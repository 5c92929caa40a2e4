//! The HTTP front of every contender, and the way of a request through it: claim, charge, settle, answer.

use crate::{
    contender::{
        Books, Fault, Options,
        gateway::Gateway,
        payment::{Claim, Claimed, Settled, Stored},
    },
    wire::{MERCHANT, SECRET},
};
use anyhow::{Context, Result};
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use measure::ready::{self, Setting};
use protocol::{Key, PAYMENTS_PATH, PaymentRequest, Problem, ProblemType};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinSet};

/// Attempts to finish one payment before it is left to the next start.
const ATTEMPTS_MAX: u32 = 5;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(100);
/// Operations that are finished at once at the start.
const RECOVERING_MAX: usize = 32;

struct Front<B> {
    books: B,
    gateway: Gateway,
    /// Whom each secret names, by its digest.
    merchants: HashMap<[u8; 32], &'static str>,
    broken: Option<Fault>,
}

/// Finishes what was left behind, and serves until the parent is gone.
pub(crate) async fn serve<B: Books>(books: B, settings: &[Setting], options: &Options) -> Result<()> {
    let gateway = Gateway::new(&options.gateway_url, options.broken == Some(Fault::NewGatewayKey))?;
    let merchants = [(Sha256::digest(SECRET).into(), MERCHANT)].into();
    let front = Arc::new(Front { books, gateway, merchants, broken: options.broken });
    if options.broken != Some(Fault::NoRecovery) {
        recover(&front).await?;
    }
    let router = Router::new()
        .route(PAYMENTS_PATH, post(pay::<B>))
        .layer(DefaultBodyLimit::max(protocol::BODY_BYTES_MAX))
        .with_state(front);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    ready::say_ready(&listener, settings)?;
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("a connection goes on with delays: {error}");
        }
    });
    tokio::select! {
        served = axum::serve(listener, router) => served.context("the listener failed"),
        () = ready::parent_gone() => Ok(()),
    }
}

async fn recover<B: Books>(front: &Arc<Front<B>>) -> Result<()> {
    let mut running = JoinSet::new();
    for unfinished in front.books.unfinished().await? {
        if running.len() >= RECOVERING_MAX
            && let Some(done) = running.join_next().await
        {
            done??;
        }
        let (front, claim) = (front.clone(), Claim::again(MERCHANT, &unfinished)?);
        running.spawn(async move { front.finish(unfinished.operation, claim).await.map(|_| ()) });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

type Refused = (ProblemType, String);

async fn pay<B: Books>(State(front): State<Arc<Front<B>>>, headers: HeaderMap, body: Bytes) -> Response {
    let (key, request) = match front.read(&headers, &body) {
        Ok(read) => read,
        Err(refused) => return problem(refused, None),
    };
    // In a task of its own: a client that hangs up ends nothing.
    let running = tokio::spawn(async move { front.run(key, request).await });
    let answer = running.await.unwrap_or_else(|error| Err((ProblemType::Internal, error.to_string())));
    answer.map_or_else(|refused| problem(refused, Some(key)), |(stored, replayed)| of(stored, replayed, &key))
}

impl<B: Books> Front<B> {
    fn read(&self, headers: &HeaderMap, body: &[u8]) -> std::result::Result<(Key, PaymentRequest), Refused> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let secret = text(header::AUTHORIZATION).strip_prefix("Bearer ").unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(secret).into();
        if !self.merchants.contains_key(&digest) {
            return Err((ProblemType::Unauthorized, "send a valid secret".to_owned()));
        }
        let key = Key::parse(text(header::HeaderName::from_static(protocol::IDEMPOTENCY_KEY)))
            .map_err(|error| (ProblemType::KeyInvalid, error.to_string()))?;
        if text(header::CONTENT_TYPE) != "application/json" {
            return Err((ProblemType::UnsupportedMediaType, "send application/json".to_owned()));
        }
        let request = PaymentRequest::decode(body).map_err(|error| (ProblemType::RequestInvalid, error.to_string()))?;
        Ok((key, request))
    }

    /// The stored answer of a request, and whether it was there before.
    async fn run(&self, key: Key, request: PaymentRequest) -> std::result::Result<(Stored, bool), Refused> {
        let unavailable = |error: anyhow::Error| {
            eprintln!("a payment could not be finished: {error:#}");
            (ProblemType::Unavailable, "send the same request again later".to_owned())
        };
        let claim = Claim::new(MERCHANT, key, request).map_err(unavailable)?;
        match self.books.claim(&claim).await.map_err(unavailable)? {
            Claimed::New(operation) => Ok((self.finish(operation, claim).await.map_err(unavailable)?, false)),
            Claimed::Known { hash, .. } if hash != claim.hash && self.broken != Some(Fault::AnyBody) => {
                Err((ProblemType::KeyReused, "the key belongs to another request".to_owned()))
            }
            Claimed::Known { stored: Some(stored), .. } => Ok((stored, true)),
            Claimed::Known { stored: None, .. } => {
                Err((ProblemType::InProgress, "the operation runs; send the same request again later".to_owned()))
            }
        }
    }

    /// Charges and settles. After an error it is tried again under the same gateway key, and at last left to the next start.
    async fn finish(&self, operation: i64, claim: Claim) -> Result<Stored> {
        let mut attempt = 1;
        let charged = loop {
            match self.gateway.charge(&claim).await {
                Ok(charged) => break charged,
                Err(error) if attempt == ATTEMPTS_MAX => return Err(error),
                Err(_) => attempt += 1,
            }
            tokio::time::sleep(PAUSE).await;
        };
        let mut settled = claim.settled(charged)?;
        let told = settled.stored.clone();
        if self.broken == Some(Fault::OtherBytes) {
            settled.stored.body.push(b' ');
        }
        if self.broken == Some(Fault::Unbalanced) {
            settled.postings[1].amount -= 1;
        }
        self.settle(operation, &settled).await?;
        Ok(told)
    }

    async fn settle(&self, operation: i64, settled: &Settled) -> Result<()> {
        let mut attempt = 1;
        loop {
            match self.books.settle(operation, settled).await {
                Ok(()) => return Ok(()),
                Err(error) if attempt == ATTEMPTS_MAX => return Err(error),
                Err(_) => attempt += 1,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn of(stored: Stored, replayed: bool, key: &Key) -> Response {
    let status = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], stored.body).into_response();
    let headers = response.headers_mut();
    set(headers, header::LOCATION.as_str(), &format!("{PAYMENTS_PATH}/{}", stored.payment_id));
    set(headers, protocol::IDEMPOTENT_REPLAYED, if replayed { "true" } else { "false" });
    set(headers, protocol::IDEMPOTENCY_KEY, &key.to_string());
    response
}

fn problem((problem, detail): Refused, key: Option<Key>) -> Response {
    let problem = Problem::new(problem, detail);
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = (status, [(header::CONTENT_TYPE, Problem::MEDIA_TYPE)], body).into_response();
    if let Some(key) = key {
        set(response.headers_mut(), protocol::IDEMPOTENCY_KEY, &key.to_string());
    }
    if problem.retryable {
        set(response.headers_mut(), header::RETRY_AFTER.as_str(), "1");
    }
    response
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => {
            headers.insert(name, value);
        }
        Err(error) => eprintln!("the header {name} can't be sent: {error}"),
    }
}
