//! The service's clock, which the lab moves.

use idempotency::Clock;
use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};

/// The operating system's clock and an offset.
#[derive(Debug, Default)]
pub(crate) struct LabClock {
    offset_s: AtomicI64,
}

impl LabClock {
    pub(crate) fn set_offset_s(&self, offset_s: i64) {
        self.offset_s.store(offset_s, Ordering::Relaxed);
    }
}

impl Clock for LabClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let offset = SignedDuration::from_secs(self.offset_s.load(Ordering::Relaxed));
        now.saturating_add(offset).unwrap_or(now)
    }
}
