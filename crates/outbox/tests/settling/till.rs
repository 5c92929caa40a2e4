//! A till around the outbox: a file, a lane for each sale, and a table of its own that the outbox's commits keep up to date.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};
use outbox::{
    Attempt, Backoff, BankContract, CancelAs, Contract, Ended, HttpTransport, NewOperation, Operation, Outbox, Request,
    Secret, Settings, State, Summary,
};
use protocol::{Amount, CardToken, Currency, Key, PaymentRequest};
use store::{Migration, Priority, Schema, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bank::Bank;

/// How long a condition may take to come about. Nothing waits for as long where all is well.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) const SECRET: &str = "sk_test";

/// Less patient than a till, with the same rules.
pub(crate) fn quick() -> Settings {
    Settings {
        backoff: Backoff { base: SignedDuration::from_millis(20), cap: SignedDuration::from_millis(200) },
        retry_after_jitter: SignedDuration::from_millis(50),
        slice: SignedDuration::from_millis(200),
        ..Settings::default()
    }
}

pub(crate) struct Till {
    pub(crate) outbox: Outbox,
    pub(crate) store: Store,
    _folder: Option<tempfile::TempDir>,
    running: Option<(JoinHandle<Ended>, CancellationToken)>,
}

pub(crate) fn open(path: &Path) -> Result<Store> {
    let own = "CREATE TABLE tenders (key BLOB PRIMARY KEY, state TEXT NOT NULL, changes INTEGER NOT NULL) STRICT";
    let mut migrations = outbox::migrations([1, 3]);
    migrations.insert(1, Migration { version: 2, name: "tenders", sql: own });
    Ok(Store::open(path, &Schema { application_id: 7, migrations })?)
}

/// What a till does in the outbox's commits.
fn keep_tender(tx: &rusqlite::Connection, operation: &Operation) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO tenders VALUES (?1, ?2, 1) ON CONFLICT (key) DO UPDATE SET state = excluded.state, changes = changes + 1",
        (operation.key.as_bytes(), operation.state.as_str()),
    )
    .map(|_| ())
}

pub(crate) fn transport(bank: &Bank) -> Result<Arc<HttpTransport>> {
    Ok(Arc::new(HttpTransport::new(&outbox::Bank { url: bank.url(), token: Secret::new(SECRET) })?))
}

impl Till {
    pub(crate) fn new() -> Result<Till> {
        Till::new_with(BankContract)
    }

    pub(crate) fn new_with(contract: impl Contract) -> Result<Till> {
        let folder = tempfile::tempdir()?;
        let till = Till::over(&folder.path().join("till.db"), contract)?;
        Ok(Till { _folder: Some(folder), ..till })
    }

    pub(crate) fn at(path: &Path) -> Result<Till> {
        Till::over(path, BankContract)
    }

    fn over(path: &Path, contract: impl Contract) -> Result<Till> {
        let store = open(path)?;
        let outbox = Outbox::new(store.clone(), contract).with_settings(quick()).on_change(Arc::new(keep_tender));
        Ok(Till { outbox, store, _folder: None, running: None })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.store.path().to_owned()
    }

    /// Changes how the outbox is made, before its start.
    pub(crate) fn set(self, change: impl FnOnce(Outbox) -> Outbox) -> Till {
        Till { outbox: change(self.outbox), ..self }
    }

    pub(crate) fn start(&mut self, bank: &Bank) -> Result<()> {
        self.start_with(transport(bank)?)
    }

    pub(crate) fn start_with(&mut self, transport: Arc<dyn outbox::Transport>) -> Result<()> {
        let shutdown = CancellationToken::new();
        self.running = Some((self.outbox.start(transport, shutdown.clone())?, shutdown));
        Ok(())
    }

    pub(crate) async fn stop(&mut self) -> Result<Ended> {
        let (task, shutdown) = self.running.take().context("not running")?;
        shutdown.cancel();
        Ok(tokio::time::timeout(LIMIT, task).await??)
    }

    /// The end of the loop by itself.
    pub(crate) async fn ended(&mut self) -> Result<Ended> {
        let (task, _) = self.running.take().context("not running")?;
        Ok(tokio::time::timeout(LIMIT, task).await??)
    }

    pub(crate) async fn pay(&self, amount: i64) -> Result<Operation> {
        self.pay_with(amount, "tok_visa", &Uuid::new_v4().to_string()).await
    }

    pub(crate) async fn pay_with(&self, amount: i64, card: &str, lane: &str) -> Result<Operation> {
        let request = PaymentRequest {
            amount: Amount::new(amount)?,
            currency: Currency::EUR,
            card: CardToken::new(card)?,
            reference: Some("till-1/1042".to_owned()),
            accepted_offline_at: None,
        };
        let new = NewOperation {
            intent_id: Uuid::new_v4(),
            replaces: None,
            lane: lane.to_owned(),
            request: Request::Payment(request),
        };
        let now = Timestamp::now();
        let key = Key::v7(now, rand::random());
        let saved = self.store.write(Priority::Click, move |tx| outbox::enqueue(tx, &new, key, now)).await?;
        self.outbox.wake();
        Ok(saved.operation)
    }

    /// Gives back of a payment, in its lane.
    pub(crate) async fn refund(&self, payment: &Operation, amount: i64) -> Result<Operation> {
        let new = NewOperation {
            intent_id: Uuid::new_v4(),
            replaces: None,
            lane: payment.lane.clone(),
            request: Request::Refund { payment: payment.key, amount: Amount::new(amount)? },
        };
        let now = Timestamp::now();
        let key = Key::v7(now, rand::random());
        let saved = self.store.write(Priority::Click, move |tx| outbox::enqueue(tx, &new, key, now)).await?;
        self.outbox.wake();
        Ok(saved.operation)
    }

    /// Wishes it cancelled.
    pub(crate) async fn cancel(&self, key: Key) -> Result<Operation> {
        let now = Timestamp::now();
        let cancelled =
            self.store.write(Priority::Click, move |tx| outbox::cancel(tx, &key, CancelAs::Wish, now)).await?;
        self.outbox.wake();
        Ok(cancelled.operation)
    }

    pub(crate) async fn operation(&self, key: Key) -> Result<Operation> {
        self.store.read(move |conn| outbox::by_key(conn, &key)).await?.context("no such operation")
    }

    pub(crate) async fn log(&self, key: Key) -> Result<Vec<Attempt>> {
        Ok(self.store.read(move |conn| outbox::attempts(conn, &key)).await?)
    }

    pub(crate) async fn summary(&self) -> Result<Summary> {
        Ok(self.store.read(|conn| outbox::summary(conn, Timestamp::now())).await?)
    }

    /// The state of the till's own row, and how often it was changed.
    pub(crate) async fn tender(&self, key: Key) -> Result<(String, u32)> {
        let query = move |conn: &rusqlite::Connection| {
            conn.query_row("SELECT state, changes FROM tenders WHERE key = ?1", [key.as_bytes()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        };
        Ok(self.store.read(query).await?)
    }

    /// The operation, once it is so.
    pub(crate) async fn until(&self, key: Key, what: &str, is_so: impl Fn(&Operation) -> bool) -> Result<Operation> {
        let end = tokio::time::Instant::now() + LIMIT;
        loop {
            let operation = self.operation(key).await?;
            if is_so(&operation) {
                return Ok(operation);
            }
            if tokio::time::Instant::now() > end {
                bail!("it did not become {what}: {operation:?}, {:?}", self.log(key).await?);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Once its log has that reading: it stays there, however quickly things go on.
    pub(crate) async fn until_logged(&self, key: Key, reading: &str) -> Result<()> {
        let end = tokio::time::Instant::now() + LIMIT;
        while !self.log(key).await?.iter().any(|entry| entry.reading.as_deref() == Some(reading)) {
            if tokio::time::Instant::now() > end {
                bail!("it was not read as {reading}: {:?}", self.log(key).await?);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    pub(crate) async fn until_state(&self, key: Key, state: State) -> Result<Operation> {
        self.until(key, state.as_str(), |operation| operation.state == state).await
    }

    /// The figures, once they are so.
    pub(crate) async fn until_summary(&self, what: &str, is_so: impl Fn(&Summary) -> bool) -> Result<Summary> {
        let end = tokio::time::Instant::now() + LIMIT;
        loop {
            let summary = self.summary().await?;
            if is_so(&summary) {
                return Ok(summary);
            }
            if tokio::time::Instant::now() > end {
                bail!("the queue did not become {what}: {summary:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Waits until the bank has seen it.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let end = tokio::time::Instant::now() + LIMIT;
    while !is_so() {
        if tokio::time::Instant::now() > end {
            bail!("it did not come to this: {what}");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
