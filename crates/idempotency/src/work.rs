//! What the engine is given: requests, and the work that it runs once for each.

use crate::record::Response;
use jiff::Timestamp;
use rusqlite::Connection;
use std::{future::Future, sync::Arc};

/// Rows of the caller's own that belong into one of the engine's commits. It may run more than once where a
/// commit had to be tried again, each time on a state in which the earlier try did not happen.
pub type Rows = Arc<dyn Fn(&Connection) -> rusqlite::Result<()> + Send + Sync>;

/// What is done once for each key.
///
/// The engine runs it in a task of its own, which no client's hanging up ends, and runs it again after a crash.
/// So a run must be repeatable: what it asks of the outside carries a key that is the same in every run.
pub trait Work: Send + Sync + 'static {
    /// What the caller hands to the first run and what no later run has, such as a way to talk to the waiting client.
    type Context: Send + 'static;

    /// Runs until the outcome is known. An outcome that isn't known yet is no reason to return: try again in
    /// here, with the same key to the outside.
    fn run(&self, job: Job<Self::Context>) -> impl Future<Output = Verdict> + Send;

    /// Takes back what `settled` did, because the key was cancelled while the run was under way. It may run
    /// again after a crash.
    fn undo(&self, job: Job<Self::Context>, settled: Settlement) -> impl Future<Output = Undo> + Send;
}

/// One run.
#[derive(Debug)]
pub struct Job<C> {
    /// The engine's number for the operation, for rows of the caller's own.
    pub id: i64,
    /// Whose key it is.
    pub scope: Arc<str>,
    /// The key.
    pub key: [u8; 16],
    /// What the work is, as the request said.
    pub kind: String,
    /// What the request gave for running it.
    pub payload: Arc<[u8]>,
    /// When the key was claimed.
    pub created_at: Timestamp,
    /// What the caller gave for the first run; none in a run after a crash or a panic.
    pub context: Option<C>,
}

/// How a run ended.
pub enum Verdict {
    /// With a final result, to be stored and told.
    Settled(Settlement),
    /// It can't be found out without a person, for this reason (no secret, no personal data). It is never run
    /// again by itself.
    NeedsAttention(String),
}

/// A final result.
#[derive(Clone)]
pub struct Settlement {
    /// How it ended, in the work's own word.
    pub outcome: &'static str,
    /// The work's own name for what was made, told even after the response has expired.
    pub subject: Option<String>,
    /// What every caller gets from now on.
    pub response: Response,
    /// Rows that belong into the same commit.
    pub rows: Rows,
}

/// How taking back ended.
pub enum Undo {
    /// The operation is cancelled; these rows belong into the same commit.
    Cancelled(Rows),
    /// It stands: the result is stored as if nobody had wished to cancel.
    Kept,
    /// It can't be taken back without a person.
    NeedsAttention(String),
}

/// What is told of a key that was just claimed, inside the claim's commit.
pub enum Begin {
    /// The work is to run.
    Run,
    /// The result is already known, and is stored in this same commit. Nothing runs.
    Settled(Settlement),
    /// The request is refused for what the store holds, in the caller's own words. The claim is rolled back: the key
    /// stays free. What is known of the key already comes before it, because then nobody asks.
    Refused(&'static str),
}

/// What the claim's own rows are written with.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The engine's number for the operation.
    pub id: i64,
    /// When the key was claimed.
    pub created_at: Timestamp,
}

/// The part of a claim that is the caller's own: rows in the same commit, and perhaps the result itself.
pub type BeginFn = Box<dyn FnOnce(&Connection, Claim) -> rusqlite::Result<Begin> + Send>;

/// A request, decoded and valid.
pub struct Request<C> {
    /// Whose key it is.
    pub scope: Arc<str>,
    /// The key.
    pub key: [u8; 16],
    /// What the work is.
    pub kind: &'static str,
    /// Method and path, by which a key on another route is told apart.
    pub route: String,
    /// Each member with bytes that are equal exactly where its meaning is equal.
    pub members: Vec<(&'static str, Vec<u8>)>,
    /// What a run needs, also after a crash. Stored until the operation is final.
    pub payload: Vec<u8>,
    /// Rows in the claim's commit.
    pub begin: BeginFn,
    /// For the first run alone.
    pub context: C,
}
