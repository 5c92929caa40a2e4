//! `decide` run through schedules that no test with sockets reaches: a driver without a file or a network, whose every effect
//! ends in any order, fails, or is lost with the process.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use outbox::answer::Reading;
use outbox::decide::{BankIdentity, Effect, Event, MakeDue, Promise, Queue, Record, Row, Wake, Which, decide};
use outbox::{Ask, Change, Random, Settings, State};
use proptest::prelude::*;
use protocol::{Key, Outcome};
use uuid::Uuid;

const LANES: u64 = 6;

/// A row as the file would have it.
#[derive(Clone, Debug)]
struct FileRow {
    seq: usize,
    lane: String,
    state: State,
    ask: Ask,
    failures: u32,
    panics: u32,
    deaths: u32,
    first_sent_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
    not_before: Option<Timestamp>,
    attempts: u32,
    /// A byte of it left, whatever became of it.
    touched: bool,
    /// Until when, in true time, the bank asked this one to wait.
    told_to_wait_until: i64,
}

/// What was begun and has not ended.
#[derive(Clone, Debug)]
enum Pending {
    Look {
        limit: usize,
    },
    Begin {
        row: Row,
        ask: Ask,
    },
    Call {
        key: Key,
        ask: Ask,
    },
    Save {
        key: Key,
        expected: State,
        begun: bool,
        change: Box<Change>,
    },
    Introduction,
    MakeDue(MakeDue),
    /// With what it says of the bank's Retry-After, in true time.
    Record(Box<Record>, i64),
}

struct World {
    settings: Settings,
    random: Random,
    queue: Queue,
    rows: BTreeMap<Key, FileRow>,
    pending: Vec<Pending>,
    /// Milliseconds that truly passed.
    true_ms: i64,
    /// What the wall clock is off by.
    skew: SignedDuration,
    faults: bool,
    outcomes: BTreeMap<Key, Outcome>,
    /// Until when, in true time, the bank asked all to wait, as far as a restart can know it.
    held_until_ms: i64,
    file_hold: Option<Timestamp>,
    file_hold_ms: i64,
    sends: u32,
    has_jumped: bool,
}

fn fail(why: &str) -> TestCaseError {
    TestCaseError::fail(why.to_owned())
}

impl World {
    fn new(seed: u64, operations: u64) -> Result<World, TestCaseError> {
        let settings = Settings::default();
        let mut random = Random::new(seed);
        let mut rows = BTreeMap::new();
        let start = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 50);
        for seq in 0..usize::try_from(operations).unwrap_or(0) {
            let mut bytes = [0_u8; 16];
            bytes[..8].copy_from_slice(&random.next().to_be_bytes());
            bytes[8..].copy_from_slice(&random.next().to_be_bytes());
            let key = Key::from_bytes(bytes).map_err(|error| fail(&error.to_string()))?;
            let row = FileRow {
                seq,
                lane: format!("lane-{}", random.next() % LANES),
                state: State::Saved,
                ask: Ask::Send,
                failures: 0,
                panics: 0,
                deaths: 0,
                first_sent_at: None,
                due_at: Some(start),
                not_before: None,
                attempts: 0,
                touched: false,
                told_to_wait_until: i64::MIN,
            };
            rows.insert(key, row);
        }
        Ok(World {
            settings,
            random,
            queue: Queue::at_start(settings, None, start),
            rows,
            pending: Vec::new(),
            true_ms: start.as_millisecond(),
            skew: SignedDuration::ZERO,
            faults: true,
            outcomes: BTreeMap::new(),
            held_until_ms: i64::MIN,
            file_hold: None,
            file_hold_ms: i64::MIN,
            sends: 0,
            has_jumped: false,
        })
    }

    fn now(&self) -> Timestamp {
        let truth = Timestamp::from_millisecond(self.true_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        truth.saturating_add(self.skew).unwrap_or(truth)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.next() % 100 < percent
    }

    fn faulty(&mut self, percent: u64) -> bool {
        self.faults && self.chance(percent)
    }

    fn feed(&mut self, event: Event) -> Result<(), TestCaseError> {
        let (queue, effects) = decide(self.queue.clone(), event, self.now(), self.random.next());
        self.queue = queue;
        for effect in effects {
            self.perform(effect)?;
        }
        self.check()
    }

    fn perform(&mut self, effect: Effect) -> Result<(), TestCaseError> {
        let asks = matches!(effect, Effect::Call { .. } | Effect::Introduce);
        if asks && self.true_ms < self.held_until_ms {
            return Err(fail("something was asked inside the bank's Retry-After"));
        }
        let pending = match effect {
            Effect::Look { limit, .. } => Pending::Look { limit },
            Effect::Begin { row, ask, .. } => Pending::Begin { row, ask },
            Effect::Call { key, ask } => {
                let row = self.rows.get_mut(&key).ok_or_else(|| fail("a call for no row"))?;
                if self.true_ms < row.told_to_wait_until && !self.has_jumped {
                    return Err(fail("an operation was asked for inside its own Retry-After"));
                }
                if row.due_at.is_some() || (ask.sends() && row.state != State::Sending) {
                    return Err(fail("a call whose beginning is not durable"));
                }
                if row.state == State::NeedsAttention && ask.sends() {
                    return Err(fail("what needs attention was sent again"));
                }
                self.sends += u32::from(ask.sends());
                Pending::Call { key, ask }
            }
            Effect::Abandon(key) => {
                self.pending.retain(|pending| !matches!(pending, Pending::Call { key: other, .. } if *other == key));
                return Ok(());
            }
            Effect::Save { key, expected, begun, change } => Pending::Save { key, expected, begun, change },
            Effect::Introduce => {
                if self.pending.iter().any(|pending| matches!(pending, Pending::Introduction)) {
                    return Err(fail("two probes at once"));
                }
                Pending::Introduction
            }
            Effect::MakeDue(make_due) => Pending::MakeDue(make_due),
            Effect::Record(record) => Pending::Record(record, self.held_until_ms),
        };
        self.pending.push(pending);
        Ok(())
    }

    /// What holds at every moment.
    fn check(&self) -> Result<(), TestCaseError> {
        let in_flight: Vec<_> = self.queue.in_flight().collect();
        if in_flight.len() > self.settings.in_flight_max {
            return Err(fail("more in flight than allowed"));
        }
        let mut lanes: Vec<_> = in_flight.iter().filter_map(|key| Some(&self.rows.get(key)?.lane)).collect();
        lanes.sort();
        lanes.dedup();
        if lanes.len() != in_flight.len() {
            return Err(fail("two of one lane in flight"));
        }
        for row in self.rows.values() {
            if row.state == State::Saved && row.touched {
                return Err(fail("something that left counts as never sent"));
            }
        }
        Ok(())
    }

    fn end(&mut self, pending: Pending) -> Result<(), TestCaseError> {
        match pending {
            Pending::Look { limit } => {
                let event = if self.faulty(3) { Event::LookFailed } else { self.look(limit) };
                self.feed(event)
            }
            Pending::Begin { row, ask } => self.begin(row, ask),
            Pending::Call { key, ask } => self.answer(key, ask),
            Pending::Save { key, expected, begun, change } => self.save(key, expected, begun, &change),
            Pending::Introduction => {
                let reading = if self.faulty(30) { Some(self.trouble()) } else { None };
                if let Some(Reading::Busy { retry_after, .. }) = &reading {
                    self.hold(*retry_after);
                }
                self.feed(Event::Introduced(reading.map_or_else(|| Ok(promise()), Err)))
            }
            Pending::MakeDue(make_due) => {
                if self.faulty(5) {
                    return self.feed(Event::MakeDueFailed(make_due));
                }
                let now = self.now();
                for row in self.rows.values_mut().filter(|row| !row.state.is_final()) {
                    row.not_before = row.not_before.map(|at| at.saturating_add(make_due.shift).unwrap_or(at));
                    let back = make_due.shift.min(SignedDuration::ZERO);
                    row.first_sent_at = row.first_sent_at.map(|at| at.saturating_add(back).unwrap_or(at));
                    if make_due.which == Which::All {
                        row.due_at = row.due_at.map(|at| at.min(now));
                    }
                }
                self.feed(Event::MadeDue)
            }
            Pending::Record(record, held_until_ms) => {
                if self.faulty(5) {
                    return self.feed(Event::RecordFailed);
                }
                self.file_hold = record.hold_until;
                self.file_hold_ms = if record.hold_until.is_some() { held_until_ms } else { i64::MIN };
                self.feed(Event::Recorded)
            }
        }
    }

    /// As the file's own queries see it: a time further off than anything is planned is no time.
    fn has_come(&self, at: Option<Timestamp>) -> bool {
        let now = self.now();
        at.is_none_or(|at| at <= now || at.duration_since(now) > self.settings.horizon())
    }

    fn look(&self, limit: usize) -> Event {
        let now = self.now();
        let mut rows: Vec<_> = self.rows.iter().filter(|(_, row)| !row.state.is_final()).collect();
        rows.sort_by_key(|(_, row)| row.seq);
        let ready = |row: &FileRow| self.has_come(row.due_at) && self.has_come(row.not_before);
        let first_of_lane = |row: &FileRow| {
            row.state == State::NeedsAttention
                || !rows
                    .iter()
                    .any(|(_, other)| other.lane == row.lane && other.seq < row.seq && other.state.is_unsettled())
        };
        let next_due_at = rows
            .iter()
            .filter_map(|(_, row)| row.due_at.map(|at| at.max(row.not_before.unwrap_or(at))))
            .filter(|&at| at > now)
            .min();
        let found = rows.iter().filter(|(_, row)| ready(row) && first_of_lane(row)).take(limit);
        let rows = found
            .map(|(key, row)| Row {
                key: **key,
                lane: row.lane.clone(),
                state: row.state,
                ask: row.ask,
                failures: row.failures,
                panics: row.panics,
                deaths: row.deaths,
                first_sent_at: row.first_sent_at,
            })
            .collect();
        Event::Found { rows, next_due_at }
    }

    fn begin(&mut self, found: Row, ask: Ask) -> Result<(), TestCaseError> {
        let now = self.now();
        // Nothing written, or written with nobody knowing.
        let (fails, written) = (self.faulty(5), self.chance(50));
        let has_come = self.rows.get(&found.key).map(|row| (self.has_come(row.due_at), self.has_come(row.not_before)));
        let has_come = has_come.unwrap_or_default();
        let Some(row) = self.rows.get_mut(&found.key) else { return Err(fail("a begin for no row")) };
        let as_found = row.state == found.state && has_come.0 && has_come.1;
        if as_found && (!fails || written) {
            row.due_at = None;
            row.not_before = None;
            if ask.sends() {
                row.state = State::Sending;
                row.attempts += 1;
                row.first_sent_at = row.first_sent_at.or(Some(now));
                row.ask = Ask::Send;
            }
        }
        self.feed(match (fails, as_found) {
            (true, _) => Event::BeginFailed(found.key),
            (false, true) => Event::Begun(found.key),
            (false, false) => Event::NotBegun(found.key),
        })
    }

    fn trouble(&mut self) -> Reading {
        let seconds = self.random.next() % 90;
        let retry_after = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(0));
        match self.random.next() % 8 {
            0 => Reading::Busy { retry_after, problem: "unavailable" },
            1 => Reading::Busy { retry_after, problem: "rate-limited" },
            2 => Reading::Trouble("internal"),
            3 => Reading::NotAllowed("unauthorized"),
            4 => Reading::Foreign("HTML".to_owned()),
            5 => Reading::NoAnswer { how: "time-out", detail: String::new() },
            6 => Reading::NoAnswer { how: "reset", detail: String::new() },
            _ => Reading::NoConnection("refused".to_owned()),
        }
    }

    fn hold(&mut self, retry_after: SignedDuration) {
        let most = self.settings.retry_after_max;
        let until = self.true_ms + i64::try_from(retry_after.min(most).as_millis()).unwrap_or(0);
        self.held_until_ms = self.held_until_ms.max(until);
    }

    fn answer(&mut self, key: Key, ask: Ask) -> Result<(), TestCaseError> {
        if self.faulty(2) {
            if let Some(row) = self.rows.get_mut(&key) {
                row.touched = true;
            }
            return self.feed(Event::Panicked(key));
        }
        let connected = !self.faulty(15);
        if !connected {
            return self.feed(Event::Answered(key, Reading::NoConnection("refused".to_owned())));
        }
        // The bank has it from here on, whatever the till gets to know.
        let outcome = if self.random.next().is_multiple_of(5) { Outcome::Declined } else { Outcome::Approved };
        let known = if ask.sends() {
            Some(*self.outcomes.entry(key).or_insert(outcome))
        } else {
            self.outcomes.get(&key).copied()
        };
        let reading = if self.faulty(35) {
            self.trouble()
        } else if self.faulty(10) {
            Reading::InProgress(Some(SignedDuration::from_secs(2)))
        } else if self.faulty(3) {
            Reading::Expired
        } else if known.is_some() && self.faulty(3) {
            Reading::BankAttention("a look".to_owned())
        } else {
            match known {
                Some(outcome) => Reading::Final { outcome, result: String::new() },
                None => Reading::UnknownKey,
            }
        };
        if let Some(row) = self.rows.get_mut(&key) {
            row.touched |= !matches!(reading, Reading::NoConnection(_));
            // An attempt that reached the bank counts as sent, even where the trouble says that there was no connection.
            if let Reading::InProgress(Some(wait)) = &reading {
                row.told_to_wait_until = self.true_ms + i64::try_from(wait.as_millis()).unwrap_or(0);
            }
        }
        if matches!(reading, Reading::NoConnection(_)) {
            // It did not reach the bank then.
            self.outcomes.remove(&key);
            if self.rows.get(&key).is_some_and(|row| row.touched) {
                // Unless an earlier one did.
                if let Some(outcome) = known {
                    self.outcomes.insert(key, outcome);
                }
            }
        }
        if let Reading::Busy { retry_after, .. } = &reading {
            self.hold(*retry_after);
        }
        self.feed(Event::Answered(key, reading))
    }

    fn save(&mut self, key: Key, expected: State, begun: bool, change: &Change) -> Result<(), TestCaseError> {
        let (fails, written) = (self.faulty(5), self.chance(50));
        let now = self.now();
        let outcome = self.outcomes.get(&key).copied();
        let settings = self.settings;
        let has_jumped = self.has_jumped;
        let row = self.rows.get_mut(&key).ok_or_else(|| fail("a save for no row"))?;
        let as_expected = row.state == expected && (!begun || row.due_at.is_none());
        if as_expected && (!fails || written) {
            if row.state.is_final() {
                return Err(fail("a final result changed"));
            }
            if change.state.is_final() && outcome.map(State::from) != Some(change.state) {
                return Err(fail("a result that is not the bank's"));
            }
            if change.state.is_final() != change.due_at.is_none() {
                return Err(fail("open with no due time, or final with one"));
            }
            let longest = match (change.state, change.not_before) {
                (State::NeedsAttention, _) => settings.attention_every,
                (_, Some(_)) => settings.retry_after_max + settings.retry_after_jitter,
                _ => settings.backoff.cap,
            };
            // The save may be a later try of one that was decided before.
            if change.due_at.is_some_and(|at| at.duration_since(now) > longest) && !has_jumped {
                return Err(fail("due later than the cap"));
            }
            row.state = change.state;
            row.ask = change.ask;
            row.failures = change.failures;
            row.panics = change.panics;
            row.deaths = 0;
            row.due_at = change.due_at;
            row.not_before = change.not_before;
        }
        self.feed(if fails { Event::SaveFailed(key) } else { Event::Saved(key) })
    }

    /// The process dies and starts again: what was in memory is gone, what was under way may have happened or not.
    fn die(&mut self) -> Result<(), TestCaseError> {
        for pending in std::mem::take(&mut self.pending) {
            if let Pending::Call { key, ask } = pending
                && self.chance(50)
                && let Some(row) = self.rows.get_mut(&key)
            {
                row.touched = true;
                if ask.sends() {
                    self.outcomes.entry(key).or_insert(Outcome::Approved);
                }
            }
        }
        let now = self.now();
        for row in self.rows.values_mut().filter(|row| !row.state.is_final()) {
            if row.state == State::Sending {
                row.deaths += u32::from(row.due_at.is_none());
                row.state = State::Unknown;
            }
            row.due_at = Some(now);
            if row.ask == Ask::Resend {
                row.ask = Ask::LookUp;
            }
            if row.not_before.is_none() {
                row.told_to_wait_until = i64::MIN;
            }
        }
        // A Retry-After that was not in the file yet is forgotten with the process.
        self.held_until_ms = self.file_hold_ms;
        self.queue = Queue::at_start(self.settings, self.file_hold, now);
        self.feed(Event::Tick)
    }

    fn jump(&mut self) -> Result<(), TestCaseError> {
        let years = i64::try_from(self.random.next() % 21).unwrap_or(0) - 10;
        let by = SignedDuration::from_hours(years * 24 * 365);
        self.skew = self.skew.saturating_add(by);
        self.has_jumped = true;
        // A death before the file has the moved time forgets it.
        self.file_hold_ms = i64::MIN;
        for pending in &mut self.pending {
            if let Pending::Record(_, held_until_ms) = pending {
                *held_until_ms = i64::MIN;
            }
        }
        self.feed(Event::ClockJumped { by })
    }

    fn pass_time(&mut self) -> Result<(), TestCaseError> {
        let now = self.now();
        let until =
            self.queue.wake_at(now).map_or(5_000, |at| i64::try_from(at.duration_since(now).as_millis()).unwrap_or(0));
        self.true_ms += until.clamp(1, 5_000);
        self.feed(Event::Tick)
    }

    fn step(&mut self) -> Result<(), TestCaseError> {
        let dice = self.random.next() % 100;
        if self.faults {
            match dice {
                0 => return self.die(),
                1 => return self.jump(),
                2..=6 => return self.feed(Event::Wake(Wake::CheckNow)),
                7 => return self.feed(Event::Wake(Wake::NetworkChanged)),
                8 => return self.feed(Event::Wake(Wake::NewOperation)),
                _ => {}
            }
        }
        // Where nothing fails, nothing takes time either: what is measured then is what the queue waits for by itself.
        if self.pending.is_empty() || (self.faults && dice < 25) {
            return self.pass_time();
        }
        let at = usize::try_from(self.random.next()).unwrap_or(0) % self.pending.len();
        let pending = self.pending.swap_remove(at);
        self.end(pending)
    }

    /// Whether it has to end within the cap: it is not set aside.
    fn is_ordinary(row: &FileRow) -> bool {
        !row.state.is_final() && row.state != State::NeedsAttention
    }

    /// What is left of everything that the bank asked to wait for, as far as anybody remembers.
    fn left_of_retry_after_ms(&self) -> i64 {
        let rows = self.rows.values().map(|row| row.told_to_wait_until);
        let until = rows.chain([self.held_until_ms, self.held_ms()]).max().unwrap_or(0);
        (until - self.true_ms).max(0) + i64::try_from(self.settings.retry_after_jitter.as_millis()).unwrap_or(0)
    }

    /// What the file has of the bank's Retry-After: a clock that jumped may have made it longer, up to the longest there is.
    fn held_ms(&self) -> i64 {
        let longest = self.settings.retry_after_max + self.settings.retry_after_jitter;
        let held = self.file_hold.map_or(SignedDuration::ZERO, |until| until.duration_since(self.now()).min(longest));
        self.true_ms + i64::try_from(held.as_millis()).unwrap_or(0)
    }

    /// What must still end by itself: all but what was set aside and never reached the bank.
    fn open(&self) -> usize {
        let set_aside =
            |key: &Key, row: &FileRow| row.state == State::NeedsAttention && !self.outcomes.contains_key(key);
        self.rows.iter().filter(|(key, row)| !row.state.is_final() && !set_aside(key, row)).count()
    }
}

fn promise() -> Promise {
    Promise {
        identity: BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() },
        retention: SignedDuration::from_hours(24),
        permanent: true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn under_every_schedule_the_rules_hold_and_in_the_end_all_is_settled(seed: u64, steps in 0..600_u32, operations in 1..25_u64) {
        let mut world = World::new(seed, operations)?;
        for _ in 0..steps {
            world.step()?;
        }
        world.faults = false;
        let healed_ms = world.true_ms;
        let longest_ms = 30_000 + 10_000 + world.left_of_retry_after_ms();
        let mut left = 40_000_u32;
        while world.open() > 0 {
            left -= 1;
            prop_assert!(left > 0, "{} are still open: {:?}", world.open(), world.rows);
            world.step()?;
            let took_ms = world.true_ms - healed_ms;
            let late = world.rows.values().filter(|row| World::is_ordinary(row)).count();
            prop_assert!(took_ms <= longest_ms || late == 0, "{late} open after {took_ms} ms of {longest_ms}: {:?}", world.rows);
        }
        // A quarter of an hour more for what was set aside.
        let took_s = (world.true_ms - healed_ms) / 1_000;
        prop_assert!(took_s <= 16 * 60 + longest_ms / 1_000, "it took {took_s} s");
        // What stays set aside was set aside for the program's own faults: the bank never had it.
        for row in world.rows.values().filter(|row| !row.state.is_final()) {
            prop_assert!(row.panics >= world.settings.panics_max, "{row:?}");
        }
    }
}

#[test]
fn with_ten_thousand_waiting_an_outage_costs_one_probe_at_a_time() {
    let mut world = World::new(1, 10).unwrap();
    world.feed(Event::Tick).unwrap();
    let mut probes = 0;
    let end = world.true_ms + 3_600_000;
    while world.true_ms < end {
        let policy = world.pending.iter().position(|pending| matches!(pending, Pending::Introduction));
        if let Some(at) = policy {
            world.pending.swap_remove(at);
            probes += 1;
            world.feed(Event::Introduced(Err(Reading::NoConnection("refused".to_owned())))).unwrap();
        }
        world.faults = false;
        world.pass_time().unwrap();
    }
    assert_eq!(world.sends, 0);
    assert!((100..=400).contains(&probes), "{probes} probes in an hour");
}

#[test]
fn nothing_is_sent_before_the_bank_has_said_who_it_is() {
    let mut world = World::new(1, 1).unwrap();
    world.feed(Event::Tick).unwrap();
    assert!(world.pending.iter().any(|pending| matches!(pending, Pending::Introduction)));
    assert!(!world.pending.iter().any(|pending| matches!(pending, Pending::Look { .. } | Pending::Begin { .. })));
}
