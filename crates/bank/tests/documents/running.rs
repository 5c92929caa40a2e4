//! A bank that runs in this process.

use bank::{Bank, BankConfig, LabConfig, Secret, Token};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use std::{error::Error, io, path::Path, time::Duration};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub(crate) const SECRET: &str = "sk_shop";
pub(crate) const OPERATOR: &str = "op_people";

pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) gateway_url: String,
    end: oneshot::Sender<()>,
    ended: JoinHandle<io::Result<()>>,
    http: Client,
}

pub(crate) fn config(dir: &Path) -> BankConfig {
    BankConfig {
        tokens: vec![Token { merchant: "shop".into(), secret: Secret::new(SECRET) }],
        operator: Some(Secret::new(OPERATOR)),
        ..BankConfig::new(dir.join("bank.db"))
    }
}

/// The same, with a fault lab that needs no secret.
pub(crate) fn with_lab(dir: &Path) -> BankConfig {
    BankConfig { lab: Some(LabConfig { secret: None, may_abort: false }), ..config(dir) }
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.text)?)
    }
}

impl Running {
    pub(crate) async fn start(config: BankConfig) -> Result<Self> {
        let bank = Bank::open(config).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let ready = bank.ready(&listener)?;
        let (end, told) = oneshot::channel();
        let ended = tokio::spawn(bank.serve(listener, async {
            let _ = told.await;
        }));
        let http = Client::builder().no_proxy().build()?;
        Ok(Self { url: ready.url, gateway_url: ready.gateway_url, end, ended, http })
    }

    /// A request with the merchant's secret, or the operator's where the path is one of theirs.
    pub(crate) fn request(&self, method: &str, path: &str) -> Result<RequestBuilder> {
        let request = self.http.request(Method::from_bytes(method.as_bytes())?, format!("{}{path}", self.url));
        Ok(request.bearer_auth(if path.starts_with("/operator") { OPERATOR } else { SECRET }))
    }

    pub(crate) fn keyed(&self, path: &str, key: &str, body: &Value) -> Result<RequestBuilder> {
        Ok(self.request("POST", path)?.header("idempotency-key", key).json(body))
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer> {
        send(self.request("GET", path)?).await
    }

    pub(crate) async fn of_gateway(&self, path: &str) -> Result<Answer> {
        send(self.http.get(format!("{}{path}", self.gateway_url))).await
    }

    /// Sets faults of the bank, or of its gateway.
    pub(crate) async fn faults(&self, of: &str, rules: Value) -> Result {
        let set = send(self.http.put(format!("{of}/lab/faults")).json(&rules)).await?;
        if set.status == 200 { Ok(()) } else { Err(set.text.into()) }
    }

    pub(crate) async fn end(self) -> Result {
        let _ = self.end.send(());
        Ok(self.ended.await??)
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer { status, headers, text: response.text().await? })
}

/// Looks until there is something to see, for at most 10 s.
pub(crate) async fn within<T>(mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..1_000 {
        if let Some(seen) = look().await? {
            return Ok(seen);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("nothing to see within 10 s".into())
}

/// A key whose last digits are this number.
pub(crate) fn key(number: u16) -> String {
    format!("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f{number:04x}")
}

pub(crate) fn coffee(card: &str) -> Value {
    json!({"amount": 290, "currency": "EUR", "card": card, "reference": "till-1/1"})
}
