//! The bundled bank: the mock bank and its gateway in the app's own process, where no other bank is named.

use std::{net::Ipv4Addr, path::Path};

use anyhow::{Context, Result};
use bank::{Bank, BankConfig, LabConfig, Token};
use rand::RngCore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::folder::private_folder;

/// The one shop that it knows. The till binds its operations to this name, so it stays the same over every start.
const MERCHANT: &str = "demo";
/// Bytes of chance in the run's secret.
const SECRET_BYTES: usize = 32;

/// A bank that lives as long as the app.
pub(crate) struct BundledBank {
    url: String,
    secret: String,
    end: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
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
        let secret = run_secret();
        let shared = bank::Secret::new(secret.clone());
        let mut config = BankConfig::new(folder.join("bank.db"));
        config.tokens = vec![Token { merchant: MERCHANT.to_owned(), secret: shared.clone() }];
        config.lab = Some(LabConfig { secret: Some(shared), may_abort: false });
        let bank = Bank::open(config).await?;
        let listener = bank::listen((Ipv4Addr::LOCALHOST, 0).into()).context("no free port on loopback")?;
        let url = bank.ready(&listener)?.url;
        let end = CancellationToken::new();
        let served = tokio::spawn(bank.serve(listener, end.clone().cancelled_owned()));
        Ok(Self { url, secret, end, served })
    }

    /// How the till asks it.
    pub(crate) fn asked(&self) -> outbox::Bank {
        outbox::Bank { url: self.url.clone(), token: outbox::Secret::new(self.secret.clone()) }
    }

    /// Lets it answer what runs, and ends it.
    ///
    /// # Errors
    /// Where it had already ended by a fault.
    pub(crate) async fn stop(self) -> Result<()> {
        self.end.cancel();
        Ok(self.served.await??)
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
        let policy = format!("{}/v1/policy", bundled.url);
        assert_eq!(http.get(&policy).send().await.unwrap().status(), 401);
        assert_eq!(http.get(&policy).bearer_auth(&bundled.secret).send().await.unwrap().status(), 200);

        let faults = format!("{}/lab/faults", bundled.url);
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
