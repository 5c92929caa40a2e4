//! The engine's front: requests come in, answers go out.

use crate::{
    clock::Clock,
    counts::Counters,
    flight::{Flight, Flights, Joined, Limits, Name, Phase},
    meaning::{Meaning, VERSION},
    record::{Owner, Record, Response, State},
    recovery::Progress,
    rows::{self, NewClaim},
    work::{Request, Work},
};
use jiff::Timestamp;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use store::{LockFile, Priority, ReadError, Store, WriteError};
use thiserror::Error;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a request waits for the writer to begin its claim, however short its wait for the outcome is. The store gives
/// another program that has it locked one second; one more is for what stands before the claim.
const CLAIM_WAIT: Duration = Duration::from_secs(2);

/// How long a request then still waits for a claim that the writer has begun. A transaction that has begun ends within
/// this, or the machine is beyond help.
const BEGUN_CLAIM_WAIT: Duration = Duration::from_secs(10);

/// How the engine treats time and load.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// How long a request waits for the outcome before it is told to come again. The claim has a time of its own.
    pub wait: Duration,
    /// How long a response is stored after the operation became final. The claim on the key has no end.
    pub retention: Duration,
    /// Bounds on what is in hand at once.
    pub limits: Limits,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The stored response.
    Done {
        /// The response, the same bytes for all.
        response: Response,
        /// Whether an earlier request, and not this one, made the claim.
        replayed: bool,
    },
    /// It runs, or may run, and its outcome is not known yet.
    InProgress,
    /// It stopped, and a person must look. Nothing runs again by itself.
    NeedsAttention,
    /// The key belongs to another request.
    Reused {
        /// Names of the members that differ; `path` alone for another route.
        differs: Vec<String>,
    },
    /// Final, and the stored response has expired.
    Expired {
        /// What the work was.
        kind: Option<String>,
        /// How it ended.
        outcome: String,
        /// The work's own name for what was made.
        subject: Option<String>,
    },
    /// The key was cancelled.
    Cancelled,
    /// The claim's own part refused it, in its own words. Nothing was claimed.
    Refused(&'static str),
    /// Nothing was claimed and nothing is promised; the same request may come again.
    Unavailable(Hindrance),
}

/// Why nothing can be done right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// The store could not be read or written.
    Store,
    /// Too much is in hand already.
    TooMuch,
    /// Too much of this scope is in hand already; others are taken.
    TooMuchOfScope,
    /// The engine is ending.
    Ending,
    /// A newer program wrote what the request would have to be compared with.
    Newer,
}

/// Nothing could be read or written.
#[derive(Debug, Error)]
#[error("{said}")]
pub struct Unavailable {
    why: Hindrance,
    said: String,
}

impl Unavailable {
    /// What stood in the way.
    #[must_use]
    pub fn why(&self) -> Hindrance {
        self.why
    }
}

impl<E: std::fmt::Display> From<ReadError<E>> for Unavailable {
    fn from(error: ReadError<E>) -> Self {
        let why = match error {
            ReadError::Closed => Hindrance::Ending,
            ReadError::Overloaded => Hindrance::TooMuch,
            _ => Hindrance::Store,
        };
        Self { why, said: error.to_string() }
    }
}

impl<E: std::fmt::Display> From<WriteError<E>> for Unavailable {
    fn from(error: WriteError<E>) -> Self {
        let why = match error {
            WriteError::Closed => Hindrance::Ending,
            WriteError::Overloaded => Hindrance::TooMuch,
            _ => Hindrance::Store,
        };
        Self { why, said: error.to_string() }
    }
}

/// The server side of idempotency keys over one store. Clones are handles to the same engine.
pub struct Engine<W: Work> {
    pub(crate) inner: Arc<Inner<W>>,
}

impl<W: Work> Clone for Engine<W> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

pub(crate) struct Inner<W> {
    pub(crate) store: Store,
    pub(crate) work: W,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Config,
    pub(crate) flights: Flights,
    pub(crate) counters: Counters,
    pub(crate) epoch: u32,
    runs: AtomicU32,
    /// Ends the tasks that look for work by themselves.
    pub(crate) stop: CancellationToken,
    /// Ends running operations as a crash would; they are finished by the next process.
    pub(crate) kill: CancellationToken,
    pub(crate) progress: watch::Sender<Progress>,
    /// Everything that holds the engine by itself.
    pub(crate) tasks: TaskTracker,
    /// Held for as long as the engine lives: that it could be taken proves that every earlier owner is dead.
    _lock: LockFile,
}

/// Until when a request waits.
#[derive(Clone, Copy)]
struct Deadlines {
    /// For the writer to begin the claim.
    claim: Instant,
    /// For the outcome of what is claimed.
    outcome: Instant,
}

/// What a request is compared by.
struct Asked {
    meaning: Meaning,
    route: String,
    members: Vec<(&'static str, Vec<u8>)>,
}

impl<W: Work> Engine<W> {
    /// Opens the engine over a store that has [`SCHEMA`](crate::SCHEMA) in it. The lock must be the one that
    /// every process takes before it opens this store.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be written.
    pub async fn open(
        store: Store,
        lock: LockFile,
        work: W,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Result<Self, Unavailable> {
        let epoch = store.write(Priority::Click, rows::next_epoch).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                work,
                clock,
                config,
                flights: Flights::new(config.limits),
                counters: Counters::default(),
                epoch,
                runs: AtomicU32::new(0),
                stop: CancellationToken::new(),
                kill: CancellationToken::new(),
                progress: watch::Sender::new(Progress::default()),
                tasks: TaskTracker::new(),
                _lock: lock,
            }),
        })
    }

    /// Claims the key and runs the work, or finds out what became of it. Dropping the future drops the
    /// waiting and nothing else.
    pub async fn run(&self, request: Request<W::Context>) -> Answer {
        let answer = self.find_out(request).await;
        self.inner.counters.answered(&answer);
        answer
    }

    async fn find_out(&self, request: Request<W::Context>) -> Answer {
        if self.inner.kill.is_cancelled() {
            return Answer::Unavailable(Hindrance::Ending);
        }
        let now = Instant::now();
        let deadlines = Deadlines { claim: now + CLAIM_WAIT, outcome: now + self.inner.config.wait };
        let meaning = Meaning::of(&request.route, &request.members);
        let name: Name = (request.scope.clone(), request.key);
        let asked = Asked { meaning: meaning.clone(), route: request.route, members: request.members };
        loop {
            match self.inner.flights.join(&name) {
                Joined::Full(why) => return self.known_or(why, &name, &asked).await,
                Joined::Follows(flight) => match self.wait_for(&flight, &asked, deadlines, false).await {
                    // That was said to another request, which may be another one in its meaning: ask for this one.
                    Answer::Refused(_) => {}
                    answer => return answer,
                },
                Joined::Leads(flight) => {
                    let claim = NewClaim {
                        scope: request.scope,
                        key: request.key,
                        kind: request.kind,
                        version: VERSION,
                        meaning,
                        payload: request.payload.into(),
                        owner: self.new_owner(),
                        now: self.now(),
                    };
                    self.lead_claim(name, flight.clone(), claim, request.begin, request.context);
                    return self.wait_for(&flight, &asked, deadlines, true).await;
                }
            }
        }
    }

    /// What is known of a key, where no more can be taken in hand: there is always room to say it.
    async fn known_or(&self, why: Hindrance, (scope, key): &Name, asked: &Asked) -> Answer {
        match self.lookup(scope, *key).await {
            Ok(Some(record)) => self.judge(&record, asked, false),
            Ok(None) => Answer::Unavailable(why),
            Err(error) => Answer::Unavailable(error.why()),
        }
    }

    /// What the store holds of a key. Changes nothing.
    ///
    /// # Errors
    /// [`Unavailable`] where the store can't be read.
    pub async fn lookup(&self, scope: &str, key: [u8; 16]) -> Result<Option<Record>, Unavailable> {
        let scope = scope.to_owned();
        Ok(self.inner.store.read(move |connection| rows::by_key(connection, &scope, &key)).await?)
    }

    /// Waits until nothing is in hand any more.
    pub async fn idle(&self) {
        let mut count = self.inner.flights.count();
        // The sender lives as long as the engine.
        let _ = count.wait_for(|&count| count == 0).await;
    }

    /// Ends the tasks that look for work by themselves; what runs goes on.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Ends what still runs, as a crash would, and takes nothing more: the next process on this store finishes it.
    pub fn kill(&self) {
        self.inner.stop.cancel();
        self.inner.kill.cancel();
    }

    /// Runs a task of the caller's own, such as one that waits for an answer with nobody there, that [`Engine::close`] waits
    /// for.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.inner.tasks.spawn(task)
    }

    /// Kills what runs and waits until no task holds the engine any more, so that with the last other handle the store
    /// is let go.
    pub async fn close(self) {
        self.kill();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        rows::whole_milliseconds(self.inner.clock.now())
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner { epoch: self.inner.epoch, run: self.inner.runs.fetch_add(1, Ordering::Relaxed).wrapping_add(1) }
    }

    /// Waits for the outcome, and before that for the claim: each has a time of its own.
    async fn wait_for(&self, flight: &Flight, asked: &Asked, deadlines: Deadlines, leads: bool) -> Answer {
        let seat = self.inner.flights.seat(flight);
        let mut phases = flight.subscribe();
        let mut claimed_by = deadlines.claim;
        loop {
            let phase = phases.borrow_and_update().clone();
            let until = match &phase {
                Phase::NotClaimed(why) => return Answer::Unavailable(*why),
                Phase::Refused(why) => return Answer::Refused(why),
                Phase::Unknown => return Answer::InProgress,
                Phase::Ended { record, first } => return self.judge(record, asked, *first && leads),
                Phase::Running(record) => match compare(record, asked) {
                    Ok(()) => deadlines.outcome,
                    Err(answer) => return answer,
                },
                Phase::Claiming => claimed_by,
            };
            if seat.is_none() && !leads {
                return Answer::InProgress;
            }
            match (timeout_at(until, phases.changed()).await, phase) {
                (Ok(Ok(())), _) => {}
                // What the writer has not begun is called off, and nobody claims it any more.
                (Err(_), Phase::Claiming) if flight.call_off() => {
                    return Answer::Unavailable(Hindrance::Store);
                }
                (Err(_), Phase::Claiming) if claimed_by == deadlines.claim => claimed_by += BEGUN_CLAIM_WAIT,
                // The outcome is not there yet, or the writer doesn't end: claimed or not, nobody knows.
                _ => return Answer::InProgress,
            }
        }
    }

    /// What a request gets of an operation that nobody runs.
    fn judge(&self, record: &Record, asked: &Asked, first: bool) -> Answer {
        if record.state == State::Cancelled {
            return Answer::Cancelled;
        }
        if let Err(answer) = compare(record, asked) {
            return answer;
        }
        match &record.state {
            State::Processing => Answer::InProgress,
            State::NeedsAttention { .. } => Answer::NeedsAttention,
            State::Cancelled => Answer::Cancelled,
            State::Settled { outcome } => match &record.response {
                Some(response) if !self.has_expired(record) => {
                    Answer::Done { response: response.clone(), replayed: !first }
                }
                _ => Answer::Expired {
                    kind: record.kind.clone(),
                    outcome: outcome.clone(),
                    subject: record.subject.clone(),
                },
            },
        }
    }

    fn has_expired(&self, record: &Record) -> bool {
        record.completed_at.is_some_and(|at| at < self.expires_before())
    }

    /// What was final before this time has expired.
    pub(crate) fn expires_before(&self) -> Timestamp {
        self.now().saturating_sub(self.inner.config.retention).unwrap_or(Timestamp::MIN)
    }
}

/// Whether the request is the one that the row was made for. This comes before all else that could be said of a
/// key that isn't cancelled.
fn compare(record: &Record, asked: &Asked) -> Result<(), Answer> {
    let Some((version, stored)) = &record.meaning else { return Ok(()) };
    let again;
    let asked = if *version == VERSION {
        &asked.meaning
    } else {
        let Some(made) = Meaning::make(*version, &asked.route, &asked.members) else {
            tracing::error!(version, "a stored request was hashed in a way that this program doesn't know");
            return Err(Answer::Unavailable(Hindrance::Newer));
        };
        again = made;
        &again
    };
    let differs = stored.differs(asked);
    if differs.is_empty() { Ok(()) } else { Err(Answer::Reused { differs }) }
}
