//! A SQLite file with one writer: pragmas read back, migrations, group commit.
//!
//! Till and bank keep everything in one SQLite file each, and both need the same of it: what was answered as written
//! survives a power loss, a click never waits behind background work, and a file that is damaged, foreign or too new is
//! left alone. This crate knows neither of them.
//!
//! **The one invariant:** a write is answered as done only after the COMMIT that holds it returned with
//! `synchronous=FULL`; whatever else is answered says honestly whether nothing was written ([`WriteError::Refused`],
//! [`WriteError::Storage`], [`WriteError::Unproven`]), whether a look finds out ([`WriteError::Uncertain`]), or whether nobody can know while the disk
//! fails ([`WriteError::Untrusted`]).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use store::{Migration, Priority, Schema, Store};
//!
//! let schema = Schema {
//!     application_id: 0x4b41_5353,
//!     migrations: vec![Migration { version: 1, name: "first", sql: "CREATE TABLE t (n INTEGER) STRICT" }],
//! };
//! let store = Store::open("data/till.db".as_ref(), &schema)?;
//! store.write(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (1)", [])).await?;
//! # Ok(()) }
//! ```

mod damage;
mod error;
mod file;
mod lock;
mod place;
mod pragmas;
mod readers;
mod schema;
mod writer;

pub mod points;

pub use damage::is_damage;
pub use error::{OpenError, ReadError, StorageError, WriteError};
pub use file::make_private;
pub use lock::{LockError, LockFile};
pub use schema::{Migration, Schema};
pub use writer::Work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use damage::Damage;
use place::Place;
use readers::Readers;
use writer::Writer;

/// Which pieces of work go first. Order within one priority is first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Somebody is waiting for it: a cashier's click, a request to the bank.
    Click,
    /// The rest: settling, recovery, purging.
    Background,
}

/// A handle to one open SQLite file. Clones share the writer and the readers; the last one to go ends them, after
/// everything that was already accepted has been committed and answered.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    place: Place,
    damage: Damage,
    // Dropped first: the last connection to go empties the log into the file, and only one that writes can.
    readers: Readers,
    writer: Option<Writer>,
    unanswered: Arc<AtomicU64>,
}

/// Something that was asked for, until it is answered or given up.
struct Asked(Arc<AtomicU64>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inner {
    fn asked(&self) -> Asked {
        self.unanswered.fetch_add(1, Ordering::SeqCst);
        Asked(self.unanswered.clone())
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the file for reading and writing, making it (0600, its folder 0700) where it isn't there, and brings it to
    /// the newest version of `schema`.
    ///
    /// One process at a time should write to a file: hold a [`LockFile`] beside it. Without one the file is still
    /// safe, but writers wait for each other and may answer [`WriteError::Storage`] or [`WriteError::Unproven`].
    ///
    /// # Errors
    /// It is no file, has a second name, is another program's, was written by a newer version (it is left untouched, to the byte), can't be
    /// copied before its migration, a pragma did not take, it was moved while it was opened, or SQLite itself failed or is too old to
    /// be trusted.
    pub fn open(path: &Path, schema: &Schema) -> Result<Store, OpenError> {
        Store::open_prepared(path, schema, |_| Ok(()))
    }

    /// The same, with the writing connection prepared before it brings the file up to date: a step that needs what SQL can't do, such
    /// as a hash, gets it as an SQL function of its own. The step stays one transaction. Nothing else may rely on what `prepare` does:
    /// readers don't have it, nor does the writer once it had to be opened again.
    ///
    /// # Errors
    /// As [`Store::open`], and what `prepare` gives.
    pub fn open_prepared(
        path: &Path,
        schema: &Schema,
        prepare: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Store, OpenError> {
        points::check();
        schema::check_sqlite()?;
        schema.check_numbering()?;
        make_private(path)?;
        let path = &file::resolved(path)?;
        file::check_kind(path)?;
        // Before anybody here opens the file, which may make a log.
        let log_was_empty = file::is_missing_or_empty(&file::beside(path, "-wal"))?;
        schema::preflight(path, schema)?;
        let place = Place::of(path)?;
        let mut connection = pragmas::open_writer(path)?;
        place.check().map_err(OpenError::Place)?;
        prepare(&connection)?;
        schema::migrate(&mut connection, path, schema)?;
        let damage = Damage::default();
        let readers = Readers::start(path, &place, &damage)?;
        place.check().map_err(OpenError::Place)?;
        let writer = Writer::start(path, &place, &damage, connection, log_was_empty)?;
        Ok(Store::over(path, place, damage, Some(writer), readers))
    }

    /// Opens the file for commands that only read, also while another process owns and writes it. Every write on it is
    /// answered with [`StorageError::ReadOnly`].
    ///
    /// # Errors
    /// There is no file, it is none, it has a second name, it isn't ours, or its version isn't exactly the newest of `schema`: reading can't migrate.
    pub fn open_read_only(path: &Path, schema: &Schema) -> Result<Store, OpenError> {
        points::check();
        schema::check_sqlite()?;
        schema.check_numbering()?;
        if !path.try_exists()? {
            return Err(OpenError::Missing { path: path.to_owned() });
        }
        let path = &file::resolved(path)?;
        file::check_kind(path)?;
        // A file that is refused stays as it is, and so does what lies beside it.
        schema::preflight(path, schema)?;
        let place = Place::of(path)?;
        schema::check_readable(&pragmas::open_reader(path)?, path, schema)?;
        let damage = Damage::default();
        let readers = Readers::start(path, &place, &damage)?;
        place.check().map_err(OpenError::Place)?;
        Ok(Store::over(path, place, damage, None, readers))
    }

    fn over(path: &Path, place: Place, damage: Damage, writer: Option<Writer>, readers: Readers) -> Store {
        let unanswered = Arc::default();
        Store { inner: Arc::new(Inner { path: path.to_owned(), place, damage, readers, writer, unanswered }) }
    }

    /// Where the file is: the whole path, with every link on it resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// What the writer has done since the file was opened, and what waits for it. Of a file
    /// that was opened for reading only, nothing but the looks that wait.
    #[must_use]
    pub fn work(&self) -> Work {
        let work = self.inner.writer.as_ref().map(Writer::work).unwrap_or_default();
        Work { unanswered: self.inner.unanswered.load(Ordering::SeqCst), ..work }
    }

    /// What is wrong with the file: it is [not in its place](StorageError::Moved) any more, somebody [found it damaged](Store::met)
    /// since it was opened, or the last batch of writes did not reach it. None where it did, or where there was none yet.
    #[must_use]
    pub fn trouble(&self) -> Option<StorageError> {
        let moved = self.inner.place.check().err();
        let lasting = moved.or_else(|| self.inner.damage.met());
        lasting.or_else(|| self.inner.writer.as_ref().and_then(Writer::trouble))
    }

    /// Takes note of an error that SQLite gave a look or a piece of work on this file: [damage](is_damage) does not pass, and is
    /// [trouble](Store::trouble) from then on. Of what such work ends with, the store knows SQLite's own errors by itself, and not those
    /// that stand inside an error of the caller's.
    pub fn met(&self, error: &rusqlite::Error) {
        self.inner.damage.note_said(error);
    }

    /// Runs `piece` on the writing connection, in a transaction that it may share with other pieces, and answers after that
    /// transaction's COMMIT is durable. A piece that refuses, by an error or a panic, is undone by itself: nothing of it is in the file,
    /// and the others stand. Whether there is a savepoint around it is not promised.
    ///
    /// A piece must not end the transaction, nor wait for another write of the same file, and should be quick: nothing else
    /// is written meanwhile. The piece is handed over by the call itself, before the future is polled, so that pieces are run in the
    /// order of the calls and those of one moment share a commit; it runs also when the future is dropped.
    ///
    /// # Errors
    /// See [`WriteError`]: each variant says what is known of the write.
    pub fn write<T, E, F>(
        &self,
        priority: Priority,
        piece: F,
    ) -> impl Future<Output = Result<T, WriteError<E>>> + Send + use<T, E, F>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let submitted = match &self.inner.writer {
            None => Err(WriteError::Storage(StorageError::ReadOnly)),
            Some(writer) => {
                let asked = self.inner.asked();
                writer.submit(priority, piece, move |result| {
                    // The caller may have gone; the write stands all the same.
                    let _ = reply.send(result);
                    drop(asked);
                })
            }
        };
        async move {
            submitted?;
            answer.await.unwrap_or(Err(WriteError::Closed))
        }
    }

    /// [`Store::write`] for code outside an async runtime: blocks this thread until the write is answered.
    ///
    /// # Errors
    /// As [`Store::write`]; [`StorageError::Nested`] from inside a piece of the same file, which would wait for itself.
    pub fn write_blocking<T, E, F>(&self, priority: Priority, piece: F) -> Result<T, WriteError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let Some(writer) = &self.inner.writer else { return Err(WriteError::Storage(StorageError::ReadOnly)) };
        if writer.is_this_thread() {
            return Err(WriteError::Storage(StorageError::Nested));
        }
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let asked = self.inner.asked();
        writer.submit(priority, piece, move |result| {
            let _ = reply.send(result);
            drop(asked);
        })?;
        answer.recv().unwrap_or(Err(WriteError::Closed))
    }

    /// Finds out whether the file takes a durable write now: really writes a page, and answers after the COMMIT that holds it
    /// is durable. Changes nothing that anybody reads. Any success of another write proves less: one that changes no row
    /// touches no disk.
    ///
    /// # Errors
    /// As [`Store::write`]; on any of them the file can't be written now.
    pub async fn probe(&self) -> Result<(), WriteError<rusqlite::Error>> {
        self.write(Priority::Click, pragmas::rewrite_header).await
    }

    /// [`Store::probe`] for code outside an async runtime: blocks this thread until it is answered.
    ///
    /// # Errors
    /// As [`Store::probe`].
    pub fn probe_blocking(&self) -> Result<(), WriteError<rusqlite::Error>> {
        self.write_blocking(Priority::Click, pragmas::rewrite_header)
    }

    /// Runs `look` on one of a few read-only connections, in a transaction: all its statements see one state of the
    /// file, with every write answered before. A look must not wait for another of the same file.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read<T, E, F>(&self, look: F) -> Result<T, ReadError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let asked = self.inner.asked();
        self.inner.readers.submit(look, move |result| {
            let _ = reply.send(result);
            drop(asked);
        })?;
        answer.await.unwrap_or(Err(ReadError::Closed))
    }

    /// [`Store::read`] for code outside an async runtime: blocks this thread until the answer is there.
    ///
    /// # Errors
    /// As [`Store::read`]; [`StorageError::Nested`] from inside a look at the same file.
    pub fn read_blocking<T, E, F>(&self, look: F) -> Result<T, ReadError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        if self.inner.readers.is_this_thread() {
            return Err(ReadError::Storage(StorageError::Nested));
        }
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let asked = self.inner.asked();
        self.inner.readers.submit(look, move |result| {
            let _ = reply.send(result);
            drop(asked);
        })?;
        answer.recv().unwrap_or(Err(ReadError::Closed))
    }
}
