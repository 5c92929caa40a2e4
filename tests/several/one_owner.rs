//! Many starts at once: one owns the folder, and the others say so and end.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    AMOUNT, LIMIT, PAY, SYNC,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        process::Process,
        till::Till,
        until,
    },
};

const PROCESSES: usize = 8;
const CLICKS: usize = 12;
/// Rounds of clicks at once: the first on a folder that is not there yet.
const ROUNDS: usize = 5;

/// Ended with exit code 1 and one line that says who has the folder.
fn is_turned_away(process: &Process, code: Option<i32>) -> Result<()> {
    let said = process.said()?;
    ensure!(code == Some(1) && said.lines().count() == 1 && said.contains("in use by another process"), "{said}");
    ensure!(process.printed()?.is_empty(), "it printed {}", process.printed()?);
    Ok(())
}

#[tokio::test]
async fn of_eight_that_settle_at_once_one_works_and_seven_end_with_a_line() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let told = till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    // Whoever has it goes on until all have tried.
    bank.faults(json!([{"at": "received", "do": "hang"}])).await?;
    let started = (0..PROCESSES).map(|number| till.start(&format!("sync-{number}"), SYNC, Some(&bank.url)));
    let mut running: Vec<_> = started.collect::<Result<_>>()?;
    let mut turned_away = 0;
    until("all but one have ended", LIMIT, async || {
        let mut going_on = Vec::new();
        for mut process in running.drain(..) {
            match process.has_ended()? {
                Some(status) => {
                    is_turned_away(&process, status.code())?;
                    turned_away += 1;
                }
                None => going_on.push(process),
            }
        }
        running = going_on;
        Ok((running.len() <= 1).then_some(()))
    })
    .await?;
    ensure!(turned_away == PROCESSES - 1, "{turned_away} of {PROCESSES} were turned away");
    // Who only looks is not turned away.
    ensure!(till.operations().await?.len() == CLICKS, "not all are shown");
    bank.no_faults().await?;
    let mut owner = running.pop().context("nobody works")?;
    let status = owner.ended(LIMIT).await?;
    ensure!(status.success(), "{status}: {}", owner.said()?);
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(CLICKS));
    Ok(())
}

#[tokio::test]
async fn of_eight_clicks_at_once_each_is_saved_whole_or_says_that_the_folder_is_in_use() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let (mut told, mut refused) = (BTreeSet::new(), 0);
    for round in 0..ROUNDS {
        let intents: Vec<_> = (0..PROCESSES).map(|number| format!("click {round}.{number}")).collect();
        let started = intents.iter().map(|intent| till.start(intent, &[PAY, &["--intent", intent]].concat(), None));
        let mut running: Vec<_> = started.collect::<Result<_>>()?;
        let mut saved = 0;
        for process in &mut running {
            let status = process.ended(LIMIT).await?;
            if status.success() {
                saved += 1;
                told.insert(key_of(process)?);
            } else {
                is_turned_away(process, status.code())?;
                refused += 1;
            }
        }
        ensure!(saved > 0, "nobody was let in");
        ensure!(kept(&till).await? == told, "what is kept is what was told");
        // Who was turned away comes again, and who was not gets the same.
        for intent in &intents {
            let mut again = till.start("again", &[PAY, &["--intent", intent]].concat(), None)?;
            let status = again.ended(LIMIT).await?;
            ensure!(status.success(), "{status}: {}", again.said()?);
            told.insert(key_of(&again)?);
        }
        ensure!(
            told.len() == (round + 1) * PROCESSES,
            "{} operations of {} clicks",
            told.len(),
            (round + 1) * PROCESSES
        );
    }
    println!("{refused} of {} clicks found the folder in use", ROUNDS * PROCESSES);
    ensure!(refused > 0, "no two were at it at once");
    let bank = Bank::start(folder.path()).await?;
    let mut sync = till.start("sync", SYNC, Some(&bank.url))?;
    ensure!(sync.ended(LIMIT).await?.success(), "{}", sync.said()?);
    let told: Vec<_> = told.into_iter().collect();
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(told.len()));
    Ok(())
}

/// The key in the one line that was printed.
fn key_of(process: &Process) -> Result<String> {
    let printed = process.printed()?;
    let line: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
    Ok(line["key"].as_str().context("no key")?.to_owned())
}

async fn kept(till: &Till) -> Result<BTreeSet<String>> {
    let listed = till.operations().await?;
    Ok(listed.iter().filter_map(|operation| operation["key"].as_str()).map(str::to_owned).collect())
}

#[tokio::test]
async fn who_only_reads_is_never_in_the_way() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let told = till.pay(40, AMOUNT, "tok_visa").await?;
    bank.faults(json!([{"at": "received", "do": "delay", "ms": 100}])).await?;
    let mut sync = till.start("sync", SYNC, Some(&bank.url))?;
    let (mut looks, mut seen_at_work) = (0, 0);
    let status = loop {
        let listed = till.operations().await?;
        ensure!(listed.len() == told.len(), "{} of {} are shown", listed.len(), told.len());
        let final_ones = listed.iter().filter(|operation| operation["state"] == "approved").count();
        seen_at_work += u32::from((1..told.len()).contains(&final_ones));
        ensure!(!till.log(&told[looks % told.len()]).await?.is_empty(), "no log");
        looks += 1;
        if let Some(status) = sync.has_ended()? {
            break status;
        }
    };
    ensure!(status.success(), "{status}: {}", sync.said()?);
    println!("{looks} looks, {seen_at_work} of them at a queue that was half settled");
    ensure!(seen_at_work >= 3, "{seen_at_work} looks met it at work");
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(told.len()));
    Ok(())
}
