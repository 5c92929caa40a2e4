//! What to do next. Pure and total: no clock, no socket, no file.
//!
//! The state of the queue goes in with one event, the time and some chance; the new state comes out with the effects that a
//! driver performs and reports on. The rows themselves stay in the file; only those in flight are known here.
//!
//! Users of the crate don't need it: [`Outbox`](crate::Outbox) drives it. It is public so that schedules can be run through it
//! that no clock and no socket would give.
//!
#![doc = include_str!("../../../docs/OUTBOX.md")]

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use protocol::Key;

use crate::answer::Reading;
use crate::backoff::Random;
use crate::breaker::{Breaker, Why};
pub use crate::contract::Promise;
use crate::failing::Failing;
use crate::outcome::{self, Change, FAILS_BY_ITSELF};
use crate::pacing::Drain;
use crate::settings::Settings;
use crate::state::{Ask, State};
pub use crate::step::{BankIdentity, Effect, Event, MakeDue, Record, Row, Wake, Which};

/// Rows that one look brings for each place at the bank. A look costs as much as a call does, so one serves many.
const ROWS_PER_PLACE: usize = 32;

/// More than answers that came late can make of the gap between two clocks: one of them was set.
const GAP_SET: SignedDuration = SignedDuration::from_mins(2);

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

#[derive(Clone, Debug, PartialEq, Eq)]
struct InFlight {
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
    /// Goes over to saving that change.
    fn save(&mut self, change: Change) -> Effect {
        self.stage = Stage::Saving { change: Box::new(change), retry_at: None };
        self.save_again().unwrap_or(Effect::Abandon(self.row.key))
    }

    const fn is_saving(&self) -> bool {
        matches!(self.stage, Stage::Saving { .. })
    }

    /// The change that is being saved, once more.
    fn save_again(&self) -> Option<Effect> {
        let Stage::Saving { change, .. } = &self.stage else { return None };
        let expected = if self.begun && self.ask.sends() { State::Sending } else { self.row.state };
        Some(Effect::Save { key: self.row.key, expected, begun: self.begun, change: change.clone() })
    }
}

/// Asking again who the bank is, while operations wait for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OtherBank {
    at: Timestamp,
    asked: u32,
    asking: bool,
}

impl OtherBank {
    fn ask_at(&self) -> Option<Timestamp> {
        (!self.asking).then_some(self.at)
    }
}

/// The state of the queue.
#[derive(Clone, Debug)]
pub struct Queue {
    settings: Settings,
    breaker: Breaker,
    failing: Failing,
    promise: Option<Promise>,
    hold_until: Option<Timestamp>,
    in_flight: BTreeMap<Key, InFlight>,
    drain: Option<Drain>,
    /// What the last look found and there was no place for yet, oldest first. The file may have gone on since: what begins a call
    /// compares its row once more.
    candidates: VecDeque<Row>,
    /// When to look into the file; none while a look is running.
    look_at: Option<Timestamp>,
    look_again: bool,
    making_due: bool,
    to_make_due: Option<MakeDue>,
    /// Somebody has reason to try everything now, and the next time at which that is done.
    wake_wanted: bool,
    waking_from: Option<Timestamp>,
    /// Failed writes and reads in a row, and until when the file is left alone.
    file_failures: u32,
    file_until: Option<Timestamp>,
    introduced_at: Option<Timestamp>,
    clock_gap: Option<SignedDuration>,
    /// Something waits for another bank than the one that answers.
    other_bank: Option<OtherBank>,
    recorded: Option<Record>,
    /// One at a time, so that an older one never comes after a newer.
    recording: bool,
    stopping: bool,
}

/// Takes one event at `now` into the queue, and gives back what is to be done. `random` is all the chance in it, so the same
/// arguments decide the same.
#[must_use]
pub fn decide(mut queue: Queue, event: Event, now: Timestamp, random: u64) -> (Queue, Vec<Effect>) {
    let mut random = Random::new(random);
    let mut effects = Vec::new();
    queue.take(event, now, &mut random, &mut effects);
    queue.go_on(now, &mut effects);
    queue.record(now, &mut effects);
    (queue, effects)
}

impl Queue {
    /// The queue as a start finds it, with the `Retry-After` that the file remembers. Nothing is sent before the bank has
    /// said who it is.
    #[must_use]
    pub fn at_start(settings: Settings, hold_until: Option<Timestamp>, now: Timestamp) -> Queue {
        Queue {
            settings,
            breaker: Breaker::at_start(now),
            failing: Failing::default(),
            promise: None,
            hold_until: hold_until.map(|until| until.min(longest_hold(&settings, now))),
            in_flight: BTreeMap::new(),
            drain: None,
            candidates: VecDeque::new(),
            look_at: Some(now),
            look_again: false,
            making_due: false,
            to_make_due: None,
            wake_wanted: false,
            waking_from: None,
            file_failures: 0,
            file_until: None,
            introduced_at: None,
            clock_gap: None,
            other_bank: None,
            recorded: None,
            recording: false,
            stopping: false,
        }
    }

    /// By how much our clock was ahead of the bank's when that was last known, where the file remembers it: a clock that was set while
    /// nothing ran must not make young what the bank may have forgotten.
    #[must_use]
    pub fn with_clock_gap(self, clock_gap: Option<SignedDuration>) -> Queue {
        Queue { clock_gap, ..self }
    }

    /// When time alone gives the queue something to do. Until then it waits for events.
    #[must_use]
    pub fn wake_at(&self, now: Timestamp) -> Option<Timestamp> {
        let saving = self.in_flight.values().filter_map(|flight| match &flight.stage {
            Stage::Saving { retry_at, .. } => *retry_at,
            _ => None,
        });
        let free = self.has_place() && !self.is_saving();
        let next = if self.breaker.is_closed() {
            let asking = self.other_bank.as_ref().and_then(OtherBank::ask_at);
            // What waits until the rows are due must not keep the loop spinning meanwhile.
            self.look_at.filter(|_| free).into_iter().chain(asking).min().filter(|_| !self.making_due)
        } else {
            self.breaker.probe_at().filter(|_| !self.is_asking())
        };
        let next = next.map(|at| at.max(self.hold_until.unwrap_or(at)).max(self.failing.ask_at().unwrap_or(at)));
        let unwritten = self.recorded.is_none() || (self.to_make_due.is_some() && !self.making_due);
        let waking = self.wake_wanted.then(|| self.waking_from.unwrap_or(now));
        let next = next.into_iter().chain(unwritten.then_some(now)).chain(waking);
        let next = next.map(|at| at.max(self.file_until.unwrap_or(at)));
        saving.chain(next.filter(|_| !self.stopping)).chain(self.hold_until).min()
    }

    /// Whether the queue has been asked to stop and nothing of it is under way.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        self.stopping && self.in_flight.is_empty() && !self.recording
    }

    /// The keys in flight.
    pub fn in_flight(&self) -> impl Iterator<Item = &Key> {
        self.in_flight.keys()
    }

    fn take(&mut self, event: Event, now: Timestamp, random: &mut Random, effects: &mut Vec<Effect>) {
        match event {
            Event::Tick => {}
            Event::Wake(Wake::NewOperation) => self.look_soon(now),
            Event::Wake(Wake::CheckNow | Wake::NetworkChanged) => self.wake_wanted = true,
            Event::BankChanged { same_address } => {
                self.breaker.reopen(now);
                self.failing = Failing::default();
                self.promise = None;
                self.clock_gap = None;
                self.other_bank = None;
                self.hold_until = self.hold_until.filter(|_| same_address);
                self.drain = self.drain.take().filter(|_| same_address);
                for flight in self.in_flight.values_mut() {
                    flight.elsewhere |= !same_address;
                }
                self.make_due(Which::All, SignedDuration::ZERO);
            }
            Event::ClockJumped { by } => self.clock_jumped(by, now),
            Event::Found { rows, next_due_at, other_bank } => {
                self.found(rows, next_due_at, now);
                self.found_of_others(other_bank, now, random);
            }
            Event::LookFailed => {
                self.file_failed(now, random);
                self.look_at = Some(now);
            }
            Event::Begun(key) => self.begun(key, now, effects),
            Event::NotBegun(key) => {
                self.in_flight.remove(&key);
                // Not at once: a row that is found and can't be begun must not keep the loop spinning.
                self.look_soon(after(now, self.settings.backoff.base));
            }
            Event::BeginFailed(key) => {
                self.in_flight.remove(&key);
                self.file_failed(now, random);
                self.look_soon(now);
            }
            Event::Answered(key, reading) => self.answered(key, &reading, now, random, effects),
            Event::Panicked(key) => self.panicked(key, now, random, effects),
            Event::Saved(key) => {
                if let Some(InFlight { stage: Stage::Saving { .. }, .. }) = self.in_flight.get(&key) {
                    self.in_flight.remove(&key);
                }
                self.file_failures = 0;
                self.look_soon(now);
            }
            Event::SaveFailed(key) => self.save_failed(key, now, random),
            Event::Introduced(answer) => self.introduced(answer, now, random),
            Event::BankTime(at) => self.bank_time(at, now),
            Event::MadeDue => {
                self.making_due = false;
                self.look_soon(now);
            }
            Event::MakeDueFailed(again) => {
                self.making_due = false;
                self.file_failed(now, random);
                self.make_due_as(again);
            }
            Event::Recorded => self.recording = false,
            Event::RecordFailed => {
                self.recording = false;
                self.file_failed(now, random);
                self.recorded = None;
            }
            Event::Stop => self.stop(now, effects),
        }
    }

    /// Everything that is due and allowed.
    fn go_on(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        for flight in self.in_flight.values_mut() {
            if let Stage::Saving { retry_at, .. } = &mut flight.stage
                && retry_at.take_if(|at| *at <= now).is_some()
            {
                effects.extend(flight.save_again());
            }
        }
        // A clock that was set back must not hold the queue for longer than the bank may ask for.
        self.hold_until =
            self.hold_until.map(|until| until.min(longest_hold(&self.settings, now))).filter(|&until| until > now);
        self.file_until = self.file_until.map(|until| until.min(after(now, self.settings.backoff.cap)));
        if self.wake_wanted && self.waking_from.is_none_or(|from| from <= now) && !self.stopping {
            self.wake_all(now);
        }
        if !self.may_start_any(now) {
            // What is found once that is over may be other rows.
            self.forget_candidates(now);
        }
        if self.stopping || self.file_is_in_trouble(now) {
            return;
        }
        if !self.making_due
            && let Some(make_due) = self.to_make_due.take()
        {
            self.making_due = true;
            effects.push(Effect::MakeDue(make_due));
        }
        if self.hold_until.is_some() {
            return;
        }
        if !self.breaker.is_closed() {
            if self.breaker.probe_at().is_some_and(|at| at <= now) && !self.is_asking() {
                self.breaker.probe_started(now);
                effects.push(Effect::Introduce);
            }
            return;
        }
        // Not while rows are being made due: their `not_before` may be moving along with the clock.
        if self.making_due || self.failing.ask_at().is_some_and(|until| until > now) {
            return;
        }
        if let Some(other) = &mut self.other_bank
            && other.ask_at().is_some_and(|at| at <= now)
        {
            other.asking = true;
            effects.push(Effect::Introduce);
        }
        let Some(promise) = self.promise.clone() else { return };
        self.start_candidates(&promise, now, effects);
        if self.candidates.is_empty()
            && self.has_place()
            && !self.is_saving()
            && self.look_at.is_some_and(|at| at <= now)
        {
            self.look_at = None;
            // Those in flight may be found again, while their beginning is not durable yet.
            let limit = self.settings.in_flight_max * ROWS_PER_PLACE + self.in_flight.len();
            effects.push(Effect::Look { bank: promise.identity, limit });
        }
    }

    /// Makes everything due, and the bank's probe too. A network that flaps must not have all be asked for again and again, so not
    /// more often than the shortest back-off.
    fn wake_all(&mut self, now: Timestamp) {
        self.wake_wanted = false;
        self.waking_from = Some(after(now, self.settings.backoff.base));
        self.breaker.bring_forward(self.settings.backoff.base, now);
        self.failing.ask_now(now);
        self.ask_other_now(now);
        self.make_due(Which::All, SignedDuration::ZERO);
    }

    fn is_asking(&self) -> bool {
        self.other_bank.as_ref().is_some_and(|other| other.asking)
    }

    fn ask_other_now(&mut self, now: Timestamp) {
        if let Some(other) = &mut self.other_bank {
            other.at = other.at.min(now);
        }
    }

    /// What waits for another bank is as due as anything. Nothing is sent here that could fail and so have the bank asked who it is,
    /// so it is asked by itself, again and again, whether the other one is back.
    fn found_of_others(&mut self, found: Option<bool>, now: Timestamp, random: &mut Random) {
        match found {
            Some(true) if self.other_bank.is_none() => {
                let at = after(now, self.settings.backoff.delay(1, random));
                self.other_bank = Some(OtherBank { at, asked: 1, asking: false });
            }
            Some(false) if !self.is_asking() => self.other_bank = None,
            _ => {}
        }
    }

    /// Whether anything at all may be asked of the bank and written down.
    fn may_start_any(&self, now: Timestamp) -> bool {
        let is_held = self.hold_until.is_some_and(|until| until > now);
        let is_due = !self.making_due && self.to_make_due.is_none();
        let is_failing = self.failing.ask_at().is_some_and(|until| until > now);
        self.breaker.is_closed() && !is_held && !is_failing && is_due && !self.stopping && !self.file_is_in_trouble(now)
    }

    fn forget_candidates(&mut self, now: Timestamp) {
        if !self.candidates.is_empty() {
            self.candidates.clear();
            self.look_soon(now);
        }
    }

    fn file_is_in_trouble(&self, now: Timestamp) -> bool {
        self.file_until.is_some_and(|until| until > now)
    }

    /// Looks into the file at that time at the latest; where a look is running, at once after it.
    fn look_soon(&mut self, by: Timestamp) {
        match self.look_at {
            Some(at) => self.look_at = Some(at.min(by)),
            None => self.look_again = true,
        }
    }

    fn make_due(&mut self, which: Which, shift: SignedDuration) {
        self.make_due_as(MakeDue { which, shift, aged: SignedDuration::ZERO });
    }

    fn make_due_as(&mut self, more: MakeDue) {
        let zero = SignedDuration::ZERO;
        let earlier = self.to_make_due.unwrap_or(MakeDue { which: more.which, shift: zero, aged: zero });
        self.to_make_due = Some(MakeDue {
            which: if earlier.which == Which::All { Which::All } else { more.which },
            shift: earlier.shift.saturating_add(more.shift),
            aged: earlier.aged.saturating_add(more.aged),
        });
    }

    fn file_failed(&mut self, now: Timestamp, random: &mut Random) {
        // Those that failed together are one failure.
        if !self.file_is_in_trouble(now) {
            self.file_failures = self.file_failures.saturating_add(1);
            self.file_until = Some(after(now, self.settings.backoff.delay(self.file_failures, random)));
        }
    }

    fn found(&mut self, rows: Vec<Row>, next_due_at: Option<Timestamp>, now: Timestamp) {
        let again = std::mem::take(&mut self.look_again);
        // However sure the file is that nothing is due, it is looked at again before long.
        let slice = after(now, self.settings.slice);
        self.look_at = Some(if again { now } else { next_due_at.map_or(slice, |at| at.clamp(now, slice)) });
        let mut rows: Vec<_> = rows.into_iter().filter(|row| is_open(row) && !self.is_in_flight(row)).collect();
        // Oldest first, but before what fails by itself, and has all wait for it again and again, goes what does not. What the process
        // died with may kill it again, so whatever can be done before is done before.
        let is_everything = self.failing.is_everything();
        rows.sort_by_key(|row| {
            // Of a bank that fails at everything, one that it never failed at tells most.
            let failures = if is_everything { row.failures } else { u32::from(row.failures >= FAILS_BY_ITSELF) };
            (self.is_alone(row), failures)
        });
        self.candidates = rows.into();
    }

    /// Begins calls for what was found, as far as there is room.
    fn start_candidates(&mut self, promise: &Promise, now: Timestamp, effects: &mut Vec<Effect>) {
        while self.has_place()
            && let Some(row) = self.candidates.pop_front()
        {
            if self.is_in_flight(&row) {
                continue;
            }
            if !self.may_start(&row) {
                // It is to be tried alone, or another one is: whatever ends looks again.
                self.candidates.clear();
                self.look_at = Some(after(now, self.settings.slice));
                break;
            }
            if let Some(drain) = &mut self.drain
                && let Some(wait_until) = drain.take(now)
            {
                self.candidates.push_front(row);
                self.look_at = Some(wait_until);
                break;
            }
            let ask = next_ask(&row, promise, &self.settings, now);
            let flight = InFlight {
                row: row.clone(),
                ask,
                begun: false,
                permanent: promise.permanent,
                elsewhere: false,
                stage: Stage::Beginning,
            };
            self.in_flight.insert(row.key, flight);
            effects.push(Effect::Begin { row, ask, bank: promise.identity.clone() });
        }
        self.drain = self.drain.take().filter(|drain| !drain.is_over(now));
    }

    /// Whether it is in flight itself, or another one of its lane.
    fn is_in_flight(&self, row: &Row) -> bool {
        self.in_flight.values().any(|flight| flight.row.key == row.key || flight.row.lane == row.lane)
    }

    /// Whether one more may be called for. What has its answer and only waits for the file holds no place at the bank; but no more
    /// than as many again may wait so, lest a slow file has answers pile up here.
    fn has_place(&self) -> bool {
        let most = if self.failing.is_everything() { 1 } else { self.settings.in_flight_max };
        let saving = self.in_flight.values().filter(|flight| flight.is_saving()).count();
        self.in_flight.len() - saving < most && saving <= most
    }

    /// Whether an outcome is on its way into the file. A look waits for it: beside it, whether it saw what is next in a lane would be
    /// a matter of luck.
    fn is_saving(&self) -> bool {
        self.in_flight.values().any(InFlight::is_saving)
    }

    /// Whether it may join those in flight: one that the process died with twice is tried alone.
    fn may_start(&self, row: &Row) -> bool {
        self.in_flight.is_empty()
            || !(self.is_alone(row) || self.in_flight.values().any(|flight| self.is_alone(&flight.row)))
    }

    const fn is_alone(&self, row: &Row) -> bool {
        row.deaths >= self.settings.deaths_alone
    }

    fn begun(&mut self, key: Key, now: Timestamp, effects: &mut Vec<Effect>) {
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

    fn answered(
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
    fn hold(&mut self, until: Timestamp) {
        self.hold_until = Some(self.hold_until.map_or(until, |held| held.max(until)));
        self.drain = Some(Drain::from(until, &self.settings));
    }

    fn panicked(&mut self, key: Key, now: Timestamp, random: &mut Random, effects: &mut Vec<Effect>) {
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

    fn save_failed(&mut self, key: Key, now: Timestamp, random: &mut Random) {
        self.file_failed(now, random);
        let again_at = self.file_until;
        if let Some(InFlight { stage: Stage::Saving { retry_at, .. }, .. }) = self.in_flight.get_mut(&key) {
            // What the bank said stays here until the file takes it.
            *retry_at = again_at;
        }
    }

    /// Only a gap that is another than the one known is kept: answers tell whole seconds, and come late.
    fn bank_time(&mut self, at: Timestamp, now: Timestamp) {
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

    fn introduced(&mut self, answer: Result<Promise, Reading>, now: Timestamp, random: &mut Random) {
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
                self.look_soon(now);
            }
            Err(reading) => {
                let why = match &reading {
                    Reading::NotAllowed(name) => Why::Refused((*name).to_owned()),
                    reading if reading.is_transport() => Why::Transport(reading.name().to_owned()),
                    reading => Why::Trouble(reading.name().to_owned()),
                };
                self.breaker.probe_failed(why, backoff, now, random);
                if let Reading::Busy { retry_after, .. } = reading {
                    self.hold(after(now, outcome::hold(retry_after, &self.settings, random)));
                }
            }
        }
    }

    fn clock_jumped(&mut self, by: SignedDuration, now: Timestamp) {
        // What is left of a Retry-After is left, whatever the clock says now.
        self.hold_until = self.hold_until.map(|until| after(until, by));
        self.breaker.forget_times(now);
        self.failing.ask_now(now);
        self.ask_other_now(now);
        self.waking_from = None;
        self.drain = self.drain.take().map(|drain| drain.shifted(by));
        // Which of the two clocks was right is seen at the next answer.
        self.clock_gap = None;
        self.file_until = None;
        for flight in self.in_flight.values_mut() {
            if let Stage::Saving { retry_at: Some(at), .. } = &mut flight.stage {
                *at = now;
            }
        }
        if self.look_at.is_some() {
            self.look_at = Some(now);
        }
        self.make_due(Which::All, by);
    }

    fn stop(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.stopping = true;
        for (key, flight) in &mut self.in_flight {
            if flight.stage == Stage::Calling {
                effects.push(Effect::Abandon(*key));
                let change = outcome::broken_off(&flight.row, flight.ask, true, "stopped", now);
                effects.push(flight.save(change));
            }
        }
    }

    /// What is known of the bank is kept wherever it changed.
    fn record(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
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

fn after(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.saturating_add(delay).unwrap_or(now)
}

fn longest_hold(settings: &Settings, now: Timestamp) -> Timestamp {
    after(now, settings.retry_after_max + settings.retry_after_jitter)
}

/// Whether the bank did what it was asked for, whatever came of it.
fn says_that_it_works(reading: &Reading) -> bool {
    let does_not = matches!(reading, Reading::Trouble(_) | Reading::Busy { .. } | Reading::NotAllowed(_));
    reading.is_the_banks_word() && !does_not
}

/// Whether anything is asked for it: of what has ended, only for what was cancelled here and is still to be told.
fn is_open(row: &Row) -> bool {
    match row.state {
        State::Saved | State::Sending | State::Unknown | State::NeedsAttention => true,
        State::Cancelled => row.ask == Ask::Cancel,
        State::Approved | State::Declined => false,
    }
}

/// What is asked for a row: one that was perhaps sent so long ago that the bank dropped its response is looked up first.
fn next_ask(row: &Row, promise: &Promise, settings: &Settings, now: Timestamp) -> Ask {
    let is_old = row.first_sent_at.is_some_and(|at| promise.may_have_dropped(now.duration_since(at), settings));
    match (row.state, row.ask) {
        // A bank that forgets would say of what it charged and forgot that it never will.
        (state, Ask::Cancel) if is_old && !promise.permanent && !state.is_final() => Ask::LookUp,
        (_, Ask::Cancel) => Ask::Cancel,
        (State::NeedsAttention, _) => Ask::LookUp,
        (State::Saved, _) => Ask::Send,
        // The bank was looked up just now, and forgets nothing: else an unknown key may be one that it charged.
        (_, Ask::Resend) => {
            if promise.permanent {
                Ask::Send
            } else {
                Ask::LookUp
            }
        }
        (_, Ask::Send) if is_old => Ask::LookUp,
        (_, ask) => ask,
    }
}
