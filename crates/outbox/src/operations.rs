//! The table of operations: saving one in the caller's transaction, and looking.

use jiff::Timestamp;
use protocol::{Currency, Key, Kind, PAYMENTS_PATH, PaymentRequest, ShortCode};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde_json::Value;
use uuid::Uuid;

use crate::attempts::{self, Entry};
use crate::columns::{json, ms, optional, stored, time};
use crate::state::State;

/// How the stored bytes were made, so that a later version knows what it has before it.
const BODY_VERSION: i64 = 1;

/// What a new operation asks of the bank.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Charge a card.
    Payment(PaymentRequest),
}

/// One thing to ask of the bank, exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// Made before the click, when the dialog opens: however often it is clicked, it is one operation.
    pub intent_id: Uuid,
    /// The intent that this one takes the place of. It must have ended without money: declined or cancelled.
    pub replaces: Option<Uuid>,
    /// What it belongs to (the till's sale): one in flight at a time in each lane, in the order of saving.
    pub lane: String,
    /// What to ask.
    pub request: Request,
}

/// What [`enqueue`] found or made.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueued {
    /// The one operation of the intent.
    pub operation: Operation,
    /// It was there already, in whatever state; nothing was written.
    pub existed: bool,
}

/// Why nothing was saved. The caller's transaction is as it was before, apart from [`EnqueueError::Sqlite`].
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// The intent has an operation of another amount, currency or card.
    #[error("this payment was already asked for with another amount or card")]
    IntentReused(Box<Operation>),
    /// What it is to replace was never saved.
    #[error("what it replaces is not known")]
    ReplacesUnknown,
    /// What it is to replace may still move money, or has.
    #[error("what it replaces is {0}, so money may have moved for it")]
    NotReplaceable(State),
    /// What it is to replace was replaced before.
    #[error("it was replaced before")]
    AlreadyReplaced(Box<Operation>),
    /// The file.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// One operation, as the file has it. It holds no card token and no secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its place in the order of saving.
    pub seq: i64,
    /// The idempotency key, the same in every attempt.
    pub key: Key,
    /// The short form of the key, for people.
    pub short_code: ShortCode,
    /// The intent that it was saved for.
    pub intent_id: Uuid,
    /// The intent that it took the place of.
    pub replaces: Option<Uuid>,
    /// What it belongs to.
    pub lane: String,
    /// What is asked.
    pub kind: Kind,
    /// How far it is.
    pub state: State,
    /// Minor units of the currency.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// How often its request was sent, or was about to be: counted before the first byte.
    pub attempts: u32,
    /// When it was saved.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it became final.
    pub settled_at: Option<Timestamp>,
    /// When it is tried (or, where it needs attention, looked up) next; none while a call runs.
    pub due_at: Option<Timestamp>,
    /// The bank's own `Retry-After`: nothing is sent before it.
    pub not_before: Option<Timestamp>,
    /// Why it needs attention, or waits for another bank.
    pub reason: Option<String>,
    /// How the last answer was read, where it wasn't final: `no-connection`, `in-progress`, `rate-limited`, …
    pub last_answer: Option<String>,
    /// The bank's own object, once final: a payment or a refund.
    pub result: Option<Value>,
    /// The bank of its first attempt.
    pub bank_id: Option<Uuid>,
    /// The merchant of its first attempt.
    pub merchant: Option<String>,
}

impl Operation {
    fn text(&self, member: &str) -> Option<&str> {
        self.result.as_ref()?.get(member)?.as_str()
    }

    /// The code that stands on the receipt of an approved payment.
    #[must_use]
    pub fn approval_code(&self) -> Option<&str> {
        self.text("approval_code")
    }

    /// Why the bank declined.
    #[must_use]
    pub fn decline_code(&self) -> Option<&str> {
        self.text("decline_code")
    }

    /// The bank's id of the payment or refund.
    #[must_use]
    pub fn bank_reference(&self) -> Option<&str> {
        self.text("id")
    }

    /// Brand and last four digits of the card, as the bank told them.
    #[must_use]
    pub fn card(&self) -> Option<(&str, &str)> {
        let card = self.result.as_ref()?.get("card")?;
        Some((card.get("brand")?.as_str()?, card.get("last4")?.as_str()?))
    }
}

const COLUMNS: &str = "seq, key, intent_id, replaces, lane, kind, state, amount, currency, attempts, created_at, \
     updated_at, settled_at, due_at, not_before, reason, last_answer, result, bank_id, merchant";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let key: Key = stored(row, "key")?;
    let required = |column: &str| time(row, column)?.ok_or(rusqlite::Error::InvalidQuery);
    Ok(Operation {
        seq: row.get("seq")?,
        key,
        short_code: key.short_code(),
        intent_id: stored(row, "intent_id")?,
        replaces: optional(row, "replaces")?,
        lane: row.get("lane")?,
        kind: stored(row, "kind")?,
        state: stored(row, "state")?,
        amount: row.get("amount")?,
        currency: stored(row, "currency")?,
        attempts: row.get("attempts")?,
        created_at: required("created_at")?,
        updated_at: required("updated_at")?,
        settled_at: time(row, "settled_at")?,
        due_at: time(row, "due_at")?,
        not_before: time(row, "not_before")?,
        reason: row.get("reason")?,
        last_answer: row.get("last_answer")?,
        result: json(row, "result")?,
        bank_id: optional(row, "bank_id")?,
        merchant: row.get("merchant")?,
    })
}

/// Saves an operation in the caller's transaction, with whatever else the caller writes there. Nothing leaves before that
/// transaction is committed. An intent that has an operation, in any state, gets that one back.
///
/// `key` is used only where a new operation is made. Wake the outbox after the commit.
///
/// # Errors
/// See [`EnqueueError`]; on any of them nothing must be sent, so roll back.
pub fn enqueue(tx: &Connection, new: &NewOperation, key: Key, now: Timestamp) -> Result<Enqueued, EnqueueError> {
    let Request::Payment(request) = &new.request;
    if let Some(operation) = by_intent(tx, new.intent_id)? {
        return if same_charge(tx, &operation, request)? {
            Ok(Enqueued { operation, existed: true })
        } else {
            Err(EnqueueError::IntentReused(Box::new(operation)))
        };
    }
    if let Some(replaced) = new.replaces {
        check_replaceable(tx, replaced)?;
    }
    tx.prepare_cached(
        "INSERT INTO operations (key, intent_id, replaces, lane, kind, method, path, body, body_version, amount, \
             currency, state, due_at, created_at, updated_at) \
         VALUES (:key, :intent, :replaces, :lane, 'payment', 'POST', :path, :body, :version, :amount, :currency, \
             'saved', :now, :now, :now)",
    )?
    .execute(named_params! {
        ":key": key.as_bytes(),
        ":intent": new.intent_id.as_bytes(),
        ":replaces": new.replaces.as_ref().map(Uuid::as_bytes),
        ":lane": new.lane,
        ":path": PAYMENTS_PATH,
        ":body": request.encode(),
        ":version": BODY_VERSION,
        ":amount": request.amount.get(),
        ":currency": request.currency.code(),
        ":now": ms(now),
    })?;
    attempts::append(tx, &Entry::new(&key, 0, now, "saved"))?;
    let operation = by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(Enqueued { operation, existed: false })
}

/// Whether the stored request asks for the same money of the same card. What else differs is no second charge.
fn same_charge(tx: &Connection, operation: &Operation, request: &PaymentRequest) -> rusqlite::Result<bool> {
    let body: Option<Vec<u8>> = tx
        .prepare_cached("SELECT body FROM operations WHERE key = ?1 AND kind = 'payment'")?
        .query_row([operation.key.as_bytes()], |row| row.get(0))
        .optional()?
        .flatten();
    Ok(body.and_then(|body| PaymentRequest::decode(&body).ok()).is_some_and(|stored| {
        (stored.amount, stored.currency, &stored.card) == (request.amount, request.currency, &request.card)
    }))
}

fn check_replaceable(tx: &Connection, replaced: Uuid) -> Result<(), EnqueueError> {
    let Some(old) = by_intent(tx, replaced)? else { return Err(EnqueueError::ReplacesUnknown) };
    if !matches!(old.state, State::Declined | State::Cancelled) {
        return Err(EnqueueError::NotReplaceable(old.state));
    }
    match one(tx, "replaces = ?1", params![replaced.as_bytes()])? {
        Some(other) => Err(EnqueueError::AlreadyReplaced(Box::new(other))),
        None => Ok(()),
    }
}

fn one(conn: &Connection, condition: &str, params: impl rusqlite::Params) -> rusqlite::Result<Option<Operation>> {
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

/// Which operations to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those saved before this one.
    pub before_seq: Option<i64>,
    /// Only those saved after this one.
    pub after_seq: Option<i64>,
    /// Newest first; else oldest first.
    pub newest_first: bool,
    /// At most so many.
    pub limit: u32,
}

impl Default for Filter {
    fn default() -> Self {
        Filter { state: None, before_seq: None, after_seq: None, newest_first: false, limit: 100 }
    }
}

/// Operations in the order of saving. Page on with the last one's `seq`.
///
/// # Errors
/// The file could not be read.
pub fn list(conn: &Connection, filter: Filter) -> rusqlite::Result<Vec<Operation>> {
    let order = if filter.newest_first { "DESC" } else { "ASC" };
    // What is open has an index of its own, that stays small; what is final is most of the table.
    let open = concat!("INDEXED BY operations_open WHERE ", open!(), " AND state = ?1");
    let among = match filter.state {
        None => "WHERE ?1 IS NULL",
        Some(state) if state.is_final() => "WHERE state = ?1",
        Some(_) => open,
    };
    conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM operations {among} AND seq < ?2 AND seq > ?3 ORDER BY seq {order} LIMIT ?4"
    ))?
    .query_map(
        params![
            filter.state.map(State::as_str),
            filter.before_seq.unwrap_or(i64::MAX),
            filter.after_seq.unwrap_or(i64::MIN),
            filter.limit
        ],
        from_row,
    )?
    .collect()
}
