//! The day at the till: a shop's day over real processes. A till that is killed in the middle of sales, a bank that refuses, drops,
//! fails, slows and tears, and a script that keeps its own books by its own prices. At the end everything agrees to the cent: what each
//! click answered, what the script knows, the Z report and the gateway's ledger.
#![cfg(unix)]

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "shared with the tests of crashes, which use the rest")]
#[path = "../crash/deaths.rs"]
mod deaths;

mod books;
mod click;
mod closing;
mod counter;
mod day;
mod exports;
mod goods;
mod offline;
mod paying;
mod plan;
mod prices;
mod returning;
mod till_process;
mod weather;
