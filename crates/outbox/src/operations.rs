//! The table of operations: one operation as the file has it, and reading it.

use jiff::Timestamp;
use protocol::{Currency, Key, ShortCode};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::columns::{json, optional, stored, time};
use crate::state::State;
use crate::step::BankIdentity;

/// What kind of thing is asked. Which it is decides what else an operation has: see [`Request`](crate::Request).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A charge of a card.
    Payment,
    /// Money given back.
    Refund,
    /// Anything else that must be done exactly once. No money is in it.
    Message,
}

impl Kind {
    /// The word in the file and for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Payment => "payment",
            Kind::Refund => "refund",
            Kind::Message => "message",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Kind> {
        [Kind::Payment, Kind::Refund, Kind::Message].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Money that an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Money {
    /// Minor units of the currency, above 0.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
}

/// One operation, as the file has it: a copy, that doesn't change with it. It holds no card token, no secret and no request body.
///
/// Times are of our clock, to the millisecond.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// Its place in the order of saving: ascending, never used twice.
    pub seq: i64,
    /// The idempotency key (draft-ietf-httpapi-idempotency-key-header), the same in every attempt.
    pub key: Key,
    /// The short form of the key, for people to name it by: four characters, not unique.
    pub short_code: ShortCode,
    /// The intent that it was saved for.
    pub intent_id: Uuid,
    /// The intent that it took the place of.
    pub replaces: Option<Uuid>,
    /// What it belongs to: one in flight at a time in each lane.
    pub lane: String,
    /// What is asked.
    pub kind: Kind,
    /// Of a refund: the key of the payment that it gives back.
    pub payment_key: Option<Key>,
    /// How far it is: see the [crate's page](crate#what-an-operation-is-in-each-state).
    pub state: State,
    /// What it moves; none of a message.
    #[serde(flatten)]
    pub money: Option<Money>,
    /// How often its request was sent, or was about to be: counted before the first byte. Look-ups and cancellations don't count.
    pub attempts: u32,
    /// When it was saved.
    pub created_at: Timestamp,
    /// When it last changed. A wake that makes it due at once is no change.
    pub updated_at: Timestamp,
    /// When it became final.
    pub settled_at: Option<Timestamp>,
    /// When it is tried (or, where it needs attention, looked up) next, at the earliest; none while a call runs or is about to, and once it is
    /// final. What holds all of the queue is not in it: see [`Summary::next_attempt_at`](crate::Summary::next_attempt_at).
    pub due_at: Option<Timestamp>,
    /// The bank's own `Retry-After` for this operation: it is not asked for before it, whoever wakes the queue.
    pub not_before: Option<Timestamp>,
    /// When the goods were handed over before the bank had answered.
    pub accepted_offline_at: Option<Timestamp>,
    /// When somebody wished it cancelled: from then on only the cancellation is sent.
    pub cancel_wished_at: Option<Timestamp>,
    /// It was cancelled here, and the bank has not confirmed yet that it never charges it: see [`crate::cancel`].
    pub tombstone: bool,
    /// Why it needs attention, waits for another bank, or was cancelled with its payment: a word, a colon and what else is to be
    /// said. `request-invalid: …` and other problems of the bank, `bank: …`, `forgotten: …`, `unsendable: …`, `not-offered: …`,
    /// `fault: …`; `other-bank: MERCHANT at BANK`; `payment-declined`, `payment-cancelled`.
    pub reason: Option<String>,
    /// How the last answer was read, where it wasn't final: `no-connection`, `in-progress`, `rate-limited`, …
    pub last_answer: Option<String>,
    /// The bank's own object, once final: a payment or a refund, or what the contract kept of the answer to a message. None of one
    /// that is cancelled.
    pub result: Option<Value>,
    /// The bank of its first call: it goes to no other.
    pub bank_id: Option<Uuid>,
    /// The merchant of its first call, as whom that bank knew us.
    pub merchant: Option<String>,
}

impl Operation {
    fn text(&self, member: &str) -> Option<&str> {
        self.result.as_ref()?.get(member)?.as_str()
    }

    /// The bank that it belongs to.
    pub(crate) fn bank(&self) -> Option<BankIdentity> {
        let (bank_id, merchant) = (self.bank_id?, self.merchant.clone()?);
        Some(BankIdentity { bank_id, merchant })
    }

    /// The code that stands on the receipt of an approved payment.
    #[must_use]
    pub fn approval_code(&self) -> Option<&str> {
        self.text("approval_code").filter(|code| is_short_word(code))
    }

    /// Why the bank declined.
    #[must_use]
    pub fn decline_code(&self) -> Option<&str> {
        self.text("decline_code")
    }

    /// The bank's id of the payment or refund: the member `id` of its result.
    #[must_use]
    pub fn bank_reference(&self) -> Option<&str> {
        self.text("id")
    }

    /// Brand and last four digits of the card, as the bank told them.
    #[must_use]
    pub fn card(&self) -> Option<(&str, &str)> {
        let card = self.result.as_ref()?.get("card")?;
        let (brand, last4) = (card.get("brand")?.as_str()?, card.get("last4")?.as_str()?);
        (is_short_word(brand) && is_last_four(last4)).then_some((brand, last4))
    }
}

/// Characters of a card's brand, or of an approval code, at most.
const SHORT_CHARS_MAX: usize = 32;

/// Whether it can stand on a receipt as a brand or a code.
pub(crate) fn is_short_word(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= SHORT_CHARS_MAX && !text.contains(protocol::is_unseen)
}

/// Whether these are the last four digits of a card, and no more of it.
pub(crate) fn is_last_four(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

const COLUMNS: &str = "seq, key, intent_id, replaces, lane, kind, payment_key, state, amount, currency, attempts, created_at, \
     updated_at, settled_at, due_at, not_before, accepted_offline_at, cancel_wished_at, tombstone, reason, last_answer, result, \
     bank_id, merchant";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let key: Key = stored(row, "key")?;
    let required = |column: &str| time(row, column)?.ok_or(rusqlite::Error::InvalidQuery);
    let amount: Option<i64> = row.get("amount")?;
    let currency: Option<Currency> = optional(row, "currency")?;
    Ok(Operation {
        seq: row.get("seq")?,
        key,
        short_code: key.short_code(),
        intent_id: stored(row, "intent_id")?,
        replaces: optional(row, "replaces")?,
        lane: row.get("lane")?,
        kind: stored(row, "kind")?,
        payment_key: optional(row, "payment_key")?,
        state: stored(row, "state")?,
        money: amount.zip(currency).map(|(amount, currency)| Money { amount, currency }),
        attempts: row.get("attempts")?,
        created_at: required("created_at")?,
        updated_at: required("updated_at")?,
        settled_at: time(row, "settled_at")?,
        due_at: time(row, "due_at")?,
        not_before: time(row, "not_before")?,
        accepted_offline_at: time(row, "accepted_offline_at")?,
        cancel_wished_at: time(row, "cancel_wished_at")?,
        tombstone: row.get("tombstone")?,
        reason: row.get("reason")?,
        last_answer: row.get("last_answer")?,
        result: json(row, "result")?,
        bank_id: optional(row, "bank_id")?,
        merchant: row.get("merchant")?,
    })
}

pub(crate) fn one(
    conn: &Connection,
    condition: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Option<Operation>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE {condition}"))?
        .query_row(params, from_row)
        .optional()
}

/// The operation of that key.
///
/// # Errors
/// The file could not be read.
pub fn by_key(conn: &Connection, key: &Key) -> rusqlite::Result<Option<Operation>> {
    one(conn, "key = ?1", [key.as_bytes()])
}

/// The operation of that intent: how to find out, after an uncertain commit, whether a click was saved.
///
/// # Errors
/// The file could not be read.
pub fn by_intent(conn: &Connection, intent_id: Uuid) -> rusqlite::Result<Option<Operation>> {
    one(conn, "intent_id = ?1", [intent_id.as_bytes()])
}

/// The operation that took the place of that intent.
///
/// # Errors
/// The file could not be read.
pub fn replacement_of(conn: &Connection, intent_id: Uuid) -> rusqlite::Result<Option<Operation>> {
    one(conn, "replaces = ?1", [intent_id.as_bytes()])
}

/// The refunds of a payment, in every state, in the order of saving.
///
/// # Errors
/// The file could not be read.
pub fn refunds_of(conn: &Connection, payment: &Key) -> rusqlite::Result<Vec<Operation>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE payment_key = ?1 ORDER BY seq"))?
        .query_map([payment.as_bytes()], from_row)?
        .collect()
}

/// Which operations to list: by default the oldest 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those of this kind.
    pub kind: Option<Kind>,
    /// Only those over just so much, in minor units of whichever currency.
    pub amount: Option<i64>,
    /// Only those saved at this time or later, by the clock of then.
    pub created_from: Option<Timestamp>,
    /// Only those saved before this time, by the clock of then.
    pub created_before: Option<Timestamp>,
    /// Only those saved before this one, by its [`Operation::seq`].
    pub before_seq: Option<i64>,
    /// Only those saved after this one, by its [`Operation::seq`].
    pub after_seq: Option<i64>,
    /// Newest first; else oldest first.
    pub newest_first: bool,
    /// At most so many.
    pub limit: u32,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            state: None,
            kind: None,
            amount: None,
            created_from: None,
            created_before: None,
            before_seq: None,
            after_seq: None,
            newest_first: false,
            limit: 100,
        }
    }
}

/// Operations in the order of saving. Page on with the last one's `seq`.
///
/// What is open has an index of its own. What has ended has none by its state, as every settlement would have to pay for it: it is
/// read in the order of saving until as many are found as were asked for, and so are kind, amount and time: of a hundred thousand in some tens
/// of milliseconds. Where they may be rare (declined or cancelled, in a file of millions), bound it by [`Filter::before_seq`] and [`Filter::after_seq`].
///
/// # Errors
/// The file could not be read.
pub fn list(conn: &Connection, filter: Filter) -> rusqlite::Result<Vec<Operation>> {
    conn.prepare_cached(&listing(filter))?
        .query_map(
            params![
                filter.state.map(State::as_str),
                filter.before_seq.unwrap_or(i64::MAX),
                filter.after_seq.unwrap_or(i64::MIN),
                filter.limit,
                filter.kind.map(Kind::as_str),
                filter.amount,
                filter.created_from.map(Timestamp::as_millisecond),
                filter.created_before.map(Timestamp::as_millisecond),
            ],
            from_row,
        )?
        .collect()
}

/// The statement of a list: its state, before, after, limit, kind, amount, from, before a time.
fn listing(filter: Filter) -> String {
    let order = if filter.newest_first { "DESC" } else { "ASC" };
    // What is open has an index of its own, that stays small; what is final is most of the table.
    let open = concat!("INDEXED BY operations_open WHERE ", open!(), " AND state = ?1");
    let among = match filter.state {
        None => "WHERE ?1 IS NULL",
        Some(state) if state.is_final() => "WHERE state = ?1",
        Some(_) => open,
    };
    format!(
        "SELECT {COLUMNS} FROM operations {among} AND seq < ?2 AND seq > ?3
             AND (?5 IS NULL OR kind = ?5) AND (?6 IS NULL OR amount = ?6)
             AND (?7 IS NULL OR created_at >= ?7) AND (?8 IS NULL OR created_at < ?8)
         ORDER BY seq {order} LIMIT ?4"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_within_its_bounds_in_its_order_and_nothing_is_sorted() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(&crate::MIGRATIONS.concat()).unwrap();
        for state in State::ALL.map(Some).into_iter().chain([None]) {
            for newest_first in [false, true] {
                let sql = listing(Filter { state, newest_first, ..Filter::default() });
                let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let values = params![state.map(State::as_str), i64::MAX, i64::MIN, 100, "payment", 2_490, 0, i64::MAX];
                let steps: Vec<String> =
                    plan.query_map(values, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
                let by = if state.is_some_and(|state| !state.is_final()) {
                    "SEARCH operations USING INDEX operations_open (seq>? AND seq<?)"
                } else {
                    "SEARCH operations USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
                };
                assert_eq!(steps, [by], "{sql}");
            }
        }
    }

    #[test]
    fn of_a_hundred_thousand_all_that_is_asked_for_is_found_page_by_page() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(&crate::MIGRATIONS.concat()).unwrap();
        let triggers: Vec<String> = conn
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        // These refunds are of nothing.
        triggers.iter().for_each(|name| conn.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
        // One a second; each seventh a refund, each thousandth over 24.90, the last hundred open.
        conn.execute_batch(
            "PRAGMA foreign_keys = off;
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO operations (seq, key, intent_id, payment_key, lane, kind, method, path, body, body_version, amount, currency, state, created_at,
                 updated_at, settled_at)
             SELECT i, randomblob(16), randomblob(16), iif(i % 7 = 0, randomblob(16), NULL), i, iif(i % 7 = 0, 'refund', 'payment'), 'POST', '/', zeroblob(200), 1,
                 iif(i % 1000 = 0, 2490, 100), 'EUR', iif(i > 99900, 'saved', 'approved'), i * 1000, 0, iif(i > 99900, NULL, 1) FROM n",
        )
        .unwrap();
        let at = |second: i64| Some(Timestamp::from_second(second).unwrap());
        let all = Filter { newest_first: true, limit: 40, ..Filter::default() };
        for (filter, wanted) in [
            (all, (1..=100_000).rev().collect::<Vec<i64>>()),
            (Filter { kind: Some(Kind::Refund), ..all }, (1..=100_000).rev().filter(|i| i % 7 == 0).collect()),
            (Filter { amount: Some(2_490), ..all }, (1..=100_000).rev().filter(|i| i % 1_000 == 0).collect()),
            (Filter { created_from: at(500), created_before: at(600), ..all }, (500..600).rev().collect()),
            (
                Filter { state: Some(State::Saved), kind: Some(Kind::Refund), ..all },
                (99_901..=100_000).rev().filter(|i| i % 7 == 0).collect(),
            ),
            (
                Filter { state: Some(State::Approved), amount: Some(2_490), kind: Some(Kind::Refund), ..all },
                vec![
                    98_000, 91_000, 84_000, 77_000, 70_000, 63_000, 56_000, 49_000, 42_000, 35_000, 28_000, 21_000,
                    14_000, 7_000,
                ],
            ),
            (Filter { amount: Some(7), ..all }, vec![]),
        ] {
            let (mut found, mut before_seq) = (Vec::new(), None);
            // As far as a person pages.
            for _ in 0..4 {
                let page = list(&conn, Filter { before_seq, ..filter }).unwrap();
                before_seq = page.last().map(|last| last.seq);
                found.extend(page.iter().map(|operation| operation.seq));
                if before_seq.is_none() {
                    break;
                }
            }
            assert_eq!(found, wanted.into_iter().take(160).collect::<Vec<_>>(), "{filter:?}");
        }
    }
}
