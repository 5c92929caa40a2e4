//! The one writing connection, on a thread of its own, with group commit.
//!
//! The disk's sync is what a write costs. So the writer takes what is waiting, runs the pieces in one transaction, each so that it can
//! be undone by itself, commits once, and then answers all. It never waits for more to come: a lone click is committed at once.
//!
//! A COMMIT that fails may leave all of its pages in the write-ahead log, where nobody reads them now and the next start
//! would find them. So after one nobody is told anything, and nothing more is run, before a commit that writes over them is
//! durable. While none is, the file can't be trusted, and that is what everybody is told.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::damage::Damage;
use crate::error::{OpenError, StorageError, WriteError, panic_message};
use crate::place::Place;
use crate::{Priority, pragmas};

/// Pieces of one priority that may wait before more are refused.
const WAITING_MAX: usize = 1_024;

/// Pieces in one commit. Also bounds what a click waits for: at most one such batch.
const BATCH_MAX: usize = 128;

/// Background pieces that each batch has room for where so many wait. Without it clicks that never run dry would put them off
/// for ever.
const BACKGROUND_MIN: usize = 16;

/// What the caller is told of its piece once the batch is over.
enum Verdict {
    /// What it returned: its COMMIT is durable, or it refused by itself.
    AsReturned,
    /// Nothing of it is in the file.
    Nothing(StorageError),
    /// It may be in the file; a look finds out.
    Unknown(StorageError),
    /// It may be in the file, or come into it at the next start; a look proves nothing.
    Untrusted(StorageError),
}

impl Verdict {
    fn trouble(&self) -> Option<&StorageError> {
        match self {
            Verdict::AsReturned => None,
            Verdict::Nothing(error) | Verdict::Unknown(error) | Verdict::Untrusted(error) => Some(error),
        }
    }
}

/// What became of a piece's own run.
enum Ran {
    Done,
    Refused,
    Panicked(StorageError),
}

trait Piece: Send {
    fn run(&mut self, connection: &Connection) -> Ran;
    fn answer(self: Box<Self>, verdict: Verdict);
}

struct Typed<T, E, F, A> {
    work: Option<F>,
    result: Option<Result<T, E>>,
    damage: Damage,
    answer: A,
}

impl<T, E, F, A> Piece for Typed<T, E, F, A>
where
    T: Send,
    E: Send + 'static,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    A: FnOnce(Result<T, WriteError<E>>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Ran {
        let Some(work) = self.work.take() else { return Ran::Refused };
        match catch_unwind(AssertUnwindSafe(|| work(connection))) {
            Ok(result) => {
                let ran = match &result {
                    Ok(_) => Ran::Done,
                    Err(error) => {
                        self.damage.note(error);
                        Ran::Refused
                    }
                };
                self.result = Some(result);
                ran
            }
            Err(payload) => Ran::Panicked(StorageError::Panicked(panic_message(&*payload))),
        }
    }

    fn answer(self: Box<Self>, verdict: Verdict) {
        (self.answer)(match (verdict, self.result) {
            (Verdict::AsReturned, Some(result)) => result.map_err(WriteError::Refused),
            (Verdict::AsReturned, None) => Err(WriteError::Closed),
            // A piece that refused is not in the file whatever became of the rest, and its own word says more.
            (_, Some(Err(refused))) => Err(WriteError::Refused(refused)),
            (Verdict::Nothing(error), _) => Err(WriteError::Storage(error)),
            (Verdict::Unknown(error), _) => Err(WriteError::Uncertain(error)),
            (Verdict::Untrusted(error), _) => Err(WriteError::Untrusted(error)),
        });
    }
}

struct Waiting {
    clicks: VecDeque<Box<dyn Piece>>,
    background: VecDeque<Box<dyn Piece>>,
    closed: bool,
}

impl Waiting {
    fn line(&mut self, priority: Priority) -> &mut VecDeque<Box<dyn Piece>> {
        match priority {
            Priority::Click => &mut self.clicks,
            Priority::Background => &mut self.background,
        }
    }

    fn count(&self) -> Waited {
        Waited { clicks: self.clicks.len(), background: self.background.len() }
    }
}

/// How many pieces waited at some moment.
#[derive(Clone, Copy)]
struct Waited {
    clicks: usize,
    background: usize,
}

struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it holds the lock, so what it guards is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work and says how many pieces there are; `None` once closed and empty.
    fn wait(&self) -> Option<Waited> {
        let mut waiting = self.lock();
        loop {
            let waited = waiting.count();
            if waited.clicks + waited.background > 0 {
                return Some(waited);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pop(&self, priority: Priority) -> Option<Box<dyn Piece>> {
        self.lock().line(priority).pop_front()
    }
}

/// What a writer has done since it was opened, and what waits for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// COMMITs that succeeded, migrations not counted. Fewer than there were pieces where several shared one.
    pub commits: u64,
    /// The time that they took in all, the disk's sync included.
    pub commit_time: Duration,
    /// Pieces of work in those commits.
    pub pieces: u64,
    /// Pieces that were not taken because too many waited.
    pub overloaded: u64,
    /// Clicks that wait right now.
    pub clicks_waiting: u64,
    /// Background pieces that wait right now.
    pub background_waiting: u64,
    /// Writes and looks that were asked for and are not answered yet: those that wait, and those that run.
    pub unanswered: u64,
}

/// The counters behind [`Work`].
#[derive(Default)]
struct Done {
    commits: AtomicU64,
    commit_ns: AtomicU64,
    pieces: AtomicU64,
    overloaded: AtomicU64,
    /// Why the last batch did not reach the file.
    trouble: Mutex<Option<StorageError>>,
}

impl Done {
    fn trouble(&self) -> MutexGuard<'_, Option<StorageError>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle to the writing thread.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    done: Arc<Done>,
    damage: Damage,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        path: &Path,
        place: &Place,
        damage: &Damage,
        connection: Connection,
    ) -> Result<Writer, OpenError> {
        let queue = Arc::new(Queue {
            waiting: Mutex::new(Waiting { clicks: VecDeque::new(), background: VecDeque::new(), closed: false }),
            changed: Condvar::new(),
        });
        let done = Arc::new(Done::default());
        let mut thread = Thread {
            path: path.to_owned(),
            place: place.clone(),
            connection,
            worn: false,
            trust: Trust::Opened,
            done: done.clone(),
            damage: damage.clone(),
        };
        let of_thread = queue.clone();
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            thread.prove_early();
            while let Some(waited) = of_thread.wait() {
                thread.batch(&of_thread, waited);
            }
        })?;
        Ok(Writer { queue, done, damage: damage.clone(), thread: Some(thread) })
    }

    pub(crate) fn work(&self) -> Work {
        let waiting = self.queue.lock().count();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Work {
            commits: read(&self.done.commits),
            commit_time: Duration::from_nanos(read(&self.done.commit_ns)),
            pieces: read(&self.done.pieces),
            overloaded: read(&self.done.overloaded),
            clicks_waiting: waiting.clicks as u64,
            background_waiting: waiting.background as u64,
            // The store counts them, as it has the readers too.
            unanswered: 0,
        }
    }

    pub(crate) fn trouble(&self) -> Option<StorageError> {
        self.done.trouble().clone()
    }

    /// Whether this is the writing thread, which can't wait for itself.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.thread().id() == std::thread::current().id())
    }

    pub(crate) fn submit<T, E, F, A>(&self, priority: Priority, work: F, answer: A) -> Result<(), WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        A: FnOnce(Result<T, WriteError<E>>) + Send + 'static,
    {
        let piece = Box::new(Typed { work: Some(work), result: None, damage: self.damage.clone(), answer });
        let mut waiting = self.queue.lock();
        if waiting.closed {
            return Err(WriteError::Closed);
        }
        let line = waiting.line(priority);
        if line.len() >= WAITING_MAX {
            self.done.overloaded.fetch_add(1, Ordering::Relaxed);
            return Err(WriteError::Overloaded);
        }
        line.push_back(piece);
        // Not with the lock held: the thread that is woken would run into it, and have to be woken twice.
        drop(waiting);
        self.queue.changed.notify_one();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        // A piece may hold the last handle; a thread can't wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread panicked");
        }
    }
}

/// What is known of the commits that the file shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// All of them are durable.
    Proven,
    /// It was just opened. What its log brought back may stand in the system's memory alone, after a sync that failed.
    Opened,
    /// A COMMIT failed.
    Doubted,
}

struct Thread {
    path: PathBuf,
    place: Place,
    connection: Connection,
    /// There was an error on the connection, so it is to be replaced.
    worn: bool,
    trust: Trust,
    done: Arc<Done>,
    damage: Damage,
}

/// How a batch went, before COMMIT.
enum Batch {
    /// All pieces that were taken have run; those that refused are rolled back.
    Open,
    /// SQLite rolled everything back by itself.
    RolledBack,
    /// A piece ended the transaction by itself: what came before may be in the file.
    Ended,
    /// The transaction can't be brought back into order.
    Broken(StorageError),
}

impl Thread {
    fn batch(&mut self, queue: &Queue, waited: Waited) {
        if let Err(moved) = self.place.check() {
            // An earlier commit whose outcome was not told may be in the file that was moved; so may one that its log brought back.
            let verdict = if self.trust == Trust::Proven { Verdict::Nothing } else { Verdict::Untrusted };
            return self.fail(queue, waited, moved, verdict);
        }
        if let Err(error) = self.prove() {
            return self.fail(queue, waited, error, Verdict::Untrusted);
        }
        if let Err(error) = self.replace_worn().and_then(|()| Ok(begin(&self.connection)?)) {
            // Locked by another program is no reason to distrust the connection.
            self.worn |= !error.is_locked();
            return self.fail(queue, waited, error, Verdict::Nothing);
        }
        let mut taken = Vec::with_capacity((waited.clicks + waited.background).min(BATCH_MAX));
        let verdict = match run_pieces(&self.connection, queue, waited, &mut taken) {
            Batch::Open => self.commit(),
            Batch::RolledBack => Verdict::Nothing(StorageError::RolledBack),
            Batch::Ended => self.doubt(StorageError::TransactionEnded),
            Batch::Broken(error) => {
                // What isn't committed never comes back. Locked by another program is no reason to distrust the connection.
                if !(error.is_locked() && self.connection.is_autocommit()) {
                    self.wear_out();
                }
                Verdict::Nothing(error)
            }
        };
        self.note(verdict.trouble());
        if matches!(verdict, Verdict::AsReturned) {
            self.done.pieces.fetch_add(taken.len() as u64, Ordering::Relaxed);
        }
        for (piece, own) in taken {
            piece.answer(match (own, &verdict) {
                (Some(own), _) => Verdict::Nothing(own),
                (None, Verdict::AsReturned) => Verdict::AsReturned,
                (None, Verdict::Nothing(error)) => Verdict::Nothing(error.clone()),
                (None, Verdict::Unknown(error)) => Verdict::Unknown(error.clone()),
                (None, Verdict::Untrusted(error)) => Verdict::Untrusted(error.clone()),
            });
        }
    }

    fn commit(&mut self) -> Verdict {
        let began = Instant::now();
        match commit(&self.connection) {
            Ok(()) => {
                self.done.commits.fetch_add(1, Ordering::Relaxed);
                let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.done.commit_ns.fetch_add(took_ns, Ordering::Relaxed);
                self.in_its_place()
            }
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "COMMIT failed, the file is opened again");
                self.doubt(error.into())
            }
        }
    }

    /// Whether what was committed just now is where it will be looked for. Where it is not, it is found as soon as the file is back.
    fn in_its_place(&mut self) -> Verdict {
        match self.gone() {
            Some(moved) => {
                tracing::error!(error = %moved, "what was committed is in no file that has a name");
                self.trust = Trust::Doubted;
                Verdict::Untrusted(moved)
            }
            None => Verdict::AsReturned,
        }
    }

    /// Whether file or log is known to be gone, after a commit. That nobody can look just now takes nothing back.
    fn gone(&self) -> Option<StorageError> {
        self.place.note_log().err().filter(|error| matches!(error, StorageError::Moved { .. }))
    }

    /// Why a batch did not reach the file; none where it did. Damage stands, whatever the next one comes to.
    fn note(&self, trouble: Option<&StorageError>) {
        if let Some(error) = trouble {
            self.damage.note_of_file(error);
        }
        *self.done.trouble() = trouble.cloned();
    }

    /// Answers the waiting pieces without running them.
    fn fail(&self, queue: &Queue, waited: Waited, error: StorageError, verdict: fn(StorageError) -> Verdict) {
        tracing::warn!(%error, pieces = waited.clicks + waited.background, "nothing could be written");
        self.note(Some(&error));
        for (priority, count) in [(Priority::Click, waited.clicks), (Priority::Background, waited.background)] {
            for _ in 0..count {
                if let Some(piece) = queue.pop(priority) {
                    piece.answer(verdict(error.clone()));
                }
            }
        }
    }

    /// Nobody knows what of the transaction is in the file: brings it into a state that a look can be trusted in.
    fn doubt(&mut self, error: StorageError) -> Verdict {
        self.trust = Trust::Doubted;
        self.wear_out();
        match self.prove() {
            Ok(()) => Verdict::Unknown(error),
            Err(still) => {
                self.damage.note_of_file(&still);
                tracing::error!(error = %still, "the file takes no durable write, nothing can be said of what it holds");
                Verdict::Untrusted(error)
            }
        }
    }

    /// The connection is used no more: lets go of its transaction, and replaces it now or later.
    fn wear_out(&mut self) {
        self.worn = true;
        if !self.connection.is_autocommit() {
            // Where that fails, closing the connection does it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        // Where that fails, whoever writes next tries again, and is told.
        let _ = self.replace_worn();
    }

    /// The new connection is there before the old one goes: the last one to go takes the log's index along, and the next one
    /// would make it anew from all that stands in the log, a commit that failed included.
    fn replace_worn(&mut self) -> Result<(), StorageError> {
        if self.worn {
            // None but the file that was opened first; not even for a moment, as the last to close a file tidies it up.
            self.place.check()?;
            let opened = pragmas::open_writer(&self.path).map_err(|error| StorageError::Reopen(Arc::new(error)))?;
            self.place.check()?;
            self.connection = opened;
            self.worn = false;
        }
        Ok(())
    }

    /// Proves the file before anybody waits for it, where no other program holds it. Where it is held, or fails, whoever writes
    /// next waits for it, and is told.
    fn prove_early(&mut self) {
        let asked = pragmas::without_waiting(&self.connection, take_and_let_go).map_err(StorageError::from);
        match asked.and_then(|()| self.prove()) {
            Err(error) if !error.is_locked() => {
                self.damage.note_of_file(&error);
                tracing::error!(%error, "the file takes no durable write");
            }
            _ => {}
        }
    }

    /// Makes sure that what the file shows is durable, and that nothing else can come back.
    fn prove(&mut self) -> Result<(), StorageError> {
        if self.trust == Trust::Proven {
            return Ok(());
        }
        let proven = self.replace_worn().and_then(|()| {
            if self.trust == Trust::Opened {
                // A file that is held is found out by one wait, and not by one for the log and another for the commit.
                take_and_let_go(&self.connection)?;
                empty_log(&self.connection)?;
            }
            commit_header(&self.connection)?;
            self.gone().map_or(Ok(()), Err)
        });
        match &proven {
            Ok(()) => self.trust = Trust::Proven,
            // Nothing is wrong with the connection.
            Err(StorageError::Moved { .. } | StorageError::NotSeen { .. }) => {}
            Err(error) if error.is_locked() => {}
            Err(_) => self.wear_out(),
        }
        proven
    }
}

/// Finds out whether another program keeps this one from writing.
fn take_and_let_go(connection: &Connection) -> rusqlite::Result<()> {
    begin(connection)?;
    rollback(connection)
}

/// Copies what the log holds into the file itself. A sync that failed once may count as done with the system ever after, though
/// the log's pages are on no disk; copied, they are written anew. Another program that reads just now may keep it from being
/// emptied, and then it is left to later checkpoints.
fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A commit that writes: in the log it takes the place of one that failed, whose rest means nothing then.
fn commit_header(connection: &Connection) -> rusqlite::Result<()> {
    begin(connection)?;
    pragmas::rewrite_header(connection)?;
    commit(connection)
}

fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(|_| ())
}

fn commit(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("COMMIT")?.execute([]).map(|_| ())
}

fn rollback(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("ROLLBACK")?.execute([]).map(|_| ())
}

type Taken = Vec<(Box<dyn Piece>, Option<StorageError>)>;

/// Runs what was waiting when the batch began, and the clicks that came meanwhile: clicks first, as long as there is room for
/// the background's share. Each click brings one background piece along, where there is one: a lone click is not to wait for
/// the work of a whole queue, and where clicks never run dry the queue goes on as they do.
fn run_pieces(connection: &Connection, queue: &Queue, waited: Waited, taken: &mut Taken) -> Batch {
    let mut background = waited.background;
    let mut owed = background.min(BACKGROUND_MIN);
    let (mut clicks, mut beside) = (0, 0);
    while taken.len() < BATCH_MAX {
        let click = if taken.len() + owed < BATCH_MAX { queue.pop(Priority::Click) } else { None };
        let piece = match click {
            Some(click) => {
                clicks += 1;
                Some(click)
            }
            None if background > 0 && (clicks == 0 || beside < clicks) => {
                beside += usize::from(clicks > 0);
                background -= 1;
                owed = owed.saturating_sub(1);
                queue.pop(Priority::Background)
            }
            None => None,
        };
        let Some(mut piece) = piece else { break };
        let (ran, batch) =
            if taken.is_empty() { run_first(connection, &mut *piece) } else { run_piece(connection, &mut *piece) };
        let own = match ran {
            Ran::Panicked(error) => {
                tracing::error!(%error, "a piece of work on the file panicked and was rolled back");
                Some(error)
            }
            Ran::Done | Ran::Refused => None,
        };
        taken.push((piece, own));
        if !matches!(batch, Batch::Open) {
            return batch;
        }
    }
    Batch::Open
}

/// Before the first piece there is nothing that would have to outlive its refusal, so it needs no savepoint, for which SQLite copies
/// each page that the piece changes. Most commits have one piece: a click.
fn run_first(connection: &Connection, piece: &mut dyn Piece) -> (Ran, Batch) {
    let ran = piece.run(connection);
    let batch = match (&ran, connection.is_autocommit()) {
        (Ran::Done, false) => Ok(Batch::Open),
        (Ran::Done, true) => Ok(Batch::Ended),
        (Ran::Refused | Ran::Panicked(_), true) => Ok(Batch::RolledBack),
        (Ran::Refused | Ran::Panicked(_), false) => {
            rollback(connection).and_then(|()| begin(connection)).map(|()| Batch::Open)
        }
    };
    (ran, batch.unwrap_or_else(|error| Batch::Broken(error.into())))
}

fn run_piece(connection: &Connection, piece: &mut dyn Piece) -> (Ran, Batch) {
    if let Err(error) = savepoint(connection, "SAVEPOINT piece") {
        // The piece did not run. Its error is the batch's.
        return (Ran::Refused, Batch::Broken(error.into()));
    }
    let ran = piece.run(connection);
    // An error inside may have made SQLite roll back everything, with no word of it in the error itself.
    if connection.is_autocommit() {
        return match ran {
            Ran::Done => (ran, Batch::Ended),
            Ran::Refused | Ran::Panicked(_) => (ran, Batch::RolledBack),
        };
    }
    let ended = match ran {
        Ran::Done => savepoint(connection, "RELEASE piece"),
        Ran::Refused | Ran::Panicked(_) => {
            savepoint(connection, "ROLLBACK TO piece").and_then(|()| savepoint(connection, "RELEASE piece"))
        }
    };
    match ended {
        Ok(()) => (ran, Batch::Open),
        Err(error) => (ran, Batch::Broken(error.into())),
    }
}

fn savepoint(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}
