//! A call for one operation: its beginning is made durable, it is made, and its outcome is made durable.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::Key;
use rusqlite::Connection;
use tokio::task::AbortHandle;
use tracing::Instrument;

use super::writing::WriteFailure;
use super::{Driver, Report, calling, too_late};
use crate::answer::{self, Reading};
use crate::events::Event as Told;
use crate::operations::Operation;
use crate::outcome::Change;
use crate::rows::{self, Beginning, LateAnswer, Prepared, Saved, Saving};
use crate::state::{Ask, State};
use crate::step::{BankIdentity, Event, Row};
use crate::transport::Transport;

/// What the driver keeps of an operation in flight.
pub(super) struct Flight {
    /// The bank that it was begun for.
    transport: Arc<dyn Transport>,
    prepared: Option<Box<Prepared>>,
    call: Option<AbortHandle>,
    status: Option<u16>,
    /// What the bank's clock said in its answer.
    bank_at: Option<Timestamp>,
}

impl Flight {
    pub(super) fn begun(&mut self, prepared: Box<Prepared>) {
        self.prepared = Some(prepared);
    }

    pub(super) const fn answered(&mut self, status: Option<u16>, bank_at: Option<Timestamp>) {
        self.status = status;
        self.bank_at = bank_at;
    }

    /// Breaks its call off.
    pub(super) fn abandon(&mut self) {
        if let Some(call) = self.call.take() {
            call.abort();
        }
    }
}

impl Driver<'_> {
    pub(super) fn begin(&mut self, row: Row, ask: Ask, bank: BankIdentity) {
        let key = row.key;
        let transport = self.transport.clone();
        self.flights.insert(key, Flight { transport, prepared: None, call: None, status: None, bank_at: None });
        let (now, far) = self.now_and_far();
        let (epoch, hook, contract) = (self.epoch, self.outbox.on_change.clone(), self.outbox.contract.clone());
        let write = self.write(move |tx| {
            let beginning = Beginning { row: &row, ask, bank: &bank, contract: contract.as_ref(), epoch, now, far };
            rows::begin(tx, &beginning, &calling(hook.as_ref()))
        });
        let events = self.outbox.events.clone();
        let task = async move {
            match write.await {
                Ok(Some(prepared)) => {
                    store::points::reach(store::points::Point::Counted);
                    let _ = events.send(Told::OperationChanged(Box::new(prepared.operation.clone())));
                    Report::Begun(Box::new(prepared))
                }
                Ok(None) => Report::Event(Event::NotBegun(key)),
                Err(failure) => failure.report(&key, "a call could not be recorded, so it is not made", |failure| {
                    if matches!(failure, WriteFailure::Fault(_)) {
                        Event::Panicked(key)
                    } else {
                        Event::BeginFailed(key)
                    }
                }),
            }
        };
        self.spawn(task, Report::Event(Event::Panicked(key)));
    }

    pub(super) fn call(&mut self, key: Key, ask: Ask, stood_ready: bool) {
        let Some(flight) = self.flights.get(&key) else { return self.feed(Event::Panicked(key)) };
        let Some(prepared) = flight.prepared.clone() else { return self.feed(Event::Panicked(key)) };
        let Prepared { operation, request, call } = *prepared;
        let span = tracing::info_span!("attempt", operation = %key.short_code(), attempt = operation.attempts);
        let (transport, clock) = (flight.transport.clone(), self.outbox.clock.clone());
        let (deadline, contract) = (self.outbox.settings.deadline.unsigned_abs(), self.outbox.contract.clone());
        let (store, epoch) = (self.outbox.store.clone(), self.epoch);
        let (decided_at, drift_max) = (clock.now(), self.outbox.settings.drift_max);
        let task = async move {
            if stood_ready {
                let check = store.read(move |conn| rows::is_wanted(conn, &key, ask, epoch));
                match tokio::time::timeout(deadline, check).await {
                    Ok(Ok(true)) => {}
                    Ok(Err(error)) => {
                        tracing::error!(%error, "what stood ready could not be read once more, so it is not sent");
                        return Report::Event(Event::NotCalled(key));
                    }
                    Ok(Ok(false)) | Err(_) => return Report::Event(Event::NotCalled(key)),
                }
                // Decided by another clock, or before the machine slept: the bank may have forgotten what it is to be asked.
                if clock.now().duration_since(decided_at).abs() > drift_max {
                    return Report::Event(Event::NotCalled(key));
                }
            }
            let Some(call) = call else {
                let detail = "the other side has no such call".to_owned();
                return Report::Answered { key, status: None, bank_at: None, reading: Reading::not_offered(detail) };
            };
            let answer = tokio::time::timeout(deadline, transport.call(call)).await;
            let answer = answer.unwrap_or_else(|_| Err(too_late()));
            let status = answer.as_ref().ok().map(|answer| answer.status);
            let (reading, date) = match answer {
                Ok(answer) => {
                    let reading = contract.read(ask, &operation, &request, &answer, clock.now());
                    (reading.readable_again(operation.kind), answer::date(&answer))
                }
                Err(error) => (Reading::from(error), None),
            };
            let reading = reading.fit_to_show();
            store::points::reach(store::points::Point::Answered);
            if operation.state.is_final() {
                store::points::reach(store::points::Point::TombstoneTold);
            }
            tracing::info!(status, reading = reading.name().as_ref(), "the bank was asked");
            // Whoever gives an answer that isn't the bank's has another clock too.
            let bank_at = date.filter(|_| !reading.is_transport());
            Report::Answered { key, status, bank_at, reading }
        };
        let handle = self.spawn(task.instrument(span), Report::Event(Event::Panicked(key)));
        if let Some(flight) = self.flights.get_mut(&key) {
            flight.call = Some(handle);
        }
    }

    pub(super) fn save(&mut self, key: Key, expected: State, begun: bool, change: Change) {
        let flight = self.flights.get(&key);
        let status = flight.and_then(|flight| flight.status);
        let bank_at = flight.and_then(|flight| flight.bank_at);
        let prepared = flight.and_then(|flight| flight.prepared.as_ref());
        let wished = prepared.is_some_and(|prepared| prepared.operation.cancel_wished_at.is_some());
        let (epoch, now, hook) = (self.epoch, self.outbox.clock.now(), self.outbox.on_change.clone());
        let late = self.outbox.on_late_answer.clone();
        // A fault of the hook must not keep a fault of the hook from being saved.
        let lenient = change.event == "panicked";
        let write = self.write(move |tx| {
            let hook = calling(hook.as_ref());
            let hook = |tx: &Connection, operation: &Operation| {
                if lenient { rows::leniently(tx, operation, &hook) } else { hook(tx, operation) }
            };
            let late = |tx: &Connection, operation: &Operation, answer: &LateAnswer| {
                late.as_ref().map_or(Ok(()), |late| late(tx, operation, answer))
            };
            let saving = Saving { key: &key, expected, begun, wished, change: &change, status, bank_at, epoch, now };
            rows::save(tx, &saving, &hook, &late)
        });
        let events = self.outbox.events.clone();
        let task = async move {
            match write.await {
                Ok(Saved::Done(operation, refunds)) => {
                    store::points::reach(store::points::Point::ResultSaved);
                    let _ = events.send(Told::OperationChanged(operation));
                    for refund in refunds {
                        let _ = events.send(Told::OperationChanged(Box::new(refund)));
                    }
                    Report::Event(Event::Saved(key))
                }
                Ok(Saved::Late(operation)) => {
                    let (code, state) = (operation.short_code, operation.state);
                    tracing::error!(operation = %code, %state, "the bank answered otherwise after the end");
                    Report::Event(Event::Saved(key))
                }
                Ok(Saved::NotKept(operation)) => {
                    let (code, state) = (operation.short_code, operation.state);
                    tracing::error!(operation = %code, %state, "an outcome came for a row that was not as it was left");
                    let _ = events.send(Told::OperationChanged(operation));
                    Report::Event(Event::Saved(key))
                }
                Err(failure) => failure.report(&key, "an outcome could not be saved yet", |failure| {
                    if matches!(failure, WriteFailure::Fault(_)) {
                        Event::Panicked(key)
                    } else {
                        Event::SaveFailed(key)
                    }
                }),
            }
        };
        self.spawn(task, Report::Event(Event::SaveFailed(key)));
    }
}
