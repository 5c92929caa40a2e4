//! What a bank says of itself: its OpenAPI document, the pages, and the metrics.

mod metrics;
mod openapi;
mod pages;
mod running;
