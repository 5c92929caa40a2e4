//! What whoever watches a service can read at `/metrics`, in Prometheus' text format.
//!
//! Nothing here is global to the process: one process serves bank and gateway, and a test opens several of each. What is
//! counted lies with whoever does the work, in atomics; a scrape reads it and writes it down. No label holds anything that a
//! client sent: routes stand there as their templates.

pub(crate) mod histogram;
pub(crate) mod written;

use crate::{
    http::{
        answer::{self, Refusal},
        counting::Counting,
    },
    metrics::{histogram::Histogram, written::Written},
};
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use idempotency::{Clock, Engine, Work};
use prometheus_client::{encoding::prometheus_text, registry::Registry};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use store::Store;

/// Where the numbers are.
pub(crate) const PATH: &str = "/metrics";
/// Names of a bank's metrics begin with this.
pub(crate) const OF_BANK: &str = "kassa_bank";
/// Names of a gateway's metrics begin with this.
pub(crate) const OF_GATEWAY: &str = "kassa_gateway";

/// What one service counts besides its engine and its store.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) counting: Counting,
    /// What the gateway was asked; counted by a bank.
    pub(crate) attempts: Option<Arc<Attempts>>,
    prefix: &'static str,
    started: Instant,
}

impl Metrics {
    pub(crate) fn new(prefix: &'static str, attempts: Option<Arc<Attempts>>) -> Self {
        Self { counting: Counting::default(), attempts, prefix, started: Instant::now() }
    }

    /// The answer to `GET /metrics`. What the store has to be asked for is left out while it can't be read, which
    /// `store_readable` tells.
    pub(crate) async fn answer<W: Work>(
        &self,
        engine: &Engine<W>,
        store: &Store,
        clock: &impl Clock,
        breaker_open: Option<bool>,
    ) -> Result<Response, Refusal> {
        let backlog = match engine.backlog().await {
            Ok(backlog) => Some(backlog),
            Err(error) => {
                tracing::warn!(%error, "what is not final could not be counted");
                None
            }
        };
        let written = Written {
            uptime: self.started.elapsed(),
            routes: self.counting.routes(),
            in_hand: self.counting.in_hand(),
            abandoned: self.counting.abandoned(),
            attempts: self.attempts.clone(),
            breaker_open,
            counts: engine.counts(),
            backlog,
            now: clock.now(),
            commits: store.work().commits,
        };
        let mut registry = Registry::with_prefix(self.prefix);
        registry.register_collector(Box::new(written));
        let mut text = String::new();
        if prometheus_text::encode(&mut text, &registry).is_err() {
            return Err(answer::failed("the metrics can't be written down"));
        }
        Ok(([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text).into_response())
    }
}

/// What an attempt at the gateway was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A request, under its key.
    Send,
    /// A question by reference.
    Look,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Known,
    InProgress,
    NotThere,
    Expired,
    Unknown,
    NeedsAttention,
    OtherGateway,
}

impl Ended {
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Known, "known"),
        (Self::InProgress, "in_progress"),
        (Self::NotThere, "not_there"),
        (Self::Expired, "expired"),
        (Self::Unknown, "unknown"),
        (Self::NeedsAttention, "needs_attention"),
        (Self::OtherGateway, "other_gateway"),
    ];
}

/// Attempts of one kind.
#[derive(Debug, Default)]
pub(crate) struct AttemptCount {
    ended: [AtomicU64; Ended::ALL.len()],
    pub(crate) times: Histogram,
}

/// What the gateway was asked, and how that ended.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) sent: AttemptCount,
    pub(crate) looked: AttemptCount,
}

impl Attempts {
    pub(crate) fn count(&self, attempt: Attempt, ended: Ended, time: Duration) {
        let of = match attempt {
            Attempt::Send => &self.sent,
            Attempt::Look => &self.looked,
        };
        of.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
        of.times.add(time);
    }
}

impl AttemptCount {
    /// How often each end came.
    pub(crate) fn by_end(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Ended::ALL.iter().zip(&self.ended).map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
    }
}

/// What the document says of the numbers that an operator would have an alarm on.
pub(crate) const ADVICE: &str = "\
Numbers since the start of the process, in Prometheus' text format. Names begin with `kassa_bank_`; a gateway serves its own, \
which begin with `kassa_gateway_`. Alarms that are worth having:\n\n\
- `operations{state=\"needs_attention\"}` above 0: a person must look.\n\
- `oldest_processing_seconds` above a minute: the gateway is away, or something hangs.\n\
- `http_requests_total` with status 500 growing: the bank fails. With status 503: its store can't be written.\n\
- `gateway_attempts_total{result=\"unknown\"}` growing faster than `known`, or `gateway_breaker_open` at 1: the gateway is ill.\n\
- `store_readable` at 0, or `work_panics_total` growing.\n\n\
No label holds a key, a card token, a secret or an id.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_counted_under_its_own_name() {
        let attempts = Attempts::default();
        for (ended, _) in Ended::ALL {
            attempts.count(Attempt::Look, ended, Duration::ZERO);
        }
        attempts.count(Attempt::Look, Ended::OtherGateway, Duration::ZERO);
        let counted: Vec<_> = attempts.looked.by_end().map(|(name, count)| (name.to_owned(), count)).collect();
        let wanted =
            Ended::ALL.map(|(ended, name)| (name.to_owned(), if ended == Ended::OtherGateway { 2 } else { 1 }));
        assert_eq!(counted, wanted);
        assert!(attempts.sent.by_end().all(|(_, count)| count == 0));
    }
}
