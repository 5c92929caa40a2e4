//! The engine from the outside, over a real file.

use idempotency::{
    Answer, Begin, Cancel, Clock, Config, Engine, Hindrance, Job, Limits, Request, Response, Settlement, State, Undo,
    Verdict, Work,
};
use jiff::Timestamp;
use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};
use store::{LockFile, Migration, Schema, Store};
use tokio::sync::Semaphore;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY: [u8; 16] = [7; 16];

/// What the work did, and levers to hold it up.
struct Seen {
    runs: AtomicU32,
    undone: AtomicU32,
    panics_left: AtomicU32,
    attention: AtomicBool,
    /// The rows of the result break a rule of the store.
    breaks_a_rule: AtomicBool,
    /// A run goes on when it gets a permit.
    gate: Semaphore,
    payloads: Mutex<Vec<Vec<u8>>>,
    /// How far the clock has been moved.
    clock_offset_s: AtomicU32,
}

impl Seen {
    fn open() -> Arc<Self> {
        Self::with_permits(Semaphore::MAX_PERMITS)
    }

    fn shut() -> Arc<Self> {
        Self::with_permits(0)
    }

    fn with_permits(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            runs: AtomicU32::new(0),
            undone: AtomicU32::new(0),
            panics_left: AtomicU32::new(0),
            attention: AtomicBool::new(false),
            breaks_a_rule: AtomicBool::new(false),
            gate: Semaphore::new(permits),
            payloads: Mutex::default(),
            clock_offset_s: AtomicU32::new(0),
        })
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

struct MovedClock(Arc<Seen>);

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        let offset = Duration::from_secs(self.0.clock_offset_s.load(Ordering::SeqCst).into());
        Timestamp::now().saturating_add(offset).unwrap_or(Timestamp::MAX)
    }
}

struct Count(Arc<Seen>);

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
        let id = (!self.0.breaks_a_rule.load(Ordering::SeqCst)).then_some(job.id);
        Verdict::Settled(Settlement {
            outcome: "done",
            subject: Some(format!("thing {}", job.id)),
            response: response(&format!("run {number}")),
            rows: Arc::new(move |tx| tx.execute("INSERT INTO effects (operation) VALUES (?1)", [id]).map(|_| ())),
        })
    }

    async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
        self.0.undone.fetch_add(1, Ordering::SeqCst);
        Undo::Cancelled(Arc::new(|_| Ok(())))
    }
}

fn response(body: &str) -> Response {
    Response {
        status: 201,
        content_type: "text/plain".into(),
        location: Some("/there".into()),
        body: body.to_owned().into(),
    }
}

fn config() -> Config {
    Config { wait: Duration::from_secs(5), retention: Duration::from_secs(60), limits: Limits::default() }
}

struct Place {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        Ok(Self { path: dir.path().join("test.db"), _dir: dir })
    }

    async fn engine(&self, seen: &Arc<Seen>, config: Config) -> Result<Engine<Count>> {
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
        Ok(Engine::open(store, lock, Count(seen.clone()), Arc::new(MovedClock(seen.clone())), config).await?)
    }

    /// Waits until the last engine is gone: its tasks may hold it for a moment after the kill.
    async fn free(&self) -> Result {
        within(|| LockFile::acquire(&self.path.with_extension("lock")).is_ok()).await
    }
}

fn effects(path: &Path) -> Result<i64> {
    Ok(Connection::open(path)?.query_row("SELECT count(*) FROM effects", [], |row| row.get(0))?)
}

async fn within(mut holds: impl FnMut() -> bool) -> Result {
    for _ in 0..1_000 {
        if holds() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("it didn't come to hold within 10 s".into())
}

fn request(key: [u8; 16], size: &str) -> Request<()> {
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

fn body(answer: &Answer) -> Option<(&[u8], bool)> {
    match answer {
        Answer::Done { response, replayed } => Some((&response.body, *replayed)),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_run_once_and_all_get_the_same_bytes() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let all = futures::future::join_all((0..64).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    }))
    .await;
    let mut first = 0;
    for answer in all {
        let answer = answer?;
        let (bytes, replayed) = body(&answer).ok_or("no result")?;
        assert_eq!(bytes, b"run 1");
        first += u32::from(!replayed);
    }
    assert_eq!((first, seen.runs(), effects(&place.path)?), (1, 1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_meaning_is_told_apart_while_running_and_after() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, config()).await?;
    let running = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    };
    within(|| seen.runs() == 1).await?;
    assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] });
    let mut elsewhere = request(KEY, "7");
    elsewhere.route = "POST /others".into();
    assert_eq!(engine.run(elsewhere).await, Answer::Reused { differs: vec!["path".into()] });
    seen.gate.add_permits(1);
    assert!(body(&running.await?).is_some());
    assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] });
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_are_apart() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    engine.run(request(KEY, "7")).await;
    let mut other = request(KEY, "8");
    other.scope = "b".into();
    assert_eq!(body(&engine.run(other).await), Some((&b"run 2"[..], false)));
    assert_eq!(effects(&place.path)?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_to_come_again_and_the_run_goes_on() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, Config { wait: Duration::from_millis(100), ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_ends_nothing() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, config()).await?;
    let gone = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    };
    within(|| seen.runs() == 1).await?;
    gone.abort();
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(effects(&place.path)?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_limit_of_waiters_do_not_wait() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let limits = Limits { waiters_per_key: 2, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, wait: Duration::from_secs(60), ..config() }).await?;
    // Polled once each, so that both are seated before anybody else comes.
    let (mut first, mut second) = (Box::pin(engine.run(request(KEY, "7"))), Box::pin(engine.run(request(KEY, "7"))));
    assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
    // The one beyond the limit is answered although nothing has ended; the others would wait for a minute.
    let beyond = tokio::time::timeout(Duration::from_secs(10), engine.run(request(KEY, "7"))).await?;
    assert_eq!(beyond, Answer::InProgress);
    within(|| seen.runs() == 1).await?;
    assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] }, "still compared");
    seen.gate.add_permits(1);
    assert!(body(&first.await).is_some() && body(&second.await).is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_in_hand_is_told_as_such() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let limits = Limits { running: 1, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert_eq!(engine.run(request([8; 16], "7")).await, Answer::Unavailable(Hindrance::TooMuch));
    seen.gate.add_permits(1);
    engine.idle().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_process_left_is_finished_with_nobody_asking() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, config()).await?;
    let asked = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    };
    within(|| seen.runs() == 1).await?;
    engine.kill();
    assert_eq!(asked.await?, Answer::InProgress, "what was not stored is not told, and what is claimed not as free");
    assert_eq!(engine.run(request([8; 16], "7")).await, Answer::Unavailable(Hindrance::Ending));
    drop(engine);
    place.free().await?;
    assert_eq!(effects(&place.path)?, 0);

    let seen = Seen::open();
    let engine = place.engine(&seen, config()).await?;
    engine.start();
    let path = place.path.clone();
    within(|| effects(&path).is_ok_and(|effects| effects == 1)).await?;
    assert_eq!(seen.payloads.lock().map_err(|_| "poisoned")?[..], [b"7".to_vec()], "the stored request is run");
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)));
    let record = engine.lookup("a", KEY).await?.ok_or("no row")?;
    assert_eq!(record.owner.epoch, 2);
    Ok(())
}

/// Leaves `count` operations behind as a process does that died.
fn leave_unfinished(path: &Path, count: u32) -> Result {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
               INSERT INTO operations (scope, key, state, kind, payload, owner, created_ms)
               SELECT 'a', randomblob(16), 0, 'thing', x'37', 4294967297, 0 FROM n";
    Connection::open(path)?.execute(sql, [count])?;
    Ok(())
}

/// Operations that this process, the second on its store, has taken over.
fn taken_over(path: &Path) -> Result<u32> {
    let sql = "SELECT count(*) FROM operations WHERE owner >> 32 = 2";
    Ok(Connection::open(path)?.query_row(sql, [], |row| row.get(0))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn however_much_was_left_is_taken_over_before_it_is_told_so() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    drop(place.engine(&seen, config()).await?);
    place.free().await?;
    leave_unfinished(&place.path, 3_000)?;
    let engine = place.engine(&seen, config()).await?;
    engine.start();
    let mut progress = engine.progress();
    let told =
        tokio::time::timeout(Duration::from_secs(10), progress.wait_for(|progress| progress.taken_over)).await??;
    assert_eq!((told.found, taken_over(&place.path)?), (3_000, 3_000));
    drop(told);
    within(|| seen.runs() == 3_000).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_taken_over_is_tried_again_at_once() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    drop(place.engine(&seen, config()).await?);
    place.free().await?;
    leave_unfinished(&place.path, 300)?;
    let engine = place.engine(&seen, config()).await?;
    let other = Connection::open(&place.path)?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    engine.start();
    let mut progress = engine.progress();
    // Answered once the store has given up on the locked file, and on what waited with it.
    for key in [[8; 16], [9; 16]] {
        assert_eq!(engine.run(request(key, "7")).await, Answer::Unavailable(Hindrance::Store));
    }
    assert!(!progress.borrow().taken_over);
    other.execute_batch("ROLLBACK")?;
    tokio::time::timeout(Duration::from_secs(5), progress.wait_for(|progress| progress.taken_over)).await??;
    assert_eq!(taken_over(&place.path)?, 300);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_may_run_at_once_is_taken_over_as_places_come_free() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    drop(place.engine(&seen, config()).await?);
    place.free().await?;
    leave_unfinished(&place.path, 40)?;
    let limits = Limits { running: 3, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, ..config() }).await?;
    engine.start();
    let mut progress = engine.progress();
    tokio::time::timeout(Duration::from_secs(10), progress.wait_for(|progress| progress.taken_over)).await??;
    engine.idle().await;
    assert_eq!(effects(&place.path)?, 40);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_caught_and_the_work_runs_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.panics_left.store(2, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 3"[..], false)));
    assert_eq!(effects(&place.path)?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_always_panics_ends_with_a_person() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.panics_left.store(100, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lost_the_operation_stores_nothing() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, config()).await?;
    let asked = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    };
    within(|| seen.runs() == 1).await?;
    Connection::open(&place.path)?.execute("UPDATE operations SET owner = owner + 1", [])?;
    seen.gate.add_permits(1);
    assert_eq!(asked.await?, Answer::InProgress);
    assert_eq!(effects(&place.path)?, 0);
    assert_eq!(engine.lookup("a", KEY).await?.ok_or("no row")?.state, State::Processing);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_the_store_will_never_take_is_for_a_person() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.breaks_a_rule.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!((seen.runs(), effects(&place.path)?), (1, 0));
    let record = engine.lookup("a", KEY).await?.ok_or("no row")?;
    assert!(matches!(record.state, State::NeedsAttention { .. }) && record.response.is_none());
    seen.breaks_a_rule.store(false, Ordering::SeqCst);
    assert!(engine.requeue("a", KEY).await?);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 2"[..], true)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_was_closed_has_let_go_of_its_store() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    for _ in 0..20 {
        let engine = place.engine(&seen, config()).await?;
        engine.start();
        let asked = tokio::spawn({
            let engine = engine.clone();
            async move { engine.run(request(KEY, "7")).await }
        });
        engine.kill();
        asked.await?;
        engine.close().await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn attention_is_kept_and_a_requeue_runs_it_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.attention.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!(seen.runs(), 1);
    assert_eq!(engine.needing_attention(0).await?.len(), 1);
    seen.attention.store(false, Ordering::SeqCst);
    assert!(engine.requeue("a", KEY).await?);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 2"[..], true)));
    assert!(!engine.requeue("a", KEY).await?, "a final operation is not put back");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_key_never_runs() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    for _ in 0..2 {
        let Cancel::Is(record) = engine.cancel("a", KEY).await? else {
            return Err("unknown keys settle at once".into());
        };
        assert_eq!((record.state, record.kind), (State::Cancelled, None));
    }
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::Cancelled);
    assert_eq!(seen.runs(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_running_one_takes_it_back_and_a_final_one_stands() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, Config { wait: Duration::from_millis(100), ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("a", KEY).await?, Cancel::Settling));
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::Cancelled);
    assert_eq!((seen.undone.load(Ordering::SeqCst), effects(&place.path)?), (1, 0));

    seen.gate.add_permits(1);
    assert!(body(&engine.run(request([8; 16], "7")).await).is_some());
    let Cancel::Is(record) = engine.cancel("a", [8; 16]).await? else { return Err("it is final".into()) };
    assert_eq!(record.state, State::Settled { outcome: "done".into() });
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_to_cancel_outlives_a_crash() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, Config { wait: Duration::from_millis(100), ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("a", KEY).await?, Cancel::Settling));
    engine.kill();
    engine.idle().await;
    drop(engine);
    place.free().await?;
    let seen = Seen::open();
    let engine = place.engine(&seen, config()).await?;
    engine.start();
    within(|| seen.undone.load(Ordering::SeqCst) == 1).await?;
    engine.idle().await;
    assert_eq!(engine.lookup("a", KEY).await?.ok_or("no row")?.state, State::Cancelled);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_locked_claims_nothing() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, Config { wait: Duration::from_millis(300), ..config() }).await?;
    let other = Connection::open(&place.path)?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::Unavailable(Hindrance::Store));
    other.execute_batch("ROLLBACK")?;
    engine.idle().await;
    assert_eq!(
        (seen.runs(), engine.lookup("a", KEY).await?.map(|_| ())),
        (0, None),
        "what was told as not claimed is not"
    );
    assert!(body(&engine.run(request(KEY, "7")).await).is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_waited_for_however_short_the_wait_for_the_outcome_is() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    for key in 1..=50 {
        let answer = engine.run(request([key; 16], "7")).await;
        assert!(matches!(answer, Answer::InProgress | Answer::Done { .. }), "{key}: {answer:?}");
    }
    engine.idle().await;
    assert_eq!(body(&engine.run(request([1; 16], "7")).await), Some((&b"run 1"[..], true)), "a look is a claim too");
    Ok(())
}

#[tokio::test]
async fn who_comes_second_is_not_told_that_nothing_was_claimed_while_the_writer_is_at_it() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    let ((begun, has_begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
    let leader = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run(held_up(KEY, begun, told)).await }
    });
    within(|| has_begun.try_recv().is_ok()).await?;
    tokio::time::pause();
    let follower = tokio::time::timeout(Duration::from_secs(120), engine.run(request(KEY, "7"))).await?;
    assert_eq!((follower, leader.await?), (Answer::InProgress, Answer::InProgress));
    tokio::time::resume();
    drop(go_on);
    engine.idle().await;
    assert_eq!(seen.runs(), 1);
    Ok(())
}

#[tokio::test]
async fn who_is_told_that_nothing_was_claimed_can_rely_on_it() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let ((begun, has_begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
    let slow = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run(held_up([8; 16], begun, told)).await }
    });
    within(|| has_begun.try_recv().is_ok()).await?;
    tokio::time::pause();
    // The writer is at another claim and doesn't come to these.
    let (leader, follower) = tokio::join!(engine.run(request(KEY, "7")), engine.run(request(KEY, "7")));
    assert_eq!((leader, follower), (Answer::Unavailable(Hindrance::Store), Answer::Unavailable(Hindrance::Store)));
    tokio::time::resume();
    drop(go_on);
    slow.await?;
    engine.idle().await;
    assert!(engine.lookup("a", KEY).await?.is_none());
    Ok(())
}

/// A request whose claim holds the writer up until `go_on` is dropped; `begun` gets a word once the writer is at it.
fn held_up(key: [u8; 16], begun: mpsc::Sender<()>, go_on: mpsc::Receiver<()>) -> Request<()> {
    let begin = Box::new(move |_: &Connection, _| {
        let _ = begun.send(());
        // An error is the word to go on.
        let _ = go_on.recv();
        Ok(Begin::Run)
    });
    Request { begin, ..request(key, "7") }
}

#[tokio::test]
async fn a_claim_that_was_begun_is_waited_for_within_bounds() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let ((begun, has_begun), (go_on, told)) = (mpsc::channel(), mpsc::channel());
    let leader = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run(held_up(KEY, begun, told)).await }
    });
    within(|| has_begun.try_recv().is_ok()).await?;
    // From here on the clock runs ahead whenever all wait.
    tokio::time::pause();
    let answer = tokio::time::timeout(Duration::from_secs(120), leader).await??;
    assert_eq!(answer, Answer::InProgress, "nobody knows whether it will be claimed");
    tokio::time::resume();
    drop(go_on);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)), "it was");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_told_only_once_it_is_stored() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let engine = place.engine(&seen, Config { wait: Duration::from_secs(2), ..config() }).await?;
    let asked = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run(request(KEY, "7")).await })
    };
    within(|| seen.runs() == 1).await?;
    let other = Connection::open(&place.path)?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    seen.gate.add_permits(1);
    assert_eq!(asked.await?, Answer::InProgress);
    other.execute_batch("ROLLBACK")?;
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)));
    assert_eq!(effects(&place.path)?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_may_bring_its_result_in_the_same_commit() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let whole = |key, fails: bool| Request {
        begin: Box::new(move |tx, claim| {
            tx.execute("INSERT INTO effects (operation) VALUES (?1)", [claim.id])?;
            if fails {
                return Err(rusqlite::Error::QueryReturnedNoRows);
            }
            let rows = Arc::new(|_: &Connection| Ok(()));
            Ok(Begin::Settled(Settlement { outcome: "done", subject: None, response: response("at once"), rows }))
        }),
        ..request(key, "7")
    };
    assert_eq!(body(&engine.run(whole(KEY, false)).await), Some((&b"at once"[..], false)));
    assert_eq!(body(&engine.run(whole(KEY, false)).await), Some((&b"at once"[..], true)));
    assert_eq!((seen.runs(), effects(&place.path)?), (0, 1));
    assert_eq!(engine.run(whole([8; 16], true)).await, Answer::Unavailable(Hindrance::Store));
    assert!(engine.lookup("a", [8; 16]).await?.is_none(), "the claim goes with its rows");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_refuses_is_not_claimed_and_what_is_known_of_the_key_comes_before() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let refused = |key| Request {
        begin: Box::new(|tx, claim| {
            tx.execute("INSERT INTO effects (operation) VALUES (?1)", [claim.id])?;
            Ok(Begin::Refused("no such thing"))
        }),
        route: "POST /refunds".into(),
        ..request(key, "7")
    };
    assert_eq!(engine.run(refused(KEY)).await, Answer::Refused("no such thing"));
    assert_eq!((effects(&place.path)?, engine.lookup("a", KEY).await?.map(|_| ())), (0, None), "the key is free");
    assert!(body(&engine.run(request(KEY, "7")).await).is_some());
    assert_eq!(engine.run(refused(KEY)).await, Answer::Reused { differs: vec!["path".into()] });
    engine.cancel("a", [8; 16]).await?;
    assert_eq!(engine.run(refused([8; 16])).await, Answer::Cancelled);
    Ok(())
}

#[tokio::test]
async fn a_refusal_is_told_to_nobody_who_asked_for_something_else() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let refused = Request { begin: Box::new(|_, _| Ok(Begin::Refused("no such thing"))), ..request(KEY, "7") };
    // Polled in this order: the first leads and the second follows.
    let (first, second) = tokio::join!(engine.run(refused), engine.run(request(KEY, "8")));
    assert_eq!(first, Answer::Refused("no such thing"));
    assert_eq!(body(&second), Some((&b"run 1"[..], false)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_expires_and_the_claim_does_not() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    engine.run(request(KEY, "7")).await;
    seen.clock_offset_s.store(59, Ordering::SeqCst);
    assert!(body(&engine.run(request(KEY, "7")).await).is_some());
    seen.clock_offset_s.store(61, Ordering::SeqCst);
    for purged in [1, 0] {
        let Answer::Expired { outcome, subject, .. } = engine.run(request(KEY, "7")).await else {
            return Err("not expired".into());
        };
        assert_eq!((outcome.as_str(), subject.as_deref()), ("done", Some("thing 1")));
        assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] });
        assert_eq!(engine.purge().await?, purged);
    }
    assert_eq!(seen.runs(), 1);
    Ok(())
}
