//! The queue at work: started against a bank, its words written into the tenders, its events told on with what the till knows.

use crate::{
    Event, LateDecline, Operation, Place, Till, TillError, alarms, audit, audit::BANK, audit::Signature, clock, late,
    network, operations, pay, queue, queue::Settles, restore, till::not_read, trouble,
};
use outbox::{Bank, BankContract, Ended, HttpTransport, LateAnswer, OnChange, OnLateAnswer, Outbox, StartError};
use protocol::Key;
use rusqlite::{Connection, ffi};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use store::{LockError, Store};
use tokio::{
    runtime::Handle,
    sync::{
        Notify,
        broadcast::{Receiver, error::RecvError, error::TryRecvError},
    },
    task::{JoinError, JoinHandle},
};
use tokio_util::sync::CancellationToken;

/// The outbox of a till, and whether it is at work.
pub(crate) struct Queue {
    pub(crate) outbox: Outbox,
    pub(crate) is_running: Arc<AtomicBool>,
    /// The bank that was named last.
    bank: Mutex<Option<Bank>>,
    /// The button, where a restored file waits for the bank.
    pub(crate) asked_again: Notify,
}

/// Whether a till has what is in its file settled.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) owns_the_folder: bool,
    pub(crate) is_running: Arc<AtomicBool>,
}

impl Owner {
    pub(crate) fn settles(&self) -> Settles {
        let nobody = self.owns_the_folder && !self.is_running.load(Ordering::Acquire);
        if nobody { Settles::Nobody } else { Settles::Somebody }
    }
}

impl Queue {
    pub(crate) fn new(store: Store) -> Self {
        let (of_change, of_late) = (store.clone(), store.clone());
        let hook: OnChange =
            Arc::new(move |tx, operation| written(tx, operation).inspect_err(|error| of_change.met(error)));
        let late: OnLateAnswer =
            Arc::new(move |tx, operation, late| came_late(tx, operation, late).inspect_err(|error| of_late.met(error)));
        let outbox = Outbox::new(store, BankContract).on_change(hook).on_late_answer(late);
        Self { outbox, is_running: Arc::default(), bank: Mutex::default(), asked_again: Notify::new() }
    }

    /// The bank that was named last.
    pub(crate) fn bank(&self) -> Option<Bank> {
        self.bank.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn name_bank(&self, bank: &Bank) {
        *self.bank.lock().unwrap_or_else(PoisonError::into_inner) = Some(bank.clone());
    }
}

/// Puts what the bank said into the tender, in the commit that stores it.
fn written(tx: &Connection, operation: &outbox::Operation) -> rusqlite::Result<()> {
    let signature = Signature::of_program(BANK, operation.updated_at);
    pay::settled(tx, &signature, operation).map_err(|error| refusal(operation, error))
}

/// Puts an end that the bank said after another one into the audit: an alarm, and no change of anything.
pub(crate) fn came_late(tx: &Connection, operation: &outbox::Operation, late: &LateAnswer) -> rusqlite::Result<()> {
    let signature = Signature::of_program(BANK, clock::now());
    pay::contradicted(tx, &signature, operation, late).map_err(|error| refusal(operation, error))
}

fn refusal(operation: &outbox::Operation, error: TillError) -> rusqlite::Error {
    match error {
        // The outbox tries again where the file is at fault, and sets the operation aside where the change is.
        TillError::Storage(why) => rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), Some(why)),
        TillError::Damaged(why) => rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why)),
        fault => {
            tracing::error!(operation = %operation.short_code, error = %fault, "the bank's word does not fit the sale");
            rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CONSTRAINT), Some(fault.to_string()))
        }
    }
}

/// The running queue. Dropping it changes nothing: cancel the token that it was started with to end it.
#[derive(Debug)]
pub struct Settling {
    /// None where there is no bank, and so nothing runs.
    task: Option<JoinHandle<Result<Ended, TillError>>>,
}

impl Settling {
    /// Waits until the queue has ended, after its token was cancelled: what was in flight is then `unknown` in the file, and
    /// every event of it has been told.
    ///
    /// # Errors
    /// [`TillError::InUse`] where another process took the file over, [`TillError::Internal`] where it ended by a fault.
    pub async fn stopped(&mut self) -> Result<(), TillError> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        match ended {
            Ok(Ok(Ended::Stopped)) => Ok(()),
            Ok(Ok(Ended::TakenOver)) => Err(TillError::InUse(
                "another process has taken the payments over: nothing more is sent from here".to_owned(),
            )),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(ended_badly(&error)),
        }
    }

    /// Whether there is a bank to settle with.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.task.is_some()
    }
}

impl Till {
    /// Starts to settle what is open with this bank, until `shutdown` is cancelled. With no bank nothing is sent: payments
    /// are saved and wait. Must be called inside a tokio runtime. The start is a Check now.
    ///
    /// On a file that was brought back from a copy nothing is sent before the bank's payments were matched ([`Till::match_restored`]), which
    /// this does as soon as the bank answers; until then the summary says that it is paused, by `restored`. Some minutes later it does so
    /// again.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the address or the secret can't be used, [`TillError::InUse`] where it runs already,
    /// here or in another process, [`TillError::NotOpened`] where its lock can't be made, [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't
    /// be read.
    pub fn start_settling(&self, bank: Option<Bank>, shutdown: CancellationToken) -> Result<Settling, TillError> {
        let Some(bank) = bank else { return Ok(Settling { task: None }) };
        HttpTransport::new(&bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let waits = self.inner.store.read_blocking(restore::waits).map_err(not_read)?;
        let queue = &self.inner.queue;
        if queue.is_running.load(Ordering::Acquire) {
            return Err(TillError::InUse("the payments are being settled already".to_owned()));
        }
        queue.name_bank(&bank);
        let task = if waits {
            Handle::try_current().map_err(|error| TillError::Internal(error.to_string()))?;
            queue.is_running.store(true, Ordering::Release);
            let (till, running) = (self.clone(), Running(Arc::clone(&queue.is_running)));
            tokio::spawn(async move {
                let is_matched = till.match_before_settling(&shutdown).await;
                drop(running);
                if is_matched { till.settle(shutdown)?.await } else { Ok(Ended::Stopped) }
            })
        } else {
            tokio::spawn(self.settle(shutdown)?)
        };
        Ok(Settling { task: Some(task) })
    }

    /// Starts the queue with the bank that was named last. What it gives comes when that has ended.
    fn settle(
        &self,
        shutdown: CancellationToken,
    ) -> Result<impl Future<Output = Result<Ended, TillError>> + Send + use<>, TillError> {
        let queue = &self.inner.queue;
        let bank = queue.bank().ok_or_else(|| TillError::NoBank("no bank is named".to_owned()))?;
        let transport = HttpTransport::new(&bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let events = queue.outbox.subscribe();
        let places = self.inner.store.read_blocking(|conn| Ok((outbox::last_change(conn)?, audit::end(conn)?)));
        let (place, alarms_from) = places.map_err(not_read)?;
        let watching = shutdown.child_token();
        let settler = queue.outbox.start(Arc::new(transport), shutdown).map_err(not_started)?;
        queue.is_running.store(true, Ordering::Release);
        tokio::spawn(network::watch(queue.outbox.clone(), watching.clone()));
        let (till, until) = (self.clone(), watching.clone());
        tokio::spawn(async move { until.run_until_cancelled(till.match_again_when_due()).await });
        let watched = watching.drop_guard();
        let telling = tell_on(Teller { till: self.clone(), place: Place::at(place), alarms_from }, events, settler);
        Ok(async move {
            let ended = telling.await;
            // However it ended, nobody is left whom a change of the network could wake.
            drop(watched);
            ended.map_err(|error| ended_badly(&error))
        })
    }

    /// Asks the bank at once for what waits, by the button: for all of it, because the bank is reached for all or for none.
    /// What waits for the bank's `Retry-After` still waits.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the key has no operation, [`TillError::NoBank`] where nothing is sent at all.
    pub async fn retry_now(&self, key: Option<Key>) -> Result<(), TillError> {
        if let Some(key) = key {
            self.read(move |conn| operations::by_key(conn, key)).await?;
        }
        if !self.inner.queue.is_running.load(Ordering::Acquire) {
            return Err(TillError::NoBank("no bank is named: payments are saved and wait".to_owned()));
        }
        self.inner.queue.asked_again.notify_one();
        self.inner.queue.outbox.check_now();
        Ok(())
    }

    /// Goes on with another address or secret of the bank, at once.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where they can't be used, or nothing runs that could take them.
    pub fn change_bank(&self, bank: &Bank) -> Result<(), TillError> {
        if !self.inner.queue.is_running.load(Ordering::Acquire) {
            return Err(TillError::NoBank("payments are not being settled".to_owned()));
        }
        let transport = HttpTransport::new(bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        self.inner.queue.name_bank(bank);
        self.inner.queue.asked_again.notify_one();
        self.inner.queue.outbox.change_bank(Arc::new(transport));
        Ok(())
    }
}

/// Nothing of it runs any more, however it ended.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn ended_badly(error: &JoinError) -> TillError {
    TillError::Internal(format!("the payments' task ended: {error}"))
}

fn not_started(error: StartError) -> TillError {
    match error {
        StartError::Locked(held @ LockError::Held { .. }) => TillError::InUse(held.to_string()),
        StartError::Locked(error) => TillError::NotOpened(trouble::of_lock(&error)),
        // Tables, settings, the runtime: nothing that time mends.
        fault => TillError::Internal(fault.to_string()),
    }
}

/// Tells the outbox's events on until it has ended, and then what is left of them.
async fn tell_on(
    mut teller: Teller,
    mut events: Receiver<outbox::Event>,
    mut settler: JoinHandle<Ended>,
) -> Result<Ended, JoinError> {
    let ended = loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) => teller.tell(event).await,
                Err(RecvError::Lagged(_)) => teller.catch_up().await,
                Err(RecvError::Closed) => break (&mut settler).await,
            },
            ended = &mut settler => break ended,
        }
    };
    teller.till.inner.queue.is_running.store(false, Ordering::Release);
    loop {
        match events.try_recv() {
            Ok(event) => teller.tell(event).await,
            Err(TryRecvError::Lagged(_)) => teller.catch_up().await,
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    teller.tell_alarms().await;
    teller.till.tell_summary().await;
    ended
}

/// Tells the till's listeners what changed, with what the till knows beside it.
pub(crate) struct Teller {
    pub(crate) till: Till,
    /// How far the changes were told.
    pub(crate) place: Place,
    /// The place in the audit up to which it was looked through for alarms.
    pub(crate) alarms_from: i64,
}

impl Teller {
    async fn tell(&mut self, event: outbox::Event) {
        match event {
            outbox::Event::OperationChanged(operation) => {
                let look = move |conn: &Connection| {
                    Ok((operations::show(conn, &operation)?, late::by_last(conn, operation.intent_id)?))
                };
                match self.till.read(look).await {
                    Ok((operation, late)) => {
                        self.tell_operation(operation);
                        self.tell_late(late);
                    }
                    Err(error) => tracing::warn!(%error, "a change could not be told"),
                }
                if let Err(error) = self.place.told_one(&self.till).await {
                    tracing::warn!(%error, "the end of the log could not be read");
                }
            }
            outbox::Event::Summary(summary) => {
                // An alarm changes no operation, and so has no event of its own: but it was a write.
                self.tell_alarms().await;
                self.till.tell(Event::SummaryChanged(queue::show(*summary)));
            }
            // Whether the bank is in reach stands in the summary.
            _ => self.till.tell_summary().await,
        }
    }

    fn tell_operation(&self, operation: Operation) {
        let sale_id = operation.sale_id;
        self.till.tell(Event::OperationChanged(Box::new(operation)));
        self.till.tell(Event::SaleChanged { sale_id });
    }

    fn tell_late(&self, late: impl IntoIterator<Item = LateDecline>) {
        late.into_iter().for_each(|late| self.till.tell(Event::LateDecline(Box::new(late))));
    }

    /// Tells the operations again about which the bank said another end meanwhile: that is their reason now.
    pub(crate) async fn tell_alarms(&mut self) {
        let from = self.alarms_from;
        match self.till.read(move |conn| alarms::look(conn, from)).await {
            Ok((alarms, up_to)) => {
                // Also where there are none: else each look would go through all that was written since the start.
                self.alarms_from = up_to;
                for alarm in alarms {
                    self.tell_operation(alarm.operation);
                }
            }
            Err(error) => tracing::warn!(%error, "alarms could not be told"),
        }
    }

    /// Events were missed: what they were about is in the file.
    pub(crate) async fn catch_up(&mut self) {
        loop {
            let page = match self.till.changed_since(self.place.to_catch_up_from()).await {
                Ok(page) => page,
                Err(error) => return tracing::warn!(%error, "missed changes could not be told"),
            };
            self.place = Place::at(page.up_to);
            let keys: Vec<Key> = page.operations.iter().map(|operation| operation.key).collect();
            let late = self.till.read(move |conn| late::of_operations(conn, &keys)).await;
            page.operations.into_iter().for_each(|operation| self.tell_operation(operation));
            match late {
                Ok(late) => self.tell_late(late),
                Err(error) => tracing::warn!(%error, "late declines could not be told"),
            }
            if !page.more {
                return self.till.tell_summary().await;
            }
        }
    }
}
