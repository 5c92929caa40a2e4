//! What a process that died has left.

use crate::place::{KEY, LIMIT, Place, Result, Seen, body, config, effects, leave_unfinished, request, within};
use idempotency::{Answer, Config, Hindrance, Limits};
use rusqlite::Connection;
use std::{path::Path, time::Duration};
use tokio::time::{Instant, timeout_at};

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
    let told = tokio::time::timeout(LIMIT, progress.wait_for(|progress| progress.taken_over)).await??;
    assert_eq!((told.found, told.taken, taken_over(&place.path)?), (3_000, 3_000, 3_000));
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
    let before_the_next_sweep = Instant::now() + Duration::from_secs(14);
    engine.start();
    let mut progress = engine.progress();
    // Answered once the store has given up on the locked file, and on what waited with it.
    for key in [[8; 16], [9; 16]] {
        assert_eq!(engine.run(request(key, "7")).await, Answer::Unavailable(Hindrance::Store));
    }
    assert!(!progress.borrow().taken_over);
    other.execute_batch("ROLLBACK")?;
    timeout_at(before_the_next_sweep, progress.wait_for(|progress| progress.taken_over)).await??;
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
    tokio::time::timeout(LIMIT, progress.wait_for(|progress| progress.taken_over)).await??;
    engine.idle().await;
    assert_eq!(effects(&place.path)?, 40);
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
async fn one_that_can_not_be_read_keeps_no_other_from_being_finished() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    drop(place.engine(&seen, config()).await?);
    place.free().await?;
    leave_unfinished(&place.path, 10)?;
    let broken: [u8; 16] = {
        let file = Connection::open(&place.path)?;
        // A body of no media type.
        file.query_row(
            "UPDATE operations SET body = x'00' WHERE id = (SELECT min(id) FROM operations) RETURNING key",
            [],
            |row| row.get(0),
        )?
    };
    let engine = place.engine(&seen, config()).await?;
    engine.start();
    within(|| seen.runs() == 9).await?;
    engine.idle().await;
    let state = || -> Result<(i64, Option<String>)> {
        let file = Connection::open(&place.path)?;
        Ok(file.query_row("SELECT state, reason FROM operations WHERE key = ?1", [broken], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?)
    };
    within(|| state().is_ok_and(|(state, reason)| state == 3 && reason.is_some())).await
}
