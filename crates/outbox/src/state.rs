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
    /// An attempt is counted, and its call runs or begins within 0.2 s; or the bank said that it is at it.
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

/// What a call asks of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// That it does what the operation is for: its request, byte for byte, under its key.
    Send,
    /// What became of its key. It changes nothing there.
    LookUp,
    /// That its key shall never charge: somebody wished it cancelled, or it was cancelled here before it was sent.
    Cancel,
}

impl Ask {
    /// Every question.
    pub const ALL: [Ask; 3] = [Ask::Send, Ask::LookUp, Ask::Cancel];

    /// Whether the operation's own request goes out.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Ask::Send)
    }
}

/// What is asked for an operation next, as its row has it. What the next call really asks depends on its state and its age too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// [`Ask::Send`].
    Send,
    /// [`Ask::LookUp`].
    LookUp,
    /// [`Ask::Send`], though it may be old: a look-up said just now that the key is not known. It permits one sending.
    Resend,
    /// [`Ask::Cancel`].
    Cancel,
}

impl Next {
    /// Everything that may come next.
    pub const ALL: [Next; 4] = [Next::Send, Next::LookUp, Next::Resend, Next::Cancel];

    /// The word in the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Next::Send => "send",
            Next::LookUp => "look_up",
            Next::Resend => "resend",
            Next::Cancel => "cancel",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Next> {
        Next::ALL.into_iter().find(|next| next.as_str() == word)
    }
}

/// The same again, where a question brought no end.
impl From<Ask> for Next {
    fn from(ask: Ask) -> Next {
        match ask {
            Ask::Send => Next::Send,
            Ask::LookUp => Next::LookUp,
            Ask::Cancel => Next::Cancel,
        }
    }
}
