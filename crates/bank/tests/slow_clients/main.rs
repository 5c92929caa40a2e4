//! Clients that are slow, many or broken, against the real process: what it costs, and that nobody else notices.
#![cfg(target_os = "linux")]

mod crowd;
#[path = "../program/mod.rs"]
mod program;

use crowd::{bodies_that_never_come, idle, never_reading, slow_bodies, slow_heads};
use program::{ALONE, BANK, LIMIT, Life, Program, Result};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{process::Command, task::JoinSet, time::timeout};
use uuid::Uuid;

const SECRET: &str = "sk_slow";
/// What a client that does all right waits for its answer at most, on a machine that does other things too.
const IN_TIME: Duration = Duration::from_secs(3);
/// What the bank may grow by for a client, in bytes: its buffers, and those of what it asks.
const BYTES_PER_CLIENT_MAX: u64 = 32 << 10;

/// The runtime's own threads for what blocks come and go.
const THREADS_MORE_MAX: u64 = 2;

/// A running bank with its own gateway.
struct Bank {
    dir: TempDir,
    program: Program,
    life: Life,
    gateway_url: String,
    http: Client,
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    threads: u64,
    resident_bytes: u64,
}

impl Bank {
    async fn start(command: Option<Command>) -> Result<Self> {
        // This process holds the other ends.
        bank::open_files::raise_limit();
        let dir = tempfile::tempdir()?;
        let program = Program::new(dir.path(), "bank", &format!("serve --db bank.db --lab --token shop={SECRET}"))?;
        let mut life = command.map_or_else(|| program.start(), |command| program.start_by(command))?;
        let ready = life.ready().await?;
        let gateway_url = ready["gateway_url"].as_str().ok_or("no gateway")?.to_owned();
        // A connection for each request, as a client has that comes anew.
        let http = Client::builder().no_proxy().pool_max_idle_per_host(0).retry(reqwest::retry::never()).build()?;
        Ok(Self { dir, program, life, gateway_url, http })
    }

    async fn pay(&self, key: &str) -> Result<Response> {
        Ok(pay(&self.http, self.program.address, key).await?)
    }

    /// Pays as somebody who knows nothing of the others, and says how long it took.
    async fn pay_in_time(&self) -> Result<Duration> {
        let began = Instant::now();
        let paid = timeout(IN_TIME, self.pay(&Uuid::now_v7().to_string())).await;
        let status = paid.map_err(|_| format!("no answer within {IN_TIME:?}"))??.status();
        if status == 201 { Ok(began.elapsed()) } else { Err(format!("{status}").into()) }
    }

    /// Pays for a while; the longest that it took.
    async fn keep_paying(&self, how_long: Duration) -> Result<Duration> {
        let (began, mut longest) = (Instant::now(), Duration::ZERO);
        while began.elapsed() < how_long {
            longest = longest.max(self.pay_in_time().await?);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(longest)
    }

    fn held(&self) -> Result<Held> {
        let pid = fs::read_to_string(self.dir.path().join("bank.db.lock"))?;
        let status = fs::read_to_string(format!("/proc/{}/status", pid.trim()))?;
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let (threads, kib) = number("Threads:").zip(number("VmRSS:")).ok_or("no such numbers")?;
        Ok(Held { threads, resident_bytes: kib << 10 })
    }

    async fn lab(&self, faults: &Value) -> Result {
        let url = format!("http://{}/lab/faults", self.program.address);
        let status = self.http.put(url).json(faults).send().await?.status();
        if status == 200 { Ok(()) } else { Err(format!("faults: {status}").into()) }
    }

    async fn state(&self, key: &str) -> Result<Value> {
        let url = format!("http://{}/v1/operations/{key}", self.program.address);
        Ok(self.http.get(url).bearer_auth(SECRET).send().await?.json::<Value>().await?["state"].take())
    }

    /// It lives, nothing in it has panicked, and it is killed.
    async fn end(mut self) -> Result {
        assert!(timeout(Duration::ZERO, self.life.ended()).await.is_err(), "it has ended by itself");
        self.life.kill().await?;
        let log = self.program.log()?;
        assert!(!log.contains("panicked") && !log.contains(" ERROR "), "{log}");
        Ok(())
    }
}

async fn pay(http: &Client, bank: SocketAddr, key: &str) -> reqwest::Result<Response> {
    let body = json!({"amount": 290, "currency": "EUR", "card": "tok_visa", "reference": "till-1/1"});
    let request = http.post(format!("http://{bank}/v1/payments")).bearer_auth(SECRET);
    request.header("Idempotency-Key", key).json(&body).send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_slow_and_unreading_clients_cost_little_and_hold_nobody_up() -> Result {
    let _alone = ALONE.lock().await;
    let bank = Bank::start(None).await?;
    let alone = bank.keep_paying(Duration::from_secs(1)).await?;
    let before = bank.held()?;
    let address = bank.program.address;
    let crowd = (
        idle(address, 2_000).await?,
        slow_heads(address, 200).await?,
        slow_bodies(address, SECRET, 100).await?,
        never_reading(address, 50).await?,
    );
    let longest = bank.keep_paying(Duration::from_secs(6)).await?;
    let with_all = bank.held()?;
    println!("longest payment: alone {alone:?}, in the crowd {longest:?}; {before:?}, {with_all:?}");
    assert!(with_all.threads <= before.threads + THREADS_MORE_MAX, "a thread for a client");
    let grown = with_all.resident_bytes.saturating_sub(before.resident_bytes);
    assert!(grown < 2_350 * BYTES_PER_CLIENT_MAX, "grown by {grown} bytes");
    drop(crowd);
    bank.pay_in_time().await?;
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_there_are_places_take_them_from_those_who_ask_for_nothing() -> Result {
    let _alone = ALONE.lock().await;
    let bank = Bank::start(None).await?;
    // Soon enough that none of them can have been sent away for being slow.
    let crowd = timeout(Duration::from_secs(10), idle(bank.program.address, 5_000)).await??;
    println!("longest payment: {:?}", bank.keep_paying(Duration::from_secs(3)).await?);
    drop(crowd);
    bank.end().await
}

/// The bank with as many open files as many systems give, and with no right to more: enough for 448 connections.
fn few_files() -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -n 1024 && exec \"$0\" \"$@\"", BANK]);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_never_come_keep_nobody_out() -> Result {
    let _alone = ALONE.lock().await;
    let bank = Bank::start(Some(few_files())).await?;
    let address = bank.program.address;
    // With a secret and without: more than there are places, each.
    let crowd =
        (bodies_that_never_come(address, SECRET, 500).await?, bodies_that_never_come(address, "sk_none", 500).await?);
    println!("longest payment: {:?}", bank.keep_paying(Duration::from_secs(5)).await?);
    drop(crowd);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn few_open_files_are_enough() -> Result {
    let _alone = ALONE.lock().await;
    let bank = Bank::start(Some(few_files())).await?;
    let crowd = (idle(bank.program.address, 1_200).await?, slow_heads(bank.program.address, 300).await?);
    println!("longest payment: {:?}", bank.keep_paying(Duration::from_secs(3)).await?);
    drop(crowd);
    bank.end().await
}

/// Repeats of one running key: more than may wait for it.
const REPEATS: usize = 300;
/// Of these, how many may wait. The contract leaves the number open; the engine's default stands here.
const WAITERS_PER_KEY: usize = 256;
/// Other running keys, and repeats of each.
const OTHER_KEYS: usize = 30;
const REPEATS_OF_OTHERS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn those_who_wait_for_a_running_key_are_bounded_and_cost_no_thread_and_nothing_runs_twice() -> Result {
    let _alone = ALONE.lock().await;
    let bank = Bank::start(None).await?;
    bank.pay_in_time().await?;
    let before = bank.held()?;
    let keys: Vec<String> = (0..=OTHER_KEYS).map(|_| Uuid::now_v7().to_string()).collect();
    let hang = |key| json!({"at": "claimed", "do": "hang", "key": key});
    bank.lab(&keys.iter().map(hang).collect()).await?;
    let mut asking = JoinSet::new();
    let mut ask = |key: &str, times| {
        for _ in 0..times {
            let (http, program, key) = (bank.http.clone(), bank.program.address, key.to_owned());
            asking.spawn(async move {
                let began = Instant::now();
                pay(&http, program, &key).await.map(|response| (key, response, began.elapsed()))
            });
        }
    };
    for key in &keys {
        ask(key, 1);
    }
    for key in &keys {
        let began = Instant::now();
        while bank.state(key).await? != "processing" {
            assert!(began.elapsed() < LIMIT, "{key} is not claimed");
        }
    }
    ask(&keys[0], REPEATS);
    for key in &keys[1..] {
        ask(key, REPEATS_OF_OTHERS);
    }
    let longest = bank.keep_paying(Duration::from_secs(2)).await?;
    let with_all = bank.held()?;
    assert!(with_all.threads <= before.threads + THREADS_MORE_MAX, "a thread for one who waits");
    let mut at_once = 0;
    while let Some(answer) = asking.join_next().await {
        let (key, response, took) = answer??;
        assert_eq!(response.status(), 409, "{key}");
        assert!(response.headers().contains_key("retry-after") && took < Duration::from_secs(8), "{took:?}");
        at_once += usize::from(key == keys[0] && took < Duration::from_secs(2));
    }
    println!("longest payment {longest:?}; {at_once} of {REPEATS} repeats did not wait; {before:?}, {with_all:?}");
    assert!(at_once >= REPEATS + 1 - WAITERS_PER_KEY, "all waited");
    let let_go = bank.http.delete(format!("http://{}/lab/faults", bank.program.address)).send().await?;
    assert_eq!(let_go.status(), 204);
    for key in &keys {
        assert_eq!(bank.pay(key).await?.status(), 201, "{key}");
    }
    let ledger: Value = bank.http.get(format!("{}/lab/ledger", bank.gateway_url)).send().await?.json().await?;
    assert!(ledger["requests"] == ledger["distinct_keys"] && ledger["charges"] == ledger["requests"], "{ledger}");
    bank.end().await
}
