//! What the store holds of one key.

use crate::meaning::Meaning;
use bytes::Bytes;
use jiff::Timestamp;
use std::{fmt, sync::Arc};

/// The stored response: exactly what every repeat gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body.
    pub content_type: String,
    /// Where what was made can be read.
    pub location: Option<String>,
    /// The bytes.
    pub body: Bytes,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Claimed; how it ends is not known.
    Processing,
    /// Final, with an outcome in the work's own word.
    Settled {
        /// How it ended.
        outcome: String,
    },
    /// Final: it never has an effect, or the effect was taken back.
    Cancelled,
    /// Stopped until a person has looked.
    NeedsAttention {
        /// Why.
        reason: String,
    },
}

/// Who may write an operation: one run of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The how-manieth process on this store.
    pub epoch: u32,
    /// The how-manieth run in it.
    pub run: u32,
}

impl Owner {
    pub(crate) fn to_column(self) -> i64 {
        (i64::from(self.epoch) << 32) | i64::from(self.run)
    }

    pub(crate) fn from_column(column: i64) -> Self {
        let part = |bits: i64| u32::try_from(bits & i64::from(u32::MAX)).unwrap_or(u32::MAX);
        Self { epoch: part(column >> 32), run: part(column) }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.run)
    }
}

/// What the store holds of one key.
#[derive(Debug, Clone)]
pub struct Record {
    /// The engine's number for the operation.
    pub id: i64,
    /// Whose key it is.
    pub scope: Arc<str>,
    /// The key.
    pub key: [u8; 16],
    /// How far it is.
    pub state: State,
    /// What the work is; none where the key was cancelled before any request came.
    pub kind: Option<String>,
    /// The work's own name for what was made.
    pub subject: Option<String>,
    /// Whether somebody wants it cancelled.
    pub cancel_wanted: bool,
    /// Who runs it, or ran it last.
    pub owner: Owner,
    /// When the key was claimed.
    pub created_at: Timestamp,
    /// When it became final.
    pub completed_at: Option<Timestamp>,
    /// The stored response; none before there is one and after it was purged.
    pub response: Option<Response>,
    /// The meaning of the request with the version of its making; none on a tombstone.
    pub(crate) meaning: Option<(i64, Meaning)>,
    /// What a run needs; none once it is final.
    pub(crate) payload: Option<Arc<[u8]>>,
}

impl Record {
    /// Whether it never changes any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self.state, State::Settled { .. } | State::Cancelled)
    }
}
