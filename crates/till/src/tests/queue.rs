//! What is told of the queue, also to a listener that was too slow.

use super::{
    Checked, Scene,
    people::{BORIS, pin, staffed},
};
use crate::{
    CategoryDetails, Chip, Event, OperationQuery, Place, Refund, Settings, ShiftOpening, State, Till,
    settling::{Teller, came_late},
};
use protocol::{Amount, Kind};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};
use tokio::{sync::broadcast::Receiver, time::timeout};
use uuid::Uuid;

#[tokio::test]
async fn what_was_missed_is_told_out_of_the_file() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 100).await?, State::Declined).await?;
    let clicked = scene.by_card(&sale, 200).await?;
    let told_up_to = scene.till.last_change().await?;
    // The clock is set back before what is missed.
    let long_ago = clicked.updated_at - jiff::SignedDuration::from_hours(10 * 365 * 24);
    let missed = scene.settle_at(&clicked, State::Approved, long_ago).await?;
    let mut events = scene.till.subscribe();
    let mut teller = Teller { till: scene.till.clone(), place: Place::at(told_up_to), alarms_from: 0 };
    teller.catch_up().await;
    // The clicks' own summaries may still come in between.
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let changes: Vec<_> = told.iter().filter(|event| !matches!(event, Event::SummaryChanged(_))).cloned().collect();
    let expected = [Event::OperationChanged(Box::new(missed)), Event::SaleChanged { sale_id: sale.id }];
    assert_eq!(changes, expected);
    assert!(matches!(told.last(), Some(Event::SummaryChanged(summary)) if summary.chip == Chip::Ok), "{told:?}");
    Ok(())
}

/// Everything that is clicked has an entry in the audit, and an alarm comes once in a year.
#[tokio::test]
async fn what_was_looked_through_for_alarms_is_not_looked_through_again() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let mut teller =
        Teller { till: scene.till.clone(), place: Place::at(scene.till.last_change().await?), alarms_from: 0 };
    let declined = scene.settle(&scene.by_card(&sale, 100).await?, State::Declined).await?;
    teller.tell_alarms().await;
    let end = scene.till.audit_end().await?;
    assert!(end > 0);
    assert_eq!(teller.alarms_from, end, "it goes through the whole audit each time");
    // What comes after is found, and told once.
    let key = declined.key;
    let late = scene.till.inner.store.write(store::Priority::Background, move |tx| {
        let row = outbox::by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        came_late(tx, &row, &outbox::LateAnswer { state: State::Approved, result: None })
    });
    late.await?;
    let mut events = scene.till.subscribe();
    for expected in [1, 0] {
        teller.tell_alarms().await;
        let told = std::iter::from_fn(|| events.try_recv().ok())
            .filter(|event| matches!(event, Event::OperationChanged(operation) if operation.key == key))
            .count();
        assert_eq!(told, expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_listeners_place_moves_on_behind_what_may_still_be_told() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let begun = scene.till.last_change().await?;
    let mut place = Place::at(begun);
    let operation = scene.by_card(&sale, 100).await?;
    let first = scene.till.last_change().await?;
    assert!(first > begun);
    let tell = async |place: &mut Place, times| {
        for _ in 0..times {
            place.told_one(&scene.till).await?;
        }
        Ok::<_, crate::TillError>(place.to_catch_up_from())
    };
    assert_eq!(tell(&mut place, 8_192).await?, begun, "as many may still wait to be told");
    scene.settle(&operation, State::Approved).await?;
    assert_eq!(tell(&mut place, 8_192).await?, first);
    let changes = scene.till.changed_since(first).await?;
    assert_eq!(changes.operations, [scene.till.operation(operation.key).await?]);
    assert_eq!((changes.up_to, changes.more), (scene.till.last_change().await?, false));
    Ok(())
}

#[tokio::test]
async fn the_chip_tells_the_most_pressing() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.till.inner.queue.is_running.store(true, Ordering::Release);
    let chip = async || Ok::<_, crate::TillError>(scene.till.summary().await?.chip);
    assert_eq!(chip().await?, Chip::Ok);
    let first = scene.by_card(&sale, 100).await?;
    assert_eq!(chip().await?, Chip::Waiting);
    scene.settle(&first, State::Sending).await?;
    assert_eq!(chip().await?, Chip::Busy);
    let second = scene.by_card(&sale, 100).await?;
    assert_eq!(chip().await?, Chip::Waiting);
    scene.file()?.execute("UPDATE outbox SET paused = 'unauthorized'", [])?;
    assert_eq!(chip().await?, Chip::Paused);
    scene.settle(&second, State::NeedsAttention).await?;
    assert_eq!(chip().await?, Chip::Attention);
    let summary = scene.till.summary().await?;
    assert_eq!((summary.unsettled, summary.sending, summary.needs_attention), (1, 1, 1));
    assert_eq!(summary.amounts.iter().map(|of| (of.currency.code(), of.amount)).collect::<Vec<_>>(), [("EUR", 100)]);
    Ok(())
}

/// What the file says of a call that runs is of a task that is dead, and nothing is tried next.
#[tokio::test]
async fn where_nobody_settles_nothing_is_told_as_under_way() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 100).await?;
    scene.by_card(&sale, 100).await?;
    scene.settle(&operation, State::Sending).await?;
    let mut events = scene.till.subscribe();
    scene.till.tell_summary().await;
    let Event::SummaryChanged(told) = events.recv().await? else { return Err("no summary".into()) };
    let summary = scene.till.summary().await?;
    assert_eq!(summary, told);
    assert_eq!((summary.unsettled, summary.sending, summary.waiting), (2, 0, 2));
    assert_eq!((summary.chip, summary.next_attempt_at), (Chip::Waiting, None));
    // Who only reads can't know of another process.
    let looking = Till::open_read_only(scene.till.data_dir())?.summary().await?;
    assert_eq!((looking.unsettled, looking.sending), (2, 1));
    Ok(())
}

/// Each summary reads all that is open: one for each click would be a look at the whole queue for each.
#[tokio::test]
async fn clicks_have_the_summary_told_now_and_then_and_to_nobody_not_at_all() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..10 {
        scene.by_card(&sale, 1).await?;
        assert_eq!(alive(), 0, "nobody listens, and somebody looks");
    }
    let mut events = scene.till.subscribe();
    let begun = Instant::now();
    for _ in 0..100 {
        scene.by_card(&sale, 1).await?;
    }
    let mut summaries = 0;
    loop {
        if let Event::SummaryChanged(summary) = timeout(Duration::from_secs(10), events.recv()).await?? {
            summaries += 1;
            if summary.unsettled == 110 {
                break;
            }
        }
    }
    let most = 2 + begun.elapsed().as_millis() / 200;
    assert!(summaries <= most, "{summaries} looks at the queue for 100 clicks, not {most}");
    Ok(())
}

/// The look of somebody else is enough: who waits for the end of it all is not told that it is a matter of time.
#[tokio::test]
async fn damage_that_a_look_met_is_trouble_for_all() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 100).await?;
    assert!(scene.till.trouble().is_none());
    let broken = scene.till.read(move |_| {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        Err::<(), _>(rusqlite::Error::SqliteFailure(error, None).into())
    });
    assert!(matches!(broken.await, Err(crate::TillError::Damaged(_))));
    // What else can be read and written does not hide it.
    scene.settle(&operation, State::Approved).await?;
    assert!(matches!(scene.till.trouble(), Some(crate::TillError::Damaged(_))));
    Ok(())
}

#[tokio::test]
async fn operations_are_found_by_kind_amount_time_and_state_in_pages() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let declined = scene.settle(&scene.by_card(&sale, 190).await?, State::Declined).await?;
    let paid = scene.settle(&scene.by_card(&sale, 400).await?, State::Approved).await?;
    let open = scene.by_card(&sale, 190).await?;
    let refund = Refund { intent_id: Uuid::now_v7(), payment: paid.key, amount: Amount::new(190)? };
    let refund = scene.money_back(refund).await?;
    let found = async |query: OperationQuery| -> Checked<Vec<i64>> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = scene.till.operations(OperationQuery { before, limit: Some(1), ..query }).await?;
            found.extend(page.operations.iter().map(|operation| operation.seq));
            before = found.last().copied();
            if !page.more {
                return Ok(found);
            }
        }
    };
    let [declined, paid, open, refund] = [declined, paid, open, refund].map(|operation| (operation.seq, operation));
    let all = OperationQuery::default();
    for (query, wanted) in [
        (all, vec![refund.0, open.0, paid.0, declined.0]),
        (OperationQuery { kind: Some(Kind::Refund), ..all }, vec![refund.0]),
        (OperationQuery { kind: Some(Kind::Payment), amount: Some(190), ..all }, vec![open.0, declined.0]),
        (OperationQuery { amount: Some(190), state: Some(State::Saved), ..all }, vec![refund.0, open.0]),
        (OperationQuery { amount: Some(191), ..all }, vec![]),
        (
            OperationQuery { clicked_from: Some(paid.1.created_at), clicked_before: Some(refund.1.created_at), ..all },
            vec![open.0, paid.0],
        ),
    ] {
        assert_eq!(found(query).await?, wanted, "{query:?}");
    }
    Ok(())
}

/// What was told beside the queue's summaries, which come on their own.
fn heard(events: &mut Receiver<Event>) -> Vec<Event> {
    let told = std::iter::from_fn(|| events.try_recv().ok());
    told.filter(|event| !matches!(event, Event::SummaryChanged(_))).collect()
}

#[tokio::test]
async fn who_stands_there_the_catalogue_and_the_shift_are_told_of_when_they_are_saved() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let till = &scene.till;
    let mut events = till.subscribe();
    let drinks = || CategoryDetails { id: "drinks".into(), name: "Drinks".into(), colour: "#335577".into() };

    // Refused: nothing changed, and nothing is told.
    assert!(till.save_category(drinks()).await.is_err(), "Anna may not");
    assert!(till.log_in(pin(&anna, BORIS)).await.is_err(), "a wrong PIN");
    assert_eq!(heard(&mut events), []);

    till.log_in(pin(&boris, BORIS)).await?;
    assert_eq!(heard(&mut events), [Event::SessionChanged]);
    till.save_category(drinks()).await?;
    till.save_settings(Settings { shop_name: "Other".into(), ..Settings::default() }).await?;
    assert_eq!(heard(&mut events), [Event::CatalogueChanged, Event::CatalogueChanged]);
    let opening = ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 5_000 };
    till.open_shift(opening).await?;
    assert_eq!(heard(&mut events), [Event::ShiftChanged]);
    assert!(till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), ..opening }).await.is_err(), "one is open");
    assert_eq!(heard(&mut events), []);
    till.lock().await?;
    assert_eq!(heard(&mut events), [Event::SessionChanged]);
    Ok(())
}
