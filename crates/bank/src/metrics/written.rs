//! Writing a service's numbers down.

use crate::{
    http::counting::RouteCount,
    metrics::{GatewayCall, GatewayCalls, histogram::Times},
};
use idempotency::{Backlog, Counts};
use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, NoLabelSet},
    metrics::{MetricType, exemplar::Exemplar},
};
use std::{fmt, sync::Arc};

/// All that a service tells, as it was when it was asked.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) routes: Vec<Arc<RouteCount>>,
    pub(crate) being_answered: u64,
    pub(crate) abandoned: u64,
    pub(crate) gateway_calls: Option<Arc<GatewayCalls>>,
    /// Of a bank: whether its gateway fails, so that one call at a time tries whether it is back.
    pub(crate) breaker_open: Option<bool>,
    pub(crate) counts: Counts,
    /// None while the store can't be read.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) now: Timestamp,
    pub(crate) store: store::Work,
}

/// What is told of the process, under a name that all programs share.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) started: Timestamp,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let started_s = self.started.as_millisecond() as f64 / 1e3;
        let help = "When the service was opened, in seconds since 1970.";
        Page(&mut encoder).gauge("process_start_time_seconds", help, started_s)
    }
}

/// A name and its value.
type Label = (&'static str, &'static str);

impl Collector for Written {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(&mut encoder);
        self.service(&mut page)?;
        self.requests(&mut page)?;
        self.operations(&mut page)?;
        if let Some(open) = self.breaker_open {
            let help = "Whether the gateway fails, so that one call at a time tries whether it is back: 1 or 0.";
            page.gauge("gateway_breaker_open", help, if open { 1.0 } else { 0.0 })?;
        }
        self.gateway_calls.as_ref().map_or(Ok(()), |calls| gateway(calls, &mut page))
    }
}

impl Written {
    fn service(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let version: [Label; 1] = [("version", env!("CARGO_PKG_VERSION"))];
        page.gauges("build_info", "The version that runs; always 1.", [(version, 1.0)])?;
        self.store(page)?;
        let readable = if self.backlog.is_some() { 1.0 } else { 0.0 };
        page.gauge("store_readable", "Whether the store could be read for this page: 1 or 0.", readable)
    }

    fn store(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let store = &self.store;
        page.counter(
            "store_commits",
            "Durable commits of the store, each of which may hold many pieces.",
            store.commits,
        )?;
        page.counter("store_pieces", "Pieces of work that were written in those commits.", store.pieces)?;
        let help = "Time that those commits took, the disk's sync included.";
        page.counter("store_commit_seconds", help, store.commit_time.as_secs_f64())?;
        page.counter("store_overloaded", "Pieces that were not taken because too many waited.", store.overloaded)?;
        let waiting: [([Label; 1], f64); 2] = [
            ([("priority", "click")], store.clicks_waiting as f64),
            ([("priority", "background")], store.background_waiting as f64),
        ];
        page.gauges(
            "store_waiting",
            "Pieces that wait to be written, by priority: a click is what a request waits for.",
            waiting,
        )
    }

    fn requests(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let labels = |route: &RouteCount| [("route", route.route.clone()), ("method", route.method.to_owned())];
        let by_status = self.routes.iter().flat_map(|route| {
            route.by_status().map(move |(status, count)| {
                let [path, method] = labels(route);
                ([path, method, ("status", status.to_owned())], count)
            })
        });
        page.counters(
            "http_requests",
            "Requests that were answered, by the route's template, or `none` where no route was reached.",
            by_status,
        )?;
        let times = self.routes.iter().map(|route| (labels(route), route.times.read()));
        page.histograms(
            "http_request_duration_seconds",
            "Time from the head of a request to its answer, a wait for the outcome included.",
            times,
        )?;
        let help = "Requests that are being answered.";
        page.gauge("http_requests_being_answered", help, self.being_answered as f64)?;
        page.counter("http_requests_abandoned", "Requests whose client went away before the answer.", self.abandoned)
    }

    fn operations(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let counts = &self.counts;
        let answers: [(&str, u64); 9] = [
            ("first", counts.first),
            ("replayed", counts.replayed),
            ("in_progress", counts.in_progress),
            ("needs_attention", counts.needs_attention),
            ("reused", counts.reused),
            ("expired", counts.expired),
            ("cancelled", counts.cancelled),
            ("refused", counts.refused),
            ("unavailable", counts.unavailable),
        ];
        page.counters(
            "keyed_answers",
            "Answers to keyed requests that were valid: made by this request, replayed, told to come again, or refused.",
            answers.map(|(kind, count)| ([("kind", kind)], count)),
        )?;
        let cancellations: [(&str, u64); 4] = [
            ("cancelled", counts.cancel_cancelled),
            ("kept", counts.cancel_kept),
            ("settling", counts.cancel_settling),
            ("unavailable", counts.cancel_unavailable),
        ];
        page.counters(
            "cancellations",
            "Answers to wishes to cancel a key: it never charges, it stays as it is, it settles first, or nothing could be stored.",
            cancellations.map(|(kind, count)| ([("kind", kind)], count)),
        )?;
        let help = "Operations that this process has in hand: it is at them right now.";
        page.gauge("operations_in_hand", help, counts.in_hand as f64)?;
        page.gauge("requests_waiting", "Requests that wait for an operation's outcome.", counts.waiting as f64)?;
        page.counter("work_panics", "Panics of an operation's work, each caught and tried again.", counts.panics)?;
        page.counter("responses_purged", "Stored responses that were dropped as expired.", counts.purged)?;
        let help = "Operations that were processing at the start: an earlier process had them in hand.";
        page.gauge("recovery_found", help, counts.found_at_start as f64)?;
        self.backlog.as_ref().map_or(Ok(()), |backlog| self.backlog(backlog, page))
    }

    fn backlog(&self, backlog: &Backlog, page: &mut Page<'_, '_>) -> fmt::Result {
        let help = "Operations that are processing since an earlier process, and that this one has not taken over yet.";
        page.gauge("recovery_not_taken_over", help, backlog.not_taken_over as f64)?;
        let states: [([Label; 1], f64); 2] = [
            ([("state", "processing")], backlog.processing as f64),
            ([("state", "needs_attention")], backlog.needing_attention as f64),
        ];
        page.gauges("operations", "Operations in the store that are not final.", states)?;
        let age = backlog.oldest_processing.map_or(0.0, |at| self.now.duration_since(at).as_secs_f64().max(0.0));
        page.gauge("oldest_processing_seconds", "Age of the oldest operation that is processing, or 0.", age)
    }
}

fn gateway(calls: &GatewayCalls, page: &mut Page<'_, '_>) -> fmt::Result {
    let kinds = GatewayCall::ALL.map(|(call, name)| (name, calls.of(call)));
    let by_end = kinds.iter().flat_map(|(call, count)| {
        count.by_end().map(move |(result, count)| ([("call", *call), ("result", result)], count))
    });
    page.counters(
        "gateway_calls",
        "Calls to the gateway: the question which one it is, requests sent under their key, and looks by reference. After `unknown` it is called again.",
        by_end,
    )?;
    let times = kinds.iter().map(|(call, count)| ([("call", *call)], count.times.read()));
    page.histograms("gateway_call_duration_seconds", "How long a call to the gateway took.", times)
}

/// The page as it is being written.
struct Page<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Page<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: impl EncodeCounterValue) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>)?;
        }
        Ok(())
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn histograms<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, Times)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, times) in values {
            let mut of_labels = family.encode_family(&labels)?;
            of_labels.encode_histogram::<NoLabelSet>(times.sum_s, times.count, &times.buckets, None)?;
        }
        Ok(())
    }
}
