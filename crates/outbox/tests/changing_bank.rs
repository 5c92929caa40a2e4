//! What the bank said counts for the bank that said it, whatever bank is asked by then; and an outage ends as one, whatever
//! comes in between.

use jiff::{SignedDuration, Timestamp};
use outbox::answer::{Lost, Reading};
use outbox::decide::{BankIdentity, Effect, Event, MakeDue, Next, Promise, Queue, Row, Which, decide};
use outbox::{Settings, State};
use protocol::{Key, Outcome};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn key(number: u8) -> Result<Key, Box<dyn std::error::Error>> {
    Ok(format!("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a{number:02x}").parse()?)
}

fn row(key: Key, state: State, ask: Next) -> Row {
    let first_sent_at = (state != State::Saved).then_some(NOW);
    Row { key, lane: key.to_string(), state, ask, failures: 0, panics: 0, deaths: 0, first_sent_at }
}

fn promise() -> Promise {
    Promise {
        identity: BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() },
        retention: SignedDuration::from_hours(24),
        permanent: true,
    }
}

/// The queue after these events, and what the last one brought.
fn after(events: impl IntoIterator<Item = (Event, Timestamp)>) -> (Queue, Vec<Effect>) {
    let start = (Queue::at_start(Settings::default(), None, NOW), Vec::new());
    events.into_iter().fold(start, |(queue, _), (event, now)| decide(queue, event, now, 1))
}

fn at_once(events: impl IntoIterator<Item = Event>) -> (Queue, Vec<Effect>) {
    after(events.into_iter().map(|event| (event, NOW)))
}

/// One in a call, and then the bank is changed.
fn changed(row: Row, same_address: bool, then: impl IntoIterator<Item = Event>) -> (Queue, Vec<Effect>) {
    let key = row.key;
    let calling = [
        Event::Tick,
        Event::Introduced(Ok(promise())),
        Event::Found { rows: vec![row], next_due_at: None, other_bank: None },
        Event::Begun(key),
        Event::BankChanged { same_address },
        Event::MadeDue,
    ];
    at_once(calling.into_iter().chain(then))
}

#[test]
fn a_look_that_outlives_a_change_of_the_secret_is_no_reason_to_set_it_aside() {
    let key = key(1).unwrap();
    let (_, effects) =
        changed(row(key, State::Unknown, Next::LookUp), true, [Event::Answered(key, Reading::UnknownKey)]);
    let saved = effects.iter().find_map(|effect| match effect {
        Effect::Save { change, .. } => Some((change.state, change.ask)),
        _ => None,
    });
    assert_eq!(saved, Some((State::Unknown, Next::Resend)), "the bank that said so keeps its claims");
}

#[test]
fn what_the_bank_of_another_address_says_holds_nobody_at_this_one() {
    let key = key(1).unwrap();
    let busy = Reading::busy("unavailable", SignedDuration::from_secs(900));
    let gone = Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() };
    for (reading, same_address) in
        [(busy.clone(), false), (gone, false), (Reading::not_allowed("unauthorized"), false), (busy, true)]
    {
        let told = format!("{reading:?}, same address: {same_address}");
        let end = [Event::Answered(key, reading), Event::Introduced(Ok(promise())), Event::Saved(key), Event::Tick];
        let (queue, _) = changed(row(key, State::Saved, Next::Send), same_address, end);
        let goes_on = queue.wake_at(NOW).is_none_or(|at| at.duration_since(NOW) <= Settings::default().slice);
        assert_eq!(goes_on, !same_address, "{told}");
    }
}

#[test]
fn what_another_address_asked_to_wait_slows_nobody_at_this_one() {
    let keys = [1, 2, 3, 4].map(|number| key(number).unwrap());
    let busy = Reading::busy("unavailable", SignedDuration::from_secs(900));
    let rows = keys.iter().map(|key| row(*key, State::Saved, Next::Send)).collect();
    let (_, effects) = at_once([
        Event::Tick,
        Event::Introduced(Err(busy)),
        Event::BankChanged { same_address: false },
        Event::MadeDue,
        Event::Introduced(Ok(promise())),
        Event::Found { rows, next_due_at: None, other_bank: None },
    ]);
    assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::Begin { .. })).count(), 4, "{effects:?}");
}

#[test]
fn an_outage_that_ends_with_a_bank_that_is_not_well_yet_ends_as_an_outage() {
    let gone = || Event::Introduced(Err(Reading::NoConnection("refused".to_owned())));
    let later = |seconds| NOW + SignedDuration::from_secs(seconds);
    for unwell in [Reading::trouble("internal"), Reading::not_allowed("unauthorized")] {
        let events = [
            (Event::Tick, NOW),
            (gone(), NOW),
            (Event::Tick, later(40)),
            (Event::Introduced(Err(unwell)), later(40)),
            (Event::Tick, later(80)),
            (Event::Introduced(Ok(promise())), later(80)),
        ];
        let (queue, effects) = after(events);
        let due = MakeDue { which: Which::Transport, shift: SignedDuration::ZERO, aged: SignedDuration::ZERO };
        assert!(effects.contains(&Effect::MakeDue(due)), "what waited for the way is due: {effects:?}");
        // And it goes out at the pace of a way back.
        let rows = (1..=9).map(|number| row(key(number).unwrap(), State::Saved, Next::Send)).collect();
        let (mut queue, mut begins) = (queue, 0);
        let ended = [Event::Begun(key(1).unwrap()), Event::Saved(key(1).unwrap())];
        let found = [Event::MadeDue, Event::Found { rows, next_due_at: None, other_bank: None }];
        for event in found.into_iter().chain(ended) {
            if matches!(event, Event::Saved(_)) {
                let answer = Reading::Final { outcome: Outcome::Approved, result: "{}".to_owned() };
                queue = decide(queue, Event::Answered(key(1).unwrap(), answer), later(80), 1).0;
            }
            let (next, effects) = decide(queue, event, later(80), 1);
            begins += effects.iter().filter(|effect| matches!(effect, Effect::Begin { .. })).count();
            queue = next;
        }
        assert_eq!(begins, 4, "there is a place for the fifth, but its time has not come");
    }
}
