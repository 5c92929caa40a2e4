//! How quickly the backlog goes out after an outage: 20 in the first second, and twice as many in each that follows, so that a
//! bank that just came back isn't knocked over by everybody who waited for it. Of the first second as many as may be in flight go at
//! once: were it one, and the way to the bank broken for that one alone, nobody else would ever get there.

use jiff::{SignedDuration, Timestamp};

use crate::settings::Settings;

/// After so many seconds the rate is beyond what four calls at once can reach.
const SECONDS: u32 = 10;

/// The pace since an outage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    since: Timestamp,
    per_s: u32,
    at_once: u64,
    taken: u64,
}

impl Drain {
    pub(crate) fn from(since: Timestamp, settings: &Settings) -> Self {
        let at_once = u64::try_from(settings.in_flight_max).unwrap_or(u64::MAX);
        Drain { since, per_s: settings.drain_per_s, at_once, taken: 0 }
    }

    /// Takes one, or says when there is one.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Timestamp> {
        let elapsed_ms = now.duration_since(self.since).as_millis().max(0);
        if self.taken < self.allowed(elapsed_ms).saturating_add(1).max(self.at_once) {
            self.taken += 1;
            return None;
        }
        let rate = u64::from(self.per_s.max(1)) << second(elapsed_ms);
        let wait_ms = i64::try_from(1_000 / rate).unwrap_or(0).max(1);
        Some(now.saturating_add(SignedDuration::from_millis(wait_ms)).unwrap_or(now))
    }

    /// How many may have started after the first, `elapsed_ms` after the outage.
    fn allowed(&self, elapsed_ms: i128) -> u64 {
        let second = second(elapsed_ms);
        let whole = u64::from(self.per_s) * ((1 << second) - 1);
        let within_ms = u64::try_from(elapsed_ms - i128::from(second) * 1_000).unwrap_or(0);
        whole + (u64::from(self.per_s) << second) * within_ms / 1_000
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let elapsed = now.duration_since(self.since);
        // Set back, the clock says nothing about the pace.
        elapsed > SignedDuration::from_secs(i64::from(SECONDS)) || elapsed < SignedDuration::from_hours(-1)
    }

    pub(crate) fn shifted(self, by: SignedDuration) -> Self {
        Drain { since: self.since.saturating_add(by).unwrap_or(self.since), ..self }
    }
}

fn second(elapsed_ms: i128) -> u32 {
    u32::try_from(elapsed_ms / 1_000).unwrap_or(SECONDS).min(SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_in_the_first_second_and_twice_as_many_in_each_that_follows() {
        let start = Timestamp::UNIX_EPOCH;
        let mut drain = Drain::from(start, &Settings::default());
        let mut taken = [0; 5];
        let mut now = start;
        while now < start + SignedDuration::from_secs(5) {
            let second = usize::try_from(now.as_second()).unwrap();
            match drain.take(now) {
                None => taken[second] += 1,
                Some(at) => {
                    assert!(at > now);
                    now = at;
                }
            }
        }
        for (second, (taken, wanted)) in taken.iter().zip([20, 40, 80, 160, 320]).enumerate() {
            assert!((wanted - 1..=wanted + 1).contains(taken), "second {second}: {taken}");
        }
        assert!(!drain.is_over(now));
        assert!(drain.is_over(start + SignedDuration::from_secs(11)));
    }
}
