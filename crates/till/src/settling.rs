//! The queue at work: what settles the operations against the bank, and what the till makes of its events.

use crate::{Till, TillError, operations};
use outbox::{Bank, HttpTransport};
use protocol::Key;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The running queue. Dropping it changes nothing; cancel the token that it was started with to end it.
#[derive(Debug)]
pub struct Settling {
    task: JoinHandle<()>,
}

impl Settling {
    /// Waits until the queue has ended after its token was cancelled: what was in flight is then `unknown` in the file.
    ///
    /// # Errors
    /// [`TillError::Internal`] where it ended by a fault.
    pub async fn stopped(self) -> Result<(), TillError> {
        self.task.await.map_err(|error| TillError::Internal(error.to_string()))
    }
}

impl Till {
    /// Starts to settle what is open with this bank, until `shutdown` is cancelled. With no bank nothing is sent: payments
    /// are saved and wait. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the address or the secret can't be used, [`TillError::Internal`] where it runs already.
    pub fn start_settling(&self, bank: Option<Bank>, shutdown: CancellationToken) -> Result<Settling, TillError> {
        let transport = bank
            .map(|bank| HttpTransport::new(&bank))
            .transpose()
            .map_err(|error| TillError::NoBank(error.to_string()))?;
        let task = tokio::spawn(async move {
            drop(transport);
            shutdown.cancelled().await;
        });
        Ok(Settling { task })
    }

    /// Asks the bank at once for what waits, by the button: all of it, because the bank is reached for all or for none. What
    /// waits for the bank's `Retry-After` still waits.
    ///
    /// # Errors
    /// [`TillError::NotFound`] where the key has no operation, [`TillError::NoBank`] where nothing is sent at all.
    pub async fn retry_now(&self, key: Option<Key>) -> Result<(), TillError> {
        if let Some(key) = key {
            self.read(move |conn| operations::by_key(conn, key)).await?;
        }
        Err(TillError::NoBank("no bank is named: payments are saved and wait".to_owned()))
    }
}
