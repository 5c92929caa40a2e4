//! The promise that all but the ceiling have to keep, checked from outside: one key, one charge, one answer, whatever happens.

use crate::{
    contender::Fault,
    run::{
        rows::Rows,
        stage::{Contender, Place, Running, Stage},
    },
    wire::{AMOUNT, Answer, Ask, Connection, Keys},
};
use anyhow::{Context, Result};
use protocol::Key;
use std::{
    fmt,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// Keys that are sent one time after the other.
const IN_TURN: u64 = 100;
/// Keys that are sent on all connections at once.
const AT_ONCE: u64 = 50;
/// Connections at once.
const CONNECTIONS: usize = 32;
/// How often it is killed under load.
const KILLS: u32 = 3;
/// How long the load lasts before that.
const LOAD_TIME: Duration = Duration::from_millis(700);
/// How long a key may be answered "in progress".
const FINAL_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A promise that was not kept, in contrast to a check that could not be made.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

pub(crate) fn promised(kept: bool, broken: impl FnOnce() -> String) -> Result<()> {
    if kept { Ok(()) } else { Err(Broken(broken()).into()) }
}

/// What was checked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Checked {
    /// Keys, each of which was charged once and stands in the books once.
    pub(crate) keys: u64,
    /// Answers to a known key, each with the bytes of the first.
    pub(crate) repeats: u64,
    /// Answers that were told before a kill.
    pub(crate) told: u64,
    /// Requests that a kill left without an answer.
    pub(crate) untold: u64,
}

/// A payment with what was told of it.
type Paid = (Ask, Option<Box<[u8]>>);

/// Checks one contender.
///
/// # Errors
/// [`Broken`] where it breaks the promise; anything else where that could not be found out.
pub(crate) async fn check(stage: &mut Stage, contender: Contender, broken: Option<Fault>) -> Result<Checked> {
    stage.empty_stub().await?;
    let place = stage.place()?;
    let running = stage.start(contender, &place, broken).await?;
    let mut checked = Checked::default();
    let mut next = 0;
    let paid = in_turn(&running, &mut next, &mut checked).await?;
    other_body(&running, &paid).await?;
    at_once(&running, &mut next, &mut checked).await?;
    charged_once(stage, next).await?;
    booked_once(stage, contender, &place, next).await?;
    let running = killed(stage, running, &place, broken, &mut next, &mut checked).await?;
    stage.clear(running, place).await?;
    checked.keys = next;
    Ok(checked)
}

fn new_ask(next: &mut u64) -> Result<Ask> {
    *next += 1;
    Ok(Ask { key: Keys::V7.make()?, number: *next, amount: AMOUNT })
}

async fn in_turn(running: &Running, next: &mut u64, checked: &mut Checked) -> Result<Vec<Paid>> {
    let mut connection = Connection::open(&running.url).await?;
    let mut paid = Vec::new();
    for _ in 0..IN_TURN {
        let ask = new_ask(next)?;
        let first = connection.pay(&ask).await?;
        first.approved()?;
        promised(!first.replayed, || "a new key is answered as a known one".into())?;
        let bytes: Box<[u8]> = first.body.into();
        for _ in 0..3 {
            let again = connection.pay(&ask).await?;
            same(&again, &bytes)?;
            checked.repeats += 1;
        }
        paid.push((ask, Some(bytes)));
    }
    Ok(paid)
}

fn same(again: &Answer<'_>, told: &[u8]) -> Result<()> {
    promised(again.status == 201, || format!("a key that was told as 201 is answered {}", again.status))?;
    promised(again.replayed, || "a known key is answered as a new one".into())?;
    promised(again.body == told, || "a known key is answered with other bytes".into())
}

async fn other_body(running: &Running, paid: &[Paid]) -> Result<()> {
    let mut connection = Connection::open(&running.url).await?;
    for (ask, _) in paid {
        let answer = connection.pay(&Ask { amount: AMOUNT + 1, ..*ask }).await?;
        promised(answer.status == 422, || format!("another body under a known key is answered {}", answer.status))?;
    }
    Ok(())
}

async fn at_once(running: &Running, next: &mut u64, checked: &mut Checked) -> Result<()> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(&running.url).await?);
    }
    for _ in 0..AT_ONCE {
        let ask = new_ask(next)?;
        let mut asking = JoinSet::new();
        for mut connection in connections.drain(..) {
            asking.spawn(async move { final_answer(&mut connection, &ask).await.map(|told| (told, connection)) });
        }
        let mut all: Option<Box<[u8]>> = None;
        while let Some(answered) = asking.join_next().await {
            let (told, connection) = answered??;
            connections.push(connection);
            let first = all.get_or_insert_with(|| told.clone());
            promised(*first == told, || "one key at once is answered with different bytes".into())?;
            checked.repeats += 1;
        }
    }
    Ok(())
}

/// Asks until there is a final answer, which has to be an approval.
async fn final_answer(connection: &mut Connection, ask: &Ask) -> Result<Box<[u8]>> {
    let start = Instant::now();
    loop {
        let answer = tokio::time::timeout(FINAL_TIME_MAX, connection.pay(ask)).await.context("no answer in time")??;
        match answer.status {
            201 => {
                answer.approved()?;
                return Ok(answer.body.into());
            }
            status @ (409 | 503) => {
                promised(start.elapsed() < FINAL_TIME_MAX, || format!("a key stays without a result ({status})"))?;
            }
            status => promised(false, || format!("a payment is answered {status}"))?,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Kills it under load, and asks again for all that was ever asked for.
async fn killed(
    stage: &mut Stage,
    mut running: Running,
    place: &Place,
    broken: Option<Fault>,
    keys: &mut u64,
    checked: &mut Checked,
) -> Result<Running> {
    for _ in 0..KILLS {
        let contender = running.contender;
        let mut paying = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let url = running.url.clone();
            paying.spawn(async move { pay_until_torn(&url).await });
        }
        tokio::time::sleep(LOAD_TIME).await;
        stage.kill(running).await?;
        let mut paid: Vec<Paid> = Vec::new();
        while let Some(ended) = paying.join_next().await {
            paid.extend(ended??);
        }
        *keys += paid.len() as u64;
        let told: Vec<Key> = paid.iter().filter(|(_, told)| told.is_some()).map(|(ask, _)| ask.key).collect();
        checked.told += told.len() as u64;
        checked.untold += (paid.len() - told.len()) as u64;
        if let Some(rows) = Rows::read(stage, contender, place).await? {
            rows.hold(&told)?;
        }
        running = stage.start(contender, place, broken).await?;
        ask_again(&running, paid).await?;
        charged_once(stage, *keys).await?;
        booked_once(stage, contender, place, *keys).await?;
    }
    Ok(running)
}

/// Pays until the connection is torn by the kill. The last payment has no answer.
async fn pay_until_torn(url: &str) -> Result<Vec<Paid>> {
    let mut connection = Connection::open(url).await?;
    let mut paid: Vec<Paid> = Vec::new();
    loop {
        let ask = new_ask(&mut (paid.len() as u64))?;
        let Ok(answer) = connection.pay(&ask).await else {
            paid.push((ask, None));
            return Ok(paid);
        };
        answer.approved()?;
        paid.push((ask, Some(answer.body.into())));
    }
}

async fn ask_again(running: &Running, mut paid: Vec<Paid>) -> Result<()> {
    let mut asking = JoinSet::new();
    let share = paid.len().div_ceil(CONNECTIONS).max(1);
    while !paid.is_empty() {
        let some = paid.split_off(paid.len().saturating_sub(share));
        let mut connection = Connection::open(&running.url).await?;
        asking.spawn(async move {
            for (ask, told) in some {
                match told {
                    Some(told) => same(&connection.pay(&ask).await?, &told)?,
                    None => drop(final_answer(&mut connection, &ask).await?),
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    Ok(())
}

/// Each till's key was charged under one gateway key, and that never stood for another request.
async fn charged_once(stage: &Stage, keys: u64) -> Result<()> {
    let ledger = stage.ledger().await?;
    promised(ledger.distinct_keys == keys, || {
        format!("{keys} keys are charged under {} keys of the gateway", ledger.distinct_keys)
    })?;
    promised(ledger.reused == 0, || format!("{} gateway keys stand for other requests", ledger.reused))
}

/// Each till's key has one payment and two postings in the books, and nothing else is there.
async fn booked_once(stage: &mut Stage, contender: Contender, place: &Place, keys: u64) -> Result<()> {
    Rows::read(stage, contender, place).await?.map_or(Ok(()), |rows| rows.add_up(keys))
}
