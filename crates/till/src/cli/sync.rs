//! `sync`: the queue at work with nobody looking, until everything is settled or it is told to end.

use super::{
    Failure,
    args::Sync,
    complain,
    output::{Printer, document},
};
use outbox::HttpTransport;
use protocol::Key;
use std::{collections::HashMap, process::ExitCode, time::Duration};
use till::{Bank, Event, Operation, OperationQuery, Place, Secret, State, Summary, Till, TillError};
use tokio::{
    sync::broadcast::{
        Receiver,
        error::{RecvError, TryRecvError},
    },
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

/// How long `--until-settled` tries where nothing else was said.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often the file is looked at for the end, beside the events.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long the end waits for whoever reads the lines.
const READER_WAIT: Duration = Duration::from_secs(2);

/// Not everything is final.
const NOT_IN_TIME: u8 = 3;
/// Everything is final but what a person must look at.
const NEEDS_ATTENTION: u8 = 4;

/// The bank that was named, if it can be used.
pub(super) fn bank(url: Option<String>, token: Option<String>) -> Result<Bank, Failure> {
    let named = |value: Option<String>| value.filter(|value| !value.is_empty());
    let missing = |what: &str| Failure::Usage(format!("sync needs a bank: name its {what}"));
    let url = named(url).ok_or_else(|| missing("address with --bank-url or KASSA_BANK_URL"))?;
    let token = named(token).ok_or_else(|| missing("secret with --bank-token or KASSA_BANK_TOKEN"))?;
    let bank = Bank { url, token: Secret::new(token) };
    HttpTransport::new(&bank).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(bank)
}

pub(super) async fn sync(till: Till, bank: Bank, args: &Sync) -> Result<ExitCode, Failure> {
    let mut told = Lines::new(&till).await?;
    let mut attention = Attention::at_start(&till).await?;
    let end = end_of_process()?;
    let shutdown = CancellationToken::new();
    let mut settling = till.start_settling(Some(bank), shutdown.clone())?;

    let limit = args.timeout.or(args.until_settled.then_some(TIMEOUT)).map(|limit| Instant::now() + limit);
    let mut end = std::pin::pin!(end);
    let reader_gone = told.printer.reader_gone();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = &mut end => break,
            () = at(limit) => break,
            ended = settling.stopped() => {
                ended?;
                break;
            }
            _ = look.tick() => {
                if matches!(till.trouble(), Some(TillError::Refused(_))) {
                    break;
                }
                if args.until_settled {
                    let summary = till.summary().await?;
                    if is_settled(&summary) && summary.tombstones == 0 && attention.was_looked_up(&till).await? {
                        break;
                    }
                }
            }
            () = reader_gone.cancelled() => break,
            printed = told.print_next() => printed?,
        }
    }
    shutdown.cancel();
    settling.stopped().await?;
    let printed = tokio::time::timeout(READER_WAIT, told.print_all()).await;
    let trouble = match till.trouble() {
        // No waiting helps, and nobody can say that nothing is lost.
        Some(damaged @ TillError::Refused(_)) => return Err(damaged.into()),
        trouble => trouble,
    };
    let summary = till.summary().await?;
    for reason in not_settled(&summary, trouble.as_ref()).into_iter().chain(clock_gap(&summary)) {
        complain(reason);
    }
    match printed {
        Ok(printed) => printed?,
        Err(_) => complain("nobody reads what is printed; `kassa-till operations` shows all of it"),
    }
    Ok(code(&summary))
}

/// What is not settled and why, in one line.
fn not_settled(summary: &Summary, trouble: Option<&TillError>) -> Option<String> {
    if is_settled(summary) {
        return None;
    }
    let why = match (trouble, &summary.paused, &summary.bank_problem) {
        (Some(TillError::Storage(why)), _, _) => why.clone(),
        (_, Some(paused), _) => {
            format!("the bank takes no request of this till ({paused}): look at its address and secret")
        }
        (_, None, _) if summary.other_bank > 0 => {
            format!("{} for another bank or merchant than the one named", summary.other_bank)
        }
        (_, None, Some(problem)) => format!("the bank can't be reached ({problem})"),
        (_, None, None) => "the time was up".to_owned(),
    };
    let (count, noun) = (summary.unsettled, if summary.unsettled == 1 { "payment is" } else { "payments are" });
    Some(format!("{count} {noun} not settled: {why}; nothing is lost, and the next `sync` goes on"))
}

/// Whether nothing is left that could end by itself: a refund that waits for a payment which needs a person can't.
fn is_settled(summary: &Summary) -> bool {
    summary.unsettled == summary.blocked
}

/// What a clock that is wrong would make of every time that is shown.
fn clock_gap(summary: &Summary) -> Option<String> {
    let gap_s = summary.clock_gap_s?;
    let (apart_min, where_) = (gap_s.abs() / 60, if gap_s > 0 { "ahead of" } else { "behind" });
    Some(format!("this machine's clock is {apart_min} min {where_} the bank's: one of them is wrong"))
}

fn code(summary: &Summary) -> ExitCode {
    if !is_settled(summary) {
        ExitCode::from(NOT_IN_TIME)
    } else if summary.needs_attention > 0 {
        ExitCode::from(NEEDS_ATTENTION)
    } else {
        ExitCode::SUCCESS
    }
}

/// Comes when the time is up, and never where there is no limit.
async fn at(limit: Option<Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// Comes when the process is asked to end.
#[cfg(unix)]
fn end_of_process() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Comes when the process is asked to end.
#[cfg(not(unix))]
fn end_of_process() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "the process can't be asked to end");
            std::future::pending::<()>().await;
        }
    })
}

/// What needed attention when this `sync` began, each with the last answer in its log: before it may be left to people, the
/// bank is asked once more what became of it. One that belongs to another bank is not: there is nobody to ask.
struct Attention {
    to_look_up: HashMap<Key, i64>,
}

impl Attention {
    async fn at_start(till: &Till) -> Result<Self, TillError> {
        let mut to_look_up = HashMap::new();
        let state = Some(State::NeedsAttention);
        let mut query = OperationQuery { state, oldest_first: true, ..OperationQuery::default() };
        loop {
            let page = till.operations(query).await?;
            query.after = page.operations.last().map(|operation| operation.seq);
            for operation in page.operations {
                to_look_up.insert(operation.key, last_answer(till, operation.key).await?);
            }
            if !page.more {
                return Ok(Self { to_look_up });
            }
        }
    }

    async fn was_looked_up(&mut self, till: &Till) -> Result<bool, TillError> {
        let bank = till.bank_asked().await?;
        while let Some((&key, &before)) = self.to_look_up.iter().next() {
            let operation = till.operation(key).await?;
            let is_elsewhere = bank.as_ref().is_some_and(|bank| operation.is_for_another_than(bank));
            let is_open = operation.state == State::NeedsAttention && !is_elsewhere;
            if is_open && last_answer(till, key).await? <= before {
                return Ok(false);
            }
            self.to_look_up.remove(&key);
        }
        Ok(true)
    }
}

/// The last time that the bank said something of it.
async fn last_answer(till: &Till, key: Key) -> Result<i64, TillError> {
    Ok(till.attempts(key).await?.iter().rfind(|entry| entry.answer.is_some()).map_or(0, |entry| entry.seq))
}

/// The lines that are printed: one for each change of an operation.
struct Lines {
    till: Till,
    events: Receiver<Event>,
    printer: Printer,
    /// How far the changes were printed.
    place: Place,
}

impl Lines {
    async fn new(till: &Till) -> Result<Self, Failure> {
        let (events, printer) = (till.subscribe(), Printer::start()?);
        Ok(Self { till: till.clone(), events, printer, place: Place::at(till.last_change().await?) })
    }

    /// Waits for the next event, and prints it where it is about an operation.
    async fn print_next(&mut self) -> Result<(), Failure> {
        match self.events.recv().await {
            Ok(Event::OperationChanged(operation)) => self.print_told(&operation).await,
            Ok(_) => Ok(()),
            Err(RecvError::Lagged(_)) => self.print_missed().await,
            // The sender lives as long as the till.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Prints what has been told and not printed yet, to the last line.
    async fn print_all(mut self) -> Result<(), Failure> {
        self.print_rest().await?;
        Ok(self.printer.finish().await?)
    }

    async fn print_rest(&mut self) -> Result<(), Failure> {
        loop {
            match self.events.try_recv() {
                Ok(Event::OperationChanged(operation)) => self.print_told(&operation).await?,
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => self.print_missed().await?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    /// The reader of the lines was slower than the bank: what changed meanwhile is read from the file.
    async fn print_missed(&mut self) -> Result<(), Failure> {
        loop {
            let page = self.till.changed_since(self.place.to_catch_up_from()).await?;
            self.place = Place::at(page.up_to);
            for operation in &page.operations {
                self.print(operation).await;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    async fn print_told(&mut self, operation: &Operation) -> Result<(), Failure> {
        self.print(operation).await;
        Ok(self.place.told_one(&self.till).await?)
    }

    async fn print(&self, operation: &Operation) {
        self.printer.line(document(operation).to_string()).await;
    }
}
