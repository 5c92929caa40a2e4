//! Claims and results on their way into the file.

use crate::place::{KEY, Place, Result, Seen, body, config, effects, request, response, within};
use idempotency::{Answer, Begin, Claim, Config, Hindrance, Request, Settlement};
use rusqlite::Connection;
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

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
async fn a_result_that_came_with_the_claim_and_is_not_stored_is_told_to_nobody() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let begin = Box::new(|tx: &Connection, claim: Claim| {
        // Breaks the rule that nobody writes a row but its owner.
        tx.execute("UPDATE operations SET owner = owner + 1 WHERE id = ?1", [claim.id])?;
        let rows = Arc::new(|_: &Connection| Ok(()));
        Ok(Begin::Settled(Settlement { outcome: "done", subject: None, response: response("at once"), rows }))
    });
    let answer = engine.run(Request { begin, ..request(KEY, "7") }).await;
    assert_eq!(answer, Answer::Unavailable(Hindrance::Store));
    assert!(engine.lookup("a", KEY).await?.is_none());
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
