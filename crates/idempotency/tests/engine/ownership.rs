//! Who may write a row: its living owner, and nobody for its age.

use crate::place::{KEY, LIMIT, Place, Result, Seen, config, effects, leave_unfinished, request, within};
use idempotency::{Answer, Cancel, Config, State};
use rusqlite::Connection;
use std::{path::Path, sync::atomic::Ordering, time::Duration};
use tokio::sync::Semaphore;

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

/// Makes every row another's, as if this process had been taken for dead.
fn steal(path: &Path) -> Result {
    Connection::open(path)?.execute("UPDATE operations SET owner = owner + 1", [])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lost_the_operation_does_not_stop_it_for_a_person() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    seen.attention.store(true, Ordering::SeqCst);
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    within(|| seen.runs() == 1).await?;
    steal(&place.path)?;
    seen.gate.add_permits(1);
    engine.idle().await;
    assert_eq!(engine.lookup("a", KEY).await?.ok_or("no row")?.state, State::Processing);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lost_the_operation_does_not_cancel_it() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    seen.undo_gate.forget_permits(Semaphore::MAX_PERMITS);
    let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert!(matches!(engine.cancel("a", KEY).await?, Cancel::Settling));
    seen.gate.add_permits(1);
    within(|| seen.undone.load(Ordering::SeqCst) == 1).await?;
    steal(&place.path)?;
    seen.undo_gate.add_permits(1);
    engine.idle().await;
    let record = engine.lookup("a", KEY).await?.ok_or("no row")?;
    assert_eq!((record.state, record.cancel_wanted), (State::Processing, true));
    Ok(())
}

/// A year, forth and back.
const YEARS_S: [i64; 2] = [31_536_000, -31_536_000];

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_takes_nothing_from_a_living_owner() -> Result {
    for year_s in YEARS_S {
        let (place, seen) = (Place::new()?, Seen::shut());
        let engine = place.engine(&seen, Config { wait: Duration::ZERO, ..config() }).await?;
        assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
        within(|| seen.runs() == 1).await?;
        let owner = engine.lookup("a", KEY).await?.ok_or("no row")?.owner;
        seen.clock_offset_s.store(year_s, Ordering::SeqCst);
        engine.start();
        let mut progress = engine.progress();
        let told = tokio::time::timeout(LIMIT, progress.wait_for(|progress| progress.taken_over));
        assert_eq!(told.await??.found, 1, "it was seen");
        assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
        assert_eq!((seen.runs(), engine.lookup("a", KEY).await?.ok_or("no row")?.owner), (1, owner));
        seen.gate.add_permits(1);
        engine.idle().await;
        assert_eq!(effects(&place.path)?, 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_owner_left_is_taken_over_at_once_however_young_or_old_it_is() -> Result {
    for year_s in YEARS_S {
        let (place, seen) = (Place::new()?, Seen::open());
        seen.clock_offset_s.store(year_s, Ordering::SeqCst);
        drop(place.engine(&seen, config()).await?);
        place.free().await?;
        leave_unfinished(&place.path, 2)?;
        let now_ms = jiff::Timestamp::now().as_millisecond();
        Connection::open(&place.path)?.execute("UPDATE operations SET created_ms = ?1 WHERE id = 1", [now_ms])?;
        let engine = place.engine(&seen, config()).await?;
        engine.start();
        let path = place.path.clone();
        within(|| effects(&path).is_ok_and(|effects| effects == 2)).await?;
    }
    Ok(())
}
