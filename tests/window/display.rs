//! A display that only one test sees.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use x11rb::{
    protocol::xproto::{ClientMessageEvent, ConnectionExt as _, EventMask},
    wrapper::ConnectionExt as _,
};

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

    /// Clicks a window's cross, as a window manager passes that on: the window is asked to close, and may stay.
    pub(crate) fn ask_to_close(&self, window: u32) -> Result<()> {
        let (x11, _) = x11rb::connect(Some(&self.name))?;
        let atom = |name: &str| anyhow::Ok(x11.intern_atom(false, name.as_bytes())?.reply()?.atom);
        let data = [atom("WM_DELETE_WINDOW")?, x11rb::CURRENT_TIME, 0, 0, 0];
        let wish = ClientMessageEvent::new(32, window, atom("WM_PROTOCOLS")?, data);
        x11.send_event(false, window, EventMask::NO_EVENT, wish)?;
        x11.sync()?;
        Ok(())
    }

    /// The one shown window of this title.
    pub(crate) fn window(&self, title: &str) -> Result<u32> {
        let found = self.xdotool(&["search", "--onlyvisible", "--name", &format!("^{title}$")])?;
        let mut ids = found.lines();
        let id = ids.next().with_context(|| format!("no window `{title}`"))?.parse()?;
        ensure!(ids.next().is_none(), "more than one window `{title}`: {found}");
        Ok(id)
    }

    /// Puts a window somewhere: the corner, and the size.
    pub(crate) fn place(&self, window: u32, [x, y, width, height]: [u32; 4]) -> Result<()> {
        let [id, x, y, width, height] = [window, x, y, width, height].map(|number| number.to_string());
        self.xdotool(&["windowsize", "--sync", &id, &width, &height, "windowmove", "--sync", &id, &x, &y])?;
        Ok(())
    }

    /// Where a window is: the corner, and the size.
    pub(crate) fn placed(&self, window: u32) -> Result<[u32; 4]> {
        let said = self.xdotool(&["getwindowgeometry", "--shell", &window.to_string()])?;
        let of = |name: &str| {
            let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            anyhow::Ok(found.with_context(|| format!("no {name} in {said}"))?.parse()?)
        };
        Ok([of("X")?, of("Y")?, of("WIDTH")?, of("HEIGHT")?])
    }

    fn xdotool(&self, arguments: &[&str]) -> Result<String> {
        let done = Command::new("xdotool").env("DISPLAY", &self.name).args(arguments).output()?;
        ensure!(done.status.success(), "xdotool {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        Ok(String::from_utf8(done.stdout)?)
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
