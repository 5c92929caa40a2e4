//! What a command says where it refuses.

use std::{process::ExitStatus, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::harness::process::Process;

/// Longer than the longest wait of a till whose file failed (30 s), after which it tries it again.
pub(crate) const STEP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) const AMOUNT: i64 = 2_490;
pub(crate) const PAY: &[&str] = &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"];
pub(crate) const SYNC: &[&str] = &["sync", "--until-settled"];
/// Not longer than it takes to see that it goes on trying.
pub(crate) const SYNC_SHORT: &[&str] = &["sync", "--until-settled", "--timeout", "2s"];

/// Waits for the end of a command that must refuse: exit code 1, nothing printed, and the reason in the one line that is the
/// till's own. Gives that line.
pub(crate) async fn refusal(process: &mut Process) -> Result<String> {
    let status = process.ended(STEP_LIMIT).await?;
    ensure!(status.code() == Some(1), "{status}: {}", process.said()?);
    ensure!(process.printed()?.is_empty(), "it printed {}", process.printed()?);
    reason(process)
}

/// The till's own line, which is the last one. Above it may be the log's.
pub(crate) fn reason(process: &Process) -> Result<String> {
    let said = process.said()?;
    let own: Vec<_> = said.lines().filter(|line| line.starts_with("kassa-till: ")).collect();
    ensure!(own.len() == 1 && said.lines().last() == own.last().copied(), "not one line of its own at the end: {said}");
    Ok(own.concat())
}

/// Waits for a good end and gives what was printed.
pub(crate) async fn done(process: &mut Process) -> Result<Vec<Value>> {
    let status = process.ended(STEP_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", process.said()?);
    lines(process)
}

/// Waits for the end, whatever it is.
pub(crate) async fn ended(process: &mut Process) -> Result<ExitStatus> {
    process.ended(STEP_LIMIT).await
}

pub(crate) fn lines(process: &Process) -> Result<Vec<Value>> {
    process.printed()?.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

pub(crate) fn keys(operations: &[Value]) -> Vec<String> {
    operations.iter().filter_map(|operation| operation["key"].as_str()).map(str::to_owned).collect()
}
