//! The server side of the idempotency key: claim, run once, store, replay, recover, purge.
//!
//! A client that got no answer sends its request again under the same key. This engine sees to it that the work
//! behind the request is done once, and that every repeat gets the answer of that one run. It knows nothing of
//! HTTP servers and nothing of what the work is: a service hands it decoded requests and the [`Work`] to run, and
//! turns its [`Answer`]s into whatever it speaks.
//!
//! **The one invariant:** for each scope and key at most one run is under way, and at most one result is ever
//! stored; whoever is told a result is told that one, after its commit.
//!
//! How it is kept:
//! - *Claim*: one insert under a unique index of scope and key, never a look and then an insert.
//! - *Sameness* is by meaning: a digest of the route and of each decoded member, with a version. A key with another
//!   meaning is [`Answer::Reused`], which comes before every other answer but that of a cancelled key.
//! - *Run*: in a task of its own. Clients wait on a channel; one that goes away ends nothing. A panic is caught and
//!   the work runs again.
//! - *Result*: response, final state and the work's own rows in one commit. What can't be committed is told to nobody
//!   and tried again.
//! - *Ownership* is by liveness, never by age: the lock file proves that earlier processes are dead, and the list of
//!   flights what this one runs. Every write names the owner that it expects.
//! - *Recovery* starts by itself and takes over every operation with a dead owner.
//! - *Expiry*: the response is dropped after the retention. The claim never is, so an old key is refused and not run
//!   again.
//!
//! Two durable commits are made for one operation: claim and result; one where the claim brings the result itself.
//!
//! # With an axum service
//! ```no_run
//! use idempotency::{
//!     Answer, Begin, Config, Engine, Job, Limits, Request, Response, Settlement, SystemClock, Undo, Verdict, Work,
//! };
//! use std::{sync::Arc, time::Duration};
//!
//! struct Print; // what is to be done once for each key
//!
//! impl Work for Print {
//!     type Context = ();
//!     async fn run(&self, job: Job<()>) -> Verdict {
//!         // Ask the printer here, under a key made from job.scope and job.key, until it is known what became of it.
//!         let response = Response {
//!             status: 201,
//!             content_type: "application/json".into(),
//!             location: None,
//!             body: "{}".into(),
//!         };
//!         Verdict::Settled(Settlement { outcome: "printed", subject: None, response, rows: Arc::new(|_| Ok(())) })
//!     }
//!     async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
//!         Undo::Kept // paper can't be unprinted
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = store::Schema {
//!     application_id: 1,
//!     migrations: vec![store::Migration { version: 1, name: "operations", sql: idempotency::SCHEMA }],
//! };
//! let lock = store::LockFile::acquire("print.lock".as_ref())?;
//! let store = store::Store::open("print.db".as_ref(), &schema)?;
//! let config = Config {
//!     wait: Duration::from_secs(3),
//!     retention: Duration::from_secs(86_400),
//!     limits: Limits::default(),
//! };
//! let engine = Engine::open(store, lock, Print, Arc::new(SystemClock), config).await?;
//! engine.start();
//!
//! // in a handler, after the request was decoded and found valid:
//! let answer = engine
//!     .run(Request {
//!         scope: "customer 7".into(),
//!         key: [1; 16],
//!         kind: "print",
//!         route: "POST /pages".into(),
//!         members: vec![("text", b"hello".to_vec())],
//!         payload: b"hello".to_vec(),
//!         begin: Box::new(|_tx, _claim| Ok(Begin::Run)),
//!         context: (),
//!     })
//!     .await;
//! match answer {
//!     Answer::Done { response, replayed } => { /* the response, with Idempotent-Replayed */ }
//!     Answer::InProgress | Answer::NeedsAttention => { /* 409 and Retry-After */ }
//!     Answer::Reused { differs } => { /* 422 */ }
//!     Answer::Expired { .. } | Answer::Cancelled => { /* 410 */ }
//!     Answer::Refused(_) => { /* what the claim's own part refuses it for, such as 404 */ }
//!     Answer::Unavailable(_) => { /* 503 and Retry-After */ }
//! }
//! # Ok(()) }
//! ```

mod cancel;
mod clock;
mod engine;
mod execution;
mod flight;
mod meaning;
mod record;
mod recovery;
mod rows;
mod work;

pub use cancel::Cancel;
pub use clock::{Clock, SystemClock};
pub use engine::{Answer, Config, Engine, Hindrance, Unavailable};
pub use execution::may_pass;
pub use flight::Limits;
pub use record::{Owner, Record, Response, State};
pub use recovery::Progress;
pub use work::{Begin, BeginFn, Claim, Job, Request, Rows, Settlement, Undo, Verdict, Work};

/// The engine's tables, for the caller's own migrations.
pub const SCHEMA: &str = include_str!("schema.sql");
