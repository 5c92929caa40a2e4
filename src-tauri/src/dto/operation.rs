//! The operations, and the queue that settles them.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{CurrencyAmount, Minor, Seq, all};

/// One thing asked of the bank.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) seq: Seq,
    pub(crate) key: String,
    pub(crate) short_code: String,
    pub(crate) kind: OperationKind,
    pub(crate) state: OperationState,
    pub(crate) amount: Minor,
    pub(crate) currency: String,
    pub(crate) attempts: u32,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    /// When it is tried next.
    pub(crate) due_at: Option<String>,
    /// Before which the bank asked not to be asked.
    pub(crate) not_before: Option<String>,
    /// The goods were handed over before the bank answered.
    pub(crate) accepted_offline: bool,
    /// It is being cancelled: from here on only its cancellation is sent.
    pub(crate) cancel_wished: bool,
    /// Why a person must look, or why it waits.
    pub(crate) reason: Option<String>,
    pub(crate) sale_id: String,
    pub(crate) sale_number: Option<Seq>,
    pub(crate) receipt_number: Option<Seq>,
    /// What the bank was given as the reference.
    pub(crate) reference: Option<String>,
    /// The bank's id of the payment.
    pub(crate) bank_reference: Option<String>,
    pub(crate) approval_code: Option<String>,
    pub(crate) decline_code: Option<String>,
    pub(crate) card_brand: Option<String>,
    pub(crate) last4: Option<String>,
    /// Why it is not final yet: a word such as `no-connection`, `in-progress`, `rate-limited`.
    pub(crate) last_answer: Option<String>,
}

/// What is asked of the bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationKind {
    Payment,
    Refund,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    /// Never sent.
    Saved,
    Sending,
    /// Perhaps sent, with no valid answer.
    Unknown,
    Approved,
    Declined,
    Cancelled,
    NeedsAttention,
}

/// Which operations are asked for, newest first.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OperationQuery {
    pub(crate) state: Option<OperationState>,
    /// Only those older than this one.
    pub(crate) before: Option<Seq>,
    pub(crate) limit: u32,
}

/// The operations found.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationPage {
    pub(crate) operations: Vec<Operation>,
    pub(crate) more: bool,
}

/// One thing that happened to an operation, in words.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimelineEntry {
    pub(crate) at: String,
    pub(crate) attempt: u32,
    pub(crate) event: String,
    pub(crate) detail: String,
}

/// The same with what went over the wire. No header and no body.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attempt {
    pub(crate) seq: Seq,
    /// Which attempt it belongs to; 0 before the first.
    pub(crate) attempt: u32,
    pub(crate) at: String,
    /// What the bank's clock said, to the second.
    pub(crate) bank_at: Option<String>,
    /// What happened: a word such as `saved`, `sent`, `answer`, `resumed`.
    pub(crate) event: String,
    /// Method and path.
    pub(crate) sent: Option<String>,
    /// The HTTP status that came back.
    pub(crate) answer: Option<u16>,
    /// How it was read: a word such as `approved`, `in-progress`, `time-out`.
    pub(crate) reading: Option<String>,
    pub(crate) detail: String,
}

/// The queue in one look.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) unsettled: u32,
    pub(crate) sending: u32,
    pub(crate) waiting: u32,
    /// What is unsettled, for each currency.
    pub(crate) amounts: Vec<CurrencyAmount>,
    pub(crate) oldest_at: Option<String>,
    pub(crate) needs_attention: u32,
    /// Unsettled refunds that wait for a payment which a person must look at.
    pub(crate) blocked: u32,
    /// Cancelled here, of which the bank is still to be told.
    pub(crate) tombstones: u32,
    /// How far what waited during the last outage is settled.
    pub(crate) backlog: Option<Backlog>,
    /// By how many seconds this machine's clock is ahead of the bank's, where that is worth showing.
    pub(crate) clock_gap_s: Option<Seconds>,
    /// Those of `unsettled` that belong to another bank or merchant than the one asked now.
    pub(crate) other_bank: u32,
    /// Why the whole queue stands still.
    pub(crate) paused: Option<String>,
    pub(crate) bank_reachable: Option<bool>,
    /// What was in the way, where the bank was not reachable.
    pub(crate) bank_problem: Option<String>,
    pub(crate) last_contact_at: Option<String>,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) chip: Chip,
}

/// How far the backlog of an outage is settled.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Backlog {
    pub(crate) settled: u32,
    pub(crate) total: u32,
}

/// Seconds; with a minus, behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Seconds(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// What the chip in the top bar shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Chip {
    Ok,
    Busy,
    Waiting,
    Paused,
    Attention,
}

impl From<till::Operation> for Operation {
    fn from(operation: till::Operation) -> Self {
        Self {
            seq: Seq(operation.seq),
            key: operation.key.to_string(),
            short_code: operation.short_code,
            kind: match operation.kind {
                protocol::Kind::Payment => OperationKind::Payment,
                protocol::Kind::Refund => OperationKind::Refund,
            },
            state: operation.state.into(),
            amount: Minor(operation.amount),
            currency: operation.currency.to_string(),
            attempts: operation.attempts,
            created_at: operation.created_at.to_string(),
            updated_at: operation.updated_at.to_string(),
            due_at: operation.due_at.map(|at| at.to_string()),
            not_before: operation.not_before.map(|at| at.to_string()),
            accepted_offline: operation.accepted_offline,
            cancel_wished: operation.cancel_wished,
            reason: operation.reason,
            sale_id: operation.sale_id.to_string(),
            sale_number: operation.sale_number.map(Seq),
            receipt_number: operation.receipt_number.map(Seq),
            reference: operation.reference,
            bank_reference: operation.bank_reference,
            approval_code: operation.approval_code,
            decline_code: operation.decline_code,
            card_brand: operation.card_brand,
            last4: operation.last4,
            last_answer: operation.last_answer,
        }
    }
}

impl From<till::State> for OperationState {
    fn from(state: till::State) -> Self {
        match state {
            till::State::Saved => Self::Saved,
            till::State::Sending => Self::Sending,
            till::State::Unknown => Self::Unknown,
            till::State::Approved => Self::Approved,
            till::State::Declined => Self::Declined,
            till::State::Cancelled => Self::Cancelled,
            till::State::NeedsAttention => Self::NeedsAttention,
        }
    }
}

impl From<OperationState> for till::State {
    fn from(state: OperationState) -> Self {
        match state {
            OperationState::Saved => Self::Saved,
            OperationState::Sending => Self::Sending,
            OperationState::Unknown => Self::Unknown,
            OperationState::Approved => Self::Approved,
            OperationState::Declined => Self::Declined,
            OperationState::Cancelled => Self::Cancelled,
            OperationState::NeedsAttention => Self::NeedsAttention,
        }
    }
}

impl From<OperationQuery> for till::OperationQuery {
    fn from(query: OperationQuery) -> Self {
        let OperationQuery { state, before, limit } = query;
        Self {
            state: state.map(till::State::from),
            before: before.map(|seq| seq.0),
            limit: Some(limit),
            ..Self::default()
        }
    }
}

impl From<till::Operations> for OperationPage {
    fn from(found: till::Operations) -> Self {
        Self { operations: all(found.operations), more: found.more }
    }
}

impl From<till::TimelineEntry> for TimelineEntry {
    fn from(entry: till::TimelineEntry) -> Self {
        Self { at: entry.at.to_string(), attempt: entry.attempt, event: entry.event, detail: entry.detail }
    }
}

impl From<till::Attempt> for Attempt {
    fn from(attempt: till::Attempt) -> Self {
        Self {
            seq: Seq(attempt.seq),
            attempt: attempt.attempt,
            at: attempt.at.to_string(),
            bank_at: attempt.bank_at.map(|at| at.to_string()),
            event: attempt.event,
            sent: attempt.sent,
            answer: attempt.answer,
            reading: attempt.reading,
            detail: attempt.detail,
        }
    }
}

impl From<till::Summary> for Summary {
    fn from(summary: till::Summary) -> Self {
        Self {
            unsettled: summary.unsettled,
            sending: summary.sending,
            waiting: summary.waiting,
            amounts: all(summary.amounts),
            oldest_at: summary.oldest_at.map(|at| at.to_string()),
            needs_attention: summary.needs_attention,
            blocked: summary.blocked,
            tombstones: summary.tombstones,
            backlog: summary.backlog.map(|till::Backlog { settled, total }| Backlog { settled, total }),
            clock_gap_s: summary.clock_gap_s.map(Seconds),
            other_bank: summary.other_bank,
            paused: summary.paused,
            bank_reachable: summary.bank_reachable,
            bank_problem: summary.bank_problem,
            last_contact_at: summary.last_contact_at.map(|at| at.to_string()),
            next_attempt_at: summary.next_attempt_at.map(|at| at.to_string()),
            chip: match summary.chip {
                till::Chip::Ok => Chip::Ok,
                till::Chip::Busy => Chip::Busy,
                till::Chip::Waiting => Chip::Waiting,
                till::Chip::Paused => Chip::Paused,
                till::Chip::Attention => Chip::Attention,
            },
        }
    }
}
