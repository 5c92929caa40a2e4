//! Filling the file of Kassa's bank with finished payments while the bank is stopped.
//!
//! The bank makes the file and one payment in it; what is added are copies of that payment's rows, in every column as the bank wrote
//! it but for what names the operation: numbers, keys, ids and times. So they follow the bank's own schema.

use crate::{
    run::stage::{Contender, Place, Stage},
    wire::{AMOUNT, Ask, Connection, Keys},
};
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use measure::rows::Template;
use protocol::{Key, Payment};
use rusqlite::{Connection as Sqlite, types::Value};
use std::{fs::File, path::Path};

/// Rows between two commits.
const BATCH: u64 = 20_000;
/// The keys were used over this time up to now: less than the time for which a response is stored.
const SPAN: SignedDuration = SignedDuration::from_hours(10);
/// Keys that are sent to the bank afterwards.
const SAMPLES: u64 = 20;

/// Makes a place with that many finished payments, and has the bank replay some of them.
pub(crate) async fn filled(stage: &mut Stage, payments: u64, keys: Keys) -> Result<Place> {
    let place = stage.place()?;
    let running = stage.start(Contender::Kassa, &place, None).await?;
    let ask = Ask { key: keys.make()?, number: 0, amount: AMOUNT };
    let body = Connection::open(&running.url).await?.pay(&ask).await?.body.to_vec();
    stage.end(running).await?;
    let (db, first) = (stage.db(&place), serde_json::from_slice(&body).context("the bank's first answer")?);
    let added = payments.saturating_sub(1);
    let samples = tokio::task::spawn_blocking(move || fill(&db, &first, added, keys)).await??;
    let running = stage.start(Contender::Kassa, &place, None).await?;
    let mut connection = Connection::open(&running.url).await?;
    for (key, body) in samples {
        let answer = connection.pay(&Ask { key, ..ask }).await?;
        let as_filled = answer.status == 201 && answer.replayed && answer.body == body;
        ensure!(as_filled, "the bank does not replay a key that was filled in: {}", answer.status);
    }
    stage.end(running).await?;
    Ok(place)
}

/// The rows of a table that has just those of one payment.
fn rows_of_one(db: &Sqlite, table: &'static str, rows: usize) -> Result<Vec<Template>> {
    let read = Template::read(db, table, "", [])?;
    ensure!(read.len() == rows, "{table} holds {} rows after the first payment", read.len());
    Ok(read)
}

fn insert(template: &Template, db: &Sqlite, named: &[(&str, Value)]) -> Result<()> {
    template.insert(db, &template.copy(named))
}

fn fill(path: &Path, first: &Payment, added: u64, keys: Keys) -> Result<Vec<(Key, Vec<u8>)>> {
    let db = Sqlite::open(path)?;
    // Quick while it is filled; what was filled is synced before anybody relies on it.
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA foreign_keys = ON")?;
    let operation = rows_of_one(&db, "operations", 1)?;
    let call = rows_of_one(&db, "gateway_calls", 1)?;
    let payment = rows_of_one(&db, "payments", 1)?;
    let postings = rows_of_one(&db, "postings", 2)?;
    let from = Timestamp::now() - SPAN;
    let every = SPAN.as_millis() as f64 / added.max(1) as f64;
    let mut samples = Vec::new();
    for begin in (0..added).step_by(usize::try_from(BATCH)?) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for number in begin..(begin + BATCH).min(added) {
            let at = from + SignedDuration::from_millis((number as f64 * every) as i64);
            let at = Timestamp::from_millisecond(at.as_millisecond())?;
            let key = if keys == Keys::V7 { Key::v7(at, rand::random()) } else { keys.make()? };
            let copy = copied(first, key, at);
            let body = serde_json::to_vec(&copy)?;
            let id = Value::Integer(i64::try_from(number)? + 2);
            let (at_ms, paid) = (Value::Integer(at.as_millisecond()), Value::Text(copy.id.clone()));
            let named = [
                ("id", id.clone()),
                ("key", Value::Blob(key.as_bytes().to_vec())),
                ("subject", paid.clone()),
                ("location", Value::Text(format!("{}/{}", protocol::PAYMENTS_PATH, copy.id))),
                ("body", Value::Blob(body.clone())),
                ("created_ms", at_ms.clone()),
                ("completed_ms", at_ms),
            ];
            insert(&operation[0], &db, &named)?;
            // As random as the hash that the bank makes.
            let gateway_key = Value::Blob(rand::random::<[u8; 16]>().to_vec());
            insert(&call[0], &db, &[("operation", id.clone()), ("key", gateway_key)])?;
            insert(&payment[0], &db, &[("operation", id.clone()), ("id", paid)])?;
            for posting in &postings {
                insert(posting, &db, &[("operation", id.clone())])?;
            }
            if number.is_multiple_of((added / SAMPLES).max(1)) {
                samples.push((key, body));
            }
        }
        db.execute_batch("COMMIT")?;
    }
    db.execute_batch("PRAGMA synchronous = FULL")?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(db);
    File::open(path)?.sync_all()?;
    Ok(samples)
}

/// The payment under another key, with an id of that time as the bank makes it.
fn copied(first: &Payment, key: Key, at: Timestamp) -> Payment {
    const BASE_32: [u8; 32] = *b"0123456789abcdefghjkmnpqrstvwxyz";
    let bits = u128::from_be_bytes(*Key::v7(at, rand::random()).as_bytes());
    let id: String = (0..26).rev().map(|place| char::from(BASE_32[(bits >> (5 * place)) as usize & 31])).collect();
    Payment { id: format!("pay_{id}"), operation: key, short_code: key.short_code(), created_at: at, ..first.clone() }
}
