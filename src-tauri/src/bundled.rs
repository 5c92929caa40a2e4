//! The bundled bank: the mock bank and its gateway in the app's own process, where no other bank is named.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bank::{Bank, BankConfig, LabConfig, OpenError, Token};
use rand::RngCore;
use tokio::{net::TcpListener, runtime::Runtime, sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::folder::private_folder;

/// The one shop that it knows. The till binds its operations to this name, so it stays the same over every start.
const MERCHANT: &str = "demo";
/// Bytes of chance in the run's secret.
const SECRET_BYTES: usize = 32;

/// How long the threads of a killed bank may still hold its files and its port.
const LET_GO_LIMIT: Duration = Duration::from_secs(15);
const LET_GO_POLL: Duration = Duration::from_millis(50);

/// A bank that lives as long as the app; it can be killed and started again meanwhile, as banks are.
pub(crate) struct BundledBank {
    database: PathBuf,
    secret: String,
    /// The same over every start.
    address: SocketAddr,
    running: Mutex<Option<Running>>,
}

/// One run of it, on threads of its own: what is killed goes with all that it was doing, and answers nobody.
struct Running {
    gateway_url: String,
    address: SocketAddr,
    end: CancellationToken,
    served: JoinHandle<io::Result<()>>,
    threads: Threads,
}

/// Threads that end with all that runs on them, waited for by nobody. A runtime alone may not be dropped where ours runs.
struct Threads(Option<Runtime>);

impl Threads {
    fn new() -> io::Result<Self> {
        Ok(Self(Some(Runtime::new()?)))
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        Ok(self.0.as_ref().context("the bundled bank was killed")?.spawn(work))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

/// Where a bank that runs can be asked.
pub(crate) struct Addresses {
    pub(crate) bank: String,
    pub(crate) gateway: String,
}

impl BundledBank {
    /// Starts it on loopback, with its data beside the till's. Only who has the secret made for this run can use it or
    /// its fault lab; the lab refuses to abort, which would take the app along.
    ///
    /// # Errors
    /// Where its files or a port can't be had.
    pub(crate) async fn start(data_dir: &Path) -> Result<Self> {
        let folder = data_dir.join("bank");
        private_folder(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (database, secret) = (folder.join("bank.db"), run_secret());
        let running = Running::start(&database, &secret, (Ipv4Addr::LOCALHOST, 0).into(), Duration::ZERO).await?;
        let address = running.address;
        Ok(Self { database, secret, address, running: Mutex::new(Some(running)) })
    }

    /// How the till asks it.
    pub(crate) fn asked(&self) -> outbox::Bank {
        outbox::Bank { url: self.url(), token: outbox::Secret::new(self.secret.clone()) }
    }

    /// The run's secret, which also opens the lab. It never crosses to the window.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Where it and its gateway can be asked; none while it does not run.
    pub(crate) async fn addresses(&self) -> Option<Addresses> {
        let running = self.running.lock().await;
        let running = running.as_ref().filter(|running| !running.served.is_finished())?;
        Some(Addresses { bank: self.url(), gateway: running.gateway_url.clone() })
    }

    /// Ends it where it stands, as a crash would. From then on its connections are refused.
    pub(crate) async fn kill(&self) {
        if let Some(Running { served, threads, .. }) = self.running.lock().await.take() {
            drop(threads);
            // What it gives is that it was ended, or had ended before.
            let _ = served.await;
        }
    }

    /// Starts it again on its data and at its address; one that runs goes on.
    ///
    /// # Errors
    /// Where its files or its port can't be had.
    pub(crate) async fn start_again(&self) -> Result<()> {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(|running| !running.served.is_finished()) {
            return Ok(());
        }
        *running = Some(Running::start(&self.database, &self.secret, self.address, LET_GO_LIMIT).await?);
        Ok(())
    }

    /// Lets it answer what runs, and ends it.
    ///
    /// # Errors
    /// Where it had already ended by a fault.
    pub(crate) async fn stop(&self) -> Result<()> {
        let Some(Running { end, served, threads, .. }) = self.running.lock().await.take() else { return Ok(()) };
        end.cancel();
        let ended = served.await;
        drop(threads);
        Ok(ended??)
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Running {
    /// Opens the bank and serves it there, within a limit where the run before may not have let go of files and port yet.
    async fn start(database: &Path, secret: &str, address: SocketAddr, limit: Duration) -> Result<Self> {
        let threads = Threads::new().context("no threads are left for the bundled bank")?;
        let end = CancellationToken::new();
        let (database, secret, ended) = (database.to_owned(), bank::Secret::new(secret), end.clone());
        let opening = threads.spawn(async move {
            let limit = Instant::now() + limit;
            let bank = open(&database, &secret, limit).await?;
            let listener = listen(address, limit).await?;
            let ready = (bank.ready(&listener)?.gateway_url, listener.local_addr()?);
            Ok((ready, tokio::spawn(bank.serve(listener, ended.cancelled_owned()))))
        })?;
        let ((gateway_url, address), served) = opening.await??;
        Ok(Self { gateway_url, address, end, served, threads })
    }
}

async fn open(database: &Path, secret: &bank::Secret, limit: Instant) -> Result<Bank, OpenError> {
    loop {
        let mut config = BankConfig::new(database);
        config.tokens = vec![Token { merchant: MERCHANT.to_owned(), secret: secret.clone() }];
        config.lab = Some(LabConfig { secret: Some(secret.clone()), may_abort: false });
        match Bank::open(config).await {
            Err(OpenError::Lock(_)) if Instant::now() < limit => tokio::time::sleep(LET_GO_POLL).await,
            opened => return opened,
        }
    }
}

async fn listen(address: SocketAddr, limit: Instant) -> Result<TcpListener> {
    loop {
        match bank::listen(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < limit => {
                tokio::time::sleep(LET_GO_POLL).await;
            }
            listening => return listening.with_context(|| format!("no port on loopback for {address}")),
        }
    }
}

fn run_secret() -> String {
    let mut chance = [0; SECRET_BYTES];
    rand::rng().fill_bytes(&mut chance);
    chance.iter().fold(String::from("sk_run_"), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_who_has_the_runs_secret_reaches_it_and_nobody_aborts_it() {
        let folder = tempfile::tempdir().unwrap();
        let bundled = BundledBank::start(folder.path()).await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let policy = format!("{}/v1/policy", bundled.url());
        assert_eq!(http.get(&policy).send().await.unwrap().status(), 401);
        assert_eq!(http.get(&policy).bearer_auth(&bundled.secret).send().await.unwrap().status(), 200);

        let faults = format!("{}/lab/faults", bundled.url());
        assert!(http.get(&faults).send().await.unwrap().status().is_client_error());
        assert_eq!(http.get(&faults).bearer_auth(&bundled.secret).send().await.unwrap().status(), 200);
        let abort = serde_json::json!([{"at": "received", "do": "abort"}]);
        let refused = http.put(&faults).bearer_auth(&bundled.secret).json(&abort).send().await.unwrap();
        assert!(refused.status().is_client_error(), "{}", refused.status());
        bundled.stop().await.unwrap();
    }

    #[test]
    fn each_run_has_a_secret_of_its_own() {
        assert_ne!(run_secret(), run_secret());
        assert_eq!(run_secret().len(), "sk_run_".len() + 2 * SECRET_BYTES);
    }
}
