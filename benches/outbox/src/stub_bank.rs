//! A bank of a few lines, in this process: it charges each key once, remembers every request, and can keep its answers back.

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use protocol::{
    Card, Currency, IDEMPOTENCY_KEY, Key, Outcome, PAYMENTS_PATH, POLICY_PATH, Payment, PaymentRequest, Policy,
    Problem, ProblemType,
};
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, sync::watch};
use uuid::Uuid;

/// What it saw of a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// When it was asked for it, each time.
    pub(crate) asked: Vec<Instant>,
    /// How often its answer was given.
    pub(crate) answered: u32,
}

struct State {
    seen: Mutex<HashMap<Key, Seen>>,
    holds: watch::Sender<bool>,
    answer_time: Duration,
}

/// The bank. It goes when this is dropped.
pub(crate) struct StubBank {
    pub(crate) url: String,
    state: Arc<State>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for StubBank {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StubBank {
    /// Starts one that takes that long for an answer.
    pub(crate) async fn start(answer_time: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(State { seen: Mutex::default(), holds: watch::channel(false).0, answer_time });
        let answering = state.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = answering.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(state.clone(), request));
                    // A client that was killed tears its connections; there is nobody to tell.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { url, state, serving })
    }

    /// Keeps answers to payments back from now on, or gives them.
    pub(crate) fn hold(&self, holds: bool) {
        self.state.holds.send_replace(holds);
    }

    /// What it saw, by key.
    pub(crate) fn seen(&self) -> HashMap<Key, Seen> {
        self.state.lock().clone()
    }

    /// Forgets what it saw.
    pub(crate) fn forget(&self) {
        self.state.lock().clear();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Ok(problem(ProblemType::RequestMalformed)) };
    Ok(match (&parts.method, parts.uri.path()) {
        (&Method::GET, POLICY_PATH) => json(StatusCode::OK, &policy()),
        (&Method::POST, PAYMENTS_PATH) => {
            let key = parts.headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
            let key = key.and_then(|text| Key::parse(text).ok());
            match (key, PaymentRequest::decode(&body.to_bytes())) {
                (Some(key), Ok(request)) => pay(&state, key, &request).await,
                _ => problem(ProblemType::RequestInvalid),
            }
        }
        _ => problem(ProblemType::NotFound),
    })
}

async fn pay(state: &State, key: Key, request: &PaymentRequest) -> Response<Full<Bytes>> {
    state.lock().entry(key).or_default().asked.push(Instant::now());
    // The bank's own work, and then whatever it waits for. Ends where nobody holds it any more, or the bank is gone.
    tokio::time::sleep(state.answer_time).await;
    let _ = state.holds.subscribe().wait_for(|holds| !holds).await;
    state.lock().entry(key).or_default().answered += 1;
    let payment = Payment {
        id: format!("pay_{key}"),
        status: Outcome::Approved,
        amount: request.amount,
        currency: request.currency,
        card: Some(Card { brand: "visa".to_owned(), last4: "4242".to_owned() }),
        reference: request.reference.clone(),
        approval_code: Some("8F21K0".to_owned()),
        decline_code: None,
        operation: key,
        short_code: key.short_code(),
        created_at: Timestamp::UNIX_EPOCH,
    };
    json(StatusCode::CREATED, &payment)
}

/// What such a bank promises.
pub(crate) fn policy() -> Policy {
    Policy {
        bank_id: Uuid::from_u128(7),
        merchant: "demo".to_owned(),
        claims: Policy::CLAIMS_PERMANENT.to_owned(),
        retention_s: 86_400,
        key_format: Policy::KEY_FORMAT_UUID.to_owned(),
        max_body_bytes: 65_536,
        wait_ms: 3_000,
        currencies: vec![Currency::EUR],
    }
}

fn json(status: StatusCode, body: &impl serde::Serialize) -> Response<Full<Bytes>> {
    of(status, "application/json", serde_json::to_vec(body).unwrap_or_default())
}

fn problem(problem: ProblemType) -> Response<Full<Bytes>> {
    let problem = Problem::new(problem, "not what this bank knows");
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    of(status, Problem::MEDIA_TYPE, serde_json::to_vec(&problem).unwrap_or_default())
}

fn of(status: StatusCode, media_type: &'static str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
