//! The service's clock, which the lab moves.

use idempotency::Clock;
use jiff::{SignedDuration, Timestamp};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::SystemTime,
};

/// The operating system's clock and an offset.
#[derive(Debug, Default)]
pub(crate) struct LabClock {
    offset_s: AtomicI64,
}

impl LabClock {
    pub(crate) fn set_offset_s(&self, offset_s: i64) {
        self.offset_s.store(offset_s, Ordering::Relaxed);
    }

    /// What it says for `Date`, where it was moved: a server's own clock is what its answers tell, or a client could not see
    /// that the two are apart.
    pub(crate) fn date_if_moved(&self) -> Option<String> {
        (self.offset_s.load(Ordering::Relaxed) != 0)
            .then(|| self.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
    }
}

impl Clock for LabClock {
    fn now(&self) -> Timestamp {
        let now = protocol::instant(SystemTime::now());
        let offset = SignedDuration::from_secs(self.offset_s.load(Ordering::Relaxed));
        now.saturating_add(offset).unwrap_or(now)
    }
}
