//! A process that a test started, with its output in files, and that ends with the test.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::until;

/// A running program.
pub(crate) struct Process {
    child: Child,
    name: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts a program; what it prints goes to `NAME.out` and `NAME.err` in the folder.
    pub(crate) fn start(name: &str, command: &mut Command, folder: &Path) -> Result<Self> {
        let stdout = folder.join(format!("{name}.out"));
        let stderr = folder.join(format!("{name}.err"));
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::options().create(true).append(true).open(&stderr)?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name: name.to_owned(), stdout, stderr })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed on stdout so far.
    pub(crate) fn printed(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.stdout)?)
    }

    /// What it has said on stderr so far, earlier starts of the same name included.
    pub(crate) fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.stderr)?)
    }

    /// The lines on stderr that are Kassa's own words: the window system's libraries may warn there too.
    pub(crate) fn said_itself(&self) -> Result<Vec<String>> {
        Ok(self.said()?.lines().filter(|line| line.starts_with("kassa: ")).map(str::to_owned).collect())
    }

    /// The first whole line of its stdout.
    pub(crate) async fn first_line(&mut self, limit: Duration) -> Result<String> {
        until(&format!("the first line of {}", self.name), limit, async || {
            let printed = fs::read_to_string(&self.stdout)?;
            if let Some((line, _)) = printed.split_once('\n') {
                return Ok(Some(line.to_owned()));
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", self.name, fs::read_to_string(&self.stderr)?);
            }
            Ok(None)
        })
        .await
    }

    /// Its end, where it has ended.
    pub(crate) fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self, limit: Duration) -> Result<ExitStatus> {
        until(&format!("the end of {}", self.name), limit, async || Ok(self.child.try_wait()?)).await
    }

    /// SIGKILL: no chance to save or say anything. Gives the end that the system saw.
    pub(crate) fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait()
            && let Err(error) = self.kill()
        {
            eprintln!("{} may still run: {error}", self.name);
        }
    }
}

/// Sends a signal to one process by its id.
pub(crate) fn signal(name: &str, pid: u32) -> Result<()> {
    // The shell's own `kill`: the program of that name is not on every system.
    let status = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid.to_string()]).status()?;
    ensure!(status.success(), "no process {pid} to send {name} to");
    Ok(())
}
