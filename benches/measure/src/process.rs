//! Processes that the bench started, and that end with it.

use crate::ready::Ready;
use anyhow::{Context, Result, bail};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// How long a process may take to say that it is ready.
const READY_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a process may take to end.
const END_TIME_MAX: Duration = Duration::from_secs(30);
/// Between two looks at whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running program. It is killed when this is dropped.
pub struct Process {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: PathBuf,
    /// Its id.
    pub pid: u32,
}

impl Process {
    /// Starts a program whose complaints go to `NAME.err` in the folder. Its standard input stays open for as long as it is wanted.
    pub fn start(name: &str, command: &mut Command, folder: &Path) -> Result<Self> {
        let errors = folder.join(format!("{name}.err"));
        let file = File::options().create(true).append(true).open(&errors)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let pid = child.id().with_context(|| format!("{name} is gone"))?;
        let lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        Ok(Self { name: name.to_owned(), child, lines, errors, pid })
    }

    /// The next line that it prints; none at its end.
    pub async fn line(&mut self) -> Result<Option<String>> {
        Ok(self.lines.next_line().await?)
    }

    /// Waits for its ready line, and gives what is in it.
    pub async fn ready(&mut self) -> Result<Ready> {
        let waiting = tokio::time::timeout(READY_TIME_MAX, self.line());
        match waiting.await.with_context(|| format!("{} is not ready in time", self.name))?? {
            Some(line) => serde_json::from_str(&line).context("another ready line than ours"),
            None => bail!("{} did not start: {}", self.name, self.complaints()),
        }
    }

    /// Waits for its end, which has to be a success.
    pub async fn succeeded(&mut self) -> Result<()> {
        let status = tokio::time::timeout(END_TIME_MAX, self.child.wait()).await;
        let status = status.with_context(|| format!("{} doesn't end", self.name))??;
        if !status.success() {
            bail!("{} ended with {status}: {}", self.name, self.complaints());
        }
        Ok(())
    }

    /// Kills it where it stands (`kill -9`).
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("{} can't be killed", self.name))
    }

    /// Tells it to end by that signal, and waits for it.
    pub async fn end(mut self, signal: &str) -> Result<()> {
        self.signal(signal)?;
        tokio::time::timeout(END_TIME_MAX, self.child.wait())
            .await
            .with_context(|| format!("{} doesn't end", self.name))??;
        Ok(())
    }

    /// Waits for its end where nothing else can be done meanwhile. After that time it is killed.
    pub fn wait_blocking(mut self, time_max: Duration) {
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < time_max {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) -> Result<()> {
        send(signal, self.pid).with_context(|| format!("{} can't be told to end", self.name))
    }

    /// The end of what it complained about.
    pub fn complaints(&self) -> String {
        let all = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = all.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// Sends a signal to one process by its id.
pub fn send(signal: &str, pid: u32) -> Result<()> {
    // The shell's own `kill`: the program of that name is not on every system.
    let mut command = std::process::Command::new("sh");
    let status = command.args(["-c", "kill -s \"$0\" \"$1\"", signal, &pid.to_string()]).status()?;
    if !status.success() {
        bail!("no process {pid} to send {signal} to");
    }
    Ok(())
}
