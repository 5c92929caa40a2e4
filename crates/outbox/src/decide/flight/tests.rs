//! What is begun ahead of its call.

use jiff::{SignedDuration, Timestamp};
use protocol::{Key, Outcome};
use uuid::Uuid;

use super::super::decide;
use super::*;
use crate::contract::Promise;
use crate::settings::Settings;
use crate::state::Next;
use crate::step::{BankIdentity, Event, Wake};

/// A queue, the time, and what it was told to do last.
struct Played {
    queue: Queue,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Played {
    /// The bank has said who it is, and completed one operation in that time.
    fn after_an_answer_of(took: SignedDuration) -> Played {
        let now = Timestamp::UNIX_EPOCH;
        let queue = Queue::at_start(Settings::default(), None, now);
        let mut played = Played { queue, now, effects: Vec::new() };
        played.feed(Event::Tick);
        played.introduce();
        played.find(99..=99);
        played.feed(Event::Begun(key(99)));
        played.now += took;
        played.approve(99);
        played
    }

    fn introduce(&mut self) {
        let identity = BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() };
        let retention = SignedDuration::from_hours(24);
        self.feed(Event::Introduced(Ok(Promise { identity, retention, permanent: true })));
        self.feed(Event::Recorded);
    }

    fn feed(&mut self, event: Event) {
        let queue = self.queue.clone();
        (self.queue, self.effects) = decide(queue, event, self.now, 7);
    }

    fn find(&mut self, numbers: std::ops::RangeInclusive<u8>) {
        let rows = numbers.map(row).collect();
        self.feed(Event::Found { rows, next_due_at: None, other_bank: None });
    }

    fn approve(&mut self, number: u8) {
        let approved = Reading::Final { outcome: Outcome::Approved, result: String::new() };
        self.feed(Event::Answered(key(number), approved));
        let answered = std::mem::take(&mut self.effects);
        self.feed(Event::Saved(key(number)));
        self.effects = answered;
    }

    /// Begins 1 to 8, of which there is a place for the first four.
    fn with_four_ready() -> Played {
        let mut played = Played::after_an_answer_of(SignedDuration::ZERO);
        played.find(1..=20);
        assert_eq!(played.begun(), (1..=8).map(key).collect::<Vec<_>>());
        let mut called = Vec::new();
        for number in 1..=8 {
            played.feed(Event::Begun(key(number)));
            called.extend(played.called());
        }
        assert_eq!(called, (1..=4).map(key).collect::<Vec<_>>());
        played
    }

    fn begun(&self) -> Vec<Key> {
        self.keys(|effect| if let Effect::Begin { row, .. } = effect { Some(row.key) } else { None })
    }

    fn called(&self) -> Vec<Key> {
        self.keys(|effect| if let Effect::Call { key, .. } = effect { Some(*key) } else { None })
    }

    /// What goes back into the file as it was, by the word for it.
    fn put_back(&self, why: &str) -> Vec<Key> {
        self.keys(|effect| match effect {
            Effect::Save { key, change, .. } if change.event == why && change.state == State::Saved => Some(*key),
            _ => None,
        })
    }

    fn keys(&self, of: impl Fn(&Effect) -> Option<Key>) -> Vec<Key> {
        self.effects.iter().filter_map(of).collect()
    }
}

fn key(number: u8) -> Key {
    let uuid = Uuid::from_u128(0x0194_f3a0_1c2d_7e3f_8a4b_0000_0000_0000 + u128::from(number));
    Key::from_bytes(uuid.into_bytes()).unwrap()
}

fn row(number: u8) -> Row {
    let (lane, state, ask) = (format!("lane-{number}"), State::Saved, Next::Send);
    Row { key: key(number), lane, state, ask, failures: 0, panics: 0, deaths: 0, first_sent_at: None }
}

#[test]
fn while_the_bank_answers_at_once_the_next_ones_are_ready_when_a_place_is() {
    let mut played = Played::with_four_ready();
    played.now += AT_ONCE;
    played.approve(2);
    assert_eq!(played.called(), [key(5)], "the one that has waited longest, with no write before it");
    assert_eq!(played.begun(), [key(9)], "and the next one begins");
    played.feed(Event::Begun(key(9)));
    assert_eq!(played.called(), [], "four calls run");
    for (number, next) in [(4, 6), (1, 7), (5, 8), (3, 9)] {
        played.approve(number);
        assert_eq!(played.called(), [key(next)]);
    }
}

#[test]
fn a_bank_that_takes_its_time_has_none_begun_ahead() {
    for (took, begun) in [(AT_ONCE, 8), (AT_ONCE + SignedDuration::from_millis(1), 4), (-AT_ONCE, 4)] {
        let mut played = Played::after_an_answer_of(took);
        played.find(1..=20);
        assert_eq!(played.begun().len(), begun, "{took}");
    }
    let mut played = Played::with_four_ready();
    played.now += AT_ONCE + SignedDuration::from_millis(1);
    played.approve(1);
    assert_eq!(
        (played.called(), played.begun()),
        (vec![key(5)], vec![]),
        "what is ready is called, and no more is begun"
    );
}

#[test]
fn a_bank_that_fails_has_none_begun_ahead_however_quickly() {
    let mut played = Played::after_an_answer_of(SignedDuration::ZERO);
    played.find(1..=1);
    played.feed(Event::Begun(key(1)));
    played.feed(Event::Answered(key(1), Reading::trouble("internal")));
    played.feed(Event::Saved(key(1)));
    played.find(2..=20);
    assert_eq!(played.begun().len(), 4);
}

#[test]
fn what_waits_for_a_place_for_too_long_is_put_back() {
    let ready: Vec<_> = (5..=8).map(key).collect();
    let mut played = Played::with_four_ready();
    assert_eq!(played.queue.wake_at(played.now), Some(played.now + READY_FOR));
    played.now += READY_FOR - SignedDuration::from_millis(1);
    played.feed(Event::Tick);
    assert_eq!(played.put_back("put-back"), []);
    played.now += SignedDuration::from_millis(1);
    played.feed(Event::Tick);
    assert_eq!(played.put_back("put-back"), ready);
    assert_eq!(played.begun(), [], "a bank that hangs gets no others counted ahead in their place, again and again");
    played.feed(Event::Tick);
    assert_eq!(played.put_back("put-back"), [], "once");
    for number in 5..=8 {
        played.feed(Event::Saved(key(number)));
        assert_eq!((played.begun(), played.called()), (vec![], vec![]));
    }

    let mut played = Played::with_four_ready();
    played.now -= SignedDuration::from_hours(1);
    played.feed(Event::Tick);
    assert_eq!(played.put_back("put-back"), ready, "by a clock that was set back nobody knows how long it was");
}

#[test]
fn what_is_ready_is_put_back_where_the_bank_is_not_to_be_asked() {
    let retry_after = SignedDuration::from_secs(60);
    let endings = [
        ("put-back", Event::Answered(key(1), Reading::NoConnection("refused".to_owned()))),
        ("put-back", Event::Answered(key(1), Reading::not_allowed("unauthorized"))),
        ("put-back", Event::Answered(key(1), Reading::busy("unavailable", retry_after))),
        ("put-back", Event::BankChanged { same_address: false }),
        ("put-back", Event::SaveFailed(key(10))),
        ("stopped", Event::Stop),
    ];
    for (why, ending) in endings {
        let mut played = Played::with_four_ready();
        played.feed(ending.clone());
        let mut back = played.put_back(why);
        back.retain(|back| back > &key(4));
        assert_eq!(back, (5..=8).map(key).collect::<Vec<_>>(), "{ending:?}");
        assert_eq!(played.called(), [], "{ending:?}");
    }
}

#[test]
fn what_is_not_called_after_all_goes_back_and_the_next_one_has_its_place() {
    let mut played = Played::with_four_ready();
    played.approve(1);
    assert!(
        played.effects.contains(&Effect::Call { key: key(5), ask: Ask::Send, stood_ready: true }),
        "it is read once more: {:?}",
        played.effects
    );
    played.feed(Event::NotCalled(key(5)));
    assert_eq!(played.put_back("put-back"), [key(5)]);
    assert_eq!(played.called(), [key(6)]);
    played.feed(Event::NotCalled(key(5)));
    assert_eq!((played.put_back("put-back"), played.called()), (vec![], vec![]), "once");
}

#[test]
fn a_fault_in_what_was_never_called_for_leaves_it_never_sent() {
    let mut played = Played::with_four_ready();
    played.feed(Event::Panicked(key(5)));
    assert_eq!(played.put_back("panicked"), [key(5)]);
    let becomes = |effect: &Effect| match effect {
        Effect::Save { key: of, change, .. } if *of == key(1) => Some(change.state),
        _ => None,
    };
    played.feed(Event::Panicked(key(1)));
    assert_eq!(played.effects.iter().find_map(becomes), Some(State::Unknown));
}

#[test]
fn another_bank_has_none_begun_ahead_before_it_answers_at_once() {
    let mut played = Played::after_an_answer_of(SignedDuration::ZERO);
    played.find(1..=1);
    played.feed(Event::Begun(key(1)));
    played.feed(Event::BankChanged { same_address: false });
    played.approve(1);
    played.feed(Event::MadeDue);
    played.introduce();
    played.find(2..=20);
    assert_eq!(played.begun().len(), 4, "what the other one answers says nothing of this one");
}

#[test]
fn one_that_can_not_be_saved_does_not_keep_the_file_from_being_scanned() {
    let mut played = Played::after_an_answer_of(SignedDuration::ZERO);
    played.find(1..=1);
    played.feed(Event::Begun(key(1)));
    let approved = Reading::Final { outcome: Outcome::Approved, result: String::new() };
    played.feed(Event::Answered(key(1), approved));
    played.feed(Event::SaveFailed(key(1)));
    for _ in 0..3 {
        played.feed(Event::Wake(Wake::NewOperation));
        played.now = played.queue.wake_at(played.now).unwrap();
        played.feed(Event::Tick);
        let is_again = |effect: &Effect| matches!(effect, Effect::Save { key: of, .. } if *of == key(1));
        assert!(played.effects.iter().any(is_again), "{:?}", played.effects);
        assert!(played.effects.iter().any(|effect| matches!(effect, Effect::Scan { .. })), "{:?}", played.effects);
        played.find(2..=2);
        assert_eq!(played.begun(), [key(2)], "the others go on");
        played.feed(Event::NotBegun(key(2)));
        played.feed(Event::SaveFailed(key(1)));
    }
}

#[test]
fn what_was_decided_before_the_machine_slept_is_not_called_for() {
    let day = SignedDuration::from_hours(25);
    for passed in [day, -day, Settings::default().deadline + SignedDuration::from_millis(1)] {
        let mut played = Played::after_an_answer_of(AT_ONCE * 2);
        played.find(1..=1);
        assert_eq!(played.begun(), [key(1)]);
        played.now += passed;
        played.feed(Event::Begun(key(1)));
        assert_eq!((played.called(), played.put_back("put-back")), (vec![], vec![key(1)]), "{passed}");
    }
}
