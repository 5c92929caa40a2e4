//! Those who wait, those who go away, and those beyond the bounds.

use crate::place::{KEY, LIMIT, Place, Result, Seen, body, config, effects, request, within};
use idempotency::{Answer, Config, Hindrance, Limits, Request};
use std::time::Duration;

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
    let engine = place.engine(&seen, Config { limits, ..config() }).await?;
    // Polled once each, so that both are seated before anybody else comes.
    let (mut first, mut second) = (Box::pin(engine.run(request(KEY, "7"))), Box::pin(engine.run(request(KEY, "7"))));
    assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
    // The one beyond the limit is answered although nothing has ended; the others would wait for far longer.
    let beyond = tokio::time::timeout(LIMIT / 2, engine.run(request(KEY, "7"))).await?;
    assert_eq!(beyond, Answer::InProgress);
    within(|| seen.runs() == 1).await?;
    assert_eq!(engine.run(request(KEY, "8")).await, Answer::Reused { differs: vec!["size".into()] }, "still compared");
    seen.gate.add_permits(1);
    assert!(body(&first.await).is_some() && body(&second.await).is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_in_hand_is_told_as_such_and_what_is_known_all_the_same() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let limits = Limits { running: 1, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, wait: Duration::from_millis(50), ..config() }).await?;
    seen.gate.add_permits(1);
    // On a busy machine it may not be told its outcome yet.
    engine.run(request([9; 16], "7")).await;
    engine.idle().await;
    assert_eq!(engine.run(request(KEY, "7")).await, Answer::InProgress);
    assert_eq!(engine.run(request([8; 16], "7")).await, Answer::Unavailable(Hindrance::TooMuch));
    assert_eq!(engine.lookup("a", [8; 16]).await?.map(|record| record.key), None, "nothing was claimed");
    assert_eq!(body(&engine.run(request([9; 16], "7")).await), Some((&b"run 1"[..], true)));
    assert_eq!(engine.run(request([9; 16], "8")).await, Answer::Reused { differs: vec!["size".into()] });
    seen.gate.add_permits(1);
    engine.idle().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_has_too_much_in_hand_leaves_room_for_another() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let limits = Limits { running_per_scope: 2, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, wait: Duration::ZERO, ..config() }).await?;
    for key in [[1; 16], [2; 16]] {
        assert_eq!(engine.run(request(key, "7")).await, Answer::InProgress);
    }
    assert_eq!(engine.run(request([3; 16], "7")).await, Answer::Unavailable(Hindrance::TooMuchOfScope));
    let of_another = Request { scope: "another".into(), ..request([3; 16], "7") };
    assert_eq!(engine.run(of_another).await, Answer::InProgress);
    seen.gate.add_permits(3);
    engine.idle().await;
    seen.gate.add_permits(1);
    assert_ne!(engine.run(request([3; 16], "7")).await, Answer::Unavailable(Hindrance::TooMuchOfScope), "given back");
    engine.idle().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_are_bounded_over_all_keys_too() -> Result {
    let (place, seen) = (Place::new()?, Seen::shut());
    let limits = Limits { waiters: 2, ..Limits::default() };
    let engine = place.engine(&seen, Config { limits, ..config() }).await?;
    let (mut one, mut two) = (Box::pin(engine.run(request([1; 16], "7"))), Box::pin(engine.run(request([2; 16], "7"))));
    assert!(futures::poll!(&mut one).is_pending() && futures::poll!(&mut two).is_pending());
    for key in [[1; 16], [2; 16]] {
        let beyond = tokio::time::timeout(LIMIT / 2, engine.run(request(key, "7"))).await?;
        assert_eq!(beyond, Answer::InProgress);
    }
    seen.gate.add_permits(2);
    assert!(body(&one.await).is_some() && body(&two.await).is_some());
    // The places were given back.
    assert!(body(&engine.run(request([1; 16], "7")).await).is_some());
    assert_eq!(seen.runs(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_before_the_claim_is_written_ends_nothing_either() -> Result {
    let (place, seen) = (Place::new()?, Seen::open());
    let engine = place.engine(&seen, config()).await?;
    let mut gone = Box::pin(engine.run(request(KEY, "7")));
    assert!(futures::poll!(&mut gone).is_pending());
    drop(gone);
    engine.idle().await;
    assert_eq!(body(&engine.run(request(KEY, "7")).await), Some((&b"run 1"[..], true)));
    assert_eq!(effects(&place.path)?, 1);
    Ok(())
}
