//! The run: what is checked and measured, in which order, and what becomes of the figures.

mod area;
mod cluster;
mod guarantee;
mod measuring;
mod prefill;
mod profile;
mod report;
mod rows;
mod soak;
mod stage;
mod target;

use crate::{contender::Fault, wire::Keys};
use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use guarantee::Broken;
use measure::{document, machine, table};
use measuring::{Load, Sample};
use report::{Cell, Figures};
use stage::{Contender, Place, Stage};
use std::{path::PathBuf, time::Instant};
use target::Target;

/// The name of the generated part with the tables.
const TABLES: &str = "bench bank";
/// The name of the generated part about memory and file size.
const SOAK: &str = "bench bank --soak";
/// The name of the generated part about where the time goes.
const PROFILE: &str = "bench bank --profile";
/// The name of the generated part about what was to be reached.
const TARGETS: &str = "bench bank targets";
/// The warm-up as a share of the time that is measured.
const WARM_UP: f64 = 2.0 / 3.0;
/// Connections at which PostgreSQL is measured with settings raised.
const RAISED_CONNECTIONS: usize = 64;
/// Connections at which replay is measured.
const REPLAY_CONNECTIONS: usize = 64;
/// Keys that are replayed.
const REPLAY_KEYS: u64 = 5_000;
/// Connections at which the size of the store is measured.
const SIZE_CONNECTIONS: [usize; 2] = [16, 64];
/// Keys in the store before a measurement.
const SIZES: [u64; 3] = [0, 100_000, 1_000_000];

/// Compares Kassa's bank with other ways of building one: checks that each keeps the promise, then measures them in turn, all against
/// the same stub gateway and over the same HTTP, and writes the tables into docs/PERFORMANCE.md. Takes about thirteen minutes.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds of each measurement, after a warm-up of two thirds of it; half for the ceiling, known keys and full stores
    #[arg(long, value_name = "N", default_value_t = 6.0)]
    seconds: f64,
    /// Connections to measure at
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1, 16, 64, 256])]
    connections: Vec<usize>,
    /// Rounds; the middle one counts, figure by figure, but latencies are those of all rounds together
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Only these parts; writes nothing
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Only these contenders; writes nothing
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    contenders: Vec<Contender>,
    /// One short round, to see that all of it works; writes nothing
    #[arg(long, conflicts_with_all = ["rounds", "seconds"])]
    quick: bool,
    /// In place of the comparison: so many payments against one bank, to see whether its memory stays flat, and what a payment
    /// takes on the disk
    #[arg(long, value_name = "PAYMENTS", conflicts_with_all = ["only", "contenders", "quick"])]
    soak: Option<u64>,
    /// In place of the comparison: where the processor time of Kassa's bank goes at that many connections, by `perf`
    #[arg(long, value_name = "CONNECTIONS", conflicts_with_all = ["only", "contenders", "quick", "soak"])]
    profile: Option<usize>,
    /// Where all files are made, on the disk to measure; they are removed at the end
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The document to write to
    #[arg(long, value_name = "FILE", default_value = "docs/PERFORMANCE.md")]
    document: PathBuf,
    /// Break a promise of the contenders but Kassa on purpose, to see that the check notices
    #[arg(long, value_enum, value_name = "FAULT", hide = true)]
    broken: Option<Fault>,
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whether each contender keeps the promise
    Check,
    /// New payments at each number of connections
    Pay,
    /// Known keys
    Replay,
    /// New payments with many keys in the store
    Size,
}

/// Runs what the options ask for. Whatever was started and made is gone at the end, also where it fails or is told to end.
pub(crate) fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // Dropping the run ends the processes and removes the files.
        tokio::select! {
            done = Run::all(options) => done,
            _ = term.recv() => bail!("told to end"),
            _ = int.recv() => bail!("told to end"),
        }
    })
}

struct Run {
    options: Options,
    stage: Stage,
    start: Instant,
    figures: Figures,
}

impl Run {
    async fn all(mut options: Options) -> Result<()> {
        if options.quick {
            (options.rounds, options.seconds) = (1, 1.0);
        }
        ensure!(options.rounds > 0 && options.seconds > 0.0, "name at least one round and some time");
        ensure!(options.connections.iter().all(|count| (1..=2_048).contains(count)), "name 1 to 2,048 connections");
        if options.profile.is_some() {
            profile::check().await?;
        }
        let folder = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let alone = options.soak.is_some() || options.profile.is_some();
        let with_postgres =
            !alone && [Contender::Postgres, Contender::Raised].iter().any(|one| wants(&options.contenders, *one));
        let stage = Stage::set_up(&folder, with_postgres).await?;
        let machine = machine::describe(stage.folder(), machine::sync_time(stage.folder())?)?;
        println!("{machine}\n");
        let mut run = Self { options, stage, start: Instant::now(), figures: Figures::new(machine) };
        match (run.options.soak, run.options.profile) {
            (Some(payments), _) => run.soak(payments).await,
            (_, Some(connections)) => run.profile(connections).await,
            _ => run.compare().await,
        }
    }

    async fn soak(&mut self, payments: u64) -> Result<()> {
        let soaked = soak::soak(&mut self.stage, payments).await?;
        let text = self.figures.under_heading(&soaked.text, &format!("--soak {payments}"));
        println!("\n{text}");
        self.write(SOAK, text, &[(Target::Memory, soaked.furthest)])
    }

    async fn profile(&mut self, connections: usize) -> Result<()> {
        let text = profile::profile(&mut self.stage, connections).await?;
        let text = self.figures.under_heading(&text, &format!("--profile {connections}"));
        println!("\n{text}");
        document::write(&self.options.document, &[(PROFILE, text)])
    }

    /// Writes a part of the document, and with it what this run knows of the targets.
    fn write(&self, name: &str, text: String, measured: &[(Target, f64)]) -> Result<()> {
        let path = &self.options.document;
        let targets = target::table(&document::read(path)?, measured);
        document::write(path, &[(name, text), (TARGETS, targets)])
    }

    async fn compare(&mut self) -> Result<()> {
        for part in [Part::Check, Part::Pay, Part::Replay, Part::Size] {
            if !wants(&self.options.only, part) {
                continue;
            }
            match part {
                Part::Check => self.check().await?,
                Part::Pay => self.pay().await?,
                Part::Replay => self.replay().await?,
                Part::Size => self.size().await?,
            }
        }
        let Options { seconds, rounds, .. } = self.options;
        let warm_up = seconds * WARM_UP;
        let how = format!("rounds: {rounds}, seconds each: {seconds} after {warm_up:.1} to warm up");
        let (text, measured) = (self.figures.text(&how, &self.stage.settings), target::measured(&self.figures));
        println!("\n{}\n{text}\n{:.0} s in all.", target::table("", &measured), self.start.elapsed().as_secs_f64());
        let options = &self.options;
        if options.only.is_empty() && options.contenders.is_empty() && !options.quick {
            self.write(TABLES, text, &measured)?;
            println!("Written to {}.", options.document.display());
        } else {
            println!("Something was left out, so {} stays as it is.", options.document.display());
        }
        Ok(())
    }

    fn say(&self, what: &str) {
        println!("[{:>4.0} s] {what}", self.start.elapsed().as_secs_f64());
    }

    fn contenders(&self) -> Vec<Contender> {
        Contender::ALL.into_iter().filter(|contender| wants(&self.options.contenders, *contender)).collect()
    }

    /// New payments. What is not to be compared with a database that warms up slowly has half the time.
    fn load(&self, connections: usize, half: bool) -> Load {
        let seconds = if half { self.options.seconds / 2.0 } else { self.options.seconds };
        Load { connections, warm_up_s: seconds * WARM_UP, seconds, keys: Keys::V7, replay: None }
    }

    async fn check(&mut self) -> Result<()> {
        for contender in self.contenders() {
            let broken = self.options.broken.filter(|_| contender != Contender::Kassa);
            let checked = guarantee::check(&mut self.stage, contender, broken).await;
            match (contender, checked) {
                (Contender::Memory, Ok(_)) => bail!("the check sees nothing: what is in memory outlives a kill"),
                (Contender::Memory, Err(error)) => match error.downcast_ref::<Broken>() {
                    Some(Broken(how)) => self.say(&format!("checked {}: forgets, as it must: {how}", contender.name())),
                    None => return Err(error),
                },
                (_, Ok(checked)) => {
                    self.say(&format!("checked {}: {checked}", contender.name()));
                    self.figures.checked(contender, checked);
                }
                (_, Err(error)) => return Err(error.context(format!("{} breaks the promise", contender.name()))),
            }
        }
        Ok(())
    }

    async fn pay(&mut self) -> Result<()> {
        for round in 0..self.options.rounds {
            for (step, connections) in self.options.connections.clone().into_iter().enumerate() {
                for contender in turned(self.contenders(), round + step) {
                    let load = self.load(connections, contender == Contender::Memory);
                    let sample = load.measure_started(&mut self.stage, contender, None).await?;
                    let cell = Cell { contender, connections };
                    self.note("pay", round, &format!("{} at {connections}", contender.name()), &sample);
                    self.figures.pay.entry(cell).or_default().push(sample)?;
                }
            }
            self.pay_raised(round).await?;
        }
        Ok(())
    }

    /// PostgreSQL once more with settings raised, beside the comparison.
    async fn pay_raised(&mut self, round: usize) -> Result<()> {
        let contender = Contender::Raised;
        if !wants(&self.options.contenders, contender) || !self.options.connections.contains(&RAISED_CONNECTIONS) {
            return Ok(());
        }
        let load = self.load(RAISED_CONNECTIONS, false);
        let sample = load.measure_started(&mut self.stage, contender, None).await?;
        self.note("pay", round, &format!("{} at {RAISED_CONNECTIONS}", contender.name()), &sample);
        self.figures.raised.push(sample)
    }

    async fn replay(&mut self) -> Result<()> {
        for round in 0..self.options.rounds.min(3) {
            let load = Load { replay: Some(REPLAY_KEYS), ..self.load(REPLAY_CONNECTIONS, true) };
            for contender in turned(self.contenders(), round) {
                let sample = load.measure_started(&mut self.stage, contender, None).await?;
                self.note("replay", round, contender.name(), &sample);
                let cell = Cell { contender, connections: REPLAY_CONNECTIONS };
                self.figures.replay.entry(cell).or_default().push(sample)?;
            }
        }
        Ok(())
    }

    async fn size(&mut self) -> Result<()> {
        if !wants(&self.options.contenders, Contender::Kassa) {
            return Ok(());
        }
        let mut places: Vec<(u64, Keys, Option<Place>)> = Vec::new();
        for keys in [Keys::V7, Keys::V4] {
            for size in SIZES {
                // At random only what tells most: nothing, and the most.
                if keys == Keys::V4 && size != SIZES[0] && size != SIZES[SIZES.len() - 1] {
                    continue;
                }
                let place = if size == 0 {
                    None
                } else {
                    let begin = Instant::now();
                    let place = prefill::filled(&mut self.stage, size, keys).await?;
                    let took = begin.elapsed().as_secs_f64();
                    self.say(&format!("filled a store with {} {keys:?} keys in {took:.1} s", table::count(size)));
                    Some(place)
                };
                places.push((size, keys, place));
            }
        }
        for round in 0..self.options.rounds.min(3) {
            for (step, connections) in SIZE_CONNECTIONS.into_iter().enumerate() {
                for (size, keys, place) in turned(places.clone(), round + step) {
                    let load = Load { keys, ..self.load(connections, true) };
                    let sample = load.measure_started(&mut self.stage, Contender::Kassa, place.as_ref()).await?;
                    let what = format!("{} {keys:?} keys at {connections}", table::count(size));
                    self.note("size", round, &what, &sample);
                    self.figures.size.entry((keys == Keys::V4, size, connections)).or_default().push(sample)?;
                }
            }
        }
        for (_, _, place) in places {
            place.map_or(Ok(()), |place| self.stage.remove(place))?;
        }
        Ok(())
    }

    fn note(&self, part: &str, round: usize, what: &str, sample: &Sample) {
        let rate = table::rounded(sample.requests_per_s);
        self.say(&format!(
            "{part}, round {}: {what}: {rate} req/s, p99 {:.2} ms",
            round + 1,
            sample.latencies.quantile_ms(0.99)
        ));
        if sample.others > measuring::OTHERS_MAX {
            self.say(&format!("others took {:.0} % of the processor", sample.others * 100.0));
        }
    }
}

/// Whether something is among what was named; all is where nothing was.
fn wants<T: PartialEq>(named: &[T], one: T) -> bool {
    named.is_empty() || named.contains(&one)
}

/// The list begun elsewhere, so that nobody is always the first or always after the same one.
fn turned<T>(mut list: Vec<T>, by: usize) -> Vec<T> {
    if !list.is_empty() {
        let by = by % list.len();
        list.rotate_left(by);
    }
    list
}
