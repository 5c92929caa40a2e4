//! What is due: taken as the file gave it, put in order, and begun as far as there is room.

use jiff::Timestamp;

use super::flight::InFlight;
use super::{Queue, after};
use crate::contract::Promise;
use crate::outcome::FAILS_BY_ITSELF;
use crate::settings::Settings;
use crate::state::{Ask, Next, State};
use crate::step::{Effect, Row};

impl Queue {
    pub(super) fn found(&mut self, rows: Vec<Row>, next_due_at: Option<Timestamp>, now: Timestamp) {
        let again = std::mem::take(&mut self.scan_again);
        // However sure the file is that nothing is due, it is scanned again before long.
        let slice = after(now, self.settings.slice);
        self.scan_at = Some(if again { now } else { next_due_at.map_or(slice, |at| at.clamp(now, slice)) });
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

    pub(super) fn forget_candidates(&mut self, now: Timestamp) {
        if !self.candidates.is_empty() {
            self.candidates.clear();
            self.scan_soon(now);
        }
    }

    /// Begins calls for what was found, as far as there is room.
    pub(super) fn start_candidates(&mut self, promise: &Promise, now: Timestamp, effects: &mut Vec<Effect>) {
        self.drain = self.drain.take().filter(|drain| !drain.is_over(now));
        while self.has_place()
            && let Some(row) = self.candidates.pop_front()
        {
            if self.is_in_flight(&row) {
                continue;
            }
            if !self.may_start(&row) {
                // It is to be tried alone, or another one is: whatever ends has the file scanned again.
                self.candidates.clear();
                self.scan_at = Some(after(now, self.settings.slice));
                break;
            }
            if let Some(drain) = &mut self.drain
                && let Some(wait_until) = drain.take(now)
            {
                self.candidates.push_front(row);
                self.scan_at = Some(wait_until);
                break;
            }
            let ask = next_ask(&row, promise, &self.settings, now);
            self.in_flight.insert(row.key, InFlight::new(row.clone(), ask, promise.permanent, now));
            effects.push(Effect::Begin { row, ask, bank: promise.identity.clone() });
        }
    }

    /// Whether it is in flight itself, or another one of its lane.
    fn is_in_flight(&self, row: &Row) -> bool {
        self.in_flight.values().any(|flight| flight.row().key == row.key || flight.row().lane == row.lane)
    }

    /// Whether it may join those in flight: one that the process died with twice is tried alone.
    fn may_start(&self, row: &Row) -> bool {
        self.in_flight.is_empty()
            || !(self.is_alone(row) || self.in_flight.values().any(|flight| self.is_alone(flight.row())))
    }

    const fn is_alone(&self, row: &Row) -> bool {
        row.deaths >= self.settings.deaths_alone
    }
}

/// Whether anything is asked for it: of what has ended, only for what was cancelled here and is still to be told.
fn is_open(row: &Row) -> bool {
    match row.state {
        State::Saved | State::Sending | State::Unknown | State::NeedsAttention => true,
        State::Cancelled => row.ask == Next::Cancel,
        State::Approved | State::Declined => false,
    }
}

/// What is asked for a row: one that was perhaps sent so long ago that the bank dropped its response is looked up first.
fn next_ask(row: &Row, promise: &Promise, settings: &Settings, now: Timestamp) -> Ask {
    let is_old = row.first_sent_at.is_some_and(|at| promise.may_have_dropped(now.duration_since(at), settings));
    match (row.state, row.ask) {
        // A bank that forgets would say of what it charged and forgot that it never will.
        (state, Next::Cancel) if is_old && !promise.permanent && !state.is_final() => Ask::LookUp,
        (_, Next::Cancel) => Ask::Cancel,
        (State::NeedsAttention, _) => Ask::LookUp,
        (State::Saved, _) => Ask::Send,
        // The bank was looked up just now, and forgets nothing: else an unknown key may be one that it charged.
        (_, Next::Resend) if promise.permanent => Ask::Send,
        (_, Next::Resend) => Ask::LookUp,
        (_, Next::Send) if is_old => Ask::LookUp,
        (_, Next::Send) => Ask::Send,
        (_, Next::LookUp) => Ask::LookUp,
    }
}
