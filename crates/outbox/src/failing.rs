//! A bank that is there and fails at everything: 5xx to one operation after the other, with no word how long to wait.
//!
//! One operation that the bank fails at is that operation's trouble, and delays nobody else. But where more of them than may be in
//! flight fail with no success between, it is the bank's, and ten thousand back-offs side by side would be a storm. From then on the
//! bank is asked for one at a time, after a back-off that is the queue's, until it completes one.

use std::collections::BTreeSet;

use jiff::Timestamp;
use protocol::Key;

use crate::answer::Name;
use crate::backoff::{Backoff, Random};

/// What is known of the bank's failures since it last completed an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failing {
    /// Those that it failed at; no more are kept than it takes.
    keys: BTreeSet<Key>,
    /// How it said so last.
    problem: Option<Name>,
    /// Failures in a row since there were so many, those that came together counted once.
    failures: u32,
    /// When it is asked again.
    ask_at: Option<Timestamp>,
}

impl Failing {
    /// The bank failed at that operation, by that problem. `alone_max` operations may do so by themselves.
    pub(crate) fn failed(
        &mut self,
        key: Key,
        problem: Name,
        alone_max: usize,
        backoff: Backoff,
        now: Timestamp,
        random: &mut Random,
    ) {
        self.problem = Some(problem);
        if self.keys.len() <= alone_max {
            self.keys.insert(key);
        }
        if self.keys.len() > alone_max && self.ask_at.is_none_or(|at| at <= now) {
            self.failures = self.failures.saturating_add(1);
            self.ask_at = Some(now.saturating_add(backoff.delay(self.failures, random)).unwrap_or(now));
        }
    }

    /// Whether it fails at everything, as far as is known.
    pub(crate) const fn is_everything(&self) -> bool {
        self.ask_at.is_some()
    }

    /// By which problem; none while it is not failing at everything.
    pub(crate) fn why(&self) -> Option<&str> {
        self.problem.as_deref().filter(|_| self.is_everything())
    }

    /// When it is asked again; none while it is not failing at everything.
    pub(crate) const fn ask_at(&self) -> Option<Timestamp> {
        self.ask_at
    }

    /// Somebody wants to know now, or the clock jumped.
    pub(crate) fn ask_now(&mut self, now: Timestamp) {
        self.ask_at = self.ask_at.map(|at| at.min(now));
    }

    /// It completed one. Gives whether that ends a time in which it completed nothing.
    pub(crate) fn completed(&mut self) -> bool {
        std::mem::take(self).is_everything()
    }
}
