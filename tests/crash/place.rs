//! A till on a folder of its own that is killed again and again, and what was clicked there.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use store::points::Point;
use tempfile::TempDir;

use crate::{
    deaths::Deaths,
    harness::{process::Process, till::Till},
};

/// Longer than any life in these tests: nobody who is to die may outlive it.
pub(crate) const LIFE_LIMIT: Duration = Duration::from_secs(30);
/// How long everything may take to settle once there are no faults any more.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_secs(60);

pub(crate) const AMOUNT: i64 = 2_490;
pub(crate) const PAY: &[&str] = &["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"];
pub(crate) const SYNC: &[&str] = &["sync", "--until-settled"];

/// The till, and the keys of all that was clicked.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) till: Till,
    pub(crate) keys: Vec<String>,
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self { till: Till::in_folder(folder.path()), folder, keys: Vec::new() })
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.till.data().join("till.db")
    }

    /// Clicks Pay so many times: most of it is approved, some declined.
    pub(crate) async fn pay(&mut self, times: usize) -> Result<()> {
        let declined = times / 3;
        if declined > 0 {
            self.keys.extend(self.till.pay(declined, AMOUNT, "tok_insufficient_funds").await?);
        }
        self.keys.extend(self.till.pay(times - declined, AMOUNT, "tok_visa").await?);
        Ok(())
    }

    /// Runs a command that is to die at that pass of that point, and counts its death there.
    pub(crate) async fn die_at(
        &self,
        point: Point,
        pass: u32,
        arguments: &[&str],
        bank_url: Option<&str>,
        deaths: &Deaths,
    ) -> Result<()> {
        let named = format!("{}:{pass}", point.name());
        let mut command = self.till.command(arguments, bank_url)?;
        let mut process = Process::start("dying", command.env("KASSA_DIE_AT", &named), self.folder.path())?;
        let status = process.ended(LIFE_LIMIT).await.with_context(|| named.clone())?;
        deaths.killed(point.name(), status).with_context(|| format!("{named}: {:?}", process.said()))
    }

    /// The last start: with nobody killing, everything must settle.
    pub(crate) async fn settle(&self, bank_url: &str) -> Result<()> {
        let mut sync = self.till.start("settling", SYNC, Some(bank_url))?;
        let status = sync.ended(SETTLE_LIMIT).await?;
        ensure!(status.success(), "{status}: {}", sync.said()?);
        Ok(())
    }

    /// The states that its operations are in.
    pub(crate) async fn states(&self) -> Result<BTreeSet<String>> {
        let operations = self.till.operations().await?;
        Ok(operations.iter().filter_map(|operation| operation["state"].as_str()).map(str::to_owned).collect())
    }

    /// The keys in its file, whoever was told of them.
    pub(crate) async fn kept(&self) -> Result<Vec<String>> {
        let operations = self.till.operations().await?;
        Ok(operations.iter().filter_map(|operation| operation["key"].as_str()).map(str::to_owned).collect())
    }
}
