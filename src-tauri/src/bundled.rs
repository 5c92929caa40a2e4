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
use tokio::{net::TcpListener, sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::folder::private_folder;

/// The one shop that it knows. The till binds its operations to this name, so it stays the same over every start.
const MERCHANT: &str = "demo";
/// Bytes of chance in the run's secret.
const SECRET_BYTES: usize = 32;

/// How long a killed bank may still hold its files: its gateway first answers what runs.
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

/// One run of it.
struct Running {
    gateway_url: String,
    end: CancellationToken,
    served: JoinHandle<io::Result<()>>,
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
        let opened = open(&database, &secret).await?;
        let listener = bank::listen((Ipv4Addr::LOCALHOST, 0).into()).context("no free port on loopback")?;
        let address = listener.local_addr()?;
        let running = Mutex::new(Some(Running::serve(opened, listener)?));
        Ok(Self { database, secret, address, running })
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
        if let Some(running) = self.running.lock().await.take() {
            running.served.abort();
            // What it gives is that it was aborted, or had ended before.
            let _ = running.served.await;
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
        let opened = open_once_free(&self.database, &self.secret).await?;
        let listener = bank::listen(self.address).with_context(|| format!("{} is not free any more", self.address))?;
        *running = Some(Running::serve(opened, listener)?);
        Ok(())
    }

    /// Lets it answer what runs, and ends it.
    ///
    /// # Errors
    /// Where it had already ended by a fault.
    pub(crate) async fn stop(&self) -> Result<()> {
        let Some(running) = self.running.lock().await.take() else { return Ok(()) };
        running.end.cancel();
        Ok(running.served.await??)
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Running {
    fn serve(bank: Bank, listener: TcpListener) -> Result<Self> {
        let gateway_url = bank.ready(&listener)?.gateway_url;
        let end = CancellationToken::new();
        let served = tokio::spawn(bank.serve(listener, end.clone().cancelled_owned()));
        Ok(Self { gateway_url, end, served })
    }
}

async fn open(database: &Path, secret: &str) -> Result<Bank, OpenError> {
    let shared = bank::Secret::new(secret);
    let mut config = BankConfig::new(database);
    config.tokens = vec![Token { merchant: MERCHANT.to_owned(), secret: shared.clone() }];
    config.lab = Some(LabConfig { secret: Some(shared), may_abort: false });
    Bank::open(config).await
}

/// The same, where the run that was killed may not have let go of the files yet.
async fn open_once_free(database: &Path, secret: &str) -> Result<Bank, OpenError> {
    let limit = Instant::now() + LET_GO_LIMIT;
    loop {
        match open(database, secret).await {
            Err(OpenError::Lock(_)) if Instant::now() < limit => tokio::time::sleep(LET_GO_POLL).await,
            opened => return opened,
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
