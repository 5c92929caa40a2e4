//! The owner dies, or somebody takes its lock away.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    AMOUNT, LIMIT, SYNC,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        relay::{Moment, Relay},
        till::Till,
        until,
    },
};

const CLICKS: usize = 8;
const AT_ONCE: usize = 4;
const DEATHS: usize = 8;
/// From the start of the next process to the first request at the bank.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(1);

#[tokio::test]
async fn after_the_owner_was_killed_the_next_start_takes_over_at_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    let mut took = Vec::new();
    for death in 0..=DEATHS {
        let known = relay.asked().len();
        relay.hold_at(Moment::RequestPassedOn, 1);
        let started = Instant::now();
        let mut sync = till.start("sync", SYNC, Some(&relay.url))?;
        relay.holds(1, LIMIT).await?;
        let first = until("the first request", LIMIT, async || {
            Ok(relay.asked()[known..].iter().find(|asked| asked.key.is_some()).map(|asked| asked.at))
        })
        .await?;
        if death > 0 {
            took.push(first.duration_since(started));
        }
        ensure!(
            till.operations().await?.iter().any(|operation| operation["state"] == "sending"),
            "nothing is in flight"
        );
        sync.kill()?;
        relay.let_go();
    }
    let mut sync = till.start("sync", SYNC, Some(&relay.url))?;
    ensure!(sync.ended(LIMIT).await?.success(), "{}", sync.said()?);
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(CLICKS));
    took.sort();
    println!("From the start after a kill to the first request: {took:?}");
    // The middle one: a machine that is busy may be late once.
    ensure!(took[took.len() / 2] < TAKES_OVER_WITHIN, "{took:?}");
    Ok(())
}

#[tokio::test]
async fn with_the_lock_of_the_folder_removed_the_queue_still_has_one_owner() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    bank.faults(json!([{"at": "received", "do": "hang"}])).await?;
    let mut owner = till.start("owner", SYNC, Some(&bank.url))?;
    at_work(&bank).await?;
    fs::remove_file(till.data().join("till.lock"))?;
    let mut second = till.start("second", SYNC, Some(&bank.url))?;
    let status = second.ended(LIMIT).await?;
    let said = second.said()?;
    ensure!(status.code() == Some(1) && said.lines().count() == 1 && said.contains("in use"), "{status}: {said}");
    bank.no_faults().await?;
    let status = owner.ended(LIMIT).await?;
    ensure!(status.success(), "{status}: {}", owner.said()?);
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(CLICKS));
    Ok(())
}

/// With all locks gone, two work on one file. The second one's start is in the file, and the first one finds it there before it
/// writes another word.
#[tokio::test]
async fn with_every_lock_removed_the_first_owner_sees_that_it_is_one_no_more() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    bank.faults(json!([{"at": "saved", "do": "hang"}])).await?;
    let mut first = till.start("first", SYNC, Some(&bank.url))?;
    at_work(&bank).await?;
    for lock in ["till.lock", "till.db.settling"] {
        fs::remove_file(till.data().join(lock)).context(lock)?;
    }
    let mut second = till.start("second", SYNC, Some(&bank.url))?;
    until("the second one asks too", LIMIT, async || Ok((bank.hits().await? > AT_ONCE as u64).then_some(()))).await?;
    bank.no_faults().await?;

    let status = first.ended(LIMIT).await?;
    let said = first.said()?;
    ensure!(
        status.code() == Some(1) && said.contains("another process has taken the payments over"),
        "{status}: {said}"
    );
    let status = second.ended(LIMIT).await?;
    ensure!(status.success(), "{status}: {}", second.said()?);
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(CLICKS));
    Ok(())
}

/// As many as may be in flight hang at the bank.
async fn at_work(bank: &Bank) -> Result<()> {
    until("the first one is at it", LIMIT, async || Ok((bank.hits().await? >= AT_ONCE as u64).then_some(()))).await
}
