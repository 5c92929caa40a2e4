//! Processes killed at random and at named points, under load, with a faulty gateway: nobody retries, and the money is right.
//! `KASSA_STORM_SEED` repeats the choices of a run, though not its timing.
#![cfg(unix)]

mod audit;
#[path = "../program/mod.rs"]
mod program;
mod site;
mod traffic;
mod wire;

use audit::{Attention, Count, Found, audit};
use hyper::Method;
use program::{ALONE, LIMIT, Life, Program, Result};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use site::{
    Deaths, Faults, Load, Site, faulty_gateway, kill_again_and_again, life_of_bank, life_of_gateway, slow_bank, tell,
    up,
};
use std::{
    os::unix::process::ExitStatusExt,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use traffic::{Sent, random_ms};
use wire::{Ask, Wire};

/// What is unfinished at the last start must be finished so long after it, once there are no faults any more.
const FINISHED_WITHIN: Duration = Duration::from_secs(15);
/// Connections that the load comes from.
const CLIENTS: usize = 32;

fn seed() -> Result<u64> {
    let seed = match std::env::var("KASSA_STORM_SEED") {
        Ok(text) => text.parse()?,
        Err(_) => rand::rng().random(),
    };
    // Shown where the test fails.
    println!("KASSA_STORM_SEED={seed}");
    Ok(seed)
}

/// Kills both programs at random under load until the bank was killed `enough` times.
async fn storm(site: &Site, seed: u64, enough: u32, gateway_faults: Faults) -> Result<(Vec<Sent>, [Deaths; 2])> {
    let load = Load::start(site, CLIENTS, seed);
    let stop = CancellationToken::new();
    let of_gateway = async {
        let chance = StdRng::seed_from_u64(seed ^ 1);
        let dead = kill_again_and_again(&site.gateway, u32::MAX, stop.clone(), chance, life_of_gateway, gateway_faults);
        dead.await.map_err(|error| format!("gateway: {error}"))
    };
    let of_bank = async {
        let _stop = stop.clone().drop_guard();
        let chance = StdRng::seed_from_u64(seed ^ 2);
        let dead = kill_again_and_again(
            &site.bank,
            enough,
            CancellationToken::new(),
            chance,
            life_of_bank,
            Box::new(slow_bank),
        );
        dead.await.map_err(|error| format!("bank: {error}"))
    };
    let (gateway, bank) = tokio::try_join!(of_gateway, of_bank)?;
    let sheet = load.end().await?;
    Ok((sheet.all(), [bank, gateway]))
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_200_times_under_load_it_charges_what_it_approves_with_nobody_retrying() -> Result {
    let _alone = ALONE.lock().await;
    let (site, seed, began) = (Site::new()?, seed()?, Instant::now());
    let (sent, deaths) = storm(&site, seed, 200, Box::new(faulty_gateway)).await?;
    println!("{deaths:?} in {:?}", began.elapsed());
    let _gateway = up(&site.gateway, &json!([])).await?;
    let left = Found::now(&site)?;
    let _bank = up(&site.bank, &json!([])).await?;
    println!("{} finished after {:?}", left.unfinished, left.is_finished(&site, FINISHED_WITHIN).await?);
    let count = audit(&site, &sent, Attention::None).await?;
    println!("{count:?} after {:?}", began.elapsed());
    assert!(deaths[0].kills == 200 && deaths[0].unready > 0 && deaths[1].kills > 0, "{deaths:?}");
    assert_storm(&count);
    Ok(())
}

/// Clients that leave something unfinished.
const LEAVING: usize = 300;
/// What they leave, at the least: more than is taken over in one write.
const LEFT_MIN: i64 = 300;
/// Clients that pay after the last start, each one payment after the other, so that there is always something to write.
const PAYING: usize = 64;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kill_left_is_finished_in_time_though_others_never_stop_paying() -> Result {
    let _alone = ALONE.lock().await;
    let (site, seed) = (Site::new()?, seed()?);
    let (gateway, bank) = (up(&site.gateway, &json!([])).await?, up(&site.bank, &json!([])).await?);
    let leaving = Load::start(&site, LEAVING, seed);
    // From now on nothing is finished.
    gateway.kill().await?;
    let began = Instant::now();
    while Found::now(&site)?.unfinished < LEFT_MIN {
        assert!(began.elapsed() < LIMIT, "too little is left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bank.kill().await?;
    let mut sent = leaving.end().await?.all();
    let _gateway = up(&site.gateway, &json!([])).await?;
    let paying = Load::start(&site, PAYING, seed ^ 1);
    let left = Found::now(&site)?;
    let _bank = up(&site.bank, &json!([])).await?;
    let took = left.is_finished(&site, FINISHED_WITHIN).await?;
    let paid = paying.end().await?.all();
    println!("{} were left and finished after {took:?}, beside {} others", left.unfinished, paid.len());
    assert!(left.unfinished >= LEFT_MIN && paid.len() > PAYING, "the bank was not busy");
    sent.extend(paid);
    Found::now(&site)?.is_finished(&site, FINISHED_WITHIN).await?;
    println!("{:?}", audit(&site, &sent, Attention::None).await?);
    Ok(())
}

/// A storm in which too little happened shows nothing.
fn assert_storm(count: &Count) {
    assert!(count.untold < count.sent, "nobody was told anything: {count:?}");
    for state in ["approved", "declined", "cancelled"] {
        assert!(count.state(state) > 0, "nothing was {state}");
    }
    assert!(count.finished_untold > 0 && count.recovered > 0 && count.reversals > 0 && count.refunds > 0, "{count:?}");
}

/// First starts that are killed.
const FIRST_STARTS: u32 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_first_start_that_was_killed_anywhere_is_brought_to_an_end_by_the_next() -> Result {
    let _alone = ALONE.lock().await;
    let mut chance = StdRng::seed_from_u64(seed()?);
    let mut unready = 0;
    for _ in 0..FIRST_STARTS {
        let dir = tempfile::tempdir()?;
        // With a gateway of its own and a secret of its own: everything that a first start makes.
        let program = Program::new(dir.path(), "bank", "serve --db bank.db")?;
        let mut first = program.start()?;
        let longest_ms = if chance.random_bool(0.5) { 60 } else { 250 };
        let ready = timeout(random_ms(&mut chance, longest_ms), first.ready()).await;
        unready += u32::from(ready.is_err());
        let status = first.kill().await?;
        assert_eq!(status.signal(), Some(KILLED), "{status}: {}", program.log()?);
        let mut second = program.start()?;
        let said = second.ready().await.map_err(|error| format!("{error}: {:?}", program.log()))?;
        let secret = said["secret"].as_str().filter(|secret| secret.starts_with("sk_")).ok_or("no secret")?;
        if let Ok(Ok(first)) = ready {
            assert_eq!(first["secret"], secret, "a till that was told the first one");
        }
        second.kill().await?;
    }
    println!("{unready} of {FIRST_STARTS} were not ready yet");
    assert!(unready > 0, "all came too late");
    Ok(())
}

/// Deaths at each named point.
const DEATHS_AT_A_POINT: u32 = 6;
/// SIGABRT: what `abort` ends a process with.
const ABORTED: i32 = 6;
/// SIGKILL.
const KILLED: i32 = 9;

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_named_point_it_charges_what_it_approves() -> Result {
    let _alone = ALONE.lock().await;
    let (site, seed) = (Site::new()?, seed()?);
    let mut chance = StdRng::seed_from_u64(seed);
    let load = Load::start(&site, CLIENTS, seed);
    let mut gateway = up(&site.gateway, &json!([])).await?;
    let mut bank = up(&site.bank, &json!([])).await?;
    for at in ["received", "claimed", "gateway_answered", "saved"] {
        for _ in 0..DEATHS_AT_A_POINT {
            die_at(&site, &site.bank, &mut bank, at, &mut chance).await?;
        }
    }
    let mut left = Found::now(&site)?;
    for at in ["received", "committed"] {
        for _ in 0..DEATHS_AT_A_POINT {
            left = die_at(&site, &site.gateway, &mut gateway, at, &mut chance).await?;
        }
    }
    // While the load goes on.
    println!("{} finished after {:?}", left.unfinished, left.is_finished(&site, FINISHED_WITHIN).await?);
    let sheet = load.end().await?;
    Found::now(&site)?.is_finished(&site, FINISHED_WITHIN).await?;
    let count = audit(&site, &sheet.all(), Attention::None).await?;
    println!("6 points, {DEATHS_AT_A_POINT} deaths at each: {count:?}");
    assert_storm(&count);
    Ok(())
}

/// Has the process die in one of the next passes of a point, and starts it again. Says what was there before that start.
async fn die_at(site: &Site, program: &Program, life: &mut Life, at: &str, chance: &mut StdRng) -> Result<Found> {
    let skip = chance.random_range(0..20);
    tell(program, &json!([{"at": at, "do": "abort", "skip": skip, "times": 1}])).await?;
    let status = timeout(LIMIT, life.ended()).await.map_err(|_| format!("nothing came by {at}"))??;
    assert_eq!(status.signal(), Some(ABORTED), "at {at}: {status}");
    let found = Found::now(site)?;
    *life = up(program, &json!([])).await?;
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_foreign_answer_leaves_for_a_person_is_right_after_a_requeue() -> Result {
    let _alone = ALONE.lock().await;
    let (site, seed) = (Site::new()?, seed()?);
    let (sent, deaths) = storm(&site, seed, 20, Box::new(foreign_gateway)).await?;
    let _gateway = up(&site.gateway, &json!([])).await?;
    let unfinished = Found::now(&site)?;
    let _bank = up(&site.bank, &json!([])).await?;
    unfinished.is_finished(&site, FINISHED_WITHIN).await?;
    let before = audit(&site, &sent, Attention::Allowed).await?;
    let left = before.state("needs_attention");
    assert_eq!(requeue_all(&site).await?, left, "all that needs attention is listed");
    Found::now(&site)?.is_finished(&site, FINISHED_WITHIN).await?;
    let after = audit(&site, &sent, Attention::None).await?;
    println!("{deaths:?}: {left} needed attention; then {after:?}");
    assert!(left > 0, "no foreign answer was met");
    Ok(())
}

/// A faulty gateway that also answers about something else now and then.
fn foreign_gateway(chance: &mut StdRng) -> Value {
    let mut rules = vec![
        json!({"at": "received", "do": "foreign", "probability": 0.06, "seed": chance.random::<u32>()}),
        json!({"at": "committed", "do": "foreign", "probability": 0.06, "seed": chance.random::<u32>()}),
    ];
    if let Value::Array(others) = faulty_gateway(chance) {
        rules.extend(others);
    }
    rules.into()
}

/// What the bank's own people do once the gateway is sound again. Says for how many operations.
async fn requeue_all(site: &Site) -> Result<u32> {
    let mut wire = Wire::to(site.bank.address);
    let mut keys: Vec<String> = Vec::new();
    let mut after = json!(0);
    while !after.is_null() {
        let path = format!("/operator/attention?after={after}");
        let page = wire.need(Ask::new(Method::GET, &path).by_operator()).await?.json();
        let page_keys = page["data"].as_array().ok_or_else(|| format!("no list: {page}"))?;
        keys.extend(page_keys.iter().filter_map(|entry| entry["key"].as_str()).map(str::to_owned));
        after = page["next"].clone();
    }
    for key in &keys {
        let path = format!("/operator/operations/shop/{key}/requeue");
        let told = wire.need(Ask::new(Method::POST, &path).by_operator()).await?;
        if told.status != 200 {
            return Err(format!("{key} is not put back: {}", told.json()).into());
        }
    }
    Ok(keys.len().try_into()?)
}
