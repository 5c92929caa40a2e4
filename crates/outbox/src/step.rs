//! What decisions are about: rows, events in, effects out.

use jiff::{SignedDuration, Timestamp};
use protocol::Key;
use uuid::Uuid;

use crate::answer::Reading;
use crate::contract::Promise;
use crate::outcome::Change;
use crate::state::{Ask, Next, State};

/// What of an operation's row a decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its key.
    pub key: Key,
    /// One in flight in each.
    pub lane: String,
    /// Its state before the call. A final one is only to be told to the bank as cancelled.
    pub state: State,
    /// What the row asks for.
    pub ask: Next,
    /// Failures in a row.
    pub failures: u32,
    /// Panics in its handling, ever.
    pub panics: u32,
    /// Deaths of the process in a row while it was in flight.
    pub deaths: u32,
    /// When it was first sent.
    pub first_sent_at: Option<Timestamp>,
}

/// Which bank answers, and as whom it knows us.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BankIdentity {
    /// The bank's own id.
    pub bank_id: Uuid,
    /// Whom our secret names. With a control character in it, or one that can't be seen, it is no introduction.
    pub merchant: String,
}

/// Why somebody thinks that there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// An operation was saved.
    NewOperation,
    /// "Check now", "Retry now".
    CheckNow,
    /// The network changed: a hint, never a permission.
    NetworkChanged,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Time passed.
    Tick,
    /// Somebody woke us.
    Wake(Wake),
    /// Another bank, or another secret. The old one's `Retry-After` holds only where the address is the same.
    BankChanged {
        /// Whether only the secret changed.
        same_address: bool,
    },
    /// The wall clock parted from the monotonic one: a jump, or a suspend.
    ClockJumped {
        /// By how much the wall clock is ahead of where it should be.
        by: SignedDuration,
    },
    /// [`Effect::Scan`] found these, oldest first, and when the next one is due.
    Found {
        /// What is due.
        rows: Vec<Row>,
        /// When the next is.
        next_due_at: Option<Timestamp>,
        /// Whether there are open ones that belong to another bank; none where that was not asked for.
        other_bank: Option<bool>,
    },
    /// The file could not be scanned.
    ScanFailed,
    /// [`Effect::Begin`] is durable.
    Begun(Key),
    /// The row was not as expected any more; nothing was written.
    NotBegun(Key),
    /// Nothing could be written.
    BeginFailed(Key),
    /// [`Effect::Call`] was not made after all: the row of one that stood ready is not as it was left, or can't be read.
    NotCalled(Key),
    /// [`Effect::Call`] ended.
    Answered(Key, Reading),
    /// The handling of the operation panicked.
    Panicked(Key),
    /// [`Effect::Save`] is durable.
    Saved(Key),
    /// Nothing could be written, or nobody knows.
    SaveFailed(Key),
    /// [`Effect::Introduce`] ended.
    Introduced(Result<Promise, Reading>),
    /// An answer of the bank's came, and its clock says so.
    BankTime(Timestamp),
    /// [`Effect::MakeDue`] is durable.
    MadeDue,
    /// It could not be written. What of it is to be done again.
    MakeDueFailed(MakeDue),
    /// [`Effect::Record`] is durable.
    Recorded,
    /// It could not be written.
    RecordFailed,
    /// The program ends.
    Stop,
}

/// Which rows become due at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are not final.
    All,
    /// Those that waited for the transport: an outage is over.
    Transport,
}

/// Rows to make due at once, and how far the clock has moved under their `not_before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MakeDue {
    /// Which rows.
    pub which: Which,
    /// How far to move every row's `not_before`: what is left of it is left, whatever the clock says. Back, also the time of
    /// its first sending.
    pub shift: SignedDuration,
    /// By how much longer ago than our clock says everything was first sent. Never negative.
    pub aged: SignedDuration,
}

/// What the driver does. Each is answered by an [`Event`], but for [`Effect::Abandon`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Scan the file for rows of that bank that are due, oldest first.
    Scan {
        /// The bank that is asked now.
        bank: BankIdentity,
        /// At most so many.
        limit: usize,
    },
    /// Make durable that a call is about to be made.
    Begin {
        /// The row as it was found.
        row: Row,
        /// What the call asks.
        ask: Ask,
        /// The bank that the operation is bound to from now on, if it was not yet.
        bank: BankIdentity,
    },
    /// Make the call.
    Call {
        /// Whose.
        key: Key,
        /// What it asks.
        ask: Ask,
        /// Whether it was counted ahead and has stood ready since. Then the file is read once more: a request that is wished cancelled
        /// meanwhile is not made, nor anything where the file can't be read.
        stood_ready: bool,
    },
    /// Break off the call.
    Abandon(Key),
    /// Make a change durable, and then tell of it.
    Save {
        /// Whose.
        key: Key,
        /// The state that the row must have.
        expected: State,
        /// Whether its beginning is durable.
        begun: bool,
        /// What the row becomes.
        change: Box<Change>,
    },
    /// Ask the bank who it is.
    Introduce,
    /// Make rows due at once.
    MakeDue(MakeDue),
    /// Keep what is known of the bank, and tell of it.
    Record(Box<Record>),
}

/// What is kept of the bank, for the next start and for whoever looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The bank that answers.
    pub bank: Option<BankIdentity>,
    /// The queue's `Retry-After`.
    pub hold_until: Option<Timestamp>,
    /// Why nothing is sent.
    pub paused: Option<String>,
    /// Whether the bank gives valid answers.
    pub reachable: Option<bool>,
    /// What is in the way.
    pub why: Option<String>,
    /// When the next probe is due.
    pub probe_at: Option<Timestamp>,
    /// When the bank last said who it is.
    pub introduced_at: Option<Timestamp>,
    /// By how much our clock is ahead of the bank's, in seconds.
    pub clock_gap_s: Option<i64>,
}
