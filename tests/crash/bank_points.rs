//! The bank, killed at each point of its lab, alone and together with the till.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::json;

use crate::{
    deaths::Deaths,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
    },
    place::{LIFE_LIMIT, Place, SETTLE_LIMIT, SYNC},
};

/// The points of its lab, in the order in which a request comes by them.
const POINTS: [&str; 4] = ["received", "claimed", "gateway_answered", "saved"];
/// How many requests come by before the one that it dies of, one life after the other.
const SKIPS: [u32; 6] = [0, 1, 4, 2, 0, 3];
/// Clicks before each life, so that there are enough of them to come to the last pass.
const CLICKS: usize = 6;

#[tokio::test]
async fn a_bank_killed_at_each_of_its_points_alone_or_with_the_till_is_charged_once_each() -> Result<()> {
    let (began, deaths) = (Instant::now(), Deaths::default());
    let alone = try_join_all(POINTS.map(async |point| alone(point, &deaths).await.context(point)));
    let together = try_join_all(POINTS.map(async |point| together(point, &deaths).await.context(point)));
    tokio::try_join!(alone, together)?;
    println!("Died:\n{deaths}\n{:.1} s", began.elapsed().as_secs_f64());
    for point in POINTS {
        for place in [bank_at(point), bank_with_till_at(point), till_with_bank_at(point)] {
            ensure!(deaths.at(&place) > 1, "no {place}");
        }
    }
    Ok(())
}

fn bank_at(point: &str) -> String {
    format!("bank at {point}")
}

fn bank_with_till_at(point: &str) -> String {
    format!("bank at {point}, and the till at once")
}

fn till_with_bank_at(point: &str) -> String {
    format!("till when the bank died at {point}")
}

/// The bank dies and comes back while one `sync` goes on.
async fn alone(point: &str, deaths: &Deaths) -> Result<()> {
    let mut place = Place::new()?;
    let mut bank = Bank::start(place.folder.path()).await?;
    for skip in SKIPS {
        place.pay(CLICKS).await?;
        bank.faults(json!([{"at": point, "do": "abort", "skip": skip}])).await?;
        let mut sync = place.till.start("sync", SYNC, Some(&bank.url))?;
        deaths.aborted(&bank_at(point), bank.ended(LIFE_LIMIT).await?)?;
        bank.start_again().await?;
        let status = sync.ended(SETTLE_LIMIT).await?;
        ensure!(status.success(), "{status}: {}", sync.said()?);
    }
    end(&place, &bank).await
}

/// Both die, and nothing is settled in between.
async fn together(point: &str, deaths: &Deaths) -> Result<()> {
    let mut place = Place::new()?;
    let mut bank = Bank::start(place.folder.path()).await?;
    for skip in SKIPS {
        place.pay(CLICKS).await?;
        bank.faults(json!([{"at": point, "do": "abort", "skip": skip}])).await?;
        let mut sync = place.till.start("sync", SYNC, Some(&bank.url))?;
        deaths.aborted(&bank_with_till_at(point), bank.ended(LIFE_LIMIT).await?)?;
        deaths.killed(&till_with_bank_at(point), sync.kill()?)?;
        bank.start_again().await?;
    }
    place.settle(&bank.url).await?;
    end(&place, &bank).await
}

async fn end(place: &Place, bank: &Bank) -> Result<()> {
    let verdict = checker::one_charge_each(&place.till, bank, &place.keys).await?;
    let Verdict { clicked, approved, declined, .. } = verdict;
    ensure!(clicked == SKIPS.len() * CLICKS && approved + declined == clicked && declined > 0, "{verdict:?}");
    Ok(())
}
