//! The bank refuses the till's secret, or something in the middle says so: the queue pauses, and no operation is the worse for
//! it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};

use crate::{
    harness::{checker::Verdict, until},
    proxy::{
        plan::{Ask, Plan},
        wire::Kind,
    },
    reply::Reply,
    scene::{Case, Reached, SETTLE_LIMIT, STEP_LIMIT, Scene},
};

const CLICKS: usize = 6;
/// Questions who the bank is that are refused before it is over.
const REFUSED_LEAST: usize = 4;

/// A till whose secret counts at first, and is refused from its first payments on.
async fn refused(scene: &Scene, name: &'static str, status: &'static str) -> Result<(Case, Arc<AtomicBool>)> {
    let refuses = Arc::new(AtomicBool::new(true));
    let told = refuses.clone();
    let case = scene
        .case(name, CLICKS, |_| {
            Box::new(move |asked| {
                let first_question = asked.kind == Kind::Policy && asked.nth == 1;
                if first_question || !told.load(Ordering::SeqCst) {
                    return Plan::pass();
                }
                let problem = Reply::problem(name, status);
                Plan::fault(format!("{name}, {:?}", asked.kind)).asking(Ask::Nobody).making(move |_| problem.message())
            })
        })
        .await?;
    Ok((case, refuses))
}

/// Pauses while it is refused, and settles when it no longer is.
async fn pauses(case: &Case, refuses: &AtomicBool) -> Result<()> {
    let sync = case.sync(&["--until-settled", "--timeout", "85s"])?;
    let questions = || case.proxy.log().of(Kind::Policy).count();
    until(&format!("{}: refused some times", case.name), STEP_LIMIT, async || {
        Ok((questions() > REFUSED_LEAST).then_some(()))
    })
    .await?;
    let log = case.proxy.log();
    let sent = log.of(Kind::Keyed).count();
    ensure!(sent <= 4, "{}: {sent} payments were sent into the refusal", case.name);
    for operation in case.till.operations().await? {
        let state = operation["state"].as_str();
        ensure!(matches!(state, Some("saved" | "unknown")), "{}: {operation}", case.name);
    }
    refuses.store(false, Ordering::SeqCst);
    case.ends(sync, 0).await?;
    let log = case.proxy.log();
    let asked_at: Vec<_> = log.of(Kind::Policy).map(|exchange| (exchange.asked_at, exchange.ended_at)).collect();
    let overlap = asked_at.windows(2).any(|two| two[0].1.is_none_or(|ended_at| ended_at > two[1].0));
    ensure!(!overlap, "{}: two questions at once", case.name);
    Ok(())
}

#[tokio::test]
async fn a_refused_secret_pauses_the_queue_and_fails_nothing() -> Result<()> {
    let scene = Scene::set().await?;
    let (unauthorized, over) = refused(&scene, "unauthorized", "401 Unauthorized").await?;
    let (forbidden, over_too) = refused(&scene, "forbidden", "403 Forbidden").await?;
    tokio::try_join!(pauses(&unauthorized, &over), pauses(&forbidden, &over_too))?;
    let cases = [&unauthorized, &forbidden];
    Reached::by(&cases).at_least(&[
        ("unauthorized, Keyed", 1),
        ("unauthorized, Policy", REFUSED_LEAST as u64),
        ("forbidden, Keyed", 1),
        ("forbidden, Policy", REFUSED_LEAST as u64),
    ])?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(2 * CLICKS));
    Ok(())
}

#[tokio::test]
async fn who_waits_for_a_refused_secret_is_told_why() -> Result<()> {
    let scene = Scene::set().await?;
    let (case, refuses) = refused(&scene, "unauthorized", "401 Unauthorized").await?;
    let mut sync = case.sync(&["--until-settled", "--timeout", "5s"])?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    let said = sync.said()?;
    ensure!(status.code() == Some(3) && said.contains("unauthorized"), "{status}: {said}");
    let verdict = scene.verdict(&[&case]).await?;
    ensure!(verdict == Verdict { clicked: CLICKS, open: CLICKS, ..Verdict::default() }, "{verdict:?}");
    refuses.store(false, Ordering::SeqCst);
    let took = case.settle().await?;
    ensure!(took < Duration::from_secs(30), "a start is a Check now, and took {took:?}");
    Reached::by(&[&case]).at_least(&[("unauthorized, Keyed", 1), ("unauthorized, Policy", 1)])?;
    ensure!(scene.verdict(&[&case]).await? == Verdict::all_approved(CLICKS));
    Ok(())
}
