//! The job queue effectum, doing what the outbox's bench asks of it; it answers in lines of JSON.
//!
//! `latency FILE COUNT`: adds jobs one by one, each timed from the call to the answer. `drain FILE COUNT URL SECRET`: adds jobs, and
//! then runs them all, each a payment at a bank. `work FILE COUNT URL SECRET`: adds jobs, tells each, and runs them as they come,
//! until none is left. With `--forced` in front: WAL and FULL, whatever effectum asks for.

mod connections;

use effectum::{Job, JobRunner, Queue, RunningJob, Worker};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    error::Error,
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

const VERSION: &str = "effectum 0.7.0";
/// Jobs at once: as many as the outbox has calls in flight.
const CONCURRENCY: u16 = 4;
/// Jobs that are added together before they are run.
const ADDED_TOGETHER: usize = 500;

/// A payment to make.
#[derive(Debug, Serialize, Deserialize)]
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

    fn job(&self) -> Result<Job> {
        Ok(Job::builder("pay").json_payload(self)?.build())
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
    fn new(url: &str, secret: &str) -> Result<Arc<Self>> {
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Arc::new(Self { http, url: format!("{url}/v1/payments"), secret: secret.to_owned() }))
    }
}

async fn pay(job: RunningJob, bank: Arc<Bank>) -> Result<(), String> {
    let payment: Payment = job.json_payload().map_err(|error| error.to_string())?;
    let request = bank
        .http
        .post(&bank.url)
        .header(AUTHORIZATION, format!("Bearer {}", bank.secret))
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", payment.key.to_string())
        .body(payment.body);
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    answer.bytes().await.map_err(|error| error.to_string())?;
    if status == 201 { Ok(()) } else { Err(format!("answered {status}")) }
}

async fn worker(queue: &Queue, bank: Arc<Bank>) -> Result<Worker> {
    let pay = JobRunner::builder("pay", pay).build();
    Ok(Worker::builder(queue, bank).max_concurrency(CONCURRENCY).jobs([pay]).build().await?)
}

async fn none_left(queue: &Queue) -> Result<()> {
    loop {
        let active = queue.num_active_jobs().await?;
        if active.pending + active.running == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn say(event: &serde_json::Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    Ok(out.flush()?)
}

async fn latency(queue: &Queue, count: usize) -> Result<()> {
    let settings = connections::settings()?;
    let mut latencies_us = Vec::with_capacity(count);
    for _ in 0..count {
        let payment = Payment::new();
        let begin = Instant::now();
        queue.add_job(payment.job()?).await?;
        latencies_us.push(begin.elapsed().as_micros() as u64);
    }
    say(&json!({"event": "latency", "version": VERSION, "settings": settings, "latencies_us": latencies_us}))
}

async fn drain(queue: &Queue, count: usize, bank: Arc<Bank>) -> Result<()> {
    let jobs = (0..count).map(|_| Payment::new().job()).collect::<Result<Vec<_>>>()?;
    for together in jobs.chunks(ADDED_TOGETHER) {
        queue.add_jobs(together.to_vec()).await?;
    }
    let settings = connections::settings()?;
    let begin = Instant::now();
    let worker = worker(queue, bank).await?;
    none_left(queue).await?;
    let seconds = begin.elapsed().as_secs_f64();
    worker.unregister(None).await?;
    say(&json!({"event": "drained", "version": VERSION, "settings": settings, "seconds": seconds}))
}

async fn work(queue: &Queue, count: usize, bank: Arc<Bank>) -> Result<()> {
    let worker = worker(queue, bank).await?;
    for _ in 0..count {
        let payment = Payment::new();
        queue.add_job(payment.job()?).await?;
        say(&json!({"event": "saved", "key": payment.key}))?;
    }
    none_left(queue).await?;
    worker.unregister(None).await?;
    say(&json!({"event": "done"}))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let forced = arguments.first() == Some(&"--forced");
    if forced {
        arguments.remove(0);
    }
    connections::watch(forced);
    let open = |file: &str| {
        let file = file.to_owned();
        async move { Queue::new(Path::new(&file)).await }
    };
    match arguments[..] {
        ["latency", file, count] => latency(&open(file).await?, count.parse()?).await,
        ["drain", file, count, url, secret] => drain(&open(file).await?, count.parse()?, Bank::new(url, secret)?).await,
        ["work", file, count, url, secret] => work(&open(file).await?, count.parse()?, Bank::new(url, secret)?).await,
        _ => Err("latency FILE COUNT | drain FILE COUNT URL SECRET | work FILE COUNT URL SECRET".into()),
    }
}
