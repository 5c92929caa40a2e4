//! The driver: performs what `decide` wants, and reports how it went.
//!
//! The loop itself waits for nothing but the next event, and for that at most one slice. Calls and writes run in tasks of
//! their own, each with a deadline; one that panics is reported like one that failed.

mod figures;
mod flight;
mod writing;

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use protocol::Key;
use rusqlite::Connection;
use store::Priority;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use figures::Summarizing;
use flight::Flight;

use crate::answer::{self, CallError, Lost, Reading};
use crate::contract::Promise;
use crate::decide::{Queue, decide};
use crate::events::Event as Told;
use crate::operations::Operation;
use crate::outbox::{Ended, OnChange, Outbox};
use crate::rows::{self, Prepared};
use crate::step::{BankIdentity, Effect, Event};
use crate::transport::Transport;

/// How a run of the loop ended.
pub(crate) enum Stop {
    Ended(Ended),
    /// The file could not be taken over; nothing was sent.
    File(String),
}

/// How long the end may take: the last writes, no calls.
const STOP: Duration = Duration::from_secs(5);

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

struct Driver<'a> {
    outbox: &'a Outbox,
    queue: Queue,
    epoch: i64,
    transport: Arc<dyn Transport>,
    generation: u64,
    flights: HashMap<Key, Flight>,
    tasks: JoinSet<()>,
    reports: UnboundedSender<Report>,
    /// Wall and monotonic time when they were last compared, to find out that they parted.
    clocks: (Timestamp, Duration),
    told_bank: Option<(Option<bool>, Option<String>)>,
    summary: Summarizing,
    stopping_since: Option<Duration>,
    fenced: bool,
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
        self.summary.want();
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
        if self.outbox.events.receiver_count() > 0
            && let Some(from) = self.summary.due_from()
        {
            pause = pause.min(from.saturating_sub(self.outbox.clock.monotonic()));
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
                // What a scan found changes no figure; all else was a write.
                if !matches!(event, Event::Found { .. }) {
                    self.summary.want();
                }
                self.feed(event);
            }
            Report::Begun(prepared) => {
                let key = prepared.operation.key;
                self.summary.want();
                if let Some(flight) = self.flights.get_mut(&key) {
                    flight.begun(prepared);
                }
                self.feed(Event::Begun(key));
            }
            Report::Answered { key, status, bank_at, reading } => {
                if let Some(flight) = self.flights.get_mut(&key) {
                    flight.answered(status, bank_at);
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
            Report::Summarized { took } => self.summary.worked_out(took, self.outbox.clock.monotonic()),
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
            Effect::Scan { bank, limit } => self.scan(bank, limit),
            Effect::Begin { row, ask, bank } => self.begin(row, ask, bank),
            Effect::Call { key, ask, stood_ready } => self.call(key, ask, stood_ready),
            Effect::Abandon(key) => {
                if let Some(flight) = self.flights.get_mut(&key) {
                    flight.abandon();
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

    /// Now, and further than anything is planned ahead.
    fn now_and_far(&self) -> (Timestamp, Timestamp) {
        let now = self.outbox.clock.now();
        (now, now.saturating_add(self.outbox.settings.horizon()).unwrap_or(now))
    }

    fn scan(&mut self, bank: BankIdentity, limit: usize) {
        let store = self.outbox.store.clone();
        let (now, far) = self.now_and_far();
        let deadline = self.outbox.settings.deadline.unsigned_abs();
        let task = async move {
            let scan = store.read(move |conn| rows::scan(conn, &bank, limit, now, far));
            Report::Event(match tokio::time::timeout(deadline, scan).await {
                Ok(Ok(rows::Due { rows, next_due_at, other_bank })) => Event::Found { rows, next_due_at, other_bank },
                Ok(Err(error)) => {
                    tracing::error!(%error, "the queue could not be read");
                    Event::ScanFailed
                }
                Err(_) => Event::ScanFailed,
            })
        };
        self.spawn(task, Report::Event(Event::ScanFailed));
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
            let promise = promise.and_then(Promise::fit_to_show).map_err(Reading::fit_to_show);
            let bank_at = date.filter(|_| promise.as_ref().err().is_none_or(|reading| !reading.is_transport()));
            Report::Introduced { generation, event: Event::Introduced(promise), bank_at }
        };
        let fault = Err(Reading::NoAnswer { how: Lost::Fault, detail: String::new() });
        self.spawn(task, Report::Introduced { generation, event: Event::Introduced(fault), bank_at: None });
    }

    fn tell(&self, event: Told) {
        // Nobody listens: then nobody misses it.
        let _ = self.outbox.events.send(event);
    }
}

fn too_late() -> CallError {
    CallError::NoAnswer { how: Lost::TimeOut, detail: "no answer within the deadline".to_owned() }
}
