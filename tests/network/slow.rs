//! Silence, and answers that come a byte at a time. No call may take longer than its limit, and what was perhaps charged
//! meanwhile is asked for again under its key.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{
    harness::checker::Verdict,
    proxy::{
        Script,
        log::Exchange,
        plan::{Ask, At, Give, Plan},
        wire::{Kind, Message},
    },
    scene::{Case, Reached, Scene},
};

/// The till's limit for a whole call is 10 s; room is for a busy machine.
const GIVES_UP: std::ops::Range<Duration> = Duration::from_secs(9)..Duration::from_secs(14);

/// The first request of each key meets the fault of its place, and all else is passed.
fn first_of_each(keys: &[String], faults: Vec<fn() -> Plan>) -> Script {
    let keys = keys.to_vec();
    Box::new(move |asked| {
        let nth = keys.iter().position(|key| Some(key) == asked.key.as_ref());
        match nth.and_then(|nth| faults.get(nth)) {
            Some(fault) if asked.kind == Kind::Keyed && asked.nth_of_key == 1 => fault(),
            _ => Plan::pass(),
        }
    })
}

fn silences() -> Vec<fn() -> Plan> {
    vec![
        || Plan::fault("silence after the charge").giving(Give::Silence(At::Start(0))),
        || Plan::fault("silence, and no charge").asking(Ask::Nobody).giving(Give::Silence(At::Start(0))),
        || Plan::fault("silence in the head").giving(Give::Silence(At::Start(100))),
        || Plan::fault("silence in the body").giving(Give::Silence(At::Body(150))),
    ]
}

fn trickles() -> Vec<fn() -> Plan> {
    vec![
        || Plan::fault("a byte a second").giving(Give::Trickle(Duration::from_secs(1))),
        || {
            let noise = b"HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000);
            Plan::fault("1xx for ever")
                .making(move |_| Message { head_bytes: noise.len(), bytes: noise })
                .giving(Give::Trickle(Duration::from_millis(10)))
        },
        || {
            Plan::fault("a chunk's byte every 100 ms")
                .making(|answer| answer.in_chunks(7))
                .giving(Give::Trickle(Duration::from_millis(100)))
        },
    ]
}

#[tokio::test]
async fn silence_ends_with_the_calls_limit_and_slowness_alone_does_not() -> Result<()> {
    let scene = Scene::set().await?;
    let silent = scene.case("silent", 4, |keys| first_of_each(keys, silences())).await?;
    let trickling = scene.case("trickling", 3, |keys| first_of_each(keys, trickles())).await?;
    // 545 bytes or so: within the limit.
    let slow = scene
        .case("slow", 1, |keys| {
            let bearable = || Plan::fault("a byte every 5 ms").giving(Give::Trickle(Duration::from_millis(5)));
            first_of_each(keys, vec![bearable])
        })
        .await?;
    // Before anything is sent, the question who the bank is goes unanswered.
    let unheard = scene
        .case("unheard question", 1, |_| {
            Box::new(|asked| {
                if asked.kind == Kind::Policy && asked.nth == 1 {
                    Plan::fault("silence to the first question").giving(Give::Silence(At::Start(0)))
                } else {
                    Plan::pass()
                }
            })
        })
        .await?;
    let cases = [&silent, &trickling, &slow, &unheard];
    futures::future::try_join_all(cases.map(Case::settle)).await?;

    for case in [&silent, &trickling] {
        for key in &case.keys {
            let readings = case.readings(key).await?;
            ensure!(readings.len() >= 2 && readings[0] == "time-out", "{}: {readings:?}", case.name);
        }
    }
    for exchange in [&silent, &trickling, &unheard].iter().flat_map(|case| case.proxy.log().exchanges) {
        gave_up_in_time(&exchange)?;
    }
    let readings = slow.readings(&slow.keys[0]).await?;
    ensure!(readings == ["approved"], "slow, and whole: {readings:?}");
    ensure!(unheard.readings(&unheard.keys[0]).await? == ["approved"], "nothing was sent before the answer to it");

    Reached::by(&cases).at_least(&[
        ("silence after the charge", 1),
        ("silence, and no charge", 1),
        ("silence in the head", 1),
        ("silence in the body", 1),
        ("silence to the first question", 1),
        ("a byte a second", 1),
        ("1xx for ever", 1),
        ("a chunk's byte every 100 ms", 1),
        ("a byte every 5 ms", 1),
    ])?;
    ensure!(scene.verdict(&cases).await? == Verdict::all_approved(9));
    Ok(())
}

/// A call that met a fault here was ended by the till, and when its limit says.
fn gave_up_in_time(exchange: &Exchange) -> Result<()> {
    let Some(fault) = &exchange.fault else { return Ok(()) };
    let ended_at = exchange.ended_at.with_context(|| format!("{fault}: without end"))?;
    let took = ended_at.duration_since(exchange.asked_at);
    ensure!(GIVES_UP.contains(&took), "{fault}: given up after {took:?}");
    Ok(())
}
