//! Several processes that want one till's folder, and several folders that hold the same operations.
#![cfg(unix)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../harness/mod.rs"]
mod harness;

mod copies;
mod one_owner;
mod take_over;

use std::time::Duration;

const AMOUNT: i64 = 2_490;
const PAY: &[&str] = &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"];
const SYNC: &[&str] = &["sync", "--until-settled"];
const LIMIT: Duration = Duration::from_secs(60);
