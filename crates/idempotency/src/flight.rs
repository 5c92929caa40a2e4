//! The operations that this process has in hand: one flight for each key, which all requests for the key share.
//!
//! Whoever comes first leads: it alone touches the store for the key. That a key has no flight here proves,
//! together with the lock on the store, that nobody runs it.

use crate::{engine::Hindrance, record::Record};
use std::{
    collections::{HashMap, hash_map::Entry},
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

/// All flights of this process.
pub(crate) struct Flights {
    map: Mutex<HashMap<Name, Arc<Flight>>>,
    count: watch::Sender<usize>,
    waiters: AtomicU32,
    limits: Limits,
}

/// Bounds on what is in hand at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Operations that run at once; beyond it a new key is told to come again.
    pub running: usize,
    /// Requests that wait for one key.
    pub waiters_per_key: u32,
    /// Requests that wait for any key.
    pub waiters: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { running: 10_000, waiters_per_key: 256, waiters: 10_000 }
    }
}

/// What a newcomer finds.
pub(crate) enum Joined {
    /// Nobody has the key in hand: the newcomer leads.
    Leads(Arc<Flight>),
    /// Somebody has.
    Follows(Arc<Flight>),
    /// Too much is in hand already.
    Full,
}

impl Flights {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { map: Mutex::default(), count: watch::Sender::new(0), waiters: AtomicU32::new(0), limits }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Flight>>> {
        // Nothing panics while it holds the lock, so the map is whole.
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn join(&self, name: &Name) -> Joined {
        let mut map = self.lock();
        let full = map.len() >= self.limits.running;
        match map.entry(name.clone()) {
            Entry::Occupied(entry) => Joined::Follows(entry.get().clone()),
            Entry::Vacant(_) if full => Joined::Full,
            Entry::Vacant(entry) => {
                let flight = entry.insert(Arc::new(Flight::new())).clone();
                self.count.send_replace(map.len());
                Joined::Leads(flight)
            }
        }
    }

    pub(crate) fn get(&self, name: &Name) -> Option<Arc<Flight>> {
        self.lock().get(name).cloned()
    }

    pub(crate) fn remove(&self, name: &Name) {
        let mut map = self.lock();
        map.remove(name);
        self.count.send_replace(map.len());
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
