//! What the proxy does with one request.

use std::time::Duration;

use super::{door::Door, wire::Message};

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Closed in good order.
    Fin,
    /// Reset.
    Reset,
}

/// Which of two answers is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    First,
    Second,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The bank.
    Bank,
    /// The bank, with the same request on two connections, the second as soon as the first is written.
    BankTwice(Pick),
    /// Nobody: the request is read, and stays here.
    Nobody,
    /// Nobody: the request is not even read.
    NobodyUnread,
}

/// What the answer is made of.
pub(crate) enum Make {
    /// The bank's answer, byte for byte.
    AsItIs,
    /// Something else.
    Other(Box<dyn FnOnce(Message) -> Message + Send>),
}

/// How the answer goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Give {
    Whole,
    /// Its beginning, and then the end.
    Cut(At, End),
    /// Its beginning, and then nothing for as long as the other side waits.
    Silence(At),
    /// One byte each time that has passed.
    Trickle(Duration),
    /// Whole, and then its last bytes again and again, up to that many in all and for as long as the other side reads.
    Flood {
        last: usize,
        up_to: usize,
    },
}

/// A place in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// So many bytes after its beginning.
    Start(usize),
    /// So many bytes after the beginning of its body.
    Body(usize),
    /// So many bytes before its end.
    End(usize),
}

impl At {
    /// The place in that answer, if it has one.
    pub(super) fn of(self, answer: &Message) -> Option<usize> {
        let at = match self {
            Self::Start(bytes) => Some(bytes),
            Self::Body(bytes) => Some(answer.head_bytes + bytes),
            Self::End(bytes) => answer.bytes.len().checked_sub(bytes),
        };
        at.filter(|at| *at <= answer.bytes.len())
    }
}

/// The plan for one request. Without a name it is no fault, and is not counted.
pub(crate) struct Plan {
    pub(crate) name: Option<String>,
    /// Set before anything else is done.
    pub(crate) door: Option<Door>,
    pub(crate) wait_before: Duration,
    pub(crate) ask: Ask,
    pub(crate) wait_after: Duration,
    pub(crate) make: Make,
    pub(crate) give: Give,
}

impl Plan {
    /// Nothing is done to it.
    pub(crate) fn pass() -> Self {
        Self {
            name: None,
            door: None,
            wait_before: Duration::ZERO,
            ask: Ask::Bank,
            wait_after: Duration::ZERO,
            make: Make::AsItIs,
            give: Give::Whole,
        }
    }

    /// A fault of that name, which is nothing yet but its name.
    pub(crate) fn fault(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::pass() }
    }

    pub(crate) fn asking(self, ask: Ask) -> Self {
        Self { ask, ..self }
    }

    pub(crate) fn giving(self, give: Give) -> Self {
        Self { give, ..self }
    }

    pub(crate) fn waiting_before(self, wait_before: Duration) -> Self {
        Self { wait_before, ..self }
    }

    pub(crate) fn waiting_after(self, wait_after: Duration) -> Self {
        Self { wait_after, ..self }
    }

    /// Changes the door first: what comes after this request finds it so.
    pub(crate) fn with_door(self, door: Door) -> Self {
        Self { door: Some(door), ..self }
    }

    /// Changes the bank's answer.
    pub(crate) fn making(self, make: impl FnOnce(Message) -> Message + Send + 'static) -> Self {
        Self { make: Make::Other(Box::new(make)), ..self }
    }

    /// The bank is not asked, and these bytes are the answer; the connection is closed after them.
    pub(crate) fn instead(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::fault(name)
            .asking(Ask::Nobody)
            .making(move |_| Message { head_bytes: bytes.len(), bytes })
            .giving(Give::Cut(At::End(0), End::Fin))
    }
}
