//! The bank's truth, and what a call learns of it.

use std::collections::BTreeMap;

use outbox::answer::Reading;
use outbox::{Ask, State};
use protocol::{Key, Outcome};

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
}

impl Bank {
    /// A call arrives. What runs ends now, or goes on.
    pub(crate) fn take(&mut self, key: Key, ask: Ask, is_refund: bool, outcome: Outcome, ends: bool) {
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
        }
    }

    /// What it answers.
    pub(crate) fn says(&self, key: Key) -> Reading {
        match self.truth.get(&key) {
            None => Reading::UnknownKey,
            Some(Truth::Running(_)) => Reading::InProgress(Some(jiff::SignedDuration::from_secs(2))),
            Some(Truth::Cancelled) => Reading::Cancelled,
            Some(Truth::Ended(outcome)) => Reading::Final { outcome: *outcome, result: String::new() },
        }
    }
}
