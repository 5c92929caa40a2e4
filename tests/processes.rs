//! The till without a window against the bank, as real processes: killed in the middle, started again, counted at the
//! gateway.

#[allow(dead_code, reason = "shared with the window's tests, which use the rest")]
mod harness;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{
    bank::Bank,
    checker::{self, Verdict},
    till::Till,
    until,
};
use serde_json::{Value, json};

const STEP_LIMIT: Duration = Duration::from_secs(20);
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

const TIMES: usize = 20;
const AMOUNT: i64 = 2_490;

#[tokio::test]
async fn twenty_payments_killed_in_the_middle_of_sending_are_charged_once_each() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    // Saved with nobody there to ask.
    let keys = till.pay(TIMES, AMOUNT, "tok_visa").await?;

    let bank = Bank::start(folder.path()).await?;
    // Five are answered. What comes after them is charged and never answered, so that the kill meets it in flight
    // however late it comes.
    bank.faults(json!([{"at": "saved", "do": "hang", "skip": 5}])).await?;
    let mut sync = till.start("sync-killed", &["sync", "--until-settled"], Some(&bank.url))?;
    until("a few are answered and one more is charged", SETTLE_LIMIT, async || {
        Ok((bank.charges().await?.count >= 6).then_some(()))
    })
    .await?;
    sync.kill()?;
    let left = till.operations().await?;
    ensure!(left.iter().any(|operation| operation["state"] == "sending"), "the kill met nothing in flight: {left:?}");
    ensure!(left.iter().any(|operation| operation["state"] != "approved"), "the kill came after the end");

    bank.no_faults().await?;
    let mut sync = till.start("sync-again", &["sync", "--until-settled"], Some(&bank.url))?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);

    ensure!(checker::one_charge_each(&till, &bank, &keys).await? == Verdict::all_approved(TIMES));
    Ok(())
}

#[tokio::test]
async fn a_second_sync_on_one_folder_refuses_in_one_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    bank.faults(json!([{"at": "received", "do": "hang"}])).await?;
    let keys = till.pay(1, AMOUNT, "tok_visa").await?;
    let mut first = till.start("sync-first", &["sync", "--until-settled"], Some(&bank.url))?;
    until("the first one is at it", STEP_LIMIT, async || Ok((bank.hits().await? > 0).then_some(()))).await?;

    let mut second = till.start("sync-second", &["sync", "--until-settled"], Some(&bank.url))?;
    let status = second.ended(STEP_LIMIT).await?;
    ensure!(status.code() == Some(1), "{status}");
    let said = second.said()?;
    ensure!(said.trim().lines().count() == 1, "one line, not: {said}");
    ensure!(second.printed()?.is_empty(), "nothing on stdout");

    // What only reads is not refused.
    ensure!(till.operations().await?.len() == 1);

    bank.no_faults().await?;
    let status = first.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "the first one is none the worse: {status}, {}", first.said()?);
    ensure!(checker::one_charge_each(&till, &bank, &keys).await? == Verdict::all_approved(1));
    Ok(())
}

fn key_of(operation: &Value) -> Result<String> {
    Ok(operation["key"].as_str().context("an operation with no key")?.to_owned())
}

#[tokio::test]
async fn a_refund_waits_for_its_payment_and_is_made_once_over_a_kill() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let mut keys = till.pay(1, AMOUNT, "tok_visa").await?;
    keys.extend(till.pay(1, AMOUNT, "tok_insufficient_funds").await?);
    let refund = async |payment: &str, amount: &str, intent: &str| -> Result<Value> {
        let saved = till.done("refund", &["refund", payment, "--amount", amount, "--intent", intent]).await?;
        saved.into_iter().next().context("a refund that prints nothing")
    };
    let (paid, declined) = (keys[0].clone(), keys[1].clone());
    for (payment, amount, intent) in [(&paid, "1000", "a"), (&paid, "1490", "b"), (&declined, "1", "c")] {
        let saved = refund(payment, amount, intent).await?;
        ensure!(saved["kind"] == "refund" && saved["state"] == "saved", "{saved}");
        keys.push(key_of(&saved)?);
    }
    // The first refund is given and its answer never comes; there the till dies.
    bank.faults(json!([{"at": "saved", "do": "hang", "skip": 2}])).await?;
    let mut sync = till.start("sync-killed", &["sync", "--until-settled"], Some(&bank.url))?;
    until("a refund is given", SETTLE_LIMIT, async || Ok((bank.ledger().await?["refunds"] == 1).then_some(()))).await?;
    sync.kill()?;
    bank.no_faults().await?;
    let mut sync = till.start("sync-again", &["sync", "--until-settled"], Some(&bank.url))?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);

    let states: Vec<_> = till.operations().await?.iter().map(|operation| operation["state"].clone()).collect();
    ensure!(states == ["approved", "declined", "approved", "approved", "cancelled"], "{states:?}");
    // However often it is asked for.
    let again = refund(&paid, "1000", "a").await?;
    ensure!(again["state"] == "approved" && key_of(&again)? == keys[2], "{again}");
    let verdict = checker::one_charge_each(&till, &bank, &keys).await?;
    ensure!((verdict.approved, verdict.declined, verdict.cancelled) == (3, 1, 1), "{verdict:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_cancelled_never_charges_whether_it_was_sent_or_not() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let keys = till.pay(3, AMOUNT, "tok_visa").await?;
    // The first is never sent. The second is sent and reaches no handling; the third is charged, and nobody is told.
    let cancel = async |key: &str| till.done("cancel", &["cancel", key]).await;
    ensure!(cancel(&keys[0]).await?[0]["state"] == "cancelled");
    bank.faults(json!([
        {"at": "received", "do": "drop", "key": keys[1]},
        {"at": "saved", "do": "drop", "key": keys[2]},
    ]))
    .await?;
    let mut sync = till.start("sync-lost", &["sync", "--timeout", "20s"], Some(&bank.url))?;
    let perhaps_sent = async || -> Result<Option<()>> {
        let operations = till.operations().await?;
        Ok(operations[1..].iter().all(|operation| operation["attempts"].as_u64() > Some(0)).then_some(()))
    };
    until("both were perhaps sent", SETTLE_LIMIT, perhaps_sent).await?;
    until("one is charged", SETTLE_LIMIT, async || Ok((bank.charges().await?.count == 1).then_some(()))).await?;
    sync.kill()?;
    for key in &keys[1..] {
        let wished = cancel(key).await?;
        ensure!(wished[0]["state"] == "sending" || wished[0]["state"] == "unknown", "{wished:?}");
    }
    let mut sync = till.start("sync-again", &["sync", "--until-settled"], Some(&bank.url))?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);
    // It went through before the wish came: that is what it is, and the till says so.
    let states: Vec<_> = till.operations().await?.iter().map(|operation| operation["state"].clone()).collect();
    ensure!(states == ["cancelled", "cancelled", "approved"], "{states:?}");
    let late = till.start("cancel-late", &["cancel", &keys[2]], None)?.ended(STEP_LIMIT).await?;
    ensure!(late.code() == Some(1), "{late}");
    // The bank knows what never came to it, and refuses it for ever.
    for key in &keys[..2] {
        let at_bank = bank.operation(key).await?.context("the bank was not told")?;
        ensure!(at_bank["state"] == "cancelled", "{at_bank}");
    }
    let verdict = checker::one_charge_each(&till, &bank, &keys).await?;
    ensure!((verdict.approved, verdict.cancelled) == (1, 2), "{verdict:?}");
    Ok(())
}
