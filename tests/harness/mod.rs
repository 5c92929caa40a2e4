//! What the tests of the whole share: the programs as they were built, started as processes of their own, the bank with
//! its gateway, where charges are counted and faults are set, and the question that each test ends with.

pub(crate) mod bank;
pub(crate) mod checker;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod relay;
pub(crate) mod till;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a condition is looked at while it is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Waits until a condition holds, and gives what it found; never longer than the limit.
///
/// # Errors
/// Where the condition can't be looked at, and where it doesn't hold in time.
pub(crate) async fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if start.elapsed() > limit {
            bail!("not within {:.0} s: {what}", limit.as_secs_f64());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
