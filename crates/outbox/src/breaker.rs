//! The one breaker for the bank: while it is open a single question at a time goes out, and it changes nothing.
//!
//! It is open at the start too: nothing is sent before the bank has said which bank it is.

use jiff::{SignedDuration, Timestamp};

use crate::backoff::{Backoff, Random};

/// What keeps the breaker open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The bank has not been asked yet who it is.
    NotAsked,
    /// No connection, no answer, or one that isn't the bank's.
    Transport(String),
    /// The bank refuses our secret.
    Refused(String),
    /// The bank answers, but can't say who it is now.
    Trouble(String),
}

/// Open or closed, and when to probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breaker {
    open: Option<Open>,
    /// Failed probes and transport failures since an operation last completed. A connection alone proves little: only what
    /// completes resets it.
    failures: u32,
    last_probe_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    why: Why,
    /// The way to the bank was at fault at some time since it was last closed, whatever is in the way now.
    was_away: bool,
    probe_at: Timestamp,
    probing: bool,
}

impl Open {
    fn waiting(why: Why, was_away: bool, probe_at: Timestamp) -> Open {
        Open { was_away: was_away || matches!(why, Why::Transport(_)), why, probe_at, probing: false }
    }
}

impl Breaker {
    /// Open, with a probe due at once.
    pub(crate) const fn at_start(now: Timestamp) -> Self {
        Breaker {
            open: Some(Open { why: Why::NotAsked, was_away: false, probe_at: now, probing: false }),
            failures: 0,
            last_probe_at: None,
        }
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    pub(crate) const fn why(&self) -> Option<&Why> {
        match &self.open {
            Some(open) => Some(&open.why),
            None => None,
        }
    }

    /// When the next probe is due; none while one is running, or while closed.
    pub(crate) fn probe_at(&self) -> Option<Timestamp> {
        self.open.as_ref().filter(|open| !open.probing).map(|open| open.probe_at)
    }

    pub(crate) fn probe_started(&mut self, now: Timestamp) {
        self.last_probe_at = Some(now);
        if let Some(open) = &mut self.open {
            open.probing = true;
        }
    }

    /// A call failed in a way that says that the bank is away or refuses us. Where it is open already, its probe stands.
    pub(crate) fn trip(&mut self, why: Why, backoff: Backoff, now: Timestamp, random: &mut Random) {
        if let Some(open) = &mut self.open {
            open.was_away |= matches!(why, Why::Transport(_));
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let probe_at = now.saturating_add(backoff.delay(self.failures, random)).unwrap_or(now);
        self.open = Some(Open::waiting(why, false, probe_at));
    }

    /// A probe failed: the next one after a longer wait.
    pub(crate) fn probe_failed(&mut self, why: Why, backoff: Backoff, now: Timestamp, random: &mut Random) {
        self.failures = self.failures.saturating_add(1);
        let probe_at = now.saturating_add(backoff.delay(self.failures, random)).unwrap_or(now);
        let was_away = self.open.as_ref().is_some_and(|open| open.was_away);
        self.open = Some(Open::waiting(why, was_away, probe_at));
    }

    /// The bank said who it is. Gives whether that ends an outage.
    pub(crate) fn close(&mut self) -> bool {
        self.open.take().is_some_and(|open| open.was_away)
    }

    /// Another address or credential: nothing is known any more, and the next probe is due at once. The answer of one that
    /// is running is the old bank's; the driver drops it.
    pub(crate) fn reopen(&mut self, now: Timestamp) {
        self.open = Some(Open::waiting(Why::NotAsked, false, now));
    }

    /// Somebody has reason to think that the bank is back: the probe is due now, but never sooner after the last one than
    /// the shortest back-off, however often somebody clicks.
    pub(crate) fn bring_forward(&mut self, gap: SignedDuration, now: Timestamp) {
        let soonest = self.last_probe_at.map_or(now, |last| last.saturating_add(gap).unwrap_or(now).max(now));
        if let Some(open) = &mut self.open {
            open.probe_at = open.probe_at.min(soonest);
        }
    }

    /// The clock jumped: what was planned by it means nothing any more.
    pub(crate) fn forget_times(&mut self, now: Timestamp) {
        self.last_probe_at = None;
        if let Some(open) = &mut self.open {
            open.probe_at = now;
        }
    }

    /// An operation completed: the bank works, from the connection to the result.
    pub(crate) const fn completed(&mut self) {
        self.failures = 0;
    }
}
