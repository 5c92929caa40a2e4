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
        "(state IN ('saved', 'sending', 'unknown', 'needs_attention') OR tombstone = 1)"
    };
}

mod attempts;
mod backoff;
mod breaker;
mod cancelling;
mod changes;
mod clock;
mod columns;
mod contract;
mod events;
mod export;
mod operations;
mod outbox;
mod outcome;
mod pacing;
mod refunds;
mod rows;
mod saving;
mod settings;
mod settler;
mod state;
mod step;
mod summary;
mod tables;
mod transport;

pub mod answer;
pub mod decide;

pub use attempts::{Attempt, attempts};
pub use backoff::{Backoff, Random};
pub use cancelling::{AcceptError, CancelAs, CancelError, Cancelled, accept_offline, cancel};
pub use changes::{Changes, bank_asked, changed_since, last_change};
pub use clock::{Clock, SystemClock};
pub use contract::{BankContract, Contract, Promise, StoredRequest};
pub use events::Event;
pub use export::{ExportError, export};
pub use operations::{Filter, Kind, Money, Operation, by_intent, by_key, list, refunds_of, replacement_of};
pub use outbox::{Ended, OnChange, OnLateAnswer, Outbox, StartError};
pub use outcome::Change;
pub use rows::LateAnswer;
pub use saving::{EnqueueError, Enqueued, Message, NewOperation, Request, enqueue};
pub use settings::Settings;
pub use state::{Ask, State};
pub use step::BankIdentity;
pub use summary::{Backlog, Summary, summary};
pub use transport::{Bank, BankError, Call, HttpTransport, Secret, Transport};

// What stands in the interface, so that a user of this crate needs to name no other, nor to find the version that fits.
pub use futures::future::BoxFuture;
pub use protocol::{Amount, AmountError, CardToken, Currency, Key, KeyError, Outcome, PaymentRequest, ShortCode};
pub use tokio_util::sync::CancellationToken;
pub use {jiff, rusqlite, store, uuid};

/// The outbox's tables, as steps from nothing to what this version needs. The caller makes them in its own file, as migrations
/// of its own, in this order, each once; others may stand between them. A step that was released never changes.
pub const MIGRATIONS: [&str; 2] =
    [include_str!("migrations/001_outbox.sql"), include_str!("migrations/002_outbox.sql")];
