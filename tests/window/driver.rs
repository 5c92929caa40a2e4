//! The WebDriver of one test, and the app that it starts: a session is one run of the app.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::json;
use thirtyfour::{Capabilities, WebDriver};

use crate::{
    harness::{
        process::{Process, signal},
        programs, until,
    },
    surroundings::Surroundings,
};

const START_LIMIT: Duration = Duration::from_secs(20);
/// `POST /session` never answers where the app dies early.
const SESSION_LIMIT: Duration = Duration::from_secs(40);
const END_LIMIT: Duration = Duration::from_secs(20);

/// A running WebKitWebDriver.
pub(crate) struct Driver {
    process: Process,
    url: String,
    app: PathBuf,
}

impl Driver {
    /// Starts a driver on a free port; every app it starts inherits the test's surroundings.
    pub(crate) async fn start(folder: &Path, surroundings: &Surroundings) -> Result<Self> {
        let app = programs::app()?;
        // Free now, and this test is the only one that runs.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new("WebKitWebDriver");
        command.args([format!("--port={port}"), "--host=127.0.0.1".to_owned()]).env("TAURI_WEBVIEW_AUTOMATION", "true");
        surroundings.give(&mut command);
        let process = Process::start("driver", &mut command, folder)
            .context("WebKitWebDriver is not installed? `cargo xtask test` installs what the window tests need")?;
        let driver = Self { process, url: format!("http://127.0.0.1:{port}"), app };
        let http = reqwest::Client::builder().no_proxy().build()?;
        until("the driver listens", START_LIMIT, async || {
            Ok(http.get(format!("{}/status", driver.url)).send().await.ok().map(|_| ()))
        })
        .await?;
        Ok(driver)
    }

    /// Starts the app, and gives its session and process id.
    pub(crate) async fn open(&self) -> Result<(WebDriver, u32)> {
        let mut capabilities = Capabilities::new();
        capabilities.set("webkitgtk:browserOptions", json!({"binary": self.app, "args": []}))?;
        let session = match tokio::time::timeout(SESSION_LIMIT, WebDriver::new(&self.url, capabilities)).await {
            Ok(session) => session.context("the driver refused to start the app")?,
            Err(_) => bail!("the app did not open its window; see what it said in driver.err"),
        };
        let pid = self.app_pid().context("the app has a session and no process")?;
        Ok((session, pid))
    }

    /// Kills the app where it stands.
    pub(crate) async fn kill_app(&self, pid: u32) -> Result<()> {
        signal("KILL", pid)?;
        self.app_gone(pid).await
    }

    /// Waits until the app has ended, and let go of its files.
    pub(crate) async fn app_gone(&self, pid: u32) -> Result<()> {
        until("the app is gone", END_LIMIT, async || Ok(gone(pid).then_some(()))).await
    }

    fn app_pid(&self) -> Option<u32> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.pid())).ok()?;
        threads
            .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
            .flat_map(|children| children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
            .find(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == self.app))
    }
}

/// A process that was not yet waited for by its parent stays in the list, with no file open any more: as one thread, dead.
fn gone(pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let Ok(stat) = fs::read_to_string(process.join("stat")) else { return true };
    let threads = fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    threads <= 1 && state == Some('Z')
}
