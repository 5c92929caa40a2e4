//! Keys that shall never have an effect.

use crate::place::{KEY, Place, Result, Seen, body, config, effects, request, within};
use idempotency::{Answer, Cancel, Config, State};
use std::{sync::atomic::Ordering, time::Duration};

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
    engine.run(request([8; 16], "7")).await;
    engine.idle().await;
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
