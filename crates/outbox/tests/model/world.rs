//! The till, its banks and what must be: a step is done to the real thing and to the model, and then the two are compared.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use outbox::{Attempt, Filter, Operation, State};
use protocol::Key;
use store::Store;

use crate::bank::{Asked, Bank};
use crate::clock::Hands;
use crate::expected::Expected;
use crate::network::Sent;
use crate::process::{Hooks, Process, open};
use crate::rare::{Rare, reached};
use crate::steps::{How, Step};
use crate::wire::Wire;

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) hands: Hands,
    pub(crate) wire: Wire,
    pub(crate) banks: [Bank; 2],
    /// Which bank is at each address.
    pub(crate) at: [usize; 2],
    /// The address that the till has.
    pub(crate) address: usize,
    pub(crate) hooks: Hooks,
    pub(crate) process: Option<Process>,
    /// By place; none where it was refused.
    pub(crate) operations: Vec<Option<Expected>>,
    pub(crate) log: Vec<Attempt>,
    pub(crate) sent: Vec<Sent>,
    /// What was asked, and when, in true time.
    pub(crate) asked: Vec<(i64, Asked)>,
    /// What the till's own handling fails for.
    pub(crate) poisoned: BTreeSet<Key>,
    /// Whose request is on its way.
    pub(crate) running: BTreeSet<Key>,
    /// The clock is being set just now: what dies meanwhile may forget by how much.
    pub(crate) is_setting_clock: bool,
}

impl World {
    pub(crate) fn new(bank: usize) -> Result<World> {
        // In memory where there is such a place: what the disk does is no part of this.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
        let hands = Hands::new();
        let mut world = World {
            folder,
            wire: Wire::new(&hands),
            hands,
            banks: [Bank::new(1, true), Bank::new(2, false)],
            at: [bank, 1 - bank],
            address: 0,
            hooks: Hooks::default(),
            process: None,
            operations: Vec::new(),
            log: Vec::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            poisoned: BTreeSet::new(),
            running: BTreeSet::new(),
            is_setting_clock: false,
        };
        world.start()?;
        world.settle()?;
        Ok(world)
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let store = open(&self.folder.path().join("till.db"))?;
        self.process = Some(Process::start(store, &self.hands, &self.wire, self.address, &self.hooks)?);
        Ok(())
    }

    pub(crate) fn process(&self) -> Result<&Process> {
        self.process.as_ref().context("nothing runs")
    }

    pub(crate) fn store(&self) -> Result<Store> {
        Ok(self.process()?.store.clone())
    }

    /// Until nothing moves by itself; over the death of the process, where it is to die.
    pub(crate) fn settle(&mut self) -> Result<()> {
        loop {
            let died = self.process()?.run(&self.hands, &self.wire)?;
            self.take_arrivals()?;
            if !died {
                return Ok(());
            }
            self.die(0)?;
        }
    }

    pub(crate) fn by_key(&mut self, key: Key) -> Result<&mut Expected> {
        self.operations.iter_mut().flatten().find(|operation| operation.key == key).context("a key of nothing")
    }

    pub(crate) fn take_arrivals(&mut self) -> Result<()> {
        let arrived = std::mem::take(&mut self.wire.line().arrived);
        for (asked, bank_id) in arrived {
            self.asked.push((self.hands.true_ms(), asked));
            let bank = self.banks.iter().position(|bank| Some(bank.id.to_string()) == bank_id);
            let Some(key) = asked.key() else { continue };
            let mut is_request = false;
            let operation = self.by_key(key)?;
            operation.bank = operation.bank.or(bank);
            ensure!(operation.bank == bank, "it was asked of another bank than the one it belongs to: {operation:?}");
            match asked {
                Asked::Request(_) => {
                    is_request = true;
                    operation.arrived += 1;
                    if operation.unknown_to_bank {
                        reached(Rare::SentAfterLook);
                    }
                    ensure!(operation.state != State::NeedsAttention, "sent again though set aside: {operation:?}");
                }
                Asked::Look(_) if operation.state != State::NeedsAttention => reached(Rare::LookedUp),
                _ => {}
            }
            if is_request {
                self.running.insert(key);
            }
        }
        Ok(())
    }

    /// The process is gone, and a new one starts; the clock may have been set in between.
    pub(crate) fn die(&mut self, clock_ms: i64) -> Result<()> {
        self.lose_process()?;
        if clock_ms != 0 || self.is_setting_clock {
            self.hands.set(clock_ms);
            self.forget_waits();
        }
        self.start()?;
        self.find_unsent()
    }

    /// A clock that was set while nobody looked: how long anything has waited can't be known any more.
    pub(crate) fn forget_waits(&mut self) {
        let mut line = self.wire.line();
        line.held_until_ms = None;
        line.not_before_ms.clear();
        drop(line);
        for bank in &mut self.banks {
            bank.forgets = false;
        }
    }

    pub(crate) fn lose_process(&mut self) -> Result<()> {
        self.hooks.die_in.store(0, Ordering::Release);
        drop(self.process.take());
        self.hands.live();
        self.take_arrivals()?;
        let waiting = std::mem::take(&mut self.wire.line().waiting);
        waiting.iter().for_each(|waiting| self.remember(waiting));
        let running = std::mem::take(&mut self.running);
        for operation in self.operations.iter_mut().flatten() {
            operation.lose(running.contains(&operation.key));
        }
        Ok(())
    }

    /// Attempts that were counted and never made count as sent.
    pub(crate) fn find_unsent(&mut self) -> Result<()> {
        let store = self.store()?;
        let ids = [self.banks[0].id, self.banks[1].id];
        for operation in self.operations.iter_mut().flatten() {
            let key = operation.key;
            let log = store.read_blocking(move |conn| outbox::attempts(conn, &key))?;
            // Counted or about to be asked for: it belongs to that bank from then on.
            let found = store.read_blocking(move |conn| outbox::by_key(conn, &key))?.context("an operation is gone")?;
            operation.bank = operation.bank.or(ids.iter().position(|id| Some(*id) == found.bank_id));
            let counted = u32::try_from(log.iter().filter(|entry| entry.event == "sent").count())?;
            let known = operation.arrived + operation.unsent;
            if counted > known {
                operation.unsent += counted - known;
                operation.lose(true);
                reached(Rare::DiedCounted);
            }
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<()> {
        match *step {
            Step::Pay { amount, declines, lane, offline } => {
                self.pay(amount, declines, &format!("sale-{lane}"), offline, None)?
            }
            Step::Again { of, with_another_amount } => self.again(of, with_another_amount)?,
            Step::Replace { of, amount } => self.replace(of, amount)?,
            Step::Refund { of, percent } => self.refund(of, percent)?,
            Step::Cancel { of, write_off } => self.cancel(of, write_off)?,
            Step::CancelInFlight { nth, then } => self.cancel_in_flight(nth, then)?,
            Step::AcceptOffline { of } => self.accept_offline(of)?,
            Step::Answer { nth, how } => self.answer(nth, how)?,
            Step::Flow { calls } => {
                for _ in 0..calls {
                    self.answer(0, How::Properly)?;
                }
            }
            Step::LateCopy { nth } => self.late_copy(nth)?,
            Step::CopySends { of } => self.copy_sends(of)?,
            Step::CopyCancels { of } => self.copy_cancels(of)?,
            Step::Poison { of } => {
                self.poisoned.extend(self.operations.get(of).and_then(Option::as_ref).map(|operation| operation.key))
            }
            Step::Pass { ms } => self.advance(ms)?,
            Step::PassHours { hours } => self.pass_hours(hours)?,
            Step::Suspend { seconds } => {
                if seconds > 3_600 {
                    reached(Rare::Suspended);
                }
                // No connection lives through it.
                self.expire(|_| true, |_| false)?;
                self.set_clock(|hands| hands.suspend(seconds * 1_000))?;
            }
            Step::SetClock { ms } => {
                const YEAR_MS: i64 = 365 * 24 * 3_600_000;
                if ms.abs() > YEAR_MS {
                    reached(if ms > 0 { Rare::JumpedForward } else { Rare::JumpedBack });
                }
                self.set_clock(|hands| hands.set(ms))?;
            }
            Step::Kill { answered, clock_ms } => self.kill(answered, clock_ms)?,
            Step::DieAtCommit { nth } => self.hooks.die_in.store(nth, Ordering::Release),
            Step::Stop => self.stop()?,
            Step::CheckNow => self.process()?.outbox.check_now(),
            Step::NetworkChanged => self.process()?.outbox.network_changed(),
            Step::SwapBanks => self.at.swap(0, 1),
            Step::ChangeBank { address } => self.change_bank(address)?,
        }
        self.settle()?;
        self.check()
    }

    /// Refunds that wait for a payment that has ended.
    pub(crate) fn follow(&mut self, key: Key) -> Result<()> {
        let place = self.operations.iter().position(|other| other.as_ref().is_some_and(|other| other.key == key));
        let (state, bank) = (self.by_key(key)?.state, self.by_key(key)?.bank);
        if state.is_final() {
            for refund in self.operations.iter_mut().flatten().filter(|refund| refund.payment == place) {
                refund.follow(state, bank);
            }
        }
        Ok(())
    }

    /// What the file says of an operation.
    pub(crate) fn file(&self, key: Key) -> Result<Operation> {
        self.store()?.read_blocking(move |conn| outbox::by_key(conn, &key))?.context("an operation is gone")
    }

    /// Until when the file holds all.
    pub(crate) fn hold(&self) -> Result<Option<i64>> {
        Ok(self.store()?.read_blocking(|conn| conn.query_row("SELECT hold_until FROM outbox", [], |row| row.get(0)))?)
    }

    /// What must be so after each step.
    pub(crate) fn check(&mut self) -> Result<()> {
        let violations = std::mem::take(&mut self.wire.line().violations);
        ensure!(violations.is_empty(), "{violations:#?}");
        let keys: Vec<Key> = self.operations.iter().flatten().map(|operation| operation.key).collect();
        let (found, mut log) = self.store()?.read_blocking(move |conn| {
            let found = outbox::list(conn, Filter { limit: 1_000, ..Filter::default() })?;
            let mut log = Vec::new();
            for key in keys {
                log.extend(outbox::attempts(conn, &key)?);
            }
            Ok::<_, rusqlite::Error>((found, log))
        })?;
        ensure!(found.len() == self.operations.iter().flatten().count(), "{} operations are in the file", found.len());
        for (operation, found) in self.operations.iter().flatten().zip(&found) {
            self.compare(operation, found)?;
            self.check_money(operation)?;
        }
        for bank in &self.banks {
            ensure!(bank.changed.is_empty(), "two bodies under one key: {:?}", bank.changed);
            ensure!(bank.strange.is_empty(), "a refund of a payment of another bank: {:?}", bank.strange);
        }
        log.sort_by_key(|entry| entry.seq);
        ensure!(log.starts_with(&self.log), "the log is not what it was, and more");
        self.log = log;
        Ok(())
    }

    pub(crate) fn compare(&self, operation: &Expected, found: &Operation) -> Result<()> {
        let runs = self.running.contains(&operation.key);
        let state = if runs { State::Sending } else { operation.state };
        let told = || format!("\nthe file: {found:?}\nthe model: {operation:?}");
        ensure!(found.key == operation.key, "another operation is in its place{}", told());
        ensure!(found.state == state, "it is {} and must be {state}{}", found.state, told());
        ensure!(found.tombstone == operation.tombstone, "the bank is still to be told, or not{}", told());
        ensure!(found.cancel_wished_at.is_some() == operation.wished, "somebody wished it cancelled, or not{}", told());
        ensure!(found.accepted_offline_at.is_some() == operation.offline, "it was accepted offline, or not{}", told());
        ensure!(found.result == operation.result, "another result than the bank's{}", told());
        ensure!(found.attempts == operation.arrived + operation.unsent, "the attempts are not as many{}", told());
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
    pub(crate) fn check_money(&self, operation: &Expected) -> Result<()> {
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
    pub(crate) fn is_charged_where_it_was_told(&self, operation: &Expected) -> bool {
        let Some(bank) = operation.bank.and_then(|bank| self.banks.get(bank)) else { return false };
        !operation.tombstone && bank.moved.contains_key(&operation.key) && !bank.forgotten.contains(&operation.key)
    }
}
