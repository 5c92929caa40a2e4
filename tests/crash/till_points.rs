//! The till, killed at each of its named points and in the middle of a call.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use store::points::Point;

use crate::{
    deaths::Deaths,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        process::Process,
        relay::{Moment, Relay},
    },
    old_files,
    place::{LIFE_LIMIT, PAY, Place, SYNC},
    wishes,
};

/// The points that `sync` comes by once for each operation.
const OF_CALLS: [Point; 4] = [Point::Counted, Point::Answered, Point::ResultWritten, Point::ResultSaved];
/// Those that it comes by once in its life.
const OF_STARTS: [Point; 2] = [Point::TakingOver, Point::TakenOver];
/// At which passes it dies, one life after the other.
const PASSES: [u32; 8] = [1, 2, 5, 3, 1, 8, 2, 5];
/// Clicks before each life, so that there are enough of them to come to the last pass.
const CLICKS: usize = 8;

/// What a call is in the middle of, and its name in the table.
const OF_RELAY: [(Moment, &str); 2] =
    [(Moment::RequestPassedOn, "the request was passed on"), (Moment::HalfAnswered, "half the answer was passed on")];

/// How often `pay` is killed with an intent of its own.
const INTENTS: u32 = 8;

#[tokio::test]
async fn a_till_killed_at_each_of_its_points_charges_once_each() -> Result<()> {
    let began = Instant::now();
    let folder = tempfile::tempdir()?;
    let (bank, deaths) = (&Bank::start(folder.path()).await?, &Deaths::default());
    let passes = OF_CALLS.map(|point| (point, PASSES)).into_iter();
    let passes = passes.chain(OF_STARTS.map(|point| (point, [1; PASSES.len()])));
    let in_sync = passes.map(async |(point, passes)| in_sync(point, &passes, bank, deaths).await.context(point.name()));
    let in_calls = OF_RELAY.map(async |(moment, name)| in_calls(moment, name, bank, deaths).await.context(name));
    let in_pay =
        [Point::Inserted, Point::Saved].map(async |point| in_pay(point, bank, deaths).await.context(point.name()));
    let (in_sync, in_calls, in_pay, first, (), ready, cancelled, tombstones) = tokio::try_join!(
        try_join_all(in_sync),
        try_join_all(in_calls),
        try_join_all(in_pay),
        in_first_starts(bank, deaths),
        old_files::in_migrations(deaths),
        wishes::refunds_made_ready(bank, deaths),
        wishes::cancellations(bank, deaths),
        wishes::tombstones(bank, deaths),
    )?;

    let wished = vec![ready, cancelled, tombstones];
    let places: Vec<_> = [in_sync, in_calls, in_pay, first, wished].into_iter().flatten().collect();
    let tills: Vec<_> = places.iter().map(|place| (&place.till, &place.keys[..])).collect();
    let verdict = checker::one_charge_each_of(&tills, bank).await?;
    println!("The till died at:\n{deaths}\n{verdict:?}\n{:.1} s", began.elapsed().as_secs_f64());
    for point in Point::ALL {
        ensure!(deaths.at(point.name()) >= 3, "nobody died at {}", point.name());
    }
    let Verdict { clicked, approved, declined, cancelled, .. } = verdict;
    ensure!(approved > 0 && declined > 0 && cancelled > 0, "all three ends were to be seen");
    ensure!(approved + declined + cancelled == clicked, "all of it is final");
    Ok(())
}

/// A till that has some operations final, some in flight when it died, and some never sent.
async fn mixed(bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = Place::new()?;
    place.pay(3).await?;
    place.settle(&bank.url).await?;
    place.pay(4).await?;
    place.die_at(Point::Answered, 1, SYNC, Some(&bank.url), deaths).await?;
    place.pay(4).await?;
    let states = place.states().await?;
    for state in ["approved", "sending", "saved"] {
        ensure!(states.contains(state), "none is {state}: {states:?}");
    }
    Ok(place)
}

async fn in_sync(point: Point, passes: &[u32], bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = mixed(bank, deaths).await?;
    for &pass in passes {
        place.pay(CLICKS).await?;
        place.die_at(point, pass, SYNC, Some(&bank.url), deaths).await?;
    }
    place.settle(&bank.url).await?;
    Ok(place)
}

/// Killed from outside, at a moment that only a relay sees.
async fn in_calls(moment: Moment, name: &str, bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = mixed(bank, deaths).await?;
    let relay = Relay::start(&bank.url).await?;
    for pass in PASSES {
        place.pay(CLICKS).await?;
        relay.hold_at(moment, pass);
        let mut sync = place.till.start("held", SYNC, Some(&relay.url))?;
        relay.holds(1, LIFE_LIMIT).await?;
        deaths.killed(name, sync.kill()?)?;
        ensure!(place.states().await?.contains("sending"), "the kill met nothing in flight");
        relay.let_go();
    }
    place.settle(&relay.url).await?;
    Ok(place)
}

/// `pay` dies: with an intent, the same command again makes it one operation; without, what it has saved stays, whole.
async fn in_pay(point: Point, bank: &Bank, deaths: &Deaths) -> Result<Place> {
    let mut place = Place::new()?;
    for number in 1..=INTENTS {
        let intent = format!("click {number}");
        let pay = [PAY, &["--intent", &intent]].concat();
        let before = place.kept().await.unwrap_or_default();
        place.die_at(point, 1, &pay, None, deaths).await?;
        let after = place.kept().await?;
        let saved = after.len() - before.len();
        ensure!(saved == usize::from(point == Point::Saved), "{saved} saved by a click that died there");

        let told = place.till.done("again", &pay).await?;
        let kept = place.kept().await?;
        ensure!(told.len() == 1 && kept.len() == before.len() + 1, "the same intent is one operation: {told:?}");
        ensure!(kept.last().map(String::as_str) == told[0]["key"].as_str(), "and the one that is told");
        ensure!(point == Point::Inserted || kept == after, "and the one that was saved");
        ensure!(place.till.done("again", &pay).await? == told, "however often");
    }
    for pass in [2, 5] {
        let before = place.kept().await?.len();
        place.die_at(point, pass, &[PAY, &["--times", "6"]].concat(), None, deaths).await?;
        let saved = place.kept().await?.len() - before;
        ensure!(saved <= 6 && (point == Point::Inserted || saved >= 1), "{saved} of 6 were saved");
    }
    place.keys = place.kept().await?;
    place.settle(&bank.url).await?;
    Ok(place)
}

/// The very first start dies in the middle of making the file.
async fn in_first_starts(bank: &Bank, deaths: &Deaths) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for point in [Point::Migrating, Point::Migrated] {
        for step in 1..=old_files::newest().await? {
            let mut place = Place::new()?;
            place.die_at(point, step, PAY, None, deaths).await?;
            place.pay(3).await?;
            place.settle(&bank.url).await?;
            places.push(place);
        }
    }
    Ok(places)
}

#[tokio::test]
async fn a_point_that_there_is_not_is_refused_in_one_line() -> Result<()> {
    let place = Place::new()?;
    for wrong in ["nowhere", "counted:0", "counted:one", ""] {
        let mut command = place.till.command(&["operations"], None)?;
        let mut process = Process::start("wrong", command.env("KASSA_DIE_AT", wrong), place.folder.path())?;
        let status = process.ended(LIFE_LIMIT).await?;
        let said = process.said()?;
        ensure!(
            status.code() == Some(2),
            "{status}: {said}\nIs `kassa-till` built for tests? Type `cargo build --workspace --all-targets`."
        );
        ensure!(
            said.lines().last().is_some_and(|line| line.contains("no point") && line.contains("result-saved")),
            "{said}"
        );
    }
    Ok(())
}
