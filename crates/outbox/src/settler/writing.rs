//! The queue's own writes to the file, each with a deadline, and what became of those that failed.

use std::future::Future;

use jiff::SignedDuration;
use protocol::Key;
use rusqlite::Connection;
use store::{Priority, StorageError, WriteError};

use super::{Driver, Report, calling};
use crate::events::Event as Told;
use crate::rows::{self, RowError};
use crate::step::{Event, MakeDue, Record};

/// Why a write was not done.
pub(super) enum WriteFailure {
    Fenced,
    /// The change itself is at fault: the hook refused or panicked.
    Fault(String),
    /// Nothing was written.
    Nothing(String),
    /// Perhaps it was written.
    Unknown(String),
}

impl WriteFailure {
    pub(super) fn report(self, key: &Key, what: &str, event: impl FnOnce(&WriteFailure) -> Event) -> Report {
        let error = match &self {
            WriteFailure::Fenced => return Report::Fenced,
            WriteFailure::Fault(error) | WriteFailure::Nothing(error) | WriteFailure::Unknown(error) => error,
        };
        tracing::error!(operation = %key.short_code(), error, "{what}");
        Report::Event(event(&self))
    }
}

impl Driver<'_> {
    /// Hands over one write of the queue's own, to be waited for with a deadline. What one event has it write shares a commit: where
    /// one operation has its answer, that is saved together with the beginning of the next one's call.
    pub(super) fn write<T: Send + 'static>(
        &self,
        piece: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> impl Future<Output = Result<T, WriteFailure>> + Send + 'static {
        let write = self.outbox.store.write(Priority::Background, piece);
        let deadline = self.outbox.settings.deadline.unsigned_abs();
        let store = self.outbox.store.clone();
        async move {
            let written = tokio::time::timeout(deadline, write).await;
            if let Ok(Err(WriteError::Refused(RowError::Sqlite(error)))) = &written {
                // The store knows SQLite's own errors, and not those inside a row's.
                store.met(error);
            }
            match written {
                Err(_) => Err(WriteFailure::Unknown("the file did not answer in time".to_owned())),
                Ok(Ok(value)) => Ok(value),
                Ok(Err(WriteError::Refused(RowError::Fenced))) => Err(WriteFailure::Fenced),
                Ok(Err(WriteError::Refused(error))) if !error.is_the_file() => {
                    Err(WriteFailure::Fault(error.to_string()))
                }
                Ok(Err(WriteError::Storage(StorageError::Panicked(text)))) => {
                    Err(WriteFailure::Fault(text.to_string()))
                }
                Ok(Err(WriteError::Uncertain(error) | WriteError::Untrusted(error))) => {
                    Err(WriteFailure::Unknown(error.to_string()))
                }
                Ok(Err(error)) => Err(WriteFailure::Nothing(error.to_string())),
            }
        }
    }

    pub(super) fn make_due(&mut self, make_due: MakeDue) {
        let (epoch, now) = (self.epoch, self.outbox.clock.now());
        let write = self.write(move |tx| rows::make_due(tx, make_due, epoch, now));
        let again = Report::Event(Event::MakeDueFailed(make_due));
        let task = async move {
            match write.await {
                Ok(()) => Report::Event(Event::MadeDue),
                Err(WriteFailure::Fenced) => Report::Fenced,
                // Shifted twice would be worse than not at all.
                Err(WriteFailure::Unknown(_)) => Report::Event(Event::MakeDueFailed(MakeDue {
                    shift: SignedDuration::ZERO,
                    aged: SignedDuration::ZERO,
                    ..make_due
                })),
                Err(_) => Report::Event(Event::MakeDueFailed(make_due)),
            }
        };
        self.spawn(task, again);
    }

    pub(super) fn record(&mut self, record: Record) {
        let bank = (record.reachable, record.why.clone());
        if self.told_bank.as_ref() != Some(&bank) {
            if let Some(reachable) = record.reachable {
                self.tell(Told::Bank { reachable, why: record.why.clone() });
            }
            self.told_bank = Some(bank);
        }
        let (epoch, now, hook) = (self.epoch, self.outbox.clock.now(), self.outbox.on_change.clone());
        let write = self.write(move |tx| rows::record(tx, &record, epoch, now, &calling(hook.as_ref())));
        let events = self.outbox.events.clone();
        let task = async move {
            match write.await {
                Ok(changed) => {
                    for operation in changed {
                        let _ = events.send(Told::OperationChanged(Box::new(operation)));
                    }
                    Report::Event(Event::Recorded)
                }
                Err(WriteFailure::Fenced) => Report::Fenced,
                Err(_) => Report::Event(Event::RecordFailed),
            }
        };
        self.spawn(task, Report::Event(Event::RecordFailed));
    }

    pub(super) fn change_address(&mut self) {
        let (epoch, address) = (self.epoch, self.transport.address().to_owned());
        let write = self.write(move |tx| rows::change_address(tx, &address, epoch));
        let task = async move {
            match write.await {
                Err(WriteFailure::Fenced) => Report::Fenced,
                // Then the next start may wait for a Retry-After of the old bank, for some minutes.
                Err(_) | Ok(()) => Report::Event(Event::Tick),
            }
        };
        self.spawn(task, Report::Event(Event::Tick));
    }
}
