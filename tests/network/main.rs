//! The till without a window and the bank as real processes, with a proxy between them that plays a bad network.

#[allow(dead_code, reason = "shared with other tests, which use the rest")]
#[path = "../harness/mod.rs"]
mod harness;

mod answers;
mod checking;
mod connecting;
mod cutting;
mod dropping;
mod duplicates;
mod expired;
mod large;
mod outage;
mod proxy;
mod refusing;
mod reply;
mod scene;
mod slow;
mod waiting;
