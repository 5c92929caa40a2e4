//! Time that goes as fast as nothing happens: it stands still while anybody works, and leaps to the next sleeper's end else.

use crate::queue::Clock;
use anyhow::{Result, ensure};
use futures::future::BoxFuture;
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use store::Store;
use tokio::sync::oneshot;

/// How long nothing must have happened, in real time, before it leaps.
const QUIET: Duration = Duration::from_millis(2);
/// How often the runtime's tasks come round meanwhile.
const TURNS: usize = 8;
/// How long nobody may sleep, in real time.
const NOBODY: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Inner {
    passed: Duration,
    sleepers: BTreeMap<(Duration, u64), oneshot::Sender<()>>,
    /// Sleeps begun, ever.
    begun: u64,
}

/// The clock. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Hour {
    start: Timestamp,
    inner: Arc<Mutex<Inner>>,
}

impl Hour {
    /// One that has not gone yet.
    pub(crate) fn new() -> Self {
        Self { start: Timestamp::now(), inner: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass up to there, as the users of that file are done with each moment.
    ///
    /// # Errors
    /// Where nobody sleeps for long: then nobody is there for whom time could pass.
    pub(crate) async fn pass(&self, until: Duration, store: &Store) -> Result<()> {
        let mut nobody_since = Instant::now();
        loop {
            // Who works begins a sleep, or asks the file for something, before long. However slow the machine is: what the file was asked
            // for is answered, and each task that could run then has had its turn.
            let seen = |hour: &Self| (hour.lock().begun, store.work());
            let before = seen(self);
            tokio::time::sleep(QUIET).await;
            for _ in 0..TURNS {
                tokio::spawn(std::future::ready(())).await?;
            }
            if seen(self) != before || before.1.unanswered > 0 {
                continue;
            }
            let mut inner = self.lock();
            match inner.sleepers.pop_first() {
                // It is not there yet, or not any more: it takes its time over something else.
                None => {
                    ensure!(nobody_since.elapsed() < NOBODY, "nobody waits for time to pass");
                    continue;
                }
                Some(((at, _), sleeper)) if at <= until => {
                    inner.passed = inner.passed.max(at);
                    // Who has been woken otherwise doesn't listen any more.
                    let _ = sleeper.send(());
                }
                Some(_) => {
                    inner.passed = until;
                    return Ok(());
                }
            }
            nobody_since = Instant::now();
        }
    }
}

impl Clock for Hour {
    fn now(&self) -> Timestamp {
        self.start + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.lock().passed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (sleeper, woken) = oneshot::channel();
        let mut inner = self.lock();
        inner.begun += 1;
        let place = (inner.passed + duration, inner.begun);
        inner.sleepers.insert(place, sleeper);
        // Those that nobody waits for any more need no leap of their own.
        inner.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        Box::pin(async move {
            // It is dropped where the hour is over; then time stands still.
            if woken.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue;

    #[tokio::test]
    async fn an_hour_passes_in_the_order_of_its_sleepers() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("x.db"), &queue::schema()).unwrap();
        let hour = Hour::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        for minutes in [50, 10, 30, 70] {
            let (sleep, seen, clock) = (hour.sleep(Duration::from_secs(60 * minutes)), seen.clone(), hour.clone());
            tokio::spawn(async move {
                sleep.await;
                seen.lock().unwrap().push((minutes, clock.monotonic().as_secs() / 60));
            });
        }
        hour.pass(Duration::from_secs(3_600), &store).await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [(10, 10), (30, 30), (50, 50)]);
        assert_eq!(hour.monotonic(), Duration::from_secs(3_600));
    }
}
