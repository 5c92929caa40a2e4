//! A folder that was copied: the same operations in two tills, both of which mean to settle them.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    AMOUNT, LIMIT, SYNC,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        till::Till,
        until,
    },
};

/// More than are final, called and counted ahead when the folder is copied at work.
const CLICKS: usize = 16;
const AT_ONCE: u64 = 4;

/// The till of a folder into which another till's data is copied.
fn copy(till: &Till, folder: &Path) -> Result<Till> {
    let copied = Command::new("cp").arg("-r").arg(till.data()).arg(folder).status()?;
    ensure!(copied.success(), "{copied}");
    Ok(Till::in_folder(folder))
}

/// State and result of each operation.
async fn ends(till: &Till) -> Result<BTreeMap<String, (Value, Value)>> {
    let listed = till.operations().await?;
    let of = |operation: &Value| (operation["state"].clone(), operation["result"].clone());
    listed
        .iter()
        .map(|operation| Ok((operation["key"].as_str().context("no key")?.to_owned(), of(operation))))
        .collect()
}

/// Each is judged alone: the operations of the one are the other's.
async fn both_agree(tills: [&Till; 2], bank: &Bank, told: &[String], verdict: Verdict) -> Result<()> {
    for till in tills {
        ensure!(checker::one_charge_each(till, bank, told).await? == verdict, "not {verdict:?}");
    }
    ensure!(ends(tills[0]).await? == ends(tills[1]).await?, "they disagree");
    Ok(())
}

#[tokio::test]
async fn a_folder_copied_while_it_rests_is_charged_once_where_both_run() -> Result<()> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let till = Till::in_folder(here.path());
    let bank = Bank::start(here.path()).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    let copy = copy(&till, there.path())?;
    bank.faults(json!([{"at": "claimed", "do": "delay", "ms": 50}])).await?;
    let mut running = [till.start("sync", SYNC, Some(&bank.url))?, copy.start("sync", SYNC, Some(&bank.url))?];
    for sync in &mut running {
        let status = sync.ended(LIMIT).await?;
        ensure!(status.success(), "{status}: {}", sync.said()?);
    }
    both_agree([&till, &copy], &bank, &told, Verdict::all_approved(CLICKS)).await
}

#[tokio::test]
async fn a_folder_copied_while_it_is_at_work_is_charged_once_where_both_go_on() -> Result<()> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let till = Till::in_folder(here.path());
    let bank = Bank::start(here.path()).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    // Some are final, some charged and never told, some never sent.
    bank.faults(json!([{"at": "saved", "do": "hang", "skip": 2}])).await?;
    let mut first = till.start("sync", SYNC, Some(&bank.url))?;
    until("some are at the bank", LIMIT, async || Ok((bank.hits().await? >= AT_ONCE).then_some(()))).await?;
    let copy = copy(&till, there.path())?;
    let states: Vec<_> = ends(&copy).await?.into_values().map(|(state, _)| state).collect();
    for state in ["approved", "sending", "saved"] {
        ensure!(states.iter().any(|found| found == state), "none was {state} when it was copied: {states:?}");
    }
    let mut second = copy.start("sync", SYNC, Some(&bank.url))?;
    until("the copy asks too", LIMIT, async || Ok((bank.hits().await? > AT_ONCE).then_some(()))).await?;
    bank.no_faults().await?;
    for sync in [&mut first, &mut second] {
        let status = sync.ended(LIMIT).await?;
        ensure!(status.success(), "{status}: {}", sync.said()?);
    }
    both_agree([&till, &copy], &bank, &told, Verdict::all_approved(CLICKS)).await
}

#[tokio::test]
async fn what_one_of_two_copies_cancelled_at_the_bank_is_cancelled_for_the_other() -> Result<()> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let till = Till::in_folder(here.path());
    let bank = Bank::start(here.path()).await?;
    let told = till.pay(2, AMOUNT, "tok_visa").await?;
    let copy = copy(&till, there.path())?;
    till.done("cancel", &["cancel", &told[0]]).await?;
    for till in [&till, &copy] {
        let mut sync = till.start("sync", SYNC, Some(&bank.url))?;
        let status = sync.ended(LIMIT).await?;
        ensure!(status.success(), "{status}: {}", sync.said()?);
    }
    both_agree([&till, &copy], &bank, &told, Verdict { clicked: 2, approved: 1, cancelled: 1, ..Verdict::default() })
        .await
}

/// The other way round they can't agree: the one promised that it was never sent, and did not know better. That is an alarm.
#[tokio::test]
async fn what_one_of_two_copies_cancelled_after_the_other_had_it_charged_is_an_alarm() -> Result<()> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let till = Till::in_folder(here.path());
    let bank = Bank::start(here.path()).await?;
    let told = till.pay(1, AMOUNT, "tok_visa").await?;
    let copy = copy(&till, there.path())?;
    till.done("cancel", &["cancel", &told[0]]).await?;
    let mut charging = copy.start("sync", SYNC, Some(&bank.url))?;
    ensure!(charging.ended(LIMIT).await?.success(), "{}", charging.said()?);
    let mut sync = till.start("sync", SYNC, Some(&bank.url))?;
    ensure!(sync.ended(LIMIT).await?.code() == Some(4), "it shows in no exit code: {}", sync.said()?);
    ensure!(sync.said()?.contains("is cancelled here, and the bank says approved"), "no line: {}", sync.said()?);
    ensure!(sync.printed()?.contains("late-answer: the bank says approved"), "no reason: {}", sync.printed()?);
    let log = till.log(&told[0]).await?;
    ensure!(log.iter().any(|entry| entry["event"] == "late-answer"), "no alarm in the log: {log:?}");
    ensure!(sync.said()?.contains("answered otherwise"), "no alarm: {}", sync.said()?);
    // In the audit too, once, with what holds and what came, and who was charged for what.
    let alarms = alarms(&till)?;
    ensure!(alarms.len() == 1, "{} alarms in the audit: {alarms:?}", alarms.len());
    let (who, details) = &alarms[0];
    ensure!(who == "bank" && details["key"] == told[0].as_str() && details["amount"] == AMOUNT, "{who}: {details}");
    ensure!(details["holds"] == "cancelled" && details["came"] == "approved", "{details}");
    ensure!(details["result"]["amount"] == AMOUNT, "the bank's object is missing: {details}");
    ensure!(checker::one_charge_each(&copy, &bank, &told).await? == Verdict::all_approved(1));
    Ok(())
}

/// The alarms of late answers in a till's audit: who, and the particulars.
fn alarms(till: &Till) -> Result<Vec<(String, Value)>> {
    let file = Connection::open(till.data().join("till.db"))?;
    let mut entries = file.prepare("SELECT who, details FROM audit WHERE what = 'late-answer' ORDER BY seq")?;
    let rows = entries.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    rows.map(|row| {
        let (who, details) = row?;
        Ok((who, serde_json::from_str(&details)?))
    })
    .collect()
}
