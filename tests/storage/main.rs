//! The till's file when the disk is full, read-only or broken, and when others hold it or have changed it: what is said,
//! that nothing is sent which is not durable, and that nothing is lost.
#![cfg(unix)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../harness/mod.rs"]
mod harness;

mod broken;
mod cut_log;
mod full;
mod locked;
mod read_only;
mod room;
mod said;
