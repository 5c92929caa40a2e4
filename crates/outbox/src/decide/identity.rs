//! Who the bank is that answers, what its clock says, and what waits for another one.

use jiff::{SignedDuration, Timestamp};

use super::flight::InFlight;
use super::{Queue, after};
use crate::answer::Reading;
use crate::backoff::Random;
use crate::breaker::Why;
use crate::contract::Promise;
use crate::failing::Failing;
use crate::outcome;
use crate::pacing::Drain;
use crate::step::{Effect, MakeDue, Which};

/// More than answers that came late can make of the gap between two clocks: one of them was set.
const GAP_SET: SignedDuration = SignedDuration::from_mins(2);

/// Asking again who the bank is, while operations wait for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtherBank {
    at: Timestamp,
    asked: u32,
    asking: bool,
}

impl OtherBank {
    pub(super) fn ask_if_due(&mut self, now: Timestamp) -> Option<Effect> {
        self.ask_at().filter(|at| *at <= now)?;
        self.asking = true;
        Some(Effect::Introduce)
    }

    pub(super) fn ask_at(&self) -> Option<Timestamp> {
        (!self.asking).then_some(self.at)
    }
}

impl Queue {
    /// Another address, or another secret at the same one.
    pub(super) fn bank_changed(&mut self, same_address: bool, now: Timestamp) {
        self.breaker.reopen(now);
        self.failing = Failing::default();
        self.promise = None;
        self.clock_gap = None;
        self.other_bank = None;
        self.answers_at_once = false;
        if !same_address {
            self.hold_until = None;
            self.drain = None;
            self.in_flight.values_mut().for_each(InFlight::leave_behind);
        }
        self.make_due(Which::All, SignedDuration::ZERO);
    }

    pub(super) fn introduced(&mut self, answer: Result<Promise, Reading>, now: Timestamp, random: &mut Random) {
        let backoff = self.settings.backoff;
        if let Some(other) = &mut self.other_bank {
            other.asked = other.asked.saturating_add(1);
            other.at = after(now, backoff.delay(other.asked, random));
            other.asking = false;
        }
        match answer {
            // It works for others meanwhile.
            Err(Reading::Trouble(_)) if self.breaker.is_closed() => {}
            Ok(promise) => {
                self.promise = Some(promise);
                self.introduced_at = Some(now);
                if self.breaker.close() {
                    self.drain = Some(Drain::from(now, &self.settings));
                    self.make_due(Which::Transport, SignedDuration::ZERO);
                }
                self.scan_soon(now);
            }
            Err(reading) => {
                let why = match &reading {
                    Reading::NotAllowed(name) => Why::Refused(name.to_string()),
                    reading if reading.is_transport() => Why::Transport(reading.name().into_owned()),
                    reading => Why::Trouble(reading.name().into_owned()),
                };
                self.breaker.probe_failed(why, backoff, now, random);
                if let Reading::Busy { retry_after, .. } = reading {
                    self.hold(after(now, outcome::hold(retry_after, &self.settings, random)));
                }
            }
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.other_bank.as_ref().is_some_and(|other| other.asking)
    }

    pub(super) fn ask_other_now(&mut self, now: Timestamp) {
        if let Some(other) = &mut self.other_bank {
            other.at = other.at.min(now);
        }
    }

    /// What waits for another bank is as due as anything. Nothing is sent here that could fail and so have the bank asked who it is,
    /// so it is asked by itself, again and again, whether the other one is back.
    pub(super) fn found_of_others(&mut self, found: Option<bool>, now: Timestamp, random: &mut Random) {
        match found {
            Some(true) if self.other_bank.is_none() => {
                let at = after(now, self.settings.backoff.delay(1, random));
                self.other_bank = Some(OtherBank { at, asked: 1, asking: false });
            }
            Some(false) if !self.is_asking() => self.other_bank = None,
            _ => {}
        }
    }

    /// Only a gap that is another than the one known is kept: answers tell whole seconds, and come late.
    pub(super) fn bank_time(&mut self, at: Timestamp, now: Timestamp) {
        let gap = now.duration_since(at);
        // By the bank's clock more time has passed than by ours: one of them was set. What the bank keeps, it keeps by its own.
        if let Some(known) = self.clock_gap
            && known.saturating_sub(gap) > GAP_SET
        {
            let aged = known.saturating_sub(gap);
            self.make_due_as(MakeDue { which: Which::All, shift: SignedDuration::ZERO, aged });
        }
        let is_known = self.clock_gap.is_some_and(|known| known.saturating_sub(gap).abs() <= self.settings.drift_max);
        if !is_known {
            self.clock_gap = Some(gap);
        }
    }
}
