//! The bank and its gateway as two real processes, each with a private database and the fault lab open.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    process::{Process, signal},
    programs,
};

const START_LIMIT: Duration = Duration::from_secs(30);
const CALL_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The merchant's secret of every test's bank.
pub(crate) const SECRET: &str = "sk_test_of_the_whole";

/// What moved at the gateway, which is the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Charges {
    pub(crate) count: i64,
    /// Minor units of the euro.
    pub(crate) euros: i64,
}

/// A bank with its gateway.
pub(crate) struct Bank {
    folder: PathBuf,
    arguments: Vec<String>,
    _gateway: Process,
    gateway_url: String,
    process: Option<Process>,
    pub(crate) url: String,
    http: reqwest::Client,
}

impl Bank {
    /// Starts both on free ports, with their data and output in the folder.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, &[]).await
    }

    /// The same, with more arguments for the bank.
    pub(crate) async fn start_with(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut gateway = start_gateway(&folder.join("gateway.db"), folder)?;
        let gateway_url = ready(&mut gateway).await?;
        let http = reqwest::Client::builder().timeout(CALL_LIMIT).no_proxy().build()?;
        let mut bank = Self {
            folder: folder.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            _gateway: gateway,
            gateway_url,
            process: None,
            url: String::new(),
            http,
        };
        bank.serve("127.0.0.1:0").await?;
        Ok(bank)
    }

    /// Kills the bank where it stands. The gateway stays.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        self.process.take().context("the bank is down already")?.kill()
    }

    /// Waits until the bank has ended by itself, as the lab's `abort` has it.
    pub(crate) async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        let status = self.process.as_mut().context("the bank is down already")?.ended(limit).await?;
        self.process = None;
        Ok(status)
    }

    /// Starts the bank again at its old address, on its old data.
    pub(crate) async fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the bank is up");
        let address = self.url.trim_start_matches("http://").to_owned();
        self.serve(&address).await
    }

    /// Starts the bank again on its old data, at whichever port is free now.
    pub(crate) async fn start_elsewhere(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the bank is up");
        self.serve("127.0.0.1:0").await
    }

    async fn serve(&mut self, listen: &str) -> Result<()> {
        let mut command = Command::new(programs::bank()?);
        command
            .args(["serve", "--lab", "--listen", listen, "--gateway-url", &self.gateway_url])
            .args(["--token", &format!("shop={SECRET}"), "--db"])
            .arg(self.folder.join("bank.db"))
            .args(&self.arguments);
        let mut process = Process::start("bank", &mut command, &self.folder)?;
        self.url = ready(&mut process).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Sets the faults of the bank, in place of those before.
    pub(crate) async fn faults(&self, rules: Value) -> Result<()> {
        self.set(&self.url, rules).await
    }

    /// Sets the faults of the gateway, in place of those before.
    pub(crate) async fn gateway_faults(&self, rules: Value) -> Result<()> {
        self.set(&self.gateway_url, rules).await
    }

    async fn set(&self, url: &str, rules: Value) -> Result<()> {
        let answer = self.http.put(format!("{url}/lab/faults")).json(&rules).send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "the lab says {status} to {rules}: {}", answer.text().await?);
        Ok(())
    }

    /// Ends every fault, and lets go what hangs.
    pub(crate) async fn no_faults(&self) -> Result<()> {
        self.http.delete(format!("{}/lab/faults", self.url)).send().await?.error_for_status()?;
        Ok(())
    }

    /// Sets the bank's clock ahead by so many seconds.
    pub(crate) async fn set_clock_ahead(&self, offset_s: i64) -> Result<()> {
        let url = format!("{}/lab/clock", self.url);
        self.http.put(url).json(&json!({"offset_s": offset_s})).send().await?.error_for_status()?;
        Ok(())
    }

    /// Drops the responses that have expired by the bank's clock; how many.
    pub(crate) async fn purge(&self) -> Result<u64> {
        let url = format!("{}/lab/purge", self.url);
        let purged: Value = self.http.post(url).send().await?.error_for_status()?.json().await?;
        purged["purged"].as_u64().with_context(|| format!("no count in {purged}"))
    }

    /// How often the rules set have fired, together.
    pub(crate) async fn hits(&self) -> Result<u64> {
        self.hits_of(&self.url).await
    }

    /// How often the rules set at the gateway have fired, together.
    pub(crate) async fn gateway_hits(&self) -> Result<u64> {
        self.hits_of(&self.gateway_url).await
    }

    async fn hits_of(&self, url: &str) -> Result<u64> {
        let shown: Value = self.http.get(format!("{url}/lab/faults")).send().await?.error_for_status()?.json().await?;
        let rules = shown.as_array().context("the lab shows no list")?;
        Ok(rules.iter().filter_map(|rule| rule["hits"].as_u64()).sum())
    }

    /// What became of a key, by the bank's word; none where the bank never saw it.
    pub(crate) async fn operation(&self, key: &str) -> Result<Option<Value>> {
        self.found(format!("{}/v1/operations/{key}", self.url)).await
    }

    /// The key under which the bank asked its gateway; none where it never did.
    pub(crate) async fn gateway_key(&self, key: &str) -> Result<Option<String>> {
        let Some(shown) = self.found(format!("{}/lab/operations/{key}", self.url)).await? else { return Ok(None) };
        match &shown["gateway_key"] {
            Value::Null => Ok(None),
            Value::String(gateway_key) => Ok(Some(gateway_key.clone())),
            _ => bail!("no gateway key in {shown}"),
        }
    }

    /// What the bank says of itself.
    pub(crate) async fn policy(&self) -> Result<Value> {
        self.found(format!("{}/v1/policy", self.url)).await?.context("the bank says nothing of itself")
    }

    /// The bank's ledger, added up.
    pub(crate) async fn ledger(&self) -> Result<Value> {
        let url = format!("{}/lab/ledger", self.url);
        self.found(url).await?.context("the bank has no ledger")
    }

    /// What moved at the gateway, in all or under one of its keys.
    pub(crate) async fn gateway_ledger(&self, gateway_key: Option<&str>) -> Result<Value> {
        let url = format!("{}/lab/ledger", self.gateway_url);
        let url = gateway_key.map_or(url.clone(), |key| format!("{url}?gateway_key={key}"));
        self.found(url).await?.context("the gateway has no ledger")
    }

    /// What stands at that address; none where the bank says that it knows no such operation.
    async fn found(&self, url: String) -> Result<Option<Value>> {
        let answer = self.http.get(&url).bearer_auth(SECRET).send().await?;
        let status = answer.status();
        let body: Value = answer.json().await.with_context(|| format!("{url}: {status}"))?;
        match status.as_u16() {
            200 => Ok(Some(body)),
            404 if body["type"] == "/problems/operation-unknown" => Ok(None),
            _ => bail!("{url}: {status}: {body}"),
        }
    }

    /// What moved at the gateway.
    pub(crate) async fn charges(&self) -> Result<Charges> {
        ledger(&self.http, &self.gateway_url).await
    }
}

/// What moved at a gateway whose process is gone, read from its database.
pub(crate) async fn charges_left_in(db: &Path, folder: &Path) -> Result<Charges> {
    let mut gateway = start_gateway(db, folder)?;
    let url = ready(&mut gateway).await?;
    let charges = ledger(&reqwest::Client::builder().timeout(CALL_LIMIT).no_proxy().build()?, &url).await;
    signal("TERM", gateway.pid())?;
    gateway.ended(STOP_LIMIT).await?;
    charges
}

fn start_gateway(db: &Path, folder: &Path) -> Result<Process> {
    let mut command = Command::new(programs::bank()?);
    command.args(["gateway", "--lab", "--listen", "127.0.0.1:0", "--db"]).arg(db);
    Process::start("gateway", &mut command, folder)
}

async fn ready(process: &mut Process) -> Result<String> {
    let line: Value = serde_json::from_str(&process.first_line(START_LIMIT).await?)?;
    line["url"].as_str().map(str::to_owned).with_context(|| format!("no url in {line}"))
}

async fn ledger(http: &reqwest::Client, gateway_url: &str) -> Result<Charges> {
    let ledger: Value = http.get(format!("{gateway_url}/lab/ledger")).send().await?.error_for_status()?.json().await?;
    let count = ledger["charges"].as_i64().with_context(|| format!("no charges in {ledger}"))?;
    Ok(Charges { count, euros: ledger["charged"]["EUR"].as_i64().unwrap_or(0) })
}
