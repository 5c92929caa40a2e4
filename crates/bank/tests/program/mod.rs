//! A real `kassa-bank` process on one address over one set of files: started, killed, started again.

use rand::Rng;
use serde_json::Value;
use std::{
    fs::{self, OpenOptions},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    sync::Mutex,
    time::timeout,
};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The longest that any step of a process may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Held by each test that keeps the machine busy: two at once would only slow each other past their limits.
pub(crate) static ALONE: Mutex<()> = Mutex::const_new(());

/// The program.
pub(crate) const BANK: &str = env!("CARGO_BIN_EXE_kassa-bank");

/// Below the ports that the system gives to outgoing connections: one of those could be given the address of a process that
/// is down at the moment, or be connected to itself.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A program and where it lives.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    dir: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
}

impl Program {
    /// `kassa-bank` in that folder, on a free address of its own; its log is `NAME.log` there.
    pub(crate) fn new(dir: &Path, name: &str, line: &str) -> Result<Self> {
        let address = free_address()?;
        let mut arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        arguments.extend(["--listen".to_owned(), address.to_string()]);
        Ok(Self { address, dir: dir.to_owned(), arguments, log: dir.join(format!("{name}.log")) })
    }

    /// Starts the process.
    pub(crate) fn start(&self) -> Result<Life> {
        self.start_by(Command::new(BANK))
    }

    /// Starts the process by a command that takes its arguments. Its environment is empty.
    pub(crate) fn start_by(&self, mut command: Command) -> Result<Life> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        command.args(&self.arguments).current_dir(&self.dir).env_clear().kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let out = child.stdout.take().ok_or("no output")?;
        Ok(Life { child, out: BufReader::new(out) })
    }

    /// All that it ever logged.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }
}

/// One life of a process.
pub(crate) struct Life {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Life {
    /// Waits for the ready line.
    pub(crate) async fn ready(&mut self) -> Result<Value> {
        let mut line = String::new();
        timeout(LIMIT, self.out.read_line(&mut line)).await??;
        serde_json::from_str(&line).map_err(|_| format!("no ready line, but {line:?}").into())
    }

    /// Waits for it to end by itself.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait().await?)
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> Result<ExitStatus> {
        self.child.start_kill()?;
        Ok(timeout(LIMIT, self.child.wait()).await??)
    }
}

fn free_address() -> Result<SocketAddr> {
    for _ in 0..100 {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rand::rng().random_range(PORTS)));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no free address".into())
}
