//! How often a dead bank is asked with ten thousand operations waiting.

use crate::{
    bank::SECRET,
    drain,
    hour::Hour,
    queue::{self, Answer, Call, CallError, Clock as _, Lost, Transport},
    stage::Stage,
    stub_bank,
};
use anyhow::{Result, bail, ensure};
use futures::future::BoxFuture;
use protocol::{POLICY_PATH, Problem, ProblemType};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use store::Store;
use tokio_util::sync::CancellationToken;

/// What the figure is about.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);
/// When a call into nothing is given up.
const TIME_OUT: Duration = Duration::from_secs(10);
/// Before the sample in real time: until the back-off has grown to its cap.
pub(crate) const RUN_UP: Duration = Duration::from_secs(32);

/// Calls after which a bank counts as stormed, and the hour ends early.
pub(crate) const STORM: u64 = 3_000;

/// How a bank is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Death {
    /// Nobody listens.
    Refused,
    /// Packets go nowhere, until the time is out.
    BlackHole,
    /// A page of somebody in between, with 503.
    Page,
    /// The bank's own 503 to everything from the start, with no `Retry-After`.
    Unavailable,
    /// The same once it has said who it is, so that operations are sent to it.
    UnavailableLater,
}

impl Death {
    pub(crate) const ALL: [Self; 5] =
        [Self::Refused, Self::BlackHole, Self::Page, Self::Unavailable, Self::UnavailableLater];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::BlackHole => "no answer, 10 s each",
            Self::Page => "a proxy's 503",
            Self::Unavailable => "the bank's 503 without Retry-After",
            Self::UnavailableLater => "the same, after it said who it is",
        }
    }
}

/// A bank that says once who it is, but where it was dead from the start, and is dead from the next call on.
struct DeadBank {
    death: Death,
    clock: Hour,
    calls: AtomicU64,
}

impl DeadBank {
    fn answer(status: u16, kind: &str, body: Vec<u8>) -> Answer {
        Answer { status, content_type: Some(kind.to_owned()), body, ..Answer::default() }
    }

    fn policy() -> Result<Answer, CallError> {
        let body = serde_json::to_vec(&stub_bank::policy()).unwrap_or_default();
        Ok(Self::answer(200, "application/json", body))
    }
}

impl Transport for DeadBank {
    fn address(&self) -> &str {
        "http://127.0.0.1:1"
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first && call.path == POLICY_PATH && self.death != Death::Unavailable {
            return Box::pin(async { Self::policy() });
        }
        let (death, clock) = (self.death, self.clock.clone());
        Box::pin(async move {
            match death {
                Death::Refused => Err(CallError::NoConnection("refused".to_owned())),
                Death::BlackHole => {
                    clock.sleep(TIME_OUT).await;
                    Err(CallError::NoAnswer { how: Lost::TimeOut, detail: String::new() })
                }
                Death::Page => Ok(Self::answer(503, "text/html", b"<h1>503</h1>".to_vec())),
                Death::Unavailable | Death::UnavailableLater => {
                    let problem = Problem::new(ProblemType::Unavailable, "not now");
                    let body = serde_json::to_vec(&problem).unwrap_or_default();
                    Ok(Self::answer(503, Problem::MEDIA_TYPE, body))
                }
            }
        })
    }
}

/// What became of the hour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Passed {
    pub(crate) calls: u64,
    /// How much time had passed when it ended.
    pub(crate) passed: Duration,
}

impl Passed {
    /// Calls in an hour as in the time that passed; where it ended early, at least so many.
    pub(crate) fn per_hour(&self) -> f64 {
        // The first second of a storm says little more than that it is one.
        let passed = self.passed.max(Duration::from_secs(1));
        self.calls as f64 * HOUR.as_secs_f64() / passed.as_secs_f64()
    }
}

/// Some time with a bank that is dead that way, in time that leaps. It ends early where the bank is stormed.
pub(crate) async fn pass(stage: &mut Stage, death: Death, waiting: u64, time: Duration) -> Result<Passed> {
    let place = stage.place()?;
    let store = Store::open(&place.join("outbox.db"), &queue::schema())?;
    drain::save(&store, waiting).await?;
    let clock = Hour::new();
    let bank = Arc::new(DeadBank { death, clock: clock.clone(), calls: AtomicU64::new(0) });
    let shutdown = CancellationToken::new();
    let task = queue::over(store.clone()).with_clock(Arc::new(clock.clone())).start(bank.clone(), shutdown.clone())?;
    let calls = || bank.calls.load(Ordering::Relaxed);
    let stormed = async {
        while calls() < STORM {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        passed = clock.pass(time, &store) => passed?,
        () = stormed => {}
    }
    let passed = Passed { calls: calls(), passed: clock.monotonic() };
    shutdown.cancel();
    end(task, &store, &place, waiting).await?;
    // Who it is, one operation at least, and then probes.
    ensure!(passed.calls > 3, "a dead bank ({}) was called {} times only", death.name(), passed.calls);
    Ok(passed)
}

async fn end(task: tokio::task::JoinHandle<queue::Ended>, store: &Store, place: &Path, waiting: u64) -> Result<()> {
    // Its end is in the time that stands still now: what waits for nothing ends all the same.
    match tokio::time::timeout(Duration::from_secs(30), task).await?? {
        queue::Ended::Stopped => {}
        other => bail!("the outbox ended with {other:?}"),
    }
    let states = store.read(queue::states).await?;
    let open: u64 = states.iter().filter(|(state, _)| queue::is_unsettled(state)).map(|(_, count)| count).sum();
    ensure!(open == waiting, "{waiting} operations waited, and now they are {states:?}");
    Ok(fs::remove_dir_all(place)?)
}

/// Calls in real time to a port that nobody listens on.
pub(crate) struct Sample {
    /// Those of the first seconds, in which the back-off grows.
    pub(crate) run_up: u64,
    /// Those of the time after it.
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
}

/// The real way to a bank, counted.
struct Counted {
    way: Arc<dyn Transport>,
    calls: AtomicU64,
}

impl Transport for Counted {
    fn address(&self) -> &str {
        self.way.address()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.way.call(call)
    }
}

/// A sample in real time, over the real way.
pub(crate) async fn sample(stage: &mut Stage, waiting: u64, seconds: f64) -> Result<Sample> {
    let place = stage.place()?;
    let store = Store::open(&place.join("outbox.db"), &queue::schema())?;
    drain::save(&store, waiting).await?;
    // A port that was free just now; nobody else on this machine is asked for anything by a refused connection.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let way = queue::http(&format!("http://127.0.0.1:{port}"), SECRET)?;
    let counted = Arc::new(Counted { way, calls: AtomicU64::new(0) });
    let shutdown = CancellationToken::new();
    let task = queue::over(store.clone()).start(counted.clone(), shutdown.clone())?;
    let run_up = RUN_UP.min(Duration::from_secs_f64(seconds));
    tokio::time::sleep(run_up).await;
    let before = counted.calls.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let after = counted.calls.load(Ordering::Relaxed);
    shutdown.cancel();
    end(task, &store, &place, waiting).await?;
    ensure!(before > 0, "nobody was called at all");
    Ok(Sample { run_up: before, calls: after - before, seconds })
}
