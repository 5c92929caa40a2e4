//! One measurement: a load on one contender, and what it took.

use crate::{
    load::{Event, Measured},
    run::{
        machine,
        process::Process,
        stage::{Contender, Place, Running, Stage},
    },
    wire::Keys,
};
use anyhow::{Context, Result, bail, ensure};
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) requests_per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
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
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

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
        ensure!(measured.requests > 0, "nothing was answered");
        self.check_charges(stage, measured.requests).await?;
        let requests = measured.requests as f64;
        Ok(Sample {
            requests_per_s: requests / measured.seconds,
            p50_ms: measured.p50_us as f64 / 1e3,
            p99_ms: measured.p99_us as f64 / 1e3,
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

/// The middle of the samples of several rounds, figure by figure, and the least and the most requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: Sample,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Summary {
    /// None where there are no samples.
    pub(crate) fn of(samples: &[Sample]) -> Option<Self> {
        let sorted = |figure: fn(&Sample) -> f64| {
            let mut figures: Vec<f64> = samples.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let middle = |figure| median(&sorted(figure));
        let flushes: Vec<f64> = samples.iter().filter_map(|sample| sample.flushes).collect();
        let rates = sorted(|sample| sample.requests_per_s);
        Some(Self {
            median: Sample {
                requests_per_s: median(&rates)?,
                p50_ms: middle(|sample| sample.p50_ms)?,
                p99_ms: middle(|sample| sample.p99_ms)?,
                cpu_us: middle(|sample| sample.cpu_us)?,
                flushes: if flushes.len() == samples.len() {
                    middle(|sample| sample.flushes.unwrap_or_default())
                } else {
                    None
                },
                others: middle(|sample| sample.others)?,
            },
            least: *rates.first()?,
            most: *rates.last()?,
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

    #[test]
    fn the_middle_is_taken_figure_by_figure() {
        let sample = |rate: f64, p99_ms| Sample {
            requests_per_s: rate,
            p50_ms: 1.0,
            p99_ms,
            cpu_us: 5.0,
            flushes: (rate < 25.0).then_some(2.0),
            others: 0.0,
        };
        let summary = Summary::of(&[sample(30.0, 1.0), sample(10.0, 9.0), sample(20.0, 2.0)]).unwrap();
        assert_eq!((summary.least, summary.median.requests_per_s, summary.most), (10.0, 20.0, 30.0));
        assert_eq!((summary.median.p99_ms, summary.median.flushes), (2.0, None), "not counted in every round");
        let two = Summary::of(&[sample(10.0, 1.0), sample(20.0, 2.0)]).unwrap();
        assert_eq!((two.median.requests_per_s, two.median.flushes), (15.0, Some(2.0)));
        assert_eq!(Summary::of(&[]), None);
    }
}
