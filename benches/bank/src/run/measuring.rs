//! One measurement: a load on one contender, and what it took.

use crate::{
    load::{Event, Measured},
    run::stage::{Contender, Place, Running, Stage},
    wire::Keys,
};
use anyhow::{Context, Result, bail, ensure};
use measure::{latency::Latencies, machine, process::Process};
use std::time::{Duration, Instant};

/// A load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) warm_up_s: f64,
    pub(crate) seconds: f64,
    pub(crate) keys: Keys,
    /// Payments that are made first and then sent again; none for new payments.
    pub(crate) replay: Option<u64>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) requests_per_s: f64,
    pub(crate) latencies: Latencies,
    /// Processor time of the contender per request, in microseconds.
    pub(crate) cpu_us: f64,
    /// Flushes of the disk's cache per request.
    pub(crate) flushes: Option<f64>,
    /// What share of all cores went to anybody but contender, load and stub.
    pub(crate) others: f64,
}

/// What others may take of the cores before it is measured again.
pub(crate) const OTHERS_MAX: f64 = 0.10;
/// How often at the most.
const TRIES_MAX: u32 = 3;
/// The time that all such repeats together may take: a machine that is never quiet is measured as it is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// The load's process, with the lines that it tells.
pub(crate) struct Driver {
    process: Process,
}

impl Driver {
    /// Starts a load with these arguments.
    pub(crate) fn start(stage: &Stage, url: &str, arguments: &[String]) -> Result<Self> {
        let mut command = stage.bench();
        command.args(["load", "--url", url]).args(arguments);
        Ok(Self { process: Process::start("load", &mut command, stage.folder())? })
    }

    /// What it tells next.
    pub(crate) async fn event(&mut self) -> Result<Event> {
        match self.process.line().await? {
            Some(line) => serde_json::from_str(&line).context("the load tells something else"),
            None => {
                self.process.succeeded().await?;
                bail!("the load ended without a word");
            }
        }
    }

    /// Waits for its end.
    pub(crate) async fn done(&mut self) -> Result<Measured> {
        let Event::Done(measured) = self.event().await? else { bail!("the load told its events in another order") };
        self.process.succeeded().await?;
        Ok(measured)
    }
}

impl Load {
    fn arguments(&self) -> Vec<String> {
        let keys = if self.keys == Keys::V7 { "v7" } else { "v4" };
        let mut arguments = vec![
            format!("--connections={}", self.connections),
            format!("--warm-up-s={}", self.warm_up_s),
            format!("--seconds={}", self.seconds),
            format!("--keys={keys}"),
        ];
        arguments.extend(self.replay.map(|count| format!("--replay={count}")));
        arguments
    }

    /// Puts the load on a contender.
    pub(crate) async fn measure(&self, stage: &Stage, running: &Running) -> Result<Sample> {
        stage.empty_stub().await?;
        let mut driver = Driver::start(stage, &running.url, &self.arguments())?;
        ensure!(matches!(driver.event().await?, Event::Open), "the load told its events in another order");
        let load = driver.process.pid;
        let before = Counters::read(stage, running, load)?;
        ensure!(matches!(driver.event().await?, Event::Closed), "the load told its events in another order");
        let after = Counters::read(stage, running, load)?;
        let measured = driver.done().await?;
        let count = measured.latencies.count();
        ensure!(count > 0, "nothing was answered");
        self.check_charges(stage, count).await?;
        let requests = count as f64;
        Ok(Sample {
            requests_per_s: requests / measured.seconds,
            latencies: measured.latencies,
            cpu_us: (after.cpu - before.cpu).as_secs_f64() * 1e6 / requests,
            flushes: after.flushes.zip(before.flushes).map(|(after, before)| (after - before) as f64 / requests),
            others: (after.others() - before.others()).max(0.0) / measured.seconds / machine::cores()?,
        })
    }

    /// Whatever is quick because it leaves out the charge, or makes two, is not measured.
    async fn check_charges(&self, stage: &Stage, requests: u64) -> Result<()> {
        let ledger = stage.ledger().await?;
        let fits = match self.replay {
            Some(count) => ledger.distinct_keys == count,
            None => ledger.distinct_keys >= requests,
        };
        ensure!(fits && ledger.reused == 0, "the stub's counts don't fit {requests} payments: {ledger:?}");
        Ok(())
    }

    /// The same on a contender that is started for it: at a place that stays, or at a new one that is removed after it.
    ///
    /// Where others took much of the cores it is done again, a few times at the most, and the quietest try counts.
    pub(crate) async fn measure_started(
        &self,
        stage: &mut Stage,
        contender: Contender,
        place: Option<&Place>,
    ) -> Result<Sample> {
        let mut quietest = self.try_started(stage, contender, place).await?;
        for _ in 1..TRIES_MAX {
            if quietest.others <= OTHERS_MAX || stage.patience.is_zero() {
                break;
            }
            let begin = Instant::now();
            let again = self.try_started(stage, contender, place).await?;
            stage.patience = stage.patience.saturating_sub(begin.elapsed());
            if again.others < quietest.others {
                quietest = again;
            }
        }
        Ok(quietest)
    }

    async fn try_started(&self, stage: &mut Stage, contender: Contender, place: Option<&Place>) -> Result<Sample> {
        if let Some(place) = place {
            let running = stage.start(contender, place, None).await?;
            let sample = self.measure(stage, &running).await?;
            stage.end(running).await?;
            return Ok(sample);
        }
        let place = stage.place()?;
        let running = stage.start(contender, &place, None).await?;
        let sample = self.measure(stage, &running).await?;
        stage.clear(running, place).await?;
        Ok(sample)
    }
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    cpu: Duration,
    /// That of load and stub.
    around: Duration,
    busy: Duration,
    flushes: Option<u64>,
}

impl Counters {
    fn read(stage: &Stage, running: &Running, load: u32) -> Result<Self> {
        Ok(Self {
            cpu: running.cpu_time()?,
            around: machine::cpu_time(load)? + machine::cpu_time(stage.stub_pid())?,
            busy: machine::busy_time()?,
            flushes: stage.disk.flushes(),
        })
    }

    /// Processor time that went to none of these, in seconds.
    fn others(&self) -> f64 {
        self.busy.as_secs_f64() - self.cpu.as_secs_f64() - self.around.as_secs_f64()
    }
}

/// The samples of several rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    rounds: Vec<Sample>,
    /// Those of all rounds together.
    latencies: Option<Latencies>,
}

/// What several rounds come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// The middle one of the rounds, and so are processor time and flushes.
    pub(crate) requests_per_s: f64,
    pub(crate) requests_per_s_range: (f64, f64),
    /// Out of the latencies of all rounds together.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// The least and the most of the rounds' own.
    pub(crate) p99_ms_range: (f64, f64),
    pub(crate) cpu_us: f64,
    pub(crate) flushes: Option<f64>,
}

impl Samples {
    pub(crate) fn push(&mut self, sample: Sample) -> Result<()> {
        match &mut self.latencies {
            Some(all) => all.add(&sample.latencies)?,
            None => self.latencies = Some(sample.latencies.clone()),
        }
        self.rounds.push(sample);
        Ok(())
    }

    pub(crate) fn rounds(&self) -> &[Sample] {
        &self.rounds
    }

    /// None where there are no samples.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let sorted = |figure: fn(&Sample) -> f64| {
            let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let range = |sorted: &[f64]| Some((*sorted.first()?, *sorted.last()?));
        let rates = sorted(|sample| sample.requests_per_s);
        let all_counted = self.rounds.iter().all(|sample| sample.flushes.is_some());
        let flushes = sorted(|sample| sample.flushes.unwrap_or_default());
        let latencies = self.latencies.as_ref()?;
        Some(Summary {
            requests_per_s: median(&rates)?,
            requests_per_s_range: range(&rates)?,
            p50_ms: latencies.quantile_ms(0.50),
            p99_ms: latencies.quantile_ms(0.99),
            p99_ms_range: range(&sorted(|sample| sample.latencies.quantile_ms(0.99)))?,
            cpu_us: median(&sorted(|sample| sample.cpu_us))?,
            flushes: median(&flushes).filter(|_| all_counted),
        })
    }
}

/// The middle of figures in order; between the two middle ones where their number is even.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rounds: &[(f64, u64)]) -> Samples {
        let mut samples = Samples::default();
        for (requests_per_s, ms) in rounds {
            let mut latencies = Latencies::new().unwrap();
            for _ in 0..100 {
                latencies.record(Duration::from_millis(*ms)).unwrap();
            }
            let flushes = (*requests_per_s < 25.0).then_some(2.0);
            let sample = Sample { requests_per_s: *requests_per_s, latencies, cpu_us: 5.0, flushes, others: 0.0 };
            samples.push(sample).unwrap();
        }
        samples
    }

    #[test]
    fn the_middle_is_taken_figure_by_figure() {
        let three = samples(&[(30.0, 1), (10.0, 9), (20.0, 2)]).summary().unwrap();
        assert_eq!((three.requests_per_s, three.requests_per_s_range), (20.0, (10.0, 30.0)));
        assert_eq!(three.flushes, None, "not counted in every round");
        let two = samples(&[(10.0, 1), (20.0, 2)]).summary().unwrap();
        assert_eq!((two.requests_per_s, two.flushes), (15.0, Some(2.0)));
        assert_eq!(Samples::default().summary(), None);
    }

    #[test]
    fn the_p99_is_that_of_all_rounds_and_not_the_middle_rounds() {
        let summary = samples(&[(1.0, 1), (1.0, 9), (1.0, 2)]).summary().unwrap();
        let near = |figure: f64, ms: f64| (figure / ms - 1.0).abs() < 0.001;
        assert!(near(summary.p50_ms, 2.0) && near(summary.p99_ms, 9.0), "{summary:?}");
        assert!(near(summary.p99_ms_range.0, 1.0) && near(summary.p99_ms_range.1, 9.0), "{summary:?}");
    }
}
