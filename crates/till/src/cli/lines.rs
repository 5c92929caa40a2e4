//! The lines that `sync` prints: one for each change of an operation, in a task of their own.

use super::output::{Printer, document};
use std::{
    io,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use till::{Event, Operation, Place, Till, TillError};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;

/// How soon what could not be read is read again.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// What is to be printed, from where it was begun on.
pub(super) struct Lines {
    till: Till,
    events: Receiver<Event>,
    printer: Printer,
    /// How far the changes were printed.
    place: Place,
}

impl Lines {
    pub(super) async fn new(till: &Till) -> anyhow::Result<Self> {
        let (events, printer) = (till.subscribe(), Printer::start()?);
        Ok(Self { till: till.clone(), events, printer, place: Place::at(till.last_change().await?) })
    }

    /// Cancelled when the reader has gone, or can take no more.
    pub(super) fn reader_gone(&self) -> CancellationToken {
        self.printer.reader_gone()
    }

    /// How many were printed, counted on.
    pub(super) fn printed(&self) -> Arc<AtomicU64> {
        self.printer.printed()
    }

    /// Prints what is told until `end`, and then the rest of what was told before it. Dropped in the middle it would lose the
    /// line that waits for a slow reader: give it a task, and let that run.
    ///
    /// # Errors
    /// Where it could not be printed.
    pub(super) async fn print_until(mut self, end: CancellationToken) -> io::Result<()> {
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.recv() => event,
                () = end.cancelled() => break,
            };
            match event {
                Ok(Event::OperationChanged(operation)) => self.print_told(&operation).await,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.print_missed().await,
                // The sender lives as long as the till.
                Err(RecvError::Closed) => break,
            }
        }
        self.printer.finish().await
    }

    async fn print_told(&mut self, operation: &Operation) {
        self.print(operation).await;
        if let Err(error) = self.place.told_one(&self.till).await {
            // The place stays where it is, and more is read again than need be.
            tracing::warn!(%error, "the end of the log could not be read");
        }
    }

    /// The reader of the lines was slower than the bank: what changed meanwhile is read from the file, as soon as it can be.
    async fn print_missed(&mut self) {
        // What still waits here is in the file too, and after it would be told again.
        self.events = self.events.resubscribe();
        let mut is_said = false;
        while let Err(error) = self.print_changes().await {
            if !is_said {
                tracing::warn!(%error, "changes that were missed could not be read");
                is_said = true;
            }
            tokio::time::sleep(READ_AGAIN).await;
        }
    }

    async fn print_changes(&mut self) -> Result<(), TillError> {
        loop {
            let page = self.till.changed_since(self.place.to_catch_up_from()).await?;
            for operation in &page.operations {
                self.print(operation).await;
            }
            self.place = Place::at(page.up_to);
            if !page.more {
                return Ok(());
            }
        }
    }

    async fn print(&self, operation: &Operation) {
        self.printer.line(document(operation).to_string()).await;
    }
}
