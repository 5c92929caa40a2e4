//! Ten thousand saved operations, brought to their end by the outbox, and as many equal payments by a bare client.

use crate::{
    bank::SECRET,
    queue::{self, Transport},
    stage::Stage,
};
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use protocol::{IDEMPOTENCY_KEY, Key, PAYMENTS_PATH};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use store::{Priority, Store};
use tokio_util::sync::CancellationToken;

/// Calls at once: as many as the outbox has in flight.
const CONNECTIONS: usize = 4;
/// Operations saved in one commit.
const SAVED_TOGETHER: u64 = 500;
/// Between two looks at whether anything is open.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a drain may take before it counts as stuck: so long, and as long as it takes to settle as few a second as that.
const STUCK: Duration = Duration::from_secs(60);
const RATE_MIN: f64 = 10.0;

/// Saves so many operations, as the till does but many in a commit.
pub(crate) async fn save(store: &Store, operations: u64) -> Result<()> {
    for begin in (0..operations).step_by(usize::try_from(SAVED_TOGETHER)?) {
        let count = SAVED_TOGETHER.min(operations - begin);
        let orders = (0..count).map(|_| queue::order()).collect::<Result<Vec<_>>>()?;
        let saved = store.write(Priority::Background, move |tx| {
            orders.iter().try_for_each(|order| queue::save(tx, order).map(|_| ()))
        });
        saved.await?;
    }
    Ok(())
}

/// An outbox at work. It is told to end where it is dropped.
pub(crate) struct Draining {
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<queue::Ended>,
    look: Connection,
    begin: Instant,
    time_max: Duration,
}

impl Draining {
    /// Starts it, with one listener, as every user has one.
    pub(crate) fn start(store: &Store, transport: Arc<dyn Transport>) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let look = Connection::open_with_flags(store.path(), flags)?;
        look.busy_timeout(Duration::from_secs(1))?;
        let (outbox, shutdown) = (queue::over(store.clone()), CancellationToken::new());
        let mut events = outbox.subscribe();
        tokio::spawn(async move { while !matches!(events.recv().await, Err(error) if is_closed(&error)) {} });
        let open = queue::count_open(&look)?;
        let time_max = STUCK + Duration::from_secs_f64(open as f64 / RATE_MIN);
        let begin = Instant::now();
        let task = outbox.start(transport, shutdown.clone())?;
        Ok(Self { shutdown, task, look, begin, time_max })
    }

    /// Whether anything is open of what was saved as this one or before.
    pub(crate) fn is_open(&mut self, up_to_seq: i64) -> Result<bool> {
        if self.begin.elapsed() > self.time_max {
            bail!("not settled within {:?}, with the bank up: {}", self.time_max, queue::story(&self.look)?);
        }
        ensure!(!self.task.is_finished(), "the outbox ended by itself");
        Ok(queue::any_open(&self.look, up_to_seq)?)
    }

    /// Waits for the end of all that is open, and gives how long it took since the start.
    pub(crate) async fn settled(&mut self) -> Result<Duration> {
        while self.is_open(i64::MAX)? {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(self.begin.elapsed())
    }

    /// Ends it in order.
    pub(crate) async fn end(self) -> Result<()> {
        self.shutdown.cancel();
        match self.task.await? {
            queue::Ended::Stopped => Ok(()),
            other => bail!("the outbox ended with {other:?}"),
        }
    }
}

fn is_closed(error: &tokio::sync::broadcast::error::RecvError) -> bool {
    matches!(error, tokio::sync::broadcast::error::RecvError::Closed)
}

/// Settles all that is open, and gives how long it took.
pub(crate) async fn settle(store: &Store, transport: Arc<dyn Transport>) -> Result<Duration> {
    let mut draining = Draining::start(store, transport)?;
    let took = draining.settled().await?;
    draining.end().await?;
    Ok(took)
}

/// How many operations of a file are approved, where all are.
pub(crate) fn approved(path: &Path) -> Result<u64> {
    queue::approved(&Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
}

/// Who drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// A client that keeps its four connections, and stores nothing.
    Bare,
    /// The same with a connection of its own for each call, as the outbox makes them.
    BareAnew,
    /// The outbox, over a file on the disk.
    Outbox,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Bare, Self::BareAnew, Self::Outbox];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare client, 4 connections kept",
            Self::BareAnew => "bare client, a connection per call",
            Self::Outbox => "outbox",
        }
    }

    /// Makes so many payments at a fresh bank, checks them, and gives how long they took.
    pub(crate) async fn drain(self, stage: &mut Stage, payments: u64) -> Result<Duration> {
        let bank = stage.fresh_bank().await?;
        let took = match self {
            Self::Bare => bare(&bank.url, payments, true).await?,
            Self::BareAnew => bare(&bank.url, payments, false).await?,
            Self::Outbox => {
                let place = stage.place()?;
                let path = place.join("outbox.db");
                let store = Store::open(&path, &queue::schema())?;
                save(&store, payments).await?;
                let took = settle(&store, queue::http(&bank.url, SECRET)?).await?;
                drop(store);
                let approved = approved(&path)?;
                ensure!(approved == payments, "{payments} were saved, and {approved} are approved");
                fs::remove_dir_all(place)?;
                took
            }
        };
        stage.check_charges(payments).await?;
        bank.clear().await?;
        Ok(took)
    }
}

/// Payments by a client of a few lines.
async fn bare(url: &str, payments: u64, keeps: bool) -> Result<Duration> {
    let mut builder = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).tcp_nodelay(true);
    if !keeps {
        builder = builder.pool_max_idle_per_host(0);
    }
    let (http, url) = (builder.build()?, format!("{url}{PAYMENTS_PATH}"));
    let asks = (0..payments).map(|_| ask()).collect::<Result<Vec<_>>>()?;
    let (asks, next) = (Arc::new(asks), Arc::new(AtomicU64::new(0)));
    let begin = Instant::now();
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (http, url, asks, next) = (http.clone(), url.clone(), asks.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = usize::try_from(next.fetch_add(1, Ordering::Relaxed))?;
                    let Some((key, body)) = asks.get(number) else { return anyhow::Ok(()) };
                    pay(&http, &url, key, body).await?;
                }
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    Ok(begin.elapsed())
}

/// Key and body of a payment like those that the outbox has.
fn ask() -> Result<(Key, Vec<u8>)> {
    Ok((Key::v7(Timestamp::now(), rand::random()), queue::body(&queue::order()?)?))
}

async fn pay(http: &reqwest::Client, url: &str, key: &Key, body: &[u8]) -> Result<()> {
    let request = http
        .post(url)
        .header(AUTHORIZATION, format!("Bearer {SECRET}"))
        .header(CONTENT_TYPE, "application/json")
        .header(IDEMPOTENCY_KEY, key.to_string())
        .body(body.to_vec());
    let answer = request.send().await?;
    let status = answer.status();
    let body = answer.bytes().await?;
    ensure!(status == 201, "a payment was answered {status}");
    let payment: protocol::Payment = serde_json::from_slice(&body).context("the bank's answer")?;
    ensure!(payment.operation == *key, "the answer is about another payment");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub_bank::StubBank;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_drain_that_gets_stuck_tells_its_story() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("x.db"), &queue::schema()).unwrap();
        save(&store, 3).await.unwrap();
        let bank = StubBank::start(Duration::ZERO).await.unwrap();
        bank.hold(true);
        let mut draining = Draining::start(&store, queue::http(&bank.url, SECRET).unwrap()).unwrap();
        assert_eq!(draining.time_max, STUCK + Duration::from_millis(300));
        while bank.seen().len() < 3 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        draining.time_max = Duration::ZERO;
        let stuck = draining.settled().await.unwrap_err().to_string();
        assert!(stuck.contains("(\"sending\", 3)") && stuck.contains("event Text(\"saved\")"), "{stuck}");
        bank.hold(false);
        draining.time_max = STUCK;
        draining.settled().await.unwrap();
        draining.end().await.unwrap();
    }
}
