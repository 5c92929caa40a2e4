//! Late declines: payments that were taken offline and then did not pay. The goods are gone, so each is either collected again, by
//! another payment of the same sale, or written off, or its goods come back; and until that is done, somebody is told of it.

mod collecting;
mod ending;
mod figures;
mod listing;
mod rows;
mod waiving;
mod writing_off;

pub use collecting::{CollectAgain, CollectInCash};
pub(crate) use collecting::{begin_collecting, collect_again, collect_in_cash, collected_elsewhere};
pub(crate) use ending::{completed, settled};
pub(crate) use figures::of_span;
pub use figures::{LateFigures, LateTotal};
pub use listing::{LateDeclines, LateQuery};
pub(crate) use listing::{by_last, by_tender, list, lowered_by, of_operations};
pub(crate) use rows::{LateRow, Since, open_of_sale, since};
pub(crate) use waiving::{Shared, Waived, begin as begin_waiving, lowered, of_return as waived_of, share};
pub(crate) use writing_off::write_off;

use crate::{Operation, TillError, audit, audit::Signature, tenders::TenderRow};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// How far a late decline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LateState {
    /// The bank has not said whether it charged: its people, or ours, must look.
    Attention,
    /// Not charged, and owed.
    Open,
    /// Another payment for it is with the bank.
    Collecting,
    /// Nothing is owed any more: it was collected, it had paid after all, or its goods came back.
    Settled,
    /// Given up before the bank's last word, which is awaited.
    WritingOff,
    /// Given up.
    WrittenOff,
}

impl LateState {
    const ALL: [Self; 6] =
        [Self::Attention, Self::Open, Self::Collecting, Self::Settled, Self::WritingOff, Self::WrittenOff];

    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Open => "open",
            Self::Collecting => "collecting",
            Self::Settled => "settled",
            Self::WritingOff => "writing_off",
            Self::WrittenOff => "written_off",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Nothing comes after it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Settled | Self::WrittenOff)
    }
}

/// A payment that was taken offline and did not pay. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LateDecline {
    /// Its place in the order of their coming up.
    pub seq: i64,
    /// The tender that was taken offline: by it, it is collected again or written off.
    pub tender_id: Uuid,
    /// Its sale.
    pub sale_id: Uuid,
    /// The number of that sale.
    pub sale_number: Option<i64>,
    /// The number of that sale's receipt.
    pub receipt_number: Option<i64>,
    /// When the goods were handed over.
    pub taken_at: Timestamp,
    /// When it was known that it does not pay.
    pub declined_at: Option<Timestamp>,
    /// How far it is.
    pub state: LateState,
    /// What is to be collected, or was.
    pub amount: i64,
    /// What of the payment is not, as those goods came back.
    pub returned: i64,
    /// The currency of both.
    pub currency: Currency,
    /// How the customer can be reached.
    pub contact: Option<String>,
    /// The card payment that was begun last for it: the declined one, or the one that collects again.
    pub operation: Operation,
    /// What was taken for it in cash, where it was collected so.
    pub cash: Option<i64>,
    /// When it came to its end.
    pub ended_at: Option<Timestamp>,
    /// Why it was given up.
    pub reason: Option<String>,
    /// Who gave it up.
    pub written_off_by: Option<String>,
}

/// Writes a step into the audit.
fn note(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    before: Option<LateState>,
    after: LateState,
    mut details: serde_json::Value,
) -> Result<(), TillError> {
    details["tender"] = json!(tender.id);
    details["before"] = json!(before);
    details["after"] = json!(after);
    audit::append(tx, signature, "late-decline", Some(tender.sale_id), &details)
}
