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
//! # What is guaranteed, and what you owe for it
//! The engine runs a work *at least* once and stores *exactly one* result. Between an outside call and the commit of its
//! result the process may die; then the work runs again, from the start, in the next process, with nobody asking. So:
//! - What [`Work::run`] asks of the outside must be repeatable: under a key of its own, made from [`Job::scope`] and
//!   [`Job::key`] (never drawn anew), with the outside side being idempotent by it, or with a look before each repeat.
//! - No answer from the outside is no outcome. Don't return; ask again inside the run. Only what is known for certain is
//!   [`Verdict::Settled`], refusals included; what only a person can find out is [`Verdict::NeedsAttention`].
//! - What must be true together with the result goes into [`Settlement::rows`], and what must be true together with the claim
//!   into [`Request::begin`]: both are commits of the engine's own. Don't write about an operation beside them.
//! - The response is what every repeat gets, for as long as it is stored: nothing in it may depend on who asks, or when.
//! - [`Request::members`] decide what "the same request" means. Give each member bytes that are equal exactly where its
//!   meaning is: the parsed number and not its digits, the decoded text and not its escapes.
//! - [`Request::payload`] is what a run after a crash works from. It lies in the file as it is until the operation is final;
//!   mind what you put into it.
//! - [`Work::undo`] takes back what a run did whose key was meanwhile cancelled ([`Engine::cancel`]). It has to be repeatable
//!   too. Work that can't be taken back says [`Undo::Kept`], and its result stands.
//!
//! Whoever drops the future of [`Engine::run`], as a server does when its client hangs up, drops the waiting and nothing else.
//! A panic inside the work is caught and the work runs again at once; the fifth in a row is for a person. That needs the default
//! `panic = "unwind"`; with `abort` a panic is a crash, and the next process goes on.
//!
//! Keys are 16 bytes, such as a UUID's. A service whose clients choose texts takes the first 16 bytes of the text's SHA-256.
//! A member that a request leaves out is left out of [`Request::members`]; then a member that a later version adds changes
//! nothing for the keys of older requests. The order of members doesn't matter, their names do.
//!
//! # Taking it into your project
//! The engine is not on a registry: depend on this repository, by path or by git, with `idempotency` and `store` at one commit. Types of
//! `rusqlite`, `jiff`, `bytes` and `tokio` are in the interface, so take the versions of this workspace. SQLite is the bundled one, 3.51.3 or newer, and
//! a second crate that links SQLite by another way can't be in the same program. A dependency doesn't inherit this repository's `.cargo/config.toml`:
//! set `LIBSQLITE3_FLAGS` in your own as it stands there, or every commit syncs a little more than it must.
//!
//! One process at a time has a store. A second instance is refused at the lock, so a deployment ends the old one before it
//! starts the new; clients that come between repeat under their keys. To read your own tables, clone the `Store` before you give it to
//! [`Engine::open`]. Its `application_id` is any number of yours that tells your files from others.
//!
//! # Setting it up
//! 1. Take a [`LockFile`](store::LockFile) beside the database *before* opening it, always the same one: that it can be taken is
//!    the proof that every earlier process is dead. No lease and no heartbeat, so no clock can make two owners of one row.
//! 2. Open a [`Store`](store::Store) with [`SCHEMA`] among its migrations; your own tables stand beside, in the same file. It
//!    is SQLite with one writer and group commit, on a local disk: a network file system proves neither lock nor commit.
//! 3. [`Engine::open`], then [`Engine::start`]: only from then on are the operations of earlier processes finished and expired
//!    responses purged. [`Engine::progress`] says how far that is.
//! 4. At the end [`Engine::stop`], wait for [`Engine::idle`] as long as you like, and [`Engine::close`]. What still runs then
//!    is finished by the next process, as after a crash.
//!
//! # What each answer is in HTTP
//! | [`Answer`] | is | with |
//! |---|---|---|
//! | [`Done`](Answer::Done) | the stored status, type, location and bytes | `Idempotent-Replayed: true` or `false` |
//! | [`InProgress`](Answer::InProgress) | 409 | `Retry-After`; never "failed": it is claimed, or may be |
//! | [`NeedsAttention`](Answer::NeedsAttention) | 409 | a word that nobody need wait |
//! | [`Reused`](Answer::Reused) | 422 | the members that differ, without values |
//! | [`Expired`](Answer::Expired), [`Cancelled`](Answer::Cancelled) | 410 | how it ended; the key never runs again |
//! | [`Refused`](Answer::Refused) | what your [`Request::begin`] meant, such as 404 | nothing was claimed |
//! | [`Unavailable`](Answer::Unavailable) | 503, or 429 for [`TooMuchOfScope`](Hindrance::TooMuchOfScope) | `Retry-After`; nothing was claimed |
//!
//! [`Engine::cancel`] answers what the key is by then ([`Cancel::Is`], 200) or that it still settles ([`Cancel::Settling`], 409).
//! What needs attention is listed by [`Engine::needing_attention`], and put back to work by [`Engine::requeue`] after a person
//! has looked.
//!
//! What you refuse before you call [`Engine::run`] (no key, no valid body, no right) has claimed nothing, so the corrected
//! request may come under the same key. [`Engine::lookup`] says what became of a key, also long after its response has expired.
//!
//! # What it counts
//! [`Engine::counts`] says what this process has done and has in hand, [`Engine::backlog`] what the store holds that is not final. An
//! operation is *processing* in the store from its claim until it is final or needs attention; it is *in hand* while this process
//! is at it. After a crash the next process finds some that are processing and that nobody has in hand: it takes them over.
//!
//! # Limits
//! [`Limits`] bound what is in hand: operations in all and of one scope, requests that wait for one key, requests that wait
//! for any. What the store knows of a key is told however much that is. Those who
//! wait hold a channel, and no thread and no connection of the store. One beyond the bound is answered at once:
//! [`InProgress`](Answer::InProgress) where the key is in hand, [`Unavailable`](Answer::Unavailable) where it is new. The
//! store's own queue is bounded too. A row, of some hundred bytes without its response, stays for each key for ever.
//!
//! # With an axum service
//! The whole of it, to be run, killed and started again, is in `examples/labels.rs`. In short:
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
mod counts;
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
pub use counts::{Backlog, Counts};
pub use engine::{Answer, Config, Engine, Hindrance, Unavailable};
pub use execution::may_pass;
pub use flight::Limits;
pub use record::{Owner, Record, Response, State};
pub use recovery::Progress;
pub use work::{Begin, BeginFn, Claim, Job, Request, Rows, Settlement, Undo, Verdict, Work};

/// The engine's tables, for the caller's own migrations. This text never changes: where a later version needs more, that comes as
/// a constant of its own, for a migration after yours.
pub const SCHEMA: &str = include_str!("schema.sql");
