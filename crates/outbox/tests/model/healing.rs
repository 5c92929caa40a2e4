//! The end of a case: all faults end, and then all must be settled, in its time and with nobody touching anything.

use anyhow::{Result, ensure};
use outbox::State;

use crate::bank::Phase;
use crate::expected::Expected;
use crate::steps::How;
use crate::world::World;

/// The longest back-off, a call, a look at the clocks, the jitter on `Retry-After`, and the pace of the way back.
const LONGEST_MS: i64 = 30_000 + 10_000 + 5_000 + 1_000 + 1_000;
const LONGEST_WAIT_MS: i64 = 15 * 60_000 + 1_000;

impl World {
    /// Both banks come back, one after the other, and do what they must.
    pub(crate) fn heal(&mut self) -> Result<()> {
        self.hooks.die_in.store(0, std::sync::atomic::Ordering::Release);
        self.poisoned.clear();
        for bank in &mut self.banks {
            bank.end_all();
            bank.forgets = false;
        }
        for bank in [0, 1, 0] {
            self.at[self.address] = bank;
            self.at[1 - self.address] = 1 - bank;
            // Nobody says so: the till finds out by itself which bank answers there now.
            self.until_settled(bank, "by itself", |world, place| world.is_owed_by_itself(place, bank))?;
            // What was set aside, and what the bank would not be told, is looked up every 15 min, or at once on this.
            self.check_now()?;
            self.settle()?;
            self.until_settled(bank, "once looked up", |world, place| {
                world.is_owed_by_itself(place, bank) || world.is_owed_once_looked_at(place, bank)
            })?;
        }
        self.all_has_ended()
    }

    /// Answers what is asked, and lets time pass, until nothing is owed.
    fn until_settled(&mut self, bank: usize, what: &str, is_owed: impl Fn(&World, usize) -> bool) -> Result<()> {
        let begin = i64::try_from(self.hands.monotonic_ms())?;
        let longest = LONGEST_MS + self.left_of_waits_ms()?;
        loop {
            while self.wire.waiting() > 0 {
                self.answer(0, How::Properly)?;
            }
            let owed: Vec<_> = (0..self.operations.len()).filter(|place| is_owed(self, *place)).collect();
            if owed.is_empty() {
                return Ok(());
            }
            let took = i64::try_from(self.hands.monotonic_ms())? - begin;
            ensure!(
                took <= longest,
                "{what}: {took} ms after bank {bank} came back are open: {:#?}",
                owed.iter().map(|place| &self.operations[*place]).collect::<Vec<_>>()
            );
            let next = self.hands.next_wake_ms().unwrap_or(0).saturating_sub(self.hands.monotonic_ms());
            self.advance(next.max(1))?;
        }
    }

    /// What is left of everything that a bank asked to wait for, as the till has it.
    fn left_of_waits_ms(&self) -> Result<i64> {
        let now = self.hands.wall().as_millisecond();
        let mut until = self.hold()?.unwrap_or(now);
        for operation in self.operations.iter().flatten() {
            until = until.max(self.file(operation.key)?.not_before.map_or(now, |at| at.as_millisecond()));
        }
        Ok((until - now).clamp(0, LONGEST_WAIT_MS))
    }

    /// Whether it has to end by itself, with that bank there.
    fn is_owed_by_itself(&self, place: usize, bank: usize) -> bool {
        let Some(Some(operation)) = self.operations.get(place) else { return false };
        let is_open = |state: State| matches!(state, State::Saved | State::Sending | State::Unknown);
        // An older one of its lane that waits for the other bank is in its way.
        let is_behind = self.operations[..place].iter().flatten().any(|older| {
            older.lane == operation.lane
                && is_open(older.state)
                && older.ready
                && older.bank.is_some_and(|of| of != bank)
        });
        is_open(operation.state) && operation.ready && operation.bank.is_none_or(|of| of == bank) && !is_behind
    }

    /// Whether that bank can end it, or has only to be told.
    fn is_owed_once_looked_at(&self, place: usize, bank: usize) -> bool {
        let Some(Some(operation)) = self.operations.get(place) else { return false };
        if operation.bank.is_some_and(|of| of != bank) {
            return false;
        }
        let is_aside = operation.state == State::NeedsAttention;
        // A bank that forgets would say of what it charged that it never will: there a wish ends with people.
        let is_ended = operation.wished && self.banks[bank].permanent;
        operation.tombstone || (is_aside && (is_ended || self.is_known(operation)))
    }

    /// Whether its bank can say how it ended.
    fn is_known(&self, operation: &Expected) -> bool {
        let bank = operation.bank.and_then(|bank| self.banks.get(bank));
        let claim = bank.and_then(|bank| bank.claims.get(&operation.key));
        claim.is_some_and(|claim| matches!(claim.phase, Phase::Ended(_) | Phase::Cancelled))
    }

    fn all_has_ended(&self) -> Result<()> {
        for operation in self.operations.iter().flatten() {
            if operation.state.is_final() {
                ensure!(!operation.tombstone, "the bank was never told: {operation:?}");
                continue;
            }
            let payment = operation.payment.and_then(|place| self.operations.get(place)).and_then(Option::as_ref);
            if !operation.ready && payment.is_some_and(|payment| payment.state == State::NeedsAttention) {
                continue;
            }
            ensure!(operation.state == State::NeedsAttention, "it is not settled: {operation:?}");
            ensure!(operation.may_stay_aside, "set aside for no reason: {operation:?}");
            ensure!(!self.is_known(operation), "the bank knows how it ended, and the till does not: {operation:?}");
        }
        Ok(())
    }
}
