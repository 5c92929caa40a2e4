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
    metrics::{
        histogram::Histogram,
        written::{Process, Written},
    },
};
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use idempotency::{Clock, Engine, Work};
use jiff::Timestamp;
use prometheus_client::{encoding::prometheus_text, registry::Registry};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
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
    pub(crate) gateway_calls: Option<Arc<GatewayCalls>>,
    prefix: &'static str,
    /// By the machine's clock: the lab moves the service's own.
    started: Timestamp,
}

impl Metrics {
    pub(crate) fn new(prefix: &'static str, gateway_calls: Option<Arc<GatewayCalls>>) -> Self {
        Self { counting: Counting::default(), gateway_calls, prefix, started: protocol::instant(SystemTime::now()) }
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
            routes: self.counting.routes(),
            being_answered: self.counting.being_answered(),
            abandoned: self.counting.abandoned(),
            gateway_calls: self.gateway_calls.clone(),
            breaker_open,
            counts: engine.counts(),
            backlog,
            now: clock.now(),
            store: store.work(),
        };
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process { started: self.started }));
        registry.sub_registry_with_prefix(self.prefix).register_collector(Box::new(written));
        let mut text = String::new();
        if prometheus_text::encode(&mut text, &registry).is_err() {
            return Err(answer::failed("the metrics can't be written down"));
        }
        Ok(([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], text).into_response())
    }
}

/// What the gateway was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayCall {
    /// The question which gateway it is.
    Identify,
    /// A request, under its key: what an operation counts as an attempt.
    Send,
    /// A question by reference.
    Look,
}

impl GatewayCall {
    pub(crate) const ALL: [(Self, &'static str); 3] =
        [(Self::Identify, "identify"), (Self::Send, "send"), (Self::Look, "look")];
}

/// How a call ended.
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

/// Calls of one kind.
#[derive(Debug, Default)]
pub(crate) struct CallCount {
    ended: [AtomicU64; Ended::ALL.len()],
    pub(crate) times: Histogram,
}

/// What the gateway was called for, and how that ended.
#[derive(Debug, Default)]
pub(crate) struct GatewayCalls([CallCount; GatewayCall::ALL.len()]);

impl GatewayCalls {
    pub(crate) fn count(&self, call: GatewayCall, ended: Ended, time: Duration) {
        let of = self.of(call);
        of.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
        of.times.add(time);
    }

    /// The calls of one kind.
    pub(crate) fn of(&self, call: GatewayCall) -> &CallCount {
        &self.0[call as usize]
    }
}

impl CallCount {
    /// How often each end came.
    pub(crate) fn by_end(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Ended::ALL.iter().zip(&self.ended).map(|((_, name), count)| (*name, count.load(Ordering::Relaxed)))
    }
}

/// What the document says of the numbers that an operator would have an alarm on.
pub(crate) const ADVICE: &str = "\
Numbers since the start of the process, in Prometheus' text format. Names begin with `kassa_bank_`, but for \
`process_start_time_seconds`; a gateway serves its own, which begin with `kassa_gateway_`. Alarms that are worth having:\n\n\
- `operations{state=\"needs_attention\"}` above 0: a person must look.\n\
- `oldest_processing_seconds` above a minute: the gateway is away, or something hangs.\n\
- `http_requests_total` with status 500 growing: the bank fails. With status 503: it can't take requests, because its store can't \
be read or written, because it has too much in hand, or because it is going down (then `route` is `none`).\n\
- `store_waiting` staying high, or `store_overloaded_total` growing: the disk is too slow for what comes. \
`rate(store_commit_seconds_total) / rate(store_commits_total)` is how long a commit takes, and \
`rate(store_pieces_total) / rate(store_commits_total)` how many writes share one.\n\
- `gateway_calls_total{result=\"unknown\"}` growing faster than `known`, or `gateway_breaker_open` at 1: the gateway is ill. With \
`call=\"identify\"` it is away.\n\
- `store_readable` at 0, or `work_panics_total` growing.\n\n\
An operation is `processing` from its claim until it is final or needs attention, whoever is at it. It is *in hand* while this process is \
at it: `operations_in_hand` is the smaller one where an earlier process left some that this one has not taken over yet.\n\n\
No label holds a key, a card token, a secret or an id.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_as_what_it_is_and_under_how_it_ended() {
        for (call, _) in GatewayCall::ALL {
            let calls = GatewayCalls::default();
            for (ended, _) in Ended::ALL {
                calls.count(call, ended, Duration::ZERO);
            }
            calls.count(call, Ended::OtherGateway, Duration::ZERO);
            let counted: Vec<_> = calls.of(call).by_end().map(|(name, count)| (name.to_owned(), count)).collect();
            let wanted =
                Ended::ALL.map(|(ended, name)| (name.to_owned(), if ended == Ended::OtherGateway { 2 } else { 1 }));
            assert_eq!(counted, wanted);
            let others = GatewayCall::ALL.into_iter().filter(|(other, _)| *other != call);
            assert!(others.flat_map(|(other, _)| calls.of(other).by_end()).all(|(_, count)| count == 0));
        }
    }
}
