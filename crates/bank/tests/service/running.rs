//! A bank that runs in this process, and how it is spoken to.

use bank::{Bank, BankConfig, LabConfig, Secret, Token};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

pub(crate) const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
pub(crate) const OTHER: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c";

pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) gateway_url: String,
    pub(crate) end: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<std::io::Result<()>>,
    pub(crate) http: Client,
}

pub(crate) fn config(dir: &Path) -> BankConfig {
    BankConfig {
        tokens: vec![Token { merchant: "shop".into(), secret: Secret::new("sk_shop") }],
        lab: Some(LabConfig { secret: Some(Secret::new("lab_run")), may_abort: false }),
        ..BankConfig::new(dir.join("bank.db"))
    }
}

pub(crate) async fn start(config: BankConfig) -> Result<Running> {
    let bank = Bank::open(config).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let ready = bank.ready(&listener)?;
    let (end, told) = oneshot::channel();
    let ended = tokio::spawn(bank.serve(listener, async {
        let _ = told.await;
    }));
    let http = Client::builder().no_proxy().build()?;
    Ok(Running { url: ready.url, gateway_url: ready.gateway_url, end, ended, http })
}

impl Running {
    pub(crate) async fn pay(&self, key: &str, body: &Value) -> Result<Response> {
        let request = self.http.post(format!("{}/v1/payments", self.url)).bearer_auth("sk_shop");
        Ok(request.header("Idempotency-Key", key).json(body).send().await?)
    }

    pub(crate) async fn get(&self, path: &str, secret: &str) -> Result<Response> {
        Ok(self.http.get(format!("{}{path}", self.url)).bearer_auth(secret).send().await?)
    }

    pub(crate) async fn refund(&self, key: &str, payment: &str) -> Result<Response> {
        let request = self.http.post(format!("{}/v1/refunds", self.url)).bearer_auth("sk_shop");
        let body = json!({"payment_id": payment, "amount": 1});
        Ok(request.header("Idempotency-Key", key).json(&body).send().await?)
    }

    /// The state of a key; none while it is unknown.
    pub(crate) async fn state(&self, key: &str) -> Option<String> {
        let operation: Value = self.get(&format!("/v1/operations/{key}"), "sk_shop").await.ok()?.json().await.ok()?;
        operation["state"].as_str().map(str::to_owned)
    }

    pub(crate) async fn fault(&self, rule: Value) -> Result<u16> {
        let request = self.http.put(format!("{}/lab/faults", self.url)).bearer_auth("lab_run");
        Ok(request.json(&json!([rule])).send().await?.status().as_u16())
    }

    pub(crate) async fn gateway_fault(&self, rules: Value) -> Result<u16> {
        let request = self.http.put(format!("{}/lab/faults", self.gateway_url)).bearer_auth("lab_run");
        Ok(request.json(&rules).send().await?.status().as_u16())
    }

    pub(crate) async fn gateway_ledger(&self) -> Result<Value> {
        let request = self.http.get(format!("{}/lab/ledger", self.gateway_url)).bearer_auth("lab_run");
        Ok(request.send().await?.json().await?)
    }

    pub(crate) async fn move_clock(&self, offset_s: i64) -> Result<u16> {
        let request = self.http.put(format!("{}/lab/clock", self.url)).bearer_auth("lab_run");
        Ok(request.json(&json!({"offset_s": offset_s})).send().await?.status().as_u16())
    }

    pub(crate) async fn charges(&self) -> Result<Value> {
        Ok(self.gateway_ledger().await?["charges"].take())
    }

    pub(crate) async fn end(self) -> Result {
        let _ = self.end.send(());
        Ok(self.ended.await??)
    }
}

/// Looks until there is something to see, for at most 10 s.
pub(crate) async fn within<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    for _ in 0..1_000 {
        if let Some(seen) = look().await {
            return Ok(seen);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("nothing to see within 10 s".into())
}

pub(crate) fn coffee() -> Value {
    json!({"amount": 290, "currency": "EUR", "card": "tok_visa", "reference": "till-1/1"})
}
