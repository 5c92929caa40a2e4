//! The till itself: one data folder, its lock, its file, and what can be done with them.

use crate::{
    ArticleQuery, Articles, AuditEntry, CardPayment, CashPayment, CashTaken, Category, Charge, Event, Operation,
    OperationQuery, Operations, Receipt, Refund, Sale, Settings, Summary, TenderBegun, TillError, TimelineEntry, audit,
    audit::Signature,
    begun, cancelling, cart, catalogue, charge, clock, demo,
    figures::Figures,
    operations, pay, queue, receipt, refunds, sale, schema, settings,
    settling::{Owner, Queue},
    trouble,
};
use outbox::ExportError;
use protocol::Key;
use rusqlite::Connection;
use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::SystemTime,
};
use store::{LockError, LockFile, OpenError, Priority, ReadError, Store, WriteError};
use tokio::sync::broadcast;
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
/// What a method changes is durable on disk when it answers. Every method may be called again with the same arguments after
/// an error: a payment has its tender's id from before the first click.
#[derive(Clone)]
pub struct Till {
    pub(crate) inner: Arc<Inner>,
    who: Arc<str>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) queue: Queue,
    owner: Owner,
    /// Damage that a look or a change of the till's met.
    damage: OnceLock<String>,
    figures: Arc<Figures>,
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
    /// program's to write, or empty or gone though a till was begun here, [`TillError::Storage`] where it can't be written.
    pub fn open(data_dir: &Path) -> Result<Self, TillError> {
        protocol::check_clock(SystemTime::now()).map_err(|error| TillError::Clock(error.to_string()))?;
        let lock = LockFile::acquire(&data_dir.join(LOCK_NAME)).map_err(|error| match error {
            LockError::Held { pid, .. } => TillError::InUse(format!(
                "{} is in use by another process{}",
                data_dir.display(),
                pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
            )),
            LockError::Io { .. } => TillError::Storage(trouble::of_lock(&error)),
        })?;
        let file = data_dir.join(FILE_NAME);
        begun::check(&file)?;
        let store = Store::open(&file, &schema::schema()).map_err(|error| not_opened(&error, &file))?;
        let till = Self::over(store, data_dir, Some(lock));
        let signature = till.signature();
        // Only where there is something to write: on a full disk the till still shows what is open.
        if !till.inner.store.read_blocking(settings::exist).map_err(not_read)? {
            till.inner
                .store
                .write_blocking(Priority::Click, move |tx| first_start(tx, &signature))
                .map_err(not_written)?;
        }
        begun::set(&file);
        Ok(till)
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
            data_dir: data_dir.to_owned(),
            _lock: lock,
        };
        Self { inner: Arc::new(inner), who: CASHIER.into() }
    }

    /// The same till, its changes signed by somebody else in the audit.
    #[must_use]
    pub fn acting_as(&self, who: &str) -> Self {
        Self { inner: Arc::clone(&self.inner), who: who.into() }
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

    fn signature(&self) -> Signature {
        Signature { who: self.who.to_string(), at: clock::now() }
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

    /// One change in one commit. Where that commit's outcome is not known, `find` looks for it before anybody is told: the file
    /// has taken a durable commit since, so what is not there now does not come back.
    async fn change_or_find<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
        find: impl FnOnce(&Connection) -> Result<Option<T>, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        let signature = self.signature();
        match self.inner.store.write(Priority::Click, move |tx| change(tx, &signature)).await {
            Ok(done) => Ok(done),
            Err(WriteError::Uncertain(error)) => match self.read(find).await {
                Ok(Some(done)) => Ok(done),
                Ok(None) => Err(TillError::Storage(trouble::of_storage(&error))),
                Err(unread) => Err(TillError::Unreadable(format!("{}; {unread}", trouble::of_storage(&error)))),
            },
            Err(error) => Err(self.not_written(error)),
        }
    }

    /// One change of a sale in one commit.
    async fn change_sale(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<Sale, TillError> + Send + 'static,
    ) -> Result<Sale, TillError> {
        let signature = self.signature();
        let done = self.inner.store.write(Priority::Click, move |tx| change(tx, &signature)).await;
        let sale = done.map_err(|error| self.not_written(error))?;
        self.tell(Event::SaleChanged { sale_id: sale.id });
        Ok(sale)
    }

    pub(crate) fn tell(&self, event: Event) {
        // Nobody may be listening: what happened is in the file.
        let _ = self.inner.events.send(event);
    }
}

/// Catalogue and settings.
impl Till {
    /// The shop's settings.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn settings(&self) -> Result<Settings, TillError> {
        self.read(settings::read).await
    }

    /// Saves the settings. They hold from the next sale on.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`] where one can't have its value.
    pub async fn save_settings(&self, new: Settings) -> Result<(), TillError> {
        let signature = self.signature();
        let saved = self.inner.store.write(Priority::Click, move |tx| {
            let (before, after) = (settings::read(tx)?, new);
            if after == before {
                return Ok(());
            }
            settings::save(tx, &after)?;
            let details =
                serde_json::json!({"before": settings::document(&before), "after": settings::document(&after)});
            audit::append(tx, &signature, "settings-saved", None, &details)
        });
        saved.await.map_err(|error| self.not_written(error))
    }

    /// The categories, in their order, each with how many articles it holds.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn categories(&self) -> Result<Vec<Category>, TillError> {
        self.read(catalogue::categories).await
    }

    /// The articles of a category, or those that hold every word typed.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn articles(&self, query: ArticleQuery) -> Result<Articles, TillError> {
        self.read(move |conn| catalogue::articles(conn, &query)).await
    }
}

/// The sale in front of the cashier.
impl Till {
    /// The sale in front, made where there is none: open, under payment, or completed and not yet followed by
    /// [`Till::new_sale`]. Only where it makes one does it write and tell.
    ///
    /// # Errors
    /// [`TillError::Storage`] where one can't be saved.
    pub async fn open_sale(&self) -> Result<Sale, TillError> {
        match self.read(cart::in_front).await? {
            Some(sale) => Ok(sale),
            None => self.change_sale(|tx, signature| sale::show(tx, &cart::open_sale(tx, signature)?)).await,
        }
    }

    /// Rings up an article by SKU or barcode: one of it, or the quantity given as a decimal with up to three places. The
    /// same article again raises the quantity.
    ///
    /// # Errors
    /// [`TillError::UnknownArticle`], [`TillError::InvalidQuantity`], or [`TillError::SaleFrozen`] while the sale in front
    /// is under payment.
    pub async fn add_article(&self, code: &str, quantity: Option<&str>) -> Result<Sale, TillError> {
        let (code, quantity) = (code.to_owned(), quantity.map(str::to_owned));
        self.change_sale(move |tx, signature| cart::add_article(tx, signature, &code, quantity.as_deref())).await
    }

    /// Sets the quantity of a line: a decimal above zero with up to three places, whole for articles sold by the piece.
    ///
    /// # Errors
    /// [`TillError::InvalidQuantity`], [`TillError::NotFound`] where the line is gone, [`TillError::SaleFrozen`],
    /// [`TillError::SaleChanged`] where its sale is not the one in front.
    pub async fn set_quantity(&self, line_id: i64, quantity: &str) -> Result<Sale, TillError> {
        let quantity = quantity.to_owned();
        self.change_sale(move |tx, signature| cart::set_quantity(tx, signature, line_id, &quantity)).await
    }

    /// Removes a line.
    ///
    /// # Errors
    /// As [`Till::set_quantity`].
    pub async fn remove_line(&self, line_id: i64) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::remove_line(tx, signature, line_id)).await
    }

    /// Removes all lines of the sale in front.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while it is under payment.
    pub async fn clear_sale(&self) -> Result<Sale, TillError> {
        self.change_sale(cart::clear_sale).await
    }

    /// A sale to begin with: the one in front while it is open, a new one after a completed one.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while the one in front is under payment: hold it first.
    pub async fn new_sale(&self) -> Result<Sale, TillError> {
        self.change_sale(cart::new_sale).await
    }

    /// Puts a sale under payment aside, where it completes by itself when the bank answers, and gives the sale to go on with.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where the sale is open.
    pub async fn hold_sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        let sale = self.change_sale(move |tx, signature| cart::hold_sale(tx, signature, sale_id)).await?;
        self.tell(Event::SaleChanged { sale_id });
        Ok(sale)
    }

    /// The sales that a cashier put aside, not completed, oldest first, at most 200. A [`Till::charge`] is none of them: there
    /// is no cart to go on with.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn held_sales(&self) -> Result<Vec<Sale>, TillError> {
        self.read(cart::held_sales).await
    }

    /// Takes up a sale that was put aside. The one in front goes aside for it, or goes altogether where it is empty.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where it is a [`Till::charge`].
    pub async fn resume_sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::resume_sale(tx, signature, sale_id)).await
    }

    /// Opens a sale again whose payments were all declined or cancelled.
    ///
    /// # Errors
    /// [`TillError::SaleFrozen`] while one of them paid or may have paid, [`TillError::SaleChanged`] after its completion.
    pub async fn back_to_cart(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.change_sale(move |tx, signature| cart::back_to_cart(tx, signature, sale_id)).await
    }

    /// One sale, whatever became of it.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn sale(&self, sale_id: Uuid) -> Result<Sale, TillError> {
        self.read(move |conn| sale::read(conn, sale_id)).await
    }

    /// The receipt of a sale that is paid or under payment.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::SaleChanged`] where the sale is open.
    pub async fn receipt(&self, sale_id: Uuid) -> Result<Receipt, TillError> {
        self.read(move |conn| receipt::receipt(conn, sale_id)).await
    }

    /// Entries of the audit after `after_seq`, of one sale or of all; oldest first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn audit(&self, sale_id: Option<Uuid>, after_seq: i64, limit: u32) -> Result<Vec<AuditEntry>, TillError> {
        self.read(move |conn| audit::list(conn, sale_id, after_seq, limit)).await
    }
}

/// Pay.
impl Till {
    /// What is due, and an id for the tender that is to pay it: asked for when its dialog opens. Saves nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::InvalidAmount`] where the sale is empty, [`TillError::SaleFrozen`] where its
    /// payment is under way, [`TillError::SaleChanged`] where it is paid.
    pub async fn begin_tender(&self, sale_id: Uuid) -> Result<TenderBegun, TillError> {
        self.read(move |conn| pay::begin(conn, sale_id)).await
    }

    /// Pays by card. One commit freezes the sale and saves tender, key, operation and audit entry; only then is anything
    /// sent. The same tender id again gives its operation back, in whatever state it is by then.
    ///
    /// # Errors
    /// [`TillError::InvalidAmount`], [`TillError::InvalidCard`], [`TillError::OverDue`], [`TillError::SaleFrozen`],
    /// [`TillError::SaleChanged`], [`TillError::IntentReused`] where the tender id came with another amount, card or sale,
    /// [`TillError::Storage`] where nothing was saved and nothing will be sent, [`TillError::Unreadable`] where that can't
    /// be told.
    pub async fn pay_card(&self, payment: CardPayment) -> Result<Operation, TillError> {
        let tender_id = payment.tender_id;
        let change = move |tx: &Connection, signature: &Signature| pay::card(tx, signature, &payment);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, tender_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Pays all that is due in cash. The same tender id again gives the same answer back.
    ///
    /// # Errors
    /// [`TillError::InvalidAmount`] where it is too little, or not in coins that there are; else as [`Till::pay_card`].
    pub async fn pay_cash(&self, payment: CashPayment) -> Result<CashTaken, TillError> {
        let tender_id = payment.tender_id;
        let change = move |tx: &Connection, signature: &Signature| pay::cash(tx, signature, &payment);
        let taken = self.change_or_find(change, move |conn| pay::cash_taken(conn, tender_id)).await?;
        self.tell(Event::SaleChanged { sale_id: taken.sale.id });
        Ok(taken)
    }

    /// Charges an amount with no cart before it, as a sale of its own that no cashier ever has in front. The same intent again
    /// gives the same operation back.
    ///
    /// # Errors
    /// [`TillError::InvalidReference`] as [`Charge::check`] says, [`TillError::IntentReused`] where the intent came with another
    /// amount, currency or card; else as [`Till::pay_card`].
    pub async fn charge(&self, charge: Charge) -> Result<Operation, TillError> {
        let intent_id = charge.intent_id;
        let change = move |tx: &Connection, signature: &Signature| charge::charge(tx, signature, &charge);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, intent_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Gives money of a card payment back, which may still be open: then the refund waits for its end. The same intent again
    /// gives the same operation back.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the key is no payment's, [`TillError::OverRefund`], [`TillError::NotRefundable`] where the
    /// payment was declined or cancelled, [`TillError::IntentReused`]; else as [`Till::pay_card`].
    pub async fn refund(&self, refund: Refund) -> Result<Operation, TillError> {
        let intent_id = refund.intent_id;
        let change = move |tx: &Connection, signature: &Signature| refunds::refund(tx, signature, &refund);
        let operation = self.change_or_find(change, move |conn| operations::by_intent(conn, intent_id)).await?;
        self.begun(&operation);
        Ok(operation)
    }

    /// Cancels an operation: at once where it was never sent, else the wish is saved and brought to the bank. Gives the
    /// operation as it is then. The same again changes nothing.
    ///
    /// # Errors
    /// [`TillError::NotFound`], [`TillError::AlreadyFinal`] where it ended otherwise, [`TillError::AcceptedOffline`],
    /// [`TillError::Storage`] where nothing was saved, [`TillError::Unreadable`] where that can't be told.
    pub async fn cancel(&self, key: Key) -> Result<Operation, TillError> {
        let change = move |tx: &Connection, signature: &Signature| cancelling::cancel(tx, signature, key);
        let done = self.change_or_find(change, move |conn| cancelling::done(conn, key)).await?;
        store::points::reach(store::points::Point::CancelSaved);
        for operation in std::iter::once(&done.operation).chain(&done.refunds) {
            self.begun(operation);
        }
        Ok(done.operation)
    }

    /// Wakes the queue and tells the listeners, after an operation was saved.
    fn begun(&self, operation: &Operation) {
        store::points::reach(store::points::Point::Saved);
        self.inner.queue.outbox.wake();
        self.tell(Event::OperationChanged(Box::new(operation.clone())));
        self.tell(Event::SaleChanged { sale_id: operation.sale_id });
        self.inner.figures.want();
    }

    pub(crate) async fn tell_summary(&self) {
        self.inner.figures.tell().await;
    }
}

/// The queue.
impl Till {
    /// One operation.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn operation(&self, key: Key) -> Result<Operation, TillError> {
        self.read(move |conn| operations::by_key(conn, key)).await
    }

    /// A page of operations.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn operations(&self, query: OperationQuery) -> Result<Operations, TillError> {
        self.read(move |conn| operations::list(conn, &query)).await
    }

    /// Everything that happened to an operation, oldest first.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn attempts(&self, key: Key) -> Result<Vec<outbox::Attempt>, TillError> {
        self.read(move |conn| operations::attempts(conn, key)).await
    }

    /// Writes every operation with its attempts, oldest first, as a JSON line each, and gives their number. One state of the
    /// file, while others work on; no card token and no secret.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read, [`TillError::Export`] where it can't be written where it is to go.
    pub async fn export_payments(&self, mut out: Box<dyn Write + Send>) -> Result<u64, TillError> {
        self.read(move |conn| match outbox::export(conn, &mut out) {
            Ok(written) => Ok(written),
            Err(ExportError::Sqlite(error)) => Err(error.into()),
            Err(ExportError::Io(error)) => Err(TillError::Export(error)),
        })
        .await
    }

    /// The same in words, for the window.
    ///
    /// # Errors
    /// [`TillError::NotFound`].
    pub async fn timeline(&self, key: Key) -> Result<Vec<TimelineEntry>, TillError> {
        self.read(move |conn| operations::timeline(conn, key)).await
    }

    /// How the queue stands.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn summary(&self) -> Result<Summary, TillError> {
        let (now, settles) = (clock::now(), self.inner.owner.settles());
        self.read(move |conn| queue::summary(conn, now, settles)).await
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
        WriteError::Storage(error) => TillError::Storage(trouble::of_storage(&error)),
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
