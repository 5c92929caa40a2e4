//! Time, handed in.

use std::time::{Duration, Instant, SystemTime};

use futures::future::BoxFuture;
use jiff::Timestamp;

/// Where the outbox has its time from. One that jumps or stands still delays nothing by more than the longest back-off, and
/// reorders nothing.
pub trait Clock: Send + Sync + 'static {
    /// What the clock on the wall says. It may jump.
    fn now(&self) -> Timestamp;

    /// Time that only goes forward, from any beginning. It may stand still while the machine sleeps.
    fn monotonic(&self) -> Duration;

    /// Waits at least so long. May wait longer, while the machine sleeps; the outbox never asks for more than
    /// [`Settings::slice`](crate::Settings::slice) (5 s).
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's own clocks, and tokio's timers.
#[derive(Clone, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        protocol::instant(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
