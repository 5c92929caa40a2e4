//! The breaker before the gateway: when it fails call after call, all calls wait while one at a time tries whether it is
//! back. Without it, everything that waits for a gateway in trouble would add to the trouble.
//!
//! Nothing is lost or refused by it. An operation waits here instead of asking in vain, and goes on under its one key.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

/// Failures in a row, with no good answer between them, that open the breaker.
const FAILURES_MAX: u32 = 8;
/// How long it is open at first; doubled with each try that fails.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// How long it is open at most between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Calls that are under way at once. More wait: a gateway that comes back is not met by all at once.
const CALLS_MAX: usize = 256;

/// What a call showed of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Showed {
    /// It works: the answer was its own, whatever it said.
    Works,
    /// It doesn't, and perhaps said for how long.
    Fails { retry_after_s: Option<u32> },
}

/// What a call may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leave {
    Go,
    /// Go, alone, and tell what it showed: all others wait for that.
    Probe,
    /// Nothing before this time, or before something changes.
    Wait(Instant),
    /// Nothing before something changes.
    WaitForProbe,
}

/// The breaker's state. Pure: the time, and who else waits, is handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Circuit {
    Closed { failures: u32 },
    Open { until: Instant, pause: Duration },
    Probing { pause: Duration },
}

impl Circuit {
    /// `steps_back` where others wait that were never made: what has failed already may fail for ever, and would keep
    /// from the gateway what would show that it works.
    fn ask(self, now: Instant, steps_back: bool) -> (Self, Leave) {
        match self {
            Self::Closed { .. } => (self, Leave::Go),
            Self::Open { until, .. } if now >= until && steps_back => (self, Leave::WaitForProbe),
            Self::Open { until, pause } if now >= until => (Self::Probing { pause }, Leave::Probe),
            Self::Open { until, .. } => (self, Leave::Wait(until)),
            Self::Probing { .. } => (self, Leave::WaitForProbe),
        }
    }

    /// `probe` where the call was let go to find out. What a call showed that was let go before the breaker opened closes it
    /// where that is good, and says nothing new where it is not.
    fn after(self, showed: Showed, probe: bool, now: Instant) -> Self {
        let open = |pause: Duration, retry_after_s: Option<u32>| {
            let asked_for = Duration::from_secs(retry_after_s.unwrap_or(0).into());
            Self::Open { until: now + pause.max(asked_for).min(PAUSE_MAX), pause }
        };
        match (self, showed) {
            (_, Showed::Works) => Self::Closed { failures: 0 },
            (Self::Closed { failures }, Showed::Fails { .. }) if failures + 1 < FAILURES_MAX => {
                Self::Closed { failures: failures + 1 }
            }
            (Self::Closed { .. }, Showed::Fails { retry_after_s }) => open(PAUSE_MIN, retry_after_s),
            (Self::Probing { pause }, Showed::Fails { retry_after_s }) if probe => {
                open((pause * 2).min(PAUSE_MAX), retry_after_s)
            }
            (Self::Open { .. } | Self::Probing { .. }, Showed::Fails { .. }) => self,
        }
    }
}

/// The breaker of one gateway.
pub(crate) struct Breaker {
    circuit: Mutex<Circuit>,
    changed: Notify,
    /// Calls that wait and were never made.
    new_waiting: AtomicUsize,
    calls: Arc<Semaphore>,
}

/// Leave to make one call.
pub(crate) struct Permit<'a> {
    breaker: &'a Breaker,
    probe: bool,
    told: bool,
    _call: Option<OwnedSemaphorePermit>,
}

impl Breaker {
    pub(crate) fn new() -> Self {
        Self {
            circuit: Mutex::new(Circuit::Closed { failures: 0 }),
            changed: Notify::new(),
            new_waiting: AtomicUsize::new(0),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        // Nothing panics while it holds the lock.
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether calls wait because the gateway fails.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(*self.lock(), Circuit::Closed { .. })
    }

    /// Waits until a call may be made. One that `is_new` was never made before.
    pub(crate) async fn pass(&self, is_new: bool) -> Permit<'_> {
        let mut waits = None;
        loop {
            // Never closed, so there is always a place sooner or later. Whoever has no leave gives it back and waits without.
            let call = self.calls.clone().acquire_owned().await.ok();
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so that no change between the look and the wait is missed.
            changed.as_mut().enable();
            let leave = {
                let mut circuit = self.lock();
                let steps_back = !is_new && self.new_waiting.load(Ordering::Acquire) > 0;
                let (next, leave) = circuit.ask(Instant::now(), steps_back);
                *circuit = next;
                leave
            };
            match leave {
                Leave::Go | Leave::Probe => {
                    return Permit { breaker: self, probe: leave == Leave::Probe, told: false, _call: call };
                }
                Leave::Wait(_) | Leave::WaitForProbe if is_new && waits.is_none() => waits = Some(NewWaits::new(self)),
                Leave::Wait(until) => {
                    drop(call);
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = changed => {}
                    }
                }
                Leave::WaitForProbe => {
                    drop(call);
                    changed.await;
                }
            }
        }
    }

    fn tell(&self, showed: Showed, probe: bool) {
        let (was, is) = {
            let mut circuit = self.lock();
            let was = *circuit;
            *circuit = was.after(showed, probe, Instant::now());
            (was, *circuit)
        };
        match (was, is) {
            (Circuit::Closed { .. }, Circuit::Open { .. }) => {
                tracing::warn!(failures = FAILURES_MAX, "the gateway fails: calls wait while one at a time tries it");
            }
            (Circuit::Open { .. } | Circuit::Probing { .. }, Circuit::Closed { .. }) => {
                tracing::info!("the gateway works again");
            }
            _ => {}
        }
        if was != is && !matches!((was, is), (Circuit::Closed { .. }, Circuit::Closed { .. })) {
            self.changed.notify_waiters();
        }
    }
}

/// A call that waits and was never made, for as long as it waits.
struct NewWaits<'a>(&'a Breaker);

impl<'a> NewWaits<'a> {
    fn new(breaker: &'a Breaker) -> Self {
        breaker.new_waiting.fetch_add(1, Ordering::AcqRel);
        Self(breaker)
    }
}

impl Drop for NewWaits<'_> {
    fn drop(&mut self) {
        self.0.new_waiting.fetch_sub(1, Ordering::AcqRel);
        // Where it was ended from outside, those that stepped back for it go on.
        self.0.changed.notify_waiters();
    }
}

impl Permit<'_> {
    /// Tells what the call showed of the gateway.
    pub(crate) fn tell(mut self, showed: Showed) {
        self.told = true;
        self.breaker.tell(showed, self.probe);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // A try that was ended from outside showed nothing; somebody else tries after a pause.
        if self.probe && !self.told {
            self.breaker.tell(Showed::Fails { retry_after_s: None }, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILS: Showed = Showed::Fails { retry_after_s: None };

    fn opened(now: Instant) -> Circuit {
        (0..FAILURES_MAX).fold(Circuit::Closed { failures: 0 }, |circuit, _| circuit.after(FAILS, false, now))
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_a_good_answer_between_them_starts_the_count_anew() {
        let now = Instant::now();
        let mut circuit = Circuit::Closed { failures: 0 };
        for _ in 0..10 {
            for _ in 1..FAILURES_MAX {
                circuit = circuit.after(FAILS, false, now);
                assert_eq!(circuit.ask(now, false).1, Leave::Go);
            }
            circuit = circuit.after(Showed::Works, false, now);
        }
        assert_eq!(circuit, Circuit::Closed { failures: 0 });
        assert_eq!(opened(now), Circuit::Open { until: now + PAUSE_MIN, pause: PAUSE_MIN });
    }

    #[tokio::test(start_paused = true)]
    async fn open_one_at_a_time_tries_and_the_pause_grows_to_its_limit() {
        let mut now = Instant::now();
        let mut circuit = opened(now);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let Circuit::Open { until, .. } = circuit else { panic!("{circuit:?}") };
            assert_eq!(circuit.ask(until - Duration::from_nanos(1), false).1, Leave::Wait(until));
            pauses.push((until - now).as_millis());
            now = until;
            let (probing, leave) = circuit.ask(now, false);
            assert_eq!((leave, probing.ask(now, false).1), (Leave::Probe, Leave::WaitForProbe));
            assert_eq!(probing.after(FAILS, false, now), probing, "one that went before says nothing new");
            circuit = probing.after(FAILS, true, now);
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
        let (probing, _) = circuit.ask(now + PAUSE_MAX, false);
        assert_eq!(probing.after(Showed::Works, true, now), Circuit::Closed { failures: 0 });
        assert_eq!(circuit.after(Showed::Works, false, now), Circuit::Closed { failures: 0 }, "a late good answer");
    }

    #[tokio::test(start_paused = true)]
    async fn the_gateways_own_word_on_when_to_come_again_is_kept_up_to_the_limit() {
        let now = Instant::now();
        for (asked_for_s, pause) in [(0, PAUSE_MIN), (3, Duration::from_secs(3)), (1_000_000_000, PAUSE_MAX)] {
            let circuit = Circuit::Closed { failures: FAILURES_MAX - 1 };
            let circuit = circuit.after(Showed::Fails { retry_after_s: Some(asked_for_s) }, false, now);
            assert_eq!(circuit, Circuit::Open { until: now + pause, pause: PAUSE_MIN });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_wait_for_the_one_that_tries_and_go_when_it_comes_back_with_a_good_answer() {
        let breaker = Arc::new(Breaker::new());
        for _ in 0..FAILURES_MAX {
            breaker.pass(false).await.tell(FAILS);
        }
        assert!(breaker.is_open());
        let opened = Instant::now();
        let probe = breaker.pass(false).await;
        assert_eq!(opened.elapsed(), PAUSE_MIN);
        let waiting: Vec<_> = (0..20)
            .map(|_| {
                let breaker = breaker.clone();
                tokio::spawn(async move { breaker.pass(false).await.tell(Showed::Works) })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()), "they wait for the probe, however long it takes");
        probe.tell(Showed::Works);
        for task in waiting {
            task.await.unwrap();
        }
        assert!(!breaker.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_never_tried_goes_before_what_has_failed_already() {
        let breaker = Arc::new(Breaker::new());
        let fail_for_ever = |breaker: Arc<Breaker>| async move {
            loop {
                breaker.pass(false).await.tell(FAILS);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let sick: Vec<_> = (0..50).map(|_| tokio::spawn(fail_for_ever(breaker.clone()))).collect();
        while !breaker.is_open() {
            tokio::task::yield_now().await;
        }
        for _ in 0..20 {
            let start = Instant::now();
            breaker.pass(true).await.tell(Showed::Works);
            assert!(start.elapsed() <= PAUSE_MAX, "{:?}", start.elapsed());
        }
        // One that is ended while it waits holds nobody up.
        while !breaker.is_open() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(tokio::time::timeout(Duration::from_millis(1), breaker.pass(true)).await.is_err());
        assert_eq!(breaker.new_waiting.load(Ordering::Acquire), 0);
        sick.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(tokio::time::timeout(PAUSE_MAX * 2, breaker.pass(false)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_ended_from_outside_leaves_the_way_to_the_next() {
        let breaker = Breaker::new();
        for _ in 0..FAILURES_MAX {
            breaker.pass(false).await.tell(FAILS);
        }
        drop(breaker.pass(false).await);
        assert!(breaker.is_open());
        breaker.pass(false).await.tell(Showed::Works);
        assert!(tokio::time::timeout(Duration::ZERO, breaker.pass(false)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_beyond_the_limit_wait_for_a_place() {
        let breaker = Breaker::new();
        let mut permits = Vec::new();
        for _ in 0..CALLS_MAX {
            permits.push(breaker.pass(false).await);
        }
        let within_a_second = async || tokio::time::timeout(Duration::from_secs(1), breaker.pass(false)).await;
        assert!(within_a_second().await.is_err());
        permits.pop();
        assert!(within_a_second().await.is_ok());
        // Those that wait for the gateway take no places from those that may go.
        for permit in permits {
            permit.tell(FAILS);
        }
        let waiting: Vec<_> = (0..CALLS_MAX).map(|_| Box::pin(breaker.pass(false))).collect();
        let waiting = futures::future::join_all(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err());
        assert_eq!(breaker.calls.available_permits(), CALLS_MAX);
    }
}
