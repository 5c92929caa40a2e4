//! A few read-only connections, each on a thread of its own: a look never waits for the writer.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::damage::Damage;
use crate::error::{OpenError, ReadError, StorageError, panic_message};
use crate::place::Place;
use crate::pragmas;

/// Enough for a window, a settling task and a command at once.
const THREADS: usize = 3;

/// Looks that may wait before more are refused.
const WAITING_MAX: usize = 1_024;

type Look = Box<dyn FnOnce(Result<&Connection, StorageError>) + Send>;

struct Waiting {
    looks: VecDeque<Look>,
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
}

/// The pool.
pub(crate) struct Readers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    damage: Damage,
}

impl Readers {
    pub(crate) fn start(path: &Path, place: &Place, damage: &Damage) -> Result<Readers, OpenError> {
        let queue = Arc::new(Queue {
            waiting: Mutex::new(Waiting { looks: VecDeque::new(), closed: false }),
            changed: Condvar::new(),
        });
        let mut readers =
            Readers { queue: queue.clone(), threads: Vec::with_capacity(THREADS), damage: damage.clone() };
        for number in 0..THREADS {
            let connection = pragmas::open_reader(path)?;
            let queue = queue.clone();
            let (path, place) = (path.to_owned(), place.clone());
            let thread = std::thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || serve(&queue, &path, &place, Some(connection)))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Whether this is one of the reading threads. Another may be free, or wait for this one.
    pub(crate) fn is_this_thread(&self) -> bool {
        let this = std::thread::current().id();
        self.threads.iter().any(|thread| thread.thread().id() == this)
    }

    pub(crate) fn submit<T, E, F, A>(&self, look: F, answer: A) -> Result<(), ReadError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        A: FnOnce(Result<T, ReadError<E>>) + Send + 'static,
    {
        let damage = self.damage.clone();
        let look: Look = Box::new(move |connection| {
            let ended = match connection {
                Ok(connection) => run(connection, look),
                Err(error) => Err(ReadError::Storage(error)),
            };
            match &ended {
                Err(ReadError::Failed(error)) => damage.note(error),
                Err(ReadError::Storage(error)) => damage.note_of_file(error),
                _ => {}
            }
            answer(ended);
        });
        let mut waiting = self.queue.lock();
        if waiting.closed {
            return Err(ReadError::Closed);
        }
        if waiting.looks.len() >= WAITING_MAX {
            return Err(ReadError::Overloaded);
        }
        waiting.looks.push_back(look);
        self.queue.changed.notify_one();
        Ok(())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.changed.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // A look may hold the last handle; a thread can't wait for itself.
            if thread.thread().id() != this && thread.join().is_err() {
                tracing::error!("a reading thread panicked");
            }
        }
    }
}

fn run<T, E, F>(connection: &Connection, look: F) -> Result<T, ReadError<E>>
where
    F: FnOnce(&Connection) -> Result<T, E>,
{
    connection.execute_batch("BEGIN").map_err(|error| ReadError::Storage(error.into()))?;
    let result = catch_unwind(AssertUnwindSafe(|| look(connection)));
    // A failed statement may have ended the transaction already; nothing was written that could be lost.
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").map_err(|error| ReadError::Storage(error.into()))?;
    }
    match result {
        Ok(result) => result.map_err(ReadError::Failed),
        Err(payload) => Err(ReadError::Storage(StorageError::Panicked(panic_message(&*payload)))),
    }
}

fn serve(queue: &Queue, path: &Path, place: &Place, mut connection: Option<Connection>) {
    while let Some(look) = next(queue) {
        // What a file shows that is gone was saved nowhere; and none but the one that was opened is to be opened again.
        if let Err(moved) = place.check() {
            look(Err(moved));
            continue;
        }
        // A transaction that can't be ended would show the same old state for ever: start afresh.
        connection = connection.filter(Connection::is_autocommit);
        let opened = match connection.take() {
            Some(connection) => Ok(connection),
            None => open_again(path, place),
        };
        match opened {
            Ok(opened) => look(Ok(connection.insert(opened))),
            Err(error) => look(Err(error)),
        }
    }
}

/// None but the file that was opened first, which was in its place just now and has to be there still.
fn open_again(path: &Path, place: &Place) -> Result<Connection, StorageError> {
    let opened = pragmas::open_reader(path).map_err(|error| StorageError::Reopen(Arc::new(error)))?;
    place.check()?;
    Ok(opened)
}

fn next(queue: &Queue) -> Option<Look> {
    let mut waiting = queue.lock();
    loop {
        if let Some(look) = waiting.looks.pop_front() {
            return Some(look);
        }
        if waiting.closed {
            return None;
        }
        waiting = queue.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}
