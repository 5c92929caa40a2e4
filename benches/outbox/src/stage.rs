//! Everything that a measurement needs around it: a folder on the disk, the stub gateway, and a bank at a time.

use crate::bank::Bank;
use anyhow::{Result, ensure};
use measure::{
    gateway::{self, Ledger},
    machine,
    process::Process,
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// The surroundings of all measurements. All of it goes when this is dropped.
pub(crate) struct Stage {
    // In the order in which they have to go.
    _stub: Process,
    stub_url: String,
    pub(crate) http: reqwest::Client,
    places: u32,
    programs: PathBuf,
    folder: TempDir,
    /// Cancelled where the run is told to end, for what can't be dropped where it waits.
    pub(crate) end: CancellationToken,
}

impl Stage {
    /// Sets everything up in a folder of its own below `parent`.
    pub(crate) async fn set_up(parent: &Path, end: CancellationToken) -> Result<Self> {
        let kind = machine::file_system(parent)?;
        ensure!(
            kind != "tmpfs" && kind != "ramfs",
            "{} is in memory, where a sync costs nothing: name a folder on a disk by --dir",
            parent.display()
        );
        let folder = tempfile::Builder::new().prefix("outbox-bench-").tempdir_in(parent)?;
        let bench = std::env::current_exe()?;
        let mut stub = Process::start("stub", Command::new(&bench).arg("stub"), folder.path())?;
        let stub_url = stub.ready().await?.url;
        let programs = bench.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { _stub: stub, stub_url, http, places: 0, programs, folder, end })
    }

    /// The folder of all that is made.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder, with nothing in it.
    pub(crate) fn place(&mut self) -> Result<PathBuf> {
        self.places += 1;
        let place = self.folder.path().join(format!("place_{}", self.places));
        fs::create_dir(&place)?;
        Ok(place)
    }

    /// A program that was built beside this one.
    pub(crate) fn program(&self, name: &str) -> Result<Command> {
        let program = self.programs.join(name);
        ensure!(program.is_file(), "{name} is not built: type `cargo xtask bench outbox`");
        Ok(Command::new(program))
    }

    /// One of Kassa's programs, with nothing of the environment that would change what it does.
    pub(crate) fn kassa(&self, name: &str) -> Result<Command> {
        let mut command = self.program(name)?;
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("KASSA_")) {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// A bank with an empty store and a gateway that has forgotten everything.
    pub(crate) async fn fresh_bank(&mut self) -> Result<Bank> {
        gateway::empty(&self.http, &self.stub_url).await?;
        let place = self.place()?;
        Bank::start(self, place, &self.stub_url.clone()).await
    }

    /// What the gateway has been asked for.
    pub(crate) async fn ledger(&self) -> Result<Ledger> {
        gateway::ledger(&self.http, &self.stub_url).await
    }

    /// Fails unless the gateway charged so many keys, each asked for once.
    pub(crate) async fn check_charges(&self, operations: u64) -> Result<()> {
        let ledger = self.ledger().await?;
        ensure!(
            (ledger.distinct_keys, ledger.requests, ledger.reused) == (operations, operations, 0),
            "{operations} operations, and the gateway counts {ledger:?}"
        );
        Ok(())
    }
}
