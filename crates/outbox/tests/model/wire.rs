//! The way to the bank: what is asked waits here until the test lets an answer come. What must hold when a call arrives is
//! checked here, against the file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use outbox::answer::{Answer, CallError, Lost};
use outbox::{Call, Kind, State, Transport};
use protocol::Key;
use store::Store;
use tokio::sync::oneshot;

use crate::bank::Asked;
use crate::clock::Hands;
use crate::rare::{Rare, reached};

/// No call takes longer.
pub(crate) const CALL_MS: u64 = 10_000;

/// What ends a call.
pub(crate) enum Reply {
    Comes(Result<Answer, CallError>),
    /// The till's own handling of it fails.
    Fault,
}

/// A call that waits for its answer.
pub(crate) struct Waiting {
    pub(crate) asked: Asked,
    pub(crate) call: Call,
    pub(crate) address: usize,
    /// The till has gone on to another address since.
    pub(crate) is_moved: bool,
    pub(crate) since_ms: u64,
    pub(crate) number: u64,
    reply: oneshot::Sender<Reply>,
}

impl Waiting {
    /// Whether anybody still waits for it.
    pub(crate) fn is_open(&self) -> bool {
        !self.reply.is_closed()
    }

    pub(crate) fn end(self, reply: Reply) {
        // Whoever asked may have gone meanwhile.
        let _ = self.reply.send(reply);
    }
}

/// A call that came, and what it says of whom it is for.
pub(crate) struct Arrived {
    pub(crate) asked: Asked,
    pub(crate) bank_id: Option<String>,
    /// Whose calls ran at that moment.
    pub(crate) beside: Vec<Key>,
}

/// What is in the way of asking for anything, until the bank says who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InTheWay {
    NotAsked,
    Transport,
    Refused,
    Trouble,
}

#[derive(Default)]
pub(crate) struct Line {
    pub(crate) waiting: Vec<Waiting>,
    /// What was asked since the last look.
    pub(crate) arrived: Vec<Arrived>,
    pub(crate) in_the_way: Option<InTheWay>,
    /// The way was at fault since it was last clear.
    pub(crate) was_away: bool,
    pub(crate) violations: Vec<String>,
    calls: u64,
    /// Until when, in true time, the bank of this address asked all to wait.
    pub(crate) held_until_ms: Option<i64>,
    /// Until when each.
    pub(crate) not_before_ms: Vec<(Key, i64)>,
}

impl Line {
    /// All waits are shorter.
    pub(crate) fn wait_less(&mut self, ms: i64) {
        self.held_until_ms = self.held_until_ms.map(|until| until - ms);
        self.not_before_ms.iter_mut().for_each(|(_, until)| *until -= ms);
    }
}

/// Both addresses' wire.
#[derive(Clone)]
pub(crate) struct Wire {
    line: Arc<Mutex<Line>>,
    hands: Hands,
}

impl Wire {
    pub(crate) fn new(hands: &Hands) -> Wire {
        Wire { line: Arc::default(), hands: hands.clone() }
    }

    pub(crate) fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn at(&self, address: usize, store: &Store) -> Arc<dyn Transport> {
        Arc::new(Address { wire: self.clone(), address, store: store.clone() })
    }

    /// What the till waits for, and would believe of the bank that it asks now.
    fn in_flight(&self) -> Vec<Asked> {
        let line = self.line();
        let counts = |waiting: &&Waiting| waiting.is_open() && (waiting.asked.key().is_some() || !waiting.is_moved);
        line.waiting.iter().filter(counts).map(|waiting| waiting.asked).collect()
    }

    /// Calls that somebody waits for.
    pub(crate) fn waiting(&self) -> usize {
        let mut line = self.line();
        line.waiting.retain(Waiting::is_open);
        line.waiting.len()
    }
}

/// One of them, as a till's transport.
struct Address {
    wire: Wire,
    address: usize,
    store: Store,
}

const ADDRESSES: [&str; 2] = ["http://bank-a", "http://bank-b"];

impl Transport for Address {
    fn address(&self) -> &str {
        ADDRESSES.get(self.address).copied().unwrap_or_default()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        let (reply, answer) = oneshot::channel();
        let asked = match Asked::of(&call) {
            Ok(asked) => asked,
            Err(error) => {
                self.wire.line().violations.push(format!("{error}: {call:?}"));
                Asked::Introduction
            }
        };
        let beside: Vec<Key> = self.wire.in_flight().into_iter().filter_map(Asked::key).collect();
        let broken = self.broken_rule(asked, &call, &beside);
        let mut line = self.wire.line();
        line.violations.extend(broken);
        line.calls += 1;
        let (number, since_ms) = (line.calls, self.wire.hands.monotonic_ms());
        let waiting = Waiting { asked, call, address: self.address, is_moved: false, since_ms, number, reply };
        let bank_id = waiting.call.header(protocol::BANK_ID).map(str::to_owned);
        line.arrived.push(Arrived { asked, bank_id, beside });
        line.waiting.push(waiting);
        Box::pin(async move {
            match answer.await {
                Ok(Reply::Comes(answer)) => answer,
                // Quietly: it is meant so.
                Ok(Reply::Fault) => std::panic::resume_unwind(Box::new("a fault of the till")),
                Err(_) => Err(CallError::NoAnswer { how: Lost::Reset, detail: "nobody answers".to_owned() }),
            }
        })
    }
}

impl Address {
    /// Then it is asked again and again whether that one is back.
    fn waits_for_another_bank(&self) -> bool {
        const WAITS: &str = "SELECT EXISTS (SELECT 1 FROM operations WHERE bank_id IS NOT NULL \
             AND (tombstone = 1 OR state NOT IN ('approved', 'declined', 'cancelled')) \
             AND (bank_id, merchant) IS NOT (SELECT bank_id, merchant FROM outbox))";
        self.store.read_blocking(|conn| conn.query_row(WAITS, [], |row| row.get(0))).unwrap_or(false)
    }

    /// What must hold when this is asked. Reads the file: what stands there is durable.
    fn broken_rule(&self, asked: Asked, call: &Call, others: &[Key]) -> Vec<String> {
        let mut broken = Vec::new();
        let now_ms = self.wire.hands.true_ms();
        if asked == Asked::Introduction && self.wire.in_flight().contains(&asked) {
            broken.push("two probes at once".to_owned());
        }
        {
            let line = self.wire.line();
            match (asked, line.in_the_way) {
                (Asked::Introduction, None) if self.waits_for_another_bank() => reached(Rare::AskedForAnother),
                (Asked::Introduction, None) => {
                    broken.push("the bank had said who it is, and is asked again".to_owned())
                }
                (Asked::Introduction, Some(_)) | (_, None) => {}
                (_, Some(why)) => broken.push(format!("asked before the bank said who it is, {why:?}: {asked:?}")),
            }
            if line.held_until_ms.is_some_and(|until| now_ms < until) {
                broken.push("asked inside the bank's Retry-After".to_owned());
            }
            if let Some(key) = asked.key()
                && line.not_before_ms.iter().any(|(other, until)| *other == key && now_ms < *until)
            {
                broken.push(format!("asked inside the Retry-After of {key}"));
            }
        }
        let Some(key) = asked.key() else { return broken };
        let others = others.to_vec();
        if others.len() == 3 {
            reached(Rare::Full);
        }
        if others.len() > 3 {
            broken.push("more than four calls at once".to_owned());
        }
        let look = move |conn: &rusqlite::Connection| -> rusqlite::Result<Vec<String>> {
            let mut broken = Vec::new();
            let Some(operation) = outbox::by_key(conn, &key)? else { return Ok(vec!["a call for nothing".to_owned()]) };
            let told = format!("{asked:?}: {operation:?}");
            if operation.due_at.is_some() {
                broken.push(format!("not counted durably before it was made: {told}"));
            }
            for other in others {
                let other = outbox::by_key(conn, &other)?;
                if other.is_some_and(|other| other.lane == operation.lane) {
                    broken.push(format!("two of a lane at once: {told}"));
                }
            }
            match asked {
                Asked::Request(_) => broken.extend(broken_by_request(conn, &operation)?),
                // A refund is cancelled with its payment.
                Asked::Cancellation(_) if operation.cancel_wished_at.is_none() && operation.kind != Kind::Refund => {
                    broken.push(format!("cancelled, and nobody wished it: {told}"));
                }
                _ => {}
            }
            Ok(broken)
        };
        broken.extend(self.store.read_blocking(look).unwrap_or_else(|error| vec![error.to_string()]));
        let for_whom = (call.header(protocol::BANK_ID), call.header(protocol::MERCHANT));
        if for_whom.0.is_none() || for_whom.1.is_none() {
            broken.push(format!("it says not for whom it is: {call:?}"));
        }
        broken
    }
}

/// What must hold of an operation whose request goes out.
fn broken_by_request(conn: &rusqlite::Connection, operation: &outbox::Operation) -> rusqlite::Result<Vec<String>> {
    let mut broken = Vec::new();
    let told = format!("{operation:?}");
    if operation.state != State::Sending {
        broken.push(format!("sent in another state than `sending`: {told}"));
    }
    if operation.cancel_wished_at.is_some() {
        broken.push(format!("sent after the wish to cancel it: {told}"));
    }
    let log = outbox::attempts(conn, &operation.key)?;
    let counted = log.iter().filter(|entry| entry.event == "sent").count();
    if usize::try_from(operation.attempts).unwrap_or(0) != counted {
        broken.push(format!("{counted} of its attempts are in the log: {told}"));
    }
    let older = conn
        .prepare_cached(
            "SELECT count(*) FROM operations WHERE lane = ?1 AND seq < ?2 AND body IS NOT NULL \
             AND state IN ('saved', 'sending', 'unknown')",
        )?
        .query_row((&operation.lane, operation.seq), |row| row.get::<_, i64>(0))?;
    if older > 0 {
        broken.push(format!("sent before an older one of its lane: {told}"));
    }
    if operation.kind == Kind::Refund {
        let payment = operation.payment_key.map(|key| outbox::by_key(conn, &key)).transpose()?.flatten();
        if payment.is_none_or(|payment| payment.state != State::Approved) {
            broken.push(format!("a refund before its payment was approved: {told}"));
        }
    }
    Ok(broken)
}
