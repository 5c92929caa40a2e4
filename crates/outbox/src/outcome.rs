//! What a reading does to its operation. Pure.

use jiff::{SignedDuration, Timestamp};

use crate::answer::{Name, Reading};
use crate::backoff::Random;
use crate::settings::Settings;
use crate::state::{Ask, Next, State};
use crate::step::Row;

/// How an operation's row becomes after a call, with the line for its log: what [`Effect::Save`](crate::decide::Effect::Save) makes
/// durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its new state.
    pub state: State,
    /// What is asked next.
    pub ask: Next,
    /// Failures in a row.
    pub failures: u32,
    /// Panics in its handling, ever.
    pub panics: u32,
    /// When it is tried or looked up next; none where it is final.
    pub due_at: Option<Timestamp>,
    /// Nothing is sent before it.
    pub not_before: Option<Timestamp>,
    /// The bank asked everybody to wait until then.
    pub hold_until: Option<Timestamp>,
    /// Why it needs attention. None keeps the reason of an operation that already does.
    pub reason: Option<String>,
    /// How the answer was read, where it isn't final.
    pub last_answer: Option<Name>,
    /// The bank's object.
    pub result: Option<String>,
    /// Whether the call was made, so that the operation was perhaps sent. What was only counted stays as it was.
    pub called: bool,
    /// The event for the log.
    pub event: &'static str,
    /// The reading for the log.
    pub reading: Option<Name>,
    /// More for the log.
    pub detail: String,
    /// The bank gave a valid answer.
    pub contact: bool,
    /// What was cancelled here ended otherwise at the bank: an alarm, and no change. The bank's object is in `result`.
    pub contradicts: Option<State>,
}

/// The row as it stays when a call changed nothing about it.
fn unchanged(row: &Row, ask: Next, state: State, now: Timestamp) -> Change {
    Change {
        state,
        ask,
        failures: row.failures,
        panics: row.panics,
        due_at: Some(now),
        not_before: None,
        hold_until: None,
        reason: None,
        last_answer: None,
        result: None,
        called: true,
        event: "answer",
        reading: None,
        detail: String::new(),
        contact: false,
        contradicts: None,
    }
}

/// What an operation is after a call that brought no end: never more certain than before. `sending` lasts as long as the call,
/// or the bank's last word that it is at it.
fn still_open(row: &Row, ask: Ask, connected: bool) -> State {
    match row.state {
        State::Saved if !(ask.sends() && connected) => State::Saved,
        State::Saved | State::Sending | State::Unknown => State::Unknown,
        state @ (State::Approved | State::Declined | State::Cancelled | State::NeedsAttention) => state,
    }
}

fn after(now: Timestamp, delay: SignedDuration) -> Timestamp {
    now.saturating_add(delay).unwrap_or(now)
}

/// The bank's `Retry-After`, as far as it is believed, with jitter.
pub(crate) fn hold(retry_after: SignedDuration, settings: &Settings, random: &mut Random) -> SignedDuration {
    retry_after.clamp(settings.retry_after_min, settings.retry_after_max) + random.up_to(settings.retry_after_jitter)
}

/// Set aside for a person. A wish to cancel stays one.
fn attention(row: &Row, ask: Ask, settings: &Settings, reason: String, now: Timestamp) -> Change {
    let asks_next = if ask == Ask::Cancel { Next::Cancel } else { Next::LookUp };
    Change {
        reason: Some(reason),
        due_at: Some(after(now, settings.attention_every)),
        ..unchanged(row, asks_next, State::NeedsAttention, now)
    }
}

/// After so many failures in a row an operation is taken to fail by itself: the way may be broken for it alone. Then it goes after others,
/// and is not made due by the mere end of an outage, else it would have all wait before anybody else gets to the bank.
pub(crate) const FAILS_BY_ITSELF: u32 = 3;

fn failed(row: &Row, settings: &Settings, now: Timestamp, random: &mut Random) -> (u32, Option<Timestamp>) {
    let failures = row.failures.saturating_add(1);
    (failures, Some(after(now, settings.backoff.delay(failures, random))))
}

/// What a reading makes of the row that `ask` was asked for. `permanent` tells whether the bank's claims on keys are.
pub(crate) fn settle(
    row: &Row,
    ask: Ask,
    reading: &Reading,
    permanent: bool,
    settings: &Settings,
    now: Timestamp,
    random: &mut Random,
) -> Change {
    let change = if row.state.is_final() {
        tombstone(row, reading, settings, now, random)
    } else {
        still_to_end(row, ask, reading, permanent, settings, now, random)
    };
    let no_answer = matches!(reading, Reading::NoConnection(_) | Reading::NoAnswer { .. });
    Change {
        last_answer: change.due_at.map(|_| reading.name()),
        event: if no_answer { "no-answer" } else { "answer" },
        reading: Some(reading.name()),
        detail: reading.detail(),
        contact: reading.is_the_banks_word(),
        ..change
    }
}

/// What a reading makes of an operation that is not final.
fn still_to_end(
    row: &Row,
    ask: Ask,
    reading: &Reading,
    permanent: bool,
    settings: &Settings,
    now: Timestamp,
    random: &mut Random,
) -> Change {
    let open = still_open(row, ask, !matches!(reading, Reading::NoConnection(_)));
    let asks_next = if open == State::NeedsAttention && ask.sends() { Next::LookUp } else { Next::from(ask) };
    let same = || unchanged(row, asks_next, open, now);
    let mut failed = || {
        let (failures, due_at) = failed(row, settings, now, random);
        Change { failures, due_at, ..same() }
    };
    match reading {
        Reading::Final { outcome, result } => {
            Change { state: State::from(*outcome), result: Some(result.clone()), failures: 0, due_at: None, ..same() }
        }
        Reading::Cancelled => Change { state: State::Cancelled, failures: 0, due_at: None, ..same() },
        Reading::BankAttention(detail) => attention(row, ask, settings, format!("bank: {detail}"), now),
        // It is set aside already, and for a better reason than that a question about it brought nothing.
        Reading::UnknownKey | Reading::Refused { .. } if row.state == State::NeedsAttention => {
            Change { due_at: Some(after(now, settings.attention_every)), ..same() }
        }
        Reading::Refused { problem, detail } => attention(row, ask, settings, format!("{problem}: {detail}"), now),
        Reading::InProgress(retry_after) => in_progress(row, ask, *retry_after, settings, now, random),
        // It said before that it doesn't know the key: a bank that contradicts itself is asked patiently.
        Reading::Expired if row.ask == Next::Resend => Change { ask: Next::LookUp, ..failed() },
        // A cancellation or a look-up is nothing that expires.
        Reading::Expired if !ask.sends() => failed(),
        Reading::Expired => Change { ask: Next::LookUp, ..same() },
        // Only a look-up can find out that a key is not known; to any other question it is no answer.
        Reading::UnknownKey if ask != Ask::LookUp => failed(),
        // The bank never saw it, and will never forget one that it saw: the same key is safe.
        Reading::UnknownKey if permanent => Change { ask: Next::Resend, ..same() },
        Reading::UnknownKey => {
            let reason = "forgotten: the bank doesn't know this payment any more".to_owned();
            attention(row, ask, settings, reason, now)
        }
        // The pause is the queue's; the operation did nothing wrong.
        Reading::NotAllowed(_) => same(),
        Reading::Busy { .. }
        | Reading::Trouble(_)
        | Reading::Foreign(_)
        | Reading::NoConnection(_)
        | Reading::NoAnswer { .. } => failed(),
    }
}

/// What a reading makes of an operation that was cancelled here before it was ever sent, and whose bank is still to be told. It
/// is final whatever comes: an answer that it ended otherwise is an alarm.
fn tombstone(row: &Row, reading: &Reading, settings: &Settings, now: Timestamp, random: &mut Random) -> Change {
    let same = || unchanged(row, Next::Cancel, row.state, now);
    let later = || Change { due_at: Some(after(now, settings.attention_every)), ..same() };
    match reading {
        Reading::Cancelled => Change { failures: 0, due_at: None, ..same() },
        Reading::Final { outcome, result } => Change {
            failures: 0,
            due_at: None,
            contradicts: Some(State::from(*outcome)),
            result: Some(result.clone()),
            ..same()
        },
        // A copy of this file sent it, and the bank's people must look: how it ends is asked until it has ended.
        Reading::BankAttention(_) => Change { contradicts: Some(State::NeedsAttention), ..later() },
        // Nobody can be told, so nothing is owed.
        Reading::Refused { problem, .. } if *problem == Reading::NOT_OFFERED => {
            Change { failures: 0, due_at: None, ..same() }
        }
        // Whatever it means, it is not that this key never charges.
        Reading::Refused { .. } | Reading::UnknownKey => Change { contradicts: Some(State::NeedsAttention), ..later() },
        Reading::InProgress(retry_after) => in_progress(row, Ask::Cancel, *retry_after, settings, now, random),
        Reading::NotAllowed(_) => same(),
        Reading::Expired
        | Reading::Busy { .. }
        | Reading::Trouble(_)
        | Reading::Foreign(_)
        | Reading::NoConnection(_)
        | Reading::NoAnswer { .. } => {
            let (failures, due_at) = failed(row, settings, now, random);
            Change { failures, due_at, ..same() }
        }
    }
}

/// The bank is at it: it is asked again soon, and patiently. Only a look-up of what was set aside has time.
fn in_progress(
    row: &Row,
    ask: Ask,
    retry_after: Option<SignedDuration>,
    settings: &Settings,
    now: Timestamp,
    random: &mut Random,
) -> Change {
    let until = after(now, hold(retry_after.unwrap_or(settings.retry_after_min), settings, random));
    let not_before = Some(until);
    // A bank that is at it for ever is not asked for ever as often as it allows.
    let (failures, backed_off) = failed(row, settings, now, random);
    let due_at = Some(backed_off.map_or(until, |at| at.max(until)));
    if row.state == State::NeedsAttention && ask != Ask::Cancel {
        let due_at = Some(after(now, settings.attention_every));
        return Change { due_at, not_before, ..unchanged(row, Next::LookUp, row.state, now) };
    }
    let (state, asks_next) = if ask.sends() { (State::Sending, Next::Send) } else { (row.state, Next::from(ask)) };
    Change { due_at, not_before, failures, ..unchanged(row, asks_next, state, now) }
}

/// What a panic in the handling of an operation makes of it: once it was called for, nobody knows whether it was sent.
pub(crate) fn panicked(
    row: &Row,
    ask: Ask,
    called: bool,
    settings: &Settings,
    now: Timestamp,
    random: &mut Random,
) -> Change {
    let panics = row.panics.saturating_add(1);
    let change = if panics < settings.panics_max {
        let (failures, due_at) = failed(row, settings, now, random);
        Change { failures, due_at, ..unchanged(row, Next::from(ask), still_open(row, ask, called), now) }
    } else if row.state.is_final() {
        // It has its end; only the bank is not told, for now.
        Change { due_at: Some(after(now, settings.attention_every)), ..unchanged(row, Next::Cancel, row.state, now) }
    } else {
        attention(row, ask, settings, "fault: it was set aside after repeated faults of this program".to_owned(), now)
    };
    Change { panics, event: "panicked", last_answer: Some("fault".into()), ..change }
}

/// What a call that was broken off, or not made after all, leaves behind.
pub(crate) fn broken_off(row: &Row, ask: Ask, sent: bool, event: &'static str, now: Timestamp) -> Change {
    Change { event, called: sent, ..unchanged(row, Next::from(ask), still_open(row, ask, sent), now) }
}
