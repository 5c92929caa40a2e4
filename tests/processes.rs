//! The till without a window against the bank, as real processes: killed in the middle, started again, counted at the
//! gateway.

#[allow(dead_code, reason = "shared with the window's tests, which use the rest")]
mod harness;

use std::{collections::HashSet, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use harness::{
    bank::{Bank, Charges, SECRET},
    process::Process,
    programs, until,
};
use serde_json::{Value, json};

const STEP_LIMIT: Duration = Duration::from_secs(20);
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

const TIMES: usize = 20;
const AMOUNT: i64 = 2_490;

#[tokio::test]
async fn twenty_payments_killed_in_the_middle_of_sending_are_charged_once_each() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till { folder: folder.path() };
    // Saved with nobody there to ask.
    let saved = till
        .done("pay", &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa", "--times", "20"])
        .await?;
    ensure!(saved.len() == TIMES, "{} lines of {TIMES}", saved.len());
    ensure!(saved.iter().all(|operation| operation["state"] == "saved"), "{saved:?}");
    let keys: HashSet<_> = saved.iter().filter_map(|operation| operation["key"].as_str()).collect();
    ensure!(keys.len() == TIMES, "a key of its own for each");

    let bank = Bank::start(folder.path()).await?;
    // Five are answered. What comes after them is charged and never answered, so that the kill meets it in flight
    // however late it comes.
    bank.faults(json!([{"at": "saved", "do": "hang", "skip": 5}])).await?;
    let mut sync = till.start("sync-killed", &["sync", "--until-settled"], Some(&bank))?;
    until("a few are answered and one more is charged", SETTLE_LIMIT, async || {
        Ok((bank.charges().await?.count >= 6).then_some(()))
    })
    .await?;
    sync.kill()?;
    let left = till.operations("operations-left").await?;
    ensure!(left.iter().any(|operation| operation["state"] == "sending"), "the kill met nothing in flight: {left:?}");
    ensure!(left.iter().any(|operation| operation["state"] != "approved"), "the kill came after the end");

    bank.no_faults().await?;
    let mut sync = till.start("sync-again", &["sync", "--until-settled"], Some(&bank))?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);

    let settled = till.operations("operations-settled").await?;
    ensure!(settled.len() == TIMES && settled.iter().all(|operation| operation["state"] == "approved"), "{settled:?}");
    let after: HashSet<_> = settled.iter().filter_map(|operation| operation["key"].as_str()).collect();
    ensure!(after == keys, "no key was lost or made anew");
    let charges = bank.charges().await?;
    ensure!(charges == Charges { count: 20, euros: 20 * AMOUNT }, "{charges:?}");
    Ok(())
}

#[tokio::test]
async fn a_second_sync_on_one_folder_refuses_in_one_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till { folder: folder.path() };
    let bank = Bank::start(folder.path()).await?;
    bank.faults(json!([{"at": "received", "do": "hang"}])).await?;
    till.done("pay", &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"]).await?;
    let mut first = till.start("sync-first", &["sync", "--until-settled"], Some(&bank))?;
    until("the first one is at it", STEP_LIMIT, async || Ok((bank.hits().await? > 0).then_some(()))).await?;

    let mut second = till.start("sync-second", &["sync", "--until-settled"], Some(&bank))?;
    let status = second.ended(STEP_LIMIT).await?;
    ensure!(status.code() == Some(1), "{status}");
    let said = second.said()?;
    ensure!(said.trim().lines().count() == 1, "one line, not: {said}");
    ensure!(second.printed()?.is_empty(), "nothing on stdout");

    // What only reads is not refused.
    ensure!(till.operations("operations").await?.len() == 1);

    bank.no_faults().await?;
    let status = first.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "the first one is none the worse: {status}, {}", first.said()?);
    ensure!(bank.charges().await? == Charges { count: 1, euros: AMOUNT });
    Ok(())
}

/// `kassa-till` on a data folder of its own.
struct Till<'a> {
    folder: &'a Path,
}

impl Till<'_> {
    fn start(&self, name: &str, arguments: &[&str], bank: Option<&Bank>) -> Result<Process> {
        let mut command = Command::new(programs::till()?);
        command.env_remove("KASSA_BANK_URL").env_remove("KASSA_BANK_TOKEN").arg("--data").arg(self.folder.join("till"));
        if let Some(bank) = bank {
            command.args(["--bank-url", &bank.url, "--bank-token", SECRET]);
        }
        Process::start(name, command.args(arguments), self.folder)
    }

    /// Runs a command to its good end and gives the JSON lines that it printed.
    async fn done(&self, name: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        let mut process = self.start(name, arguments, None)?;
        let status = process.ended(STEP_LIMIT).await?;
        ensure!(status.success(), "{name}: {status}: {}", process.said()?);
        process.printed()?.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    async fn operations(&self, name: &str) -> Result<Vec<Value>> {
        self.done(name, &["operations", "--json"]).await
    }
}
