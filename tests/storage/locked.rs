//! The till's file, held by another program.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rusqlite::Connection;
use serde_json::json;

use crate::{
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        relay::Relay,
        till::Till,
        until,
    },
    said::{AMOUNT, PAY, STEP_LIMIT, SYNC, SYNC_SHORT, done, ended, keys, reason, refusal},
};

/// How long a click may take to say that it can't: a cashier is waiting. One wait for the lock is a second.
const SAID_WITHIN: Duration = Duration::from_millis(2_500);
const WAITING: usize = 8;
const AT_ONCE: usize = 4;
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_click_on_a_file_that_another_program_holds_says_so_soon_and_works_when_it_is_free() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let mut told = till.pay(3, AMOUNT, "tok_visa").await?;

    let other = Connection::open(till.data().join("till.db"))?;
    other.execute_batch("BEGIN EXCLUSIVE")?;
    let late = [PAY, &["--intent", "late"]].concat();
    let began = Instant::now();
    let said = refusal(&mut till.start("late", &late, None)?).await?;
    let took = began.elapsed();
    ensure!(said.contains("another program holds") && said.contains("nothing was saved or sent"), "{said}");
    ensure!(took < SAID_WITHIN, "it took {took:?}");
    let mut sync = till.start("sync-held", SYNC_SHORT, Some(&relay.url))?;
    let status = ended(&mut sync).await?;
    let said = reason(&sync)?;
    ensure!(matches!(status.code(), Some(1 | 3)) && said.contains("another program holds"), "{status}: {said}");
    ensure!(relay.keyed().is_empty(), "{:?} left a till that can count nothing", relay.keyed());
    ensure!(keys(&till.operations().await?) == told, "who only reads is not kept out");
    other.execute_batch("ROLLBACK")?;

    told.extend(keys(&done(&mut till.start("late-again", &late, None)?).await?));
    done(&mut till.start("sync", SYNC, Some(&relay.url))?).await?;
    println!("A click on a file that is held is refused after {took:?}.");
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(4));
    Ok(())
}

#[tokio::test]
async fn answers_that_come_while_another_program_holds_the_file_are_kept_and_stored_when_it_is_free() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let told = till.pay(WAITING, AMOUNT, "tok_visa").await?;
    bank.faults(json!([{"at": "saved", "do": "hang"}])).await?;
    let mut sync = till.start("sync", SYNC, Some(&relay.url))?;
    until("all that may be in flight is charged", STEP_LIMIT, async || {
        Ok((bank.charges().await?.count == i64::try_from(AT_ONCE)?).then_some(()))
    })
    .await?;

    let other = Connection::open(till.data().join("till.db"))?;
    other.busy_timeout(STEP_LIMIT)?;
    other.execute_batch("BEGIN EXCLUSIVE")?;
    bank.no_faults().await?;
    until("the answers are there and can't be stored", STEP_LIMIT, async || {
        Ok((sync.said()?.matches("an outcome could not be saved yet").count() >= AT_ONCE).then_some(()))
    })
    .await?;
    let since = Instant::now();
    until("a while has passed", STEP_LIMIT, async || Ok((since.elapsed() > QUIET).then_some(()))).await?;
    ensure!(relay.keyed().len() == AT_ONCE, "{} requests with nowhere to put an answer", relay.keyed().len());
    other.execute_batch("ROLLBACK")?;

    let status = ended(&mut sync).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);
    ensure!(relay.keyed().len() == WAITING, "{} requests for {WAITING} answers", relay.keyed().len());
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(WAITING));
    Ok(())
}
