//! From the click to the durable answer, beside a raw commit of the same rows on a twin of the file, one by one in turn.

use crate::{
    bank::SECRET,
    drain::{self, Draining},
    fill::{self, Name, Operation, Patterns},
    queue::{self, EnqueueError},
    raw,
    stage::Stage,
};
use anyhow::{Result, ensure};
use jiff::Timestamp;
use measure::{latency::Latencies, ready::Setting};
use rusqlite::Connection;
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use store::{Priority, Store, Work};

/// Between two clicks while the queue drains: more often than any cashier, and still a small share of the work.
const PACE: Duration = Duration::from_millis(5);

/// Where the time of a click or of a raw commit went.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// From the call to the writer's turn, the begin of its transaction included.
    pub(crate) turn: Latencies,
    /// The statements that look and write.
    pub(crate) rows: Latencies,
    /// COMMIT, and the way back to the caller.
    pub(crate) rest: Latencies,
}

impl Parts {
    fn new() -> Result<Self> {
        Ok(Self { turn: Latencies::new()?, rows: Latencies::new()?, rest: Latencies::new()? })
    }

    fn record(&mut self, [called, turn, written, done]: [Instant; 4]) -> Result<()> {
        self.turn.record(turn - called)?;
        self.rows.record(written - turn)?;
        self.rest.record(done - written)
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.turn.add(&other.turn)?;
        self.rows.add(&other.rows)?;
        self.rest.add(&other.rest)
    }
}

/// What was seen of clicks and raw commits.
#[derive(Debug, Clone)]
pub(crate) struct Clicks {
    pub(crate) ours: Latencies,
    pub(crate) raw: Latencies,
    /// Ours and the raw one's; nothing where the whole till was clicked on.
    pub(crate) parts: [Parts; 2],
    /// For each click, how many commits were finished between it and its own turn: the batch that was running, and no more.
    pub(crate) waited_for: Vec<u64>,
    /// COMMITs of the writer, and the time that they took.
    pub(crate) commits: u64,
    pub(crate) commit_time: Duration,
}

impl Clicks {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            ours: Latencies::new()?,
            raw: Latencies::new()?,
            parts: [Parts::new()?, Parts::new()?],
            waited_for: Vec::new(),
            commits: 0,
            commit_time: Duration::ZERO,
        })
    }

    /// Puts those of another round to these.
    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        self.ours.add(&other.ours)?;
        self.raw.add(&other.raw)?;
        for (parts, others) in self.parts.iter_mut().zip(&other.parts) {
            parts.add(others)?;
        }
        self.waited_for.extend_from_slice(&other.waited_for);
        self.commits += other.commits;
        self.commit_time += other.commit_time;
        Ok(())
    }

    /// Takes what the writer did between two looks.
    fn worked(&mut self, before: Work, after: Work) {
        (self.commits, self.commit_time) = (after.commits - before.commits, after.commit_time - before.commit_time);
    }

    /// The mean COMMIT of the writer, in milliseconds.
    pub(crate) fn commit_ms(&self) -> f64 {
        self.commit_time.as_secs_f64() * 1e3 / (self.commits.max(1)) as f64
    }

    /// Of how many commits this share of the clicks did not wait for more.
    pub(crate) fn waited_for(&self, share: f64) -> f64 {
        let mut sorted = self.waited_for.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(place.saturating_sub(1)).map_or(0.0, |waited| *waited as f64)
    }
}

/// A file with its twin, and who clicks on both.
pub(crate) struct Clicker {
    store: Store,
    raw: Connection,
    pattern: Operation,
    /// Operations that were saved and not settled yet.
    unsettled: u64,
    /// Those that were settled by the bank since the file was made.
    settled: u64,
    filled: u64,
    place: PathBuf,
    path: PathBuf,
    twin: PathBuf,
}

impl Clicker {
    /// Makes the files with that many operations in them.
    pub(crate) fn make(stage: &mut Stage, patterns: &Patterns, operations: u64) -> Result<Self> {
        let place = stage.place()?;
        let path = place.join("outbox.db");
        fill::file(&path, patterns, operations, &stage.end)?;
        let twin = fill::twin(&path)?;
        let store = Store::open(&path, &queue::schema())?;
        let (raw, _) = raw::open(&twin)?;
        let unsettled = if operations == 0 { 0 } else { fill::OPEN };
        let pattern = patterns.open.clone();
        Ok(Self { store, raw, pattern, unsettled, settled: 0, filled: operations, place, path, twin })
    }

    /// How large the file is.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(fs::metadata(&self.path)?.len())
    }

    /// How both connections say that they are set.
    pub(crate) async fn settings(&self) -> Result<[Vec<Setting>; 2]> {
        let ours = queue::settings(&self.store).await?;
        let raw = ours.iter().map(|Setting { name, .. }| Setting::read(name, raw::text(&self.raw, name)?, None));
        let raw = raw.collect::<Result<Vec<_>>>()?;
        Ok([ours, raw])
    }

    /// Clicks with nothing else going on: one on each of the files in turn, so that what is slow for a while is so for all of them.
    pub(crate) async fn alone(mut clickers: Vec<Self>, pairs: u64) -> Result<Vec<(Self, Clicks)>> {
        // In a task, as commands of the window and of the command line are.
        let clicking = async move {
            let rows = clickers.iter().map(Self::rows).collect::<Result<Vec<_>>>()?;
            let before: Vec<_> = clickers.iter().map(|clicker| clicker.store.work()).collect();
            let mut seen = clickers.iter().map(|_| Clicks::new()).collect::<Result<Vec<_>>>()?;
            for _ in 0..pairs {
                for (clicker, clicks) in clickers.iter_mut().zip(&mut seen) {
                    clicker.pair(clicks).await?;
                }
            }
            for ((clicker, before), clicks) in clickers.iter().zip(before).zip(&mut seen) {
                clicks.worked(before, clicker.store.work());
            }
            for (clicker, before) in clickers.iter().zip(rows) {
                clicker.check_pairs(before, pairs)?;
            }
            anyhow::Ok(clickers.into_iter().zip(seen).collect())
        };
        tokio::spawn(clicking).await?
    }

    /// Rows of operations and of the log of attempts, in the file and in its twin.
    fn rows(&self) -> Result<[[u64; 2]; 2]> {
        let file = Connection::open(&self.path)?;
        let rows = |db: &Connection| anyhow::Ok([rows(db, "operations")?, rows(db, "attempts")?]);
        Ok([rows(&file)?, rows(&self.raw)?])
    }

    /// Fails unless each click and each raw commit made the same rows: an operation, and a line of the log.
    fn check_pairs(&self, before: [[u64; 2]; 2], pairs: u64) -> Result<()> {
        let after = self.rows()?;
        let wanted = before.map(|rows| rows.map(|count| count + pairs));
        ensure!(
            after == wanted,
            "{pairs} clicks and raw commits made {after:?} operations and log lines of {before:?}"
        );
        Ok(())
    }

    /// Clicks while a backlog drains, at a real bank.
    pub(crate) async fn draining(mut self, stage: &mut Stage, backlog: u64) -> Result<(Self, Clicks)> {
        drain::save(&self.store, backlog).await?;
        fill::in_batches(&self.raw, backlog, &stage.end, |_| {
            self.pattern.insert(&self.raw, &self.pattern.copy(&Name::new(Timestamp::now())))
        })?;
        self.unsettled += backlog;
        let last = queue::last_seq(&Connection::open(&self.path)?)?;
        let bank = stage.fresh_bank().await?;
        let transport = queue::http(&bank.url, SECRET)?;
        let clicking = async move {
            let mut clicks = Clicks::new()?;
            let mut draining = Draining::start(&self.store, transport)?;
            let before = self.store.work();
            while draining.is_open(last)? {
                self.pair(&mut clicks).await?;
                tokio::time::sleep(PACE).await;
            }
            clicks.worked(before, self.store.work());
            draining.settled().await?;
            draining.end().await?;
            anyhow::Ok((self, clicks))
        };
        let (mut clicker, clicks) = tokio::spawn(clicking).await??;
        stage.check_charges(clicker.unsettled).await?;
        clicker.settled += std::mem::take(&mut clicker.unsettled);
        let approved = drain::approved(&clicker.path)?;
        ensure!(approved == clicker.filled + clicker.settled, "{approved} operations are approved");
        bank.clear().await?;
        Ok((clicker, clicks))
    }

    /// A click, and a raw commit of the same rows on the twin.
    async fn pair(&mut self, clicks: &mut Clicks) -> Result<()> {
        let (order, counting) = (queue::order()?, self.store.clone());
        let before = self.store.work().commits;
        let begin = Instant::now();
        let saved = self.store.write(Priority::Click, move |tx| {
            let (turn, commits) = (Instant::now(), counting.work().commits);
            queue::save(tx, &order)?;
            Ok::<_, EnqueueError>((commits, turn, Instant::now()))
        });
        let (commits, turn, written) = saved.await?;
        let done = Instant::now();
        clicks.ours.record(done - begin)?;
        clicks.parts[0].record([begin, turn, written, done])?;
        clicks.waited_for.push(commits - before);
        self.unsettled += 1;
        let rows = self.pattern.copy(&Name::new(Timestamp::now()));
        let begin = Instant::now();
        let (turn, written) = raw::commit(&self.raw, |db| {
            let turn = Instant::now();
            self.pattern.insert(db, &rows)?;
            Ok((turn, Instant::now()))
        })?;
        let done = Instant::now();
        clicks.raw.record(done - begin)?;
        clicks.parts[1].record([begin, turn, written, done])
    }

    /// Removes both files, and fails unless they hold as many rows.
    pub(crate) fn check(self) -> Result<()> {
        let Self { store, raw, path, twin, place, .. } = self;
        drop((store, raw));
        same_rows(&path, &twin, &["operations"])?;
        Ok(fs::remove_dir_all(place)?)
    }
}

/// How many rows a table has.
fn rows(db: &Connection, table: &str) -> Result<u64> {
    let count: i64 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    Ok(u64::try_from(count)?)
}

/// Fails unless these tables hold as many rows in one file as in the other.
pub(crate) fn same_rows(path: &Path, twin: &Path, tables: &[&str]) -> Result<()> {
    let (ours, raw) = (Connection::open(path)?, Connection::open(twin)?);
    for table in tables {
        let (ours, raw) = (rows(&ours, table)?, rows(&raw, table)?);
        ensure!(ours == raw, "{table} holds {ours} rows, and {raw} in the raw file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_share_of_the_clicks_waited_for() {
        let mut clicks = Clicks::new().unwrap();
        clicks.waited_for = [vec![0; 98], vec![1, 3]].concat();
        assert_eq!([0.5, 0.98, 0.99, 1.0].map(|share| clicks.waited_for(share)), [0.0, 0.0, 1.0, 3.0]);
    }
}
