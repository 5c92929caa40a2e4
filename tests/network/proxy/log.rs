//! What the proxy saw and did.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Result, ensure};

use super::wire::{Kind, Message};

/// A request, and its place among those before it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) key: Option<String>,
    /// From 1 on, among those of its kind.
    pub(crate) nth: usize,
    /// From 1 on, among those of its kind and key.
    pub(crate) nth_of_key: usize,
}

/// A request, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) asked: Asked,
    /// From 0 on, in the order of coming in.
    pub(crate) connection: usize,
    pub(crate) asked_at: Instant,
    pub(crate) request: Message,
    /// The fault that was planned for it.
    pub(crate) fault: Option<String>,
    /// The bank's answer; none where it was not asked, or gave none.
    pub(crate) from_bank: Option<Message>,
    /// Bytes of the answer that was made.
    pub(crate) answer_bytes: usize,
    /// Bytes of it that were handed over.
    pub(crate) given_bytes: usize,
    /// When nothing more was done; none while something still is.
    pub(crate) ended_at: Option<Instant>,
    /// Whether what was planned was done, to the end.
    pub(crate) is_done: bool,
}

/// Every request, in the order of coming in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) exchanges: Vec<Exchange>,
    /// What went wrong with the proxy itself.
    failures: Vec<String>,
}

impl Log {
    /// A request's place among those before it.
    pub(super) fn place(&self, kind: Kind, key: Option<String>) -> Asked {
        let same = || self.exchanges.iter().filter(|exchange| exchange.asked.kind == kind);
        let nth = same().count() + 1;
        let nth_of_key = same().filter(|exchange| exchange.asked.key == key).count() + 1;
        Asked { kind, key, nth, nth_of_key }
    }

    pub(super) fn failed(&mut self, what: String) {
        self.failures.push(what);
    }

    /// The requests of one kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(move |exchange| exchange.asked.kind == kind)
    }

    /// How often each fault was done to the end.
    pub(crate) fn faults(&self) -> BTreeMap<String, u64> {
        let mut faults = BTreeMap::new();
        for exchange in self.exchanges.iter().filter(|exchange| exchange.is_done) {
            if let Some(fault) = &exchange.fault {
                *faults.entry(fault.clone()).or_default() += 1;
            }
        }
        faults
    }

    /// The proxy did all that it was told, as far as it knows.
    pub(crate) fn is_sound(&self) -> Result<()> {
        ensure!(self.failures.is_empty(), "the proxy failed: {:?}", self.failures);
        let mut bodies: BTreeMap<&str, &[u8]> = BTreeMap::new();
        // One that was left unread has no body here.
        for exchange in self.of(Kind::Keyed).filter(|exchange| !exchange.request.bytes.is_empty()) {
            let key = exchange.asked.key.as_deref().unwrap_or_default();
            let body = exchange.request.body();
            ensure!(*bodies.entry(key).or_insert(body) == body, "{key} was sent with two bodies");
        }
        Ok(())
    }
}
