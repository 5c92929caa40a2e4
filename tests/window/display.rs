//! A display that only one test sees.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::harness::process::Process;

const START_LIMIT: Duration = Duration::from_secs(20);

/// A running Xvfb.
pub(crate) struct Display {
    _server: Process,
    /// As `DISPLAY` wants it.
    pub(crate) name: String,
}

impl Display {
    /// Starts a display under a free number.
    pub(crate) async fn start(folder: &Path) -> Result<Self> {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1360x880x24", "-nolisten", "tcp", "-noreset"]);
        let mut server = Process::start("xvfb", &mut command, folder)
            .context("Xvfb is not installed? `cargo xtask test` installs what the window tests need")?;
        let number = server.first_line(START_LIMIT).await?;
        Ok(Self { _server: server, name: format!(":{}", number.trim()) })
    }

    /// A picture of all that is on it. WebDriver's own screenshots can hang on a display like this.
    pub(crate) fn picture(&self, file: PathBuf) -> Result<()> {
        let status = Command::new("import").args(["-display", &self.name, "-window", "root"]).arg(&file).status()?;
        ensure!(status.success(), "import: {status}");
        Ok(())
    }

    /// Whether a window of this title is on it.
    pub(crate) fn shows_window(&self, title: &str) -> Result<bool> {
        let mut search = Command::new("xdotool");
        search.env("DISPLAY", &self.name).args(["search", "--name", title]).stdout(Stdio::null());
        Ok(search.status()?.success())
    }

    /// Holds a key down for a while, with the repeats that a real keyboard makes. WebDriver's keys don't repeat.
    pub(crate) fn hold_key(&self, key: &str, held: Duration) -> Result<()> {
        let seconds = format!("{:.3}", held.as_secs_f64());
        let status = Command::new("xdotool")
            .env("DISPLAY", &self.name)
            .args(["keydown", key, "sleep", &seconds, "keyup", key])
            .status()?;
        ensure!(status.success(), "xdotool: {status}");
        Ok(())
    }
}
