//! A stub gateway, the same behind every bank that is measured: it answers at once from memory, is idempotent by key, and counts.
//!
//! It speaks what Kassa's bank speaks with its gateway: who it is, charges under a key, and charges by reference.

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use protocol::{Key, Problem, ProblemType};
use serde::{Deserialize, Serialize};
use std::{cell::RefCell, collections::HashMap, collections::hash_map::Entry, convert::Infallible, rc::Rc};
use tokio::{net::TcpListener, task::LocalSet};
use uuid::Uuid;

/// There is nothing to choose.
#[derive(Args)]
pub struct Options {}

/// What the gateway has been asked for since it was last emptied.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Requests to charge.
    pub requests: u64,
    /// Keys that they came under: each is charged once.
    pub distinct_keys: u64,
    /// Requests that came under the key of another request, and were refused.
    pub reused: u64,
}

struct Gateway {
    id: Uuid,
    /// The request under each key, of which the answer is made.
    charges: HashMap<Key, Bytes>,
    by_reference: HashMap<String, Key>,
    ledger: Ledger,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Charge<'a> {
    amount: u64,
    #[serde(borrow)]
    currency: &'a str,
    #[serde(borrow)]
    card: &'a str,
    #[serde(borrow)]
    reference: &'a str,
    offline: bool,
}

/// Serves until the one who started it closes the standard input, or is gone.
pub fn serve(_: &Options) -> Result<()> {
    // One thread: what the gateway takes is lacking to the contenders, which all have the same of it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serving = async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        crate::ready::say_ready(&listener, &[])?;
        let gateway = Gateway {
            id: Uuid::new_v4(),
            charges: HashMap::new(),
            by_reference: HashMap::new(),
            ledger: Ledger::default(),
        };
        let gateway = Rc::new(RefCell::new(gateway));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let gateway = gateway.clone();
            tokio::task::spawn_local(async move {
                let service = service_fn(|request| answer(gateway.clone(), request));
                // A bank that was killed tears its connections; there is nobody to tell.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    };
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        tokio::select! {
            served = serving => served,
            () = crate::ready::parent_gone() => Ok(()),
        }
    }))
}

async fn answer(
    gateway: Rc<RefCell<Gateway>>,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(problem(ProblemType::RequestMalformed, "the body did not arrive whole"));
    };
    let body = body.to_bytes();
    let mut gateway = gateway.borrow_mut();
    let answer = match (&parts.method, parts.uri.path()) {
        (&Method::POST, "/v1/charges") => gateway.charge(&parts.headers, &body),
        (&Method::GET, "/v1/gateway") => json(Bytes::from(format!(r#"{{"gateway_id":"{}"}}"#, gateway.id))),
        (&Method::GET, "/ledger") => json(serde_json::to_vec(&gateway.ledger).unwrap_or_default().into()),
        (&Method::DELETE, "/ledger") => {
            gateway.empty();
            json(Bytes::from_static(b"{}"))
        }
        (&Method::GET, path) => match path.strip_prefix("/v1/charges/") {
            Some(reference) => gateway.find(reference),
            None => problem(ProblemType::NotFound, "there is nothing at this path"),
        },
        _ => problem(ProblemType::NotFound, "there is nothing at this path"),
    };
    Ok(answer)
}

impl Gateway {
    fn charge(&mut self, headers: &hyper::HeaderMap, body: &Bytes) -> Response<Full<Bytes>> {
        let meant = headers.get("gateway-id").map(HeaderValue::as_bytes);
        if meant.is_some_and(|meant| meant != self.id.to_string().as_bytes()) {
            return problem(ProblemType::Forbidden, "the request is meant for another gateway");
        }
        let key = headers.get(protocol::IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
        let Some(key) = key.and_then(|text| Key::parse(text).ok()) else {
            return problem(ProblemType::KeyInvalid, "send one UUID as the key");
        };
        let Ok(charge) = serde_json::from_slice::<Charge<'_>>(body) else {
            return problem(ProblemType::RequestInvalid, "the body is not this request");
        };
        // The load pays online and by one card; anything else was changed on the way.
        if charge.offline || charge.card != "tok_visa" {
            return problem(ProblemType::RequestInvalid, "this gateway knows one card, online");
        }
        self.ledger.requests += 1;
        let known = match self.charges.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                self.ledger.distinct_keys += 1;
                self.by_reference.insert(charge.reference.to_owned(), key);
                new.insert(Bytes::copy_from_slice(body))
            }
        };
        if known != body {
            self.ledger.reused += 1;
            return problem(ProblemType::KeyReused, "the key belongs to another request");
        }
        json(moved(&key, &charge))
    }

    fn find(&self, reference: &str) -> Response<Full<Bytes>> {
        let found = self.by_reference.get(reference).and_then(|key| Some((key, self.charges.get(key)?)));
        let read = found.and_then(|(key, body)| Some((key, serde_json::from_slice::<Charge<'_>>(body).ok()?)));
        read.map_or_else(
            || problem(ProblemType::PaymentUnknown, "nothing has this reference"),
            |(key, charge)| json(moved(key, &charge)),
        )
    }

    fn empty(&mut self) {
        self.charges = HashMap::new();
        self.by_reference = HashMap::new();
        self.ledger = Ledger::default();
    }
}

/// The answer, made of key and request alone, so that a repeat gets the same without its being stored.
fn moved(key: &Key, charge: &Charge<'_>) -> Bytes {
    let Charge { amount, currency, reference, .. } = charge;
    let code = key.short_code();
    Bytes::from(format!(
        r#"{{"id":"ch_{key}","status":"approved","amount":{amount},"currency":"{currency}","reference":"{reference}","card":{{"brand":"visa","last4":"4242"}},"approval_code":"{code}K0"}}"#
    ))
}

fn json(body: Bytes) -> Response<Full<Bytes>> {
    of(StatusCode::OK, "application/json", body)
}

fn problem(problem: ProblemType, detail: &str) -> Response<Full<Bytes>> {
    let problem = Problem::new(problem, detail);
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    of(status, Problem::MEDIA_TYPE, serde_json::to_vec(&problem).unwrap_or_default().into())
}

fn of(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The counts of a stub at that address.
pub async fn ledger(http: &reqwest::Client, url: &str) -> Result<Ledger> {
    let answer = http.get(format!("{url}/ledger")).send().await?.error_for_status()?.bytes().await?;
    serde_json::from_slice(&answer).context("the stub's counts can't be read")
}

/// Makes a stub forget everything.
pub async fn empty(http: &reqwest::Client, url: &str) -> Result<()> {
    http.delete(format!("{url}/ledger")).send().await?.error_for_status()?;
    Ok(())
}
