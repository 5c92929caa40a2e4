//! The till without a window against the bank, as real processes: killed in the middle, started again, counted at the
//! gateway.

#[allow(dead_code, reason = "shared with the window's tests, which use the rest")]
mod harness;

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{
    bank::Bank,
    checker::{self, Verdict},
    till::Till,
    until,
};
use serde_json::json;

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
