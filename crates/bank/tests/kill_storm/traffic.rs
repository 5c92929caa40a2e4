//! What the clients ask for, and the list of all that they sent and heard. No client ever sends a key twice.

use crate::wire::{Ask, PATIENCE, Told, Wire};
use hyper::Method;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) const PAYMENTS: &str = "/v1/payments";
pub(crate) const REFUNDS: &str = "/v1/refunds";

/// The pause after a connection was refused: the bank is down.
const DOWN: Duration = Duration::from_millis(2);

/// A key that may have reached the bank, and what was heard of it.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) key: String,
    pub(crate) path: &'static str,
    pub(crate) body: Value,
    pub(crate) told: Option<Told>,
    pub(crate) cancellation: Wish,
}

/// Whether the key's cancellation was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    None,
    Unanswered,
    Told(Told),
}

/// What all clients have sent.
#[derive(Default)]
pub(crate) struct Sheet {
    sent: Mutex<Vec<Sent>>,
    /// Payments that were told as approved: id, amount.
    approved: Mutex<Vec<(String, i64)>>,
}

impl Sheet {
    fn note(&self, sent: Sent) {
        if sent.path == PAYMENTS
            && let Some(told) = &sent.told
            && told.status == 201
        {
            let payment = told.json();
            let known = payment["id"].as_str().map(str::to_owned).zip(payment["amount"].as_i64());
            self.approved.lock().unwrap_or_else(PoisonError::into_inner).extend(known);
        }
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
    }

    fn some_approved(&self, chance: &mut StdRng) -> Option<(String, i64)> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner).choose(chance).cloned()
    }

    /// All of it, once the clients have ended.
    pub(crate) fn all(&self) -> Vec<Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One client: asks for one thing after the other until told to stop.
pub(crate) async fn client(bank: SocketAddr, sheet: Arc<Sheet>, stop: CancellationToken, mut chance: StdRng) {
    let (mut wire, mut other) = (Wire::to(bank), Wire::to(bank));
    while !stop.is_cancelled() {
        if !wire.connect().await {
            tokio::time::sleep(DOWN).await;
            continue;
        }
        let key = Uuid::now_v7().to_string();
        let (path, body) = order(&sheet, &mut chance);
        // Some hang up before they can have heard.
        let patience = if chance.random_bool(0.05) { random_ms(&mut chance, 30) } else { PATIENCE };
        let paying = wire.ask(Ask::keyed(path, &key, &body), patience);
        let cancelling = chance.random_bool(0.2).then(|| random_ms(&mut chance, 60));
        let (told, cancellation) = tokio::join!(paying, cancel(&mut other, &key, cancelling));
        sheet.note(Sent { key, path, body, told, cancellation });
    }
}

fn order(sheet: &Sheet, chance: &mut StdRng) -> (&'static str, Value) {
    if chance.random_bool(0.2)
        && let Some((payment, amount)) = sheet.some_approved(chance)
    {
        return (REFUNDS, json!({"payment_id": payment, "amount": chance.random_range(1..=amount)}));
    }
    let card = match chance.random_range(0..100) {
        0..60 => "tok_visa".to_owned(),
        60..80 => "tok_mastercard".to_owned(),
        80..85 => "tok_insufficient_funds".to_owned(),
        85..90 => "tok_lost".to_owned(),
        _ => format!("tok_account_{}", chance.random_range(1..=5)),
    };
    let currency = ["EUR", "EUR", "USD", "JPY"].choose(chance).copied().unwrap_or("EUR");
    let amount = chance.random_range(1..20_000);
    (PAYMENTS, json!({"amount": amount, "currency": currency, "card": card, "reference": "till-1/7"}))
}

/// Asks for the cancellation after a while; it may come before, during and after the payment.
async fn cancel(wire: &mut Wire, key: &str, after: Option<Duration>) -> Wish {
    let Some(after) = after else { return Wish::None };
    tokio::time::sleep(after).await;
    if !wire.connect().await {
        return Wish::None;
    }
    let path = format!("/v1/operations/{key}/cancellation");
    wire.ask(Ask::new(Method::PUT, &path), PATIENCE).await.map_or(Wish::Unanswered, Wish::Told)
}

pub(crate) fn random_ms(chance: &mut StdRng, below: u64) -> Duration {
    Duration::from_millis(chance.random_range(0..below))
}
