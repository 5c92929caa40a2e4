//! The machine's network, watched for changes: a reason to try now, and never a permission.

use futures::{Stream, StreamExt as _};
use if_watch::IfEvent;
use outbox::Outbox;
use std::{io, pin::pin};
use tokio_util::sync::CancellationToken;

/// Tells the queue whenever this machine gets or loses an address, until `shutdown`. Where the system doesn't tell, the queue
/// goes on by its own clock.
pub(crate) async fn watch(outbox: Outbox, shutdown: CancellationToken) {
    let changes = match if_watch::tokio::IfWatcher::new() {
        Ok(changes) => changes,
        Err(error) => return tracing::warn!(%error, "changes of the network are not told: retries go by time alone"),
    };
    let forwarded = forward(changes, || outbox.network_changed());
    // Cancelled in any case at the end: a watcher must not outlive what it wakes.
    let _ = shutdown.run_until_cancelled(forwarded).await;
}

/// Calls `changed` for each change, and ends with the first fault.
async fn forward(changes: impl Stream<Item = io::Result<IfEvent>>, changed: impl Fn()) {
    let mut changes = pin!(changes);
    while let Some(change) = changes.next().await {
        match change {
            Ok(IfEvent::Up(address) | IfEvent::Down(address)) => {
                tracing::debug!(%address, "the network changed");
                changed();
            }
            Err(error) => return tracing::warn!(%error, "changes of the network are not told any more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn an_address_that_comes_or_goes_is_a_change_and_a_fault_is_the_end() {
        let address = "192.0.2.7/24".parse().unwrap();
        let fault = || io::Error::other("gone");
        let told = [Ok(IfEvent::Up(address)), Ok(IfEvent::Down(address)), Err(fault()), Ok(IfEvent::Up(address))];
        let changes = Cell::new(0);
        forward(futures::stream::iter(told), || changes.set(changes.get() + 1)).await;
        assert_eq!(changes.get(), 2);
    }

    /// What the system tells comes through: it begins with the addresses that are there.
    #[tokio::test]
    async fn the_system_tells_its_addresses() {
        let mut changes = if_watch::tokio::IfWatcher::new().unwrap();
        let first = tokio::time::timeout(std::time::Duration::from_secs(10), changes.next()).await.unwrap();
        assert!(matches!(first, Some(Ok(IfEvent::Up(_)))), "{first:?}");
    }
}
