//! The file, as far as decisions need it: each row as the outbox's own statements read and change it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use outbox::decide::{Change, Event, MakeDue, Next, Row, Which};
use outbox::{Ask, Settings, State};
use protocol::Key;

/// A row.
#[derive(Clone, Debug)]
pub(crate) struct FileRow {
    pub(crate) seq: usize,
    pub(crate) lane: String,
    pub(crate) state: State,
    pub(crate) ask: Next,
    pub(crate) failures: u32,
    pub(crate) panics: u32,
    /// Panics that there were, as far as anybody could keep them.
    pub(crate) panicked: u32,
    pub(crate) deaths: u32,
    pub(crate) first_sent_at: Option<Timestamp>,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) attempts: u32,
    /// Of a refund: its payment.
    pub(crate) payment: Option<Key>,
    /// It has its bytes.
    pub(crate) ready: bool,
    pub(crate) wished: bool,
    pub(crate) tombstone: bool,
    /// A byte of it left, whatever became of it.
    pub(crate) touched: bool,
    /// A copy of the file sent it, or cancelled it: till and copy together can make a bank that forgets charge twice.
    pub(crate) copied: bool,
    /// When a request of it was first perhaps sent, in true time.
    pub(crate) called_ms: Option<i64>,
    /// What came last is that the bank doesn't know it.
    pub(crate) is_looked_up: bool,
    /// Until when, in true time, the bank asked this one to wait.
    pub(crate) told_to_wait_until: i64,
}

impl FileRow {
    pub(crate) fn is_open(&self) -> bool {
        !self.state.is_final() || self.tombstone
    }

    pub(crate) fn is_ahead_in_lane(&self) -> bool {
        self.state.is_unsettled() && self.ready
    }
}

/// All rows.
pub(crate) struct File {
    pub(crate) settings: Settings,
    pub(crate) rows: BTreeMap<Key, FileRow>,
    /// Something in it waits for another bank than the one that is asked now.
    pub(crate) waits_for_another_bank: bool,
}

/// What became of a write that depends on the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// The row was not as expected.
    NotAsExpected,
}

impl File {
    /// A time further off than anything is planned is no time.
    fn has_come(&self, at: Option<Timestamp>, now: Timestamp) -> bool {
        at.is_none_or(|at| at <= now || at.duration_since(now) > self.settings.horizon())
    }

    pub(crate) fn scan(&self, limit: usize, now: Timestamp) -> Event {
        let mut rows: Vec<_> = self.rows.iter().filter(|(_, row)| row.is_open()).collect();
        // What is to be looked up for a person, or told as cancelled, comes after all that is to be settled.
        rows.sort_by_key(|(_, row)| (!row.state.is_unsettled(), row.seq));
        let may_be_asked = |row: &FileRow| row.ready || row.state == State::Cancelled;
        let is_due =
            |row: &FileRow| may_be_asked(row) && self.has_come(row.due_at, now) && self.has_come(row.not_before, now);
        let is_first = |row: &FileRow| {
            let is_older = |other: &FileRow| other.lane == row.lane && other.seq < row.seq && other.is_ahead_in_lane();
            matches!(row.state, State::NeedsAttention | State::Cancelled)
                || !rows.iter().any(|(_, other)| is_older(other))
        };
        let next_due_at = rows
            .iter()
            .filter_map(|(_, row)| row.due_at.map(|at| at.max(row.not_before.unwrap_or(at))))
            .filter(|&at| at > now)
            .min();
        let found = rows.iter().filter(|(_, row)| is_due(row) && is_first(row)).take(limit);
        let rows = found
            .map(|(key, row)| Row {
                key: **key,
                lane: row.lane.clone(),
                state: row.state,
                ask: row.ask,
                failures: row.failures,
                panics: row.panics,
                deaths: row.deaths,
                first_sent_at: row.first_sent_at,
            })
            .collect();
        Event::Found { rows, next_due_at, other_bank: Some(self.waits_for_another_bank) }
    }

    /// Counts an attempt, where the row is as it was found.
    pub(crate) fn begin(&mut self, found: &Row, ask: Ask, now: Timestamp, written: bool) -> Written {
        let (due, free) = match self.rows.get(&found.key) {
            Some(row) => (self.has_come(row.due_at, now), self.has_come(row.not_before, now)),
            None => return Written::NotAsExpected,
        };
        let Some(row) = self.rows.get_mut(&found.key).filter(|row| row.state == found.state && row.ask == found.ask)
        else {
            return Written::NotAsExpected;
        };
        if !due || !free {
            return Written::NotAsExpected;
        }
        if written {
            row.due_at = None;
            row.not_before = None;
            if ask.sends() {
                row.state = State::Sending;
                row.attempts += 1;
                row.first_sent_at = row.first_sent_at.or(Some(now));
                row.ask = Next::Send;
            }
        }
        Written::Done
    }

    /// Makes an outcome durable. `wished` tells whether it was wished cancelled when its call began.
    pub(crate) fn save(&mut self, key: Key, saving: &Saving<'_>, now: Timestamp) -> Written {
        let Saving { expected, begun, wished, change } = *saving;
        let Some(row) = self.rows.get_mut(&key) else { return Written::NotAsExpected };
        if row.state != expected || (begun && row.due_at.is_some()) || (expected.is_final() && !row.tombstone) {
            if !row.state.is_final() && !has_become(row, change) {
                // The bank says it again.
                row.due_at = Some(now);
            }
            return Written::NotAsExpected;
        }
        row.failures = change.failures;
        row.panics = change.panics;
        row.deaths = 0;
        row.due_at = change.due_at;
        row.not_before = change.not_before;
        if expected.is_final() {
            row.tombstone = change.due_at.is_some();
            return Written::Done;
        }
        row.state = change.state;
        row.ask = change.ask;
        if row.wished && !row.state.is_final() {
            row.ask = Next::Cancel;
            row.due_at = if wished { change.due_at } else { Some(now) };
        }
        if row.wished && row.state == State::Saved {
            cancel_here(row, now);
        }
        let (state, tombstone) = (row.state, row.tombstone);
        self.follow(key, state, tombstone, now);
        Written::Done
    }

    /// Somebody wishes it cancelled. Whether that changed anything.
    pub(crate) fn wish(&mut self, key: Key, now: Timestamp) -> bool {
        let Some(row) = self.rows.get_mut(&key).filter(|row| !row.state.is_final() && !row.wished) else {
            return false;
        };
        row.wished = true;
        if row.state == State::Saved {
            cancel_here(row, now);
            self.follow(key, State::Cancelled, true, now);
        } else {
            row.ask = Next::Cancel;
            row.due_at = row.due_at.map(|_| now);
        }
        true
    }

    /// Refunds that waited for a payment that has ended.
    fn follow(&mut self, payment: Key, ended: State, is_tombstone: bool, now: Timestamp) {
        if !ended.is_final() {
            return;
        }
        for row in self.rows.values_mut() {
            if row.payment != Some(payment) || row.ready || row.state != State::Saved {
                continue;
            }
            if ended == State::Approved {
                row.ready = true;
                row.due_at = Some(now);
            } else {
                row.state = State::Cancelled;
                row.ask = Next::Cancel;
                row.tombstone = is_tombstone;
                row.due_at = is_tombstone.then_some(now);
            }
        }
    }

    pub(crate) fn make_due(&mut self, make_due: MakeDue, now: Timestamp) {
        for row in self.rows.values_mut().filter(|row| row.is_open()) {
            row.not_before = row.not_before.map(|at| at.saturating_add(make_due.shift).unwrap_or(at));
            let back = make_due.shift.min(SignedDuration::ZERO);
            row.first_sent_at = row.first_sent_at.map(|at| at.saturating_add(back).unwrap_or(at));
            let aged = row.first_sent_at.and_then(|at| at.checked_sub(make_due.aged).ok());
            row.first_sent_at = row.first_sent_at.map(|at| aged.unwrap_or(at));
            if make_due.which == Which::All {
                row.due_at = row.due_at.map(|at| at.min(now));
            }
        }
    }

    /// A new owner: what was in flight was perhaps sent, and all is due.
    pub(crate) fn start(&mut self, now: Timestamp) {
        let furthest = now.saturating_add(self.settings.retry_after_max).unwrap_or(now);
        for row in self.rows.values_mut().filter(|row| row.is_open()) {
            row.deaths += u32::from(row.due_at.is_none());
            if row.state == State::Sending {
                row.state = State::Unknown;
            }
            row.due_at = Some(now);
            row.not_before = row.not_before.map(|at| at.min(furthest));
            if row.ask == Next::Resend {
                row.ask = Next::LookUp;
            }
            if row.not_before.is_none() {
                row.told_to_wait_until = i64::MIN;
            }
        }
    }
}

/// Whether an earlier try of the same write took, though nobody was told.
fn has_become(row: &FileRow, change: &Change) -> bool {
    let asks = row.ask == change.ask || row.ask == Next::Cancel;
    row.state == change.state
        && asks
        && row.failures == change.failures
        && row.panics == change.panics
        && row.due_at.is_some()
}

/// Never sent, and cancelled: only the bank is still to be told, where a copy could have sent it.
fn cancel_here(row: &mut FileRow, now: Timestamp) {
    row.state = State::Cancelled;
    row.tombstone = true;
    row.ask = Next::Cancel;
    row.failures = 0;
    row.not_before = None;
    row.due_at = Some(now);
}

/// An outcome, and for which row it was decided.
pub(crate) struct Saving<'a> {
    pub(crate) expected: State,
    pub(crate) begun: bool,
    pub(crate) wished: bool,
    pub(crate) change: &'a Change,
}
