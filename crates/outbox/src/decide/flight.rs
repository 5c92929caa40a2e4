//! A call under way: made durable, made, and its outcome made durable.
//!
//! What makes it durable takes about as long as the bank's answer. So while the bank answers at once, as many again as may be called
//! for are begun ahead, and called the moment that a place is free. One that has stood ready for too long is put back: in the
//! file it looks as if it were on its way, and somebody may want to cancel it.

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

/// Answers that come within that time are at once: others are begun ahead of their call.
const AT_ONCE: SignedDuration = SignedDuration::from_millis(50);

/// How long one that was begun ahead stands ready for its call: longer than several answers take that come at once. For so long it
/// is `sending` in the file and not on its way.
const READY_FOR: SignedDuration = SignedDuration::from_millis(200);

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Being made durable. What is asked was decided then.
    Beginning { since: Timestamp },
    /// Begun ahead: durable, and called once there is a place.
    Ready { since: Timestamp },
    /// On its way.
    Calling { since: Timestamp },
    /// Its outcome is being made durable; tried again at that time where it could not be.
    Saving {
        change: Box<Change>,
        retry_at: Option<Timestamp>,
        /// An earlier try failed.
        again: bool,
    },
}

/// One operation that a call runs for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    row: Row,
    ask: Ask,
    begun: bool,
    /// It was perhaps sent.
    called: bool,
    /// Whether the bank that it was begun for promised to keep its claims.
    permanent: bool,
    /// The queue has gone on to another address since: the answer says nothing about the bank that is asked now.
    elsewhere: bool,
    stage: Stage,
}

impl InFlight {
    /// One that begins.
    pub(super) const fn new(row: Row, ask: Ask, permanent: bool, now: Timestamp) -> InFlight {
        InFlight {
            row,
            ask,
            begun: false,
            called: false,
            permanent,
            elsewhere: false,
            stage: Stage::Beginning { since: now },
        }
    }

    pub(super) const fn row(&self) -> &Row {
        &self.row
    }

    /// The queue goes on to another address.
    pub(super) const fn leave_behind(&mut self) {
        self.elsewhere = true;
    }

    /// Goes over to saving that change.
    fn save(&mut self, change: Change) -> Effect {
        let effect = self.saving(&change);
        self.stage = Stage::Saving { change: Box::new(change), retry_at: None, again: false };
        effect
    }

    fn saving(&self, change: &Change) -> Effect {
        let expected = if self.begun && self.ask.sends() { State::Sending } else { self.row.state };
        Effect::Save { key: self.row.key, expected, begun: self.begun, change: Box::new(change.clone()) }
    }

    const fn is_saving(&self) -> bool {
        matches!(self.stage, Stage::Saving { .. })
    }

    /// Whether its outcome is on its way into the file for the first time.
    const fn is_saving_first(&self) -> bool {
        matches!(self.stage, Stage::Saving { again: false, .. })
    }

    const fn is_calling(&self) -> bool {
        matches!(self.stage, Stage::Calling { .. })
    }

    const fn ready_since(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Ready { since } => Some(since),
            _ => None,
        }
    }

    /// When it has stood ready for too long.
    pub(super) fn put_back_at(&self) -> Option<Timestamp> {
        self.ready_since().map(|since| after(since, READY_FOR))
    }

    fn call(&mut self, stood_ready: bool, now: Timestamp) -> Effect {
        self.stage = Stage::Calling { since: now };
        self.called = true;
        Effect::Call { key: self.row.key, ask: self.ask, stood_ready }
    }

    /// Counted and not sent.
    fn put_back(&mut self, why: &'static str, now: Timestamp) -> Effect {
        let change = outcome::broken_off(&self.row, self.ask, false, why, now);
        self.save(change)
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
        Some(self.saving(change))
    }
}

impl Queue {
    /// Whether one more may be begun. What has its answer and only waits for the file holds no place at the bank; but no more
    /// than as many again may wait so, lest a slow file has answers pile up here.
    pub(super) fn has_place(&self) -> bool {
        let most = self.calls_max();
        let most_begun = if self.may_begin_ahead() { 2 * most } else { most };
        let saving = self.in_flight.values().filter(|flight| flight.is_saving()).count();
        self.in_flight.len() - saving < most_begun && saving <= most
    }

    /// Calls that run.
    fn calls(&self) -> usize {
        self.in_flight.values().filter(|flight| flight.is_calling()).count()
    }

    /// Calls at once, at most.
    fn calls_max(&self) -> usize {
        if self.failing.is_everything() { 1 } else { self.settings.in_flight_max }
    }

    /// Whether the bank answers so quickly that what is begun ahead is soon called. Not while it is spared.
    fn may_begin_ahead(&self) -> bool {
        self.answers_at_once && self.drain.is_none() && !self.failing.is_everything()
    }

    /// Whether the bank may be asked for anything.
    pub(super) fn may_call(&self, now: Timestamp) -> bool {
        let is_held = self.hold_until.is_some_and(|until| until > now);
        let is_failing = self.failing.ask_at().is_some_and(|until| until > now);
        self.breaker.is_closed() && !is_held && !is_failing && !self.stopping
    }

    /// Calls for those that stand ready, the longest first, as far as there is a place; puts them back where that can't be soon.
    pub(super) fn go_on_with_ready(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let may_call = self.may_call(now) && !self.file_is_in_trouble(now);
        let mut ready: Vec<_> =
            self.in_flight.iter().filter_map(|(key, flight)| Some((flight.ready_since()?, *key))).collect();
        ready.sort_unstable();
        let mut places = self.calls_max().saturating_sub(self.calls());
        for (since, key) in ready {
            // By a clock that was set back nobody knows for how long.
            let is_late = since > now || after(since, READY_FOR) <= now;
            // The answers don't come at once any more.
            self.answers_at_once &= !is_late;
            let why = self.why_not();
            let Some(flight) = self.in_flight.get_mut(&key) else { continue };
            if !may_call || is_late {
                effects.push(flight.put_back(why, now));
            } else if places > 0 {
                places -= 1;
                effects.push(flight.call(true, now));
            }
        }
    }

    /// What is written of one that was counted and not sent.
    const fn why_not(&self) -> &'static str {
        if self.stopping { "stopped" } else { "put-back" }
    }

    /// Whether an outcome is on its way into the file that a scan waits for: beside it, whether it saw what is next in a lane would be
    /// a matter of luck. Not for one that could not be saved before: it may be that one alone, for ever, and its lane waits anyway.
    pub(super) fn must_scan_wait(&self) -> bool {
        self.in_flight.values().any(InFlight::is_saving_first)
    }

    pub(super) fn begun(&mut self, key: Key, now: Timestamp, effects: &mut Vec<Effect>) {
        self.file_failures = 0;
        let is_callable = self.calls() < self.calls_max();
        let (may_call, why) = (self.may_call(now), self.why_not());
        let deadline = self.settings.deadline;
        let Some(flight) = self.in_flight.get_mut(&key) else { return };
        let Stage::Beginning { since } = flight.stage else { return };
        flight.begun = true;
        // The machine slept meanwhile, or the clock was set: the bank may have forgotten what it was to be asked.
        let is_stale = !(SignedDuration::ZERO..=deadline).contains(&now.duration_since(since));
        if !may_call || is_stale {
            effects.push(flight.put_back(why, now));
        } else if is_callable {
            effects.push(flight.call(false, now));
        } else {
            flight.stage = Stage::Ready { since: now };
        }
    }

    /// A wish to cancel it came while it stood ready, or the file can't be read.
    pub(super) fn not_called(&mut self, key: Key, now: Timestamp, effects: &mut Vec<Effect>) {
        let why = self.why_not();
        if let Some(flight) = self.in_flight.get_mut(&key).filter(|flight| flight.is_calling()) {
            flight.called = false;
            effects.push(flight.put_back(why, now));
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
        let Some(flight) = self.in_flight.get_mut(&key) else { return };
        let Stage::Calling { since } = flight.stage else { return };
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
        self.answers_at_once =
            says_that_it_works(reading) && (SignedDuration::ZERO..=AT_ONCE).contains(&now.duration_since(since));
        let backoff = self.settings.backoff;
        match reading {
            Reading::Final { .. } | Reading::Cancelled => self.breaker.completed(),
            Reading::Trouble(problem) => {
                self.failing.failed(key, problem.clone(), self.settings.in_flight_max, backoff, now, random);
            }
            Reading::NotAllowed(name) => {
                self.breaker.trip(Why::Refused(name.to_string()), backoff, now, random);
            }
            reading if reading.is_transport() => {
                self.breaker.trip(Why::Transport(reading.name().into_owned()), backoff, now, random);
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
        let mut change = outcome::panicked(&flight.row, flight.ask, flight.called, &self.settings, now, random);
        if let Stage::Saving { change: unsaved, .. } = &flight.stage {
            // What the bank said would be lost with the change that can't be saved.
            change.reading.clone_from(&unsaved.reading);
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
        self.scan_soon(now);
    }

    pub(super) fn save_failed(&mut self, key: Key, now: Timestamp, random: &mut Random) {
        self.file_failed(now, random);
        let again_at = self.file_until;
        if let Some(InFlight { stage: Stage::Saving { retry_at, again, .. }, .. }) = self.in_flight.get_mut(&key) {
            // What the bank said stays here until the file takes it.
            *retry_at = again_at;
            *again = true;
        }
    }

    /// Breaks off what is on its way. What is being made durable goes on.
    pub(super) fn stop(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.stopping = true;
        for (key, flight) in &mut self.in_flight {
            if flight.is_calling() {
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

#[cfg(test)]
mod tests;
