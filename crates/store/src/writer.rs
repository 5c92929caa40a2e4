//! The one writing connection, on a thread of its own, with group commit.
//!
//! The disk's sync is what a write costs. So the writer takes what is waiting, runs each piece in a savepoint of one
//! transaction, commits once, and then answers all. It never waits for more to come: a lone click is committed at once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::error::{OpenError, StorageError, WriteError, panic_message};
use crate::{Priority, pragmas};

/// Pieces of one priority that may wait before more are refused.
const WAITING_MAX: usize = 1_024;

/// Pieces in one commit. Also bounds what a click waits for: at most one such batch.
const BATCH_MAX: usize = 128;

/// What the caller is told of its piece once the batch is over.
enum Verdict {
    /// What it returned: its COMMIT is durable, or it refused by itself.
    AsReturned,
    /// Nothing of it is in the file.
    Nothing(StorageError),
    /// It may be in the file.
    Unknown(StorageError),
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
    answer: A,
}

impl<T, E, F, A> Piece for Typed<T, E, F, A>
where
    T: Send,
    E: Send,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    A: FnOnce(Result<T, WriteError<E>>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Ran {
        let Some(work) = self.work.take() else { return Ran::Refused };
        match catch_unwind(AssertUnwindSafe(|| work(connection))) {
            Ok(result) => {
                let ran = if result.is_ok() { Ran::Done } else { Ran::Refused };
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
        });
    }
}

struct Waiting {
    clicks: VecDeque<Box<dyn Piece>>,
    background: VecDeque<Box<dyn Piece>>,
    closed: bool,
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
    fn wait(&self) -> Option<usize> {
        let mut waiting = self.lock();
        loop {
            match waiting.clicks.len() + waiting.background.len() {
                0 if waiting.closed => return None,
                0 => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                count => return Some(count),
            }
        }
    }

    /// The next piece: clicks first. `only_clicks` for those that came after the batch was measured.
    fn pop(&self, only_clicks: bool) -> Option<Box<dyn Piece>> {
        let mut waiting = self.lock();
        let click = waiting.clicks.pop_front();
        if click.is_some() || only_clicks { click } else { waiting.background.pop_front() }
    }
}

/// The handle to the writing thread.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    commits: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(path: &Path, connection: Connection) -> Result<Writer, OpenError> {
        let queue = Arc::new(Queue {
            waiting: Mutex::new(Waiting { clicks: VecDeque::new(), background: VecDeque::new(), closed: false }),
            changed: Condvar::new(),
        });
        let commits = Arc::new(AtomicU64::new(0));
        let mut thread = Thread { path: path.to_owned(), connection: Some(connection), commits: commits.clone() };
        let of_thread = queue.clone();
        let thread = std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || {
            while let Some(waiting) = of_thread.wait() {
                thread.batch(&of_thread, waiting);
            }
        })?;
        Ok(Writer { queue, commits, thread: Some(thread) })
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn submit<T, E, F, A>(&self, priority: Priority, work: F, answer: A) -> Result<(), WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        A: FnOnce(Result<T, WriteError<E>>) + Send + 'static,
    {
        let piece = Box::new(Typed { work: Some(work), result: None, answer });
        let mut waiting = self.queue.lock();
        if waiting.closed {
            return Err(WriteError::Closed);
        }
        let line = match priority {
            Priority::Click => &mut waiting.clicks,
            Priority::Background => &mut waiting.background,
        };
        if line.len() >= WAITING_MAX {
            return Err(WriteError::Overloaded);
        }
        line.push_back(piece);
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

struct Thread {
    path: PathBuf,
    /// None after an error that it can't be trusted after, until it could be opened again.
    connection: Option<Connection>,
    commits: Arc<AtomicU64>,
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
    fn batch(&mut self, queue: &Queue, waiting: usize) {
        let connection = match self.connection.take().map_or_else(|| pragmas::open_writer(&self.path), Ok) {
            Ok(connection) => self.connection.insert(connection),
            Err(error) => return fail(queue, waiting, &StorageError::Reopen(Arc::new(error))),
        };
        if let Err(error) = begin(connection) {
            let error = StorageError::from(error);
            // Locked by another program is no reason to distrust the connection.
            if !error.is_locked() {
                self.connection = None;
            }
            return fail(queue, waiting, &error);
        }
        let mut taken = Vec::with_capacity(waiting.min(BATCH_MAX));
        let batch = run_pieces(connection, queue, waiting, &mut taken);
        let (verdict, keep) = match batch {
            Batch::Open => match connection.execute_batch("COMMIT") {
                Ok(()) => {
                    self.commits.fetch_add(1, Ordering::Relaxed);
                    (None, true)
                }
                Err(error) => {
                    tracing::error!(file = %self.path.display(), %error, "COMMIT failed, the file is opened again");
                    (Some((true, error.into())), false)
                }
            },
            Batch::RolledBack => (Some((false, StorageError::RolledBack)), true),
            Batch::Ended => (Some((true, StorageError::TransactionEnded)), false),
            Batch::Broken(error) => {
                // Closing the connection rolls back; nothing of an open transaction reaches the file.
                (Some((false, error)), false)
            }
        };
        if !keep {
            // Closed before anyone is told, so that a look at the row reads what the disk has.
            self.connection = None;
        }
        for (piece, own) in taken {
            let verdict = match (own, &verdict) {
                (Some(own), _) => Verdict::Nothing(own),
                (None, None) => Verdict::AsReturned,
                (None, Some((true, error))) => Verdict::Unknown(error.clone()),
                (None, Some((false, error))) => Verdict::Nothing(error.clone()),
            };
            piece.answer(verdict);
        }
    }
}

/// Answers the waiting pieces without running them.
fn fail(queue: &Queue, waiting: usize, error: &StorageError) {
    tracing::warn!(%error, pieces = waiting, "nothing could be written");
    for _ in 0..waiting {
        if let Some(piece) = queue.pop(false) {
            piece.answer(Verdict::Nothing(error.clone()));
        }
    }
}

fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(|_| ())
}

type Taken = Vec<(Box<dyn Piece>, Option<StorageError>)>;

/// Runs what was waiting when the batch began, and the clicks that came meanwhile.
fn run_pieces(connection: &Connection, queue: &Queue, waiting: usize, taken: &mut Taken) -> Batch {
    while taken.len() < BATCH_MAX {
        let Some(mut piece) = queue.pop(taken.len() >= waiting) else { break };
        let (ran, batch) = run_piece(connection, &mut *piece);
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
