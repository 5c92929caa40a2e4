//! Where the engine takes the time from.

use jiff::Timestamp;
use std::time::SystemTime;

/// A clock that is handed in, so that a test or a fault lab can move it. It decides how old a stored response is and
/// nothing else: no wait is measured by it and no owner is taken for dead by it.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now();
        // Beyond the years that can be told it stands still.
        let end = if now < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::try_from(now).unwrap_or(end)
    }
}
