//! Two job queues over SQLite, each a program of its own because its SQLite can't be linked beside ours: how long it takes to save a
//! job, how quickly ten thousand are run, and what is left of them by a kill.

use crate::{
    bank::SECRET,
    drain::Way,
    kill::{self, Survived},
    queue,
    stage::Stage,
    stub_bank::StubBank,
};
use anyhow::{Context, Result, bail, ensure};
use measure::{latency::Latencies, machine::Disk, process::Process, ready::Setting};
use protocol::Key;
use serde::Deserialize;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use store::{Priority, Store};
use tokio::process::Command;

/// A job queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Effectum,
    Apalis,
}

impl Peer {
    const fn program(self) -> &'static str {
        match self {
            Self::Effectum => "effectum-peer",
            Self::Apalis => "apalis-sqlite-peer",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Effectum => "effectum",
            Self::Apalis => "apalis-sqlite",
        }
    }
}

/// Who saves jobs and runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    /// Ours.
    Outbox,
    /// A job queue, as it is or with WAL and FULL forced on it.
    Queue { peer: Peer, forced: bool },
}

impl Contender {
    pub(crate) const ALL: [Self; 5] = [
        Self::Outbox,
        Self::Queue { peer: Peer::Effectum, forced: false },
        Self::Queue { peer: Peer::Effectum, forced: true },
        Self::Queue { peer: Peer::Apalis, forced: false },
        Self::Queue { peer: Peer::Apalis, forced: true },
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Outbox => "outbox".to_owned(),
            Self::Queue { peer, forced: false } => format!("{}, as it is", peer.name()),
            Self::Queue { peer, forced: true } => format!("{}, WAL and FULL forced", peer.name()),
        }
    }

    /// Fails where it is a program that was not built.
    pub(crate) fn check_built(self, stage: &Stage) -> Result<()> {
        match self {
            Self::Outbox => Ok(()),
            Self::Queue { peer, .. } => stage.program(peer.program()).map(|_| ()),
        }
    }

    /// Saves so many jobs one by one.
    pub(crate) async fn saving(self, stage: &mut Stage, jobs: u64) -> Result<Saving> {
        match self {
            Self::Outbox => ours(stage, jobs).await,
            Self::Queue { peer, forced } => saving(stage, Program { peer, forced }, jobs).await,
        }
    }

    /// Runs so many saved jobs, each a payment at a fresh bank, and gives how long it took.
    pub(crate) async fn drain(self, stage: &mut Stage, jobs: u64) -> Result<Duration> {
        match self {
            Self::Outbox => Way::Outbox.drain(stage, jobs).await,
            Self::Queue { peer, forced } => drain(stage, Program { peer, forced }, jobs).await,
        }
    }

    /// Saves jobs, kills whoever runs them in the middle, starts it again, and waits that long for what is missing.
    pub(crate) async fn survive(self, stage: &mut Stage, jobs: u64, patience: Duration) -> Result<Survived> {
        match self {
            Self::Outbox => {
                let survived = kill::survive(stage, usize::try_from(jobs)?).await?;
                ensure!(survived.missing == 0, "the outbox lost something by a kill: {survived:?}");
                Ok(survived)
            }
            Self::Queue { peer, forced } => survive(stage, Program { peer, forced }, jobs, patience).await,
        }
    }
}

/// A job queue's program, and how it is started.
#[derive(Debug, Clone, Copy)]
struct Program {
    peer: Peer,
    forced: bool,
}

impl Program {
    fn command(self, stage: &Stage, what: &str, file: &Path, count: u64) -> Result<Command> {
        let mut command = stage.program(self.peer.program())?;
        if self.forced {
            command.arg("--forced");
        }
        command.arg(what).arg(file).arg(count.to_string());
        Ok(command)
    }

    /// Fails where WAL and FULL were to be forced, and it says otherwise of itself.
    fn check_forced(self, said: &Said) -> Result<()> {
        if self.forced {
            for (name, wanted) in [("journal_mode", "wal"), ("synchronous", "2")] {
                let is = said.settings.iter().find(|setting| setting.name == name).map(|setting| &setting.value);
                ensure!(is.is_some_and(|is| is == wanted), "{name} is {is:?}, and {wanted} was forced");
            }
        }
        Ok(())
    }
}

/// What a peer says.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Latency { version: String, settings: Vec<Setting>, latencies_us: Vec<u64> },
    Drained { version: String, settings: Vec<Setting>, seconds: f64 },
    Saved { key: Key },
    Done,
}

/// How a queue says that it is set, and which one it is.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) version: String,
    pub(crate) settings: Vec<Setting>,
}

impl Said {
    /// Puts what it said another time to this: a setting that was another one then is named beside the first.
    fn add(&mut self, other: &Self) {
        for (setting, then) in self.settings.iter_mut().zip(&other.settings) {
            if !setting.value.split(", then ").any(|value| value == then.value) {
                setting.value = format!("{}, then {}", setting.value, then.value);
            }
        }
    }
}

/// How long it took to save jobs one by one.
#[derive(Debug, Clone)]
pub(crate) struct Saving {
    pub(crate) latencies: Latencies,
    /// Flushes of the disk's cache meanwhile, where the disk counts them: what is synced shows here, whatever is set.
    pub(crate) flushes: Option<u64>,
    pub(crate) said: Said,
}

impl Saving {
    /// Flushes for each that was saved.
    pub(crate) fn flushes_each(&self) -> Option<f64> {
        Some(self.flushes? as f64 / self.latencies.count().max(1) as f64)
    }

    /// Puts that of another round to this.
    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.flushes = self.flushes.zip(other.flushes).map(|(all, more)| all + more);
        self.said.add(&other.said);
        Ok(())
    }
}

/// What a peer's process says next.
async fn event(process: &mut Process) -> Result<Event> {
    match process.line().await? {
        Some(line) => serde_json::from_str(&line).with_context(|| format!("a peer says something else: {line}")),
        None => bail!("a peer ended without a word: {}", process.complaints()),
    }
}

/// Saves so many jobs one by one.
async fn saving(stage: &mut Stage, program: Program, jobs: u64) -> Result<Saving> {
    let place = stage.place()?;
    let disk = Disk::of(&place)?;
    let mut command = program.command(stage, "latency", &place.join("jobs.db"), jobs)?;
    let before = disk.flushes();
    let mut process = Process::start("peer", &mut command, stage.folder())?;
    let Event::Latency { version, settings, latencies_us } = event(&mut process).await? else {
        bail!("a peer says something else");
    };
    let flushes = disk.flushes().zip(before).map(|(after, before)| after - before);
    process.succeeded().await?;
    ensure!(latencies_us.len() as u64 == jobs, "{} latencies of {jobs} jobs", latencies_us.len());
    let mut latencies = Latencies::new()?;
    for us in latencies_us {
        latencies.record(Duration::from_micros(us))?;
    }
    let said = Said { version, settings };
    program.check_forced(&said)?;
    fs::remove_dir_all(place)?;
    Ok(Saving { latencies, flushes, said })
}

/// Has the outbox save as many operations one by one.
async fn ours(stage: &mut Stage, operations: u64) -> Result<Saving> {
    let place = stage.place()?;
    let disk = Disk::of(&place)?;
    let store = Store::open(&place.join("outbox.db"), &queue::schema())?;
    let mut settings = queue::settings(&store).await?;
    settings.push(Setting::read("version", rusqlite::version().to_owned(), None)?);
    let saving = store.clone();
    let before = disk.flushes();
    let saved = tokio::spawn(async move {
        let mut latencies = Latencies::new()?;
        for _ in 0..operations {
            let order = queue::order()?;
            let begin = Instant::now();
            saving.write(Priority::Click, move |tx| queue::save(tx, &order)).await?;
            latencies.record(begin.elapsed())?;
        }
        anyhow::Ok(latencies)
    });
    let latencies = saved.await??;
    let flushes = disk.flushes().zip(before).map(|(after, before)| after - before);
    drop(store);
    fs::remove_dir_all(place)?;
    Ok(Saving { latencies, flushes, said: Said { version: "outbox".to_owned(), settings } })
}

/// Runs so many saved jobs, each a payment at a fresh bank, and gives how long it took.
async fn drain(stage: &mut Stage, program: Program, jobs: u64) -> Result<Duration> {
    let place = stage.place()?;
    let bank = stage.fresh_bank().await?;
    let mut command = program.command(stage, "drain", &place.join("jobs.db"), jobs)?;
    command.args([bank.url.as_str(), SECRET]);
    let mut process = Process::start("peer", &mut command, stage.folder())?;
    let Event::Drained { version, settings, seconds } = event(&mut process).await? else {
        bail!("a peer says something else");
    };
    process.succeeded().await?;
    let ledger = stage.ledger().await?;
    ensure!(ledger.distinct_keys == jobs, "{jobs} jobs were run, and the gateway counts {ledger:?}");
    bank.clear().await?;
    program.check_forced(&Said { version, settings })?;
    fs::remove_dir_all(place)?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Saves jobs while they are run, kills the process in the middle, starts it again, and waits that long for what is missing.
async fn survive(stage: &mut Stage, program: Program, jobs: u64, patience: Duration) -> Result<Survived> {
    let place = stage.place()?;
    let file = place.join("jobs.db");
    let bank = StubBank::start(Duration::from_millis(5)).await?;
    let work = |stage: &Stage, count: u64| {
        let mut command = program.command(stage, "work", &file, count)?;
        command.args([bank.url.as_str(), SECRET]);
        Process::start("peer", &mut command, stage.folder())
    };
    let answered = || bank.seen().values().filter(|seen| seen.answered > 0).count() as u64;
    let mut first = work(stage, jobs)?;
    let mut saved = Vec::new();
    let begin = Instant::now();
    while answered() < jobs / 2 {
        ensure!(begin.elapsed() < Duration::from_secs(60), "only {} jobs were run", answered());
        // Its lines are read as they come: who has to wait for its reader saves nothing meanwhile.
        match tokio::time::timeout(Duration::from_millis(1), event(&mut first)).await {
            Ok(Ok(Event::Saved { key })) => saved.push(key),
            Ok(Ok(Event::Done)) => bail!("all was done before the kill"),
            Ok(Ok(_)) => bail!("a peer says something else"),
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
    }
    first.signal("KILL")?;
    // What it said before counts, to its last whole line.
    while let Some(line) = first.line().await? {
        if let Ok(Event::Saved { key }) = serde_json::from_str(&line) {
            saved.push(key);
        }
    }
    first.kill().await?;
    let before = answered();
    let begin = Instant::now();
    let second = work(stage, 0)?;
    let missing = || {
        let seen = bank.seen();
        saved.iter().filter(|key| seen.get(key).is_none_or(|seen| seen.answered == 0)).count() as u64
    };
    while missing() > 0 && begin.elapsed() < patience {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = begin.elapsed();
    second.kill().await?;
    let missing = missing();
    let twice = bank.seen().values().filter(|seen| seen.asked.len() > 1).count() as u64;
    fs::remove_dir_all(place)?;
    let saved = saved.len() as u64;
    Ok(Survived { saved, before, missing, twice, took: (missing == 0).then_some(took) })
}
