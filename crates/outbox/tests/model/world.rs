//! The till, its banks and what must be: a step is done to the real thing and to the model, and then the two are compared.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use outbox::{Attempt, Operation, State};
use protocol::Key;
use store::Store;

use crate::bank::{Asked, Bank, Came, RETENTION_MS};
use crate::clock::Hands;
use crate::expected::Expected;
use crate::network::Sent;
use crate::process::{Hooks, Process, open};
use crate::rare::{Rare, reached};
use crate::steps::{How, Step};
use crate::wire::{Arrived, InTheWay, Wire};

/// So much a clock may be set by in all without being noticed: each time by less than two seconds.
const UNNOTICED_MS: i64 = 60_000;

/// For so long what was counted ahead of its call stands ready for it.
const READY_MS: u64 = 200;

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
    /// What the file said after the last step.
    pub(crate) seen: Vec<Operation>,
    pub(crate) sent: Vec<Sent>,
    /// What was asked and what came, and when, in true time.
    pub(crate) played: Vec<(i64, Asked, Option<Came>)>,
    /// What the till's own handling fails for.
    pub(crate) poisoned: BTreeSet<Key>,
    /// Whose request is on its way.
    pub(crate) running: BTreeSet<Key>,
    /// The clock is being set just now: what dies meanwhile may forget by how much.
    pub(crate) is_setting_clock: bool,
    /// From when on another wake is taken at once, and whether the last one was.
    pub(crate) wakes_from_ms: u64,
    pub(crate) is_woken: bool,
}

/// Requests that were counted, and those of them that were put back.
fn counted(log: &[Attempt]) -> (u32, u32) {
    let mut is_sent = false;
    let (mut counted, mut put_back) = (0, 0);
    for entry in log {
        match entry.event.as_str() {
            "sent" => (is_sent, counted) = (true, counted + 1),
            "put-back" if is_sent => (is_sent, put_back) = (false, put_back + 1),
            _ => is_sent = false,
        }
    }
    (counted, put_back)
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
            seen: Vec::new(),
            sent: Vec::new(),
            played: Vec::new(),
            poisoned: BTreeSet::new(),
            running: BTreeSet::new(),
            is_setting_clock: false,
            wakes_from_ms: 0,
            is_woken: false,
        };
        world.start()?;
        world.settle()?;
        Ok(world)
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let store = open(&self.folder.path().join("till.db"))?;
        {
            let mut line = self.wire.line();
            (line.in_the_way, line.was_away) = (Some(InTheWay::NotAsked), false);
        }
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
            if died {
                self.die(0)?;
            } else if self.is_any_ready()? {
                // It stands ready for so long, and is put back where no place comes free.
                self.hands.pass(READY_MS);
            } else {
                return Ok(());
            }
        }
    }

    /// Whether anything was counted ahead and stands ready for its call: it came nowhere, and nobody died with it. What was counted,
    /// came nowhere and is not in flight was put back. The model has few operations at once, so it comes to this seldom; the
    /// schedules of `deciding` come to it often.
    fn is_any_ready(&mut self) -> Result<bool> {
        let store = self.store()?;
        let mut is_any = false;
        for operation in self.operations.iter_mut().flatten() {
            let key = operation.key;
            let found = store.read_blocking(move |conn| outbox::by_key(conn, &key))?.context("an operation is gone")?;
            let beyond = found.attempts.saturating_sub(operation.arrived + operation.unsent);
            if found.state == State::Sending && found.due_at.is_none() && beyond > operation.put_back {
                is_any = true;
            } else if beyond != operation.put_back {
                let log = store.read_blocking(move |conn| outbox::attempts(conn, &key))?;
                let is_told = counted(&log).1 == beyond || log.iter().any(|entry| entry.event == "panicked");
                ensure!(is_told, "{beyond} attempts came nowhere, with no word of it in the log: {operation:?}");
                operation.put_back = beyond;
            }
        }
        Ok(is_any)
    }

    pub(crate) fn by_key(&mut self, key: Key) -> Result<&mut Expected> {
        self.operations.iter_mut().flatten().find(|operation| operation.key == key).context("a key of nothing")
    }

    pub(crate) fn take_arrivals(&mut self) -> Result<()> {
        let arrived = std::mem::take(&mut self.wire.line().arrived);
        for Arrived { asked, bank_id, beside } in arrived {
            let now_ms = self.hands.true_ms();
            self.played.push((now_ms, asked, None));
            let bank = self.banks.iter().position(|bank| Some(bank.id.to_string()) == bank_id);
            let Some(key) = asked.key() else { continue };
            self.check_alone(key, &beside)?;
            let mut is_request = false;
            let operation = self.by_key(key)?;
            operation.bank = operation.bank.or(bank);
            ensure!(operation.bank == bank, "it was asked of another bank than the one it belongs to: {operation:?}");
            match asked {
                Asked::Request(_) => {
                    is_request = true;
                    operation.arrived += 1;
                    if operation.unknown_to_bank {
                        reached(Rare::SentAfterLookUp);
                    }
                    if operation.state == State::Saved {
                        operation.first_sent_ms = Some(now_ms);
                    }
                    let age_ms = now_ms - *operation.first_sent_ms.get_or_insert(now_ms);
                    ensure!(
                        age_ms <= RETENTION_MS + UNNOTICED_MS || operation.unknown_to_bank,
                        "sent again {age_ms} ms after the first time, and not looked up: {operation:?}"
                    );
                    ensure!(operation.state != State::NeedsAttention, "sent again though set aside: {operation:?}");
                }
                Asked::LookUp(_) if operation.state != State::NeedsAttention => reached(Rare::LookedUp),
                _ => {}
            }
            if is_request {
                self.running.insert(key);
            }
        }
        Ok(())
    }

    /// What the process died with twice is tried alone.
    fn check_alone(&self, key: Key, beside: &[Key]) -> Result<()> {
        let is_suspect = |of: Key| self.operations.iter().flatten().any(|other| other.key == of && other.deaths >= 2);
        let suspects = std::iter::once(key).chain(beside.iter().copied()).filter(|of| is_suspect(*of)).count();
        if suspects > 0 {
            reached(Rare::TriedAlone);
        }
        ensure!(suspects == 0 || beside.is_empty(), "what it died with twice is not tried alone: {key} {beside:?}");
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
        for operation in self.operations.iter_mut().flatten() {
            operation.first_sent_ms = None;
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
            let (counted, put_back) = counted(&log);
            operation.put_back = put_back;
            let known = operation.arrived + operation.unsent + put_back;
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
            Step::Cancel { of, write_off } => {
                if let Some(key) = self.cancel(of, write_off)? {
                    self.settle()?;
                    self.check_due(|operation| operation.key == key)?;
                }
            }
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
            Step::KillAgain { times } => {
                for _ in 0..times {
                    self.kill(None, 0)?;
                    self.settle()?;
                    self.answer(0, How::Properly)?;
                }
            }
            Step::DieAtCommit { nth } => self.hooks.die_in.store(nth, Ordering::Release),
            Step::Stop => self.stop()?,
            Step::Move => self.move_over()?,
            Step::CheckNow => self.check_now()?,
            Step::NetworkChanged => {
                self.process()?.outbox.network_changed();
                self.waken();
            }
            Step::SwapBanks => self.at.swap(0, 1),
            Step::ChangeBank { address } => self.change_bank(address)?,
        }
        self.settle()?;
        let is_wake = matches!(step, Step::CheckNow | Step::NetworkChanged);
        if step.makes_all_due() && (!is_wake || self.is_woken) {
            self.check_all_due()?;
        }
        self.check()
    }

    /// Refunds that wait for a payment that has ended.
    pub(crate) fn follow(&mut self, key: Key) -> Result<()> {
        let place = self.operations.iter().position(|other| other.as_ref().is_some_and(|other| other.key == key));
        let &mut Expected { state, bank, tombstone, .. } = self.by_key(key)?;
        if state.is_final() {
            for refund in self.operations.iter_mut().flatten().filter(|refund| refund.payment == place) {
                refund.follow(state, bank, tombstone);
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
}
