//! Everything that a measurement needs around it: the folder, the stub gateway, PostgreSQL, and one contender at a time.

use crate::{
    contender::Fault,
    run::{cluster::Cluster, measuring::PATIENCE},
    wire::{MERCHANT, SECRET},
};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use measure::{
    gateway,
    machine::{self, Disk},
    process::Process,
    ready::{Ready, Setting},
};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_postgres::Client;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Contender {
    /// A map in memory: the ceiling
    Memory,
    /// Kassa's bank
    Kassa,
    /// SQLite the usual way
    Sqlite,
    /// PostgreSQL by the textbook
    Postgres,
    /// The same with settings raised: beside the comparison
    Raised,
}

impl Contender {
    /// Those of the comparison.
    pub(crate) const ALL: [Self; 4] = [Self::Memory, Self::Kassa, Self::Sqlite, Self::Postgres];

    /// What it is called in a table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory (ceiling)",
            Self::Kassa => "Kassa",
            Self::Sqlite => "SQLite, usual",
            Self::Postgres => "PostgreSQL",
            Self::Raised => "PostgreSQL, raised",
        }
    }

    /// Whether it stores in PostgreSQL.
    pub(crate) const fn in_postgres(self) -> bool {
        matches!(self, Self::Postgres | Self::Raised)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Kassa => "kassa",
            Self::Sqlite => "sqlite",
            Self::Postgres | Self::Raised => "postgres",
        }
    }
}

/// A place where a contender stores: a folder with its files, or a database of that name.
#[derive(Debug, Clone)]
pub(crate) struct Place(String);

/// A contender that runs.
pub(crate) struct Running {
    pub(crate) contender: Contender,
    pub(crate) process: Process,
    pub(crate) url: String,
    /// The processes whose time is the contender's, with their children.
    pids: Vec<u32>,
}

impl Running {
    /// Processor time that it has taken so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        self.pids.iter().map(|pid| machine::cpu_time(*pid)).sum()
    }
}

/// The surroundings of all measurements. All of it goes when this is dropped.
pub(crate) struct Stage {
    // In the order in which they have to go.
    cluster: Option<Cluster>,
    stub: Process,
    pub(crate) stub_url: String,
    pub(crate) http: reqwest::Client,
    pub(crate) disk: Disk,
    /// What each contender's database said of itself at its last start.
    pub(crate) settings: BTreeMap<Contender, Vec<Setting>>,
    /// What is left of the time for measuring again.
    pub(crate) patience: Duration,
    places: u32,
    bench: PathBuf,
    bank: PathBuf,
    folder: TempDir,
}

impl Stage {
    /// Sets everything up in a folder of its own below `parent`.
    pub(crate) async fn set_up(parent: &Path, with_postgres: bool) -> Result<Self> {
        let kind = machine::file_system(parent)?;
        ensure!(
            kind != "tmpfs" && kind != "ramfs",
            "{} is in memory, where a sync costs nothing: name a folder on a disk by --dir",
            parent.display()
        );
        let folder = tempfile::Builder::new().prefix("bank-bench-").tempdir_in(parent)?;
        // PostgreSQL's user goes through it to the cluster.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        let bench = std::env::current_exe()?;
        let bank = bench.with_file_name("kassa-bank");
        let mut stub = Process::start("stub", Command::new(&bench).arg("stub"), folder.path())?;
        let stub_url = stub.ready().await?.url;
        let cluster = if with_postgres { Some(Cluster::make(folder.path().join("postgres")).await?) } else { None };
        Ok(Self {
            cluster,
            stub,
            stub_url,
            http: reqwest::Client::builder().no_proxy().build()?,
            disk: Disk::of(folder.path())?,
            settings: BTreeMap::new(),
            patience: PATIENCE,
            places: 0,
            bench,
            bank,
            folder,
        })
    }

    /// The folder of all that is made.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The stub gateway's process.
    pub(crate) fn stub_pid(&self) -> u32 {
        self.stub.pid
    }

    /// The bench's own program.
    pub(crate) fn bench(&self) -> Command {
        Command::new(&self.bench)
    }

    /// A new place, with nothing in it.
    pub(crate) fn place(&mut self) -> Result<Place> {
        self.places += 1;
        let place = Place(format!("place_{}", self.places));
        fs::create_dir(self.files(&place))?;
        Ok(place)
    }

    /// The database file of a bank at that place.
    pub(crate) fn db(&self, place: &Place) -> PathBuf {
        self.files(place).join("bank.db")
    }

    fn files(&self, place: &Place) -> PathBuf {
        self.folder.path().join(&place.0)
    }

    /// Starts a contender at a place, and waits until it takes connections.
    pub(crate) async fn start(
        &mut self,
        contender: Contender,
        place: &Place,
        broken: Option<Fault>,
    ) -> Result<Running> {
        let mut command = match contender {
            Contender::Kassa => {
                ensure!(self.bank.is_file(), "kassa-bank is not built: type `cargo xtask bench bank`");
                let mut command = Command::new(&self.bank);
                for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("KASSA_")) {
                    command.env_remove(name);
                }
                command.args(["serve", "--listen", "127.0.0.1:0", "--gateway-url", &self.stub_url]);
                command.args(["--token", &format!("{MERCHANT}={SECRET}")]).arg("--db").arg(self.db(place));
                command
            }
            other => {
                let mut command = self.bench();
                command.args(["contender", other.word(), "--gateway-url", &self.stub_url]);
                command
            }
        };
        if let Some(fault) = broken.and_then(|fault| fault.to_possible_value()) {
            command.args(["--broken", fault.get_name()]);
        }
        let mut postmaster = None;
        match contender {
            Contender::Memory | Contender::Kassa => {}
            Contender::Sqlite => {
                command.arg("--db").arg(self.db(place));
            }
            Contender::Postgres | Contender::Raised => {
                let cluster = self.cluster.as_mut().context("there is no cluster")?;
                cluster.start(contender == Contender::Raised).await?;
                cluster.create(&place.0).await?;
                postmaster = cluster.pid();
                command.args(["--database", &cluster.settings(&place.0)]);
            }
        }
        let mut process = Process::start(contender.word(), &mut command, self.folder.path())?;
        let Ready { url, settings, .. } = process.ready().await?;
        let pids = postmaster.into_iter().chain([process.pid]).collect();
        if !settings.is_empty() {
            self.settings.insert(contender, settings);
        }
        Ok(Running { contender, process, url, pids })
    }

    /// Kills a contender where it stands, and its database with it.
    pub(crate) async fn kill(&mut self, running: Running) -> Result<()> {
        running.process.kill().await?;
        match &mut self.cluster {
            Some(cluster) if running.contender.in_postgres() => cluster.stop(false).await,
            _ => Ok(()),
        }
    }

    /// Ends a contender in order. What it stored stays.
    pub(crate) async fn end(&mut self, running: Running) -> Result<()> {
        running.process.end("TERM").await?;
        match &mut self.cluster {
            Some(cluster) if running.contender.in_postgres() => cluster.stop(true).await,
            _ => Ok(()),
        }
    }

    /// Ends a contender, and removes all that it stored.
    pub(crate) async fn clear(&mut self, running: Running, place: Place) -> Result<()> {
        running.process.kill().await?;
        if let Some(cluster) = &mut self.cluster
            && running.contender.in_postgres()
        {
            cluster.remove(&place.0).await?;
            cluster.stop(true).await?;
        }
        self.remove(place)
    }

    /// A connection to the database at a place, which is started for it where it was stopped.
    pub(crate) async fn database(&mut self, contender: Contender, place: &Place) -> Result<Client> {
        let cluster = self.cluster.as_mut().context("there is no cluster")?;
        cluster.start(contender == Contender::Raised).await?;
        cluster.connect(&place.0).await
    }

    /// Removes the files of a place.
    pub(crate) fn remove(&self, place: Place) -> Result<()> {
        Ok(fs::remove_dir_all(self.files(&place))?)
    }

    /// What the stub has counted.
    pub(crate) async fn ledger(&self) -> Result<gateway::Ledger> {
        gateway::ledger(&self.http, &self.stub_url).await
    }

    /// Makes the stub forget everything.
    pub(crate) async fn empty_stub(&self) -> Result<()> {
        gateway::empty(&self.http, &self.stub_url).await
    }
}
