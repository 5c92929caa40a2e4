//! The engine from the outside, over a real file.

mod cancelling;
mod expiry;
mod failing;
mod ownership;
mod place;
mod recovery;
mod storing;
mod waiting;

use idempotency::{Answer, Hindrance};
use place::{KEY, Place, Result, Seen, body, config, effects, request, within};
use rusqlite::Connection;
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
async fn what_a_newer_program_made_of_a_request_is_not_guessed_at() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    engine.run(request(KEY, "7")).await;
    Connection::open(&place.path)?.execute("UPDATE operations SET meaning_made = meaning_made + 1", [])?;
    for size in ["7", "8"] {
        assert_eq!(engine.run(request(KEY, size)).await, Answer::Unavailable(Hindrance::Newer));
    }
    assert_eq!(seen.runs(), 1);
    Ok(())
}
