//! What is told of the queue, also to a listener that was too slow.

use super::{Checked, Scene};
use crate::{Chip, Event, State, settling::Teller};

#[tokio::test]
async fn what_was_missed_is_told_out_of_the_file() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let told_before = scene.settle(&scene.by_card(&sale, 100).await?, State::Declined).await?;
    // Times are kept in milliseconds: what was told and what was missed must not fall into one.
    while jiff::Timestamp::now().as_millisecond() <= told_before.updated_at.as_millisecond() {
        tokio::task::yield_now().await;
    }
    let missed = scene.settle(&scene.by_card(&sale, 200).await?, State::Approved).await?;
    let mut events = scene.till.subscribe();
    let mut teller = Teller { till: scene.till.clone(), up_to: missed.updated_at };
    teller.catch_up().await;
    // The clicks' own summaries may still come in between.
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let changes: Vec<_> = told.iter().filter(|event| !matches!(event, Event::SummaryChanged(_))).cloned().collect();
    let expected = [Event::OperationChanged(Box::new(missed)), Event::SaleChanged { sale_id: sale.id }];
    assert_eq!(changes, expected);
    assert!(matches!(told.last(), Some(Event::SummaryChanged(summary)) if summary.chip == Chip::Ok), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn the_chip_tells_the_most_pressing() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
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
