//! What the engine has done since it was opened, and what it has in hand: numbers for whoever watches it. Counting costs one
//! atomic addition for each answer.

use crate::{
    cancel::Cancel,
    engine::{Answer, Engine, Unavailable},
    record::State,
    rows,
    work::Work,
};
use jiff::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the engine was opened, but for what is in hand right now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Answers to requests whose run made the result.
    pub first: u64,
    /// Stored answers given again.
    pub replayed: u64,
    /// Requests that were told to come again, as the outcome was not known yet.
    pub in_progress: u64,
    /// Requests whose operation needs attention.
    pub needs_attention: u64,
    /// Requests that used the key of another one.
    pub reused: u64,
    /// Requests whose stored answer had expired.
    pub expired: u64,
    /// Requests under a cancelled key.
    pub cancelled: u64,
    /// Requests that the claim's own part refused.
    pub refused: u64,
    /// Requests that could not be taken.
    pub unavailable: u64,
    /// Panics of the work that were caught.
    pub panics: u64,
    /// Stored responses that were dropped as expired.
    pub purged: u64,
    /// Answers to wishes to cancel: the key never has an effect.
    pub cancel_cancelled: u64,
    /// Wishes to cancel that changed nothing: the operation was final, was not taken back, or needs attention.
    pub cancel_kept: u64,
    /// Wishes to cancel that are stored, and were told that the operation settles first.
    pub cancel_settling: u64,
    /// Wishes to cancel that could not be taken.
    pub cancel_unavailable: u64,
    /// Operations that were processing at the start: an earlier process had them in hand.
    pub found_at_start: u64,
    /// Operations that this process has in hand right now.
    pub in_hand: u64,
    /// Requests that wait for an operation right now.
    pub waiting: u64,
}

/// What the store holds that is not final.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// Operations that are processing, whoever has them in hand.
    pub processing: u64,
    /// Those of them that are an earlier process's still: this one has not taken them over yet.
    pub not_taken_over: u64,
    /// When the oldest of them was claimed.
    pub oldest_processing: Option<Timestamp>,
    /// Operations that need attention.
    pub needing_attention: u64,
}

/// The counters behind [`Counts`].
#[derive(Default)]
pub(crate) struct Counters {
    first: AtomicU64,
    replayed: AtomicU64,
    in_progress: AtomicU64,
    needs_attention: AtomicU64,
    reused: AtomicU64,
    expired: AtomicU64,
    cancelled: AtomicU64,
    refused: AtomicU64,
    unavailable: AtomicU64,
    panics: AtomicU64,
    purged: AtomicU64,
    cancel_cancelled: AtomicU64,
    cancel_kept: AtomicU64,
    cancel_settling: AtomicU64,
    cancel_unavailable: AtomicU64,
}

impl Counters {
    pub(crate) fn answered(&self, answer: &Answer) {
        let kind = match answer {
            Answer::Done { replayed: false, .. } => &self.first,
            Answer::Done { replayed: true, .. } => &self.replayed,
            Answer::InProgress => &self.in_progress,
            Answer::NeedsAttention => &self.needs_attention,
            Answer::Reused { .. } => &self.reused,
            Answer::Expired { .. } => &self.expired,
            Answer::Cancelled => &self.cancelled,
            Answer::Refused(_) => &self.refused,
            Answer::Unavailable(_) => &self.unavailable,
        };
        kind.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn cancelled(&self, told: &Result<Cancel, Unavailable>) {
        let kind = match told {
            Ok(Cancel::Is(record)) if record.state == State::Cancelled => &self.cancel_cancelled,
            Ok(Cancel::Is(_)) => &self.cancel_kept,
            Ok(Cancel::Settling) => &self.cancel_settling,
            Err(_) => &self.cancel_unavailable,
        };
        kind.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn purged(&self, responses: usize) {
        self.purged.fetch_add(responses as u64, Ordering::Relaxed);
    }
}

impl<W: Work> Engine<W> {
    /// What was done since the engine was opened, and what is in hand. Reads memory only. Each number is right, but they are
    /// not taken at one instant.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counters = &self.inner.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            first: read(&counters.first),
            replayed: read(&counters.replayed),
            in_progress: read(&counters.in_progress),
            needs_attention: read(&counters.needs_attention),
            reused: read(&counters.reused),
            expired: read(&counters.expired),
            cancelled: read(&counters.cancelled),
            refused: read(&counters.refused),
            unavailable: read(&counters.unavailable),
            panics: read(&counters.panics),
            purged: read(&counters.purged),
            cancel_cancelled: read(&counters.cancel_cancelled),
            cancel_kept: read(&counters.cancel_kept),
            cancel_settling: read(&counters.cancel_settling),
            cancel_unavailable: read(&counters.cancel_unavailable),
            found_at_start: self.inner.progress.borrow().found,
            in_hand: *self.inner.flights.count().borrow() as u64,
            waiting: u64::from(self.inner.flights.waiters()),
        }
    }

    /// What the store holds that is not final. Reads partial indexes, which are as long as what they hold is many.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be read.
    pub async fn backlog(&self) -> Result<Backlog, Unavailable> {
        let epoch = self.inner.epoch;
        Ok(self.inner.store.read(move |connection| rows::backlog(connection, epoch)).await?)
    }
}
