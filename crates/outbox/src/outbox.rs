//! The outbox as its user sees it: made over a file, started against a bank, woken, listened to.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use protocol::Key;
use rusqlite::Connection;
use store::{LockError, LockFile, Store};
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::MIGRATIONS;
use crate::clock::{Clock, SystemClock};
use crate::contract::Contract;
use crate::events::Event;
use crate::operations::Operation;
use crate::rows::LateAnswer;
use crate::saving::{self, EnqueueError, Enqueued, NewOperation};
use crate::settings::Settings;
use crate::settler::{self, Stop};
use crate::step::Wake;
use crate::tables;
use crate::transport::Transport;

/// Events that a slow listener may be behind before it misses some.
const EVENTS_MAX: usize = 1_024;

/// What the caller does with each change of an operation, in the same commit as the change. See [`Outbox::on_change`].
pub type OnChange = Arc<dyn Fn(&Connection, &Operation) -> rusqlite::Result<()> + Send + Sync>;

/// What the caller does with a result that came after another one was final, in the commit that logs it. The operation is what
/// it was; a refusal of the hook changes nothing.
pub type OnLateAnswer = Arc<dyn Fn(&Connection, &Operation, &LateAnswer) -> rusqlite::Result<()> + Send + Sync>;

/// The queue over one file. Clones are the same queue, and dropping one ends nothing.
///
/// Made by [`Outbox::new`] and the methods that change it, before [`Outbox::start`]: a clone that was made before a change does not
/// have it.
#[derive(Clone)]
pub struct Outbox {
    pub(crate) store: Store,
    pub(crate) on_change: Option<OnChange>,
    pub(crate) on_late_answer: Option<OnLateAnswer>,
    pub(crate) contract: Arc<dyn Contract>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(crate) settings: Settings,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) signals: Arc<Signals>,
}

/// What wakes the loop. Only hints: what there is to do stands in the file.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) notify: Notify,
    new_operation: AtomicBool,
    check_now: AtomicBool,
    network_changed: AtomicBool,
    bank: Mutex<Option<Arc<dyn Transport>>>,
}

impl Signals {
    pub(crate) fn wakes(&self) -> impl Iterator<Item = Wake> {
        [
            (&self.new_operation, Wake::NewOperation),
            (&self.check_now, Wake::CheckNow),
            (&self.network_changed, Wake::NetworkChanged),
        ]
        .into_iter()
        .filter(|(flag, _)| flag.swap(false, Ordering::AcqRel))
        .map(|(_, wake)| wake)
    }

    pub(crate) fn bank(&self) -> Option<Arc<dyn Transport>> {
        self.bank.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}

/// Why settling could not start. Nothing was sent and nothing written; each text is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody else settles this file ([`LockError::Held`]: two would send everything twice), or the lock file could not be
    /// made ([`LockError::Io`]).
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The file lacks the outbox's tables, or has them as an earlier version made them.
    #[error(
        "{path}: has {found} of the {needed} steps of the outbox's tables: open it with all of outbox::MIGRATIONS among its \
         migrations",
        path = path.display(),
        needed = MIGRATIONS.len()
    )]
    Tables {
        /// The file.
        path: PathBuf,
        /// How many of [`MIGRATIONS`] it has.
        found: usize,
    },
    /// [`Settings`](crate::Settings) by which nothing could be settled, or nothing by its own rules.
    #[error("these settings can't work: {0}")]
    Settings(&'static str),
    /// There is no async runtime here.
    #[error("settling needs a tokio runtime: call start inside one")]
    NoRuntime,
}

/// How settling ended. Nothing more is sent from here, and what was in flight is `unknown` in the file, or `sending` where the
/// file didn't take it in 5 s: the next start goes on with either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to, by its token.
    Stopped,
    /// Another owner took the file over, lock or no lock.
    TakenOver,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Outbox {
    /// The queue of a file that has the tables of [`MIGRATIONS`], for the side that `contract` describes: [`BankContract`](crate::BankContract)
    /// for Kassa's bank, one of your own for anybody else. All that is in the file goes by it, also what was
    /// saved before. Figures, clock and chance are those of a till. Nothing is read, and nothing sent, before [`Outbox::start`].
    #[must_use]
    pub fn new(store: Store, contract: impl Contract) -> Outbox {
        Outbox {
            store,
            on_change: None,
            on_late_answer: None,
            contract: Arc::new(contract),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(rand::random),
            settings: Settings::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            signals: Arc::default(),
        }
    }

    /// Has `hook` run in the commit of each change of an operation, so that what the caller keeps beside it never disagrees: the
    /// beginning of each call (request, look-up, cancellation), its end, what a start finds left in flight, a refund that
    /// follows its payment, and that it waits for another bank or no more. It gets the operation as that commit leaves it. It doesn't run for what the caller does itself, in a
    /// transaction of its own ([`enqueue`](crate::enqueue), [`cancel`](crate::cancel),
    /// [`accept_offline`](crate::accept_offline)).
    ///
    /// It runs on the file's one writing thread: it must not end the transaction, wait or panic, and the same change may be
    /// brought to it more than once. Where it returns an error of the file itself (full, locked, damaged, I/O), the change is tried
    /// again until it is taken. By its code alone: such an error of any other SQLite file that the hook uses is taken for one of this
    /// file, so give it another code where trying again is not what it asks for. Any other error, and a panic, counts as a fault of the operation: the change is taken back, the call
    /// made again later, and at the third fault it is set aside as `needs_attention` with what the bank said in its log. That
    /// change, the taking over at a start, and that it waits for another bank, stand even where the hook refuses them, so that nothing is stuck.
    #[must_use]
    pub fn on_change(self, hook: OnChange) -> Outbox {
        Outbox { on_change: Some(hook), ..self }
    }

    /// Has `hook` run where the bank says another end of an operation than the one that it said before, or than the cancellation
    /// here: an alarm for the caller's audit, never a change. It runs in the commit of the log's line `late-answer`; its error or
    /// panic is logged, and changes nothing.
    #[must_use]
    pub fn on_late_answer(self, hook: OnLateAnswer) -> Outbox {
        Outbox { on_late_answer: Some(hook), ..self }
    }

    /// Other figures than the till's. They hold from the next start on, for what was saved before too.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Outbox {
        Outbox { settings, ..self }
    }

    /// Another clock than the machine's: for tests.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Outbox {
        Outbox { clock, ..self }
    }

    /// Another source of chance than the operating system's. The keys that [`Outbox::enqueue`] makes are unique by it: one that
    /// repeats itself is for tests that make their keys themselves.
    #[must_use]
    pub fn with_random(self, random: Arc<dyn Fn() -> u64 + Send + Sync>) -> Outbox {
        Outbox { random, ..self }
    }

    /// [`enqueue`](crate::enqueue) with a new key and the time of this outbox's clock. Call it in a write of the file's
    /// [`Store`], together with the rows of your own that belong to it; [`Outbox::wake`] after that write was answered.
    ///
    /// # Errors
    /// See [`EnqueueError`]; on any of them let the write fail with it, and nothing is saved.
    pub fn enqueue(&self, tx: &Connection, new: &NewOperation) -> Result<Enqueued, EnqueueError> {
        let now = self.clock.now();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&(self.random)().to_be_bytes());
        random[8..].copy_from_slice(&(self.random)().to_be_bytes()[..2]);
        saving::enqueue(tx, new, Key::v7(now, random), now)
    }

    /// Starts the task that settles. It goes on until `shutdown`; what is in flight then is left `unknown`, durably, within 5 s. The
    /// start is a [Check now](Outbox::check_now). Nothing is sent before the bank has said who it is.
    ///
    /// The task ends by `shutdown` alone, or where another owner takes the file over. After a panic of its own it starts again, and
    /// a file that can't be read or written is tried again until it can. To drop the handle changes nothing.
    ///
    /// One owner settles a file, for the life of its task: a lock beside the file says so.
    ///
    /// Blocks this thread for one short read of the file. Where it can't be read now (locked, an I/O error), the
    /// task starts all the same, and tries to take the queue over until it can.
    ///
    /// # Errors
    /// [`StartError::Locked`] where another process, or another task of this one, settles the file; its text says which.
    /// [`StartError::Tables`] where the file lacks tables of [`MIGRATIONS`]. [`StartError::Settings`] where a figure of
    /// [`Outbox::with_settings`] makes no sense. [`StartError::NoRuntime`] outside a tokio runtime.
    pub fn start(
        &self,
        transport: Arc<dyn Transport>,
        shutdown: CancellationToken,
    ) -> Result<JoinHandle<Ended>, StartError> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        self.settings.check().map_err(StartError::Settings)?;
        self.check_tables()?;
        let lock = LockFile::acquire(&self.lock_path())?;
        let outbox = self.clone();
        Ok(runtime.spawn(async move {
            let ended = outbox.supervise(transport, &shutdown).await;
            drop(lock);
            ended
        }))
    }

    fn check_tables(&self) -> Result<(), StartError> {
        match self.store.read_blocking(tables::steps) {
            Ok(found) if found < MIGRATIONS.len() => {
                Err(StartError::Tables { path: self.store.path().to_owned(), found })
            }
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the outbox's tables could not be checked");
                Ok(())
            }
        }
    }

    fn lock_path(&self) -> PathBuf {
        let mut name = self.store.path().as_os_str().to_owned();
        name.push(".settling");
        PathBuf::from(name)
    }

    /// Runs the loop, and again where it ended otherwise than it should: nobody may have to notice and restart it.
    async fn supervise(&self, mut transport: Arc<dyn Transport>, shutdown: &CancellationToken) -> Ended {
        let mut failures = 0;
        loop {
            let began = self.clock.monotonic();
            let run = settler::run(self, &mut transport, shutdown);
            match std::panic::AssertUnwindSafe(run).catch_unwind().await {
                Ok(Stop::Ended(ended)) => return ended,
                Ok(Stop::File(error)) => tracing::error!(%error, "the queue could not be taken over, trying again"),
                Err(_) => tracing::error!("the settling loop panicked, starting it again"),
            }
            // One that ran for a while is no start that fails.
            let ran_for = self.clock.monotonic().saturating_sub(began);
            failures = if ran_for > self.settings.backoff.cap.unsigned_abs() { 1 } else { failures + 1 };
            tokio::select! {
                () = self.clock.sleep(self.settings.backoff.bound(failures).unsigned_abs()) => {}
                () = shutdown.cancelled() => return Ended::Stopped,
            }
        }
    }

    /// Says that an operation was saved. Call it after the commit; a call that is forgotten costs up to 5 s, no more.
    pub fn wake(&self) {
        self.signals.set(&self.signals.new_operation);
    }

    /// Tries everything at once, and looks up what needs attention. What the bank asked to wait for is still waited for, and a bank
    /// that is away is asked twice a second at most, however often this is called.
    pub fn check_now(&self) {
        self.signals.set(&self.signals.check_now);
    }

    /// Says that the network changed: a reason to try now, as [`Outbox::check_now`] is. It is never needed.
    pub fn network_changed(&self) {
        self.signals.set(&self.signals.network_changed);
    }

    /// Goes on with another address or another secret. The bank is asked who it is before anything is sent; what was first
    /// sent to another bank waits for that one. A `Retry-After` holds on where the address is the same. Where no task runs, the
    /// next one takes it, in the place of what [`Outbox::start`] is given.
    pub fn change_bank(&self, transport: Arc<dyn Transport>) {
        *self.signals.bank.lock().unwrap_or_else(PoisonError::into_inner) = Some(transport);
        self.signals.notify.notify_one();
    }

    /// What happens from now on. A listener that is more than 1,024 events behind is told that it missed some
    /// (`RecvError::Lagged`), and reads the file again: [`changed_since`](crate::changed_since).
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }
}
