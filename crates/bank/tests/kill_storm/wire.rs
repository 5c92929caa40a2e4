//! One client connection, which asks once and never repeats anything by itself.

use crate::program::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, client::conn::http1::SendRequest, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::{net::SocketAddr, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// The longest that anything is waited for where nobody means to hang up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);
/// The merchant's secret.
pub(crate) const SECRET: &str = "sk_storm";
/// The operator's secret.
pub(crate) const OPERATOR: &str = "op_storm";

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) replayed: Option<bool>,
    pub(crate) content_type: String,
    pub(crate) location: String,
    pub(crate) body: Bytes,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A result: what may never change again.
    pub(crate) fn is_result(&self) -> bool {
        matches!(self.status, 201 | 402)
    }
}

/// A question.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    method: Method,
    path: &'a str,
    secret: &'static str,
    key: Option<&'a str>,
    body: Option<&'a Value>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, secret: SECRET, key: None, body: None }
    }

    /// A keyed request.
    pub(crate) fn keyed(path: &'a str, key: &'a str, body: &'a Value) -> Self {
        Self { key: Some(key), body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn with(self, body: &'a Value) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(crate) fn by_operator(self) -> Self {
        Self { secret: OPERATOR, ..self }
    }

    fn request(&self, address: SocketAddr) -> hyper::http::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(self.method.clone()).uri(self.path);
        request = request.header(header::HOST, address.to_string());
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.secret));
        if let Some(key) = self.key {
            request = request.header("Idempotency-Key", key);
        }
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::from(self.body.map(Value::to_string).unwrap_or_default()))
    }
}

/// A client with one connection, made again once it is broken.
pub(crate) struct Wire {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self { address, sender: None }
    }

    /// Whether there is a connection, after making one where there is none. Nothing is asked on it.
    pub(crate) async fn connect(&mut self) -> bool {
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_ok()
        {
            return true;
        }
        self.sender = None;
        let Ok(stream) = TcpStream::connect(self.address).await else { return false };
        if stream.set_nodelay(true).is_err() {
            return false;
        }
        let Ok((sender, connection)) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await else {
            return false;
        };
        // Its error is seen by the one that asks.
        tokio::spawn(async move { connection.await.ok() });
        self.sender = Some(sender);
        true
    }

    /// Asks once, and hangs up where the whole answer is not there in time. None: it may have been asked, and nobody knows.
    pub(crate) async fn ask(&mut self, ask: Ask<'_>, patience: Duration) -> Option<Told> {
        let request = ask.request(self.address).ok()?;
        let told = match &mut self.sender {
            Some(sender) => timeout(patience, answer(sender, request)).await.ok().flatten(),
            None => None,
        };
        if told.is_none() {
            self.sender = None;
        }
        told
    }

    /// Asks what is safe to ask again, of a process that is up.
    pub(crate) async fn need(&mut self, ask: Ask<'_>) -> Result<Told> {
        for _ in 0..3 {
            if self.connect().await
                && let Some(told) = self.ask(ask.clone(), PATIENCE).await
            {
                return Ok(told);
            }
        }
        Err(format!("{} {} is not answered", ask.method, ask.path).into())
    }
}

async fn answer(sender: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Option<Told> {
    let response = sender.send_request(request).await.ok()?;
    let (head, body) = response.into_parts();
    let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (content_type, location) = (text("content-type"), text("location"));
    let replayed = text("idempotent-replayed").parse().ok();
    let body = body.collect().await.ok()?.to_bytes();
    Some(Told { status: head.status.as_u16(), replayed, content_type, location, body })
}
