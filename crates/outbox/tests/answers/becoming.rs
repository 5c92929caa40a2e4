//! What becomes of an operation that was answered so.

use jiff::{SignedDuration, Timestamp};
use outbox::answer::{CallError, Lost, Reading};
use outbox::decide::{BankIdentity, Change, Effect, Event, MakeDue, Next, Promise, Queue, Row, Which, decide};
use outbox::{Ask, Settings, State};
use protocol::Outcome;
use uuid::Uuid;

use crate::*;

fn promise(permanent: bool) -> Promise {
    Promise {
        identity: BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() },
        retention: SignedDuration::from_hours(24),
        permanent,
    }
}

fn row(state: State, ask: Next) -> Row {
    Row {
        key: key(),
        lane: "sale-1".to_owned(),
        state,
        ask,
        failures: 0,
        panics: 0,
        deaths: 0,
        first_sent_at: (state != State::Saved).then_some(NOW),
    }
}

/// What becomes of a row that is asked for and answered so.
fn becomes(row: Row, reading: Reading, permanent: bool, now: Timestamp) -> (Queue, Ask, Change) {
    let mut queue = Queue::at_start(Settings::default(), None, now);
    let mut asked = None;
    let mut saved = None;
    let events = [
        Event::Tick,
        Event::Introduced(Ok(promise(permanent))),
        Event::Found { rows: vec![row], next_due_at: None, other_bank: None },
        Event::Begun(key()),
        Event::Answered(key(), reading),
    ];
    for event in events {
        let (next, effects) = decide(queue, event, now, 1);
        queue = next;
        for effect in effects {
            match effect {
                Effect::Call { ask, .. } => asked = Some(ask),
                Effect::Save { change, .. } => saved = Some(*change),
                _ => {}
            }
        }
    }
    match (asked, saved) {
        (Some(ask), Some(change)) => (queue, ask, change),
        other => unreachable!("it was not asked and saved: {other:?}"),
    }
}

fn sent(state: State, reading: Reading) -> Change {
    becomes(row(state, Next::Send), reading, true, NOW).2
}

fn is_retried(change: &Change) -> bool {
    let due = change.due_at.map(|at| at.duration_since(NOW));
    change.failures == 1
        && due.is_some_and(|due| due >= SignedDuration::ZERO && due <= SignedDuration::from_millis(500))
}

#[test]
fn only_the_banks_word_ends_an_operation() {
    let result = "{}".to_owned();
    for (outcome, state) in [(Outcome::Approved, State::Approved), (Outcome::Declined, State::Declined)] {
        let change = sent(State::Saved, Reading::Final { outcome, result: result.clone() });
        assert_eq!((change.state, change.result.as_ref(), change.due_at), (state, Some(&result), None));
    }
    let change = sent(State::Unknown, Reading::Cancelled);
    assert_eq!((change.state, change.due_at), (State::Cancelled, None));
}

#[test]
fn without_a_valid_answer_it_is_unknown_and_tried_again() {
    let no_answer = |how| Reading::NoAnswer { how, detail: String::new() };
    let readings = [
        no_answer(Lost::TimeOut),
        no_answer(Lost::Reset),
        no_answer(Lost::Torn),
        Reading::Foreign(String::new()),
        Reading::trouble("internal"),
    ];
    for reading in readings {
        for state in [State::Saved, State::Sending, State::Unknown] {
            let change = sent(state, reading.clone());
            assert_eq!(change.state, State::Unknown, "{reading:?} from {state}");
            assert!(is_retried(&change), "{change:?}");
            assert_eq!(change.last_answer, Some(reading.name()));
        }
    }
}

#[test]
fn saved_means_never_sent() {
    let refused = || Reading::NoConnection("refused".to_owned());
    assert_eq!(sent(State::Saved, refused()).state, State::Saved);
    assert_eq!(sent(State::Unknown, refused()).state, State::Unknown);
    assert_eq!(sent(State::Sending, refused()).state, State::Unknown);
    assert!(is_retried(&sent(State::Saved, refused())));
    let error = CallError::NoConnection("refused".to_owned());
    assert_eq!(Reading::from(error).name(), "no-connection");
}

#[test]
fn a_bank_that_is_at_it_is_waited_for() {
    let change = sent(State::Saved, Reading::InProgress(Some(SignedDuration::from_secs(3))));
    assert_eq!((change.state, change.failures), (State::Sending, 1), "at it for ever, it is asked ever more rarely");
    let wait = change.not_before.unwrap().duration_since(NOW);
    assert!((3..=4).contains(&wait.as_secs()), "{wait}");
    assert_eq!(change.due_at, change.not_before);
    // However long it asks for, and however short.
    let wait = |asked| sent(State::Saved, Reading::InProgress(Some(asked))).not_before.unwrap().duration_since(NOW);
    assert!(wait(SignedDuration::from_secs(i64::MAX)).as_secs() <= 15 * 60 + 1);
    assert!(wait(SignedDuration::ZERO).as_secs() >= 1);
}

#[test]
fn a_busy_bank_holds_the_whole_queue() {
    let busy = Reading::busy("unavailable", SignedDuration::from_secs(20));
    let (queue, _, change) = becomes(row(State::Saved, Next::Send), busy, true, NOW);
    assert_eq!(change.state, State::Unknown);
    let (queue, effects) = decide(queue, Event::Saved(key()), NOW, 2);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Scan { .. })), "{effects:?}");
    let later = |seconds| NOW + SignedDuration::from_secs(seconds);
    let scans = |queue: Queue, now| {
        let (queue, effects) = decide(queue, Event::Wake(outbox::decide::Wake::CheckNow), now, 3);
        let (_, more) = decide(queue, Event::MadeDue, now, 3);
        effects.iter().chain(&more).any(|effect| matches!(effect, Effect::Scan { .. } | Effect::Introduce))
    };
    assert!(!scans(queue.clone(), later(1)), "no button passes it");
    assert!(!scans(queue.clone(), later(19)));
    assert!(scans(queue, later(22)));
}

#[test]
fn what_the_bank_refuses_is_set_aside_and_never_sent_again() {
    let refused = Reading::refused("key-reused", "amount");
    let change = sent(State::Unknown, refused);
    assert_eq!(change.state, State::NeedsAttention);
    assert_eq!(change.reason.as_deref(), Some("key-reused: amount"));
    assert_eq!(change.due_at, Some(NOW + SignedDuration::from_mins(15)));
    let change = sent(State::Unknown, Reading::BankAttention("odd".to_owned()));
    assert_eq!((change.state, change.reason.as_deref()), (State::NeedsAttention, Some("bank: odd")));

    let aside = |reading| becomes(row(State::NeedsAttention, Next::Send), reading, true, NOW);
    let found = Reading::Final { outcome: Outcome::Approved, result: "{}".to_owned() };
    let (_, ask, change) = aside(found);
    assert_eq!((ask, change.state), (Ask::LookUp, State::Approved), "a look-up may end it");
    for reading in [Reading::UnknownKey, Reading::InProgress(None), Reading::trouble("internal")] {
        let (_, ask, change) = aside(reading);
        assert_eq!((ask, change.ask, change.state), (Ask::LookUp, Next::LookUp, State::NeedsAttention));
    }
}

#[test]
fn a_refused_secret_pauses_the_queue_and_fails_nothing() {
    let refused = Reading::not_allowed("unauthorized");
    let (queue, _, change) = becomes(row(State::Saved, Next::Send), refused, true, NOW);
    assert_eq!((change.state, change.failures, change.due_at), (State::Unknown, 0, Some(NOW)));
    let (queue, effects) = decide(queue, Event::Saved(key()), NOW, 1);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Scan { .. })));
    let (queue, effects) = decide(queue, Event::Tick, NOW + SignedDuration::from_secs(1), 1);
    assert!(effects.contains(&Effect::Introduce), "one question shows when it works again");
    let (_, effects) = decide(queue, Event::Introduced(Ok(promise(true))), NOW + SignedDuration::from_secs(1), 1);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Scan { .. })));
}

#[test]
fn when_the_bank_is_back_what_waited_for_the_way_is_due_at_once() {
    let gone = Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() };
    let (queue, _, _) = becomes(row(State::Saved, Next::Send), gone, true, NOW);
    let soon = NOW + SignedDuration::from_secs(1);
    let (queue, effects) = decide(queue, Event::Tick, soon, 1);
    assert!(effects.contains(&Effect::Introduce));
    let (_, effects) = decide(queue, Event::Introduced(Ok(promise(true))), soon, 1);
    let due = MakeDue { which: Which::Transport, shift: SignedDuration::ZERO, aged: SignedDuration::ZERO };
    assert!(effects.contains(&Effect::MakeDue(due)), "{effects:?}");
}

#[test]
fn an_expired_response_is_looked_up_and_never_guessed() {
    let change = sent(State::Unknown, Reading::Expired);
    assert_eq!((change.state, change.ask, change.due_at), (State::Unknown, Next::LookUp, Some(NOW)));
    let looked_up = |reading, permanent| becomes(row(State::Unknown, Next::LookUp), reading, permanent, NOW);
    let (_, ask, change) = looked_up(Reading::UnknownKey, true);
    assert_eq!((ask, change.state, change.ask), (Ask::LookUp, State::Unknown, Next::Resend));
    let (_, _, change) = looked_up(Reading::UnknownKey, false);
    assert_eq!(change.state, State::NeedsAttention, "a bank that forgets may charge twice");
    assert_eq!(change.reason.as_deref(), Some("forgotten: the bank doesn't know this payment any more"));
    let (_, _, change) = looked_up(Reading::InProgress(None), true);
    assert_eq!((change.state, change.ask), (State::Unknown, Next::LookUp));
}

#[test]
fn a_bank_that_contradicts_itself_is_asked_with_a_growing_pause() {
    let mut row = row(State::Unknown, Next::Send);
    let mut failures = Vec::new();
    for _ in 0..6 {
        let (_, ask, change) = becomes(row.clone(), Reading::Expired, true, NOW);
        assert_eq!((ask, change.ask), (Ask::Send, Next::LookUp));
        failures.push(change.failures);
        let found = Row { ask: change.ask, failures: change.failures, ..row.clone() };
        let (_, ask, change) = becomes(found, Reading::UnknownKey, true, NOW);
        assert_eq!((ask, change.ask, change.due_at), (Ask::LookUp, Next::Resend, Some(NOW)));
        row = Row { ask: change.ask, failures: change.failures, ..row };
    }
    assert_eq!(failures, [0, 1, 2, 3, 4, 5], "at once the first time, and then with the back-off of a failure");
}

#[test]
fn what_is_older_than_the_banks_memory_is_looked_up_before_it_is_sent_again() {
    let trouble = || Reading::trouble("internal");
    let asked = |row: Row, hours| becomes(row, trouble(), true, NOW + SignedDuration::from_hours(hours)).1;
    assert_eq!(asked(row(State::Unknown, Next::Send), 23), Ask::Send);
    assert_eq!(asked(row(State::Unknown, Next::Send), 25), Ask::LookUp);
    assert_eq!(asked(row(State::Unknown, Next::Send), -1), Ask::LookUp, "sent in the future, by a wrong clock");
    assert_eq!(asked(row(State::Unknown, Next::Resend), 25), Ask::Send, "it was looked up just now");
    let later = NOW + SignedDuration::from_hours(25);
    let forgetful = becomes(row(State::Unknown, Next::Resend), trouble(), false, later).1;
    assert_eq!(forgetful, Ask::LookUp, "the bank forgets by now, whatever it promised before");
    assert_eq!(asked(row(State::Saved, Next::Send), 25), Ask::Send, "it was never sent");
}

#[test]
fn a_bank_that_keeps_its_answers_for_ever_is_never_looked_up_for_age() {
    let asked = |promise: Promise, hours| {
        let now = NOW + SignedDuration::from_hours(hours);
        let mut queue = Queue::at_start(Settings::default(), None, now);
        let found = Event::Found { rows: vec![row(State::Unknown, Next::Send)], next_due_at: None, other_bank: None };
        let mut begun = None;
        for event in [Event::Tick, Event::Introduced(Ok(promise)), found] {
            let (next, effects) = decide(queue, event, now, 1);
            queue = next;
            begun = effects.iter().find_map(|effect| match effect {
                Effect::Begin { ask, .. } => Some(*ask),
                _ => begun,
            });
        }
        begun
    };
    for hours in [-24 * 365 * 10, -1, 25, 24 * 365 * 10] {
        assert_eq!(asked(Promise::for_ever(promise(true).identity), hours), Some(Ask::Send), "{hours}");
        assert_eq!(asked(promise(true), hours), Some(Ask::LookUp), "{hours}");
    }
}

#[test]
fn three_panics_set_an_operation_aside() {
    let panics = |panics, event| {
        let found = Row { panics, ..row(State::Saved, Next::Send) };
        let mut queue = Queue::at_start(Settings::default(), None, NOW);
        let mut saved = None;
        for event in [
            Event::Tick,
            Event::Introduced(Ok(promise(true))),
            Event::Found { rows: vec![found], next_due_at: None, other_bank: None },
            Event::Begun(key()),
            event,
        ] {
            let (next, effects) = decide(queue, event, NOW, 1);
            queue = next;
            saved = effects.into_iter().find_map(|effect| match effect {
                Effect::Save { change, .. } => Some(*change),
                _ => saved.take(),
            });
        }
        saved.unwrap()
    };
    let change = panics(1, Event::Panicked(key()));
    assert_eq!((change.state, change.panics), (State::Unknown, 2));
    let change = panics(2, Event::Panicked(key()));
    assert_eq!((change.state, change.panics), (State::NeedsAttention, 3));
    assert!(change.reason.is_some_and(|reason| reason.starts_with("fault: ")));
    let mut queue = Queue::at_start(Settings::default(), None, NOW);
    let found = Event::Found { rows: vec![row(State::Saved, Next::Send)], next_due_at: None, other_bank: None };
    let mut effects = Vec::new();
    for event in [Event::Tick, Event::Introduced(Ok(promise(true))), found, Event::Panicked(key())] {
        (queue, effects) = decide(queue, event, NOW, 1);
    }
    let saved = effects.iter().find_map(|effect| match effect {
        Effect::Save { change, expected, .. } => Some((*expected, change.state, change.panics)),
        _ => None,
    });
    assert_eq!(saved, Some((State::Saved, State::Saved, 1)), "what was not begun was not sent");
    let change = panics(2, Event::Stop);
    assert_eq!((change.state, change.panics), (State::Unknown, 2), "the end of the program is no fault of it");
}

#[test]
fn what_the_process_died_with_twice_is_tried_alone() {
    let (key_2, key_3) = ("0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a01", "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a02");
    let other = |key: &str, lane: &str| Row {
        key: key.parse().unwrap(),
        lane: lane.to_owned(),
        ..row(State::Saved, Next::Send)
    };
    let deadly = Row { deaths: 2, ..row(State::Unknown, Next::Send) };
    let started = |rows: Vec<Row>| {
        let mut queue = Queue::at_start(Settings::default(), None, NOW);
        let mut begun = Vec::new();
        for event in [
            Event::Tick,
            Event::Introduced(Ok(promise(true))),
            Event::Found { rows, next_due_at: None, other_bank: None },
        ] {
            let (next, effects) = decide(queue, event, NOW, 1);
            queue = next;
            begun.extend(effects.into_iter().filter_map(|effect| match effect {
                Effect::Begin { row, .. } => Some(row.key.to_string()),
                _ => None,
            }));
        }
        begun
    };
    assert_eq!(started(vec![deadly.clone()]), [key().to_string()]);
    let last = [key_2, key_3];
    assert_eq!(
        started(vec![deadly.clone(), other(key_2, "b"), other(key_3, "c")]),
        last,
        "what it may kill goes first"
    );
    assert_eq!(started(vec![other(key_2, "b"), deadly.clone(), other(key_3, "c")]), last);
    let also = Row { deaths: 3, ..other(key_2, "b") };
    assert_eq!(started(vec![deadly, also]), [key().to_string()], "nor two such together");
    assert_eq!(started(vec![other(key_2, "b"), other(key_3, "c")]), [key_2, key_3]);
    assert_eq!(started(vec![other(key_2, "b"), other(key_3, "b")]), [key_2], "one of a lane at a time");
}
