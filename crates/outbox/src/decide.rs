//! What to do next. Pure and total: no clock, no socket, no file.
//!
//! The state of the queue goes in with one event, the time and some chance; the new state comes out with the effects that a
//! driver performs and reports on. The rows themselves stay in the file; only those in flight are known here.
//!
//! Users of the crate don't need it: [`Outbox`](crate::Outbox) drives it. It is public, with the types that only it deals in, so
//! that tests can run schedules through it that no clock and no socket would give. What is in here may change with any version.
//!
#![doc = include_str!("../../../docs/OUTBOX.md")]

mod candidates;
mod flight;
mod identity;
mod recording;

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use protocol::Key;

pub use crate::backoff::Random;
use crate::breaker::Breaker;
pub use crate::contract::Promise;
use crate::failing::Failing;
pub use crate::outcome::Change;
use crate::pacing::Drain;
use crate::settings::Settings;
pub use crate::state::Next;
pub use crate::step::{BankIdentity, Effect, Event, MakeDue, Record, Row, Wake, Which};

use flight::InFlight;
use identity::OtherBank;

/// Rows that one scan of the file brings for each place at the bank. A scan costs as much as a call does, so one serves many.
const ROWS_PER_PLACE: usize = 32;

/// The state of the queue.
#[derive(Clone, Debug)]
pub struct Queue {
    settings: Settings,
    breaker: Breaker,
    failing: Failing,
    promise: Option<Promise>,
    hold_until: Option<Timestamp>,
    in_flight: BTreeMap<Key, InFlight>,
    /// The last answer came at once, and was one that says that the bank works.
    answers_at_once: bool,
    drain: Option<Drain>,
    /// What the last scan found and there was no place for yet, oldest first. The file may have gone on since: what begins a call
    /// compares its row once more.
    candidates: VecDeque<Row>,
    /// When to scan the file for what is due; none while a scan is running.
    scan_at: Option<Timestamp>,
    scan_again: bool,
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
            answers_at_once: false,
            drain: None,
            candidates: VecDeque::new(),
            scan_at: Some(now),
            scan_again: false,
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
        let saving = self.in_flight.values().filter_map(InFlight::save_again_at);
        let ready = self.in_flight.values().filter_map(InFlight::put_back_at);
        let free = self.has_place() && !self.must_scan_wait();
        let next = if self.breaker.is_closed() {
            let asking = self.other_bank.as_ref().and_then(OtherBank::ask_at);
            // What waits until the rows are due must not keep the loop spinning meanwhile.
            self.scan_at.filter(|_| free).into_iter().chain(asking).min().filter(|_| !self.making_due)
        } else {
            self.breaker.probe_at().filter(|_| !self.is_asking())
        };
        let next = next.map(|at| at.max(self.hold_until.unwrap_or(at)).max(self.failing.ask_at().unwrap_or(at)));
        let unwritten = self.recorded.is_none() || (self.to_make_due.is_some() && !self.making_due);
        let waking = self.wake_wanted.then(|| self.waking_from.unwrap_or(now));
        let next = next.into_iter().chain(unwritten.then_some(now)).chain(waking);
        let next = next.map(|at| at.max(self.file_until.unwrap_or(at)));
        saving.chain(ready).chain(next.filter(|_| !self.stopping)).chain(self.hold_until).min()
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
            Event::Wake(Wake::NewOperation) => self.scan_soon(now),
            Event::Wake(Wake::CheckNow | Wake::NetworkChanged) => self.wake_wanted = true,
            Event::BankChanged { same_address } => self.bank_changed(same_address, now),
            Event::ClockJumped { by } => self.clock_jumped(by, now),
            Event::Found { rows, next_due_at, other_bank } => {
                self.found(rows, next_due_at, now);
                self.found_of_others(other_bank, now, random);
            }
            Event::ScanFailed => {
                self.file_failed(now, random);
                self.scan_at = Some(now);
            }
            Event::Begun(key) => self.begun(key, now, effects),
            Event::NotBegun(key) => {
                self.in_flight.remove(&key);
                // Not at once: a row that is found and can't be begun must not keep the loop spinning.
                self.scan_soon(after(now, self.settings.backoff.base));
            }
            Event::BeginFailed(key) => {
                self.in_flight.remove(&key);
                self.file_failed(now, random);
                self.scan_soon(now);
            }
            Event::NotCalled(key) => self.not_called(key, now, effects),
            Event::Answered(key, reading) => self.answered(key, &reading, now, random, effects),
            Event::Panicked(key) => self.panicked(key, now, random, effects),
            Event::Saved(key) => self.saved(key, now),
            Event::SaveFailed(key) => self.save_failed(key, now, random),
            Event::Introduced(answer) => self.introduced(answer, now, random),
            Event::BankTime(at) => self.bank_time(at, now),
            Event::MadeDue => {
                self.making_due = false;
                self.scan_soon(now);
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
            effects.extend(flight.save_again_if_due(now));
        }
        // A clock that was set back must not hold the queue for longer than the bank may ask for.
        self.hold_until =
            self.hold_until.map(|until| until.min(longest_hold(&self.settings, now))).filter(|&until| until > now);
        self.file_until = self.file_until.map(|until| until.min(after(now, self.settings.backoff.cap)));
        if self.wake_wanted && self.waking_from.is_none_or(|from| from <= now) && !self.stopping {
            self.wake_all(now);
        }
        self.go_on_with_ready(now, effects);
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
        effects.extend(self.other_bank.as_mut().and_then(|other| other.ask_if_due(now)));
        let Some(promise) = self.promise.clone() else { return };
        self.start_candidates(&promise, now, effects);
        if self.candidates.is_empty()
            && self.has_place()
            && !self.must_scan_wait()
            && self.scan_at.is_some_and(|at| at <= now)
        {
            self.scan_at = None;
            // Those in flight may be found again, while their beginning is not durable yet.
            let limit = self.settings.in_flight_max * ROWS_PER_PLACE + self.in_flight.len();
            effects.push(Effect::Scan { bank: promise.identity, limit });
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

    /// Whether anything at all may be asked of the bank and written down.
    fn may_start_any(&self, now: Timestamp) -> bool {
        let is_due = !self.making_due && self.to_make_due.is_none();
        self.may_call(now) && is_due && !self.file_is_in_trouble(now)
    }

    fn file_is_in_trouble(&self, now: Timestamp) -> bool {
        self.file_until.is_some_and(|until| until > now)
    }

    /// Scans the file at that time at the latest; where a scan is running, at once after it.
    fn scan_soon(&mut self, by: Timestamp) {
        match self.scan_at {
            Some(at) => self.scan_at = Some(at.min(by)),
            None => self.scan_again = true,
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
            flight.save_again_now(now);
        }
        if self.scan_at.is_some() {
            self.scan_at = Some(now);
        }
        self.make_due(Which::All, by);
    }
}

fn after(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.saturating_add(delay).unwrap_or(now)
}

fn longest_hold(settings: &Settings, now: Timestamp) -> Timestamp {
    after(now, settings.retry_after_max + settings.retry_after_jitter)
}
