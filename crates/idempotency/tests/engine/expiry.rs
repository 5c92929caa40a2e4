//! How long a response is stored, and a claim.

use crate::place::{KEY, Place, Result, Seen, body, config, leave_unfinished, request};
use idempotency::{Answer, State};
use rusqlite::Connection;
use std::sync::atomic::Ordering;

#[tokio::test(flavor = "multi_thread")]
async fn a_response_expires_and_the_claim_does_not() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    engine.run(request(KEY, "7")).await;
    seen.clock_offset_s.store(3_500, Ordering::SeqCst);
    assert!(body(&engine.run(request(KEY, "7")).await).is_some());
    seen.clock_offset_s.store(3_700, Ordering::SeqCst);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_and_comes_back_loses_nothing() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    engine.run(request(KEY, "7")).await;
    for (jump_s, is_stored) in [(-31_536_000, true), (31_536_000, false), (0, true)] {
        seen.clock_offset_s.store(jump_s, Ordering::SeqCst);
        let answer = engine.run(request(KEY, "7")).await;
        assert_eq!(body(&answer).is_some(), is_stored, "{jump_s}: {answer:?}");
    }
    seen.clock_offset_s.store(-31_536_000, Ordering::SeqCst);
    assert_eq!((engine.purge().await?, seen.runs()), (0, 1));
    seen.clock_offset_s.store(31_536_000, Ordering::SeqCst);
    assert_eq!(engine.purge().await?, 1);
    seen.clock_offset_s.store(0, Ordering::SeqCst);
    // The response is gone, and what became of the operation is not.
    assert!(matches!(engine.run(request(KEY, "7")).await, Answer::Expired { .. }));
    let record = engine.lookup("a", KEY).await?.ok_or("no row")?;
    assert_eq!((record.state, record.subject.as_deref()), (State::Settled { outcome: "done".into() }, Some("thing 1")));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_goes_in_small_batches_and_leaves_alone_what_is_not_final() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let (engine, store) = place.engine_and_store(&seen, config()).await?;
    leave_unfinished(&place.path, 1_010)?;
    let file = Connection::open(&place.path)?;
    file.execute_batch(
        "UPDATE operations SET state = 1, outcome = 'done', completed_ms = 0, status = 201, content_type = 't', body = x'37',
                payload = NULL WHERE id <= 1000;
         UPDATE operations SET state = 3, reason = 'r' WHERE id > 1005",
    )?;
    engine.cancel("a", [9; 16]).await?;
    let before = store.work().commits;
    assert_eq!(engine.purge().await?, 1_000);
    let commits = store.work().commits - before;
    assert!(commits >= 4, "others wait behind a batch: {commits} commits");
    let left: (i64, i64, i64) = file.query_row(
        "SELECT count(*), count(body), sum(state IN (0, 3) AND payload IS NOT NULL) FROM operations",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    assert_eq!(left, (1_011, 0, 10), "rows, stored responses, and what is not final as it was");
    seen.clock_offset_s.store(31_536_000, Ordering::SeqCst);
    assert_eq!(engine.purge().await?, 0);
    assert_eq!(engine.run(request([9; 16], "7")).await, Answer::Cancelled, "for ever");
    Ok(())
}
