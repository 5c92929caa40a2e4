//! The figures of the outbox, in one place.

use jiff::SignedDuration;

use crate::backoff::Backoff;

/// How patient and how quick the outbox is. The default is what a till uses, and is named with each; tests are less patient.
/// Nothing of it is kept in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// After a failure, of an operation and of the bank alike: up to 0.5 s, doubling, up to 30 s.
    pub backoff: Backoff,
    /// Calls at once, look-ups and cancellations among them: 4. As many again may be counted ahead of their call for a moment, while the
    /// bank answers at once.
    pub in_flight_max: usize,
    /// The shortest `Retry-After` that is believed, so that a bank that says 0 is not stormed: 1 s.
    pub retry_after_min: SignedDuration,
    /// The longest `Retry-After` that is believed: 15 min.
    pub retry_after_max: SignedDuration,
    /// Drawn on top of each `Retry-After`, so that tills don't come together: up to 1 s.
    pub retry_after_jitter: SignedDuration,
    /// How often what needs attention is looked up: every 15 min. After a look-up that failed, the back-off.
    pub attention_every: SignedDuration,
    /// After how many panics in its handling, ever, an operation is set aside: 3. An error of the caller's hook counts as one.
    pub panics_max: u32,
    /// After how many deaths of the process in a row an operation is tried alone: 2.
    pub deaths_alone: u32,
    /// Operations in the first second after an outage; it doubles with each second: 20.
    pub drain_per_s: u32,
    /// The longest sleep, after which clocks are compared and the file is scanned again: 5 s. So late is what nobody woke the
    /// outbox for.
    pub slice: SignedDuration,
    /// How far wall and monotonic clock may part from one comparison to the next before it counts as a jump or a suspend: 2 s.
    pub drift_max: SignedDuration,
    /// How long one call, or one read or write of the file, may take before it counts as not answered: 15 s. More than a transport
    /// takes by itself ([`HttpTransport`](crate::HttpTransport): 10 s).
    pub deadline: SignedDuration,
}

impl Settings {
    /// What of it makes no sense, where something doesn't.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let zero = SignedDuration::ZERO;
        let rules = [
            (self.in_flight_max > 0, "in_flight_max is 0, so nothing would ever be sent"),
            (self.panics_max > 0, "panics_max is 0, so each operation would be set aside before its first fault"),
            (self.drain_per_s > 0, "drain_per_s is 0, so nothing would be sent after an outage"),
            (
                self.backoff.base > zero,
                "backoff.base must be more than nothing, else a failure is tried again at once, for ever",
            ),
            (self.backoff.cap >= self.backoff.base, "backoff.cap is less than backoff.base"),
            (
                self.retry_after_min > zero,
                "retry_after_min must be more than nothing, else a bank that says 0 is stormed",
            ),
            (self.retry_after_max >= self.retry_after_min, "retry_after_max is less than retry_after_min"),
            (self.retry_after_jitter >= zero, "retry_after_jitter is negative"),
            (self.attention_every > zero, "attention_every must be more than nothing"),
            (self.slice > zero, "slice must be more than nothing"),
            (self.drift_max > zero, "drift_max must be more than nothing, else each tick is a jump of the clock"),
            (self.deadline > zero, "deadline must be more than nothing, else no call could end in time"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
    }

    /// Longer than anything is ever planned ahead. A time in the file beyond it was written by a clock that was wrong since
    /// or before, and means nothing.
    #[must_use]
    pub fn horizon(&self) -> SignedDuration {
        let longest = self.retry_after_max.max(self.attention_every).max(self.backoff.cap);
        longest.saturating_add(self.retry_after_jitter).saturating_add(self.slice)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            backoff: Backoff { base: SignedDuration::from_millis(500), cap: SignedDuration::from_secs(30) },
            in_flight_max: 4,
            retry_after_min: SignedDuration::from_secs(1),
            retry_after_max: SignedDuration::from_mins(15),
            retry_after_jitter: SignedDuration::from_secs(1),
            attention_every: SignedDuration::from_mins(15),
            panics_max: 3,
            deaths_alone: 2,
            drain_per_s: 20,
            slice: SignedDuration::from_secs(5),
            drift_max: SignedDuration::from_secs(2),
            deadline: SignedDuration::from_secs(15),
        }
    }
}
