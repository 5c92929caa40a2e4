//! What must be so after each step: the file against the model, the money at the banks against the file.

use anyhow::{Result, ensure};
use outbox::{Filter, Operation, State, Summary};
use protocol::{Currency, Key};

use crate::expected::Expected;
use crate::process::told_otherwise;
use crate::rare::{Rare, reached};
use crate::wire::InTheWay;
use crate::world::World;

/// What of an operation's row is a change that the log must tell.
fn told_of(operation: &Operation) -> impl PartialEq {
    let Operation { state, attempts, cancel_wished_at, accepted_offline_at, tombstone, ref result, ref reason, .. } =
        *operation;
    (state, attempts, cancel_wished_at, accepted_offline_at, tombstone, result.is_some(), reason.clone())
}

impl World {
    /// What must be so after each step.
    pub(crate) fn check(&mut self) -> Result<()> {
        let violations = std::mem::take(&mut self.wire.line().violations);
        ensure!(violations.is_empty(), "{violations:#?}");
        let keys: Vec<Key> = self.operations.iter().flatten().map(|operation| operation.key).collect();
        let now = self.hands.wall();
        let (found, mut log, summary, otherwise) = self.store()?.read_blocking(move |conn| {
            let found = outbox::list(conn, Filter { limit: 1_000, ..Filter::default() })?;
            let mut log = Vec::new();
            for key in keys {
                log.extend(outbox::attempts(conn, &key)?);
            }
            Ok::<_, rusqlite::Error>((found, log, outbox::summary(conn, now)?, told_otherwise(conn)?))
        })?;
        ensure!(otherwise == 0, "{otherwise} operations are another thing to the caller");
        ensure!(found.len() == self.operations.iter().flatten().count(), "{} operations are in the file", found.len());
        for (operation, found) in self.operations.iter().flatten().zip(&found) {
            self.compare(operation, found)?;
            self.check_money(operation)?;
        }
        for bank in &self.banks {
            ensure!(bank.changed.is_empty(), "two bodies under one key: {:?}", bank.changed);
            ensure!(bank.strange.is_empty(), "a refund of a payment of another bank: {:?}", bank.strange);
        }
        self.check_refunds()?;
        log.sort_by_key(|entry| entry.seq);
        ensure!(log.starts_with(&self.log), "the log is not what it was, and more");
        for (before, now) in self.seen.iter().zip(&found) {
            let is_told = log[self.log.len()..].iter().any(|entry| entry.key == now.key);
            ensure!(
                told_of(before) == told_of(now) || is_told,
                "it changed with no line in the log: {before:?}\n{now:?}"
            );
        }
        (self.log, self.seen) = (log, found);
        self.check_summary(&summary)
    }

    /// The figures of the queue, and what is in the way.
    fn check_summary(&self, summary: &Summary) -> Result<()> {
        let state = |one: &Expected| if self.running.contains(&one.key) { State::Sending } else { one.state };
        let count = |is: &dyn Fn(&Expected) -> bool| {
            u32::try_from(self.operations.iter().flatten().filter(|one| is(one)).count())
        };
        let open = self.operations.iter().flatten().filter(|one| state(one).is_unsettled());
        let amount: i64 = open.clone().map(|one| one.amount).sum();
        let amounts = if open.count() > 0 { vec![(Currency::EUR, amount)] } else { Vec::new() };
        let (way, told) = (self.wire.line().in_the_way, || format!("{summary:#?}"));
        ensure!(summary.unsettled == count(&|one| state(one).is_unsettled())?, "so many are not unsettled: {}", told());
        ensure!(summary.sending == count(&|one| state(one) == State::Sending)?, "so many do not run: {}", told());
        ensure!(
            summary.needs_attention == count(&|one| state(one) == State::NeedsAttention)?,
            "so many do not need attention: {}",
            told()
        );
        ensure!(summary.tombstones == count(&|one| one.tombstone)?, "so many are not to be told: {}", told());
        ensure!(summary.amounts == amounts, "they come to {amounts:?}: {}", told());
        ensure!(summary.paused.is_some() == (way == Some(InTheWay::Refused)), "it pauses for {way:?}: {}", told());
        let reachable = way.map_or(Some(true), |way| match way {
            InTheWay::NotAsked => None,
            InTheWay::Transport => Some(false),
            InTheWay::Refused | InTheWay::Trouble => Some(true),
        });
        ensure!(summary.bank_reachable == reachable, "reachable or not, {way:?}: {}", told());
        Ok(())
    }

    /// Back-off and the quarter of an hour of what is set aside are over; what the bank asked to wait for is not.
    pub(crate) fn check_all_due(&self) -> Result<()> {
        self.check_due(|_| true)
    }

    /// These are due at once, if they are open.
    pub(crate) fn check_due(&self, which: impl Fn(&Expected) -> bool) -> Result<()> {
        let now = self.hands.wall();
        for operation in self.operations.iter().flatten().filter(|operation| which(operation)) {
            let found = self.file(operation.key)?;
            let is_open = !found.state.is_final() || found.tombstone;
            ensure!(!is_open || found.due_at.is_none_or(|at| at <= now), "it is not due at once: {found:?}");
            if is_open && found.due_at.is_some() {
                reached(Rare::AllDue);
            }
        }
        Ok(())
    }

    /// Nobody gives back more than was paid: where the bank has to say so, a copy of the file was at it too.
    fn check_refunds(&self) -> Result<()> {
        for over in self.banks.iter().flat_map(|bank| &bank.over) {
            let payment = self.operations.iter().flatten().find(|one| one.key == *over).and_then(|one| one.payment);
            let mut refunds = self.operations.iter().flatten().filter(|one| one.payment == payment);
            ensure!(refunds.any(|refund| refund.copied), "more is given back than was paid: {over}");
        }
        Ok(())
    }

    fn compare(&self, operation: &Expected, found: &Operation) -> Result<()> {
        let runs = self.running.contains(&operation.key);
        let state = if runs { State::Sending } else { operation.state };
        let told = || format!("\nthe file: {found:?}\nthe model: {operation:?}");
        ensure!(found.key == operation.key, "another operation is in its place{}", told());
        ensure!(found.state == state, "it is {} and must be {state}{}", found.state, told());
        ensure!(found.tombstone == operation.tombstone, "the bank is still to be told, or not{}", told());
        ensure!(found.cancel_wished_at.is_some() == operation.wished, "somebody wished it cancelled, or not{}", told());
        ensure!(found.accepted_offline_at.is_some() == operation.offline, "it was accepted offline, or not{}", told());
        ensure!(found.result == operation.result, "another result than the bank's{}", told());
        ensure!(
            found.attempts == operation.arrived + operation.unsent + operation.put_back,
            "the attempts are not as many{}",
            told()
        );
        ensure!(
            !found.state.is_final() || found.due_at.is_none() || found.tombstone,
            "it has ended and is due{}",
            told()
        );
        let bank = operation.bank.and_then(|bank| self.banks.get(bank)).map(|bank| bank.id);
        ensure!(bank.is_none() || found.bank_id == bank, "it belongs to another bank{}", told());
        Ok(())
    }

    /// Money moves once at most for each operation; and where it is told how it ended, the bank says the same.
    fn check_money(&self, operation: &Expected) -> Result<()> {
        let moved: u32 = self.banks.iter().map(|bank| bank.moved.get(&operation.key).copied().unwrap_or(0)).sum();
        ensure!(moved <= 1 || operation.copied, "money moved {moved} times: {operation:?}");
        match operation.state {
            State::Approved => ensure!(moved >= 1, "approved, and no money moved: {operation:?}"),
            State::Declined => ensure!(moved == 0, "declined, and money moved: {operation:?}"),
            State::Cancelled if !operation.copied => {
                ensure!(moved == 0, "cancelled, and money moved: {operation:?}");
            }
            State::Cancelled if self.is_charged_where_it_was_told(operation) => {
                let is_alarm =
                    self.hooks.alarms().iter().any(|(key, state)| *key == operation.key && *state == State::Approved);
                ensure!(is_alarm, "cancelled, a copy charged it, and nobody is alarmed: {operation:?}");
            }
            _ => {}
        }
        if let Some(payment) = operation.payment.and_then(|place| self.operations.get(place)).and_then(Option::as_ref) {
            ensure!(
                moved == 0 || payment.state == State::Approved || operation.copied,
                "given back before it was taken: {operation:?}"
            );
        }
        Ok(())
    }

    /// Whether the bank that was told of the cancellation had it from a copy of the file, and still knows.
    fn is_charged_where_it_was_told(&self, operation: &Expected) -> bool {
        let Some(bank) = operation.bank.and_then(|bank| self.banks.get(bank)) else { return false };
        !operation.tombstone && bank.moved.contains_key(&operation.key) && !bank.forgotten.contains(&operation.key)
    }
}
