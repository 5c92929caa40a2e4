//! The bank as a process: what whoever starts it relies on.
#![cfg(unix)]

use reqwest::Client;
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";
/// The longest that any step may take.
const LIMIT: Duration = Duration::from_secs(20);

/// `kassa-bank` in that folder, with nothing in its environment but what a test adds.
fn command(dir: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-bank"));
    command.args(line.split_whitespace()).current_dir(dir).env_clear().kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that has said that it is ready.
struct Running {
    ready: Value,
    child: Child,
}

impl Running {
    async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        timeout(LIMIT, BufReader::new(out).read_line(&mut line)).await??;
        Ok(Self { ready: serde_json::from_str(&line)?, child })
    }

    fn url(&self) -> &str {
        self.ready["url"].as_str().unwrap_or_default()
    }

    fn signal(&self, name: &str) -> Result {
        let pid = self.child.id().ok_or("it has ended")?.to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status()?;
        if sent.success() { Ok(()) } else { Err("the signal was not sent".into()) }
    }

    /// Waits for the end, and gives what was logged.
    async fn end(mut self) -> Result<(ExitStatus, String)> {
        let mut log = String::new();
        timeout(LIMIT, self.child.stderr.take().ok_or("no log")?.read_to_string(&mut log)).await??;
        Ok((timeout(LIMIT, self.child.wait()).await??, log))
    }
}

/// Starts what can't start: its exit code, and the one line on standard error.
async fn refused(mut command: Command) -> Result<(Option<i32>, String)> {
    let output = timeout(LIMIT, command.output()).await??;
    let said = String::from_utf8(output.stderr)?;
    assert!(output.stdout.is_empty() && said.lines().count() == 1, "{said}");
    Ok((output.status.code(), said))
}

fn http() -> Result<Client> {
    Ok(Client::builder().no_proxy().build()?)
}

#[tokio::test]
async fn the_ready_line_says_how_to_pay_and_the_log_no_secret() -> Result {
    let dir = tempfile::tempdir()?;
    let mut start = command(dir.path(), "serve --listen 127.0.0.1:0");
    start.env("RUST_LOG", "trace");
    let bank = Running::start(start).await?;
    assert_eq!(bank.ready["ready"], true);
    let (gateway, secret) =
        (bank.ready["gateway_url"].clone(), bank.ready["secret"].as_str().ok_or("no secret")?.to_owned());
    assert!(gateway.as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{gateway}");
    let body = json!({"amount": 290, "currency": "EUR", "card": "tok_visa"});
    let pay = http()?.post(format!("{}/v1/payments", bank.url())).bearer_auth(&secret);
    assert_eq!(pay.header("Idempotency-Key", KEY).json(&body).send().await?.status(), 201);
    let wrong = http()?.get(format!("{}/v1/policy", bank.url())).bearer_auth("sk_wrong");
    assert_eq!(wrong.send().await?.status(), 401);
    assert_eq!(http()?.get(format!("{}/lab/faults", bank.url())).send().await?.status(), 404, "no lab");
    bank.signal("TERM")?;
    let (status, log) = bank.end().await?;
    assert_eq!(status.code(), Some(0), "{log}");
    for word in [secret.as_str(), "sk_", "tok_"] {
        assert!(!log.contains(word), "{word} in {log}");
    }
    Ok(())
}

#[tokio::test]
async fn only_its_own_bank_moves_money_at_a_gateway_that_was_brought_along() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = Running::start(command(dir.path(), "serve --listen 127.0.0.1:0 --token m=sk_m1 --lab")).await?;
    let gateway = bank.ready["gateway_url"].as_str().ok_or("no gateway")?.to_owned();
    let charge = json!({"amount": 5, "currency": "EUR", "card": "tok_visa", "reference": "r", "offline": false});
    for secret in ["", "sk_m1"] {
        let asked = http()?.post(format!("{gateway}/v1/charges")).bearer_auth(secret).header("Idempotency-Key", KEY);
        assert_eq!(asked.json(&charge).send().await?.status(), 401);
    }
    let ledger: Value = http()?.get(format!("{gateway}/lab/ledger")).send().await?.json().await?;
    assert_eq!(ledger["charges"], 0, "the lab is open to all, as --lab says");
    let body = json!({"amount": 290, "currency": "EUR", "card": "tok_visa"});
    let pay = http()?.post(format!("{}/v1/payments", bank.url())).bearer_auth("sk_m1");
    assert_eq!(pay.header("Idempotency-Key", KEY).json(&body).send().await?.status(), 201);
    Ok(())
}

#[tokio::test]
async fn a_second_start_on_the_same_store_is_refused() -> Result {
    let dir = tempfile::tempdir()?;
    let first = Running::start(command(dir.path(), "gateway --listen 127.0.0.1:0 --db g.db")).await?;
    let (code, said) = refused(command(dir.path(), "gateway --listen 127.0.0.1:0 --db g.db")).await?;
    assert_eq!(code, Some(1));
    assert!(said.contains("in use by another process"), "{said}");
    first.signal("INT")?;
    assert_eq!(first.end().await?.0.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn what_fails_is_said_once() -> Result {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("file"), "")?;
    let (code, said) = refused(command(dir.path(), "gateway --listen 127.0.0.1:0 --db file/g.db")).await?;
    assert_eq!((code, said.matches("os error").count()), (Some(1), 1), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_wrong_flag_is_one_line_and_makes_nothing() -> Result {
    let dir = tempfile::tempdir()?;
    for line in [
        "serve --gateway-url nonsense",
        "serve --database-url postgres://sk_secret",
        "serve --token m=sk_secret sk_secret",
        "serve --listen 0.0.0.0:0",
        "serve --wait 3",
        "run",
        "",
    ] {
        let (code, said) = refused(command(dir.path(), line)).await?;
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(!said.contains("sk_secret"), "{said}");
    }
    for (name, value) in
        [("KASSA_BANK_LAB", "sk_secret"), ("KASSA_BANK_WAIT", "sk_secret"), ("KASSA_BANK_TOKENS", "sk_secret")]
    {
        let mut start = command(dir.path(), "serve");
        start.env(name, value);
        let (code, said) = refused(start).await?;
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(!said.contains("sk_secret"), "{said}");
    }
    assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn every_flag_has_a_variable_and_the_ready_address_is_served() -> Result {
    let dir = tempfile::tempdir()?;
    let mut start = command(dir.path(), "serve");
    start.env("KASSA_BANK_LISTEN", "0.0.0.0:0").env("KASSA_BANK_DB", "other.db");
    start.env("KASSA_BANK_TOKENS", "shop=sk_1234,shop=sk_5678").env("KASSA_BANK_RETENTION", "2h");
    let bank = Running::start(start).await?;
    assert!(bank.url().starts_with("http://0.0.0.0:") && bank.ready["secret"].is_null(), "{}", bank.ready);
    for secret in ["sk_1234", "sk_5678"] {
        let policy = http()?.get(format!("{}/v1/policy", bank.url())).bearer_auth(secret).send().await?;
        assert_eq!(policy.status(), 200);
        assert_eq!(policy.json::<Value>().await?["retention_s"], 7_200);
    }
    assert!(dir.path().join("other.db").exists());
    Ok(())
}

#[tokio::test]
async fn told_to_end_it_refuses_what_is_new_and_answers_what_runs() -> Result {
    let dir = tempfile::tempdir()?;
    let bank =
        Running::start(command(dir.path(), "serve --listen 127.0.0.1:0 --token m=sk_m1 --lab --wait 10s")).await?;
    let (http, url) = (http()?, bank.url().to_owned());
    let fault = json!([{"at": "claimed", "do": "delay", "ms": 2_000}]);
    assert_eq!(http.put(format!("{url}/lab/faults")).json(&fault).send().await?.status(), 200);
    let body = json!({"amount": 290, "currency": "EUR", "card": "tok_visa"});
    let pay = http.post(format!("{url}/v1/payments")).bearer_auth("sk_m1").header("Idempotency-Key", KEY).json(&body);
    let paying = tokio::spawn(pay.send());
    let policy = async || http.get(format!("{url}/v1/policy")).bearer_auth("sk_m1").send().await;
    let known = format!("{url}/v1/operations/{KEY}");
    while http.get(&known).bearer_auth("sk_m1").send().await?.status() != 200 {
        assert!(!paying.is_finished(), "it was answered too soon");
    }
    bank.signal("TERM")?;
    let late = loop {
        let answer = policy().await?;
        if answer.status() != 200 {
            break answer;
        }
    };
    assert_eq!((late.status().as_u16(), late.headers().contains_key("retry-after")), (503, true));
    assert_eq!(paying.await??.status(), 201);
    assert_eq!(bank.end().await?.0.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_log_that_nobody_reads_any_more_ends_nothing() -> Result {
    let dir = tempfile::tempdir()?;
    let mut bank = Running::start(command(dir.path(), "serve --listen 127.0.0.1:0 --token shop=sk_shop")).await?;
    drop(bank.child.stderr.take());
    let http = http()?;
    let pay = async || -> Result<u16> {
        let request = http.post(format!("{}/v1/payments", bank.url())).bearer_auth("sk_shop");
        let body = json!({"amount": 290, "currency": "EUR", "card": "tok_visa"});
        Ok(request.header("Idempotency-Key", KEY).json(&body).send().await?.status().as_u16())
    };
    let other = rusqlite::Connection::open(dir.path().join("bank.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    assert_eq!(pay().await?, 503, "and the writer has something to log");
    other.execute_batch("ROLLBACK")?;
    assert_eq!(pay().await?, 201);
    bank.signal("TERM")?;
    assert_eq!(timeout(LIMIT, bank.child.wait()).await??.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_database_has_one_owner_whatever_it_is_called() -> Result {
    let dir = tempfile::tempdir()?;
    let line = "serve --listen 127.0.0.1:0 --token shop=sk_shop --gateway-url http://127.0.0.1:9";
    let bank = Running::start(command(dir.path(), line)).await?;
    std::os::unix::fs::symlink("bank.db", dir.path().join("another.db"))?;
    let (code, said) = refused(command(dir.path(), &format!("{line} --db another.db"))).await?;
    assert!(code == Some(1) && said.contains("bank.db.lock"), "{said}");
    bank.signal("TERM")?;
    assert_eq!(bank.end().await?.0.code(), Some(0));
    Ok(())
}
