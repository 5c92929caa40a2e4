//! From `kill -9` to the first request under the killed one's key: real processes, a bank that keeps its answers back.

use crate::{bank::SECRET, stage::Stage, stub_bank::StubBank};
use anyhow::{Context, Result, bail, ensure};
use protocol::Key;
use std::{
    collections::HashSet,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::{Child, Command};

/// Payments that are saved for each round: as many as may be in flight.
const IN_FLIGHT: usize = 4;
/// How long anything may take before the run counts as stuck.
const STUCK: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// The till's command line over a folder.
pub(crate) fn till(stage: &Stage, dir: &Path) -> Result<Command> {
    let mut command = stage.kassa("kassa-till")?;
    let errors = std::fs::File::options().create(true).append(true).open(stage.folder().join("till.err"))?;
    command.arg("--data").arg(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).kill_on_drop(true);
    Ok(command)
}

/// Saves so many payments.
pub(crate) async fn pay(stage: &Stage, dir: &Path, times: usize) -> Result<()> {
    let mut command = till(stage, dir)?;
    command.args(["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa", "--times", &times.to_string()]);
    let status = command.status().await?;
    ensure!(status.success(), "`kassa-till pay` ended with {status}");
    Ok(())
}

/// Starts to settle with that bank.
pub(crate) fn sync(stage: &Stage, dir: &Path, url: &str, until_settled: bool) -> Result<Child> {
    let mut command = till(stage, dir)?;
    command.arg("sync").env("KASSA_BANK_URL", url).env("KASSA_BANK_TOKEN", SECRET);
    if until_settled {
        command.args(["--until-settled", "--timeout", "10m"]);
    }
    Ok(command.spawn()?)
}

/// Waits for the end of one that was to settle everything.
pub(crate) async fn settled(mut child: Child) -> Result<()> {
    let status =
        tokio::time::timeout(Duration::from_secs(600), child.wait()).await.context("`sync` does not end")??;
    ensure!(status.success(), "`kassa-till sync` ended with {status}");
    Ok(())
}

/// Kills a till in flight so many times, and gives how long it took each time until the first request came again.
pub(crate) async fn rounds(stage: &Stage, dir: &Path, rounds: usize) -> Result<Vec<Duration>> {
    let bank = StubBank::start(Duration::ZERO).await?;
    // What others left open would go first.
    settled(sync(stage, dir, &bank.url, true)?).await?;
    let mut took = Vec::with_capacity(rounds);
    for round in 0..rounds {
        took.push(one(stage, dir, &bank).await.with_context(|| format!("round {} of the kills", round + 1))?);
    }
    Ok(took)
}

async fn one(stage: &Stage, dir: &Path, bank: &StubBank) -> Result<Duration> {
    pay(stage, dir, IN_FLIGHT).await?;
    bank.forget();
    bank.hold(true);
    let mut first = sync(stage, dir, &bank.url, false)?;
    wait(&mut first, || bank.seen().len() == IN_FLIGHT).await?;
    let in_flight: HashSet<Key> = bank.seen().into_keys().collect();
    let killed = Instant::now();
    first.start_kill()?;
    let status = first.wait().await?;
    ensure!(status.code().is_none(), "it ended by itself with {status}");
    bank.forget();
    let mut second = sync(stage, dir, &bank.url, true)?;
    wait(&mut second, || !bank.seen().is_empty()).await?;
    let again = bank.seen().into_iter().flat_map(|(key, seen)| seen.asked.into_iter().map(move |at| (at, key)));
    let (at, key) = again.min_by_key(|(at, _)| *at).context("nothing was asked for")?;
    ensure!(in_flight.contains(&key), "a key that was not in flight came first");
    bank.hold(false);
    settled(second).await?;
    let seen = bank.seen();
    ensure!(in_flight.iter().all(|key| seen.contains_key(key)), "not every key in flight came again");
    Ok(at - killed)
}

/// Waits for a condition while the process runs.
async fn wait(child: &mut Child, condition: impl Fn() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !condition() {
        if let Some(status) = child.try_wait()? {
            bail!("`kassa-till sync` ended with {status}");
        }
        ensure!(begin.elapsed() < STUCK, "nothing happens");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// What became of jobs whose process was killed in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Survived {
    /// Jobs that were told as saved.
    pub(crate) saved: u64,
    /// Keys that were answered before the kill.
    pub(crate) before: u64,
    /// Of the saved ones, those that were never answered within the time.
    pub(crate) missing: u64,
    /// Keys that were asked for more than once.
    pub(crate) twice: u64,
    /// How long it took after the restart until nothing was missing; none where something is.
    pub(crate) took: Option<Duration>,
}

/// Saves so many payments, kills the till when half of them are answered, and starts it again.
pub(crate) async fn survive(stage: &mut Stage, payments: usize) -> Result<Survived> {
    let dir = stage.place()?;
    let bank = StubBank::start(Duration::from_millis(5)).await?;
    pay(stage, &dir, payments).await?;
    let mut first = sync(stage, &dir, &bank.url, false)?;
    let answered = || bank.seen().values().filter(|seen| seen.answered > 0).count();
    wait(&mut first, || answered() >= payments / 2).await?;
    first.start_kill()?;
    first.wait().await?;
    let before = answered() as u64;
    let begin = Instant::now();
    settled(sync(stage, &dir, &bank.url, true)?).await?;
    let took = begin.elapsed();
    let seen = bank.seen();
    std::fs::remove_dir_all(dir)?;
    Ok(Survived {
        saved: payments as u64,
        before,
        missing: (payments - answered()) as u64,
        twice: seen.values().filter(|seen| seen.asked.len() > 1).count() as u64,
        took: (answered() == payments).then_some(took),
    })
}
