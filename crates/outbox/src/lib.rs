//! The durable queue of operations over SQLite, and the task that settles them against a bank.
//!
//! [`enqueue`] saves an operation in the caller's own transaction, so that a sale and what is to be charged for it are one
//! commit. A task then sends the saved bytes under the saved key until the bank has said how it ended, over time-outs,
//! restarts, kills and days without a network.
//!
//! **The one invariant:** an operation has one key for life; nothing of it leaves before it is durable, every attempt is
//! counted before its first byte, and only a valid answer of its own bank makes it final, once. No answer is `unknown`,
//! never "failed".

/// What the index `operations_open` holds. A query finds that index only by these very words.
macro_rules! open {
    () => {
        "state IN ('saved', 'sending', 'unknown', 'needs_attention')"
    };
}

mod attempts;
mod backoff;
mod breaker;
mod clock;
mod columns;
mod events;
mod operations;
mod outbox;
mod outcome;
mod pacing;
mod rows;
mod settings;
mod settler;
mod state;
mod step;
mod summary;
mod transport;

pub mod answer;
pub mod decide;

pub use attempts::{Attempt, attempts};
pub use backoff::{Backoff, Random};
pub use clock::{Clock, SystemClock};
pub use events::Event;
pub use operations::{
    EnqueueError, Enqueued, Filter, NewOperation, Operation, Request, by_intent, by_key, enqueue, list, replacement_of,
};
pub use outbox::{Ended, OnChange, OnLateAnswer, Outbox, StartError};
pub use outcome::Change;
pub use rows::LateAnswer;
pub use settings::Settings;
pub use state::{Ask, State};
pub use summary::{Summary, summary};
pub use transport::{Bank, BankError, Call, HttpTransport, Secret, Transport};

/// The outbox's tables. The caller makes them in its own file, as a migration of its own, once.
pub const SCHEMA: &str = include_str!("schema.sql");
