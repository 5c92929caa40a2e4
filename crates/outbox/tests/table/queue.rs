//! What each event makes of the queue.

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};
use outbox::Ask;
use outbox::answer::{Lost, Reading};
use outbox::decide::{Effect, Event, MakeDue, Wake, Which};
use protocol::Outcome;

use crate::page::{REST, grouped, rest_last};
use crate::seen::{Named, Seen, Stage, approved, busy, found, no_connection, refused, states, subject, trouble};
use crate::words::{NOW, RETRY_AFTER, becomes, promise, question};

/// The names of the states.
pub(crate) fn names() -> Result<String> {
    let rows: Vec<_> = states()?.iter().map(|state| vec![format!("*{}*", state.name), state.is.to_owned()]).collect();
    Ok(crate::page::table(&["The queue is", "when"], &rows))
}

/// Each event, as a pattern that must fit and examples of it. A new one that is not here doesn't compile.
macro_rules! events {
    ($($pattern:pat = [$($text:literal => $example:expr),+];)*) => {
        /// Only there to be exhaustive.
        fn is_one(event: &Event) -> bool {
            match event { $($pattern => true,)* }
        }
        fn events() -> Result<Vec<(&'static str, Event)>> {
            Ok(vec![$($(($text, $example)),+),*])
        }
    };
}

events! {
    Event::Tick = ["the time has come" => Event::Tick];
    Event::Wake(Wake::NewOperation | Wake::CheckNow | Wake::NetworkChanged) = [
        "an operation was saved" => Event::Wake(Wake::NewOperation),
        "*Check now*" => Event::Wake(Wake::CheckNow),
        "the network changed" => Event::Wake(Wake::NetworkChanged)
    ];
    Event::BankChanged { .. } = [
        "another secret, same address" => Event::BankChanged { same_address: true },
        "another address" => Event::BankChanged { same_address: false }
    ];
    Event::ClockJumped { .. } = ["the clock jumped, or the machine slept" => Event::ClockJumped { by: SignedDuration::from_hours(1) }];
    Event::Introduced(_) = [
        "the bank said who it is" => Event::Introduced(Ok(promise(true))),
        "asked who it is: no answer, or not the bank's" => Event::Introduced(Err(no_connection())),
        "asked who it is: 401, 403" => Event::Introduced(Err(refused())),
        "asked who it is: 429, 503 with `Retry-After`" => Event::Introduced(Err(busy())),
        "asked who it is: any other 5xx" => Event::Introduced(Err(trouble()))
    ];
    Event::BankTime(_) = ["the bank's clock is another" => Event::BankTime(NOW + SignedDuration::from_hours(1))];
    Event::Found { .. } = [
        "the scan found one that is due" => found([1])?,
        "the scan found nothing" => found([])?,
        "the scan found nothing but what belongs to another bank" => {
            Event::Found { rows: Vec::new(), next_due_at: None, other_bank: Some(true) }
        }
    ];
    Event::ScanFailed = ["the scan failed" => Event::ScanFailed];
    Event::Begun(_) = ["the attempt is counted, durably" => Event::Begun(subject()?)];
    Event::NotBegun(_) = ["its row was not as it was found (a wish to cancel)" => Event::NotBegun(subject()?)];
    Event::BeginFailed(_) = ["the attempt could not be counted" => Event::BeginFailed(subject()?)];
    Event::NotCalled(_) = ["what stood ready is not wanted any more, or can't be read" => Event::NotCalled(subject()?)];
    Event::Answered(..) = [
        "answer: approved" => Event::Answered(subject()?, approved()),
        "answer: declined" => Event::Answered(subject()?, Reading::Final { outcome: Outcome::Declined, result: String::new() }),
        "answer: cancelled" => Event::Answered(subject()?, Reading::Cancelled),
        "answer: its people must look" => Event::Answered(subject()?, Reading::BankAttention("…".to_owned())),
        "answer: it is at it" => Event::Answered(subject()?, Reading::InProgress(Some(RETRY_AFTER))),
        "answer: 400, 404, 413, 415, 422" => {
            Event::Answered(subject()?, Reading::refused("request-invalid", "…"))
        },
        "answer: `key-expired`" => Event::Answered(subject()?, Reading::Expired),
        "answer: any other 5xx" => Event::Answered(subject()?, trouble()),
        "answer: 429, 503 with `Retry-After`" => Event::Answered(subject()?, busy()),
        "answer: 401, 403" => Event::Answered(subject()?, refused()),
        "no answer, or not the bank's" => {
            Event::Answered(subject()?, Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() })
        },
        "no connection was made" => Event::Answered(subject()?, no_connection())
    ];
    Event::Panicked(_) = ["its handling panicked" => Event::Panicked(subject()?)];
    Event::Saved(_) = ["the outcome is durable" => Event::Saved(subject()?)];
    Event::SaveFailed(_) = ["the outcome could not be written" => Event::SaveFailed(subject()?)];
    Event::MadeDue = ["the rows are due" => Event::MadeDue];
    Event::MakeDueFailed(_) = [
        "they could not be made due" => Event::MakeDueFailed(MakeDue { which: Which::All, shift: SignedDuration::ZERO, aged: SignedDuration::ZERO })
    ];
    Event::Recorded = ["what is known of the bank is written" => Event::Recorded];
    Event::RecordFailed = ["what is known of the bank could not be written" => Event::RecordFailed];
    Event::Stop = ["the program ends" => Event::Stop];
}

/// Whether anything that would report so is running.
fn can_come(seen: &Seen, event: &Event) -> Result<bool> {
    let stage = seen.flights.get(&subject()?).map(|(stage, _)| *stage);
    Ok(match event {
        Event::Tick | Event::Wake(_) | Event::BankChanged { .. } | Event::ClockJumped { .. } => true,
        Event::BankTime(_) | Event::RecordFailed | Event::Recorded | Event::Stop => true,
        Event::Found { .. } | Event::ScanFailed => seen.scanning,
        Event::Begun(_) | Event::NotBegun(_) | Event::BeginFailed(_) => stage == Some(Stage::Beginning),
        Event::NotCalled(_) | Event::Answered(..) => stage == Some(Stage::Calling),
        Event::Panicked(_) => stage.is_some(),
        Event::Saved(_) | Event::SaveFailed(_) => stage == Some(Stage::Saving),
        Event::Introduced(_) => seen.probing,
        Event::MadeDue | Event::MakeDueFailed(_) => seen.making_due.is_some(),
    })
}

/// What the driver does, in words. What is kept of the bank goes without saying.
fn told(effects: &[Effect], before: &Seen, now: Timestamp) -> Result<String> {
    let mut words = Vec::new();
    for effect in effects {
        words.push(match effect {
            Effect::Scan { .. } => "scans the file for what is due".to_owned(),
            Effect::Begin { row, ask, .. } if row.key == subject()? => format!("counts it, to ask: {}", question(*ask)),
            Effect::Call { key, ask, .. } if *key == subject()? => format!("asks: {}", question(*ask)),
            Effect::Abandon(key) if *key == subject()? => "breaks the call off".to_owned(),
            Effect::Save { key, change, .. } if *key == subject()? => {
                let asked = before.flights.get(key).map_or(Ask::Send, |(_, ask)| *ask);
                let becomes = becomes(change, asked, now)?;
                format!("saves {} ({})", becomes.state, becomes.next)
            }
            Effect::Introduce => "asks the bank who it is".to_owned(),
            Effect::MakeDue(MakeDue { which: Which::All, shift, .. }) if shift.is_zero() => "makes all due".to_owned(),
            Effect::MakeDue(MakeDue { which: Which::All, .. }) => {
                "makes all due, what is left of each `Retry-After` stays left".to_owned()
            }
            Effect::MakeDue(MakeDue { which: Which::Transport, .. }) => "makes due what waited for the way".to_owned(),
            Effect::Begin { .. } | Effect::Call { .. } | Effect::Abandon(_) | Effect::Save { .. } => {
                "the same for the others".to_owned()
            }
            Effect::Record(_) => continue,
        });
    }
    words.dedup();
    Ok(words.join("; "))
}

/// What is so after it and was not before.
fn then(before: &Seen, after: &Seen) -> Result<String> {
    let was = before.standing()?;
    let mut new: Vec<_> = after.standing()?.into_iter().filter(|so| !was.contains(so)).map(|(_, text)| text).collect();
    if before.record.hold_until.is_some() && after.record.hold_until.is_none() {
        new.push("nobody waits any more".to_owned());
    }
    Ok(new.join("; "))
}

fn cell(state: &Named, event: &Event) -> Result<(String, String)> {
    let (mut before, mut after) = (state.seen.clone(), state.seen.clone());
    if *event == Event::Tick {
        // As time alone would have it.
        after.now = after.planned();
        before.now = after.now;
    }
    let effects = after.feed(event);
    let told = told(&effects, &state.seen, after.now).with_context(|| format!("{}: {event:?}", state.name))?;
    Ok((told, then(&before, &after)?))
}

/// What an event does: the states, what is done in them, and what is so then.
fn block(states: &[Named], event: &Event) -> Result<Vec<Vec<String>>> {
    let mut cells = Vec::new();
    for state in states {
        if can_come(&state.seen, event)? {
            cells.push((format!("*{}*", state.name), cell(state, event)?));
        }
    }
    if cells.is_empty() {
        bail!("{event:?} comes in no state");
    }
    let groups = rest_last(grouped(cells));
    let count = groups.len();
    let or_nothing = |text: String| if text.is_empty() { "–".to_owned() } else { text };
    let rows = groups.into_iter().enumerate().map(|(at, (names, (told, then)))| {
        let names = match (count, at + 1 == count && names.len() >= REST) {
            (1, _) => "any".to_owned(),
            (_, true) => "any other".to_owned(),
            (_, false) => names.join("; "),
        };
        vec![names, or_nothing(told), or_nothing(then)]
    });
    Ok(rows.collect())
}

/// What each event does in each state of the queue.
pub(crate) fn table() -> Result<String> {
    let states = states()?;
    let mut blocks = Vec::new();
    for (text, event) in events()? {
        blocks.push((text, block(&states, &event)?));
    }
    let mut rows = Vec::new();
    for (texts, block) in grouped(blocks) {
        for line in block {
            rows.push([vec![texts.join("<br>")], line].concat());
        }
    }
    Ok(crate::page::table(&["It happens that", "while the queue is", "it does", "and then"], &rows))
}

#[test]
fn a_report_of_what_is_not_under_way_asks_the_bank_for_nothing() {
    for Named { name, seen, .. } in states().unwrap() {
        for (_, event) in events().unwrap() {
            assert!(is_one(&event));
            if can_come(&seen, &event).unwrap() || matches!(event, Event::Found { .. } | Event::Introduced(_)) {
                continue;
            }
            let mut after = seen.clone();
            let effects = after.feed(&event);
            let asks = |effect: &Effect| match effect {
                // What stands ready may be put back at any event.
                Effect::Save { change, .. } => change.called,
                Effect::Call { .. } | Effect::Begin { .. } | Effect::Abandon(_) => true,
                _ => false,
            };
            assert!(!effects.iter().any(asks), "{name}: {event:?}, {effects:?}");
        }
    }
}
