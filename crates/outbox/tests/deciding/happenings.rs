//! What happens to a till beside its calls: wishes, another bank, a copy of the file, an end, a death, a clock that jumps.

use jiff::SignedDuration;
use outbox::decide::{Event, Queue, Wake};
use outbox::{Ask, State};
use protocol::{Key, Outcome};

use crate::rare::{Rare, reached};
use crate::world::{Checked, FORGETS_AFTER_MS, Pending, World, fail};

impl World {
    /// Somebody wishes one of them cancelled.
    pub(crate) fn wish(&mut self) -> Checked {
        self.any_key().map_or(Ok(()), |key| self.wish_for(key))
    }

    pub(crate) fn wish_for(&mut self, key: Key) -> Checked {
        let now = self.now();
        let is_in_flight = self.queue.in_flight().any(|other| *other == key);
        let was_saved = self.file.rows.get(&key).is_some_and(|row| row.state == State::Saved);
        if self.file.wish(key, now) {
            if was_saved {
                reached(Rare::CancelledHere);
            } else if is_in_flight {
                reached(Rare::WishInFlight);
            }
        }
        self.feed(Event::Wake(Wake::NewOperation))
    }

    /// The same of one that stands ready, which it does for a moment: so its place is free before that is over.
    pub(crate) fn wish_for_ready(&mut self) -> Checked {
        let Some(key) = self.any_ready() else { return Ok(()) };
        self.wish_for(key)?;
        while self.any_ready() == Some(key)
            && let Some(at) = self.pending.iter().position(|pending| matches!(pending, Pending::Call { .. }))
        {
            let call = self.pending.swap_remove(at);
            self.end(call)?;
        }
        Ok(())
    }

    /// One in flight that nothing is done for just now.
    pub(crate) fn any_ready(&self) -> Option<Key> {
        let is_pending = |key: &Key| {
            self.pending.iter().any(|pending| match pending {
                Pending::Begin { row, .. } => row.key == *key,
                Pending::Call { key: of, .. } | Pending::Save { key: of, .. } | Pending::NotCalled(of) => of == key,
                _ => false,
            })
        };
        self.queue.in_flight().find(|key| !is_pending(key)).copied()
    }

    pub(crate) fn any_key(&mut self) -> Option<Key> {
        let count = u64::try_from(self.file.rows.len()).unwrap_or(0).max(1);
        let nth = usize::try_from(self.random.next() % count).unwrap_or(0);
        self.file.rows.keys().nth(nth).copied()
    }

    /// A copy of the file sends, or cancels, what it has of one.
    pub(crate) fn copy_acts(&mut self) {
        let Some(key) = self.any_key() else { return };
        let Some(row) = self.file.rows.get_mut(&key).filter(|row| row.ready) else { return };
        row.copied = true;
        let is_refund = row.payment.is_some();
        let ask = if self.chance(60) { Ask::Send } else { Ask::Cancel };
        self.bank.take(key, ask, is_refund, Outcome::Approved, true, self.true_ms);
    }

    /// Another secret, or another address.
    pub(crate) fn change_bank(&mut self) -> Checked {
        let same_address = self.chance(50);
        let calls = self.pending.iter().any(|pending| matches!(pending, Pending::Call { .. }));
        if calls {
            reached(Rare::BankChanged);
        }
        // What the earlier question brings is dropped by the driver.
        self.pending.retain(|pending| !matches!(pending, Pending::Introduction));
        self.in_the_way = true;
        if !same_address {
            self.held_until_ms = i64::MIN;
            self.file_hold = None;
            self.file_hold_ms = i64::MIN;
            self.moved = self.queue.in_flight().copied().collect();
            for pending in &mut self.pending {
                if let Pending::Record(record, held_until_ms) = pending {
                    record.hold_until = None;
                    *held_until_ms = i64::MIN;
                }
            }
        }
        self.feed(Event::BankChanged { same_address })
    }

    /// Broken off; it may have come to the bank all the same.
    pub(crate) fn abandon(&mut self, key: Key) {
        let at = self.pending.iter().position(|pending| matches!(pending, Pending::Call { key: of, .. } if *of == key));
        let Some(Pending::Call { ask, .. }) = at.map(|at| self.pending.swap_remove(at)) else { return };
        if self.chance(50)
            && let Some(row) = self.file.rows.get_mut(&key)
        {
            row.touched |= ask.sends();
            let is_refund = row.payment.is_some();
            self.bank.take(key, ask, is_refund, Outcome::Approved, true, self.true_ms);
        }
    }

    /// The program ends in good order: what is being saved is saved, nothing more is begun, and a new one starts.
    pub(crate) fn stop(&mut self) -> Checked {
        reached(Rare::Stopped);
        self.is_stopping = true;
        self.feed(Event::Stop)?;
        let limit_ms = self.true_ms + 600_000;
        while !self.queue.has_stopped() {
            if self.true_ms > limit_ms {
                return Err(fail("it does not stop"));
            }
            let at = self.pending.iter().position(|pending| {
                matches!(pending, Pending::Begin { .. } | Pending::Save { .. } | Pending::Record(..))
            });
            match at.map(|at| self.pending.swap_remove(at)) {
                Some(pending) => self.end(pending)?,
                None => self.pass_time()?,
            }
        }
        self.is_stopping = false;
        self.die()
    }

    /// The process dies and starts again: what was in memory is gone, what was under way may have happened or not.
    pub(crate) fn die(&mut self) -> Checked {
        if !self.pending.is_empty() {
            reached(Rare::Died);
        }
        for pending in std::mem::take(&mut self.pending) {
            if let Pending::Call { key, ask, .. } = pending
                && self.chance(50)
                && let Some(row) = self.file.rows.get_mut(&key)
            {
                row.touched |= ask.sends();
                let is_refund = row.payment.is_some();
                self.bank.take(key, ask, is_refund, Outcome::Approved, true, self.true_ms);
            }
        }
        self.wished_at_begin.clear();
        self.in_the_way = true;
        for row in self.file.rows.values_mut() {
            row.is_looked_up = false;
            row.panicked = row.panics;
        }
        let now = self.now();
        // The bank never asks for that long: a clock that was wrong did, and what is left of it is unknown.
        let longer = now.saturating_add(SignedDuration::from_secs(100)).unwrap_or(now);
        let kept = self.file.rows.values().map(|row| row.not_before).chain([self.file_hold]);
        self.waits_in_doubt |= kept.flatten().any(|until| until > longer);
        self.file.start(now);
        // A Retry-After that was not in the file yet is forgotten with the process.
        self.held_until_ms = self.file_hold_ms;
        self.queue = Queue::at_start(self.settings, self.file_hold, now);
        self.feed(Event::Tick)
    }

    pub(crate) fn jump(&mut self) -> Checked {
        reached(Rare::ClockJumped);
        let years = i64::try_from(self.random.next() % 21).unwrap_or(0) - 10;
        let by = SignedDuration::from_hours(years * 24 * 365);
        self.skew = self.skew.saturating_add(by);
        self.has_jumped = true;
        // A death before the file has the moved time forgets it.
        self.file_hold_ms = i64::MIN;
        for pending in &mut self.pending {
            if let Pending::Record(_, held_until_ms) = pending {
                *held_until_ms = i64::MIN;
            }
        }
        self.feed(Event::ClockJumped { by })
    }

    pub(crate) fn pass_time(&mut self) -> Checked {
        let now = self.now();
        let until =
            self.queue.wake_at(now).map_or(5_000, |at| i64::try_from(at.duration_since(now).as_millis()).unwrap_or(0));
        self.true_ms += until.clamp(1, 5_000);
        self.feed(Event::Tick)
    }

    /// Nothing is asked for a long time, and a bank that forgets does.
    pub(crate) fn pass_hours(&mut self) -> Checked {
        reached(Rare::HoursPassed);
        self.true_ms += i64::try_from(self.random.next() % 40).unwrap_or(0) * 3_600_000;
        if !self.permanent {
            self.bank.forget(self.true_ms - FORGETS_AFTER_MS);
        }
        self.feed(Event::Tick)
    }
}
