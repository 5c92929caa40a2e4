//! A call under way: made durable, made, and its outcome made durable.

use jiff::{SignedDuration, Timestamp};
use protocol::Key;

use super::{Queue, after};
use crate::answer::Reading;
use crate::backoff::Random;
use crate::breaker::Why;
use crate::outcome::{self, Change};
use crate::pacing::Drain;
use crate::state::{Ask, State};
use crate::step::{Effect, Row};

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Being made durable.
    Beginning,
    /// On its way.
    Calling,
    /// Its outcome is being made durable; tried again at that time where it could not be.
    Saving { change: Box<Change>, retry_at: Option<Timestamp> },
}

/// One operation that a call runs for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    row: Row,
    ask: Ask,
    begun: bool,
    /// Whether the bank that it was begun for promised to keep its claims.
    permanent: bool,
    /// The queue has gone on to another address since: the answer says nothing about the bank that is asked now.
    elsewhere: bool,
    stage: Stage,
}

impl InFlight {
    /// One that begins.
    pub(super) const fn new(row: Row, ask: Ask, permanent: bool) -> InFlight {
        InFlight { row, ask, begun: false, permanent, elsewhere: false, stage: Stage::Beginning }
    }

    pub(super) const fn row(&self) -> &Row {
        &self.row
    }

    /// The queue goes on to another address.
    pub(super) const fn is_left_behind(&mut self) {
        self.elsewhere = true;
    }

    /// Goes over to saving that change.
    fn save(&mut self, change: Change) -> Effect {
        self.stage = Stage::Saving { change: Box::new(change), retry_at: None };
        self.save_again().unwrap_or(Effect::Abandon(self.row.key))
    }

    const fn is_saving(&self) -> bool {
        matches!(self.stage, Stage::Saving { .. })
    }

    /// When its outcome is saved again, where it could not be.
    pub(super) fn save_again_at(&self) -> Option<Timestamp> {
        let Stage::Saving { retry_at, .. } = &self.stage else { return None };
        *retry_at
    }

    /// The clock jumped: an outcome that could not be saved is due.
    pub(super) fn save_again_now(&mut self, now: Timestamp) {
        if let Stage::Saving { retry_at: Some(at), .. } = &mut self.stage {
            *at = now;
        }
    }

    pub(super) fn save_again_if_due(&mut self, now: Timestamp) -> Option<Effect> {
        let Stage::Saving { retry_at, .. } = &mut self.stage else { return None };
        retry_at.take_if(|at| *at <= now)?;
        self.save_again()
    }

    /// The change that is being saved, once more.
    fn save_again(&self) -> Option<Effect> {
        let Stage::Saving { change, .. } = &self.stage else { return None };
        let expected = if self.begun && self.ask.sends() { State::Sending } else { self.row.state };
        Some(Effect::Save { key: self.row.key, expected, begun: self.begun, change: change.clone() })
    }
}

impl Queue {
    /// Whether one more may be called for. What has its answer and only waits for the file holds no place at the bank; but no more
    /// than as many again may wait so, lest a slow file has answers pile up here.
    pub(super) fn has_place(&self) -> bool {
        let most = if self.failing.is_everything() { 1 } else { self.settings.in_flight_max };
        let saving = self.in_flight.values().filter(|flight| flight.is_saving()).count();
        self.in_flight.len() - saving < most && saving <= most
    }

    /// Whether an outcome is on its way into the file. A look waits for it: beside it, whether it saw what is next in a lane would be
    /// a matter of luck.
    pub(super) fn is_saving(&self) -> bool {
        self.in_flight.values().any(InFlight::is_saving)
    }

    pub(super) fn begun(&mut self, key: Key, now: Timestamp, effects: &mut Vec<Effect>) {
        self.file_failures = 0;
        let held = self.hold_until.is_some_and(|until| until > now);
        let may_call = self.breaker.is_closed() && !held && !self.stopping;
        let why = if self.stopping { "stopped" } else { "put-back" };
        let Some(flight) = self.in_flight.get_mut(&key).filter(|flight| flight.stage == Stage::Beginning) else {
            return;
        };
        flight.begun = true;
        if may_call {
            flight.stage = Stage::Calling;
            effects.push(Effect::Call { key, ask: flight.ask });
        } else {
            // The bank went away, or asked to wait, while this was being made durable: counted and not sent.
            let change = outcome::broken_off(&flight.row, flight.ask, false, why, now);
            effects.push(flight.save(change));
        }
    }

    pub(super) fn answered(
        &mut self,
        key: Key,
        reading: &Reading,
        now: Timestamp,
        random: &mut Random,
        effects: &mut Vec<Effect>,
    ) {
        let Some(flight) = self.in_flight.get_mut(&key).filter(|flight| flight.stage == Stage::Calling) else { return };
        let mut change =
            outcome::settle(&flight.row, flight.ask, reading, flight.permanent, &self.settings, now, random);
        let elsewhere = flight.elsewhere;
        if let Reading::Busy { retry_after, .. } = reading
            && !elsewhere
        {
            // In the same commit: a process that dies then must not come back too early.
            let until = after(now, outcome::hold(*retry_after, &self.settings, random));
            change.hold_until = Some(until);
            effects.push(flight.save(change));
            self.hold(until);
        } else {
            effects.push(flight.save(change));
        }
        if elsewhere {
            return;
        }
        let backoff = self.settings.backoff;
        match reading {
            Reading::Final { .. } | Reading::Cancelled => self.breaker.completed(),
            Reading::Trouble(problem) => {
                self.failing.failed(key, problem, self.settings.in_flight_max, backoff, now, random);
            }
            Reading::NotAllowed(name) => {
                self.breaker.trip(Why::Refused((*name).to_owned()), backoff, now, random);
            }
            reading if reading.is_transport() => {
                self.breaker.trip(Why::Transport(reading.name().to_owned()), backoff, now, random);
            }
            _ => {}
        }
        if says_that_it_works(reading) && self.failing.completed() {
            // Whoever waited for it waited together.
            self.drain = Some(Drain::from(now, &self.settings));
        }
        if !reading.is_transport() && matches!(self.breaker.why(), Some(Why::Transport(_))) {
            // The bank is there after all; it only has to say who it is.
            self.breaker.bring_forward(SignedDuration::ZERO, now);
        }
    }

    /// The bank asked everybody to come later.
    pub(super) fn hold(&mut self, until: Timestamp) {
        self.hold_until = Some(self.hold_until.map_or(until, |held| held.max(until)));
        self.drain = Some(Drain::from(until, &self.settings));
    }

    pub(super) fn panicked(&mut self, key: Key, now: Timestamp, random: &mut Random, effects: &mut Vec<Effect>) {
        let Some(flight) = self.in_flight.get_mut(&key) else { return };
        let mut change = outcome::panicked(&flight.row, flight.ask, flight.begun, &self.settings, now, random);
        if let Stage::Saving { change: unsaved, .. } = &flight.stage {
            // What the bank said would be lost with the change that can't be saved.
            change.reading = unsaved.reading;
            change.detail.clone_from(&unsaved.detail);
            change.not_before = unsaved.not_before;
        }
        // A panic while the panic is being saved must not lose count.
        flight.row.panics = change.panics;
        effects.push(flight.save(change));
    }

    pub(super) fn saved(&mut self, key: Key, now: Timestamp) {
        if self.in_flight.get(&key).is_some_and(InFlight::is_saving) {
            self.in_flight.remove(&key);
        }
        self.file_failures = 0;
        self.look_soon(now);
    }

    pub(super) fn save_failed(&mut self, key: Key, now: Timestamp, random: &mut Random) {
        self.file_failed(now, random);
        let again_at = self.file_until;
        if let Some(InFlight { stage: Stage::Saving { retry_at, .. }, .. }) = self.in_flight.get_mut(&key) {
            // What the bank said stays here until the file takes it.
            *retry_at = again_at;
        }
    }

    /// Breaks off what is on its way. What is being made durable goes on.
    pub(super) fn stop(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.stopping = true;
        for (key, flight) in &mut self.in_flight {
            if flight.stage == Stage::Calling {
                effects.push(Effect::Abandon(*key));
                let change = outcome::broken_off(&flight.row, flight.ask, true, "stopped", now);
                effects.push(flight.save(change));
            }
        }
    }
}

/// Whether the bank did what it was asked for, whatever came of it.
fn says_that_it_works(reading: &Reading) -> bool {
    let does_not = matches!(reading, Reading::Trouble(_) | Reading::Busy { .. } | Reading::NotAllowed(_));
    reading.is_the_banks_word() && !does_not
}
