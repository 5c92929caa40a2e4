//! The load: a closed loop. Each connection pays, reads the whole answer, looks at it, and pays again.
//!
//! It is one thread, so that it takes at most one core and always the same share of it per request. What it sees goes to its standard
//! output, a line of JSON for each event.

use crate::wire::{AMOUNT, Ask, Connection, Keys};
use anyhow::{Context, Result, ensure};
use clap::Args;
use measure::latency::Latencies;
use serde::{Deserialize, Serialize};
use std::{
    cell::{Cell, RefCell},
    io::Write,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::task::{JoinSet, LocalSet};

/// How long anything may take before the run counts as stuck: longer than any time limit of a contender.
const STUCK: Duration = Duration::from_secs(60);
/// Payments between two events of progress.
pub(crate) const PROGRESS_EVERY: u64 = 10_000;

#[derive(Args)]
pub(crate) struct Options {
    /// Whom to pay at
    #[arg(long, value_name = "URL")]
    url: String,
    /// Connections, each with one payment at a time
    #[arg(long, value_name = "N")]
    connections: usize,
    /// Seconds before anything is counted
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    warm_up_s: f64,
    /// Seconds that are counted
    #[arg(long, value_name = "SECONDS", required_unless_present = "count")]
    seconds: Option<f64>,
    /// Payments to make, in place of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    count: Option<u64>,
    /// How keys are made
    #[arg(long, value_enum, value_name = "KIND", default_value = "v7")]
    keys: Keys,
    /// Make that many payments before anything is counted, and then send these again and again
    #[arg(long, value_name = "N")]
    replay: Option<u64>,
}

/// What the load tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// What is counted begins.
    Open,
    /// So many were made.
    Progress { done: u64 },
    /// What is counted is over.
    Closed,
    /// All of it.
    Done(Measured),
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// One for each request.
    pub(crate) latencies: Latencies,
}

/// What all connections share.
struct Shared {
    url: String,
    keys: Keys,
    next: Cell<u64>,
    /// Payments to make, or to make before they are sent again.
    count: u64,
    /// Whether it is told how far it is.
    tells_progress: bool,
    done: Cell<u64>,
    phase: Cell<Phase>,
    latencies: RefCell<Latencies>,
    /// What is sent again, with its answer.
    paid: RefCell<Vec<(Ask, Box<[u8]>)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Counted,
    Over,
}

/// Makes the load.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, load(options))
}

async fn load(options: &Options) -> Result<()> {
    let shared = Rc::new(Shared {
        url: options.url.clone(),
        keys: options.keys,
        next: Cell::new(0),
        count: options.replay.or(options.count).unwrap_or(u64::MAX),
        tells_progress: options.count.is_some(),
        done: Cell::new(0),
        phase: Cell::new(if options.count.is_some() { Phase::Counted } else { Phase::WarmUp }),
        latencies: RefCell::new(Latencies::new()?),
        paid: RefCell::new(Vec::new()),
    });
    let mut connections = Vec::with_capacity(options.connections);
    for _ in 0..options.connections {
        connections.push(Connection::open(&shared.url).await?);
    }
    if options.replay.is_some() {
        connections = all(connections, |connection| fill(shared.clone(), connection), async { Ok(()) }).await?;
    }
    let replaying = options.replay.is_some();
    let work = |(place, connection): (usize, Connection)| {
        let shared = shared.clone();
        async move { if replaying { replay(shared, connection, place).await } else { pay(shared, connection).await } }
    };
    let begin = Instant::now();
    let seconds = Cell::new(0.0);
    let timing = async {
        if let Some(counted_s) = options.seconds {
            tokio::time::sleep(Duration::from_secs_f64(options.warm_up_s)).await;
            shared.phase.set(Phase::Counted);
            let open = Instant::now();
            say(&Event::Open)?;
            tokio::time::sleep(Duration::from_secs_f64(counted_s)).await;
            shared.phase.set(Phase::Over);
            seconds.set(open.elapsed().as_secs_f64());
            say(&Event::Closed)?;
        } else {
            say(&Event::Open)?;
        }
        anyhow::Ok(())
    };
    let connections: Vec<_> = connections.into_iter().enumerate().collect();
    all(connections, work, timing).await?;
    if options.count.is_some() {
        seconds.set(begin.elapsed().as_secs_f64());
        say(&Event::Closed)?;
    }
    let latencies = shared.latencies.borrow().clone();
    say(&Event::Done(Measured { seconds: seconds.get(), latencies }))
}

/// Runs a piece of work on each connection, to its end; the first error ends all.
async fn all<C, W: Future<Output = Result<Connection>> + 'static>(
    connections: Vec<C>,
    work: impl Fn(C) -> W,
    timing: impl Future<Output = Result<()>>,
) -> Result<Vec<Connection>> {
    let mut running = JoinSet::new();
    for connection in connections {
        running.spawn_local(work(connection));
    }
    let ending = async {
        let mut ended = Vec::new();
        while let Some(done) = running.join_next().await {
            ended.push(done??);
        }
        anyhow::Ok(ended)
    };
    let (ended, ()) = tokio::try_join!(ending, timing)?;
    Ok(ended)
}

/// Pays under new keys until it is over, or until all payments are made.
async fn pay(shared: Rc<Shared>, mut connection: Connection) -> Result<Connection> {
    while let Some(ask) = shared.ask()? {
        let start = Instant::now();
        let answer = answered(&mut connection, &ask).await?;
        answer.approved()?;
        ensure!(!answer.replayed, "a new key was answered as a known one");
        shared.record(start)?;
    }
    Ok(connection)
}

/// Makes the payments that are then sent again.
async fn fill(shared: Rc<Shared>, mut connection: Connection) -> Result<Connection> {
    while let Some(ask) = shared.ask()? {
        let answer = answered(&mut connection, &ask).await?;
        answer.approved()?;
        shared.paid.borrow_mut().push((ask, answer.body.into()));
    }
    Ok(connection)
}

/// Sends payments that were made, again and again.
async fn replay(shared: Rc<Shared>, mut connection: Connection, place: usize) -> Result<Connection> {
    // A prime number of payments between two: neighbours in the books are not sent one after the other.
    let (mut index, step) = (place * 7_919, 104_729);
    while shared.phase.get() != Phase::Over {
        let ask = {
            let paid = shared.paid.borrow();
            index = (index + step) % paid.len();
            paid[index].0
        };
        let start = Instant::now();
        let answer = answered(&mut connection, &ask).await?;
        answer.approved()?;
        ensure!(answer.replayed, "a known key was answered as a new one");
        ensure!(*answer.body == *shared.paid.borrow()[index].1, "a repeat was answered with other bytes");
        shared.record(start)?;
    }
    Ok(connection)
}

async fn answered<'a>(connection: &'a mut Connection, ask: &Ask) -> Result<crate::wire::Answer<'a>> {
    tokio::time::timeout(STUCK, connection.pay(ask)).await.context("no answer in time")?
}

impl Shared {
    /// The next payment; none where all were made, or where the time is over.
    fn ask(&self) -> Result<Option<Ask>> {
        let number = self.next.get();
        if number == self.count || self.phase.get() == Phase::Over {
            return Ok(None);
        }
        self.next.set(number + 1);
        Ok(Some(Ask { key: self.keys.make()?, number, amount: AMOUNT }))
    }

    fn record(&self, start: Instant) -> Result<()> {
        if self.phase.get() == Phase::Counted {
            self.latencies.borrow_mut().record(start.elapsed())?;
            let done = self.done.get() + 1;
            self.done.set(done);
            if self.tells_progress && done.is_multiple_of(PROGRESS_EVERY) {
                say(&Event::Progress { done })?;
            }
        }
        Ok(())
    }
}

fn say(event: &Event) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, event)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
