//! The run: what is measured, in which order, and what becomes of the figures.

use crate::{
    click::{Clicker, Clicks},
    dead::{self, Death},
    drain::Way,
    fill::Patterns,
    kill,
    peers::Contender,
    report::Figures,
    scale::{self, SIZES, Scale},
    soak,
    stage::Stage,
    target::{self, Target},
    till_click,
};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use measure::{document, machine, table};
use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The name of the generated part with the tables.
const TABLES: &str = "bench outbox";
/// The name of the generated part about memory.
const SOAK: &str = "bench outbox --soak";
/// The name of the generated part about what was to be reached.
const TARGETS: &str = "bench outbox targets";

/// Measures the outbox beside what could be had without it: clicks beside raw commits of the same rows, its drain beside a bare client
/// of the same bank, how often it asks a dead bank, how soon it is back after a kill, and two job queues. Writes the tables into
/// docs/PERFORMANCE.md.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds of clicks and drains; latencies are those of all rounds together, of rates the middle one counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Only these parts; writes nothing
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Operations in the files before a measurement; with others than these writes nothing
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = SIZES, conflicts_with = "quick")]
    sizes: Vec<u64>,
    /// A short round of little of everything, to see that it works; writes nothing
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// In place of the rest: so many operations settled by one process, to see whether its memory stays flat
    #[arg(long, value_name = "OPERATIONS", conflicts_with_all = ["only", "quick"])]
    soak: Option<u64>,
    /// Where all files are made, on the disk to measure; they are removed at the end
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The document to write to
    #[arg(long, value_name = "FILE", default_value = "docs/PERFORMANCE.md")]
    document: PathBuf,
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// From the outbox's click to durable, alone and while the queue drains
    Click,
    /// The till's whole click, and kills of it
    Till,
    /// The outbox beside a bare client
    Drain,
    /// Requests to a dead bank
    Dead,
    /// Job queues
    Peers,
}

impl Part {
    pub(crate) const ALL: [Self; 5] = [Self::Click, Self::Till, Self::Drain, Self::Dead, Self::Peers];
}

/// Runs what the options ask for. Whatever was started and made is gone at the end, also where it fails or is told to end.
pub(crate) fn run(options: Options) -> Result<()> {
    // As many threads as the till has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let end = CancellationToken::new();
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let told = end.clone();
        // In a task, so that it is heard too while this thread fills a file.
        tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            told.cancel();
        });
        // Dropping the run ends the processes and removes the files.
        tokio::select! {
            done = Run::all(options, end.clone()) => done,
            () = end.cancelled() => bail!("told to end"),
        }
    })
}

struct Run {
    options: Options,
    scale: Scale,
    stage: Stage,
    start: Instant,
    figures: Figures,
}

impl Run {
    async fn all(options: Options, end: CancellationToken) -> Result<()> {
        ensure!(options.rounds > 0, "name at least one round");
        let sizes = &options.sizes;
        ensure!(
            sizes.first() == Some(&0) && sizes.is_sorted_by(|size, next| size < next),
            "name sizes from 0 on, each larger than the one before"
        );
        let folder = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let stage = Stage::set_up(&folder, end).await?;
        let sync = machine::sync_time(stage.folder())?;
        let machine = machine::describe(stage.folder(), sync)?;
        println!("{machine}\n");
        let scale = if options.quick { Scale::quick() } else { Scale::whole(options.rounds, options.sizes.clone()) };
        let figures = Figures { machine, ..Figures::default() };
        let mut run = Self { scale, options, stage, start: Instant::now(), figures };
        if let Some(operations) = run.options.soak {
            run.foretell(scale::soak_time(operations, sync), scale::soak_bytes(operations))?;
            return run.soak(operations).await;
        }
        let time = run.parts().map(|part| run.scale.time(part, sync)).sum();
        run.foretell(time, run.parts().map(|part| run.scale.bytes_max(part)).max().unwrap_or_default())?;
        run.compare().await
    }

    /// Says how long it takes and how much of the disk; fails where that is not free.
    fn foretell(&self, time: Duration, bytes_max: u64) -> Result<()> {
        let minutes = time.as_secs_f64() / 60.0;
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        let (needs, folder) = (gib(bytes_max), self.stage.folder().display());
        println!("Takes about {minutes:.0} minutes, and up to {needs:.1} GiB in {folder}.");
        println!("Ctrl-C ends it at any time; nothing of it stays behind.\n");
        let free = machine::free_bytes(self.stage.folder())?;
        ensure!(free > bytes_max, "{:.1} GiB are free there: name a folder with more by --dir", gib(free));
        Ok(())
    }

    /// What is measured.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let only = self.options.only.clone();
        Part::ALL.into_iter().filter(move |part| only.is_empty() || only.contains(part))
    }

    /// Whether it is all that the document tells of.
    fn is_whole(&self) -> bool {
        self.options.only.is_empty() && !self.options.quick && self.scale.sizes == SIZES
    }

    /// The flags that make such a run again.
    fn flags(&self) -> String {
        if self.options.quick {
            return " --quick".to_owned();
        }
        let mut flags = format!(" --rounds {}", self.scale.rounds);
        if self.scale.sizes != SIZES {
            let sizes: Vec<_> = self.scale.sizes.iter().map(u64::to_string).collect();
            flags += &format!(" --sizes {}", sizes.join(","));
        }
        flags
    }

    async fn soak(&mut self, operations: u64) -> Result<()> {
        let soaked = soak::soak(&mut self.stage, operations).await?;
        let text = self.figures.under_heading(&soaked.text, &format!(" --soak {operations}"));
        println!("\n{text}");
        let measured = [(Target::Memory, soaked.furthest)];
        self.write(SOAK, text, &measured)?;
        self.judge(&measured)
    }

    /// Writes a part of the document, and with it what this run knows of the targets.
    fn write(&self, name: &str, text: String, measured: &[(Target, f64)]) -> Result<()> {
        let path = &self.options.document;
        let targets = target::table(&document::read(path)?, TARGETS, measured);
        document::write(path, &[(name, text), (TARGETS, targets)])
    }

    async fn compare(&mut self) -> Result<()> {
        for part in self.parts().collect::<Vec<_>>() {
            match part {
                Part::Click => self.click().await?,
                Part::Till => self.till().await?,
                Part::Drain => self.drain().await?,
                Part::Dead => self.dead().await?,
                Part::Peers => self.peers().await?,
            }
        }
        let measured = target::measured(&self.figures);
        let text = self.figures.under_heading(&self.figures.text(), &self.flags());
        let seconds = self.start.elapsed().as_secs_f64();
        println!("\n{}\n{text}\n{seconds:.0} s in all.", target::table("", TARGETS, &measured));
        if self.is_whole() {
            self.write(TABLES, text, &measured)?;
            println!("Written to {}.", self.options.document.display());
        } else {
            println!("Something was left out, so {} stays as it is.", self.options.document.display());
        }
        self.judge(&measured)
    }

    /// Fails where a target was not reached, or somebody was not measured. A quick run is too small for a verdict: of it all has to run and
    /// every check has to pass, and no more.
    fn judge(&self, measured: &[(Target, f64)]) -> Result<()> {
        if self.options.quick {
            println!("A quick run: too little of everything for a verdict, so its targets are not judged.");
            return Ok(());
        }
        let mut faults = target::missed(measured);
        faults.extend(self.figures.left_out.iter().map(|(name, why)| format!("{name} was left out: {why}")));
        ensure!(faults.is_empty(), "measured to the end, but not all is as wanted:\n- {}", faults.join("\n- "));
        Ok(())
    }

    fn say(&self, what: &str) {
        println!("[{:>4.0} s] {what}", self.start.elapsed().as_secs_f64());
    }

    fn note(&self, part: &str, size: u64, clicks: &Clicks) {
        let ms = |share| (clicks.ours.quantile_ms(share), clicks.raw.quantile_ms(share));
        let ((p50, raw_p50), (p99, raw_p99)) = (ms(0.5), ms(0.99));
        self.say(&format!(
            "{part} with {}: {} pairs, p50 {p50:.3} ms (raw {raw_p50:.3}), p99 {p99:.3} ms (raw {raw_p99:.3})",
            table::count(size),
            clicks.ours.count(),
        ));
    }

    async fn click(&mut self) -> Result<()> {
        let patterns = Patterns::make(&mut self.stage).await?;
        let sizes = self.scale.sizes.clone();
        let mut clickers = Vec::new();
        for &size in &sizes {
            let clicker = self.clicker(&patterns, size)?;
            self.figures.settings = Some(clicker.settings().await?);
            clickers.push(clicker);
            self.figures.click.insert(size, Clicks::new()?);
            self.figures.draining.insert(size, Clicks::new()?);
        }
        for round in 0..self.scale.rounds {
            let done = Clicker::alone(clickers, self.scale.pairs).await?;
            clickers = Vec::new();
            for (&size, (clicker, alone)) in sizes.iter().zip(done) {
                self.note("click alone", size, &alone);
                let (clicker, draining) = clicker.draining(&mut self.stage, self.scale.operations).await?;
                self.note("click while draining", size, &draining);
                self.figures.click.entry(size).or_insert(Clicks::new()?).add(&alone)?;
                self.figures.draining.entry(size).or_insert(Clicks::new()?).add(&draining)?;
                let is_last = round + 1 == self.scale.rounds;
                if size > 0 && !is_last {
                    clickers.push(clicker);
                    continue;
                }
                clicker.check()?;
                if !is_last {
                    // What the last round left behind is not nothing.
                    clickers.push(self.clicker(&patterns, size)?);
                }
            }
        }
        Ok(())
    }

    /// Files with that many operations in them, and who clicks on them.
    fn clicker(&mut self, patterns: &Patterns, size: u64) -> Result<Clicker> {
        let begin = Instant::now();
        let clicker = Clicker::make(&mut self.stage, patterns, size)?;
        let bytes = clicker.bytes()?;
        let (took, size, mib) = (begin.elapsed().as_secs_f64(), table::count(size), bytes >> 20);
        self.say(&format!("an outbox with {size} operations and its twin: {mib} MiB each, made in {took:.0} s"));
        Ok(clicker)
    }

    async fn till(&mut self) -> Result<()> {
        let sizes = self.scale.sizes.clone();
        for &size in &sizes {
            let mut all = Clicks::new()?;
            let begin = Instant::now();
            let dir = till_click::folder(&mut self.stage, size).await?;
            let (mib, took) = (fs::metadata(dir.join(till_click::FILE))?.len() >> 20, begin.elapsed().as_secs_f64());
            self.say(&format!("a till with {} charges: {mib} MiB, made in {took:.0} s", table::count(size)));
            for _ in 0..self.scale.rounds {
                let clicks = till_click::alone(&dir, self.scale.till_pairs).await?;
                self.note("till's click", size, &clicks);
                all.add(&clicks)?;
            }
            self.figures.till.insert(size, all);
            if Some(&size) == sizes.first() || Some(&size) == sizes.last() {
                let took = kill::rounds(&self.stage, &dir, self.scale.kills).await?;
                let most = took.iter().max().context("no kills")?;
                self.say(&format!("{} kills with {}: {most:?} at most", took.len(), table::count(size)));
                self.figures.kills.insert(size, took);
            }
            fs::remove_dir_all(dir)?;
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        let operations = self.scale.operations;
        for round in 0..self.scale.rounds {
            let mut ways = Way::ALL;
            // So that nobody is always the first or always after the same one.
            ways.rotate_left(round % Way::ALL.len());
            for way in ways {
                let took = way.drain(&mut self.stage, operations).await?;
                let rate = operations as f64 / took.as_secs_f64();
                self.say(&format!("drain: {}: {} a second", way.name(), table::rounded(rate)));
                self.figures.drain.entry(way).or_default().push(rate);
            }
        }
        Ok(())
    }

    async fn dead(&mut self) -> Result<()> {
        for death in Death::ALL {
            let passed = dead::pass(&mut self.stage, death, self.scale.operations, self.scale.dead_for).await?;
            self.say(&format!("dead ({}): {} requests in {:?}", death.name(), passed.calls, passed.passed));
            self.figures.hours.insert(death, passed);
        }
        let sample = dead::sample(&mut self.stage, self.scale.operations, self.scale.sample_s).await?;
        self.say(&format!("dead, in real time: {} and then {} requests", sample.run_up, sample.calls));
        self.figures.sample = Some(sample);
        Ok(())
    }

    async fn peers(&mut self) -> Result<()> {
        let mut present = Vec::new();
        for contender in Contender::ALL {
            match contender.check_built(&self.stage) {
                Ok(()) => present.push(contender),
                Err(error) => {
                    self.say(&format!("LEFT OUT: {}: {error}", contender.name()));
                    self.figures.left_out.push((contender.name(), error.to_string()));
                }
            }
        }
        for round in 0..self.scale.rounds {
            let mut in_turn = present.clone();
            in_turn.rotate_left(round % present.len());
            for contender in in_turn {
                self.save_and_drain(contender).await.with_context(|| contender.name())?;
            }
        }
        for contender in present {
            let surviving = contender.survive(&mut self.stage, self.scale.killed, self.scale.patience);
            let survived = surviving.await.with_context(|| contender.name())?;
            self.say(&format!("{}, killed: {survived:?}", contender.name()));
            self.figures.peers.entry(contender).or_default().survived = Some(survived);
        }
        Ok(())
    }

    async fn save_and_drain(&mut self, contender: Contender) -> Result<()> {
        let saving = contender.saving(&mut self.stage, self.scale.saved).await?;
        let took = contender.drain(&mut self.stage, self.scale.operations).await?;
        let rate = self.scale.operations as f64 / took.as_secs_f64();
        let (name, p50) = (contender.name(), saving.latencies.quantile_ms(0.5));
        self.say(&format!("{name}: saves in {p50:.3} ms, drains {} a second", table::rounded(rate)));
        let figures = self.figures.peers.entry(contender).or_default();
        figures.drain.push(rate);
        match &mut figures.saving {
            Some(before) => before.add(&saving)?,
            none => *none = Some(saving),
        }
        Ok(())
    }
}
