//! What runs behind the window: the till with its lock, the bundled bank where none is named, and the queue.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use till::{Settling, Till};
use tokio_util::sync::CancellationToken;

use crate::{bundled::BundledBank, commands::lab::LabHere, dto::BankInfo, environment::Environment, lab::Lab};

/// How long closing waits for what is in flight. What is cut off then settles at the next start.
const CLOSE_LIMIT: Duration = Duration::from_secs(12);

/// An open till.
pub(crate) struct Shop {
    pub(crate) till: Till,
    pub(crate) bank: BankInfo,
    settling: Settling,
    bundled: Option<Arc<BundledBank>>,
    /// The lab of the bundled bank.
    pub(crate) lab: LabHere,
    shutdown: CancellationToken,
}

impl Shop {
    /// Takes the data folder, and goes on with what was left unsettled, before anything is shown.
    ///
    /// # Errors
    /// Where the folder is another process's, can't be written, or was written by a newer Kassa; and where there is no
    /// bank to be had. Nothing was sent then.
    pub(crate) async fn open(environment: Environment) -> Result<Self> {
        let till = Till::open(&environment.data_dir)?.acting_as("window");
        tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %environment.data_dir.display(), "opened");

        let (bank, bundled) = match environment.bank {
            Some(named) => (named, None),
            None => {
                let bundled =
                    BundledBank::start(&environment.data_dir).await.context("the bundled bank did not start")?;
                (bundled.asked(), Some(Arc::new(bundled)))
            }
        };
        let lab = bundled.clone().map(Lab::new).transpose()?.map(Arc::new);
        let shutdown = CancellationToken::new();
        let info = BankInfo { bundled: bundled.is_some(), address: bank.url.clone() };
        let settling = till.start_settling(Some(bank), shutdown.clone())?;
        Ok(Self { till, bank: info, settling, bundled, lab, shutdown })
    }

    /// Ends in order: first nothing is sent any more, then the bundled bank finishes what it has begun.
    pub(crate) async fn close(mut self) {
        self.shutdown.cancel();
        match tokio::time::timeout(CLOSE_LIMIT, self.settling.stopped()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("the queue did not end well: {error}"),
            Err(_) => tracing::warn!("what was in flight did not end in time; it settles at the next start"),
        }
        if let Some(bundled) = self.bundled
            && let Err(error) = bundled.stop().await
        {
            tracing::warn!("the bundled bank did not end well: {error:#}");
        }
        tracing::info!("closed");
    }
}
