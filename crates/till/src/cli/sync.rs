//! `sync`: the queue at work with nobody looking, until everything is settled or it is told to end.

use super::{Failure, args::Sync, complain, lines::Lines};
use anyhow::anyhow;
use outbox::HttpTransport;
use protocol::{Key, Kind};
use std::{
    collections::HashMap,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use till::{Alarm, Bank, OperationQuery, Secret, State, Summary, Till, TillError, format_amount};
use tokio::{
    task::{JoinError, JoinHandle},
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

/// How long `--until-settled` tries where nothing else was said.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often the file is looked at for the end, beside the events.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long the end waits for whoever reads the lines and takes none.
const READER_WAIT: Duration = Duration::from_secs(2);

/// Not everything is final.
const NOT_IN_TIME: u8 = 3;
/// Everything is final, and a person must look at some of it.
const NEEDS_ATTENTION: u8 = 4;

/// The bank that was named, if it can be used.
pub(super) fn bank(url: Option<String>, token: Option<String>) -> Result<Bank, Failure> {
    let named = |value: Option<String>| value.filter(|value| !value.is_empty());
    let missing = |what: &str| Failure::Usage(format!("this needs a bank: name its {what}"));
    let url = named(url).ok_or_else(|| missing("address with --bank-url or KASSA_BANK_URL"))?;
    let token = named(token).ok_or_else(|| missing("secret with --bank-token or KASSA_BANK_TOKEN"))?;
    let bank = Bank { url, token: Secret::new(token) };
    HttpTransport::new(&bank).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(bank)
}

/// The bank for who can do without one: none where no address is named.
pub(super) fn named_bank(url: Option<String>, token: Option<String>) -> Result<Option<Bank>, Failure> {
    match url.filter(|url| !url.is_empty()) {
        None => Ok(None),
        url => bank(url, token).map(Some),
    }
}

pub(super) async fn sync(till: Till, bank: Bank, args: &Sync) -> Result<ExitCode, Failure> {
    // Where nothing is to be matched it asks nobody.
    match till.match_restored(&bank).await {
        Ok(matched) => {
            let paid = matched
                .paid
                .iter()
                .map(|sale| format!("sale {sale} was paid after the copy was made, and is closed as paid"));
            paid.chain(matched.unknown).for_each(complain);
        }
        // It may be in reach later; nothing is sent before it was asked the first time.
        Err(error @ TillError::NoBank(_)) => {
            complain(error);
            if till.waits_for_match().await? {
                return Ok(ExitCode::from(NOT_IN_TIME));
            }
        }
        Err(error) => return Err(error.into()),
    }
    let lines = Lines::new(&till).await?;
    let attention = Attention::at_start(&till).await?;
    let audit_end = till.audit_end().await?;
    let end = end_of_process()?;
    let shutdown = CancellationToken::new();
    let mut settling = till.start_settling(Some(bank), shutdown.clone())?;
    let (reader_gone, lines_printed) = (lines.reader_gone(), lines.printed());
    let all_told = CancellationToken::new();
    let printing = tokio::spawn(lines.print_until(all_told.clone()));

    let limit = args.timeout.or(args.until_settled.then_some(TIMEOUT)).map(|limit| Instant::now() + limit);
    let over = is_over(&till, args.until_settled.then_some(attention));
    let ended = tokio::select! {
        biased;
        () = end => Ok(End::Asked),
        () = at(limit) => Ok(End::TimeUp),
        ended = settling.stopped() => ended.map(|()| End::Asked),
        ended = over => ended.map(|()| End::Settled),
        () = reader_gone.cancelled() => Ok(End::ReaderGone),
    };
    // However it ended: what is in flight is to be known as such, and what was told is to be printed.
    shutdown.cancel();
    let stopped = settling.stopped().await;
    all_told.cancel();
    // Who was asked to end does not wait for a reader who takes his time.
    let is_patient = !matches!(ended, Ok(End::Asked));
    let printed = until_printed(printing, &lines_printed, is_patient).await;
    let ended = ended.and_then(|end| stopped.map(|()| end));
    let known = match ended {
        Ok(end) => whatever_is_known(&till, audit_end).await.map(|known| (end, known)),
        Err(error) => Err(error),
    };
    let (end, known) = match known {
        Ok(known) => known,
        Err(error) => return Err(Failure::Refused(anyhow!("{error}; {NOT_UNDONE}"))),
    };
    let reasons = known.alarms.iter().map(alarm).chain(not_settled(&known, end));
    for reason in reasons.chain(clock_gap(&known.summary)) {
        complain(reason);
    }
    let unprinted = match printed {
        Some(printed) => printed?.err().map(|error| format!("not all could be printed ({error})")),
        None => Some("not all was printed, as nobody reads it, or too slowly".to_owned()),
    };
    // No refusal: what was to be done does not hang on it.
    if let Some(why) = unprinted {
        complain(format_args!("{why}; `kassa-till operations` shows all of it"));
    }
    Ok(code(&known.summary, &known.alarms))
}

/// Waits until all is printed; gives up, with nothing, where the reader takes no line for a while, and an impatient one in any case.
async fn until_printed<T>(
    mut printing: JoinHandle<T>,
    lines: &AtomicU64,
    is_patient: bool,
) -> Option<Result<T, JoinError>> {
    loop {
        let before = lines.load(Ordering::Relaxed);
        match tokio::time::timeout(READER_WAIT, &mut printing).await {
            Ok(printed) => return Some(printed),
            Err(_) if is_patient && lines.load(Ordering::Relaxed) > before => {}
            Err(_) => return None,
        }
    }
}

/// How `sync` came to its end.
#[derive(Clone, Copy)]
enum End {
    /// Everything is settled that can be.
    Settled,
    /// By a signal.
    Asked,
    TimeUp,
    /// Nothing can be printed any more.
    ReaderGone,
}

/// After a start nobody can say that nothing was sent.
const NOT_UNDONE: &str = "what was sent before this is not undone, and the bank may have charged it";

/// How it stands at the end.
struct Known {
    summary: Summary,
    /// What those are that are not settled.
    left_are: &'static str,
    /// The trouble that there is with the file.
    trouble: Option<TillError>,
    /// The alarms of this run.
    alarms: Vec<Alarm>,
}

async fn whatever_is_known(till: &Till, audit_end: i64) -> Result<Known, TillError> {
    if let Some(error) = till.trouble() {
        // What was begun may still wait for the file: the last word comes after all that is said of it.
        let still = till.probe().await.err();
        tracing::debug!(%error, still = ?still, "there was trouble with the file");
    }
    let trouble = match till.trouble() {
        // No waiting helps, and nobody can say that nothing is lost.
        Some(damaged @ TillError::Damaged(_)) => return Err(damaged),
        trouble => trouble,
    };
    let summary = till.summary().await?;
    let left_are = left_are(till, &summary).await?;
    Ok(Known { summary, left_are, trouble, alarms: till.alarms_since(audit_end).await? })
}

/// What an alarm means, in one line.
fn alarm(Alarm { operation, came, .. }: &Alarm) -> String {
    let amount = format!("{} {}", format_amount(operation.amount, operation.currency), operation.currency);
    format!(
        "{} {} of {amount} is {} here, and the bank says {came}: this folder, or the bank's data, may be a copy. Nothing was changed; \
         look at it with the bank before any money is taken or given back for it",
        operation.kind.as_str(),
        operation.short_code,
        operation.state
    )
}

/// Comes when everything is settled, where that is waited for.
///
/// # Errors
/// [`TillError::Damaged`], at once, because no waiting helps. A look that fails otherwise is no end: it may pass.
async fn is_over(till: &Till, mut until_settled: Option<Attention>) -> Result<(), TillError> {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut could_read = true;
    loop {
        look.tick().await;
        if let Some(damaged @ TillError::Damaged(_)) = till.trouble() {
            return Err(damaged);
        }
        let Some(attention) = &mut until_settled else { continue };
        match is_all_settled(till, attention).await {
            Ok(true) => return Ok(()),
            Ok(false) => could_read = true,
            Err(damaged @ TillError::Damaged(_)) => return Err(damaged),
            Err(error) => {
                // Once, and not at every look.
                if could_read {
                    tracing::warn!(%error, "the queue could not be read, trying again");
                }
                could_read = false;
            }
        }
    }
}

async fn is_all_settled(till: &Till, attention: &mut Attention) -> Result<bool, TillError> {
    let summary = till.summary().await?;
    // One that belongs to another bank waits for that one: there is nobody to tell.
    let is_told = summary.tombstones == 0 || attention.has_begun(till).await? && till.cancelled_to_tell().await? == 0;
    Ok(is_settled(&summary) && is_told && attention.was_looked_up(till).await?)
}

/// What is not settled and why, in one line.
fn not_settled(known: &Known, end: End) -> Option<String> {
    let (summary, left) = (&known.summary, left(&known.summary));
    if left == 0 {
        return None;
    }
    let (what, why) = (known.left_are, why(summary, known.trouble.as_ref(), end));
    let what = if left == 1 { format!("{what} is") } else { format!("{what}s are") };
    Some(format!("{left} {what} not settled: {why}; nothing is lost, and the next `sync` goes on"))
}

/// What is in the way, all of it; and where nothing is in the way of some, how the run ended.
fn why(summary: &Summary, trouble: Option<&TillError>, end: End) -> String {
    if let Some(TillError::Storage(why)) = trouble {
        return why.clone();
    }
    let elsewhere = summary.other_bank;
    let elsewhere = (elsewhere > 0).then(|| format!("{elsewhere} for another bank or merchant than the one named"));
    let in_the_way = match (&summary.paused, &summary.bank_problem) {
        (Some(paused), _) => {
            Some(format!("the bank takes no request of this till ({paused}): look at its address and secret"))
        }
        (None, Some(problem)) if summary.bank_reachable == Some(true) => {
            Some(format!("the bank answers, but takes none now ({problem})"))
        }
        (None, Some(problem)) => Some(format!("the bank can't be reached ({problem})")),
        (None, None) if summary.other_bank >= left(summary) => None,
        (None, None) => Some(
            match end {
                End::Settled | End::Asked => "it was asked to end before",
                End::TimeUp => "the time was up",
                End::ReaderGone => "it ended because what it prints can't be printed any more",
            }
            .to_owned(),
        ),
    };
    elsewhere.into_iter().chain(in_the_way).collect::<Vec<_>>().join(", and ")
}

/// What those that are left are: of one kind, or of both.
async fn left_are(till: &Till, summary: &Summary) -> Result<&'static str, TillError> {
    let (mut payments, mut refunds) = (0, 0);
    for state in [State::Saved, State::Sending, State::Unknown] {
        let mut query = OperationQuery { state: Some(state), oldest_first: true, ..OperationQuery::default() };
        loop {
            let page = till.operations(query).await?;
            query.after = page.operations.last().map(|operation| operation.seq);
            for operation in page.operations {
                match operation.kind {
                    Kind::Payment => payments += 1,
                    Kind::Refund => refunds += 1,
                }
            }
            let are_mixed = payments > 0 && refunds > summary.blocked;
            if are_mixed || !page.more {
                break;
            }
        }
    }
    Ok(match (payments > 0, refunds > summary.blocked) {
        (true, false) => "payment",
        (false, true) => "refund",
        _ => "operation",
    })
}

/// How many are left that could end by themselves: a refund that waits for a payment which needs a person can't.
fn left(summary: &Summary) -> u32 {
    summary.unsettled - summary.blocked
}

/// Whether nothing is left that could end by itself.
fn is_settled(summary: &Summary) -> bool {
    left(summary) == 0
}

/// What a clock that is wrong would make of every time that is shown.
fn clock_gap(summary: &Summary) -> Option<String> {
    let gap_s = summary.clock_gap_s?;
    let (apart_min, where_) = (gap_s.abs() / 60, if gap_s > 0 { "ahead of" } else { "behind" });
    Some(format!("this machine's clock is {apart_min} min {where_} the bank's: one of them is wrong"))
}

fn code(summary: &Summary, alarms: &[Alarm]) -> ExitCode {
    if !is_settled(summary) {
        ExitCode::from(NOT_IN_TIME)
    } else if summary.needs_attention > 0 || !alarms.is_empty() {
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
    /// The starts of settling before this one.
    starts: i64,
    to_look_up: HashMap<Key, Option<i64>>,
}

impl Attention {
    async fn at_start(till: &Till) -> Result<Self, TillError> {
        let (starts, mut to_look_up) = (till.starts().await?, HashMap::new());
        let state = Some(State::NeedsAttention);
        let mut query = OperationQuery { state, oldest_first: true, ..OperationQuery::default() };
        loop {
            let page = till.operations(query).await?;
            query.after = page.operations.last().map(|operation| operation.seq);
            for operation in page.operations {
                to_look_up.insert(operation.key, till.last_answer(operation.key).await?);
            }
            if !page.more {
                return Ok(Self { starts, to_look_up });
            }
        }
    }

    /// Whether what the file says of the bank is of this start, and not of one before it with another bank perhaps.
    async fn has_begun(&self, till: &Till) -> Result<bool, TillError> {
        Ok(till.starts().await? > self.starts)
    }

    async fn was_looked_up(&mut self, till: &Till) -> Result<bool, TillError> {
        if self.to_look_up.is_empty() {
            return Ok(true);
        }
        if !self.has_begun(till).await? {
            return Ok(false);
        }
        let bank = till.bank_asked().await?;
        while let Some((&key, &before)) = self.to_look_up.iter().next() {
            let operation = till.operation(key).await?;
            let is_elsewhere = bank.as_ref().is_some_and(|bank| operation.is_for_another_than(bank));
            let is_open = operation.state == State::NeedsAttention && !is_elsewhere;
            if is_open && till.last_answer(key).await? <= before {
                return Ok(false);
            }
            self.to_look_up.remove(&key);
        }
        Ok(true)
    }
}
