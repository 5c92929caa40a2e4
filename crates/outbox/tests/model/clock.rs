//! Time that passes when the test says so. The wall clock and the true time part where a clock is set; the monotonic one
//! stands still while the machine sleeps.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use outbox::Clock;
use tokio::sync::Notify;

/// The beginning: 2027.
const START_MS: i64 = 1_800_000_000_000;

#[derive(Default)]
struct Times {
    true_ms: i64,
    ahead_ms: i64,
    monotonic_ms: u64,
    /// Until when each sleeps.
    sleepers: BTreeMap<u64, (u64, Option<Waker>)>,
    sleeps: u64,
    looks: u64,
    is_dead: bool,
}

/// The clock of a till, in the hands of the test.
#[derive(Clone)]
pub(crate) struct Hands {
    times: Arc<Mutex<Times>>,
    pub(crate) looked_at: Arc<Notify>,
}

impl Hands {
    pub(crate) fn new() -> Hands {
        let times = Times { true_ms: START_MS, ..Times::default() };
        Hands { times: Arc::new(Mutex::new(times)), looked_at: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn true_ms(&self) -> i64 {
        self.lock().true_ms
    }

    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.lock().monotonic_ms
    }

    /// How often anybody asked for the time: while that stands still, nobody does anything.
    pub(crate) fn looks(&self) -> u64 {
        self.lock().looks
    }

    pub(crate) fn is_somebody_asleep(&self) -> bool {
        !self.lock().sleepers.is_empty()
    }

    /// When the first sleeper wakes.
    pub(crate) fn next_wake_ms(&self) -> Option<u64> {
        self.lock().sleepers.values().map(|(until, _)| *until).min()
    }

    /// Time passes, for a machine that is awake.
    pub(crate) fn pass(&self, ms: u64) {
        let mut times = self.lock();
        times.true_ms += ms.cast_signed();
        times.monotonic_ms += ms;
        let now = times.monotonic_ms;
        for (until, waker) in times.sleepers.values_mut() {
            if *until <= now
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
    }

    /// Time passes, for a machine that sleeps.
    pub(crate) fn suspend(&self, ms: u64) {
        self.lock().true_ms += ms.cast_signed();
    }

    /// The clock on the wall is set. Never by more than ten years from the truth.
    pub(crate) fn set(&self, by_ms: i64) {
        const TEN_YEARS_MS: i64 = 10 * 365 * 24 * 3_600_000;
        let mut times = self.lock();
        times.ahead_ms = (times.ahead_ms + by_ms).clamp(-TEN_YEARS_MS, TEN_YEARS_MS);
    }

    /// The process dies: whoever looks at the clock next goes no further.
    pub(crate) fn die(&self) {
        self.lock().is_dead = true;
        self.looked_at.notify_one();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// A new process.
    pub(crate) fn live(&self) {
        self.lock().is_dead = false;
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let times = self.lock();
        Timestamp::from_millisecond(times.true_ms + times.ahead_ms).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        if self.is_dead() {
            // No message: it is no fault.
            std::panic::resume_unwind(Box::new("killed"));
        }
        self.lock().looks += 1;
        self.looked_at.notify_one();
        self.wall()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // Rounded up: a sleep is never shorter than asked for.
        let ms = SignedDuration::try_from(duration)
            .map_or(u64::MAX, |wait| wait.as_millis().unsigned_abs().try_into().unwrap_or(u64::MAX));
        let ms = if Duration::from_millis(ms) < duration { ms + 1 } else { ms };
        let mut times = self.lock();
        times.sleeps += 1;
        let number = times.sleeps;
        let until = times.monotonic_ms.saturating_add(ms);
        times.sleepers.insert(number, (until, None));
        Box::pin(Sleep { hands: self.clone(), number, until })
    }
}

struct Sleep {
    hands: Hands,
    number: u64,
    until: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut times = self.hands.lock();
        if times.monotonic_ms >= self.until {
            return Poll::Ready(());
        }
        times.sleepers.insert(self.number, (self.until, Some(context.waker().clone())));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.hands.lock().sleepers.remove(&self.number);
    }
}
