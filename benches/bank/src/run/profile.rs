//! Where the processor time of Kassa's bank goes, by `perf`.

use crate::{
    load::Event,
    run::{
        measuring::Driver,
        stage::{Contender, Stage},
    },
};
use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// Seconds that are sampled.
const SECONDS: u32 = 5;
/// Lines of the report that are shown.
const LINES_MAX: usize = 60;

/// Samples the bank under that many connections, and gives the functions in which it was found most often.
pub(crate) async fn profile(stage: &mut Stage, connections: usize) -> Result<String> {
    let place = stage.place()?;
    let running = stage.start(Contender::Kassa, &place, None).await?;
    let arguments =
        [format!("--connections={connections}"), "--warm-up-s=1".to_owned(), format!("--seconds={}", SECONDS + 1)];
    let mut driver = Driver::start(stage, &running.url, &arguments)?;
    ensure!(matches!(driver.event().await?, Event::Open), "the load told its events in another order");
    let samples = stage.folder().join("perf.data");
    let (pid, time) = (running.process.pid.to_string(), SECONDS.to_string());
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-F", "1999", "-p", &pid, "-o"]).arg(&samples).args(["--", "sleep", &time]);
    let recorded = record.output().await.context("perf is not on this machine")?;
    ensure!(recorded.status.success(), "perf record: {}", String::from_utf8_lossy(&recorded.stderr).trim());
    ensure!(matches!(driver.event().await?, Event::Closed), "the load told its events in another order");
    driver.done().await?;
    let mut shown = String::new();
    for sort in ["comm,dso", "comm,symbol"] {
        let mut report = Command::new("perf");
        report.args(["report", "--stdio", "--sort", sort, "--percent-limit", "0.5", "-i"]).arg(&samples);
        let told = report.output().await?;
        ensure!(told.status.success(), "perf report: {}", String::from_utf8_lossy(&told.stderr).trim());
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        for line in told.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).take(LINES_MAX) {
            shown += line.trim_end();
            shown.push('\n');
        }
        shown.push('\n');
    }
    stage.clear(running, place).await?;
    Ok(shown)
}
