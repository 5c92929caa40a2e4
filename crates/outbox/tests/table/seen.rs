//! The queue as its driver sees it, and the states that it can be in.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use outbox::answer::Reading;
use outbox::decide::{Effect, Event, MakeDue, Next, Queue, Record, Wake, decide};
use outbox::{Ask, Settings, State};
use protocol::{Key, Outcome};

use crate::words::{CHANCE, NOW, RETRY_AFTER, key, promise, row, when};

/// How far a call is, by what the driver was told to do for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Beginning,
    Ready,
    Calling,
    Saving,
    Unsaved,
}

/// The queue as its driver sees it: what it was told to do, and has not reported yet.
#[derive(Clone)]
pub(crate) struct Seen {
    queue: Queue,
    pub(crate) now: Timestamp,
    pub(crate) record: Record,
    pub(crate) scanning: bool,
    pub(crate) probing: bool,
    pub(crate) making_due: Option<MakeDue>,
    pub(crate) flights: BTreeMap<Key, (Stage, Ask)>,
    stopping: bool,
}

impl Seen {
    fn at_start() -> Seen {
        Seen {
            queue: Queue::at_start(Settings::default(), None, NOW),
            now: NOW,
            record: Record::default(),
            scanning: false,
            probing: false,
            making_due: None,
            flights: BTreeMap::new(),
            stopping: false,
        }
    }

    pub(crate) fn feed(&mut self, event: &Event) -> Vec<Effect> {
        match event {
            Event::Found { .. } | Event::ScanFailed => self.scanning = false,
            Event::Introduced(_) | Event::BankChanged { .. } => self.probing = false,
            Event::MadeDue | Event::MakeDueFailed(_) => self.making_due = None,
            Event::NotBegun(key) | Event::BeginFailed(key) | Event::Saved(key) => drop(self.flights.remove(key)),
            Event::SaveFailed(key) => {
                if let Some((stage @ Stage::Saving, _)) = self.flights.get_mut(key) {
                    *stage = Stage::Unsaved;
                }
            }
            Event::Stop => self.stopping = true,
            Event::ClockJumped { by } => self.now += *by,
            _ => {}
        }
        let (queue, effects) = decide(self.queue.clone(), event.clone(), self.now, CHANCE);
        self.queue = queue;
        if let Event::Begun(key) = event
            && let Some((stage, _)) = self.flights.get_mut(key)
        {
            *stage = Stage::Ready;
        }
        for effect in &effects {
            match effect {
                Effect::Scan { .. } => self.scanning = true,
                Effect::Introduce => self.probing = true,
                Effect::MakeDue(make_due) => self.making_due = Some(*make_due),
                Effect::Begin { row, ask, .. } => drop(self.flights.insert(row.key, (Stage::Beginning, *ask))),
                Effect::Call { key, ask, .. } => drop(self.flights.insert(*key, (Stage::Calling, *ask))),
                Effect::Save { key, .. } => {
                    if let Some((stage, _)) = self.flights.get_mut(key) {
                        *stage = Stage::Saving;
                    }
                }
                Effect::Abandon(_) | Effect::Record(_) => {}
            }
        }
        self.keep(&effects);
        effects
    }

    /// What is known of the bank is written at once, so that nothing waits for it.
    fn keep(&mut self, effects: &[Effect]) {
        let Some(Effect::Record(record)) = effects.iter().find(|effect| matches!(effect, Effect::Record(_))) else {
            return;
        };
        self.record = (**record).clone();
        let (queue, more) = decide(self.queue.clone(), Event::Recorded, self.now, CHANCE);
        self.queue = queue;
        self.keep(&more);
    }

    fn after(mut self, events: impl IntoIterator<Item = Event>) -> Seen {
        for event in events {
            self.feed(&event);
        }
        self
    }

    /// The time has come for what the queue planned.
    fn later(mut self) -> Seen {
        self.now = self.planned();
        self.after([Event::Tick])
    }

    /// A call takes its time.
    fn pass(mut self, seconds: i64) -> Seen {
        self.now += SignedDuration::from_secs(seconds);
        self
    }

    /// When time alone gives it something to do.
    pub(crate) fn planned(&self) -> Timestamp {
        self.queue.wake_at(self.now).unwrap_or(self.now).max(self.now)
    }

    /// What a bank that is not well is asked next: an operation, where it said who it is and fails at everything.
    fn what_is_asked(&self) -> &'static str {
        let (_, effects) = decide(self.queue.clone(), Event::Tick, self.planned(), CHANCE);
        let introduces = effects.iter().any(|effect| matches!(effect, Effect::Introduce));
        if introduces || self.queue.in_flight().next().is_some() {
            "it is asked who it is"
        } else {
            "it is asked for one"
        }
    }

    /// Whether there is a place for a call, and no outcome on its way into the file that a scan would wait for.
    fn can_scan(&self) -> bool {
        let is_saving = |stage: &Stage| matches!(stage, Stage::Saving | Stage::Unsaved);
        self.flights.len() < 4 && !self.flights.values().any(|(stage, _)| is_saving(stage))
    }

    fn bank(&self) -> &'static str {
        match (&self.record.paused, self.record.reachable, &self.record.why) {
            (Some(_), ..) => "the bank refuses us",
            (_, Some(false), _) => "the bank is away",
            (_, Some(true), Some(_)) => "the bank is unwell",
            (_, Some(true), None) => ANSWERS,
            (_, None, _) => "not known who the bank is",
        }
    }

    /// What is to be made due is so once it can be: when the running one has ended, or when the file is used again.
    fn is_to_make_due(&self) -> bool {
        let (event, now) = match self.making_due {
            Some(_) => (Event::MadeDue, self.now),
            None => (Event::Tick, self.planned()),
        };
        makes_due(&decide(self.queue.clone(), event, now, CHANCE).1)
    }

    /// Whether nothing of the file is touched for now: a wish to make rows due waits.
    fn is_file_left_alone(&self) -> bool {
        let mut queue = self.queue.clone();
        if self.making_due.is_some() {
            let (ended, effects) = decide(queue, Event::MadeDue, self.now, CHANCE);
            if makes_due(&effects) {
                return false;
            }
            queue = ended;
        }
        // Unlike a wake it is never put off for being too soon after another.
        !makes_due(&decide(queue, Event::BankChanged { same_address: true }, self.now, CHANCE).1)
    }

    /// What is so now, as far as the effects don't say it.
    pub(crate) fn standing(&self) -> Result<Vec<(&'static str, String)>> {
        let mut so = vec![("the bank", self.bank().to_owned())];
        if let Some(until) = self.record.hold_until {
            so.push(("a hold", format!("all wait, {}", when(until, self.now)?)));
        }
        if self.record.clock_gap_s.is_some() {
            so.push(("a gap", "it is known how far the clocks are apart".to_owned()));
        }
        if self.flights.get(&subject()?).is_some_and(|(stage, _)| *stage == Stage::Unsaved) {
            so.push(("a retry", format!("it is saved again, {}", when(self.planned(), self.now)?)));
        }
        if self.queue.has_stopped() {
            return Ok([so, vec![("the end", "it has stopped".to_owned())]].concat());
        }
        if self.stopping {
            return Ok([so, vec![("the end", "it stops when that is saved".to_owned())]].concat());
        }
        if self.is_to_make_due() {
            so.push(("a wish", "rows are made due as soon as can be".to_owned()));
        }
        if self.is_file_left_alone() {
            so.push(("the file", "the file is left alone for a back-off".to_owned()));
        } else if self.record.hold_until.is_none() {
            let is_ready = self.bank() == ANSWERS;
            match self.record.probe_at.filter(|_| !self.probing && !is_ready) {
                Some(at) if at <= self.now => so.push(("a probe", format!("{}, at once", self.what_is_asked()))),
                Some(_) => so.push(("a probe", format!("{}, back-off", self.what_is_asked()))),
                None if is_ready && !self.scanning && self.making_due.is_none() && self.can_scan() => {
                    so.push(("a scan", format!("it scans again, {}", when(self.planned(), self.now)?)));
                }
                None => {}
            }
        }
        Ok(so)
    }
}

fn makes_due(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::MakeDue(_)))
}

const ANSWERS: &str = "the bank answers";

pub(crate) fn no_connection() -> Reading {
    Reading::NoConnection("refused".to_owned())
}

pub(crate) fn busy() -> Reading {
    Reading::busy("unavailable", RETRY_AFTER)
}

pub(crate) fn refused() -> Reading {
    Reading::not_allowed("unauthorized")
}

pub(crate) fn trouble() -> Reading {
    Reading::trouble("internal")
}

pub(crate) fn approved() -> Reading {
    Reading::Final { outcome: Outcome::Approved, result: String::new() }
}

/// The operation that the events are about.
pub(crate) fn subject() -> Result<Key> {
    key(1)
}

pub(crate) fn found(numbers: impl IntoIterator<Item = u128>) -> Result<Event> {
    let rows = numbers.into_iter().map(|number| row(number, State::Saved, Next::Send)).collect::<Result<_>>()?;
    Ok(Event::Found { rows, next_due_at: None, other_bank: None })
}

/// A state of the queue, with the way into it.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) is: &'static str,
    pub(crate) seen: Seen,
}

/// The ways into the states.
fn begun(numbers: impl IntoIterator<Item = u128>) -> Result<Vec<Event>> {
    numbers.into_iter().map(|number| Ok(Event::Begun(key(number)?))).collect()
}

fn ends(number: u128, reading: Reading) -> Result<[Event; 2]> {
    Ok([Event::Answered(key(number)?, reading), Event::Saved(key(number)?)])
}

/// Asked again and again who it is, the last time a second ago.
fn failing(mut seen: Seen, reading: &Reading) -> Seen {
    for _ in 0..5 {
        seen = seen.after([Event::Introduced(Err(reading.clone()))]).later();
    }
    seen.after([Event::Introduced(Err(reading.clone()))]).pass(1)
}

/// Five that the bank fails at, each once.
fn five_fail(scanning: &Seen) -> Result<Seen> {
    let mut seen = scanning.clone();
    for number in 11..=15 {
        if !seen.scanning {
            seen = seen.later();
        }
        seen = seen.after([found([number])?, Event::Begun(key(number)?)]).after(ends(number, trouble())?);
    }
    Ok(seen.pass(0))
}

/// The states in which nothing is in flight.
fn quiet(asked: &Seen, scanning: &Seen, idle: &Seen) -> Result<Vec<Named>> {
    let asked = || asked.clone();
    let (away, refused_us) = (failing(asked(), &no_connection()), failing(asked(), &refused()));
    let other = || Ok::<_, anyhow::Error>(scanning.clone().after([found([2])?, Event::Begun(key(2)?)]));
    Ok(vec![
        Named { name: "new", is: "the bank is being asked who it is, for the first time", seen: asked() },
        Named { name: "away", is: "the way to the bank is at fault; the next probe is planned", seen: away.clone() },
        Named { name: "away, probing", is: "the same, and the probe runs", seen: away.later() },
        Named {
            name: "refused",
            is: "the bank refuses our secret; the next probe is planned",
            seen: refused_us.clone(),
        },
        Named { name: "refused, probing", is: "the same, and the probe runs", seen: refused_us.later() },
        Named {
            name: "unwell",
            is: "the bank answers, but can't say who it is; the next probe is planned",
            seen: failing(asked(), &trouble()),
        },
        Named { name: "idle", is: "the bank has said who it is, and nothing is due", seen: idle.clone() },
        Named { name: "scanning", is: "the file is being scanned for what is due", seen: scanning.clone() },
        Named {
            name: "scanning, held",
            is: "the same, and meanwhile the bank has asked all to wait",
            seen: other()?.later().after(ends(2, busy())?),
        },
        Named {
            name: "scanning, away",
            is: "the same, and meanwhile the way to the bank is at fault",
            seen: other()?.later().after(ends(2, no_connection())?),
        },
        Named { name: "held", is: "the bank asked all to wait", seen: other()?.after(ends(2, busy())?) },
        Named {
            name: "failing",
            is: "the bank failed at more operations than may be in flight, one after the other, and completed none since",
            seen: five_fail(scanning)?,
        },
        Named {
            name: "elsewhere",
            is: "nothing is due but what belongs to another bank than the one that answers here",
            seen: scanning.clone().after([Event::Found {
                rows: Vec::new(),
                next_due_at: None,
                other_bank: Some(true),
            }]),
        },
        Named {
            name: "file",
            is: "the file could not be read or written",
            seen: scanning.clone().after([Event::ScanFailed]),
        },
        Named {
            name: "making due",
            is: "rows are being made due",
            seen: idle.clone().after([Event::Wake(Wake::CheckNow)]),
        },
        Named { name: "stopped", is: "the program has ended it", seen: idle.clone().after([Event::Stop]) },
    ])
}

/// The states in which the operation that the events are about is in flight.
fn busy_with_one(scanning: &Seen) -> Result<Vec<Named>> {
    let one = subject()?;
    let beginning = || Ok::<_, anyhow::Error>(scanning.clone().after([found([1])?]));
    let calling = || Ok::<_, anyhow::Error>(beginning()?.after([Event::Begun(one)]));
    let with_other = || Ok::<_, anyhow::Error>(scanning.clone().after([found([2, 1])?, Event::Begun(key(2)?)]).pass(4));
    let both = || Ok::<_, anyhow::Error>(with_other()?.after([Event::Begun(one)]));
    let saving = || Ok::<_, anyhow::Error>(calling()?.after([Event::Answered(one, trouble())]));
    let full = scanning.clone().after([found([1, 2, 3, 4])?]).after(begun(1..=4)?);
    let quick = scanning.clone().after([found([9])?, Event::Begun(key(9)?)]).after(ends(9, approved())?);
    let ready = quick.after([found([2, 3, 4, 5, 1])?]).after(begun(2..=5)?).after(begun([1])?);
    Ok(vec![
        Named {
            name: "counting",
            is: "it is being made durable that one is about to be asked for",
            seen: beginning()?,
        },
        Named {
            name: "counting, away",
            is: "the same, and meanwhile the way to the bank is at fault",
            seen: with_other()?.after(ends(2, no_connection())?),
        },
        Named {
            name: "counting, held",
            is: "the same, and meanwhile the bank has asked all to wait",
            seen: with_other()?.after(ends(2, busy())?),
        },
        Named {
            name: "counting, ending",
            is: "the same, and meanwhile the program ends",
            seen: beginning()?.after([Event::Stop]),
        },
        Named {
            name: "ready",
            is: "it was counted ahead of its call, because the bank answers at once; four calls run",
            seen: ready,
        },
        Named { name: "calling", is: "a call runs", seen: calling()? },
        Named {
            name: "calling, away",
            is: "the same, and meanwhile the way to the bank is at fault",
            seen: both()?.after(ends(2, no_connection())?),
        },
        Named {
            name: "calling, held",
            is: "the same, and meanwhile the bank has asked all to wait",
            seen: both()?.after(ends(2, busy())?),
        },
        Named {
            name: "calling, moved",
            is: "the same, and meanwhile another address is used",
            seen: calling()?.after([Event::BankChanged { same_address: false }, Event::MadeDue]),
        },
        Named { name: "calling, full", is: "four calls run", seen: full },
        Named { name: "saving", is: "an outcome is being made durable", seen: saving()? },
        Named {
            name: "unsaved",
            is: "an outcome could not be made durable yet",
            seen: saving()?.after([Event::SaveFailed(one)]),
        },
        Named {
            name: "saving, ending",
            is: "the call was broken off, because the program ends",
            seen: calling()?.after([Event::Stop]),
        },
    ])
}

pub(crate) fn states() -> Result<Vec<Named>> {
    let asked = Seen::at_start().after([Event::Tick]);
    let scanning = asked.clone().after([Event::Introduced(Ok(promise(true)))]);
    let idle = scanning.clone().after([found([])?]);
    Ok([quiet(&asked, &scanning, &idle)?, busy_with_one(&scanning)?].into_iter().flatten().collect())
}
