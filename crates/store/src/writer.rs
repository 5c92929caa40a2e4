//! The one writing connection, on a thread of its own, with group commit.
//!
//! The disk's sync is what a write costs. So the writer takes what is waiting (beside clicks only clicks), runs the pieces in one transaction, each so that it can
//! be undone by itself, commits once, and then answers all. It never waits for more to come: a lone click is committed at once.

mod batch;
mod piece;
mod queue;
mod thread;
mod trust;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use self::piece::Typed;
use self::queue::{NotTaken, Queue};
use self::thread::Thread;
use self::trust::Trust;
use crate::Priority;
use crate::damage::Damage;
use crate::error::{OpenError, StorageError, WriteError};
use crate::place::Place;

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
        log_was_empty: bool,
    ) -> Result<Writer, OpenError> {
        let queue = Arc::new(Queue::default());
        let done = Arc::new(Done::default());
        let mut thread = Thread {
            path: path.to_owned(),
            place: place.clone(),
            connection,
            worn: false,
            trust: Trust::Opened { log_was_empty },
            passed_over: false,
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
        let waiting = self.queue.count();
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
        let piece = Box::new(Typed::new(work, self.damage.clone(), answer));
        self.queue.push(priority, piece).map_err(|not_taken| match not_taken {
            NotTaken::Closed => WriteError::Closed,
            NotTaken::Overloaded => {
                self.done.overloaded.fetch_add(1, Ordering::Relaxed);
                WriteError::Overloaded
            }
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        // A piece may hold the last handle; a thread can't wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the writing thread panicked");
        }
    }
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
