//! Till and bank killed at random moments under load. `KASSA_CRASH_SEED` repeats the choices of a run, though not its timing.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    deaths::Deaths,
    harness::{bank::Bank, checker},
    place::Place,
};

const TILLS: u64 = 3;
const LIVES: u32 = 24;
const CLICKS: usize = 4;
/// How long a life lasts, from the start of the process on.
const TILL_LIVES_MS: std::ops::Range<u64> = 20..250;
const BANK_LIVES_MS: std::ops::Range<u64> = 300..1_200;

const TILL: &str = "till, at random";
const BANK: &str = "bank, at random";

fn seed() -> Result<u64> {
    let seed = match std::env::var("KASSA_CRASH_SEED") {
        Ok(text) => text.parse()?,
        Err(_) => rand::rng().random(),
    };
    println!("KASSA_CRASH_SEED={seed}");
    Ok(seed)
}

#[tokio::test]
async fn tills_and_a_bank_killed_at_random_under_load_charge_once_each() -> Result<()> {
    let (began, deaths, seed) = (Instant::now(), &Deaths::default(), seed()?);
    let folder = tempfile::tempdir()?;
    let mut bank = Bank::start(folder.path()).await?;
    let url = bank.url.clone();
    let (going_on, in_flight) = (&Cell::new(true), &Cell::new(0));
    let tills = async {
        let tills = (1..=TILLS).map(async |number| {
            let chance = StdRng::seed_from_u64(seed ^ number);
            till_dies_again_and_again(&url, chance, deaths, in_flight).await.with_context(|| format!("till {number}"))
        });
        let places = try_join_all(tills).await;
        going_on.set(false);
        places
    };
    let chance = StdRng::seed_from_u64(seed);
    let (places, ()) = tokio::try_join!(tills, bank_dies_again_and_again(&mut bank, chance, deaths, going_on))?;

    bank.no_faults().await?;
    try_join_all(places.iter().map(|place| place.settle(&bank.url))).await?;
    let tills: Vec<_> = places.iter().map(|place| (&place.till, &place.keys[..])).collect();
    let verdict = checker::one_charge_each_of(&tills, &bank).await?;
    let met = in_flight.get();
    println!("Died:\n{deaths}\n{met} deaths of a till met something in flight");
    println!("{verdict:?}\n{:.1} s", began.elapsed().as_secs_f64());
    ensure!(verdict.approved + verdict.declined == verdict.clicked, "all of it is final");
    ensure!(deaths.at(TILL) == LIVES * u32::try_from(TILLS)? && deaths.at(BANK) >= 5, "too few died");
    ensure!(met >= 10, "too few died in flight: {met}");
    Ok(())
}

async fn till_dies_again_and_again(
    bank_url: &str,
    mut chance: StdRng,
    deaths: &Deaths,
    in_flight: &Cell<u32>,
) -> Result<Place> {
    let mut place = Place::new()?;
    for _ in 0..LIVES {
        place.pay(CLICKS).await?;
        let mut sync = place.till.start("sync", &["sync"], Some(bank_url))?;
        sleep(Duration::from_millis(chance.random_range(TILL_LIVES_MS))).await;
        deaths.killed(TILL, sync.kill()?)?;
        let met = place.states().await?.contains("sending");
        in_flight.set(in_flight.get() + u32::from(met));
    }
    Ok(place)
}

/// A bank that is slow now and then, and keeps some answers to itself.
async fn bank_dies_again_and_again(
    bank: &mut Bank,
    mut chance: StdRng,
    deaths: &Deaths,
    going_on: &Cell<bool>,
) -> Result<()> {
    loop {
        let (slow, dropped): (u32, u32) = (chance.random(), chance.random());
        bank.faults(json!([
            {"at": "gateway_answered", "do": "delay", "ms": 120, "probability": 0.7, "seed": slow},
            {"at": "saved", "do": "drop", "probability": 0.2, "seed": dropped},
        ]))
        .await?;
        sleep(Duration::from_millis(chance.random_range(BANK_LIVES_MS))).await;
        if !going_on.get() {
            return Ok(());
        }
        deaths.killed(BANK, bank.kill()?)?;
        bank.start_again().await?;
    }
}
