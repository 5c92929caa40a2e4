//! A driver without a file or a network: every effect ends in any order, fails, or is lost with the process.

use jiff::{SignedDuration, Timestamp};
use outbox::answer::{Lost, Reading};
use outbox::decide::{
    BankIdentity, Change, Effect, Event, MakeDue, Next, Promise, Queue, Random, Record, Row, Wake, decide,
};
use outbox::{Ask, Settings, State};
use proptest::test_runner::TestCaseError;
use protocol::{Key, Outcome};
use uuid::Uuid;

use crate::bank::{Bank, Truth};
use crate::file::{File, FileRow, Saving, Written};
use crate::rare::{Rare, reached};

const LANES: u64 = 6;
/// A bank that forgets does so some time later than it says: what was asked at the last moment is on its way for a while.
pub(crate) const FORGETS_AFTER_MS: i64 = 25 * 3_600_000;

pub(crate) type Checked = Result<(), TestCaseError>;

/// What was begun and has not ended.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Scan {
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
    NotCalled(Key),
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

pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) queue: Queue,
    pub(crate) file: File,
    pub(crate) bank: Bank,
    pub(crate) pending: Vec<Pending>,
    /// In flight for an address that is not asked any more.
    pub(crate) moved: Vec<Key>,
    /// What was wished cancelled when its call began.
    pub(crate) wished_at_begin: Vec<Key>,
    /// Milliseconds that truly passed.
    pub(crate) true_ms: i64,
    /// What the wall clock is off by.
    pub(crate) skew: SignedDuration,
    pub(crate) faults: bool,
    /// Until when, in true time, the bank asked all to wait, as far as a restart can know it.
    pub(crate) held_until_ms: i64,
    pub(crate) file_hold: Option<Timestamp>,
    pub(crate) file_hold_ms: i64,
    pub(crate) sends: u32,
    /// Nobody sets the clock: then a till knows how old everything is.
    pub(crate) is_steady: bool,
    pub(crate) permanent: bool,
    /// What is in the way: nothing may be asked before the bank has said who it is.
    pub(crate) in_the_way: bool,
    pub(crate) is_stopping: bool,
    /// A scan found something that waits for another bank, so that it is asked again whether that one is back.
    pub(crate) told_of_another_bank: bool,
    pub(crate) has_jumped: bool,
    /// The process died while the clock was wrong: it waits as long as a bank may ask for, where it can't know.
    pub(crate) waits_in_doubt: bool,
}

pub(crate) fn fail(why: &str) -> TestCaseError {
    TestCaseError::fail(why.to_owned())
}

pub(crate) fn promise(permanent: bool) -> Promise {
    Promise {
        identity: BankIdentity { bank_id: Uuid::from_u128(7), merchant: "demo".to_owned() },
        retention: SignedDuration::from_hours(24),
        permanent,
    }
}

impl World {
    pub(crate) fn new(seed: u64, operations: u64) -> Result<World, TestCaseError> {
        let settings = Settings::default();
        let is_steady = seed.is_multiple_of(2);
        let mut random = Random::new(seed);
        let start = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 50);
        let mut file = File { settings, rows: std::collections::BTreeMap::new(), waits_for_another_bank: false };
        let mut keys = Vec::new();
        for seq in 0..usize::try_from(operations).unwrap_or(0) {
            let mut bytes = [0_u8; 16];
            bytes[..8].copy_from_slice(&random.next().to_be_bytes());
            bytes[8..].copy_from_slice(&random.next().to_be_bytes());
            let key = Key::from_bytes(bytes).map_err(|error| fail(&error.to_string()))?;
            let payment = if random.next().is_multiple_of(4) { keys.last().copied() } else { None };
            let lane = match payment.and_then(|payment| file.rows.get(&payment)) {
                Some(payment) => payment.lane.clone(),
                None => format!("lane-{}", random.next() % LANES),
            };
            file.rows.insert(
                key,
                FileRow {
                    seq,
                    lane,
                    state: State::Saved,
                    ask: Next::Send,
                    failures: 0,
                    panics: 0,
                    panicked: 0,
                    deaths: 0,
                    first_sent_at: None,
                    due_at: Some(start),
                    not_before: None,
                    attempts: 0,
                    payment,
                    ready: payment.is_none(),
                    wished: false,
                    tombstone: false,
                    touched: false,
                    copied: false,
                    called_ms: None,
                    is_looked_up: false,
                    told_to_wait_until: i64::MIN,
                },
            );
            if payment.is_none() {
                keys.push(key);
            }
        }
        Ok(World {
            settings,
            random,
            queue: Queue::at_start(settings, None, start),
            file,
            bank: Bank::default(),
            pending: Vec::new(),
            moved: Vec::new(),
            wished_at_begin: Vec::new(),
            true_ms: start.as_millisecond(),
            skew: SignedDuration::ZERO,
            faults: true,
            held_until_ms: i64::MIN,
            file_hold: None,
            file_hold_ms: i64::MIN,
            sends: 0,
            is_steady,
            permanent: !(is_steady && seed.is_multiple_of(4)),
            in_the_way: true,
            is_stopping: false,
            told_of_another_bank: false,
            has_jumped: false,
            waits_in_doubt: false,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        let truth = Timestamp::from_millisecond(self.true_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        truth.saturating_add(self.skew).unwrap_or(truth)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.random.next() % 100 < percent
    }

    fn faulty(&mut self, percent: u64) -> bool {
        self.faults && self.chance(percent)
    }

    pub(crate) fn feed(&mut self, event: Event) -> Checked {
        let is_tick = matches!(event, Event::Tick);
        let begun = if let Event::Begun(key) = event { Some(key) } else { None };
        let (queue, effects) = decide(self.queue.clone(), event, self.now(), self.random.next());
        self.queue = queue;
        if is_tick && effects.is_empty() && self.queue.wake_at(self.now()).is_some_and(|at| at <= self.now()) {
            return Err(fail("it spins: the time had come, and nothing was done"));
        }
        self.moved.retain(|key| self.queue.in_flight().any(|other| other == key));
        for effect in effects {
            match &effect {
                Effect::Call { key, .. } if begun != Some(*key) => reached(Rare::CalledFromReady),
                Effect::Save { key, change, .. } if begun != Some(*key) && change.event == "put-back" => {
                    reached(Rare::PutBackFromReady);
                }
                _ => {}
            }
            self.perform(effect)?;
        }
        self.check()
    }

    fn perform(&mut self, effect: Effect) -> Checked {
        let asks = matches!(effect, Effect::Call { .. } | Effect::Introduce);
        let begins = asks || matches!(effect, Effect::Scan { .. } | Effect::Begin { .. } | Effect::MakeDue(_));
        if begins && self.is_stopping {
            return Err(fail("something was begun after the end was asked for"));
        }
        let moving = self.pending.iter().any(|pending| matches!(pending, Pending::MakeDue(_)));
        match effect {
            Effect::Scan { .. } if moving => return Err(fail("the file is scanned while rows are made due")),
            Effect::Call { .. } if self.in_the_way => return Err(fail("asked before the bank has said who it is")),
            Effect::Introduce if !self.in_the_way && !self.told_of_another_bank => {
                return Err(fail("the bank had said who it is, and is asked again"));
            }
            _ => {}
        }
        if asks && self.true_ms < self.held_until_ms {
            return Err(fail("something was asked inside the bank's Retry-After"));
        }
        let pending = match effect {
            Effect::Scan { limit, .. } => Pending::Scan { limit },
            Effect::Begin { row, ask, .. } => Pending::Begin { row, ask },
            // What a wish came for while it stood ready is not called for.
            Effect::Call { key, ask, stood_ready: true }
                if ask.sends() && self.file.rows.get(&key).is_some_and(|row| row.wished) =>
            {
                reached(Rare::WishWhileReady);
                Pending::NotCalled(key)
            }
            Effect::Call { key, ask, .. } => self.called(key, ask)?,
            Effect::Abandon(key) => {
                self.abandon(key);
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

    pub(crate) fn end(&mut self, pending: Pending) -> Checked {
        match pending {
            Pending::Scan { limit } => {
                let event = if self.faulty(3) { Event::ScanFailed } else { self.file.scan(limit, self.now()) };
                if matches!(event, Event::Found { .. }) {
                    let is_asking = self.pending.iter().any(|pending| matches!(pending, Pending::Introduction));
                    self.told_of_another_bank =
                        self.file.waits_for_another_bank || (self.told_of_another_bank && is_asking);
                }
                self.feed(event)
            }
            Pending::Begin { row, ask } => {
                self.begin(&row, ask)?;
                if self.chance(30) { self.wish_for_ready() } else { Ok(()) }
            }
            Pending::Call { key, ask } => self.answer(key, ask),
            Pending::NotCalled(key) => self.feed(Event::NotCalled(key)),
            Pending::Save { key, expected, begun, change } => self.save(key, expected, begun, &change),
            Pending::Introduction => {
                let reading = if self.faulty(30) { Some(self.trouble()) } else { None };
                if let Some(Reading::Busy { retry_after, .. }) = &reading {
                    self.hold(*retry_after);
                }
                // Where nothing is in the way, a bank that can't say who it is goes on being asked for the rest.
                let is_nothing = !self.in_the_way && matches!(reading, Some(Reading::Trouble(_)));
                self.in_the_way = reading.is_some() && !is_nothing;
                if !self.in_the_way && self.told_of_another_bank {
                    reached(Rare::AskedForAnother);
                }
                self.feed(Event::Introduced(reading.map_or_else(|| Ok(promise(self.permanent)), Err)))
            }
            Pending::MakeDue(make_due) => {
                if self.faulty(5) {
                    return self.feed(Event::MakeDueFailed(make_due));
                }
                self.file.make_due(make_due, self.now());
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

    fn begin(&mut self, found: &Row, ask: Ask) -> Checked {
        // Nothing written, or written with nobody knowing.
        let (fails, written) = (self.faulty(5), self.chance(50));
        let key = found.key;
        let done = self.file.begin(found, ask, self.now(), !fails || written);
        let wished = self.file.rows.get(&key).is_some_and(|row| row.wished);
        self.wished_at_begin.retain(|other| *other != key);
        if wished {
            self.wished_at_begin.push(key);
        }
        if fails {
            reached(Rare::FileFailed);
            return self.feed(Event::BeginFailed(key));
        }
        if wished && done == Written::NotAsExpected {
            reached(Rare::WishInTime);
        }
        self.feed(if done == Written::Done { Event::Begun(key) } else { Event::NotBegun(key) })
    }

    fn trouble(&mut self) -> Reading {
        let seconds = self.random.next() % 90;
        let retry_after = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(0));
        match self.random.next() % 8 {
            0 => Reading::busy("unavailable", retry_after),
            1 => Reading::busy("rate-limited", retry_after),
            2 => Reading::trouble("internal"),
            3 => Reading::not_allowed("unauthorized"),
            4 => Reading::Foreign("HTML".to_owned()),
            5 => Reading::NoAnswer { how: Lost::TimeOut, detail: String::new() },
            6 => Reading::NoAnswer { how: Lost::Reset, detail: String::new() },
            _ => Reading::NoConnection("refused".to_owned()),
        }
    }

    fn hold(&mut self, retry_after: SignedDuration) {
        reached(Rare::Held);
        let most = self.settings.retry_after_max;
        let until = self.true_ms + i64::try_from(retry_after.min(most).as_millis()).unwrap_or(0);
        self.held_until_ms = self.held_until_ms.max(until);
    }

    /// A call ends: what the bank has of it, and what of that the till gets to know.
    fn answer(&mut self, key: Key, ask: Ask) -> Checked {
        let moved = self.moved.contains(&key);
        let trouble = if self.faulty(40) { Some(self.trouble()) } else { None };
        let panics = self.faulty(2);
        let connects = !matches!(trouble, Some(Reading::NoConnection(_)));
        let arrives = connects && (trouble.is_none() && !panics || self.chance(60));
        let outcome = if self.random.next().is_multiple_of(5) { Outcome::Declined } else { Outcome::Approved };
        let ends = !self.faulty(15);
        let row = self.file.rows.get_mut(&key).ok_or_else(|| fail("an answer for no row"))?;
        row.touched |= connects && ask.sends();
        let is_refund = row.payment.is_some();
        let was_running = matches!(self.bank.truth.get(&key), Some(Truth::Running(_)));
        if arrives {
            self.bank.take(key, ask, is_refund, outcome, ends, self.true_ms);
        }
        if panics {
            row.panicked += 1;
            return self.feed(Event::Panicked(key));
        }
        let mut reading = trouble.unwrap_or_else(|| self.bank.says(key));
        let is_end = matches!(reading, Reading::Final { .. } | Reading::Cancelled);
        if is_end && ask.sends() && self.faulty(4) {
            reading = Reading::Expired;
        } else if is_end && self.faulty(4) {
            reading = Reading::BankAttention("a look-up".to_owned());
        }
        let row = self.file.rows.get_mut(&key).ok_or_else(|| fail("an answer for no row"))?;
        if !row.touched {
            row.called_ms = None;
        }
        row.is_looked_up = ask == Ask::LookUp && reading == Reading::UnknownKey;
        self.in_the_way |= !moved && (reading.is_transport() || matches!(reading, Reading::NotAllowed(_)));
        match &reading {
            Reading::InProgress(Some(wait)) => {
                row.told_to_wait_until = self.true_ms + i64::try_from(wait.as_millis()).unwrap_or(0);
            }
            Reading::Busy { retry_after, .. } if !moved => self.hold(*retry_after),
            Reading::Final { outcome: Outcome::Approved, .. } if row.wished && !row.tombstone => {
                reached(Rare::ChargedDespiteWish);
            }
            Reading::Cancelled if ask.sends() && !was_running => reached(Rare::CancelledByCopy),
            Reading::Cancelled if row.state == State::NeedsAttention => reached(Rare::AsideCancelled),
            Reading::Cancelled if !row.tombstone => reached(Rare::CancelledAtBank),
            _ => {}
        }
        if moved {
            reached(Rare::Moved);
        }
        self.feed(Event::Answered(key, reading))
    }

    fn save(&mut self, key: Key, expected: State, begun: bool, change: &Change) -> Checked {
        let (fails, written) = (self.faulty(5), self.chance(50));
        let now = self.now();
        // The caller's own part of the change panics, so nothing of it is written.
        if self.faulty(2)
            && let Some(row) = self.file.rows.get_mut(&key)
        {
            row.panicked += 1;
            reached(Rare::SavePanicked);
            return self.feed(Event::Panicked(key));
        }
        let wished = begun && self.wished_at_begin.contains(&key);
        let before = self.file.rows.get(&key).ok_or_else(|| fail("a save for no row"))?.clone();
        if fails {
            reached(Rare::FileFailed);
        }
        if !fails || written {
            let done = self.file.save(key, &Saving { expected, begun, wished, change }, now);
            if done == Written::Done {
                self.check_saved(key, &before, change, now)?;
            } else if let Some(row) = self.file.rows.get_mut(&key) {
                // An earlier try took, and this one is about nothing.
                row.panicked = row.panics;
            }
        }
        self.feed(if fails { Event::SaveFailed(key) } else { Event::Saved(key) })
    }

    pub(crate) fn step(&mut self) -> Checked {
        let dice = self.random.next() % 100;
        if self.faults {
            match dice {
                0 => return self.die(),
                11 if self.chance(20) => return self.stop(),
                1 if self.is_steady => return if self.pending.is_empty() { self.pass_hours() } else { Ok(()) },
                1 => return self.jump(),
                2..=6 => return self.feed(Event::Wake(Wake::CheckNow)),
                7 => return self.feed(Event::Wake(Wake::NetworkChanged)),
                8 => return self.wish(),
                9 => {
                    self.copy_acts();
                    return Ok(());
                }
                10 if self.chance(50) => return self.change_bank(),
                12 => self.file.waits_for_another_bank = self.chance(50),
                _ => {}
            }
        }
        // Where nothing fails, nothing takes time either: what is measured then is what the queue waits for by itself.
        if self.pending.is_empty() || (self.faults && dice < 27) {
            return self.pass_time();
        }
        let at = usize::try_from(self.random.next()).unwrap_or(0) % self.pending.len();
        let pending = self.pending.swap_remove(at);
        self.end(pending)
    }

    /// What has to end within the cap: what is not set aside, and waits for no payment that is.
    pub(crate) fn ordinary(&self) -> Vec<Key> {
        let is_aside = |row: &FileRow| row.state == State::NeedsAttention;
        let waits =
            |row: &FileRow| !row.ready && row.payment.is_some_and(|key| self.file.rows.get(&key).is_some_and(is_aside));
        let rows = self.file.rows.iter().filter(|(_, row)| !row.state.is_final() && !is_aside(row) && !waits(row));
        rows.map(|(key, _)| *key).collect()
    }

    /// What is left of everything that the bank asked to wait for, as far as anybody remembers.
    pub(crate) fn left_of_retry_after_ms(&self) -> i64 {
        let told = self.file.rows.values().map(|row| row.told_to_wait_until);
        let kept = self.file.rows.values().map(|row| self.kept_ms(row.not_before));
        let until = told.chain(kept).chain([self.held_until_ms, self.kept_ms(self.file_hold)]).max().unwrap_or(0);
        let in_doubt = if self.waits_in_doubt { self.settings.retry_after_max } else { SignedDuration::ZERO };
        let more = self.settings.retry_after_jitter + in_doubt;
        (until - self.true_ms).max(0) + i64::try_from(more.as_millis()).unwrap_or(0)
    }

    /// What the file has of a Retry-After: a clock that jumped may have made it longer, up to the longest there is.
    fn kept_ms(&self, until: Option<Timestamp>) -> i64 {
        let longest = self.settings.retry_after_max + self.settings.retry_after_jitter;
        let left = until.map_or(SignedDuration::ZERO, |until| until.duration_since(self.now()).min(longest));
        self.true_ms + i64::try_from(left.as_millis()).unwrap_or(0)
    }

    /// What must still end by itself: all but what was set aside and never reached the bank, and what waits for such.
    pub(crate) fn open(&self) -> usize {
        let is_aside = |key: &Key, row: &FileRow| {
            // A bank that forgets is asked for no cancellation of what it may have charged: that is for people.
            let is_ended = row.wished && self.permanent;
            row.state == State::NeedsAttention && !is_ended && !self.bank.knows(*key)
        };
        let waits = |row: &FileRow| {
            let payment = row.payment.and_then(|key| Some((key, self.file.rows.get(&key)?)));
            !row.ready && payment.is_some_and(|(key, payment)| is_aside(&key, payment))
        };
        let rows = self.file.rows.iter();
        rows.filter(|(key, row)| row.is_open() && !is_aside(key, row) && !waits(row)).count()
    }
}
