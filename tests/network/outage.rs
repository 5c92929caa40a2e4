//! A bank that is gone while many wait: it costs one small question at a time, and its return is no storm.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{log::Exchange, plan::Plan, wire::Kind},
    scene::{Reached, SETTLE_LIMIT, Scene},
};

const WAITING: usize = 50;
const OUTAGE: Duration = Duration::from_secs(20);
/// Room for a busy machine.
const SLACK: Duration = Duration::from_secs(2);
/// By chance alone there would be more than so many questions in one outage of ten million.
const QUESTIONS_MAX: usize = 18;

/// The longest that the back-off draws after so many failures in a row.
fn bound(failures: u32) -> Duration {
    Duration::from_millis(500).saturating_mul(1 << failures.saturating_sub(1).min(6)).min(Duration::from_secs(30))
}

#[tokio::test]
async fn an_outage_costs_one_question_at_a_time_and_its_end_is_no_storm() -> Result<()> {
    let mut scene = Scene::set().await?;
    // A question is long enough on its way that two at once would be seen.
    let case = scene
        .case("outage", WAITING, |_| {
            Box::new(|asked| match asked.kind {
                Kind::Policy => Plan::pass().waiting_before(Duration::from_millis(150)),
                _ => Plan::pass(),
            })
        })
        .await?;
    scene.bank.kill()?;
    let dead_at = Instant::now();
    let mut sync = case.sync(&["--until-settled", "--timeout", "85s"])?;
    tokio::time::sleep(OUTAGE).await;
    let log = case.proxy.log();
    let questions: Vec<&Exchange> = log.exchanges.iter().collect();
    one_at_a_time(&questions)?;

    scene.bank.start_elsewhere().await?;
    case.proxy.point_at(&scene.bank.url)?;
    let back_at = Instant::now();
    let status = sync.ended(SETTLE_LIMIT).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);
    println!("network: settled {:?} after the return, {:?} after the start", back_at.elapsed(), dead_at.elapsed());
    no_storm(&case.proxy.log().of(Kind::Keyed).collect::<Vec<_>>())?;
    let mut reached = Reached::default();
    reached.add("a question into the outage", questions.len() as u64);
    reached.at_least(&[("a question into the outage", 3)])?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(WAITING));
    Ok(())
}

/// Only who the bank is was asked, never twice at once, and each time after a wait that the back-off allows.
fn one_at_a_time(questions: &[&Exchange]) -> Result<()> {
    ensure!(questions.iter().all(|question| question.asked.kind == Kind::Policy), "something else was asked");
    ensure!(questions.len() <= QUESTIONS_MAX, "{} questions", questions.len());
    for (failures, two) in (1_u32..).zip(questions.windows(2)) {
        let ended_at = two[0].ended_at.context("two questions at once")?;
        let wait = two[1].asked_at.checked_duration_since(ended_at).context("two questions at once")?;
        ensure!(wait <= bound(failures) + SLACK, "after {failures} failures it waited {wait:?}");
    }
    // Chance may draw one short wait, and not all of them.
    let first = questions.first().context("no question")?.asked_at;
    let in_two_seconds = questions.iter().filter(|question| question.asked_at < first + Duration::from_secs(2)).count();
    ensure!(in_two_seconds <= 9, "{in_two_seconds} questions within 2 s");
    Ok(())
}

/// Each was sent once, the first twenty within a second.
fn no_storm(sent: &[&Exchange]) -> Result<()> {
    ensure!(sent.len() == WAITING, "{} were sent for {WAITING}", sent.len());
    let first = sent.iter().map(|exchange| exchange.asked_at).min().context("none was sent")?;
    let within =
        |seconds| sent.iter().filter(|exchange| exchange.asked_at < first + Duration::from_secs(seconds)).count();
    println!("network: sent within 1 s of the return: {}, within 2 s: {}", within(1), within(2));
    // Twenty and the one before them, and what a busy machine hands over late.
    ensure!(within(1) <= 26, "{} in the first second", within(1));
    Ok(())
}
