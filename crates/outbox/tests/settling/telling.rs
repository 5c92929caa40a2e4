//! What the outbox tells about itself.

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use outbox::{Backlog, Settings, State};
use protocol::ProblemType;
use serde_json::Value;

use crate::bank::{Bank, Do};
use crate::till::{Till, quick};

#[tokio::test]
async fn a_clock_that_is_not_the_banks_is_told_and_both_times_are_kept() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let bank_at = Timestamp::from_second(Timestamp::now().as_second())? + SignedDuration::from_hours(25);
    bank.says_date(bank_at);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Approved).await?;
    let answer = till.log(key).await?.pop().context("an empty log")?;
    assert_eq!(answer.bank_at, Some(bank_at));
    assert!(answer.at < bank_at);
    let told = till.until_summary("told of the clock", |summary| summary.clock_gap_s.is_some()).await?;
    let gap_s = told.clock_gap_s.unwrap_or_default();
    assert!((-90_001..-89_900).contains(&gap_s), "{gap_s}");

    // Set right, it is seen at the next answer, and an answer that isn't the bank's tells no time.
    bank.says_date(Timestamp::now());
    bank.next([Do::Html(200)]);
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Approved).await?;
    assert!(till.log(key).await?.iter().all(|entry| entry.bank_at.is_none() || entry.answer == Some(201)));
    till.until_summary("told again", |summary| summary.clock_gap_s.is_some_and(|gap_s| gap_s.abs() < 60)).await?;
    Ok(())
}

#[tokio::test]
async fn the_way_back_after_an_outage_has_a_figure() -> Result<()> {
    let (mut bank, till) = (Bank::new().await?, Till::new()?);
    // Slow enough to be seen.
    let mut till = till.set(|outbox| outbox.with_settings(Settings { drain_per_s: 5, ..quick() }));
    bank.stop().await;
    till.start(&bank)?;
    for _ in 0..12 {
        till.pay(2490).await?;
    }
    let away = till.until_summary("out of reach", |summary| summary.bank_reachable == Some(false)).await?;
    assert_eq!((away.unsettled, away.backlog), (12, None), "an outage has no progress");
    bank.start().await?;
    let half_way = |summary: &outbox::Summary| summary.backlog.is_some_and(|backlog| backlog.settled >= 4);
    let seen = till.until_summary("half way", half_way).await?;
    assert!(matches!(seen.backlog, Some(Backlog { settled: 4..12, total: 12 })), "{seen:?}");
    // What is new does not count.
    for _ in 0..5 {
        till.pay(990).await?;
    }
    let still = till.summary().await?.backlog;
    assert!(still.is_none_or(|backlog| backlog.total == 12 && backlog.settled >= 4), "{still:?}");
    let done = till.until_summary("through", |summary| summary.unsettled == 0).await?;
    assert_eq!(done.backlog, None);
    assert_eq!(bank.charges(), 17);
    Ok(())
}

#[tokio::test]
async fn everything_is_exported_and_nothing_secret() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::DropAfter, Do::Problem(ProblemType::KeyReused, None)]);
    till.start(&bank)?;
    let mut keys = Vec::new();
    for card in ["tok_visa", "tok_mastercard", "tok_insufficient_funds"] {
        keys.push(till.pay_with(2490, card, "sale-1").await?.key);
    }
    till.until_summary("at rest", |summary| summary.unsettled == 0).await?;
    till.stop().await?;
    let (count, text) = till
        .store
        .read(|conn| {
            let mut out = Vec::new();
            let count = outbox::export(conn, &mut out)?;
            Ok::<_, outbox::ExportError>((count, out))
        })
        .await?;
    let text = String::from_utf8(text)?;
    assert_eq!(count, 3);
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(lines.len(), 3);
    for (line, key) in lines.iter().zip(&keys) {
        let operation = till.operation(*key).await?;
        assert_eq!(line["key"], key.to_string());
        assert_eq!(line["state"], operation.state.as_str());
        assert_eq!((&line["amount"], &line["currency"]), (&Value::from(2490), &Value::from("EUR")));
        assert_eq!(line["result"], operation.result.unwrap_or(Value::Null));
        let log = till.log(*key).await?;
        assert_eq!(line["attempts_log"], serde_json::to_value(log)?);
        assert_eq!(line["attempts"], operation.attempts);
    }
    assert!(!text.contains("tok_") && !text.contains("sk_test"), "{text}");
    Ok(())
}
