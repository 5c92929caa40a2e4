//! The till without a window, on a data folder of its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{bank::SECRET, process::Process, programs};

const STEP_LIMIT: Duration = Duration::from_secs(20);

/// `kassa-till` and its folder.
pub(crate) struct Till {
    folder: PathBuf,
    data: PathBuf,
}

impl Till {
    /// A till with its data in `till` below that folder, where the output of its commands goes too.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), data: folder.join("till") }
    }

    /// Where its file is.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The command with its data folder, and a bank where one is named, and nothing of the user's own.
    pub(crate) fn command(&self, arguments: &[&str], bank_url: Option<&str>) -> Result<Command> {
        let mut command = Command::new(programs::till()?);
        for inherited in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG"] {
            command.env_remove(inherited);
        }
        command.arg("--data").arg(&self.data);
        if let Some(url) = bank_url {
            command.args(["--bank-url", url, "--bank-token", SECRET]);
        }
        command.args(arguments);
        Ok(command)
    }

    /// Starts a command; what it prints goes to `NAME.out` and `NAME.err`.
    pub(crate) fn start(&self, name: &str, arguments: &[&str], bank_url: Option<&str>) -> Result<Process> {
        Process::start(name, &mut self.command(arguments, bank_url)?, &self.folder)
    }

    /// Runs a command that asks no bank to its good end, and gives the JSON lines that it printed.
    pub(crate) async fn done(&self, name: &str, arguments: &[&str]) -> Result<Vec<Value>> {
        let mut process = self.start(name, arguments, None)?;
        let status = process.ended(STEP_LIMIT).await?;
        ensure!(status.success(), "{name}: {status}: {}", process.said()?);
        process.printed()?.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    /// Clicks Pay so many times, each for an operation of its own, with no bank there. Gives the keys, oldest first.
    pub(crate) async fn pay(&self, times: usize, amount: i64, card: &str) -> Result<Vec<String>> {
        let (times_text, amount) = (times.to_string(), amount.to_string());
        let arguments = ["pay", "--amount", &amount, "--currency", "EUR", "--card", card, "--times", &times_text];
        let saved = self.done("pay", &arguments).await?;
        ensure!(saved.len() == times, "{} lines for {times} clicks", saved.len());
        ensure!(saved.iter().all(|operation| operation["state"] == "saved"), "{saved:?}");
        saved
            .iter()
            .map(|operation| Ok(operation["key"].as_str().context("an operation with no key")?.to_owned()))
            .collect()
    }

    /// Its operations, oldest first.
    pub(crate) async fn operations(&self) -> Result<Vec<Value>> {
        self.done("operations", &["operations", "--json"]).await
    }

    /// The attempts of one operation, oldest first.
    pub(crate) async fn log(&self, key: &str) -> Result<Vec<Value>> {
        self.done("log", &["log", key]).await
    }
}
