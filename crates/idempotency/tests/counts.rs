//! What the engine says of itself.

use idempotency::{
    Answer, Backlog, Begin, Cancel, Config, Counts, Engine, Job, Limits, Request, Response, Settlement, SystemClock,
    Undo, Verdict, Work,
};
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU32, atomic::Ordering},
    time::Duration,
};
use store::{LockFile, Migration, Schema, Store};
use tokio::sync::Semaphore;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Work that waits for a permit, panics as often as it is told to, and stops where its kind says so.
struct Held {
    gate: Arc<Semaphore>,
    panics_left: Arc<AtomicU32>,
}

impl Work for Held {
    type Context = ();

    async fn run(&self, job: Job<()>) -> Verdict {
        if let Ok(permit) = self.gate.acquire().await {
            permit.forget();
        }
        if self.panics_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            std::panic::resume_unwind(Box::new("the test asks for it"));
        }
        if job.kind == "stuck" {
            return Verdict::NeedsAttention("look at it".into());
        }
        let response = Response { status: 201, content_type: "text/plain".into(), location: None, body: "done".into() };
        Verdict::Settled(Settlement { outcome: "done", subject: None, response, rows: Arc::new(|_| Ok(())) })
    }

    async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
        Undo::Kept
    }
}

async fn open(dir: &Path, gate: &Arc<Semaphore>, panics: u32, wait_ms: u64) -> Result<Engine<Held>> {
    let schema = Schema {
        application_id: 1,
        migrations: vec![Migration { version: 1, name: "operations", sql: idempotency::SCHEMA }],
    };
    let lock = LockFile::acquire(&dir.join("test.lock"))?;
    let store = Store::open(&dir.join("test.db"), &schema)?;
    let config =
        Config { wait: Duration::from_millis(wait_ms), retention: Duration::from_secs(60), limits: Limits::default() };
    let work = Held { gate: gate.clone(), panics_left: Arc::new(AtomicU32::new(panics)) };
    Ok(Engine::open(store, lock, work, Arc::new(SystemClock), config).await?)
}

fn request(key: u8, kind: &'static str, text: &str) -> Request<()> {
    Request {
        scope: "me".into(),
        key: [key; 16],
        kind,
        route: "POST /things".into(),
        members: vec![("text", text.as_bytes().to_vec())],
        payload: Vec::new(),
        begin: Box::new(|_, _| Ok(Begin::Run)),
        context: (),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_is_counted_as_what_it_is() -> Result {
    let dir = tempfile::tempdir()?;
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let engine = open(dir.path(), &gate, 2, 60_000).await?;
    assert_eq!(engine.counts(), Counts::default());
    for _ in 0..3 {
        assert!(matches!(engine.run(request(1, "thing", "a")).await, Answer::Done { .. }));
    }
    assert!(matches!(engine.run(request(1, "thing", "b")).await, Answer::Reused { .. }));
    assert!(matches!(engine.cancel("me", [2; 16]).await?, Cancel::Is(_)));
    assert_eq!(engine.run(request(2, "thing", "a")).await, Answer::Cancelled);
    let refused = Request { begin: Box::new(|_, _| Ok(Begin::Refused("no"))), ..request(3, "thing", "a") };
    assert_eq!(engine.run(refused).await, Answer::Refused("no"));
    assert_eq!(engine.run(request(4, "stuck", "a")).await, Answer::NeedsAttention);
    let counts = engine.counts();
    assert_eq!((counts.first, counts.replayed, counts.reused), (1, 2, 1));
    assert_eq!((counts.cancelled, counts.refused, counts.needs_attention), (1, 1, 1));
    assert_eq!((counts.panics, counts.in_progress, counts.unavailable), (2, 0, 0));
    assert_eq!((counts.in_hand, counts.waiting), (0, 0));
    let backlog = engine.backlog().await?;
    assert_eq!((backlog.processing, backlog.needing_attention, backlog.oldest_processing), (0, 1, None));
    engine.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wish_to_cancel_is_counted_as_what_it_was_told() -> Result {
    let dir = tempfile::tempdir()?;
    let gate = Arc::new(Semaphore::new(1));
    let engine = open(dir.path(), &gate, 0, 100).await?;
    let counted = || {
        let counts = engine.counts();
        [counts.cancel_cancelled, counts.cancel_kept, counts.cancel_settling, counts.cancel_unavailable]
    };
    for _ in 0..2 {
        assert!(matches!(engine.cancel("me", [1; 16]).await?, Cancel::Is(_)));
    }
    assert!(matches!(engine.run(request(2, "thing", "a")).await, Answer::Done { .. }));
    assert!(matches!(engine.cancel("me", [2; 16]).await?, Cancel::Is(_)));
    assert_eq!(counted(), [2, 1, 0, 0]);
    assert_eq!(engine.run(request(3, "thing", "a")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("me", [3; 16]).await?, Cancel::Settling));
    assert_eq!(counted(), [2, 1, 1, 0]);
    let other = rusqlite::Connection::open(dir.path().join("test.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    assert!(engine.cancel("me", [4; 16]).await.is_err());
    assert_eq!(counted(), [2, 1, 1, 1]);
    other.execute_batch("ROLLBACK")?;
    engine.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_process_left_is_told_until_it_is_taken_over() -> Result {
    let dir = tempfile::tempdir()?;
    let gate = Arc::new(Semaphore::new(0));
    let engine = open(dir.path(), &gate, 0, 100).await?;
    for key in [1, 2] {
        assert_eq!(engine.run(request(key, "thing", "a")).await, Answer::InProgress);
    }
    assert_eq!((engine.counts().in_progress, engine.counts().in_hand), (2, 2));
    let Backlog { processing, not_taken_over, oldest_processing, .. } = engine.backlog().await?;
    assert_eq!((processing, not_taken_over, oldest_processing.is_some()), (2, 0, true));
    engine.close().await; // as a crash

    let engine = open(dir.path(), &gate, 0, 100).await?;
    let left = engine.backlog().await?;
    assert_eq!((left.processing, left.not_taken_over), (2, 2));
    engine.start();
    let mut progress = engine.progress();
    progress.wait_for(|progress| progress.taken_over).await?;
    assert_eq!(engine.counts().found_at_start, 2);
    assert_eq!((engine.backlog().await?.processing, engine.backlog().await?.not_taken_over), (2, 0));
    gate.add_permits(2);
    engine.idle().await;
    assert_eq!(engine.backlog().await?, Backlog::default());
    engine.close().await;
    Ok(())
}
