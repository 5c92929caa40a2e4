//! The gateway's client: set up as that of Kassa's bank is.

use crate::contender::payment::{Charged, Claim};
use anyhow::{Context, Result, ensure};
use protocol::{Amount, Card, Currency, Key, Outcome};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(crate) struct Gateway {
    http: reqwest::Client,
    charges: String,
    /// A deliberate fault: a new key for each attempt.
    new_key_each_time: bool,
}

#[derive(Serialize)]
struct Request<'a> {
    amount: Amount,
    currency: Currency,
    card: &'a str,
    reference: &'a str,
    offline: bool,
}

#[derive(Deserialize)]
struct Answer {
    status: Outcome,
    amount: Amount,
    currency: Currency,
    reference: String,
    card: Option<Card>,
    approval_code: Option<String>,
}

impl Gateway {
    pub(crate) fn new(url: &str, new_key_each_time: bool) -> Result<Self> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .timeout(Duration::from_secs(10))
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(4))
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { http, charges: format!("{}/v1/charges", url.trim_end_matches('/')), new_key_each_time })
    }

    /// Makes one attempt to charge. After an error nobody knows whether the money moved.
    pub(crate) async fn charge(&self, claim: &Claim) -> Result<Charged> {
        let key = if self.new_key_each_time { Key::from_uuid(uuid::Uuid::new_v4())? } else { claim.gateway_key()? };
        let reference = claim.gateway_reference();
        let (amount, currency) = (claim.request.amount, claim.request.currency);
        let request = Request {
            amount,
            currency,
            card: claim.request.card.expose(),
            reference: &reference,
            offline: claim.request.accepted_offline_at.is_some(),
        };
        let request = self.http.post(&self.charges).header(protocol::IDEMPOTENCY_KEY, key.to_string()).json(&request);
        let response = request.send().await?;
        ensure!(response.status() == 200, "the gateway says {}", response.status());
        let answer: Answer = serde_json::from_slice(&response.bytes().await?)?;
        let ours = (answer.amount, answer.currency, &answer.reference) == (amount, currency, &reference);
        ensure!(ours && answer.status == Outcome::Approved, "the gateway's answer is not about our request");
        let approval_code = answer.approval_code.context("an approval without its code")?;
        Ok(Charged { card: answer.card, approval_code })
    }
}
