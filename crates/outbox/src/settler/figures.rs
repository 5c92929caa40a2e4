//! The figures of the queue: worked out one at a time, and not for every single change.

use std::time::Duration;

use super::{Driver, Report};
use crate::events::Event as Told;
use crate::summary::summary;

/// How often the figures of the queue are told at most.
const SUMMARY_EVERY: Duration = Duration::from_millis(200);

/// How many times as long as they take to work out they then stand still: with many waiting they must not slow the queue.
const SUMMARY_REST: u32 = 20;

/// Whether somebody wants them, and whether they are being worked out.
#[derive(Default)]
pub(super) struct Summarizing {
    wanted: bool,
    running: bool,
    /// Not before that time, by the monotonic clock.
    from: Duration,
}

impl Summarizing {
    pub(super) const fn want(&mut self) {
        self.wanted = true;
    }

    /// From when on they may be worked out, where somebody wants them and nobody works them out yet.
    pub(super) fn due_from(&self) -> Option<Duration> {
        (self.wanted && !self.running).then_some(self.from)
    }

    pub(super) fn worked_out(&mut self, took: Duration, monotonic: Duration) {
        self.running = false;
        self.from = self.from.max(monotonic + took * SUMMARY_REST);
    }
}

impl Driver<'_> {
    pub(super) fn tell_summary(&mut self) {
        let monotonic = self.outbox.clock.monotonic();
        let is_due = self.summary.due_from().is_some_and(|from| from <= monotonic);
        if !is_due || self.outbox.events.receiver_count() == 0 {
            return;
        }
        self.summary = Summarizing { wanted: false, running: true, from: monotonic + SUMMARY_EVERY };
        let (store, events, clock) = (self.outbox.store.clone(), self.outbox.events.clone(), self.outbox.clock.clone());
        let (now, deadline) = (clock.now(), self.outbox.settings.deadline.unsigned_abs());
        let task = async move {
            let read = store.read(move |conn| summary(conn, now));
            if let Ok(Ok(figures)) = tokio::time::timeout(deadline, read).await {
                let _ = events.send(Told::Summary(Box::new(figures)));
            }
            Report::Summarized { took: clock.monotonic().saturating_sub(monotonic) }
        };
        self.spawn(task, Report::Summarized { took: Duration::ZERO });
    }
}
