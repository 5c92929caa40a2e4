//! The bank's truth, and what a call learns of it.

use std::collections::{BTreeMap, BTreeSet};

use outbox::answer::Reading;
use outbox::{Ask, State};
use protocol::{Key, Outcome};

use crate::rare::{Rare, reached};

/// What the bank has of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Running(Outcome),
    Ended(Outcome),
    Cancelled,
}

impl Truth {
    /// The state that a till may come to by it.
    pub(crate) fn state(self) -> Option<State> {
        match self {
            Truth::Running(_) => None,
            Truth::Ended(outcome) => Some(State::from(outcome)),
            Truth::Cancelled => Some(State::Cancelled),
        }
    }
}

#[derive(Default)]
pub(crate) struct Bank {
    pub(crate) truth: BTreeMap<Key, Truth>,
    /// When it first had each.
    since_ms: BTreeMap<Key, i64>,
    /// What it knew once.
    forgotten: BTreeSet<Key>,
    /// How often money moved for each.
    pub(crate) charged: BTreeMap<Key, u32>,
}

impl Bank {
    /// A call arrives. What runs ends now, or goes on.
    pub(crate) fn take(&mut self, key: Key, ask: Ask, is_refund: bool, outcome: Outcome, ends: bool, now_ms: i64) {
        if ask != Ask::LookUp && self.forgotten.remove(&key) {
            reached(Rare::ClaimedAgain);
            self.truth.remove(&key);
            self.since_ms.remove(&key);
        }
        if ask != Ask::LookUp {
            self.since_ms.entry(key).or_insert(now_ms);
        }
        if ask.sends() {
            self.truth.entry(key).or_insert(Truth::Running(outcome));
        } else if ask == Ask::Cancel {
            let truth = self.truth.entry(key).or_insert(Truth::Cancelled);
            // A payment that runs is reversed; a refund that went through stays.
            if matches!(truth, Truth::Running(_)) && !is_refund && ends {
                *truth = Truth::Cancelled;
            }
        }
        if let Some(truth) = self.truth.get_mut(&key)
            && let Truth::Running(outcome) = *truth
            && ends
        {
            *truth = Truth::Ended(outcome);
            if outcome == Outcome::Approved {
                *self.charged.entry(key).or_default() += 1;
            }
        }
    }

    /// It forgets what has ended and is older.
    pub(crate) fn forget(&mut self, before_ms: i64) {
        let ended = self.truth.iter().filter(|(_, truth)| !matches!(truth, Truth::Running(_))).map(|(key, _)| *key);
        self.forgotten.extend(ended.filter(|key| self.since_ms.get(key).is_some_and(|at| *at < before_ms)));
    }

    pub(crate) fn has_forgotten(&self, key: Key) -> bool {
        self.forgotten.contains(&key)
    }

    pub(crate) fn knows(&self, key: Key) -> bool {
        self.truth.contains_key(&key) && !self.has_forgotten(key)
    }

    /// What it answers.
    pub(crate) fn says(&self, key: Key) -> Reading {
        match self.truth.get(&key).filter(|_| !self.has_forgotten(key)) {
            None => Reading::UnknownKey,
            Some(Truth::Running(_)) => Reading::InProgress(Some(jiff::SignedDuration::from_secs(2))),
            Some(Truth::Cancelled) => Reading::Cancelled,
            Some(Truth::Ended(outcome)) => Reading::Final { outcome: *outcome, result: String::new() },
        }
    }
}
