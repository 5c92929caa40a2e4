//! The till itself: one data folder, its lock, its file, and what can be done with them.

mod catalogue;
mod doctor;
mod editing;
mod keeping;
mod offline;
mod paying;
mod payments;
mod payments_at_bank;
mod people;
mod printing;
mod restoring;
mod returns;
mod screen;
mod selling;
mod shifts;
mod voids;

pub use doctor::Compared;

use crate::{
    Event, Sale, Settings, TillError, audit,
    audit::{Face, Signature},
    begun, clock, demo,
    figures::Figures,
    pay, rights,
    rights::Approval,
    schema, settings,
    settling::{Owner, Queue},
    trouble,
};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};
use store::{LockError, LockFile, OpenError, Priority, ReadError, Store, WriteError};
use tokio::sync::{Semaphore, broadcast};
use uuid::Uuid;

/// The file with everything the till knows.
const FILE_NAME: &str = "till.db";
/// The lock that says which process owns the folder.
const LOCK_NAME: &str = "till.lock";
/// How many events a listener may be behind before it loses some and must look for itself.
const EVENTS_MAX: usize = 4_096;
/// Who acts where nothing else was said.
const CASHIER: &str = "cashier";

/// A till over its data folder. Clones share it, and the folder is let go when the last one is dropped.
///
/// What a method changes is durable on disk when it answers. Of what is asked for by an id, or a key, the same call again after an error
/// gives what there is: a payment has its tender's id from before the first click. Any other change, such as an article that is rung up,
/// may be made twice by a second call where the first one's answer was [`TillError::Unreadable`]: look first.
#[derive(Clone)]
pub struct Till {
    pub(crate) inner: Arc<Inner>,
    who: Arc<str>,
    /// Whether it acts by itself, and no person at a face of the till through it.
    is_program: bool,
    /// Whose PIN came with what is done through this clone.
    approval: Option<Approval>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) queue: Queue,
    owner: Owner,
    /// Damage that a look or a change of the till's met.
    damage: OnceLock<String>,
    figures: Arc<Figures>,
    /// Names this opening of the file: who is logged in is so for this one alone.
    opening: Uuid,
    /// One PIN is hashed at a time.
    hashing: Arc<Semaphore>,
    data_dir: PathBuf,
    /// None where the folder was opened only to read.
    _lock: Option<LockFile>,
}

impl std::fmt::Debug for Till {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Till").field("data_dir", &self.inner.data_dir).finish_non_exhaustive()
    }
}

impl Till {
    /// Takes a data folder, made private where it is missing, and opens its file; the first time, with the demo catalogue.
    /// Blocks while it does: some milliseconds, more where an older file is brought up to date.
    ///
    /// # Errors
    /// [`TillError::Clock`] where the machine's clock can't be right, [`TillError::InUse`] where another process has the folder, [`TillError::Refused`] where the file is not this
    /// program's to write, or empty or gone though a till was begun here, [`TillError::NotOpened`] where it can't be written.
    pub fn open(data_dir: &Path) -> Result<Self, TillError> {
        Self::open_to_write(data_dir).map_err(|error| match error {
            TillError::Storage(why) => TillError::NotOpened(why),
            error => error,
        })
    }

    fn open_to_write(data_dir: &Path) -> Result<Self, TillError> {
        protocol::check_clock(SystemTime::now()).map_err(|error| TillError::Clock(error.to_string()))?;
        let lock = lock(data_dir)?;
        let file = data_dir.join(FILE_NAME);
        begun::check(&file)?;
        let store = Store::open_prepared(&file, &schema::schema(), schema::prepare)
            .map_err(|error| not_opened(&error, &file))?;
        let till = Self::over(store, data_dir, Some(lock));
        let signature = till.signature();
        // Only where there is something to write: on a full disk the till still shows what is open.
        if !till.inner.store.read_blocking(settings::exist).map_err(not_read)? {
            till.inner
                .store
                .write_blocking(Priority::Click, move |tx| first_start(tx, &signature))
                .map_err(not_written)?;
        }
        till.complete_left_waiting();
        begun::set(&file);
        Ok(till)
    }

    /// Completes the sales of which an older program handed the goods over. Where that can't be saved, the bank's word completes them.
    fn complete_left_waiting(&self) {
        let (store, signature) = (&self.inner.store, self.signature());
        let left = store.read_blocking(crate::offline::left_waiting).map_err(not_read);
        let done = left.and_then(|left| {
            if left.is_empty() {
                return Ok(());
            }
            let complete =
                move |tx: &Connection| left.iter().try_for_each(|sale| pay::complete_if_paid(tx, &signature, *sale));
            store.write_blocking(Priority::Click, complete).map_err(not_written)
        });
        if let Err(error) = done {
            tracing::warn!(%error, "sales that wait for nothing could not be completed");
        }
    }

    /// Opens a data folder to look at it, also while another process works in it. Whatever would change it is refused.
    ///
    /// # Errors
    /// [`TillError::Refused`] where there is no till's file, or one of another version, [`TillError::NotRead`] where it can't be
    /// read now.
    pub fn open_read_only(data_dir: &Path) -> Result<Self, TillError> {
        let file = data_dir.join(FILE_NAME);
        let opened = begun::check(&file)
            .and_then(|()| Store::open_read_only(&file, &schema::schema()).map_err(|error| not_opened(&error, &file)));
        match opened {
            Ok(store) => Ok(Self::over(store, data_dir, None)),
            // Who only reads was about to save nothing.
            Err(TillError::Storage(why)) => Err(TillError::NotRead(why)),
            Err(error) => Err(error),
        }
    }

    fn over(store: Store, data_dir: &Path, lock: Option<LockFile>) -> Self {
        let (events, _) = broadcast::channel(EVENTS_MAX);
        let queue = Queue::new(store.clone());
        let owner = Owner { owns_the_folder: lock.is_some(), is_running: Arc::clone(&queue.is_running) };
        let figures = Figures::new(store.clone(), events.clone(), owner.clone());
        let inner = Inner {
            store,
            events,
            queue,
            owner,
            damage: OnceLock::new(),
            figures,
            opening: clock::new_id(),
            hashing: Arc::new(Semaphore::new(1)),
            data_dir: data_dir.to_owned(),
            _lock: lock,
        };
        Self { inner: Arc::new(inner), who: CASHIER.into(), is_program: false, approval: None }
    }

    /// The same till for a face with a person before it: lock and rights hold. In the audit its changes are signed by who is logged in,
    /// and by this name where there are no people.
    #[must_use]
    pub fn acting_as(&self, who: &str) -> Self {
        Self { who: who.into(), is_program: false, approval: None, ..self.clone() }
    }

    /// The same till for a program that nobody stands before, such as `kassa-till`: it does not log in, and no right holds it up, for who
    /// may run programs on the file may write it as well. Its changes are signed by this name.
    #[must_use]
    pub fn as_program(&self, name: &str) -> Self {
        Self { who: name.into(), is_program: true, approval: None, ..self.clone() }
    }

    /// The folder with the till's data.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.inner.data_dir
    }

    /// What happens from now on. A listener that is too slow is told that it missed some, and looks at the file again.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    /// Finds out whether the till can save now, by a write that reaches the disk and changes nothing. The success of any other
    /// method proves less: one that has nothing to change goes through on a dead disk.
    ///
    /// # Errors
    /// [`TillError::Storage`] or [`TillError::Unreadable`] where it can't.
    pub async fn probe(&self) -> Result<(), TillError> {
        self.inner.store.probe().await.map_err(not_written)
    }

    /// What is wrong with the file: it is gone, somebody found it damaged, or the last write that was tried did not reach it. None
    /// where it did, or nothing was tried.
    ///
    /// # Errors
    /// None: what it gives is [`TillError::Storage`], or [`TillError::Damaged`] where no waiting helps.
    #[must_use]
    pub fn trouble(&self) -> Option<TillError> {
        if let Some(why) = self.inner.damage.get() {
            return Some(TillError::Damaged(why.clone()));
        }
        let error = self.inner.store.trouble()?;
        let why = trouble::of_storage(&error);
        Some(if trouble::is_lasting(&error) { TillError::Damaged(why) } else { TillError::Storage(why) })
    }

    /// Whether somebody's PIN came with what is done through this clone.
    fn has_approval(&self) -> bool {
        self.approval.is_some()
    }

    fn signature(&self) -> Signature {
        if self.is_program {
            return Signature::of_program(&self.who, clock::now());
        }
        let approval = self.approval.as_ref().map(Approval::for_command);
        let face = Face { opening: self.inner.opening, approval };
        Signature::of_face(&self.who, clock::now(), face)
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let seen = self.inner.store.read(look).await.map_err(not_read);
        if let Err(TillError::Damaged(why)) = &seen
            && self.inner.store.trouble().is_none_or(|error| !trouble::is_lasting(&error))
        {
            self.met_damage(why);
        }
        seen
    }

    /// [`not_written`] of a change, with what it says of the file noted.
    fn not_written(&self, error: WriteError<TillError>) -> TillError {
        if let WriteError::Refused(TillError::Damaged(why)) = &error {
            self.met_damage(why);
        }
        not_written(error)
    }

    /// The store knows SQLite's own errors, and not those of the till.
    fn met_damage(&self, why: &str) {
        let _ = self.inner.damage.set(why.to_owned());
    }

    /// One change in one commit. Where its outcome is not known, `find` looks for it before anybody is told: the file has taken a
    /// durable commit since, so what is not there now does not come back. Where the file took nothing, an earlier click may have made
    /// the same one, and to say that nothing was saved would be wrong.
    async fn change_or_find<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
        find: impl FnOnce(&Connection) -> Result<Option<T>, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let signature = self.signature();
        let approval = signature.approval().cloned();
        let change = move |tx: &Connection| change(tx, &rights::acting(tx, &signature)?);
        let written = self.inner.store.write(Priority::Click, change).await;
        give_back_unless_saved(approval.as_ref(), &written);
        match written {
            Ok(done) => Ok(done),
            Err(WriteError::Uncertain(error)) => match self.read(find).await {
                Ok(Some(done)) => Ok(done),
                Ok(None) => Err(TillError::Storage(trouble::of_storage(&error))),
                Err(unread) => Err(TillError::Unreadable(format!("{}; {unread}", trouble::of_storage(&error)))),
            },
            Err(error) => match self.not_written(error) {
                // What is there is an earlier click's, perhaps on no disk, perhaps about something else.
                TillError::Storage(why) => match self.read(find).await {
                    Ok(None) => Err(TillError::Storage(why)),
                    Ok(Some(_)) => Err(TillError::Unreadable(why)),
                    Err(unread) => Err(TillError::Unreadable(format!("{why}; {unread}"))),
                },
                other => Err(other),
            },
        }
    }

    /// One change of a sale in one commit.
    async fn change_sale(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<Sale, TillError> + Send + 'static,
    ) -> Result<Sale, TillError> {
        let sale = self.change(change).await?;
        self.tell(Event::SaleChanged { sale_id: sale.id });
        Ok(sale)
    }

    /// One change in one commit, by who is logged in.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        self.change_unlocked(move |tx, signature| change(tx, &rights::acting(tx, signature)?)).await
    }

    /// One change in one commit, also while the till is locked.
    async fn change_unlocked<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let signature = self.signature();
        let approval = signature.approval().cloned();
        let done = self.inner.store.write(Priority::Click, move |tx| change(tx, &signature)).await;
        give_back_unless_saved(approval.as_ref(), &done);
        done.map_err(|error| self.not_written(error))
    }

    pub(crate) fn tell(&self, event: Event) {
        // Nobody may be listening: what happened is in the file.
        let _ = self.inner.events.send(event);
    }
}

/// Takes a data folder, which no other process may have meanwhile.
fn lock(data_dir: &Path) -> Result<LockFile, TillError> {
    LockFile::acquire(&data_dir.join(LOCK_NAME)).map_err(|error| match error {
        LockError::Held { pid, .. } => TillError::InUse(format!(
            "{} is in use by another process{}",
            data_dir.display(),
            pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
        )),
        LockError::Io { .. } => TillError::Storage(trouble::of_lock(&error)),
    })
}

/// An approval is used up by what is saved, or may be, and not by a command that was refused.
fn give_back_unless_saved<T, E>(approval: Option<&Approval>, written: &Result<T, WriteError<E>>) {
    if let (Some(approval), Err(error)) = (approval, written)
        && !matches!(error, WriteError::Uncertain(_) | WriteError::Untrusted(_))
    {
        approval.give_back();
    }
}

/// What a file needs before it is used the first time. Run at every start: a kill in the middle of the first one leaves
/// nothing half done.
fn first_start(tx: &Connection, signature: &Signature) -> Result<(), TillError> {
    if settings::exist(tx)? {
        return Ok(());
    }
    let settings = Settings::default();
    settings::save(tx, &settings)?;
    demo::seed(tx)?;
    audit::append(tx, signature, "till-set-up", None, &settings::document(&settings))
}

fn not_opened(error: &OpenError, file: &Path) -> TillError {
    match (trouble::of_open(error, file), error) {
        (Some(why), _) => TillError::Storage(why),
        (None, OpenError::Damaged(said)) => {
            TillError::Refused(format!("{}: {}", file.display(), trouble::of_sqlite(said)))
        }
        (None, _) => TillError::Refused(error.to_string()),
    }
}

pub(crate) fn not_written<E: Into<TillError> + std::fmt::Display>(error: WriteError<E>) -> TillError {
    match error {
        WriteError::Refused(refused) => match refused.into() {
            TillError::Damaged(why) => TillError::Storage(why),
            refused => refused,
        },
        WriteError::Storage(error) | WriteError::Unproven(error) => TillError::Storage(trouble::of_storage(&error)),
        // Neither as saved nor as failed: it may be in the file, or come into it at the next start.
        WriteError::Uncertain(error) | WriteError::Untrusted(error) => {
            TillError::Unreadable(trouble::of_storage(&error))
        }
        WriteError::Closed | WriteError::Overloaded => TillError::Storage(error.to_string()),
    }
}

pub(crate) fn not_read(error: ReadError<TillError>) -> TillError {
    match error {
        // It is about a change, and a look is none.
        ReadError::Failed(TillError::Storage(why)) => TillError::NotRead(why),
        ReadError::Failed(failed) => failed,
        ReadError::Storage(error) if trouble::is_lasting(&error) => TillError::Damaged(trouble::of_storage(&error)),
        ReadError::Storage(error) => TillError::NotRead(trouble::of_storage(&error)),
        ReadError::Closed | ReadError::Overloaded => {
            TillError::NotRead(format!("the till's file can't be read: {error}"))
        }
    }
}

/// The folder that a till uses where none is named: this system's for application data. None where the system has none.
#[must_use]
pub fn default_data_dir() -> Option<PathBuf> {
    dirs::data_dir().map(|dir| dir.join("app.kassa.till"))
}
