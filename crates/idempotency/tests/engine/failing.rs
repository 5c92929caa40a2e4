//! Work that fails, and what needs a person.

use crate::place::{KEY, LIMIT, Place, Result, Seen, body, config, effects, request, within};
use idempotency::{Answer, Cancel, Config, Hindrance, Request, State};
use rusqlite::Connection;
use std::{
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use store::Priority;

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_caught_and_the_work_runs_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.panics_left.store(2, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 3"[..], false)), "nobody has to come by");
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
async fn attention_is_kept_and_a_requeue_runs_it_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.attention.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!(seen.runs(), 1);
    assert_eq!(engine.needing_attention(0, 2).await?.len(), 1);
    seen.attention.store(false, Ordering::SeqCst);
    assert!(engine.requeue("a", KEY).await?);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 2"[..], true)));
    assert!(!engine.requeue("a", KEY).await?, "a final operation is not put back");
    Ok(())
}

/// Blocks this thread, and with it every task on it, until a look at the file says yes.
fn blocked_until(path: &Path, yes: &str) -> Result {
    let (file, began) = (Connection::open(path)?, Instant::now());
    while !file.query_row(yes, [], |row| row.get::<_, bool>(0))? {
        if began.elapsed() > LIMIT {
            return Err(format!("never: {yes}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[tokio::test]
async fn a_requeue_while_the_run_that_stopped_is_on_its_way_out_runs_it_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    seen.attention.store(true, Ordering::SeqCst);
    let (engine, store) = place.engine_and_store(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    within(|| seen.runs() == 1).await?;
    seen.gate.add_permits(1);
    let is_in_state = |state: u32| format!("SELECT count(*) FROM operations WHERE state = {state}");
    // Only the writer, on a thread of its own, works on while this thread is blocked.
    tokio::task::yield_now().await;
    blocked_until(&place.path, &is_in_state(3))?;
    seen.attention.store(false, Ordering::SeqCst);
    let mut requeue = Box::pin(engine.requeue("a", KEY));
    assert!(futures::poll!(&mut requeue).is_pending());
    blocked_until(&place.path, &is_in_state(0))?;
    // Once the next piece is in the file, the requeue has been answered.
    let mut next =
        Box::pin(store.write(Priority::Click, |tx| tx.execute("INSERT INTO effects (operation) VALUES (0)", [])));
    assert!(futures::poll!(&mut next).is_pending());
    blocked_until(&place.path, "SELECT count(*) FROM effects")?;
    assert!(requeue.await?);
    seen.gate.add_permits(1);
    within(|| seen.runs() == 2).await?;
    engine.idle().await;
    assert_eq!(effects(&place.path)?, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_back_that_panics_is_tried_again() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    seen.undo_panics_left.store(2, Ordering::SeqCst);
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("a", KEY).await?, Cancel::Settling));
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(engine.lookup("a", KEY).await?.ok_or("no row")?.state, State::Cancelled);
    assert_eq!((seen.undone.load(Ordering::SeqCst), effects(&place.path)?), (3, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_the_claims_own_part_claims_nothing() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let panics = Request {
        begin: Box::new(|_, _| std::panic::resume_unwind(Box::new("the test asks for it"))),
        ..request(KEY, "7")
    };
    assert_eq!(engine.run(panics).await, Answer::Unavailable(Hindrance::Store));
    assert!(engine.lookup("a", KEY).await?.is_none());
    assert!(body(&engine.run(request(KEY, "7")).await).is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_whose_rows_panic_is_for_a_person() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    seen.rows_panic.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, config()).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::NeedsAttention);
    assert_eq!((seen.runs(), effects(&place.path)?), (1, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_to_cancel_outlives_what_needs_a_person() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    seen.attention.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("a", KEY).await?, Cancel::Settling));
    seen.gate.add_permits(1);
    engine.idle().await;
    let Cancel::Is(record) = engine.cancel("a", KEY).await? else { return Err("nothing settles".into()) };
    assert!(matches!(record.state, State::NeedsAttention { .. }), "{record:?}");
    seen.attention.store(false, Ordering::SeqCst);
    assert!(engine.requeue("a", KEY).await?);
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::Cancelled);
    assert_eq!((seen.undone.load(Ordering::SeqCst), effects(&place.path)?), (1, 0));
    Ok(())
}
