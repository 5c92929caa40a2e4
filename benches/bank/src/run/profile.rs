//! Where the processor time of Kassa's bank goes, by `perf`: threads, and what their code is busy with.

use crate::{
    load::Event,
    run::{
        area::{self, Frame},
        measuring::Driver,
        stage::{Contender, Stage},
    },
};
use anyhow::{Context, Result, ensure};
use measure::table::{Table, count};
use std::{collections::HashMap, path::Path};
use tokio::process::Command;

/// Seconds before anything is sampled.
const WARM_UP_S: u32 = 3;
/// Seconds that are sampled.
const SECONDS: u32 = 6;
/// Samples per second and core: not a divisor of anything that happens regularly.
const RATE: &str = "1999";
/// Functions of a stack that are read.
const DEPTH_MAX: &str = "32";

/// Whether there is a `perf` on this machine.
pub(crate) async fn check() -> Result<()> {
    let told = Command::new("perf").arg("--version").output().await;
    let told = told.context("perf is not on this machine, so there is no profile, and nothing is written")?;
    ensure!(told.status.success(), "perf does not run: {}", String::from_utf8_lossy(&told.stderr).trim());
    Ok(())
}

/// Samples the bank under that many connections, and gives the text for the document.
pub(crate) async fn profile(stage: &mut Stage, connections: usize) -> Result<String> {
    let place = stage.place()?;
    let running = stage.start(Contender::Kassa, &place, None).await?;
    stage.empty_stub().await?;
    let arguments = [
        format!("--connections={connections}"),
        format!("--warm-up-s={WARM_UP_S}"),
        // A second more: perf needs time to begin and to end.
        format!("--seconds={}", SECONDS + 1),
    ];
    let mut driver = Driver::start(stage, &running.url, &arguments)?;
    ensure!(matches!(driver.event().await?, Event::Open), "the load told its events in another order");
    let file = stage.folder().join("perf.data");
    record(&file, running.process.pid).await?;
    ensure!(matches!(driver.event().await?, Event::Closed), "the load told its events in another order");
    let payments = driver.done().await?.latencies.count();
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "--max-stack", DEPTH_MAX, "-F", "comm,period,ip,sym,dso", "-i"]).arg(&file);
    let told = script.output().await?;
    ensure!(told.status.success(), "perf script: {}", String::from_utf8_lossy(&told.stderr).trim());
    stage.clear(running, place).await?;
    let profile = Profile::read(&String::from_utf8_lossy(&told.stdout))?;
    ensure!(profile.samples > 0, "perf found the bank nowhere");
    Ok(format!(
        "{} samples in {SECONDS} s at {connections} connections, while {} payments a second were answered.\n\n{}\n{}",
        count(profile.samples),
        count(payments / u64::from(SECONDS + 1)),
        table("thread", &profile.threads).text(),
        table("busy with", &profile.areas).text(),
    ))
}

async fn record(file: &Path, pid: u32) -> Result<()> {
    let (pid, time) = (pid.to_string(), SECONDS.to_string());
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-g", "-F", RATE, "-p", &pid, "-o"]).arg(file).args(["--", "sleep", &time]);
    let recorded = record.output().await.context("perf is not on this machine")?;
    ensure!(recorded.status.success(), "perf record: {}", String::from_utf8_lossy(&recorded.stderr).trim());
    Ok(())
}

/// Time by thread and by area.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile {
    samples: u64,
    threads: HashMap<String, u64>,
    areas: HashMap<&'static str, u64>,
}

impl Profile {
    /// Reads what `perf script` tells: for each sample a line with thread and time, then its stack from the innermost function on, then
    /// an empty line.
    fn read(text: &str) -> Result<Self> {
        let mut profile = Self::default();
        for sample in text.split("\n\n").map(|sample| sample.trim_matches('\n')).filter(|sample| !sample.is_empty()) {
            let (head, stack) = sample.split_once('\n').unwrap_or((sample, ""));
            let head = head.trim().trim_end_matches(':');
            let (thread, period) = head.rsplit_once(' ').with_context(|| format!("a sample that is {head}"))?;
            let period: u64 = period.parse().with_context(|| format!("a sample that is {head}"))?;
            let frames = stack.lines().filter_map(frame);
            profile.samples += 1;
            *profile.threads.entry(thread.trim().to_owned()).or_default() += period;
            *profile.areas.entry(area::of(frames)).or_default() += period;
        }
        Ok(profile)
    }
}

/// A line as `ADDRESS SYMBOL (FILE)`.
fn frame(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (symbol, file) = rest.rsplit_once(" (")?;
    Some(Frame { symbol: symbol.trim(), file: file.trim_end_matches(')') })
}

/// The parts as shares of all, the greatest first, and their sum.
fn table<K: AsRef<str>>(what: &str, parts: &HashMap<K, u64>) -> Table {
    let mut table = Table::new(&[what, "% of the processor time"]);
    let all: u64 = parts.values().sum();
    let mut parts: Vec<_> = parts.iter().map(|(part, time)| (part.as_ref(), *time)).collect();
    parts.sort_by_key(|(part, time)| (std::cmp::Reverse(*time), *part));
    let mut sum = 0.0;
    for (part, time) in parts {
        let share = time as f64 * 100.0 / all.max(1) as f64;
        // As shown, so that the sum is that of what can be read.
        sum += (share * 10.0).round() / 10.0;
        table.row(vec![part.to_owned(), format!("{share:.1}")]);
    }
    table.row(vec!["sum".to_owned(), format!("{sum:.1}")]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
tokio-rt-worker     300 \n\tffffffff81 _raw_spin_lock ([kernel.kallsyms])\n\tffffffff82 tcp_sendmsg ([kernel.kallsyms])
\t    7f01 __send (/usr/lib/libc.so.6)

store-writer     500: \n\t    5501 sqlite3VdbeExec (/usr/bin/kassa-bank)

the third one     200 \n\t    5502 <hyper::proto::Conn as x (y)>::poll (/usr/bin/kassa-bank)

";

    #[test]
    fn time_is_counted_by_thread_and_area() {
        let profile = Profile::read(TOLD).unwrap();
        assert_eq!(profile.samples, 3);
        let threads = [("tokio-rt-worker", 300), ("store-writer", 500), ("the third one", 200)];
        assert_eq!(profile.threads, threads.map(|(thread, time)| (thread.to_owned(), time)).into());
        let areas = [("kernel: network", 300), ("SQLite", 500), ("tokio, hyper, axum and reqwest", 200)];
        assert_eq!(profile.areas, areas.into());
        let text = table("busy with", &profile.areas).text();
        let rows: Vec<_> =
            text.lines().skip(2).map(|line| line.split('|').map(str::trim).collect::<Vec<_>>()).collect();
        assert_eq!((rows[0][1], rows[0][2]), ("SQLite", "50.0"));
        assert_eq!((rows[3][1], rows[3][2]), ("sum", "100.0"));
        assert!(Profile::read("no time\n\tffff f (g)\n").is_err());
    }
}
