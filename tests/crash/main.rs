//! Till and bank, as real processes, killed at every named point and at random, started again, and asked in the end whether
//! each click was charged once. Each test prints how often it killed whom where, and fails where it never did.
#![cfg(unix)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../harness/mod.rs"]
mod harness;

mod bank_points;
mod deaths;
mod old_files;
mod patience;
mod place;
mod shipped;
mod storm;
mod till_points;
mod wishes;
