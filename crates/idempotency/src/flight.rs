//! The operations that this process has in hand: one flight for each key, which all requests for the key share.
//!
//! Whoever comes first leads: it alone touches the store for the key. That a key has no flight here proves,
//! together with the lock on the store, that nobody runs it.

use crate::{engine::Hindrance, record::Record};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
};
use tokio::sync::watch;

/// A key and whose it is.
pub(crate) type Name = (Arc<str>, [u8; 16]);

/// How far a flight is.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// The claim has not been answered by the store yet.
    Claiming,
    /// Claimed, and running.
    Running(Arc<Record>),
    /// Over: the row as the store now holds it. `first` where this flight made the claim.
    Ended { record: Arc<Record>, first: bool },
    /// Over: nothing was claimed, and nothing will be.
    NotClaimed(Hindrance),
    /// Over: the request that led was refused, and its claim rolled back.
    Refused(&'static str),
    /// Over for this process: the key is claimed, or may be, and its outcome is not known.
    Unknown,
}

/// Whether the claim may still be called off.
const OPEN: u8 = 0;
const TAKEN: u8 = 1;
const CALLED_OFF: u8 = 2;

/// One key in hand.
pub(crate) struct Flight {
    phase: watch::Sender<Phase>,
    claim: AtomicU8,
    waiters: AtomicU32,
}

impl Flight {
    fn new() -> Self {
        Self { phase: watch::Sender::new(Phase::Claiming), claim: AtomicU8::new(OPEN), waiters: AtomicU32::new(0) }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Called by the writer before it inserts. False where somebody was told already that nothing was claimed.
    pub(crate) fn take(&self) -> bool {
        self.claim.compare_exchange(OPEN, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok()
            || self.claim.load(Ordering::Acquire) == TAKEN
    }

    /// Whether the writer has begun the claim. Before, nothing of it can be in the file.
    pub(crate) fn was_taken(&self) -> bool {
        self.claim.load(Ordering::Acquire) == TAKEN
    }

    /// Calls the claim off. False where the writer is already at it, so that its outcome is near.
    pub(crate) fn call_off(&self) -> bool {
        self.claim.compare_exchange(OPEN, CALLED_OFF, Ordering::AcqRel, Ordering::Acquire).is_ok()
            || self.claim.load(Ordering::Acquire) == CALLED_OFF
    }
}

/// A place among those who wait for a flight; given back when dropped.
pub(crate) struct Seat<'a> {
    flight: &'a Flight,
    all: &'a AtomicU32,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.flight.waiters.fetch_sub(1, Ordering::AcqRel);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The flights that are in hand.
#[derive(Default)]
struct InHand {
    flights: HashMap<Name, Arc<Flight>>,
    /// How many each scope has.
    of_scope: HashMap<Arc<str>, usize>,
}

/// All flights of this process.
pub(crate) struct Flights {
    in_hand: Mutex<InHand>,
    count: watch::Sender<usize>,
    waiters: AtomicU32,
    limits: Limits,
}

/// Bounds on what is in hand at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Operations that run at once; beyond it a new key is told to come again. What is known of a key is told all the same.
    pub running: usize,
    /// Operations of one scope that run at once, so that one scope leaves room for the others. What an earlier process left
    /// unfinished is taken over whatever its scope has.
    pub running_per_scope: usize,
    /// Requests that wait for one key.
    pub waiters_per_key: u32,
    /// Requests that wait for any key.
    pub waiters: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { running: 10_000, running_per_scope: 2_500, waiters_per_key: 256, waiters: 10_000 }
    }
}

/// What a newcomer finds.
pub(crate) enum Joined {
    /// Nobody has the key in hand: the newcomer leads.
    Leads(Arc<Flight>),
    /// Somebody has.
    Follows(Arc<Flight>),
    /// Too much is in hand already: in all, or of this scope.
    Full(Hindrance),
}

impl Flights {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { in_hand: Mutex::default(), count: watch::Sender::new(0), waiters: AtomicU32::new(0), limits }
    }

    fn lock(&self) -> MutexGuard<'_, InHand> {
        // Nothing panics while it holds the lock, so the maps are whole.
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins a request to the flight of its key.
    pub(crate) fn join(&self, name: &Name) -> Joined {
        self.join_within(name, self.limits.running_per_scope)
    }

    /// Joins what an earlier process left: it is no doing of its scope that so much of it is there at once.
    pub(crate) fn join_left(&self, name: &Name) -> Joined {
        self.join_within(name, usize::MAX)
    }

    fn join_within(&self, name: &Name, of_scope_max: usize) -> Joined {
        let mut in_hand = self.lock();
        if let Some(flight) = in_hand.flights.get(name) {
            return Joined::Follows(flight.clone());
        }
        if in_hand.flights.len() >= self.limits.running {
            return Joined::Full(Hindrance::TooMuch);
        }
        let of_scope = in_hand.of_scope.entry(name.0.clone()).or_default();
        if *of_scope >= of_scope_max {
            return Joined::Full(Hindrance::TooMuchOfScope);
        }
        *of_scope += 1;
        let flight = Arc::new(Flight::new());
        in_hand.flights.insert(name.clone(), flight.clone());
        self.count.send_replace(in_hand.flights.len());
        Joined::Leads(flight)
    }

    pub(crate) fn get(&self, name: &Name) -> Option<Arc<Flight>> {
        self.lock().flights.get(name).cloned()
    }

    pub(crate) fn remove(&self, name: &Name) {
        let mut in_hand = self.lock();
        if in_hand.flights.remove(name).is_some()
            && let Some(of_scope) = in_hand.of_scope.get_mut(&name.0)
        {
            *of_scope -= 1;
            if *of_scope == 0 {
                in_hand.of_scope.remove(&name.0);
            }
        }
        self.count.send_replace(in_hand.flights.len());
    }

    /// Takes a place to wait; none where too many wait already.
    pub(crate) fn seat<'a>(&'a self, flight: &'a Flight) -> Option<Seat<'a>> {
        let one = flight.waiters.fetch_add(1, Ordering::AcqRel);
        let all = self.waiters.fetch_add(1, Ordering::AcqRel);
        let seat = Seat { flight, all: &self.waiters };
        (one < self.limits.waiters_per_key && all < self.limits.waiters).then_some(seat)
    }

    /// How many requests wait, whoever leads included.
    pub(crate) fn waiters(&self) -> u32 {
        self.waiters.load(Ordering::Acquire)
    }

    /// How many keys are in hand.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }
}
