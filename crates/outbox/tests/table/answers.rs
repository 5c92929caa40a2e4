//! What an answer makes of its operation.

use anyhow::{Context, Result, bail};
use outbox::answer::{Lost, Reading};
use outbox::decide::{Change, Effect, Event, Next, Queue, Row, decide};
use outbox::{Ask, Settings, State};
use protocol::Outcome;

use crate::page::{REST, grouped, rest_last, table};
use crate::words::{Becomes, CHANCE, NOW, RETENTION, RETRY_AFTER, becomes, promise, question, row};

/// Each way to read an answer, as a pattern that must fit and an example of it. A new one that is not here doesn't compile.
macro_rules! readings {
    ($($($pattern:pat_param)|+ = $example:expr => $text:literal;)*) => {
        fn text_of(reading: &Reading) -> &'static str {
            match reading { $($($pattern)|+ => $text,)* }
        }
        fn readings() -> Vec<Reading> {
            vec![$($example),*]
        }
    };
}

readings! {
    Reading::Final { outcome: Outcome::Approved, .. } = Reading::Final { outcome: Outcome::Approved, result: String::new() }
        => "**approved**: a valid 201, or a look-up or cancellation that says so";
    Reading::Final { outcome: Outcome::Declined, .. } = Reading::Final { outcome: Outcome::Declined, result: String::new() }
        => "**declined**: a valid 402, or a look-up or cancellation that says so";
    Reading::Cancelled = Reading::Cancelled => "**cancelled**: 410 `operation-cancelled`, or a look-up or cancellation that says so";
    Reading::BankAttention(_) = Reading::BankAttention("…".to_owned())
        => "**needs attention at the bank**: 409 with that state, or a look-up or cancellation that says so";
    Reading::InProgress(_) = Reading::InProgress(Some(RETRY_AFTER)) => "**in progress**: 409, or a look-up that says `processing`";
    Reading::Refused { .. } = Reading::refused("request-invalid", "…")
        => "**refused**: 400, 404, 413, 415, 422";
    Reading::Expired = Reading::Expired => "**expired**: 410 `key-expired`";
    Reading::UnknownKey = Reading::UnknownKey => "**unknown key**: a look-up's 404 `operation-unknown`";
    Reading::NotAllowed(_) = Reading::not_allowed("unauthorized") => "**not allowed**: 401, 403. The queue pauses";
    Reading::Busy { .. } = Reading::busy("unavailable", RETRY_AFTER)
        => "**busy**: 429, 503 with `Retry-After`. The queue holds until then";
    Reading::Trouble(_) = Reading::trouble("internal") => "**trouble**: any other 5xx with a problem document of ours";
    Reading::Foreign(_) = Reading::Foreign(String::new())
        => "**not the bank's**: HTML, a redirect, another key or amount, no valid document. The breaker opens";
    Reading::NoAnswer { .. } = Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() }
        => "**no answer**: time-out, reset, torn, too large. The breaker opens";
    Reading::NoConnection(_) = Reading::NoConnection(String::new()) => "**no connection** was made. The breaker opens";
}

/// Whether a row can ask that in that state.
const fn can_be(state: State, ask: Next) -> bool {
    match state {
        State::Saved => matches!(ask, Next::Send),
        // After an unknown key it is sent again from `unknown`.
        State::Sending => matches!(ask, Next::Send | Next::LookUp | Next::Cancel),
        State::Unknown => true,
        State::NeedsAttention => matches!(ask, Next::LookUp | Next::Cancel),
        // Never sent, cancelled here, and the bank is still to be told.
        State::Cancelled => matches!(ask, Next::Cancel),
        State::Approved | State::Declined => false,
    }
}

fn possible() -> impl Iterator<Item = (State, Next)> {
    let pairs = State::ALL.into_iter().flat_map(|state| Next::ALL.into_iter().map(move |ask| (state, ask)));
    pairs.filter(|(state, ask)| can_be(*state, *ask))
}

fn named(state: State) -> String {
    if state == State::Cancelled { "*tombstone*".to_owned() } else { format!("`{state}`") }
}

/// An operation that is found, begun, and asked for.
fn in_flight(row: Row, permanent: bool, is_old: bool, begun: bool) -> Result<(Queue, Option<Ask>)> {
    let now = NOW + RETENTION * 2;
    let sent_at = if is_old { NOW } else { now };
    let row = Row { first_sent_at: (row.state != State::Saved).then_some(sent_at), ..row };
    let key = row.key;
    let mut queue = Queue::at_start(Settings::default(), None, now);
    let mut asked = None;
    let events = [
        Event::Tick,
        Event::Introduced(Ok(promise(permanent))),
        Event::Found { rows: vec![row], next_due_at: None, other_bank: None },
        Event::Begun(key),
    ];
    for event in events.into_iter().take(if begun { 4 } else { 3 }) {
        let (next, effects) = decide(queue, event, now, CHANCE);
        queue = next;
        for effect in effects {
            if let Effect::Begin { ask, .. } = effect {
                asked = Some(ask);
            }
        }
    }
    Ok((queue, asked))
}

/// What becomes of the operation by that event.
fn saved(queue: Queue, event: Event) -> Result<Change> {
    let (_, effects) = decide(queue, event, NOW + RETENTION * 2, CHANCE);
    let changes = effects.into_iter().find_map(|effect| match effect {
        Effect::Save { change, .. } => Some(*change),
        _ => None,
    });
    changes.context("nothing was saved")
}

/// What is asked of each row that is due.
pub(crate) fn questions() -> Result<String> {
    let mut rows = Vec::new();
    for (state, ask) in possible() {
        let asks = match ask {
            Next::Send => "send".to_owned(),
            Next::LookUp => "look up".to_owned(),
            Next::Resend => "send again, after a look-up that found nothing".to_owned(),
            Next::Cancel => "cancel".to_owned(),
        };
        let mut cells = vec![named(state), asks];
        for (permanent, is_old) in [(true, false), (true, true), (false, true)] {
            let (_, asked) = in_flight(row(1, state, ask)?, permanent, is_old, true)?;
            cells.push(question(asked.context("it is not asked for")?).to_owned());
        }
        rows.push(cells);
    }
    let head =
        ["State", "Its row says", "Asked", "Older than the bank's retention", "…and its claims aren't permanent"];
    Ok(table(&head, &rows))
}

/// An operation of that state, asked that.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subject {
    state: State,
    question: &'static str,
    /// What tells it from another of the same state and question.
    only: &'static str,
}

/// An operation that was asked something, with all that may make a difference.
struct Case {
    state: State,
    /// What its row said.
    ask: Next,
    asked: Ask,
    permanent: bool,
    becomes: Becomes,
}

impl Case {
    fn is_sent_after_a_look_up(&self) -> bool {
        self.asked.sends() && self.ask == Next::Resend
    }

    /// Whether all that are like it come to the same.
    fn is_told_by(&self, all: &[Case], is_like: impl Fn(&Case) -> bool) -> bool {
        let same = |other: &&Case| other.state == self.state && question(other.asked) == question(self.asked);
        all.iter().filter(same).filter(|other| is_like(other)).all(|other| other.becomes == self.becomes)
    }

    /// What tells it from the others of its state and question, as little as does.
    fn only(&self, all: &[Case]) -> Result<&'static str> {
        Ok(if self.is_told_by(all, |_| true) {
            ""
        } else if self.is_told_by(all, |other| other.is_sent_after_a_look_up() == self.is_sent_after_a_look_up()) {
            if self.is_sent_after_a_look_up() { " (sent after a look-up)" } else { "" }
        } else if self.is_told_by(all, |other| other.permanent == self.permanent) {
            if self.permanent { " (claims are permanent)" } else { " (claims are forgotten)" }
        } else {
            bail!(
                "{} that asks {:?} comes to this for no reason that is told: {:?}",
                self.state,
                self.ask,
                self.becomes
            )
        })
    }
}

/// Each operation and question, with what the event makes of it; told apart only where that makes a difference.
fn outcomes(event: impl Fn(&Row) -> Event, begun: bool, panics: u32) -> Result<Vec<(Subject, Becomes)>> {
    let mut all = Vec::new();
    for (state, ask) in possible() {
        for (permanent, is_old) in [(true, false), (true, true), (false, false), (false, true)] {
            let row = Row { panics, ..row(1, state, ask)? };
            let (queue, asked) = in_flight(row.clone(), permanent, is_old, begun)?;
            let asked = asked.context("it is not asked for")?;
            let becomes = becomes(&saved(queue, event(&row))?, asked, NOW + RETENTION * 2)?;
            all.push(Case { state, ask, asked, permanent, becomes });
        }
    }
    let mut told: Vec<(Subject, Becomes)> = Vec::new();
    for case in &all {
        let subject = Subject { state: case.state, question: question(case.asked), only: case.only(&all)? };
        if told.iter().all(|(other, _)| *other != subject) {
            told.push((subject, case.becomes.clone()));
        }
    }
    Ok(told)
}

/// `request: saved, sending; look-up: unknown`.
fn listed(subjects: &[Subject]) -> String {
    let by_question = grouped(subjects.iter().map(|subject| (subject, subject.question)));
    let told = by_question.into_iter().map(|(subjects, question)| {
        let states: Vec<_> =
            subjects.iter().map(|subject| format!("{}{}", named(subject.state), subject.only)).collect();
        (question, states.join(", "))
    });
    let told = grouped(told).into_iter().map(|(questions, states)| match states.as_str() {
        "*tombstone*" => states,
        _ => format!("{}: {states}", questions.join(" or ")),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The rows of one answer.
fn block(outcomes: Vec<(Subject, Becomes)>) -> Vec<Vec<String>> {
    let groups = rest_last(grouped(outcomes));
    let count = groups.len();
    let rows = groups.into_iter().enumerate().map(|(at, (subjects, becomes))| {
        let is_rest = at + 1 == count && subjects.len() >= REST;
        let subjects = match is_rest {
            true if count == 1 => "*any*".to_owned(),
            true => "*any other*".to_owned(),
            false => listed(&subjects),
        };
        vec![subjects, becomes.state, becomes.next]
    });
    rows.collect()
}

fn blocks(named: Vec<(&'static str, Vec<Vec<String>>)>) -> String {
    let mut rows = Vec::new();
    for (names, block) in grouped(named) {
        for line in block {
            rows.push([vec![names.join("<br>")], line].concat());
        }
    }
    table(&["What came", "What was asked, and of what", "It becomes", "Asked next"], &rows)
}

/// What each answer makes of each operation.
pub(crate) fn answers() -> Result<String> {
    let mut named = Vec::new();
    for reading in readings() {
        let outcomes = outcomes(|row| Event::Answered(row.key, reading.clone()), true, 0)?;
        named.push((text_of(&reading), block(outcomes)));
    }
    Ok(blocks(named))
}

/// What becomes of an operation where no answer came at all.
pub(crate) fn no_answers() -> Result<String> {
    let panicked = |row: &Row| Event::Panicked(row.key);
    Ok(blocks(vec![
        ("**a fault** of this program, before the call was made", block(outcomes(panicked, false, 0)?)),
        ("**a fault** of this program, once the call was begun", block(outcomes(panicked, true, 0)?)),
        ("**the third fault** in its handling", block(outcomes(panicked, true, Settings::default().panics_max - 1)?)),
        ("**the program ends** while the call runs", block(outcomes(|_| Event::Stop, true, 0)?)),
        (
            "**put back**: counted, and then the bank was away or asked to wait, or no place came free in 0.2 s, or a wish to cancel came first",
            block(put_back()?),
        ),
    ]))
}

/// The bank was changed while the beginning was made durable.
fn put_back() -> Result<Vec<(Subject, Becomes)>> {
    let mut told = Vec::new();
    for (state, ask) in possible() {
        let row = row(1, state, ask)?;
        let (queue, asked) = in_flight(row.clone(), true, false, false)?;
        let asked = asked.context("it is not asked for")?;
        let (queue, _) = decide(queue, Event::BankChanged { same_address: true }, NOW + RETENTION * 2, CHANCE);
        let becomes = becomes(&saved(queue, Event::Begun(row.key))?, asked, NOW + RETENTION * 2)?;
        let subject = Subject { state, question: question(asked), only: "" };
        if told.iter().all(|(other, _)| *other != subject) {
            told.push((subject, becomes));
        }
    }
    Ok(told)
}

#[test]
fn what_has_ended_is_never_asked_for() {
    for (state, ask) in State::ALL.into_iter().flat_map(|state| Next::ALL.map(|ask| (state, ask))) {
        let (_, asked) = in_flight(row(1, state, ask).unwrap(), true, false, true).unwrap();
        let tombstone = (state, ask) == (State::Cancelled, Next::Cancel);
        assert_eq!(asked.is_some(), !state.is_final() || tombstone, "{state} that asks {ask:?}");
    }
}

#[test]
fn whatever_comes_no_end_changes_and_what_was_sent_is_never_unsent() {
    for reading in readings() {
        for (state, ask) in State::ALL.into_iter().flat_map(|state| Next::ALL.map(|ask| (state, ask))) {
            for permanent in [true, false] {
                let row = row(1, state, ask).unwrap();
                let (queue, Some(asked)) = in_flight(row.clone(), permanent, false, true).unwrap() else { continue };
                let change = saved(queue, Event::Answered(row.key, reading.clone())).unwrap();
                let told = format!("{state} that asks {ask:?}: {reading:?}, {change:?}");
                assert!(!state.is_final() || change.state == state, "an end changed: {told}");
                assert!(change.state != State::Saved || state == State::Saved, "it counts as never sent: {told}");
                assert!(change.due_at.is_some() || change.state.is_final(), "never asked for again: {told}");
                assert!(state != State::NeedsAttention || !asked.sends(), "sent again by itself: {told}");
                let ends = matches!(reading, Reading::Final { .. } | Reading::Cancelled);
                assert!(state.is_final() || change.state.is_final() == ends, "only the bank's word ends it: {told}");
                assert!(change.contradicts.is_none() || state == State::Cancelled, "{told}");
            }
        }
    }
}
