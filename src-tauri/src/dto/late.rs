//! Payments that were taken offline and then did not pay.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Minor, Operation, Seq, all};

/// A payment that was taken offline and did not pay.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LateDecline {
    pub(crate) seq: Seq,
    /// The tender that was taken offline: by it, it is collected again or written off.
    pub(crate) tender_id: String,
    pub(crate) sale_id: String,
    pub(crate) sale_number: Option<Seq>,
    pub(crate) receipt_number: Option<Seq>,
    /// When the goods were handed over.
    pub(crate) taken_at: String,
    /// When it was known that it does not pay.
    pub(crate) declined_at: Option<String>,
    pub(crate) state: LateState,
    /// What is to be collected, or was.
    pub(crate) amount: Minor,
    /// What of the payment is not, as those goods came back before.
    pub(crate) returned: Minor,
    pub(crate) currency: String,
    /// How the customer can be reached.
    pub(crate) contact: Option<String>,
    /// The card payment that was begun last for it: the declined one, or the one that collects again.
    pub(crate) operation: Operation,
    /// What was taken for it in cash.
    pub(crate) cash: Option<Minor>,
    /// When it came to its end.
    pub(crate) ended_at: Option<String>,
    /// Why it was given up.
    pub(crate) reason: Option<String>,
    pub(crate) written_off_by: Option<String>,
}

/// How far a late decline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LateState {
    /// The bank has not said whether it charged: somebody must look.
    Attention,
    /// Not charged, and nobody has done anything yet.
    Open,
    /// Another payment for it is with the bank.
    Collecting,
    /// Nothing is owed any more.
    Settled,
    /// Given up before the bank's last word, which is awaited.
    WritingOff,
    WrittenOff,
}

/// Which late declines are asked for, newest first.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LateQuery {
    /// Also those that are settled or written off.
    pub(crate) with_ended: bool,
    /// Only those that came up before this one.
    pub(crate) before: Option<Seq>,
    /// At most 200.
    pub(crate) limit: u32,
}

/// The late declines found.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LatePage {
    pub(crate) late: Vec<LateDecline>,
    pub(crate) more: bool,
}

/// A card that is to pay what was declined late. No `Debug`: the card's token is for the bank alone.
#[derive(Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CollectAgain {
    pub(crate) tender_id: String,
    /// The tender that was taken offline.
    pub(crate) late_tender_id: String,
    /// The token of a card.
    pub(crate) card: String,
}

/// Cash for what was declined late: all that is owed, or more.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CollectInCash {
    pub(crate) tender_id: String,
    /// The tender that was taken offline.
    pub(crate) late_tender_id: String,
    pub(crate) tendered: Minor,
}

impl From<till::LateDecline> for LateDecline {
    fn from(late: till::LateDecline) -> Self {
        Self {
            seq: Seq(late.seq),
            tender_id: late.tender_id.to_string(),
            sale_id: late.sale_id.to_string(),
            sale_number: late.sale_number.map(Seq),
            receipt_number: late.receipt_number.map(Seq),
            taken_at: late.taken_at.to_string(),
            declined_at: late.declined_at.map(|at| at.to_string()),
            state: late.state.into(),
            amount: Minor(late.amount),
            returned: Minor(late.returned),
            currency: late.currency.to_string(),
            contact: late.contact,
            operation: late.operation.into(),
            cash: late.cash.map(Minor),
            ended_at: late.ended_at.map(|at| at.to_string()),
            reason: late.reason,
            written_off_by: late.written_off_by,
        }
    }
}

impl From<till::LateState> for LateState {
    fn from(state: till::LateState) -> Self {
        match state {
            till::LateState::Attention => Self::Attention,
            till::LateState::Open => Self::Open,
            till::LateState::Collecting => Self::Collecting,
            till::LateState::Settled => Self::Settled,
            till::LateState::WritingOff => Self::WritingOff,
            till::LateState::WrittenOff => Self::WrittenOff,
        }
    }
}

impl From<LateQuery> for till::LateQuery {
    fn from(query: LateQuery) -> Self {
        let LateQuery { with_ended, before, limit } = query;
        Self { with_ended, before: before.map(|seq| seq.0), limit: Some(limit) }
    }
}

impl From<till::LateDeclines> for LatePage {
    fn from(found: till::LateDeclines) -> Self {
        Self { late: all(found.late), more: found.more }
    }
}
