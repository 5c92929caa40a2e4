//! What is known of the bank, kept in the file wherever it changed.

use jiff::Timestamp;

use super::Queue;
use crate::breaker::Why;
use crate::step::{Effect, Record};

impl Queue {
    /// What is known of the bank is kept wherever it changed.
    pub(super) fn record(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.recording || (self.recorded.is_none() && self.file_is_in_trouble(now)) {
            return;
        }
        let why = self.breaker.why();
        let record = Record {
            bank: self.promise.as_ref().map(|promise| promise.identity.clone()),
            hold_until: self.hold_until,
            paused: match why {
                Some(Why::Refused(name)) => Some(name.clone()),
                _ => None,
            },
            reachable: match why {
                None | Some(Why::Trouble(_)) => Some(true),
                // It answers; that it refuses us is told apart.
                Some(Why::Refused(_)) => Some(true),
                Some(Why::Transport(_)) => Some(false),
                Some(Why::NotAsked) => None,
            },
            why: match why {
                Some(Why::Transport(name) | Why::Trouble(name) | Why::Refused(name)) => Some(name.clone()),
                None | Some(Why::NotAsked) => self.failing.why().map(str::to_owned),
            },
            // What is asked next tells a bank that fails how it is, too.
            probe_at: self.breaker.probe_at().or(self.failing.ask_at()),
            introduced_at: self.introduced_at,
            clock_gap_s: self.clock_gap.map(|gap| gap.as_secs()),
        };
        if self.recorded.as_ref() != Some(&record) {
            self.recorded = Some(record.clone());
            self.recording = true;
            effects.push(Effect::Record(Box::new(record)));
        }
    }
}
