//! The driver: performs what `decide` wants, and reports how it went.
//!
//! The loop itself waits for nothing but the next event, and for that at most one slice. Calls and writes run in tasks of
//! their own, each with a deadline; one that panics is reported like one that failed.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use protocol::Key;
use rusqlite::Connection;
use store::{Priority, StorageError, WriteError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::answer::{self, CallError, Reading};
use crate::decide::{Queue, decide};
use crate::events::Event as Told;
use crate::operations::Operation;
use crate::outbox::{Ended, OnChange, Outbox};
use crate::outcome::Change;
use crate::rows::{self, Beginning, LateAnswer, Prepared, RowError, Saved, Saving};
use crate::state::{Ask, State};
use crate::step::{BankIdentity, Effect, Event, MakeDue, Record, Row};
use crate::summary::summary;
use crate::transport::Transport;

/// How a run of the loop ended.
pub(crate) enum Stop {
    Ended(Ended),
    /// The file could not be taken over; nothing was sent.
    File(String),
}

/// How long the end may take: the last writes, no calls.
const STOP: Duration = Duration::from_secs(5);

/// How often the figures of the queue are told at most.
const SUMMARY_EVERY: Duration = Duration::from_millis(200);

/// How many times as long as they take to work out they then stand still: with many waiting they must not slow the queue.
const SUMMARY_REST: u32 = 20;

/// What a task reports.
enum Report {
    Event(Event),
    Begun(Box<Prepared>),
    Answered {
        key: Key,
        status: Option<u16>,
        bank_at: Option<Timestamp>,
        reading: Reading,
    },
    /// The answer of the bank that was asked in that generation, and its clock.
    Introduced {
        generation: u64,
        event: Event,
        bank_at: Option<Timestamp>,
    },
    Fenced,
    Summarized {
        /// How long it took to work them out.
        took: Duration,
    },
}

/// What the driver keeps of an operation in flight.
struct Flight {
    /// The bank that it was begun for.
    transport: Arc<dyn Transport>,
    prepared: Option<Box<Prepared>>,
    call: Option<AbortHandle>,
    status: Option<u16>,
    /// What the bank's clock said in its answer.
    bank_at: Option<Timestamp>,
}

struct Driver<'a> {
    outbox: &'a Outbox,
    queue: Queue,
    epoch: i64,
    transport: Arc<dyn Transport>,
    generation: u64,
    flights: HashMap<Key, Flight>,
    tasks: JoinSet<()>,
    reports: UnboundedSender<Report>,
    /// Wall and monotonic time at the last look, to find out that they parted.
    clocks: (Timestamp, Duration),
    told_bank: Option<(Option<bool>, Option<String>)>,
    summary: Summarizing,
    stopping_since: Option<Duration>,
    fenced: bool,
}

/// The figures are worked out one at a time, and not for every single change.
#[derive(Default)]
struct Summarizing {
    wanted: bool,
    running: bool,
    /// Not before that time, by the monotonic clock.
    from: Duration,
}

/// Takes the queue over and settles until told to stop. `transport` is left as the one that was last used.
pub(crate) async fn run(outbox: &Outbox, transport: &mut Arc<dyn Transport>, shutdown: &CancellationToken) -> Stop {
    if let Some(changed) = outbox.signals.bank() {
        *transport = changed;
    }
    let now = outbox.clock.now();
    let taking_over = take_over(outbox, transport.address().to_owned(), now);
    let started = tokio::select! {
        started = taking_over => match started {
            Ok(started) => started,
            Err(error) => return Stop::File(error),
        },
        // Taken over or not, nothing was sent by this owner.
        () = shutdown.cancelled() => return Stop::Ended(Ended::Stopped),
    };
    store::points::reach(store::points::Point::TakenOver);
    let (reports, inbox) = unbounded_channel();
    let mut driver = Driver {
        outbox,
        queue: Queue::at_start(outbox.settings, started.hold_until, now).with_clock_gap(started.clock_gap),
        epoch: started.epoch,
        transport: transport.clone(),
        generation: 0,
        flights: HashMap::new(),
        tasks: JoinSet::new(),
        reports,
        clocks: (now, outbox.clock.monotonic()),
        told_bank: None,
        summary: Summarizing::default(),
        stopping_since: None,
        fenced: false,
    };
    for operation in started.resumed {
        driver.tell(Told::OperationChanged(Box::new(operation)));
    }
    let ended = driver.drive(inbox, shutdown).await;
    *transport = driver.transport.clone();
    Stop::Ended(ended)
}

async fn take_over(outbox: &Outbox, address: String, now: Timestamp) -> Result<rows::Started, String> {
    let settings = outbox.settings;
    let hook = outbox.on_change.clone();
    let started = outbox
        .store
        .write(Priority::Background, move |tx| rows::start(tx, &address, &settings, now, &calling(hook.as_ref())));
    match tokio::time::timeout(settings.deadline.unsigned_abs(), started).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the file did not answer in time".to_owned()),
    }
}

/// The caller's hook, or nothing.
fn calling(hook: Option<&OnChange>) -> impl Fn(&Connection, &Operation) -> rusqlite::Result<()> {
    move |tx, operation| hook.map_or(Ok(()), |hook| hook(tx, operation))
}

impl Driver<'_> {
    async fn drive(&mut self, mut inbox: UnboundedReceiver<Report>, shutdown: &CancellationToken) -> Ended {
        self.feed(Event::Tick);
        self.summary.wanted = true;
        loop {
            while self.tasks.try_join_next().is_some() {}
            if self.fenced {
                tracing::error!("another owner has taken the queue over, nothing more is sent from here");
                return Ended::TakenOver;
            }
            if self.queue.has_stopped() || self.stop_took_too_long() {
                return Ended::Stopped;
            }
            self.tell_summary();
            let pause = self.pause();
            tokio::select! {
                Some(report) = inbox.recv() => {
                    self.check_clocks();
                    self.take(report);
                }
                () = self.outbox.signals.notify.notified() => {
                    self.check_clocks();
                    self.take_signals();
                }
                () = self.outbox.clock.sleep(pause) => {
                    self.check_clocks();
                    self.feed(Event::Tick);
                }
                () = shutdown.cancelled(), if self.stopping_since.is_none() => {
                    self.stopping_since = Some(self.outbox.clock.monotonic());
                    self.feed(Event::Stop);
                }
            }
        }
    }

    fn stop_took_too_long(&self) -> bool {
        self.stopping_since.is_some_and(|since| self.outbox.clock.monotonic().saturating_sub(since) > STOP)
    }

    /// Until time alone gives something to do, and never longer than a slice.
    fn pause(&self) -> Duration {
        let now = self.outbox.clock.now();
        let slice = self.outbox.settings.slice;
        let until = self.queue.wake_at(now).map_or(slice, |at| at.duration_since(now));
        let mut pause = until.clamp(SignedDuration::ZERO, slice).unsigned_abs();
        if self.summary.wanted && !self.summary.running && self.outbox.events.receiver_count() > 0 {
            pause = pause.min(self.summary.from.saturating_sub(self.outbox.clock.monotonic()));
        }
        if self.stopping_since.is_some() { pause.min(STOP) } else { pause }
    }

    /// After a suspend, or a clock that was set, everything planned by the clock is planned anew.
    fn check_clocks(&mut self) {
        let (wall, monotonic) = (self.outbox.clock.now(), self.outbox.clock.monotonic());
        let (last_wall, last_monotonic) = std::mem::replace(&mut self.clocks, (wall, monotonic));
        let passed = SignedDuration::try_from(monotonic.saturating_sub(last_monotonic)).unwrap_or(SignedDuration::MAX);
        let by = wall.duration_since(last_wall).saturating_sub(passed);
        if by.abs() > self.outbox.settings.drift_max {
            tracing::warn!(by_s = by.as_secs(), "the clock jumped, or the machine slept");
            self.feed(Event::ClockJumped { by });
        }
    }

    fn take_signals(&mut self) {
        if let Some(transport) = self.outbox.signals.bank() {
            let same_address = transport.address() == self.transport.address();
            self.transport = transport;
            self.generation += 1;
            self.change_address();
            self.feed(Event::BankChanged { same_address });
        }
        let wakes: Vec<_> = self.outbox.signals.wakes().collect();
        for wake in wakes {
            self.feed(Event::Wake(wake));
        }
    }

    fn take(&mut self, report: Report) {
        match report {
            Report::Event(event) => {
                if let Event::Saved(key) | Event::NotBegun(key) | Event::BeginFailed(key) = &event {
                    self.flights.remove(key);
                }
                // What a look found changes no figure; all else was a write.
                self.summary.wanted |= !matches!(event, Event::Found { .. });
                self.feed(event);
            }
            Report::Begun(prepared) => {
                let key = prepared.operation.key;
                self.summary.wanted = true;
                if let Some(flight) = self.flights.get_mut(&key) {
                    flight.prepared = Some(prepared);
                }
                self.feed(Event::Begun(key));
            }
            Report::Answered { key, status, bank_at, reading } => {
                if let Some(flight) = self.flights.get_mut(&key) {
                    flight.status = status;
                    flight.bank_at = bank_at;
                }
                self.take_bank_time(bank_at);
                self.feed(Event::Answered(key, reading));
            }
            Report::Introduced { generation, event, bank_at } if generation == self.generation => {
                self.take_bank_time(bank_at);
                self.feed(event);
            }
            // The bank that was asked is not the one that counts any more.
            Report::Introduced { .. } => {}
            Report::Fenced => self.fenced = true,
            Report::Summarized { took } => {
                self.summary.running = false;
                self.summary.from = self.summary.from.max(self.outbox.clock.monotonic() + took * SUMMARY_REST);
            }
        }
    }

    fn take_bank_time(&mut self, bank_at: Option<Timestamp>) {
        if let Some(at) = bank_at {
            self.feed(Event::BankTime(at));
        }
    }

    fn feed(&mut self, event: Event) {
        let now = self.outbox.clock.now();
        // Moved through and not copied, at every event. Nobody sees what stands there meanwhile: a panic ends this driver.
        let queue = std::mem::replace(&mut self.queue, Queue::at_start(self.outbox.settings, None, now));
        let (queue, effects) = decide(queue, event, now, (self.outbox.random)());
        self.queue = queue;
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Look { bank, limit } => self.look(bank, limit),
            Effect::Begin { row, ask, bank } => self.begin(row, ask, bank),
            Effect::Call { key, ask } => self.call(key, ask),
            Effect::Abandon(key) => {
                if let Some(call) = self.flights.get_mut(&key).and_then(|flight| flight.call.take()) {
                    call.abort();
                }
            }
            Effect::Save { key, expected, begun, change } => self.save(key, expected, begun, *change),
            Effect::Introduce => self.introduce(),
            Effect::MakeDue(make_due) => self.make_due(make_due),
            Effect::Record(record) => self.record(*record),
        }
    }

    /// Runs a task that reports once, whatever happens to it: `otherwise` where it panicked.
    fn spawn(&mut self, task: impl Future<Output = Report> + Send + 'static, otherwise: Report) -> AbortHandle {
        let reports = self.reports.clone();
        self.tasks.spawn(async move {
            let report = AssertUnwindSafe(task).catch_unwind().await.unwrap_or(otherwise);
            // Nobody listens any more once the loop has ended.
            let _ = reports.send(report);
        })
    }

    /// Hands over one write of the queue's own, to be waited for with a deadline. What one event has it write shares a commit: where
    /// one operation has its answer, that is saved together with the beginning of the next one's call.
    fn write<T: Send + 'static>(
        &self,
        piece: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> impl Future<Output = Result<T, WriteFailure>> + Send + 'static {
        let write = self.outbox.store.write(Priority::Background, piece);
        let deadline = self.outbox.settings.deadline.unsigned_abs();
        async move {
            match tokio::time::timeout(deadline, write).await {
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

    /// Now, and further than anything is planned ahead.
    fn now_and_far(&self) -> (Timestamp, Timestamp) {
        let now = self.outbox.clock.now();
        (now, now.saturating_add(self.outbox.settings.horizon()).unwrap_or(now))
    }

    fn look(&mut self, bank: BankIdentity, limit: usize) {
        let store = self.outbox.store.clone();
        let (now, far) = self.now_and_far();
        let deadline = self.outbox.settings.deadline.unsigned_abs();
        let task = async move {
            let look = store.read(move |conn| rows::look(conn, &bank, limit, now, far));
            Report::Event(match tokio::time::timeout(deadline, look).await {
                Ok(Ok(rows::Due { rows, next_due_at, other_bank })) => Event::Found { rows, next_due_at, other_bank },
                Ok(Err(error)) => {
                    tracing::error!(%error, "the queue could not be read");
                    Event::LookFailed
                }
                Err(_) => Event::LookFailed,
            })
        };
        self.spawn(task, Report::Event(Event::LookFailed));
    }

    fn begin(&mut self, row: Row, ask: Ask, bank: BankIdentity) {
        let key = row.key;
        let transport = self.transport.clone();
        let flight = Flight { transport, prepared: None, call: None, status: None, bank_at: None };
        self.flights.insert(key, flight);
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

    fn call(&mut self, key: Key, ask: Ask) {
        let Some(flight) = self.flights.get(&key) else { return self.feed(Event::Panicked(key)) };
        let Some(prepared) = flight.prepared.clone() else { return self.feed(Event::Panicked(key)) };
        let Prepared { operation, request, call } = *prepared;
        let span = tracing::info_span!("attempt", operation = %key.short_code(), attempt = operation.attempts);
        let (transport, clock) = (flight.transport.clone(), self.outbox.clock.clone());
        let (deadline, contract) = (self.outbox.settings.deadline.unsigned_abs(), self.outbox.contract.clone());
        let task = async move {
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
            store::points::reach(store::points::Point::Answered);
            if operation.state.is_final() {
                store::points::reach(store::points::Point::TombstoneTold);
            }
            tracing::info!(status, reading = reading.name(), "the bank was asked");
            // Whoever gives an answer that isn't the bank's has another clock too.
            let bank_at = date.filter(|_| !reading.is_transport());
            Report::Answered { key, status, bank_at, reading }
        };
        let handle = self.spawn(task.instrument(span), Report::Event(Event::Panicked(key)));
        if let Some(flight) = self.flights.get_mut(&key) {
            flight.call = Some(handle);
        }
    }

    fn save(&mut self, key: Key, expected: State, begun: bool, change: Change) {
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

    fn introduce(&mut self) {
        let (generation, contract) = (self.generation, self.outbox.contract.clone());
        let (transport, clock) = (self.transport.clone(), self.outbox.clock.clone());
        let deadline = self.outbox.settings.deadline.unsigned_abs();
        let task = async move {
            let answer = tokio::time::timeout(deadline, transport.call(contract.introduction())).await;
            let (promise, date) = match answer.unwrap_or_else(|_| Err(too_late())) {
                Ok(answer) => (contract.read_introduction(&answer, clock.now()), answer::date(&answer)),
                Err(error) => (Err(Reading::from(error)), None),
            };
            let bank_at = date.filter(|_| promise.as_ref().err().is_none_or(|reading| !reading.is_transport()));
            Report::Introduced { generation, event: Event::Introduced(promise), bank_at }
        };
        let fault = Err(Reading::NoAnswer { how: "fault", detail: String::new() });
        self.spawn(task, Report::Introduced { generation, event: Event::Introduced(fault), bank_at: None });
    }

    fn make_due(&mut self, make_due: MakeDue) {
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

    fn record(&mut self, record: Record) {
        let bank = (record.reachable, record.why.clone());
        if self.told_bank.as_ref() != Some(&bank) {
            if let Some(reachable) = record.reachable {
                self.tell(Told::Bank { reachable, why: record.why.clone() });
            }
            self.told_bank = Some(bank);
        }
        let epoch = self.epoch;
        let write = self.write(move |tx| rows::record(tx, &record, epoch));
        let task = async move {
            match write.await {
                Ok(()) => Report::Event(Event::Recorded),
                Err(WriteFailure::Fenced) => Report::Fenced,
                Err(_) => Report::Event(Event::RecordFailed),
            }
        };
        self.spawn(task, Report::Event(Event::RecordFailed));
    }

    fn change_address(&mut self) {
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

    fn tell(&self, event: Told) {
        // Nobody listens: then nobody misses it.
        let _ = self.outbox.events.send(event);
    }

    fn tell_summary(&mut self) {
        let monotonic = self.outbox.clock.monotonic();
        let too_soon = monotonic < self.summary.from;
        if !self.summary.wanted || self.summary.running || too_soon || self.outbox.events.receiver_count() == 0 {
            return;
        }
        self.summary = Summarizing { wanted: false, running: true, from: monotonic + SUMMARY_EVERY };
        let (store, events, clock) = (self.outbox.store.clone(), self.outbox.events.clone(), self.outbox.clock.clone());
        let (now, deadline) = (clock.now(), self.outbox.settings.deadline.unsigned_abs());
        let task = async move {
            let look = store.read(move |conn| summary(conn, now));
            if let Ok(Ok(figures)) = tokio::time::timeout(deadline, look).await {
                let _ = events.send(Told::Summary(Box::new(figures)));
            }
            Report::Summarized { took: clock.monotonic().saturating_sub(monotonic) }
        };
        self.spawn(task, Report::Summarized { took: Duration::ZERO });
    }
}

fn too_late() -> CallError {
    CallError::NoAnswer { how: "time-out", detail: "no answer within the deadline".to_owned() }
}

/// Why a write was not done.
enum WriteFailure {
    Fenced,
    /// The change itself is at fault: the hook refused or panicked.
    Fault(String),
    /// Nothing was written.
    Nothing(String),
    /// Perhaps it was written.
    Unknown(String),
}

impl WriteFailure {
    fn report(self, key: &Key, what: &str, event: impl FnOnce(&WriteFailure) -> Event) -> Report {
        let error = match &self {
            WriteFailure::Fenced => return Report::Fenced,
            WriteFailure::Fault(error) | WriteFailure::Nothing(error) | WriteFailure::Unknown(error) => error,
        };
        tracing::error!(operation = %key.short_code(), error, "{what}");
        Report::Event(event(&self))
    }
}
