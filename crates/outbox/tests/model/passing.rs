//! Time passes, clocks are set, the process dies, the bank is another one.

use anyhow::{Context, Result, ensure};
use outbox::answer::Lost;

use crate::bank::Asked;
use crate::clock::Hands;
use crate::rare::{Rare, reached};
use crate::steps::How;
use crate::wire::{CALL_MS, InTheWay, Waiting};
use crate::world::World;

impl World {
    /// Time passes. No call lasts longer than it may.
    pub(crate) fn advance(&mut self, ms: u64) -> Result<()> {
        let target = self.hands.monotonic_ms() + ms;
        loop {
            let now = self.hands.monotonic_ms();
            let last = self
                .wire
                .line()
                .waiting
                .iter()
                .filter(|waiting| waiting.is_open())
                .map(|waiting| waiting.since_ms + CALL_MS)
                .min();
            let next =
                [self.hands.next_wake_ms(), last, Some(target)].into_iter().flatten().min().unwrap_or(target).max(now);
            self.hands.pass(next - now);
            self.settle()?;
            self.expire(|waiting| next >= waiting.since_ms + CALL_MS, |waiting| waiting.number.is_multiple_of(2))?;
            self.settle()?;
            if next >= target {
                return Ok(());
            }
        }
    }

    pub(crate) fn expire(
        &mut self,
        is_late: impl Fn(&Waiting) -> bool,
        arrives: impl Fn(&Waiting) -> bool,
    ) -> Result<()> {
        loop {
            let late = {
                let mut line = self.wire.line();
                let at = line.waiting.iter().position(|waiting| waiting.is_open() && is_late(waiting));
                at.map(|at| line.waiting.remove(at))
            };
            let Some(waiting) = late else { return Ok(()) };
            let how = How::Lost { arrived: arrives(&waiting), how: Lost::TimeOut };
            let (reply, came) = self.reply(&waiting, how)?;
            self.believe(&waiting, &came)?;
            waiting.end(reply);
            self.settle()?;
        }
    }

    /// A till that nobody looks at, and a bank that answers nothing.
    pub(crate) fn pass_hours(&mut self, hours: u64) -> Result<()> {
        const PARTS: u64 = 4;
        for _ in 0..PARTS {
            self.expire(|_| true, |_| false)?;
            self.hands.pass(hours * 3_600_000 / PARTS);
            self.settle()?;
        }
        Ok(())
    }

    /// The clock parts from the time that passed, and the till gets to see it.
    pub(crate) fn set_clock(&mut self, set: impl FnOnce(&Hands)) -> Result<()> {
        self.is_setting_clock = true;
        let before = self.hands.wall();
        set(&self.hands);
        // So little is not noticed, and what was to be waited for is waited for so much less.
        let by_ms = self.hands.wall().duration_since(before).as_millis();
        if (0..=2_000).contains(&by_ms) {
            self.wire.line().wait_less(i64::try_from(by_ms)?);
        }
        let seen = self.advance(5_001);
        self.is_setting_clock = false;
        seen
    }

    pub(crate) fn kill(&mut self, answered: Option<How>, clock_ms: i64) -> Result<()> {
        if self.wire.waiting() > 0 {
            reached(Rare::KilledInFlight);
        }
        if let Some(how) = answered
            && let Some(waiting) = self.take_waiting(0)
        {
            let (reply, _) = self.reply(&waiting, how)?;
            // It is there, and nobody has read it.
            waiting.end(reply);
            reached(Rare::KilledWithAnswer);
        }
        if clock_ms != 0 {
            reached(Rare::JumpedWhileDown);
        }
        self.die(clock_ms)
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        self.end_process()?;
        self.start()?;
        self.find_unsent()
    }

    /// Stopped, and started with the other address: what one asked to wait holds nobody at the other.
    pub(crate) fn move_over(&mut self) -> Result<()> {
        self.end_process()?;
        self.address = 1 - self.address;
        if self.wire.line().held_until_ms.take().is_some() {
            reached(Rare::MovedHeld);
        }
        self.start()?;
        self.find_unsent()?;
        self.settle()?;
        let is_asked = self.wire.line().waiting.iter().any(|waiting| waiting.asked == Asked::Introduction);
        ensure!(is_asked, "a start with another address does not ask at once who it is");
        Ok(())
    }

    fn end_process(&mut self) -> Result<()> {
        if !self.running.is_empty() {
            reached(Rare::Stopped);
        }
        self.process.take().context("nothing runs")?.stop()?;
        let running = self.running.clone();
        self.lose_process()?;
        // That its call was broken off was saved in good order.
        for key in running {
            self.by_key(key)?.deaths = 0;
        }
        Ok(())
    }

    pub(crate) fn change_bank(&mut self, address: usize) -> Result<()> {
        let mut line = self.wire.line();
        if address != self.address {
            line.held_until_ms = None;
        }
        line.in_the_way = Some(InTheWay::NotAsked);
        line.was_away = false;
        for waiting in &mut line.waiting {
            // Who it is is asked anew; what the earlier question brings counts no more.
            waiting.is_moved |= address != self.address || waiting.asked == Asked::Introduction;
        }
        drop(line);
        self.address = address;
        let process = self.process()?;
        process.outbox.change_bank(self.wire.at(address, &process.store));
        Ok(())
    }

    pub(crate) fn check_now(&mut self) -> Result<()> {
        self.process()?.outbox.check_now();
        self.waken();
        Ok(())
    }

    /// Wakes come twice a second at most: one that comes sooner waits.
    pub(crate) fn waken(&mut self) {
        const GAP_MS: u64 = 500;
        let now = self.hands.monotonic_ms();
        self.is_woken = now >= self.wakes_from_ms;
        self.wakes_from_ms = now.max(self.wakes_from_ms) + GAP_MS;
    }
}
