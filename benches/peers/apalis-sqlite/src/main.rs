//! The job queue apalis-sqlite, doing what the outbox's bench asks of it; it answers in lines of JSON.
//!
//! `latency FILE COUNT`: adds jobs one by one, each timed from the call to the answer. `drain FILE COUNT URL SECRET`: adds jobs, and
//! then runs them all, each a payment at a bank. `work FILE COUNT URL SECRET`: adds jobs, tells each, and runs them as they come,
//! until none is left. With `--forced` in front: WAL and FULL on every connection; without it, what its `setup` makes of them.

use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteStorage};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use std::{
    collections::BTreeSet,
    error::Error,
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;

type Failure = Box<dyn Error + Send + Sync>;

const VERSION: &str = "apalis-sqlite 1.0.0";
/// Jobs at once: as many as the outbox has calls in flight.
const CONCURRENCY: usize = 4;
/// How often it looks for new jobs while it has none.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Jobs that are added together before they are run.
const ADDED_TOGETHER: usize = 500;

/// A payment to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payment {
    key: Uuid,
    body: String,
}

impl Payment {
    fn new() -> Self {
        let key = Uuid::now_v7();
        let reference = &Uuid::now_v7().simple().to_string()[..12];
        let body = format!(r#"{{"amount":2490,"currency":"EUR","card":"tok_visa","reference":"till-1/{reference}"}}"#);
        Self { key, body }
    }
}

/// Whom to pay at.
#[derive(Debug)]
struct Bank {
    http: reqwest::Client,
    url: String,
    secret: String,
}

impl Bank {
    fn new(url: &str, secret: &str) -> Result<Arc<Self>, Failure> {
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Arc::new(Self { http, url: format!("{url}/v1/payments"), secret: secret.to_owned() }))
    }
}

async fn pay(payment: Payment, bank: Data<Arc<Bank>>) -> Result<(), BoxDynError> {
    let request = bank
        .http
        .post(&bank.url)
        .header(AUTHORIZATION, format!("Bearer {}", bank.secret))
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", payment.key.to_string())
        .body(payment.body);
    let answer = request.send().await?;
    let status = answer.status();
    answer.bytes().await?;
    if status == 201 { Ok(()) } else { Err(format!("answered {status}").into()) }
}

/// Opens the file as its documentation does, or with WAL and FULL on every connection.
async fn open(file: &str, forced: bool) -> Result<SqlitePool, Failure> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options.clone()).await?;
    SqliteStorage::setup(&pool).await?;
    if !forced {
        return Ok(pool);
    }
    pool.close().await;
    let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    Ok(SqlitePool::connect_with(options).await?)
}

/// What all open connections say of themselves: they may differ.
async fn settings(pool: &SqlitePool) -> Result<Vec<serde_json::Value>, Failure> {
    let mut connections = Vec::new();
    while let Some(connection) = pool.try_acquire() {
        connections.push(connection);
    }
    let (mut journal, mut synchronous) = (BTreeSet::new(), BTreeSet::new());
    for connection in &mut connections {
        let (mode,): (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut **connection).await?;
        let (level,): (i64,) = sqlx::query_as("PRAGMA synchronous").fetch_one(&mut **connection).await?;
        journal.insert(mode);
        synchronous.insert(level.to_string());
    }
    let connection = connections.first_mut().ok_or("no connection is open")?;
    let (version,): (String,) = sqlx::query_as("SELECT sqlite_version()").fetch_one(&mut **connection).await?;
    let all = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
    Ok(vec![
        json!({"name": "journal_mode", "value": all(journal)}),
        json!({"name": "synchronous", "value": all(synchronous)}),
        json!({"name": "version", "value": version}),
    ])
}

fn storage(pool: &SqlitePool) -> SqliteStorage<Payment> {
    SqliteStorage::new(pool).with_config(Config::default().queue("payments"))
}

/// Runs jobs for as long as it is waited for.
async fn run(pool: &SqlitePool, bank: Arc<Bank>) -> Failure {
    // A name that is new each time: the same one again is refused while its old owner may live.
    let name = format!("payer-{}", Uuid::now_v7());
    let worker = WorkerBuilder::new(name)
        .backend(storage(pool).poll_with_strategy(Strategy::new().interval(LOOK_EVERY)))
        .data(bank)
        .concurrency(CONCURRENCY)
        .parallelize(tokio::spawn)
        .build(pay);
    match worker.run().await {
        Ok(()) => "the worker ended".into(),
        Err(error) => format!("the worker ended: {error}").into(),
    }
}

async fn none_left(pool: &SqlitePool) -> Result<(), Failure> {
    loop {
        let (left,): (i64,) =
            sqlx::query_as("SELECT count(*) FROM Jobs WHERE status <> 'Done'").fetch_one(pool).await?;
        if left == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn say(event: &serde_json::Value) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    Ok(out.flush()?)
}

async fn latency(pool: &SqlitePool, count: usize) -> Result<(), Failure> {
    let mut storage = storage(pool);
    let mut latencies_us = Vec::with_capacity(count);
    for _ in 0..count {
        let payment = Payment::new();
        let begin = Instant::now();
        storage.push(payment).await?;
        latencies_us.push(begin.elapsed().as_micros() as u64);
    }
    let settings = settings(pool).await?;
    say(&json!({"event": "latency", "version": VERSION, "settings": settings, "latencies_us": latencies_us}))
}

async fn drain(pool: &SqlitePool, count: usize, bank: Arc<Bank>) -> Result<(), Failure> {
    let mut storage = storage(pool);
    let jobs: Vec<_> = (0..count).map(|_| Payment::new()).collect();
    for together in jobs.chunks(ADDED_TOGETHER) {
        storage.push_bulk(together.to_vec()).await?;
    }
    let begin = Instant::now();
    tokio::select! {
        error = run(pool, bank) => return Err(error),
        left = none_left(pool) => left?,
    }
    let seconds = begin.elapsed().as_secs_f64();
    let settings = settings(pool).await?;
    say(&json!({"event": "drained", "version": VERSION, "settings": settings, "seconds": seconds}))
}

async fn work(pool: &SqlitePool, count: usize, bank: Arc<Bank>) -> Result<(), Failure> {
    let add = async {
        let mut storage = storage(pool);
        for _ in 0..count {
            let payment = Payment::new();
            let key = payment.key;
            storage.push(payment).await?;
            say(&json!({"event": "saved", "key": key}))?;
        }
        none_left(pool).await
    };
    tokio::select! {
        error = run(pool, bank) => return Err(error),
        added = add => added?,
    }
    say(&json!({"event": "done"}))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let forced = arguments.first() == Some(&"--forced");
    if forced {
        arguments.remove(0);
    }
    match arguments[..] {
        ["latency", file, count] => latency(&open(file, forced).await?, count.parse()?).await,
        ["drain", file, count, url, secret] => {
            drain(&open(file, forced).await?, count.parse()?, Bank::new(url, secret)?).await
        }
        ["work", file, count, url, secret] => {
            work(&open(file, forced).await?, count.parse()?, Bank::new(url, secret)?).await
        }
        _ => Err("latency FILE COUNT | drain FILE COUNT URL SECRET | work FILE COUNT URL SECRET".into()),
    }
}
