//! A till that dies a hundred times with its operations in flight.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use store::points::Point;

use crate::{
    deaths::Deaths,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        relay::{Asked, Moment, Relay},
    },
    place::{AMOUNT, LIFE_LIMIT, Place, SYNC},
};

/// Lives that end with a kill.
const LIVES: u32 = 100;
/// Calls that run at once where nothing is suspected.
const AT_ONCE: usize = 4;
const IN_FLIGHT: &str = "the request was passed on";

/// Operations that were in flight when the process died are tried one at a time after the second time, and for ever: no
/// number of deaths sets one aside.
#[tokio::test]
async fn killed_in_flight_a_hundred_times_it_settles_and_suspects_are_tried_alone() -> Result<()> {
    let (began, deaths) = (Instant::now(), Deaths::default());
    let mut place = Place::new()?;
    let bank = Bank::start(place.folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    place.keys = place.till.pay(AT_ONCE, AMOUNT, "tok_visa").await?;
    let suspects: BTreeSet<_> = place.keys.iter().cloned().collect();
    let mut first_resends = Vec::new();
    for life in 1..=LIVES {
        let known = relay.asked().len();
        let started = Instant::now();
        match life % 4 {
            // The first two meet all of them in flight at once.
            1 | 2 => {
                relay.hold_at(Moment::RequestPassedOn, 1);
                let mut sync = place.till.start("sync", SYNC, Some(&relay.url))?;
                relay
                    .holds(if life <= 2 { AT_ONCE } else { 1 }, LIFE_LIMIT)
                    .await
                    .with_context(|| format!("life {life}: {:?} {:?}", relay.asked(), sync.said()))?;
                deaths.killed(IN_FLIGHT, sync.kill()?)?;
                relay.let_go();
            }
            3 => place.die_at(Point::Answered, 1, SYNC, Some(&relay.url), &deaths).await?,
            _ => place.die_at(Point::ResultWritten, 1, SYNC, Some(&relay.url), &deaths).await?,
        }
        let sent: Vec<_> = relay.asked()[known..].iter().filter(|asked| asked.key.is_some()).cloned().collect();
        let first = sent.first().context("nothing was sent in this life")?;
        if life > 1 {
            first_resends.push(first.at.duration_since(started));
        }
        ensure!(sent.len() == if life <= 2 { AT_ONCE } else { 1 }, "{} were sent in life {life}", sent.len());
        let states = place.states().await?;
        ensure!(!states.contains("needs_attention"), "one was set aside after {life} deaths");
    }

    // What was clicked since is under no suspicion, and waits for nobody for long.
    place.keys.extend(place.till.pay(AT_ONCE, AMOUNT, "tok_visa").await?);
    // So long that two calls that may run at once do.
    bank.faults(json!([{"at": "received", "do": "delay", "ms": 60}])).await?;
    let known = relay.asked().len();
    place.settle(&relay.url).await?;
    let last: Vec<_> = relay.asked()[known..].iter().filter(|asked| asked.key.is_some()).cloned().collect();
    let at_once = most_at_once(&last, |_| true);
    let suspects_at_once = most_with_a_suspect(&last, &suspects);
    ensure!(suspects_at_once == 1, "{suspects_at_once} ran at once, and one of them was under suspicion");
    ensure!(at_once == AT_ONCE, "of the others {at_once} ran at once");

    let verdict = checker::one_charge_each(&place.till, &bank, &place.keys).await?;
    ensure!(verdict == Verdict::all_approved(2 * AT_ONCE), "{verdict:?}");
    ensure!(deaths.total() == LIVES, "{} deaths", deaths.total());
    for key in &suspects {
        let log = place.till.log(key).await?;
        let deaths = log.iter().filter(|entry| entry["event"] == "resumed").count();
        println!("{deaths:4} deaths of {key}");
    }
    println!("The till died at:\n{deaths}\n{verdict:?}\n{}", spread(first_resends));
    println!("{:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// The most calls that ran at one time, of those that count.
fn most_at_once(calls: &[Asked], counts: impl Fn(&Asked) -> bool) -> usize {
    let calls: Vec<_> = calls.iter().filter(|call| counts(call)).collect();
    calls.iter().map(|call| calls.iter().filter(|other| overlaps(other, call.at)).count()).max().unwrap_or(0)
}

/// The most calls that ran at one time with one of the suspects, itself counted.
fn most_with_a_suspect(calls: &[Asked], suspects: &BTreeSet<String>) -> usize {
    let is_suspect = |call: &Asked| call.key.as_ref().is_some_and(|key| suspects.contains(key));
    let starts = calls.iter().map(|call| call.at);
    let at = |moment| calls.iter().filter(move |call| overlaps(call, moment));
    starts.filter(|&moment| at(moment).any(is_suspect)).map(|moment| at(moment).count()).max().unwrap_or(0)
}

fn overlaps(call: &Asked, moment: Instant) -> bool {
    call.at <= moment && call.answered_at.is_none_or(|end| end > moment)
}

/// Shortest, middle and longest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: usize| times.get(part).map_or(0, Duration::as_millis);
    let (first, middle, last) = (at(0), at(times.len() / 2), at(times.len().saturating_sub(1)));
    format!(
        "From the start after a kill to the first resend at the bank: {first} ms, {middle} ms in the middle, {last} ms at most."
    )
}
