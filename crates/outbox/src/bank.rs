//! Kassa's bank: its contract, and what its answers mean. Pure: bytes in, a [`Reading`] out.
//!
//! Only a valid answer of our own bank counts: its content type, its schema, and the echo of our key, amount and currency.
//! Everything else (a portal's page, half a body, another payment's result) is no answer at all, whatever its status says.

use jiff::{SignedDuration, Timestamp};
use protocol::{
    Amount, Currency, IDEMPOTENCY_KEY, Key, Kind, OperationState, Outcome, POLICY_PATH, Payment, Policy, Problem,
    ProblemType, Refund, RefundRequest,
};
use serde_json::value::RawValue;

use crate::answer::{Answer, Reading, foreign, media_type, parse};
use crate::contract::{Contract, Promise, StoredRequest};
use crate::operations::{self, Operation};
use crate::state::Ask;
use crate::step::BankIdentity;
use crate::transport::Call;

/// The longest name that the bank gives anything: the merchant, a payment.
const WORD_BYTES_MAX: usize = 100;

/// The contract of Kassa's bank: `GET /v1/policy`, payments and refunds under `Idempotency-Key` (after
/// draft-ietf-httpapi-idempotency-key-header), `GET /v1/operations/{key}`, `PUT /v1/operations/{key}/cancellation`, and problem
/// documents (RFC 9457) for all that is no result. `docs/openapi.json` of the repository has it whole. It sends no messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct BankContract;

impl Contract for BankContract {
    fn introduction(&self) -> Call {
        Call::new("GET", POLICY_PATH)
    }

    fn read_introduction(&self, answer: &Answer, now: Timestamp) -> Result<Promise, Reading> {
        read_policy(answer, now).map(|policy| Promise {
            permanent: policy.claims_are_permanent(),
            retention: SignedDuration::from_secs(i64::try_from(policy.retention_s).unwrap_or(i64::MAX)),
            identity: BankIdentity { bank_id: policy.bank_id, merchant: policy.merchant },
        })
    }

    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
        // A message is nothing that this bank knows.
        operation.money?;
        let call = match ask {
            Ask::Send => request.call().with(IDEMPOTENCY_KEY, operation.key.to_string()),
            Ask::LookUp => Call::new("GET", &protocol::operation_path(&operation.key)),
            Ask::Cancel => Call::new("PUT", &protocol::cancellation_path(&operation.key)),
        };
        // The bank may have been swapped for another at the same address since it last said who it is; only it can refuse then,
        // before it charges.
        Some(match (operation.bank_id, &operation.merchant) {
            (Some(bank_id), Some(merchant)) => {
                call.with(protocol::BANK_ID, bank_id.to_string()).with(protocol::MERCHANT, merchant.clone())
            }
            _ => call,
        })
    }

    fn read(
        &self,
        ask: Ask,
        operation: &Operation,
        request: &StoredRequest,
        answer: &Answer,
        now: Timestamp,
    ) -> Reading {
        let Some(expected) = expected(operation, request) else {
            return Reading::Foreign("it answers something that this bank is never asked".to_owned());
        };
        match ask {
            Ask::Send => read(&expected, answer, now),
            Ask::LookUp => read_lookup(&expected, answer, now),
            Ask::Cancel => read_cancellation(&expected, answer, now),
        }
    }
}

/// What the answer of Kassa's bank must repeat to be ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The operation's key.
    pub key: Key,
    /// What was asked.
    pub kind: Kind,
    /// Minor units of the currency.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// Of a refund: the bank's id of the payment. None is not compared: it was cancelled before anybody here knew it.
    pub payment_id: Option<String>,
}

/// What a valid answer must repeat.
fn expected(operation: &Operation, request: &StoredRequest) -> Option<Expected> {
    let money = operation.money?;
    let (kind, payment_id) = match operation.kind {
        operations::Kind::Payment => (Kind::Payment, None),
        // Cancelled before it got its bytes, so nobody here knows the bank's name for its payment.
        operations::Kind::Refund if request.body.is_empty() => (Kind::Refund, None),
        operations::Kind::Refund => (Kind::Refund, Some(RefundRequest::decode(&request.body).ok()?.payment_id)),
        operations::Kind::Message => return None,
    };
    Some(Expected { key: operation.key, kind, amount: money.amount, currency: money.currency, payment_id })
}

/// Reads the answer of Kassa's bank to an operation's own request.
#[must_use]
pub fn read(expected: &Expected, answer: &Answer, now: Timestamp) -> Reading {
    match answer.status {
        201 => result(expected, answer, Outcome::Approved),
        402 => result(expected, answer, Outcome::Declined),
        _ => problem(answer).and_then(|problem| keyed_problem(expected, answer, &problem, now)),
    }
    .unwrap_or_else(|reading| reading)
}

/// Reads the answer of Kassa's bank to `GET /v1/operations/{key}`.
#[must_use]
pub fn read_lookup(expected: &Expected, answer: &Answer, now: Timestamp) -> Reading {
    match answer.status {
        200 => looked_up(expected, answer),
        _ => problem(answer).map(|problem| match problem.problem {
            ProblemType::OperationUnknown => Reading::UnknownKey,
            _ => general_problem(answer, &problem, now).unwrap_or(Reading::trouble(problem.problem.name())),
        }),
    }
    .unwrap_or_else(|reading| reading)
}

/// Reads the answer of Kassa's bank to `PUT /v1/operations/{key}/cancellation`: the operation as it is after the wish.
#[must_use]
pub fn read_cancellation(expected: &Expected, answer: &Answer, now: Timestamp) -> Reading {
    match answer.status {
        200 => looked_up(expected, answer),
        _ => problem(answer).and_then(|problem| keyed_problem(expected, answer, &problem, now)),
    }
    .unwrap_or_else(|reading| reading)
}

/// Reads the answer of Kassa's bank to `GET /v1/policy`.
///
/// # Errors
/// How an answer that is no policy is read: `Foreign`, `NotAllowed`, `Busy` or `Trouble`.
pub fn read_policy(answer: &Answer, now: Timestamp) -> Result<Policy, Reading> {
    match answer.status {
        200 => media_type(answer, "application/json").and_then(|()| parse::<Policy>(&answer.body)).and_then(|policy| {
            // It goes back to the bank in a header of each call.
            if is_word(&policy.merchant) { Ok(policy) } else { foreign("its merchant is no name") }
        }),
        _ => problem(answer).and_then(|problem| {
            Err(general_problem(answer, &problem, now).unwrap_or(Reading::trouble(problem.problem.name())))
        }),
    }
}

/// Whether it can stand in a header, a column and a line: some visible characters of ASCII, spaces between them.
fn is_word(text: &str) -> bool {
    let visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    visible && !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.trim() == text
}

/// A problem document of ours, or nothing.
fn problem(answer: &Answer) -> Result<Problem, Reading> {
    media_type(answer, Problem::MEDIA_TYPE)?;
    let problem: Problem = parse(&answer.body)?;
    if problem.status == answer.status && problem.problem.status() == answer.status {
        Ok(problem)
    } else {
        foreign("its problem document is for another status")
    }
}

/// Problems that mean the same whatever was asked.
fn general_problem(answer: &Answer, problem: &Problem, now: Timestamp) -> Option<Reading> {
    let name = problem.problem.name();
    match problem.problem {
        ProblemType::RateLimited | ProblemType::Unavailable => Some(match answer.retry_in(now) {
            Some(retry_after) => Reading::busy(name, retry_after),
            None => Reading::trouble(name),
        }),
        ProblemType::Internal => Some(Reading::trouble(name)),
        ProblemType::Unauthorized | ProblemType::Forbidden => Some(Reading::not_allowed(name)),
        _ => None,
    }
}

fn keyed_problem(expected: &Expected, answer: &Answer, problem: &Problem, now: Timestamp) -> Result<Reading, Reading> {
    if let Some(reading) = general_problem(answer, problem, now) {
        return Ok(reading);
    }
    if matches!(answer.status, 409 | 410 | 422) {
        key_echo(expected, answer, true)?;
    }
    Ok(match (problem.problem, problem.state) {
        (ProblemType::InProgress, Some(OperationState::NeedsAttention)) => {
            Reading::BankAttention(problem.detail.clone())
        }
        (ProblemType::InProgress, _) => Reading::InProgress(answer.retry_in(now)),
        (ProblemType::KeyExpired, _) => Reading::Expired,
        (ProblemType::OperationCancelled, _) => Reading::Cancelled,
        (other, _) => Reading::refused(other.name(), problem.detail.clone()),
    })
}

fn key_echo(expected: &Expected, answer: &Answer, required: bool) -> Result<(), Reading> {
    match answer.key.as_deref().map(Key::parse) {
        Some(Ok(key)) if key == expected.key => Ok(()),
        None if !required => Ok(()),
        _ => foreign("it does not repeat our key"),
    }
}

/// A 201 or 402, valid and ours.
fn result(expected: &Expected, answer: &Answer, outcome: Outcome) -> Result<Reading, Reading> {
    media_type(answer, "application/json")?;
    // The body repeats the key as `operation`; a header that is there must not say otherwise.
    key_echo(expected, answer, false)?;
    let text = std::str::from_utf8(&answer.body).or_else(|_| foreign("its body is not text"))?;
    Ok(Reading::Final { outcome, result: our_object(expected, text, outcome)? })
}

/// Checks that the object is the result of our operation, and gives it as it is kept: see [`seemly`].
fn our_object(expected: &Expected, text: &str, outcome: Outcome) -> Result<String, Reading> {
    let (id, status, amount, currency, key, payment_id, decline_code) = match expected.kind {
        Kind::Payment => {
            let payment: Payment = parse(text.as_bytes())?;
            if payment.approval_code.is_some() != (outcome == Outcome::Approved) {
                return foreign("its approval code contradicts its status");
            }
            (
                payment.id,
                payment.status,
                payment.amount,
                payment.currency,
                payment.operation,
                None,
                payment.decline_code,
            )
        }
        Kind::Refund => {
            let refund: Refund = parse(text.as_bytes())?;
            (
                refund.id,
                refund.status,
                refund.amount,
                refund.currency,
                refund.operation,
                Some(refund.payment_id),
                refund.decline_code,
            )
        }
    };
    // Members that we don't know are skipped over, however deep or large they are; what is kept is the whole of it, and it must
    // be readable again.
    let whole = parse::<serde_json::Value>(text.as_bytes())?;
    if !is_word(&id) {
        return foreign("its id is no name");
    }
    if key != expected.key {
        return foreign("it is the result of another key");
    }
    if Amount::get(amount) != expected.amount || currency != expected.currency {
        return foreign("it is for another amount or currency");
    }
    if expected.payment_id.is_some() && payment_id != expected.payment_id {
        return foreign("it is for another payment");
    }
    if status != outcome || decline_code.is_some() != (outcome == Outcome::Declined) {
        return foreign("its status contradicts itself");
    }
    Ok(seemly(whole).unwrap_or_else(|| text.to_owned()))
}

/// The object without what it says of the card, or its approval code, where that is none: a receipt shows it, and no more than the last
/// four digits of a card is ever kept. How the payment ended holds all the same: that must not be lost for a word on paper. None where
/// the object is fit to be kept as the bank wrote it.
fn seemly(mut whole: serde_json::Value) -> Option<String> {
    let members = whole.as_object_mut()?;
    let is_card = |card: &serde_json::Value| {
        let text = |member: &str| card.get(member).and_then(serde_json::Value::as_str);
        text("brand").is_some_and(operations::is_short_word) && text("last4").is_some_and(operations::is_last_four)
    };
    let strange = [
        ("card", members.get("card").is_some_and(|card| !is_card(card))),
        (
            "approval_code",
            members.get("approval_code").is_some_and(|code| !code.as_str().is_some_and(operations::is_short_word)),
        ),
    ];
    if strange.iter().all(|(_, is_strange)| !is_strange) {
        return None;
    }
    for (member, _) in strange.iter().filter(|(_, is_strange)| *is_strange) {
        members.remove(*member);
    }
    Some(whole.to_string())
}

/// The bank's answer about a key, its result kept as the bank wrote it.
#[derive(serde::Deserialize)]
struct LookedUp<'a> {
    key: Key,
    state: OperationState,
    kind: Option<Kind>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

fn looked_up(expected: &Expected, answer: &Answer) -> Result<Reading, Reading> {
    media_type(answer, "application/json")?;
    let found: LookedUp<'_> = serde_json::from_slice(&answer.body).or_else(|_| foreign("its body is no operation"))?;
    if found.key != expected.key {
        return foreign("it is about another key");
    }
    // A key that was cancelled before any request came has no kind.
    if found.kind.is_some_and(|kind| kind != expected.kind)
        || (found.kind.is_none() && found.state != OperationState::Cancelled)
    {
        return foreign("it is about another kind of operation");
    }
    let outcome = match found.state {
        OperationState::Processing => return Ok(Reading::InProgress(None)),
        OperationState::Cancelled => return Ok(Reading::Cancelled),
        OperationState::NeedsAttention => {
            return Ok(Reading::BankAttention("the bank's people must look at it".to_owned()));
        }
        OperationState::Approved => Outcome::Approved,
        OperationState::Declined => Outcome::Declined,
    };
    let Some(result) = found.result.map(RawValue::get) else { return foreign("its result is missing") };
    Ok(Reading::Final { outcome, result: our_object(expected, result, outcome)? })
}
