//! The decisions over the real statements and a file in memory, in time that leaps: how often a bank is asked, and who waits for whom.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use protocol::{Amount, CardToken, Currency, Key, Outcome, PaymentRequest};
use rusqlite::Connection;
use uuid::Uuid;

use crate::answer::{Lost, Reading};
use crate::bank::BankContract;
use crate::contract::Promise;
use crate::decide::{Effect, Event, Queue, Wake, decide};
use crate::operations::Operation;
use crate::rows::{self, Beginning, Saving};
use crate::saving::{NewOperation, Request, enqueue};
use crate::settings::Settings;
use crate::state::Ask;
use crate::step::BankIdentity;

type Anyhow<T> = Result<T, Box<dyn std::error::Error>>;

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn nothing(_: &Connection, _: &Operation) -> rusqlite::Result<()> {
    Ok(())
}

fn seconds(after: i64) -> Timestamp {
    START + SignedDuration::from_secs(after)
}

fn approved() -> Reading {
    Reading::Final { outcome: Outcome::Approved, result: r#"{"id":"pay_1"}"#.to_owned() }
}

/// A file, the queue over it, and a bank that says what it is told to.
struct World<B> {
    conn: Connection,
    queue: Queue,
    now: Timestamp,
    pending: VecDeque<Effect>,
    saved: Vec<Key>,
    /// The answer to each call: of the operation with that number, from 0 on.
    bank: B,
    /// When something was asked of the bank, and of which operation; none is who it is.
    asked: Vec<(Timestamp, Option<usize>)>,
    asks: Vec<Ask>,
    bank_is: BankIdentity,
    epoch: i64,
    random: u64,
    /// Writes that fail, from now on.
    is_full: bool,
}

impl<B: FnMut(usize, Timestamp) -> Reading> World<B> {
    fn new(operations: usize, bank: B) -> Anyhow<World<B>> {
        let conn = Connection::open_in_memory()?;
        conn.execute_batch(&crate::MIGRATIONS.concat())?;
        let mut world = World {
            queue: Queue::at_start(Settings::default(), None, START),
            now: START,
            pending: VecDeque::new(),
            saved: Vec::new(),
            bank,
            asked: Vec::new(),
            asks: Vec::new(),
            bank_is: promise().identity,
            epoch: 1,
            random: 0,
            is_full: false,
            conn,
        };
        world.conn.execute_batch("BEGIN")?;
        for _ in 0..operations {
            world.save()?;
        }
        world.conn.execute_batch("COMMIT")?;
        rows::start(&world.conn, "http://127.0.0.1", &Settings::default(), START, &nothing)?;
        Ok(world)
    }

    /// One more operation, in a lane of its own.
    fn save(&mut self) -> Anyhow<usize> {
        let number = self.saved.len();
        let request = PaymentRequest {
            amount: Amount::new(2490)?,
            currency: Currency::EUR,
            card: CardToken::new("tok_visa")?,
            reference: None,
            accepted_offline_at: None,
        };
        let new = NewOperation {
            intent_id: Uuid::from_u128(number as u128),
            replaces: None,
            lane: format!("sale-{number}"),
            request: Request::Payment(request),
        };
        let mut random = [0; 10];
        random[2..].copy_from_slice(&(number as u64).to_be_bytes());
        let key = Key::v7(self.now, random);
        enqueue(&self.conn, &new, key, self.now)?;
        self.saved.push(key);
        Ok(number)
    }

    fn number(&self, key: Key) -> Anyhow<usize> {
        Ok(self.saved.iter().position(|saved| *saved == key).ok_or("an operation that nobody saved")?)
    }

    fn feed(&mut self, event: Event) {
        self.random += 1;
        let (queue, effects) = decide(self.queue.clone(), event, self.now, self.random);
        self.queue = queue;
        self.pending.extend(effects);
    }

    fn perform_after(&mut self, event: Event) -> Anyhow<()> {
        self.feed(event);
        self.perform_all()
    }

    /// Everything that is done without time passing.
    fn perform_all(&mut self) -> Anyhow<()> {
        let far = self.now + Settings::default().horizon();
        while let Some(effect) = self.pending.pop_front() {
            let event = match effect {
                Effect::Scan { bank, limit } => {
                    let rows::Due { rows, next_due_at, other_bank } =
                        rows::scan(&self.conn, &bank, limit, self.now, far)?;
                    Event::Found { rows, next_due_at, other_bank }
                }
                Effect::Begin { row, ask, bank } => {
                    let (contract, now) = (&BankContract, self.now);
                    let beginning = Beginning { row: &row, ask, bank: &bank, contract, epoch: self.epoch, now, far };
                    if self.is_full {
                        Event::BeginFailed(row.key)
                    } else {
                        match rows::begin(&self.conn, &beginning, &nothing)? {
                            Some(_) => Event::Begun(row.key),
                            None => Event::NotBegun(row.key),
                        }
                    }
                }
                Effect::Call { key, ask, stood_ready } => {
                    if stood_ready && !rows::is_wanted(&self.conn, &key, ask, self.epoch)? {
                        self.feed(Event::NotCalled(key));
                        continue;
                    }
                    self.asks.push(ask);
                    let number = self.number(key)?;
                    self.asked.push((self.now, Some(number)));
                    Event::Answered(key, (self.bank)(number, self.now))
                }
                Effect::Save { key, expected, begun, change } => {
                    let saving = Saving {
                        key: &key,
                        expected,
                        begun,
                        wished: false,
                        change: &change,
                        status: None,
                        bank_at: None,
                        epoch: self.epoch,
                        now: self.now,
                    };
                    rows::save(&self.conn, &saving, &nothing, &|_, _, _| Ok(()))?;
                    Event::Saved(key)
                }
                Effect::Introduce => {
                    self.asked.push((self.now, None));
                    Event::Introduced(Ok(Promise { identity: self.bank_is.clone(), ..promise() }))
                }
                Effect::MakeDue(make_due) => {
                    rows::make_due(&self.conn, make_due, self.epoch, self.now)?;
                    Event::MadeDue
                }
                Effect::Record(record) => {
                    rows::record(&self.conn, &record, self.epoch, self.now, &nothing)?;
                    Event::Recorded
                }
                Effect::Abandon(_) => continue,
            };
            self.feed(event);
        }
        Ok(())
    }

    /// Lets time pass, as the driver does: in slices, and to the moment at which there is something to do.
    fn pass_to(&mut self, end: Timestamp) -> Anyhow<()> {
        loop {
            self.feed(Event::Tick);
            self.perform_all()?;
            if self.now >= end {
                return Ok(());
            }
            let slice = self.now + Settings::default().slice;
            let next = self.queue.wake_at(self.now).unwrap_or(slice).max(self.now);
            // Timers are no finer than this.
            self.now = next.clamp(self.now + SignedDuration::from_millis(1), slice).min(end);
        }
    }

    fn settled(&self) -> Anyhow<usize> {
        let sql = "SELECT count(*) FROM operations WHERE state = 'approved'";
        let settled: i64 = self.conn.query_row(sql, [], |row| row.get(0))?;
        Ok(usize::try_from(settled)?)
    }

    fn requests(&self, from: Timestamp) -> usize {
        self.asked.iter().filter(|(at, _)| *at >= from).count()
    }
}

fn promise() -> Promise {
    Promise {
        identity: BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() },
        retention: SignedDuration::from_hours(24),
        permanent: true,
    }
}

#[test]
fn a_bank_that_fails_at_everything_is_asked_for_one_at_a_time_and_ever_more_rarely() {
    let mut world = World::new(10_000, |_, _| Reading::trouble("unavailable")).unwrap();
    world.pass_to(seconds(60)).unwrap();
    let warm = world.requests(START);
    assert!((10..40).contains(&warm), "{warm} in the first minute");
    world.pass_to(seconds(60 + 3_600)).unwrap();
    let in_the_hour = world.requests(seconds(60));
    assert!((100..=300).contains(&in_the_hour), "{in_the_hour} requests in an hour");
    let summary = crate::summary(&world.conn, world.now).unwrap();
    assert_eq!((summary.bank_reachable, summary.bank_problem.as_deref()), (Some(true), Some("unavailable")));
    let next = summary.next_attempt_at.unwrap();
    assert!(next > world.now && next <= world.now + SignedDuration::from_secs(30), "{next}");
}

#[test]
fn once_a_failing_bank_works_all_is_settled_in_time() {
    let well_again = seconds(600);
    let bank = |_, now| if now < well_again { Reading::trouble("internal") } else { approved() };
    let mut world = World::new(1_000, bank).unwrap();
    world.pass_to(well_again).unwrap();
    assert_eq!(world.settled().unwrap(), 0);
    // The cap, 10 s, and a backlog that goes out 20, 40, 80… a second.
    world.pass_to(well_again + SignedDuration::from_secs(30 + 10 + 6)).unwrap();
    assert_eq!(world.settled().unwrap(), 1_000);
    let first = |second: i64| {
        let begin = world.asked.iter().find(|(at, _)| *at >= well_again).map_or(well_again, |(at, _)| *at);
        let (from, to) = (begin + SignedDuration::from_secs(second), begin + SignedDuration::from_secs(second + 1));
        world.asked.iter().filter(|(at, _)| (from..to).contains(at)).count()
    };
    assert!(first(0) <= 25 && first(1) <= 45, "it is not knocked over: {} and {}", first(0), first(1));
}

/// Those that the bank fails at by themselves must not hold up the sales of the others, however it fails and however many they are.
fn nobody_else_waits(poison: usize, how: &Reading) -> Anyhow<()> {
    let bank = |number, _| if number < poison { how.clone() } else { approved() };
    let mut world = World::new(poison + 100, bank)?;
    world.pass_to(seconds(60))?;
    assert_eq!(world.settled()?, 100, "{poison} that end as {how:?}");
    // And who comes later does not wait for them either.
    for at in 0..20 {
        world.pass_to(seconds(1_000 + at * 45))?;
        world.save()?;
        world.feed(Event::Wake(Wake::NewOperation));
        world.pass_to(seconds(1_000 + at * 45 + 35))?;
        assert_eq!(world.settled()?, 101 + usize::try_from(at)?, "{poison} that end as {how:?}");
    }
    let asked_of_it = world.asked.iter().filter(|(_, number)| *number == Some(0)).count();
    assert!(asked_of_it > 40, "it is tried on and on: {asked_of_it}");
    Ok(())
}

#[test]
fn what_fails_for_one_operation_alone_delays_nobody_else() {
    for poison in [1, 3, 6] {
        nobody_else_waits(poison, &Reading::trouble("internal")).unwrap();
        nobody_else_waits(poison, &Reading::Foreign("a portal's page".to_owned())).unwrap();
        nobody_else_waits(poison, &Reading::NoAnswer { how: Lost::Reset, detail: String::new() }).unwrap();
    }
}

#[test]
fn look_ups_of_one_lane_delay_no_other() {
    let mut world = World::new(200, |_, _| approved()).unwrap();
    let attention = "UPDATE operations SET lane = 'one', state = 'needs_attention', ask = 'look_up' WHERE seq <= 100";
    // The lane of an operation never changes, so before the trigger is there.
    world.conn.execute_batch(&format!("DROP TRIGGER operations_request; {attention}")).unwrap();
    world.feed(Event::Tick);
    world.perform_all().unwrap();
    let first: Vec<_> = world.asked.iter().filter_map(|(_, number)| *number).take(100).collect();
    assert!(first.iter().all(|number| *number >= 100), "{first:?}");
    assert_eq!(world.settled().unwrap(), 200);
}

#[test]
fn however_often_somebody_wakes_it_all_is_asked_for_twice_a_second_at_most() {
    let mut world = World::new(1, |_, _| Reading::trouble("internal")).unwrap();
    world.pass_to(seconds(600)).unwrap();
    let before = world.asked.len();
    for ms in 0..10_000 {
        world.feed(Event::Wake(Wake::NetworkChanged));
        world.pass_to(seconds(600) + SignedDuration::from_millis(ms)).unwrap();
    }
    let asked = world.asked.len() - before;
    assert!((15..=21).contains(&asked), "{asked} in 10 s");
}

#[test]
fn writes_that_fail_together_are_one_failure() {
    let mut world = World::new(4, |_, _| approved()).unwrap();
    world.is_full = true;
    world.pass_to(seconds(1)).unwrap();
    // Its second back-off is over by then, and of a fifth or ninth nobody would know.
    let wait = world.queue.wake_at(world.now).unwrap().duration_since(world.now);
    assert!(wait <= SignedDuration::from_secs(2), "{wait:?}");
    world.is_full = false;
    world.pass_to(seconds(4)).unwrap();
    assert_eq!(world.settled().unwrap(), 4);
}

#[test]
fn the_right_bank_is_found_again_at_its_address_with_nobody_touching_anything() {
    let mut world = World::new(1, |_, _| Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() }).unwrap();
    world.perform_after(Event::Tick).unwrap();
    let other = BankIdentity { bank_id: Uuid::from_u128(8), ..promise().identity };
    world.bank_is = other;
    world.pass_to(seconds(600)).unwrap();
    let probes = world.asked.len();
    assert!((20..200).contains(&probes), "{probes} questions in ten minutes");
    let waits = crate::summary(&world.conn, world.now).unwrap();
    assert_eq!((waits.other_bank, waits.unsettled), (1, 1));
    world.bank_is = promise().identity;
    let asked_before = world.asked.len();
    world.pass_to(seconds(600 + 35)).unwrap();
    let asked: Vec<_> = world.asked[asked_before..].iter().filter_map(|(_, number)| *number).collect();
    assert!(asked.contains(&0), "{asked:?}");
}

#[test]
fn a_clock_set_back_while_nothing_ran_makes_nothing_young_that_the_bank_may_have_forgotten() {
    let mut world = World::new(1, |_, _| Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() }).unwrap();
    // Both clocks are the same at first.
    world.perform_after(Event::Tick).unwrap();
    world.perform_after(Event::BankTime(START)).unwrap();
    world.pass_to(seconds(2)).unwrap();
    assert_eq!(world.asks.first(), Some(&Ask::Send));
    world.asks.clear();
    // 25 h by the bank, 2 h by us.
    world.now = seconds(2 * 3_600);
    let started = rows::start(&world.conn, "http://127.0.0.1", &Settings::default(), world.now, &nothing).unwrap();
    world.epoch = started.epoch;
    world.queue = Queue::at_start(Settings::default(), None, world.now).with_clock_gap(started.clock_gap);
    world.perform_after(Event::BankTime(seconds(25 * 3_600))).unwrap();
    world.pass_to(seconds(2 * 3_600 + 1)).unwrap();
    assert_eq!(world.asks.first(), Some(&Ask::LookUp), "{:?}", world.asks);
}
