//! The words for how far an operation is.

use protocol::Outcome;
use serde::{Deserialize, Serialize};

/// How far an operation is, on this side. What the outbox does in each, what you may do and what never happens is on the
/// [crate's page](crate#what-an-operation-is-in-each-state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Durable, and no byte of it ever left.
    Saved,
    /// A call is running, or the bank said that it is at it.
    Sending,
    /// Perhaps sent, and no valid answer that ends it: nobody may call it failed.
    Unknown,
    /// Final: the bank did it. The money moved; the message was taken.
    Approved,
    /// Final: the bank refused it for good. No money moved.
    Declined,
    /// Final: never sent, or the bank confirmed that this key never charges.
    Cancelled,
    /// A person must look. Never sent again by itself, never dropped.
    NeedsAttention,
}

impl State {
    /// Every state.
    pub const ALL: [State; 7] = [
        State::Saved,
        State::Sending,
        State::Unknown,
        State::Approved,
        State::Declined,
        State::Cancelled,
        State::NeedsAttention,
    ];

    /// The word in the file, on the command line and for the window.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Saved => "saved",
            State::Sending => "sending",
            State::Unknown => "unknown",
            State::Approved => "approved",
            State::Declined => "declined",
            State::Cancelled => "cancelled",
            State::NeedsAttention => "needs_attention",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it never changes any more: approved, declined, cancelled.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, State::Approved | State::Declined | State::Cancelled)
    }

    /// Whether the outbox still brings it to its end by itself: saved, sending, unknown.
    #[must_use]
    pub const fn is_unsettled(self) -> bool {
        matches!(self, State::Saved | State::Sending | State::Unknown)
    }
}

impl From<Outcome> for State {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Approved => State::Approved,
            Outcome::Declined => State::Declined,
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the next call for an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Its request, byte for byte, under its key.
    Send,
    /// What became of its key: `GET`, which changes nothing.
    LookUp,
    /// Its request again, the same as [`Ask::Send`], after a look-up said that the key is not known.
    Resend,
    /// That its key shall never charge: somebody wished it cancelled, or it was cancelled here before it was sent.
    Cancel,
}

impl Ask {
    /// Every question.
    pub const ALL: [Ask; 4] = [Ask::Send, Ask::LookUp, Ask::Resend, Ask::Cancel];

    /// What is asked where this question brought no end.
    pub(crate) const fn again(self) -> Ask {
        match self {
            // A look permits one sending.
            Ask::Send | Ask::Resend => Ask::Send,
            Ask::LookUp => Ask::LookUp,
            Ask::Cancel => Ask::Cancel,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Ask::Send => "send",
            Ask::LookUp => "look_up",
            Ask::Resend => "resend",
            Ask::Cancel => "cancel",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Ask> {
        Ask::ALL.into_iter().find(|ask| ask.as_str() == word)
    }

    /// Whether the operation's own request goes out.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Ask::Send | Ask::Resend)
    }
}
