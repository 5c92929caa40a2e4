//! A network that says things twice, late and in another order.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{
        plan::{Ask, At, End, Give, Pick, Plan},
        wire::{Kind, Message},
    },
    scene::{Reached, Scene, TRANSPORT},
};

const CLICKS: usize = 12;

fn says_replayed(answer: &Message) -> bool {
    answer.header("idempotent-replayed") == Some("true")
}

#[tokio::test]
async fn a_request_that_arrives_twice_is_charged_once() -> Result<()> {
    let scene = Scene::set().await?;
    let case = scene
        .case("doubled", CLICKS, |_| {
            Box::new(|asked| match (asked.kind, asked.nth % 2) {
                (Kind::Keyed, 0) => Plan::fault("sent twice, first answer").asking(Ask::BankTwice(Pick::First)),
                (Kind::Keyed, _) => Plan::fault("sent twice, second answer").asking(Ask::BankTwice(Pick::Second)),
                _ => Plan::pass(),
            })
        })
        .await?;
    case.settle().await?;
    for key in &case.keys {
        ensure!(case.readings(key).await? == ["approved"], "either answer is the bank's own");
    }
    let replayed = case
        .proxy
        .log()
        .of(Kind::Keyed)
        .filter_map(|exchange| exchange.from_bank.clone())
        .filter(says_replayed)
        .count();
    ensure!(replayed >= 1, "no answer that was passed on was a repeated one");
    let half = CLICKS as u64 / 2;
    Reached::by(&[&case]).at_least(&[("sent twice, first answer", half), ("sent twice, second answer", half)])?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(CLICKS));
    Ok(())
}

#[tokio::test]
async fn answers_may_come_late_and_in_another_order() -> Result<()> {
    let scene = Scene::set().await?;
    let case = scene
        .case("reordered", 4, |_| {
            Box::new(|asked| match asked.kind {
                // The first that was asked is answered last.
                Kind::Keyed => {
                    let wait =
                        Duration::from_millis(400) * u32::try_from(5_usize.saturating_sub(asked.nth)).unwrap_or(0);
                    Plan::fault("answered in another order").waiting_after(wait)
                }
                _ => Plan::pass(),
            })
        })
        .await?;
    // Requests that are late on the way to the bank.
    let late = scene
        .case("late", 4, |_| {
            Box::new(|asked| match asked.kind {
                Kind::Keyed => Plan::fault("late on its way").waiting_before(Duration::from_secs(2)),
                Kind::Policy => Plan::fault("late to say who it is").waiting_after(Duration::from_secs(1)),
                _ => Plan::pass(),
            })
        })
        .await?;
    tokio::try_join!(reordered(&case), late.settle())?;
    let cases = [&case, &late];
    for case in cases {
        for key in &case.keys {
            ensure!(case.readings(key).await? == ["approved"], "{}: late is not lost", case.name);
        }
    }
    Reached::by(&cases).at_least(&[
        ("answered in another order", 4),
        ("late on its way", 4),
        ("late to say who it is", 1),
    ])?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(8));
    Ok(())
}

/// Settles, and shows that the answers really came in the other order.
async fn reordered(case: &crate::scene::Case) -> Result<()> {
    case.settle().await?;
    let log = case.proxy.log();
    let mut ends: Vec<_> = log.of(Kind::Keyed).map(|exchange| exchange.ended_at).collect();
    ensure!(ends.iter().all(Option::is_some) && ends.len() == 4, "{ends:?}");
    ends.reverse();
    ensure!(ends.is_sorted(), "the order was kept after all: {ends:?}");
    Ok(())
}

#[tokio::test]
async fn a_request_that_arrives_after_the_end_changes_nothing() -> Result<()> {
    let scene = Scene::set().await?;
    // The first request of each is lost on its way: every second one before the bank, every other on the way back.
    let case = scene
        .case("late original", CLICKS, |_| {
            Box::new(|asked| match (asked.kind, asked.nth_of_key, asked.nth % 2) {
                (Kind::Keyed, 1, 0) => {
                    let lost = Plan::fault("lost on the way to the bank").asking(Ask::Nobody);
                    lost.giving(Give::Cut(At::Start(0), End::Reset))
                }
                (Kind::Keyed, 1, _) => Plan::fault("lost on the way back").giving(Give::Cut(At::Start(0), End::Reset)),
                _ => Plan::pass(),
            })
        })
        .await?;
    case.settle().await?;
    let before = case.till.operations().await?;
    // And now it arrives, for everybody at once.
    let log = case.proxy.log();
    let first: Vec<_> = log.of(Kind::Keyed).filter(|exchange| exchange.asked.nth_of_key == 1).collect();
    let answers =
        futures::future::try_join_all(first.iter().map(|exchange| case.proxy.say_again(&exchange.request))).await?;
    for (exchange, answer) in first.iter().zip(&answers) {
        let key = exchange.asked.key.as_deref().context("a request with no key")?;
        ensure!(says_replayed(answer), "{key}: executed anew");
        let final_one = before.iter().find(|operation| operation["key"] == key).context("not kept")?;
        let late: serde_json::Value = serde_json::from_slice(answer.body())?;
        ensure!(late == final_one["result"], "{key}: another result, {late}");
        let readings = case.readings(key).await?;
        ensure!(TRANSPORT.contains(&readings[0].as_str()), "{readings:?}");
    }
    ensure!(case.till.operations().await? == before, "a final result never changes");
    let mut reached = Reached::by(&[&case]);
    reached.add("arrived after the end", answers.len() as u64);
    reached.at_least(&[
        ("lost on the way to the bank", 1),
        ("lost on the way back", 1),
        ("arrived after the end", CLICKS as u64),
    ])?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(CLICKS));
    Ok(())
}
