//! Everything one test of the window needs, started before it and ended after it; and what is left to look at where it
//! failed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    display::Display,
    driver::Driver,
    harness::{bank::Bank, process::Process, programs},
    screen::Screen,
    surroundings::Surroundings,
};

/// One window at a time, also under a runner that knows no test groups.
static ALONE: Mutex<()> = Mutex::new(());

/// For one test as a whole, so that what hangs is told with a picture.
const TEST_LIMIT: Duration = Duration::from_secs(150);

/// Which bank the app is told of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A bank of its own process, named to the app.
    NamedBank,
    /// None: the app runs the bundled one.
    BundledBank,
}

/// The display, the driver, the bank and the app of one test.
pub(crate) struct Stage {
    pub(crate) display: Display,
    driver: Driver,
    bank: Option<Bank>,
    surroundings: Surroundings,
    /// Output of every process, and what a failure leaves.
    pub(crate) folder: PathBuf,
    /// The till's data, and what the bundled bank keeps beside it.
    pub(crate) data: PathBuf,
    screen: Option<Screen>,
    pid: u32,
}

impl Stage {
    /// Sets the stage, opens the window, plays the test, and leaves a picture and all output where it failed.
    pub(crate) fn play(name: &str, asks: Asks, test: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("window").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let data = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let mut stage = Self::set(asks, folder.clone(), data.path().join("till")).await?;
            let played = match tokio::time::timeout(TEST_LIMIT, async {
                stage.open().await?;
                test(&mut stage).await
            })
            .await
            {
                Ok(played) => played,
                Err(_) => Err(anyhow::anyhow!("not through after {} s", TEST_LIMIT.as_secs())),
            };
            if played.is_err() {
                stage.leave_evidence().await;
            }
            let closed = stage.close().await;
            played.with_context(|| format!("a picture and all output are in {}", folder.display()))?;
            closed
        })
    }

    async fn set(asks: Asks, folder: PathBuf, data: PathBuf) -> Result<Self> {
        let display = Display::start(&folder).await?;
        let bank = match asks {
            Asks::NamedBank => Some(Bank::start(&folder).await?),
            Asks::BundledBank => None,
        };
        let surroundings = Surroundings::new(&display, &data, bank.as_ref(), &folder)?;
        let driver = Driver::start(&folder, &surroundings).await?;
        Ok(Self { display, driver, bank, surroundings, folder, data, screen: None, pid: 0 })
    }

    /// Starts the app, for the first time or again, and waits for its first screen.
    pub(crate) async fn open(&mut self) -> Result<()> {
        let (session, pid) = self.driver.open().await?;
        self.pid = pid;
        let screen = self.screen.insert(Screen::new(session));
        screen.see("nav-sale").await?;
        Ok(())
    }

    /// Kills the app where it stands, and starts it again.
    pub(crate) async fn kill_and_open(&mut self) -> Result<()> {
        self.kill_app().await?;
        self.open().await
    }

    /// Kills the app where it stands.
    pub(crate) async fn kill_app(&mut self) -> Result<()> {
        self.driver.kill_app(self.pid).await?;
        match self.screen.take() {
            Some(screen) => screen.abandon().await,
            None => Ok(()),
        }
    }

    /// Ends the app as closing its window does.
    pub(crate) async fn close(&mut self) -> Result<()> {
        let Some(screen) = self.screen.take() else { return Ok(()) };
        screen.quit().await?;
        self.driver.app_gone(self.pid).await
    }

    /// Waits until the app has ended by itself.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        self.driver.app_gone(self.pid).await?;
        match self.screen.take() {
            Some(screen) => screen.abandon().await,
            None => Ok(()),
        }
    }

    /// Starts the app once more on the same folder, beside the one that may be open.
    pub(crate) fn start_beside(&self, name: &str) -> Result<Process> {
        let mut command = Command::new(programs::app()?);
        self.surroundings.give(&mut command);
        Process::start(name, &mut command, &self.folder)
    }

    /// The window, to look at and to click in.
    pub(crate) fn screen(&self) -> Result<&Screen> {
        self.screen.as_ref().context("the app is not open")
    }

    /// The bank named to the app.
    pub(crate) fn bank(&mut self) -> Result<&mut Bank> {
        match &mut self.bank {
            Some(bank) => Ok(bank),
            None => bail!("this test's app runs the bundled bank"),
        }
    }

    async fn leave_evidence(&self) {
        if let Err(error) = self.display.picture(self.folder.join("screen.png")) {
            eprintln!("no picture: {error:#}");
        }
        if let Some(screen) = &self.screen
            && let Err(error) = screen.save_source(&self.folder.join("screen.html")).await
        {
            eprintln!("no page source: {error:#}");
        }
        for log in ["driver.err", "bank.err", "gateway.err"] {
            let said = fs::read_to_string(self.folder.join(log)).unwrap_or_default();
            let tail: Vec<&str> = said.lines().rev().take(15).collect();
            if !tail.is_empty() {
                eprintln!("--- the end of {log}");
                tail.iter().rev().for_each(|line| eprintln!("{line}"));
            }
        }
    }
}
