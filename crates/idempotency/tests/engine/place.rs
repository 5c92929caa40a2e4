//! An engine over a real file, with a work that counts its runs and can be held up.

use idempotency::{
    Answer, Begin, Clock, Config, Engine, Job, Limits, Request, Response, Settlement, Undo, Verdict, Work,
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use store::{LockFile, Migration, Schema, Store};
use tokio::sync::Semaphore;

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

pub(crate) const KEY: [u8; 16] = [7; 16];

/// The longest that anything is waited for that comes for certain, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(50);

/// What the work did, and levers to hold it up.
pub(crate) struct Seen {
    pub(crate) runs: AtomicU32,
    pub(crate) undone: AtomicU32,
    pub(crate) panics_left: AtomicU32,
    pub(crate) attention: AtomicBool,
    /// The rows of the result break a rule of the store.
    pub(crate) breaks_a_rule: AtomicBool,
    /// The rows of the result panic.
    pub(crate) rows_panic: AtomicBool,
    /// A run goes on when it gets a permit.
    pub(crate) gate: Semaphore,
    pub(crate) payloads: Mutex<Vec<Vec<u8>>>,
    pub(crate) undo_panics_left: AtomicU32,
    /// Taking back goes on when it gets a permit.
    pub(crate) undo_gate: Semaphore,
    /// How far the clock has been moved.
    pub(crate) clock_offset_s: AtomicI64,
}

impl Seen {
    pub(crate) fn open() -> Arc<Self> {
        Self::with_permits(Semaphore::MAX_PERMITS)
    }

    pub(crate) fn shut() -> Arc<Self> {
        Self::with_permits(0)
    }

    fn with_permits(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            runs: AtomicU32::new(0),
            undone: AtomicU32::new(0),
            panics_left: AtomicU32::new(0),
            attention: AtomicBool::new(false),
            breaks_a_rule: AtomicBool::new(false),
            rows_panic: AtomicBool::new(false),
            gate: Semaphore::new(permits),
            payloads: Mutex::default(),
            undo_panics_left: AtomicU32::new(0),
            undo_gate: Semaphore::new(Semaphore::MAX_PERMITS),
            clock_offset_s: AtomicI64::new(0),
        })
    }

    pub(crate) fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

struct MovedClock(Arc<Seen>);

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        let offset = SignedDuration::from_secs(self.0.clock_offset_s.load(Ordering::SeqCst));
        Timestamp::now().saturating_add(offset).unwrap_or(Timestamp::MAX)
    }
}

pub(crate) struct Count(Arc<Seen>);

impl Work for Count {
    type Context = ();

    async fn run(&self, job: Job<()>) -> Verdict {
        let number = self.0.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if let Ok(mut payloads) = self.0.payloads.lock() {
            payloads.push(job.payload.to_vec());
        }
        if let Ok(permit) = self.0.gate.acquire().await {
            permit.forget();
        }
        if self.0.panics_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            std::panic::resume_unwind(Box::new("the test asks for it"));
        }
        if self.0.attention.load(Ordering::SeqCst) {
            return Verdict::NeedsAttention("look at it".into());
        }
        let rows_panic = self.0.rows_panic.load(Ordering::SeqCst);
        let id = (!self.0.breaks_a_rule.load(Ordering::SeqCst)).then_some(job.id);
        Verdict::Settled(Settlement {
            outcome: "done",
            subject: Some(format!("thing {}", job.id)),
            response: response(&format!("run {number}")),
            rows: Arc::new(move |tx| {
                if rows_panic {
                    std::panic::resume_unwind(Box::new("the test asks for it"));
                }
                tx.execute("INSERT INTO effects (operation) VALUES (?1)", [id]).map(|_| ())
            }),
        })
    }

    async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
        self.0.undone.fetch_add(1, Ordering::SeqCst);
        if let Ok(permit) = self.0.undo_gate.acquire().await {
            permit.forget();
        }
        if self.0.undo_panics_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        {
            std::panic::resume_unwind(Box::new("the test asks for it"));
        }
        Undo::Cancelled(Arc::new(|_| Ok(())))
    }
}

pub(crate) fn response(body: &str) -> Response {
    Response {
        status: 201,
        content_type: "text/plain".into(),
        location: Some("/there".into()),
        body: body.to_owned().into(),
    }
}

/// With a wait that nobody waits for in vain, and a retention that is long beside the time a test takes.
pub(crate) fn config() -> Config {
    Config { wait: LIMIT, retention: Duration::from_secs(3_600), limits: Limits::default() }
}

pub(crate) struct Place {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        Ok(Self { path: dir.path().join("test.db"), _dir: dir })
    }

    pub(crate) async fn engine(&self, seen: &Arc<Seen>, config: Config) -> Result<Engine<Count>> {
        Ok(self.engine_and_store(seen, config).await?.0)
    }

    /// The engine, and another handle to its store.
    pub(crate) async fn engine_and_store(&self, seen: &Arc<Seen>, config: Config) -> Result<(Engine<Count>, Store)> {
        let schema = Schema {
            application_id: 1,
            migrations: vec![
                Migration { version: 1, name: "operations", sql: idempotency::SCHEMA },
                Migration {
                    version: 2,
                    name: "effects",
                    sql: "CREATE TABLE effects (operation INTEGER NOT NULL) STRICT",
                },
            ],
        };
        let lock = LockFile::acquire(&self.path.with_extension("lock"))?;
        let store = Store::open(&self.path, &schema)?;
        let clock = Arc::new(MovedClock(seen.clone()));
        Ok((Engine::open(store.clone(), lock, Count(seen.clone()), clock, config).await?, store))
    }

    /// Waits until the last engine is gone: its tasks may hold it for a moment after the kill.
    pub(crate) async fn free(&self) -> Result {
        within(|| LockFile::acquire(&self.path.with_extension("lock")).is_ok()).await
    }
}

pub(crate) fn effects(path: &Path) -> Result<i64> {
    Ok(Connection::open(path)?.query_row("SELECT count(*) FROM effects", [], |row| row.get(0))?)
}

pub(crate) async fn within(mut holds: impl FnMut() -> bool) -> Result {
    let began = Instant::now();
    while began.elapsed() < LIMIT {
        if holds() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("it didn't come to hold within {LIMIT:?}").into())
}

pub(crate) fn request(key: [u8; 16], size: &str) -> Request<()> {
    Request {
        scope: "a".into(),
        key,
        kind: "thing",
        route: "POST /things".into(),
        members: vec![("size", size.as_bytes().to_vec())],
        payload: size.as_bytes().to_vec(),
        begin: Box::new(|_, _| Ok(Begin::Run)),
        context: (),
    }
}

pub(crate) fn body(answer: &Answer) -> Option<(&[u8], bool)> {
    match answer {
        Answer::Done { response, replayed } => Some((&response.body, *replayed)),
        _ => None,
    }
}

/// Leaves `count` operations behind as a process does that died.
pub(crate) fn leave_unfinished(path: &Path, count: u32) -> Result {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
               INSERT INTO operations (scope, key, state, kind, payload, owner, created_ms)
               SELECT 'a', randomblob(16), 0, 'thing', x'37', 4294967297, 0 FROM n";
    Connection::open(path)?.execute(sql, [count])?;
    Ok(())
}
