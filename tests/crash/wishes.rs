//! A till that dies where a refund waits for its payment, where somebody cancels, and where the bank is told of what was
//! cancelled before it was ever sent.

use anyhow::{Result, ensure};
use serde_json::Value;
use store::points::Point;

use crate::{
    deaths::Deaths,
    harness::bank::Bank,
    place::{AMOUNT, Place, SYNC},
};

/// At which passes it dies, one life after the other.
const PASSES: [u32; 4] = [1, 2, 1, 3];
/// Payments before each life, so that there are enough of them to come to the last pass.
const CLICKS: usize = 4;

/// How many times it is told so in the log of an operation.
async fn told(place: &Place, key: &str, event: &str) -> Result<usize> {
    Ok(place.till.log(key).await?.iter().filter(|entry| entry["event"] == event).count())
}

async fn operation(place: &Place, key: &str) -> Result<Value> {
    let operations = place.till.operations().await?;
    Ok(operations.into_iter().find(|operation| operation["key"] == key).unwrap_or_default())
}

/// Each payment is to be given back before it is approved. Approved and ready are one commit: both are there, or neither is.
pub(crate) async fn refunds_made_ready(bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = Place::new()?;
    let mut refunded = Vec::new();
    for pass in PASSES {
        for payment in place.till.pay(CLICKS, AMOUNT, "tok_visa").await? {
            let told = place.till.done("refund", &["refund", &payment, "--amount", "990"]).await?;
            let refund = told[0]["key"].as_str().unwrap_or_default().to_owned();
            place.keys.extend([payment.clone(), refund.clone()]);
            refunded.push((payment, refund));
        }
        place.die_at(Point::RefundReady, pass, SYNC, Some(&bank.url), deaths).await?;
        let mut waiting = 0;
        for (payment, refund) in &refunded {
            let is_approved = operation(&place, payment).await?["state"] == "approved";
            let ready = told(&place, refund, "ready").await?;
            ensure!(
                ready == usize::from(is_approved),
                "{payment} is approved: {is_approved}; {refund} is ready {ready} times"
            );
            waiting += usize::from(!is_approved);
        }
        ensure!(waiting > 0, "the death met no refund that waited");
    }
    place.settle(&bank.url).await?;
    for (_, refund) in &refunded {
        ensure!(told(&place, refund, "ready").await? == 1, "{refund} was made ready more than once");
        ensure!(operation(&place, refund).await?["state"] == "approved", "{refund} is not given back");
    }
    Ok(place)
}

/// `cancel` dies with its commit durable and its word unsaid: what was never sent is cancelled, what was perhaps sent is to be,
/// and the same command again changes nothing.
pub(crate) async fn cancellations(bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = Place::new()?;
    place.keys = place.till.pay(1, AMOUNT, "tok_visa").await?;
    // Charged, and the till does not know.
    place.die_at(Point::Answered, 1, SYNC, Some(&bank.url), deaths).await?;
    place.keys.extend(place.till.pay(2, AMOUNT, "tok_visa").await?);
    for (n, key) in place.keys.iter().enumerate() {
        place.die_at(Point::CancelSaved, 1, &["cancel", key], None, deaths).await?;
        let found = operation(&place, key).await?;
        let was_sent = n == 0;
        ensure!((found["state"] == "cancelled") != was_sent, "it was sent: {was_sent}; {found}");
        let event = if was_sent { "cancel-wished" } else { "cancelled" };
        ensure!(told(&place, key, event).await? == 1, "it is lost");
        let again = place.till.done("cancel", &["cancel", key]).await?;
        ensure!(again[0]["state"] == found["state"], "the same again changed it: {again:?}");
        ensure!(told(&place, key, event).await? == 1, "{event} not once");
    }
    place.settle(&bank.url).await?;
    let charged = operation(&place, &place.keys[0]).await?;
    ensure!(charged["state"] == "approved", "the bank had charged it, and it is not told: {charged}");
    Ok(place)
}

/// The bank is told of what was cancelled here, and the till dies before it keeps that: it is told again, and once is enough.
pub(crate) async fn tombstones(bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = Place::new()?;
    for _ in PASSES {
        let key = place.till.pay(1, AMOUNT, "tok_visa").await?.remove(0);
        place.till.done("cancel", &["cancel", &key]).await?;
        place.keys.push(key.clone());
        place.die_at(Point::TombstoneTold, 1, SYNC, Some(&bank.url), deaths).await?;
        let at_bank = bank.operation(&key).await?.unwrap_or_default();
        ensure!(at_bank["state"] == "cancelled", "the bank was told, and it says {at_bank}");
        place.settle(&bank.url).await?;
        ensure!(told(&place, &key, "asked").await? == 2, "it was not told twice");
        ensure!(told(&place, &key, "sent").await? == 0, "it was sent");
        ensure!(told(&place, &key, "late-answer").await? == 0, "an alarm about nothing");
    }
    Ok(place)
}
