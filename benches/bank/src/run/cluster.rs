//! A private PostgreSQL: made in the bench's own folder, reached by a socket there, and gone with it.

use anyhow::{Context, Result, bail, ensure};
use measure::process::{self, Process};
use std::{
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::process::Command;
use tokio_postgres::{Client, NoTls};

/// The version that is measured.
const VERSION: u32 = 15;
/// Where Debian and its like put the programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// The user of the cluster, and whom to be on the system where this is root: the programs refuse root.
const USER: &str = "postgres";
/// How long the cluster may take to come up or to go down.
const TIME_MAX: Duration = Duration::from_secs(30);
/// Between two looks at whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is raised where it is not measured as `initdb` leaves it: commits wait for others to be synced with, the log is cut less often and
/// is written smaller, and pages stay in memory. Nothing of this takes from durability.
const RAISED: [&str; 5] =
    ["commit_delay=200", "commit_siblings=5", "max_wal_size=4GB", "wal_compression=on", "shared_buffers=512MB"];

pub(crate) struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    /// Whom to run as, by number; none where this is not root.
    owner: Option<(u32, u32)>,
    postmaster: Option<Process>,
}

impl Cluster {
    /// Makes a cluster in the folder, as `initdb` leaves it.
    pub(crate) async fn make(folder: PathBuf) -> Result<Self> {
        let programs = programs().await?;
        std::fs::create_dir(&folder)?;
        let owner = owner().await?;
        if let Some((user, group)) = owner {
            chown(&folder, Some(user), Some(group))?;
        }
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        let cluster = Self { programs, folder, owner, postmaster: None };
        let mut initdb = cluster.command("initdb");
        initdb.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--pgdata"]);
        let made = initdb.arg(cluster.data()).output().await.context("cannot start initdb")?;
        ensure!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        Ok(cluster)
    }

    /// Starts it where it isn't up, and waits until it takes connections: as `initdb` leaves it, or with [`RAISED`].
    pub(crate) async fn start(&mut self, raised: bool) -> Result<()> {
        if self.postmaster.is_some() {
            return Ok(());
        }
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(&self.folder).args(["-c", "listen_addresses="]);
        for setting in RAISED.into_iter().filter(|_| raised) {
            postgres.args(["-c", setting]);
        }
        // Its complaints stand where the bench's own user writes them, beside the cluster's folder.
        let beside = self.folder.parent().context("the cluster's folder stands nowhere")?;
        self.postmaster = Some(Process::start("postgres", &mut postgres, beside)?);
        let start = Instant::now();
        loop {
            match self.connect("postgres").await {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > TIME_MAX => {
                    let complaints = self.postmaster.as_ref().map(Process::complaints).unwrap_or_default();
                    return Err(error.context(format!("PostgreSQL doesn't come up: {complaints}")));
                }
                Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Stops it: in order, or on the spot, so that the next start has to recover from the log.
    pub(crate) async fn stop(&mut self, in_order: bool) -> Result<()> {
        match self.postmaster.take() {
            Some(postmaster) => postmaster.end(if in_order { "INT" } else { "QUIT" }).await,
            None => Ok(()),
        }
    }

    /// Makes a database where there is none of that name.
    pub(crate) async fn create(&self, name: &str) -> Result<()> {
        let client = self.connect("postgres").await?;
        let known = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await?;
        if known.is_none() {
            client.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        }
        Ok(())
    }

    /// Removes a database, with whoever is still connected to it.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        let client = self.connect("postgres").await?;
        Ok(client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?)
    }

    /// How a database is reached.
    pub(crate) fn settings(&self, name: &str) -> String {
        format!("host={} user={USER} dbname={name}", self.folder.display())
    }

    /// The process that all its others are children of.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.postmaster.as_ref().map(|postmaster| postmaster.pid)
    }

    /// Connects to a database.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client> {
        let (client, connection) = tokio_postgres::connect(&self.settings(name), NoTls).await?;
        // It ends with the client; an error is told to whoever uses that.
        tokio::spawn(async move { connection.await.ok() });
        Ok(client)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = std::process::Command::new(self.programs.join(program));
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command.current_dir("/").stdin(Stdio::null());
        command.into()
    }
}

impl Drop for Cluster {
    /// Also where the bench was told to end, or failed.
    fn drop(&mut self) {
        let Some(postmaster) = self.postmaster.take() else { return };
        let pid = postmaster.pid;
        if let Err(error) = process::send("QUIT", pid) {
            eprintln!("PostgreSQL may still run: {error:#}");
        }
        postmaster.wait_blocking(TIME_MAX);
    }
}

/// Where the programs are.
async fn programs() -> Result<PathBuf> {
    let mut tried = vec![PathBuf::from(PROGRAMS)];
    if let Ok(told) = Command::new("pg_config").arg("--bindir").output().await {
        tried.push(String::from_utf8_lossy(&told.stdout).trim().into());
    }
    if let Some(path) = std::env::var_os("PATH") {
        tried.extend(std::env::split_paths(&path));
    }
    for folder in tried {
        if version(&folder).await == Some(VERSION) && folder.join("initdb").is_file() {
            return Ok(folder);
        }
    }
    bail!("PostgreSQL {VERSION} is not installed (apt install postgresql-{VERSION}); leave it out by --contenders")
}

/// The version of the server in a folder.
async fn version(folder: &Path) -> Option<u32> {
    let told = Command::new(folder.join("postgres")).arg("--version").output().await.ok()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    told.split_whitespace().find_map(|word| word.split('.').next()?.parse().ok())
}

/// Whom to run as where this is root.
async fn owner() -> Result<Option<(u32, u32)>> {
    let id = async |arguments: &[&str]| -> Result<u32> {
        let told = Command::new("id").args(arguments).output().await.context("cannot start id")?;
        ensure!(told.status.success(), "the system has no user {USER}, whom PostgreSQL is to run as");
        Ok(String::from_utf8_lossy(&told.stdout).trim().parse()?)
    };
    match id(&["-u"]).await? {
        0 => Ok(Some((id(&["-u", USER]).await?, id(&["-g", USER]).await?))),
        _ => Ok(None),
    }
}
