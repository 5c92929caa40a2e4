//! What must hold at every call, at every outcome and at every moment.

use jiff::Timestamp;
use outbox::decide::Change;
use outbox::{Ask, State};
use protocol::Key;

use crate::bank::Truth;
use crate::file::FileRow;
use crate::rare::{Rare, reached};
use crate::world::{Checked, FORGETS_AFTER_MS, Pending, World, fail};
use proptest::test_runner::TestCaseError;

impl World {
    /// What must hold of each call that is made.
    pub(crate) fn called(&mut self, key: Key, ask: Ask) -> Result<Pending, TestCaseError> {
        let row = self.file.rows.get_mut(&key).ok_or_else(|| fail("a call for no row"))?;
        if self.true_ms < row.told_to_wait_until && !self.has_jumped {
            return Err(fail("an operation was asked for inside its own Retry-After"));
        }
        if row.due_at.is_some() || (ask.sends() && row.state != State::Sending) {
            return Err(fail("a call whose beginning is not durable"));
        }
        if row.state == State::NeedsAttention && ask.sends() {
            return Err(fail("what needs attention was sent again"));
        }
        if ask.sends() && self.wished_at_begin.contains(&key) {
            return Err(fail("a request went out after the wish to cancel it"));
        }
        if ask == Ask::Cancel && !row.wished && row.payment.is_none() {
            return Err(fail("cancelled, and nobody wished it"));
        }
        if row.state.is_final() && !(row.tombstone && ask == Ask::Cancel) {
            return Err(fail("what has ended was asked for"));
        }
        if ask.sends() && !row.ready {
            return Err(fail("a refund was asked for before its payment was approved"));
        }
        if ask.sends() {
            let age_ms = self.true_ms - *row.called_ms.get_or_insert(self.true_ms);
            if self.is_steady && age_ms > FORGETS_AFTER_MS {
                if !row.is_looked_up {
                    return Err(fail("sent again after the retention, and not looked up"));
                }
                reached(Rare::SentAfterLookUp);
            }
        }
        self.sends += u32::from(ask.sends());
        Ok(Pending::Call { key, ask })
    }

    /// What holds at every moment.
    pub(crate) fn check(&self) -> Checked {
        let in_flight: Vec<_> = self.queue.in_flight().collect();
        let most = self.settings.in_flight_max;
        let calls = self.pending.iter().filter(|pending| matches!(pending, Pending::Call { .. })).count();
        let begins = self.pending.iter().filter(|pending| matches!(pending, Pending::Begin { .. })).count();
        // As many again may be begun ahead of their call, and have their answers saved.
        if calls > most || calls + begins > 2 * most || in_flight.len() > 3 * most {
            return Err(fail("more in flight than allowed"));
        }
        let mut lanes: Vec<_> = in_flight.iter().filter_map(|key| Some(&self.file.rows.get(key)?.lane)).collect();
        lanes.sort();
        lanes.dedup();
        if lanes.len() != in_flight.len() {
            return Err(fail("two of one lane in flight"));
        }
        let is_suspect =
            |key: &&Key| self.file.rows.get(*key).is_some_and(|row| row.deaths >= self.settings.deaths_alone);
        if in_flight.iter().any(is_suspect) {
            if in_flight.len() > 1 {
                return Err(fail("what the process died with twice is not tried alone"));
            }
            reached(Rare::TriedAlone);
        }
        for (key, row) in &self.file.rows {
            if !row.copied && self.bank.charged.get(key).is_some_and(|times| *times > 1) {
                return Err(fail("charged twice"));
            }
            if row.state == State::Saved && row.touched {
                return Err(fail("something that left counts as never sent"));
            }
            if row.tombstone && row.touched {
                return Err(fail("something that left was cancelled here"));
            }
        }
        Ok(())
    }

    /// What must hold of each outcome that became durable.
    pub(crate) fn check_saved(&self, key: Key, before: &FileRow, change: &Change, now: Timestamp) -> Checked {
        let row = self.file.rows.get(&key).ok_or_else(|| fail("a row is gone"))?;
        let truth = self.bank.truth.get(&key).copied();
        if before.state.is_final() && row.state != before.state {
            return Err(fail("a final result changed"));
        }
        if !before.state.is_final() && change.state.is_final() && truth.and_then(Truth::state) != Some(change.state) {
            return Err(fail("a result that is not the bank's"));
        }
        if !before.state.is_final()
            && change.state == State::Cancelled
            && !row.copied
            && self.bank.charged.contains_key(&key)
        {
            return Err(fail("cancelled, and money moved"));
        }
        if row.panics != row.panicked {
            return Err(fail("faults are not counted as there were"));
        }
        if row.is_open() == row.due_at.is_none() {
            return Err(fail("open with no due time, or final with one"));
        }
        let ended = truth.and_then(Truth::state);
        match change.contradicts {
            Some(_) if !before.tombstone => return Err(fail("an alarm about nothing")),
            Some(state) if state.is_final() && ended != Some(state) => return Err(fail("a false alarm")),
            Some(_) => reached(Rare::TombstoneContradicted),
            None if before.tombstone && !row.tombstone => {
                if ended != Some(State::Cancelled) {
                    return Err(fail("a copy sent what was cancelled here, and nobody is alarmed"));
                }
                reached(Rare::TombstoneTold);
            }
            None => {}
        }
        if !before.state.is_final() && row.tombstone {
            reached(Rare::CancelledUnsent);
        }
        if row.state == State::NeedsAttention && before.state != State::NeedsAttention {
            reached(Rare::SetAside);
        }
        let refunds = || self.file.rows.values().filter(|refund| refund.payment == Some(key));
        if row.state == State::Approved && refunds().any(|refund| refund.ready && refund.attempts == 0) {
            reached(Rare::RefundWaited);
        }
        if matches!(row.state, State::Declined | State::Cancelled) && refunds().next().is_some() {
            reached(Rare::RefundCancelled);
        }
        self.check_due(row, change, now)
    }

    fn check_due(&self, row: &FileRow, change: &Change, now: Timestamp) -> Checked {
        let longest = match (change.state, change.not_before) {
            (State::NeedsAttention, _) => self.settings.attention_every,
            (_, Some(_)) => self.settings.retry_after_max + self.settings.retry_after_jitter,
            (State::Cancelled, _) => self.settings.attention_every,
            _ => self.settings.backoff.cap,
        };
        // The save may be a later try of one that was decided before.
        if row.due_at.is_some_and(|at| at.duration_since(now) > longest) && !self.has_jumped {
            return Err(fail("due later than the cap"));
        }
        Ok(())
    }
}
