//! A real bank: `kassa-bank serve` as it ships, over a store of its own.

use crate::stage::Stage;
use anyhow::Result;
use measure::{process::Process, ready::Ready};
use std::{fs, path::PathBuf};

/// The secret of the one merchant.
pub(crate) const SECRET: &str = "sk_bench_0123456789";
/// The one merchant.
const MERCHANT: &str = "demo";

/// A bank that runs.
pub(crate) struct Bank {
    process: Process,
    pub(crate) url: String,
    place: PathBuf,
}

impl Bank {
    /// Starts one in that folder, which goes with it.
    pub(crate) async fn start(stage: &Stage, place: PathBuf, gateway_url: &str) -> Result<Self> {
        let mut command = stage.kassa("kassa-bank")?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--gateway-url", gateway_url]);
        command.args(["--token", &format!("{MERCHANT}={SECRET}")]).arg("--db").arg(place.join("bank.db"));
        let mut process = Process::start("bank", &mut command, stage.folder())?;
        let Ready { url, .. } = process.ready().await?;
        Ok(Self { process, url, place })
    }

    /// Ends it, and removes what it stored.
    pub(crate) async fn clear(self) -> Result<()> {
        self.process.kill().await?;
        Ok(fs::remove_dir_all(self.place)?)
    }
}
