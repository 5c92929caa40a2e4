//! Saving an operation in the caller's transaction.

use jiff::Timestamp;
use protocol::{Amount, Currency, Key, PAYMENTS_PATH, PaymentRequest, REFUNDS_PATH, RefundRequest};
use rusqlite::{Connection, named_params, params};
use uuid::Uuid;

use crate::attempts::{self, Entry};
use crate::columns::{kept, ms};
use crate::operations::{Kind, Money, Operation, by_intent, by_key, one, refunds_of};
use crate::state::State;
use crate::step::BankIdentity;

/// How the stored bytes were made, so that a later version knows what it has before it.
const BODY_VERSION: i64 = 1;

/// What a new operation asks of the bank. Its bytes are made when it is saved, and never again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Charge a card, by Kassa's bank. With `accepted_offline_at`, the goods were handed over from the outset.
    Payment(PaymentRequest),
    /// Give money back of a payment that this outbox made. It waits until that payment is approved, and gets its bytes then; where
    /// the payment ends otherwise, it is cancelled. Together with the other refunds never more than the payment.
    Refund {
        /// The key of the payment, in any state but declined and cancelled.
        payment: Key,
        /// How much of it, in minor units of its currency.
        amount: Amount,
    },
    /// Anything else, for a [`Contract`](crate::Contract) of your own. Kassa's bank is sent none: there it needs attention.
    Message(Message),
}

impl From<PaymentRequest> for Request {
    fn from(payment: PaymentRequest) -> Self {
        Request::Payment(payment)
    }
}

impl From<Message> for Request {
    fn from(message: Message) -> Self {
        Request::Message(message)
    }
}

/// A request with no money in it. Whether the same intent is the same message is told by its bytes: make them alike each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// `POST`, `PUT`, …
    pub method: String,
    /// The path below the address, beginning with `/`, perhaps with a `?query`. It stands in the log of attempts and in every
    /// export: no secret in it.
    pub path: String,
    /// Sent byte for byte, as `application/json` where the [`Contract`](crate::Contract) names no other content type. It is kept for
    /// ever, and in memory while it is sent; how long it may be is for the other side to say.
    pub body: Vec<u8>,
}

impl Message {
    /// A `POST` to that path.
    #[must_use]
    pub fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Message {
        Message { method: "POST".to_owned(), path: path.into(), body: body.into() }
    }

    /// What no client could send, at any attempt.
    fn check(&self) -> Result<(), EnqueueError> {
        if http::Method::from_bytes(self.method.as_bytes()).is_err() {
            return Err(EnqueueError::Unsendable("its method is no HTTP method"));
        }
        if !self.path.starts_with('/') {
            return Err(EnqueueError::Unsendable("its path doesn't begin with /"));
        }
        Ok(())
    }
}

/// One thing to ask of the bank, exactly once. [`NewOperation::new`] is the short way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// Made before the click, when the dialog opens: however often it is clicked, it is one operation. Unique over all operations of
    /// the file, in every state, for ever.
    pub intent_id: Uuid,
    /// The intent that this one takes the place of. It must have ended without money: declined or cancelled. Each is replaced once.
    pub replaces: Option<Uuid>,
    /// What it belongs to (the till's sale), any text: one in flight at a time in each lane, in the order of saving. What shares no
    /// order gets a lane of its own.
    pub lane: String,
    /// What to ask.
    pub request: Request,
}

impl NewOperation {
    /// A request under that intent, in that lane.
    #[must_use]
    pub fn new(intent_id: Uuid, lane: impl Into<String>, request: impl Into<Request>) -> NewOperation {
        NewOperation { intent_id, replaces: None, lane: lane.into(), request: request.into() }
    }

    /// The same in the place of an intent that ended declined or cancelled: another card, collecting again.
    #[must_use]
    pub fn replacing(self, intent_id: Uuid) -> NewOperation {
        NewOperation { replaces: Some(intent_id), ..self }
    }
}

/// What [`enqueue`] found or made.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueued {
    /// The one operation of the intent.
    pub operation: Operation,
    /// It was there already, in whatever state; nothing was written. Then the caller's own rows are there too.
    pub existed: bool,
}

/// Why nothing was saved. The caller's transaction is as it was before, apart from [`EnqueueError::Sqlite`]. Each text is one line
/// for people.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// The intent has an operation of another amount, currency or card, for another payment, or with another message. What is
    /// another thing to ask needs an intent id of its own.
    #[error("this intent was already saved with another request")]
    IntentReused(Box<Operation>),
    /// What it is to replace was never saved.
    #[error("what it replaces is not known")]
    ReplacesUnknown,
    /// What it is to replace may still move money, or has: it is in this state.
    #[error("what it replaces is {0}, so money may have moved for it")]
    NotReplaceable(State),
    /// What it is to replace was replaced before, by this operation.
    #[error("it was replaced before")]
    AlreadyReplaced(Box<Operation>),
    /// There is no payment of that key in this file.
    #[error("there is no payment of that key")]
    PaymentUnknown,
    /// The payment was declined or cancelled, or is to be: there is nothing to give back. With the word for which.
    #[error("the payment is {0}: there is nothing to give back")]
    NothingToRefund(&'static str),
    /// More than what is left of the payment, refunds that are under way counted.
    #[error("{asked} is more than the {left} that is left of the payment")]
    OverRefund {
        /// What was asked for, in minor units.
        asked: i64,
        /// What is left, in minor units.
        left: i64,
    },
    /// The message could not be sent at any attempt, so it is not saved. The text says why.
    #[error("the message can't be sent: {0}")]
    Unsendable(&'static str),
    /// The file.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

/// A request as it goes into its row.
struct Line<'a> {
    kind: Kind,
    payment_key: Option<Key>,
    method: &'a str,
    path: &'a str,
    body: Option<Vec<u8>>,
    money: Option<Money>,
    accepted_offline_at: Option<Timestamp>,
    /// Of a refund of an approved payment: the bank of that payment, the only one that can give it back.
    bank: Option<BankIdentity>,
}

/// Saves an operation in the caller's transaction, with whatever else the caller writes there. Nothing leaves before that
/// transaction is committed. An intent that has an operation, in any state, gets that one back.
///
/// `key` is used only where a new operation is made, and must have been used for nothing else. `now` is when it is saved, and due.
/// [`Outbox::enqueue`](crate::Outbox::enqueue) has both. [Wake](crate::Outbox::wake) the outbox after the commit.
///
/// # Errors
/// See [`EnqueueError`]; on any of them nothing must be sent, so roll back.
pub fn enqueue(tx: &Connection, new: &NewOperation, key: Key, now: Timestamp) -> Result<Enqueued, EnqueueError> {
    if let Some(operation) = by_intent(tx, new.intent_id)? {
        return if is_same(tx, &operation, &new.request)? {
            Ok(Enqueued { operation, existed: true })
        } else {
            Err(EnqueueError::IntentReused(Box::new(operation)))
        };
    }
    if let Some(replaced) = new.replaces {
        check_replaceable(tx, replaced)?;
    }
    let line = line(tx, &new.request)?;
    insert(tx, new, &line, &key, now)?;
    let seq = tx.last_insert_rowid();
    attempts::append(tx, &Entry::new(&key, 0, now, "saved"))?;
    store::points::reach(store::points::Point::Inserted);
    Ok(Enqueued { operation: inserted(seq, new, line, key, now)?, existed: false })
}

/// The operation that was just inserted, as reading the file would give it. Somebody waits for it, so it is not read.
fn inserted(
    seq: i64,
    new: &NewOperation,
    line: Line<'_>,
    key: Key,
    now: Timestamp,
) -> Result<Operation, rusqlite::Error> {
    let (bank_id, merchant) = line.bank.map(|bank| (bank.bank_id, bank.merchant)).unzip();
    let now = kept(now)?;
    Ok(Operation {
        seq,
        key,
        short_code: key.short_code(),
        intent_id: new.intent_id,
        replaces: new.replaces,
        lane: new.lane.clone(),
        kind: line.kind,
        payment_key: line.payment_key,
        state: State::Saved,
        money: line.money,
        attempts: 0,
        created_at: now,
        updated_at: now,
        settled_at: None,
        due_at: Some(now),
        not_before: None,
        accepted_offline_at: line.accepted_offline_at.map(kept).transpose()?,
        cancel_wished_at: None,
        tombstone: false,
        reason: None,
        last_answer: None,
        result: None,
        bank_id,
        merchant,
    })
}

fn line<'a>(tx: &Connection, request: &'a Request) -> Result<Line<'a>, EnqueueError> {
    Ok(match request {
        Request::Payment(request) => Line {
            kind: Kind::Payment,
            payment_key: None,
            method: "POST",
            path: PAYMENTS_PATH,
            body: Some(request.encode()),
            money: Some(Money { amount: request.amount.get(), currency: request.currency }),
            accepted_offline_at: request.accepted_offline_at,
            bank: None,
        },
        Request::Refund { payment, amount } => {
            let (approved, currency) = refundable(tx, payment, *amount)?;
            let (payment_id, bank) = approved.unzip();
            Line {
                kind: Kind::Refund,
                payment_key: Some(*payment),
                method: "POST",
                path: REFUNDS_PATH,
                body: payment_id.map(|payment_id| RefundRequest { payment_id, amount: *amount }.encode()),
                money: Some(Money { amount: amount.get(), currency }),
                accepted_offline_at: None,
                bank: bank.flatten(),
            }
        }
        Request::Message(message) => {
            message.check()?;
            Line {
                kind: Kind::Message,
                payment_key: None,
                method: &message.method,
                path: &message.path,
                body: Some(message.body.clone()),
                money: None,
                accepted_offline_at: None,
                bank: None,
            }
        }
    })
}

fn insert(
    tx: &Connection,
    new: &NewOperation,
    line: &Line<'_>,
    key: &Key,
    now: Timestamp,
) -> Result<(), rusqlite::Error> {
    tx.prepare_cached(
        "INSERT INTO operations (key, intent_id, replaces, lane, kind, payment_key, method, path, body, body_version, amount, \
             currency, accepted_offline_at, bank_id, merchant, state, due_at, created_at, updated_at) \
         VALUES (:key, :intent, :replaces, :lane, :kind, :payment, :method, :path, :body, :version, :amount, \
             :currency, :offline, :bank, :merchant, 'saved', :now, :now, :now)",
    )?
    .execute(named_params! {
        ":key": key.as_bytes(),
        ":intent": new.intent_id.as_bytes(),
        ":replaces": new.replaces.as_ref().map(Uuid::as_bytes),
        ":lane": new.lane,
        ":kind": line.kind.as_str(),
        ":payment": line.payment_key.as_ref().map(Key::as_bytes),
        ":method": line.method,
        ":path": line.path,
        ":body": line.body,
        ":version": BODY_VERSION,
        ":amount": line.money.map(|money| money.amount),
        ":currency": line.money.map(|money| money.currency.code()),
        ":offline": line.accepted_offline_at.map(ms),
        ":bank": line.bank.as_ref().map(|bank| bank.bank_id.as_bytes()),
        ":merchant": line.bank.as_ref().map(|bank| &bank.merchant),
        ":now": ms(now),
    })
    .map(|_| ())
}

/// What a refund is to name, and the bank that knows it.
type Approved = (String, Option<BankIdentity>);

/// What a refund of that payment is to name (nothing while the payment is open), and its currency.
fn refundable(tx: &Connection, payment: &Key, amount: Amount) -> Result<(Option<Approved>, Currency), EnqueueError> {
    let payment = by_key(tx, payment)?.filter(|operation| operation.kind == Kind::Payment);
    let Some((payment, money)) = payment.and_then(|payment| payment.money.map(|money| (payment, money))) else {
        return Err(EnqueueError::PaymentUnknown);
    };
    match payment.state {
        State::Declined | State::Cancelled => return Err(EnqueueError::NothingToRefund(payment.state.as_str())),
        State::Approved => {}
        _ if payment.cancel_wished_at.is_some() => return Err(EnqueueError::NothingToRefund("being cancelled")),
        _ => {}
    }
    let taken: i64 = refunds_of(tx, &payment.key)?
        .iter()
        .filter(|refund| !matches!(refund.state, State::Declined | State::Cancelled))
        .filter_map(|refund| refund.money)
        .map(|money| money.amount)
        .sum();
    let left = money.amount - taken;
    if amount.get() > left {
        return Err(EnqueueError::OverRefund { asked: amount.get(), left });
    }
    let approved = payment.bank_reference().map(|payment_id| (payment_id.to_owned(), payment.bank()));
    Ok((approved, money.currency))
}

/// Whether the stored request asks for the same: money of the same card, or of the same payment; a message, to the byte. What
/// else differs is no second charge.
fn is_same(tx: &Connection, operation: &Operation, request: &Request) -> rusqlite::Result<bool> {
    let (method, path, body): (String, String, Option<Vec<u8>>) = tx
        .prepare_cached("SELECT method, path, body FROM operations WHERE key = ?1")?
        .query_row([operation.key.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(match (request, operation.kind) {
        (Request::Payment(request), Kind::Payment) => {
            // By an earlier version too: its bytes are sent as they are, whatever is taken today.
            body.and_then(|body| PaymentRequest::decode_stored(&body).ok()).is_some_and(|stored| {
                (stored.amount, stored.currency, &stored.card) == (request.amount, request.currency, &request.card)
            })
        }
        (Request::Refund { payment, amount }, Kind::Refund) => {
            operation.payment_key == Some(*payment) && operation.money.is_some_and(|money| money.amount == amount.get())
        }
        (Request::Message(message), Kind::Message) => {
            (&method, &path, body.as_deref()) == (&message.method, &message.path, Some(message.body.as_slice()))
        }
        _ => false,
    })
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
