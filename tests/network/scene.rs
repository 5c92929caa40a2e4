//! What the tests of this tier are made of: a bank, and before it one proxy and one till for each case, so that cases run side
//! by side and are judged together.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        process::Process,
        till::Till,
        until,
    },
    proxy::{Proxy, Script},
};

/// How long a command may take that has nothing to wait for.
pub(crate) const STEP_LIMIT: Duration = Duration::from_secs(20);
/// How long a queue may take to settle once its faults are over: the longest back-off, the longest call, and room for a busy
/// machine.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_secs(90);
/// The same, as `sync` is told it.
const SETTLE_TIMEOUT: &str = "85s";

/// What every payment of this tier is about, in minor units.
pub(crate) const AMOUNT: i64 = 2_490;

/// The words of the log for an answer that was none of the bank's.
pub(crate) const TRANSPORT: [&str; 6] = ["not-the-bank", "no-connection", "time-out", "reset", "torn", "too-large"];

/// A bank and its gateway.
pub(crate) struct Scene {
    pub(crate) bank: Bank,
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) async fn set() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // By the proxy's port it is asked for under a name that is not its own.
        let bank = Bank::start_with(folder.path(), &["--host", "127.0.0.1"]).await?;
        Ok(Self { bank, folder })
    }

    /// A till on which Pay was clicked so many times, and its proxy, whose script may know the keys.
    pub(crate) async fn case(
        &self,
        name: &str,
        clicks: usize,
        script: impl FnOnce(&[String]) -> Script,
    ) -> Result<Case> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder)?;
        let till = Till::in_folder(&folder);
        let keys = till.pay(clicks, AMOUNT, "tok_visa").await?;
        let proxy = Proxy::start(&self.bank.url, script(&keys))?;
        Ok(Case { name: name.to_owned(), folder, till, keys, proxy })
    }

    /// Asks the checker about all cases of this bank, and that each proxy did what it was told.
    pub(crate) async fn verdict(&self, cases: &[&Case]) -> Result<Verdict> {
        for case in cases {
            case.proxy.log().is_sound().with_context(|| case.name.clone())?;
        }
        let tills: Vec<_> = cases.iter().map(|case| (&case.till, case.keys.as_slice())).collect();
        checker::one_charge_each_of(&tills, &self.bank).await
    }
}

/// A line that `sync` printed.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) state: String,
    /// How the last answer was read, where it was no end.
    pub(crate) last_answer: Option<String>,
}

/// A till and the proxy between it and the bank.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) till: Till,
    pub(crate) keys: Vec<String>,
    pub(crate) proxy: Proxy,
}

impl Case {
    /// Starts `sync` with more arguments.
    pub(crate) fn sync(&self, arguments: &[&str]) -> Result<Process> {
        self.till.start("sync", &[&["sync"], arguments].concat(), Some(&self.proxy.url))
    }

    /// Lets the till settle everything; how long it took.
    pub(crate) async fn settle(&self) -> Result<Duration> {
        let start = Instant::now();
        self.ends(self.sync(&["--until-settled", "--timeout", SETTLE_TIMEOUT])?, 0).await?;
        Ok(start.elapsed())
    }

    /// Waits for the end of a `sync`, with that exit code.
    pub(crate) async fn ends(&self, mut sync: Process, code: i32) -> Result<()> {
        let status = sync.ended(SETTLE_LIMIT).await?;
        ensure!(status.code() == Some(code), "{}: {status}: {}", self.name, sync.said()?);
        Ok(())
    }

    /// What `sync` told about each operation while it worked, in that order.
    pub(crate) fn told(&self) -> Result<BTreeMap<String, Vec<Told>>> {
        let mut told: BTreeMap<String, Vec<Told>> = BTreeMap::new();
        for line in std::fs::read_to_string(self.folder.join("sync.out"))?.lines() {
            let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let text = |name: &str| line[name].as_str().map(str::to_owned);
            let (key, state) = (text("key").context("no key")?, text("state").context("no state")?);
            told.entry(key).or_default().push(Told { state, last_answer: text("reason") });
        }
        Ok(told)
    }

    /// How each attempt of an operation was read, oldest first.
    pub(crate) async fn readings(&self, key: &str) -> Result<Vec<String>> {
        let log = self.till.log(key).await?;
        Ok(log.iter().filter_map(|entry| entry["reading"].as_str()).map(str::to_owned).collect())
    }

    /// The operation of that key.
    pub(crate) async fn operation(&self, key: &str) -> Result<Value> {
        let operations = self.till.operations().await?;
        operations.into_iter().find(|operation| operation["key"] == key).with_context(|| format!("no operation {key}"))
    }

    /// Waits until an operation was read so for the first time.
    pub(crate) async fn first_reading(&self, key: &str) -> Result<String> {
        until(&format!("{}: a first reading", self.name), STEP_LIMIT, async || {
            Ok(self.readings(key).await?.into_iter().next())
        })
        .await
    }
}

/// How often each fault was really done, over all cases of a test.
#[derive(Default)]
pub(crate) struct Reached(BTreeMap<String, u64>);

impl Reached {
    pub(crate) fn by(cases: &[&Case]) -> Self {
        let mut reached = Self::default();
        for case in cases {
            for (fault, times) in case.proxy.log().faults() {
                reached.add(&fault, times);
            }
        }
        reached
    }

    pub(crate) fn add(&mut self, fault: &str, times: u64) {
        *self.0.entry(fault.to_owned()).or_default() += times;
    }

    /// Prints a line for each, and fails where one that was planned was reached less often than that.
    pub(crate) fn at_least(&self, planned: &[(&str, u64)]) -> Result<()> {
        for (fault, times) in &self.0 {
            println!("network: {fault}: {times}");
        }
        for (fault, least) in planned {
            let times = self.0.get(*fault).copied().unwrap_or(0);
            ensure!(times >= *least, "{fault}: reached {times} times, and {least} were planned");
        }
        Ok(())
    }
}

/// The most memory that a running process ever had, in KiB.
pub(crate) fn memory_peak_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
