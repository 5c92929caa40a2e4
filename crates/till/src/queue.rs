//! The queue as the cashier sees it: one summary, one chip, and the events that say when to look again.

use crate::{LateDecline, Operation, TillError, restore};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::Connection;
use serde::Serialize;
use uuid::Uuid;

/// Clocks that are further apart are shown to be, in seconds.
const CLOCK_GAP_SHOWN_S: i64 = 120;

/// Why the queue of a restored file waits: nothing is sent before the bank's payments were matched.
pub(crate) const RESTORED: &str = "restored";

/// The queue at one moment. It counts what is unsettled, not whether the link is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Operations without a final result.
    pub unsettled: u32,
    /// Of them, with the bank at this moment or about to be; none where nobody asks it.
    pub sending: u32,
    /// Of them, waiting to be sent or asked about.
    pub waiting: u32,
    /// What is unsettled, per currency.
    pub amounts: Vec<AmountOf>,
    /// When the oldest unsettled one was clicked.
    pub oldest_at: Option<Timestamp>,
    /// Operations a person must look at.
    pub needs_attention: u32,
    /// Unsettled refunds that wait for a payment which a person must look at.
    pub blocked: u32,
    /// Operations cancelled here, of which the bank is still to be told.
    pub tombstones: u32,
    /// How far what waited during the last outage is settled; none where nothing of it is left.
    pub backlog: Option<Backlog>,
    /// By how many seconds this machine's clock is ahead of the bank's, behind with a minus, where they are over two minutes
    /// apart.
    pub clock_gap_s: Option<i64>,
    /// Unsettled operations that belong to another bank or merchant than the one asked now.
    pub other_bank: u32,
    /// Why the whole queue waits, where it does.
    pub paused: Option<String>,
    /// Whether the bank answered last time; none before it was asked.
    pub bank_reachable: Option<bool>,
    /// What was in the way, where it did not.
    pub bank_problem: Option<String>,
    /// When the bank last answered.
    pub last_contact_at: Option<Timestamp>,
    /// When the next attempt is due; none where nobody makes one.
    pub next_attempt_at: Option<Timestamp>,
    /// All of it in one word.
    pub chip: Chip,
}

/// How far the backlog of an outage is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Backlog {
    /// Operations of it that are settled, or need attention.
    pub settled: u32,
    /// Operations that waited when the outage ended.
    pub total: u32,
}

/// An amount of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AmountOf {
    /// The currency.
    pub currency: Currency,
    /// In minor units.
    pub amount: i64,
}

/// The queue in one word, the most pressing first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chip {
    /// A person must look at an operation.
    Attention,
    /// The bank does not take this till's word; nothing is sent.
    Paused,
    /// Something waits for the bank.
    Waiting,
    /// Something is with the bank.
    Busy,
    /// All settled.
    Ok,
}

impl Chip {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Busy => "busy",
            Self::Ok => "ok",
        }
    }
}

/// What happened, for a listener to show. It may come late or more than once; what it carries was true when it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An operation changed.
    OperationChanged(Box<Operation>),
    /// The queue changed.
    SummaryChanged(Summary),
    /// A payment that was taken offline did not pay, or what became of it since changed.
    LateDecline(Box<LateDecline>),
    /// A sale changed.
    SaleChanged {
        /// Its id.
        sale_id: Uuid,
    },
    /// Somebody logged in or locked the till, or people or their rights changed: who stands at the till, and what that person may do,
    /// may be another.
    SessionChanged,
    /// Articles, categories or the shop's settings changed.
    CatalogueChanged,
    /// A shift was opened or closed, or cash was moved or counted in its drawer, beside the sales.
    ShiftChanged,
}

/// Who settles what is in the file, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settles {
    /// A task of this till, or perhaps of another process whose folder this one only reads.
    Somebody,
    /// The folder is this till's own, and it has no task: what the file says of a call that runs, or is next, is of an earlier one.
    Nobody,
}

/// The queue as it stands in the file.
pub(crate) fn summary(conn: &Connection, now: Timestamp, settles: Settles) -> Result<Summary, TillError> {
    let mut found = outbox::summary(conn, now)?;
    if restore::waits(conn)? {
        found.paused = Some(RESTORED.to_owned());
    }
    Ok(show(match settles {
        Settles::Somebody => found,
        Settles::Nobody => outbox::Summary { sending: 0, waiting: found.unsettled, next_attempt_at: None, ..found },
    }))
}

pub(crate) fn show(summary: outbox::Summary) -> Summary {
    let chip = if summary.needs_attention > 0 {
        Chip::Attention
    } else if summary.paused.is_some() {
        Chip::Paused
    } else if summary.waiting > 0 {
        Chip::Waiting
    } else if summary.sending > 0 {
        Chip::Busy
    } else {
        Chip::Ok
    };
    Summary {
        unsettled: summary.unsettled,
        sending: summary.sending,
        waiting: summary.waiting,
        amounts: summary.amounts.into_iter().map(|(currency, amount)| AmountOf { currency, amount }).collect(),
        oldest_at: summary.oldest_at,
        needs_attention: summary.needs_attention,
        blocked: summary.blocked,
        tombstones: summary.tombstones,
        backlog: summary.backlog.map(|outbox::Backlog { settled, total }| Backlog { settled, total }),
        clock_gap_s: summary.clock_gap_s.filter(|gap| gap.abs() > CLOCK_GAP_SHOWN_S),
        other_bank: summary.other_bank,
        paused: summary.paused,
        bank_reachable: summary.bank_reachable,
        bank_problem: summary.bank_problem,
        last_contact_at: summary.last_contact_at,
        next_attempt_at: summary.next_attempt_at,
        chip,
    }
}
