//! Health, metrics and the pages of problems.

use crate::{
    acquirer::health::Health,
    metrics,
    openapi::call::{Answered, Call, text},
};
use prometheus_client::encoding::prometheus_text;
use protocol::ProblemType;
use serde_json::json;

/// Where the bank says how it is.
pub(crate) const HEALTH_PATH: &str = "/healthz";
/// Where the page of a problem is.
pub(crate) const PROBLEM_PATH: &str = "/problems/{name}";

pub(crate) fn health() -> Call {
    let well = json!({"status": "ok", "store": "ok", "gateway": "ok"});
    let away = json!({"status": "degraded", "store": "ok", "gateway": "away"});
    let ill = json!({"status": "unavailable", "store": "unavailable", "gateway": "ok"});
    Call::get(HEALTH_PATH, "getHealth")
        .tag("Service")
        .says(
            "How the bank is",
            "200 while the store takes a durable write. A gateway that is away, or fails each call, is named and is no failure: the bank takes \
             requests, and finishes them when it is back. It is found out four times a second at most, for all who ask together; nobody \
             is told how the bank was before they asked. No authorization.",
        )
        .answers(
            200,
            Answered::json::<Health>(
                "It works.",
                &[("ok", "All is well", well), ("degraded", "The gateway is away", away)],
            ),
        )
        .answers(
            503,
            Answered::json::<Health>("The store can't be written, or the bank is going down.", &[("unavailable", "No store", ill)]),
        )
}

pub(crate) fn metrics() -> Call {
    let says = format!("{} No authorization.", metrics::ADVICE);
    Call::get(metrics::PATH, "getMetrics")
        .tag("Service")
        .says("Metrics", &says)
        .answers(200, Answered::text("The numbers.", prometheus_text::CONTENT_TYPE))
}

pub(crate) fn problem() -> Call {
    let names = ProblemType::ALL.map(ProblemType::name);
    Call::get(PROBLEM_PATH, "getProblem")
        .tag("Service")
        .says(
            "What a problem means",
            "A readable page for each problem type: what happened, and what to do. No authorization.",
        )
        .in_path("name", "The name of the problem.", text().enum_values(Some(names)), "key-reused")
        .answers(200, Answered::text("The page.", "text/html; charset=utf-8"))
}
