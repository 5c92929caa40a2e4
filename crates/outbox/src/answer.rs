//! An answer of the other side, or its absence, and how a [`Contract`](crate::Contract) reads it.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use protocol::Outcome;
use serde::de::DeserializeOwned;

/// An HTTP answer, as far as it matters here: no other header is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Retry-After`, as it stood there. See [`Answer::retry_in`].
    pub retry_after: Option<String>,
    /// `Idempotency-Key`, as it stood there: the other side's echo, where it gives one.
    pub key: Option<String>,
    /// `Date`, as it stood there. See [`date`].
    pub date: Option<String>,
    /// The whole body, up to 64 KiB of it by [`HttpTransport`](crate::HttpTransport); a longer one is no answer.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body, where its content type is `application/json` and it parses as a `T`.
    ///
    /// # Errors
    /// [`Reading::Foreign`] with what was wrong, and nothing of the body.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Reading> {
        media_type(self, "application/json")?;
        parse(&self.body)
    }

    /// The body as text, with what is no UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// `Retry-After` as a duration: seconds, or a date (RFC 9110, 10.2.3) against our clock, never negative. None where there is
    /// none, or one that is neither.
    #[must_use]
    pub fn retry_in(&self, now: Timestamp) -> Option<SignedDuration> {
        retry_after(self, now)
    }
}

/// Why there is no answer. What a [`Transport`](crate::Transport) must be sure of is `NoConnection`: by it alone an operation
/// stays `saved`, which is to say never sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// No connection was made, so no byte of the request can have left.
    NoConnection(String),
    /// It was perhaps sent.
    NoAnswer {
        /// How it was lost.
        how: Lost,
        /// More, for people.
        detail: String,
    },
    /// The call itself can't be sent, now or ever: its method, its path or a header is none. No byte of it left.
    Unsendable(String),
}

/// The name of a problem, for the log and for [`Operation::reason`](crate::Operation::reason): a word, short and in lower case. The
/// contract's own, or the other side's where it only learns it from the answer.
pub type Name = Cow<'static, str>;

/// How the answer to a call that was perhaps sent was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// It took too long.
    TimeOut,
    /// The connection ended before an answer began.
    Reset,
    /// The answer began and never ended.
    Torn,
    /// The answer is longer than any that is read.
    TooLarge,
    /// This program failed while it asked.
    Fault,
}

impl Lost {
    /// The word in the file and for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Lost::TimeOut => "time-out",
            Lost::Reset => "reset",
            Lost::Torn => "torn",
            Lost::TooLarge => "too-large",
            Lost::Fault => "fault",
        }
    }
}

/// How an answer, or its absence, is read, and so what becomes of the operation: see the
/// [crate's page](crate#what-an-answer-does), and the page of [`decide`](crate::decide) for each state with each of these.
///
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The bank's word how it ended, with its own bytes. It can't be taken back.
    Final {
        /// Approved or declined: done, or refused for good.
        outcome: Outcome,
        /// What [`Operation::result`](crate::Operation::result) is to be: the payment or refund, as the bank wrote it. JSON; what is
        /// none is kept as a JSON string. Of an approved payment it must be an object with its `id`, by which refunds name it.
        result: String,
    },
    /// The bank's word that this key never charges, nor ever will.
    Cancelled,
    /// The bank's people must look at it. With what the bank says about it.
    BankAttention(String),
    /// The bank is at it. With its `Retry-After`, for this operation alone; without one, the shortest that is believed (1 s).
    InProgress(Option<SignedDuration>),
    /// The bank asks everybody to come later: the whole queue is held.
    Busy {
        /// How much later, as it said. Believed from 1 s to 15 min ([`Settings`](crate::Settings)).
        retry_after: SignedDuration,
        /// The problem's name.
        problem: Name,
    },
    /// The bank failed, and said so: this operation is asked again after its back-off, and nobody else waits, unless the bank fails at
    /// one after the other and completes none: then it is asked for one at a time. With the problem's name.
    Trouble(Name),
    /// The stored response is gone; the claim on the key is not. It is looked up.
    Expired,
    /// A lookup's answer that the bank never saw the key, or forgot it. Sent again where the bank forgets none
    /// ([`Promise::permanent`](crate::Promise::permanent)), else left to a person.
    UnknownKey,
    /// The bank refuses the request, and the same request will be refused again, but that is no end: a person must look. Where it
    /// is one, that is `Final`, declined.
    Refused {
        /// The problem's name.
        problem: Name,
        /// What the bank says about it.
        detail: String,
    },
    /// The bank refuses our secret, so nothing more is sent until it takes it. With the problem's name.
    NotAllowed(Name),
    /// An answer that isn't surely the bank's own and about this operation: as good as none. With what was wrong, and nothing of
    /// the body.
    Foreign(String),
    /// No connection was made. With what the transport says.
    NoConnection(String),
    /// Perhaps sent, and no answer.
    NoAnswer {
        /// How it was lost.
        how: Lost,
        /// More, for people.
        detail: String,
    },
}

impl Reading {
    /// The name of what a contract has no call for.
    pub(crate) const NOT_OFFERED: Name = Cow::Borrowed("not-offered");

    /// The name of what can't be sent at all.
    const UNSENDABLE: Name = Cow::Borrowed("unsendable");

    /// The contract has no such call: a person must do it.
    pub(crate) fn not_offered(detail: String) -> Reading {
        Reading::Refused { problem: Reading::NOT_OFFERED, detail }
    }

    /// Done, with what the other side wrote about it.
    #[must_use]
    pub fn approved(result: impl Into<String>) -> Reading {
        Reading::Final { outcome: Outcome::Approved, result: result.into() }
    }

    /// Refused for good, with what the other side wrote about it.
    #[must_use]
    pub fn declined(result: impl Into<String>) -> Reading {
        Reading::Final { outcome: Outcome::Declined, result: result.into() }
    }

    /// Refused as it is, and no end: a person must look. With the problem's name and what the other side says about it.
    #[must_use]
    pub fn refused(problem: impl Into<Name>, detail: impl Into<String>) -> Reading {
        Reading::Refused { problem: problem.into(), detail: detail.into() }
    }

    /// All are asked to come later. With the problem's name.
    #[must_use]
    pub fn busy(problem: impl Into<Name>, retry_after: SignedDuration) -> Reading {
        Reading::Busy { retry_after, problem: problem.into() }
    }

    /// The other side failed, and says so. With the problem's name.
    #[must_use]
    pub fn trouble(problem: impl Into<Name>) -> Reading {
        Reading::Trouble(problem.into())
    }

    /// Our secret is refused. With the problem's name.
    #[must_use]
    pub fn not_allowed(problem: impl Into<Name>) -> Reading {
        Reading::NotAllowed(problem.into())
    }

    /// An answer that surely isn't the other side's own about this operation, or may not be.
    #[must_use]
    pub fn foreign(why: impl Into<String>) -> Reading {
        Reading::Foreign(why.into())
    }

    /// The same, with a result that can be read from the file again: what is no JSON is kept as a JSON string. An approved payment that
    /// no refund could name is no answer.
    pub(crate) fn readable_again(self, kind: crate::Kind) -> Reading {
        match self {
            Reading::Final { outcome: Outcome::Approved, result }
                if kind == crate::Kind::Payment && !has_id(&result) =>
            {
                Reading::Foreign("its result is no object with an id, by which a refund could name it".to_owned())
            }
            Reading::Final { outcome, result } if serde_json::from_str::<serde_json::Value>(&result).is_err() => {
                Reading::Final { outcome, result: serde_json::Value::String(result).to_string() }
            }
            reading => reading,
        }
    }

    /// The same, with every text in it fit for file, log and screen: what the other side wrote, and what its contract and the transport
    /// say about it, whoever they are. Here and nowhere else, so that no contract needs to think of it.
    pub(crate) fn fit_to_show(self) -> Reading {
        let name = |name: Name| {
            if is_readable(&name) && name.len() <= DETAIL_CHARS_MAX { name } else { Cow::Owned(readable(&name)) }
        };
        match self {
            Reading::BankAttention(detail) => Reading::BankAttention(readable(&detail)),
            Reading::Foreign(detail) => Reading::Foreign(readable(&detail)),
            Reading::NoConnection(detail) => Reading::NoConnection(readable(&detail)),
            Reading::NoAnswer { how, detail } => Reading::NoAnswer { how, detail: readable(&detail) },
            Reading::Refused { problem, detail } => {
                Reading::Refused { problem: name(problem), detail: readable(&detail) }
            }
            Reading::Busy { retry_after, problem } => Reading::Busy { retry_after, problem: name(problem) },
            Reading::Trouble(problem) => Reading::Trouble(name(problem)),
            Reading::NotAllowed(problem) => Reading::NotAllowed(name(problem)),
            reading @ (Reading::Final { .. }
            | Reading::Cancelled
            | Reading::InProgress(_)
            | Reading::Expired
            | Reading::UnknownKey) => reading,
        }
    }

    /// The word for it in the log ([`Attempt::reading`](crate::Attempt::reading)) and on the operation
    /// ([`Operation::last_answer`](crate::Operation::last_answer)).
    #[must_use]
    pub fn name(&self) -> Name {
        let name = match self {
            Reading::Busy { problem: name, .. }
            | Reading::Refused { problem: name, .. }
            | Reading::Trouble(name)
            | Reading::NotAllowed(name) => return name.clone(),
            Reading::Final { outcome: Outcome::Approved, .. } => "approved",
            Reading::Final { outcome: Outcome::Declined, .. } => "declined",
            Reading::Cancelled => "cancelled",
            Reading::BankAttention(_) => "needs-attention",
            Reading::InProgress(_) => "in-progress",
            Reading::Foreign(_) => "not-the-bank",
            Reading::Expired => "key-expired",
            Reading::UnknownKey => "operation-unknown",
            Reading::NoConnection(_) => "no-connection",
            Reading::NoAnswer { how, .. } => how.as_str(),
        };
        Cow::Borrowed(name)
    }

    /// Whether the way to the bank is at fault, rather than the bank: then the breaker opens.
    #[must_use]
    pub const fn is_transport(&self) -> bool {
        matches!(self, Reading::Foreign(_) | Reading::NoConnection(_) | Reading::NoAnswer { .. })
    }

    /// Whether the bank itself said it.
    pub(crate) fn is_the_banks_word(&self) -> bool {
        let was_never_asked = |problem: &Name| *problem == Reading::NOT_OFFERED || *problem == Reading::UNSENDABLE;
        !self.is_transport() && !matches!(self, Reading::Refused { problem, .. } if was_never_asked(problem))
    }

    /// More about it, for people.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Reading::BankAttention(detail) | Reading::Foreign(detail) | Reading::NoConnection(detail) => detail.clone(),
            Reading::NoAnswer { detail, .. } | Reading::Refused { detail, .. } => detail.clone(),
            Reading::Busy { retry_after, .. } => format!("come back in {} s", retry_after.as_secs()),
            _ => String::new(),
        }
    }
}

fn has_id(result: &str) -> bool {
    let read = serde_json::from_str::<serde_json::Value>(result);
    read.is_ok_and(|value| value["id"].as_str().is_some_and(|id| !id.is_empty()))
}

/// The words by which an operation that waits for the transport is known in the file.
pub(crate) const TRANSPORT_WORDS: [&str; 6] = [
    "not-the-bank",
    "no-connection",
    Lost::TimeOut.as_str(),
    Lost::Reset.as_str(),
    Lost::Torn.as_str(),
    Lost::TooLarge.as_str(),
];

impl From<CallError> for Reading {
    fn from(error: CallError) -> Self {
        match error {
            CallError::NoConnection(detail) => Reading::NoConnection(detail),
            CallError::NoAnswer { how, detail } => Reading::NoAnswer { how, detail },
            // To wait for the other side would be in vain, and would keep all others waiting too.
            CallError::Unsendable(detail) => Reading::Refused { problem: Reading::UNSENDABLE, detail },
        }
    }
}

pub(crate) fn foreign<T>(why: impl Into<String>) -> Result<T, Reading> {
    Err(Reading::Foreign(why.into()))
}

/// What the answering clock said in `Date` (RFC 9110, 6.6.1: whole seconds), where it said it.
#[must_use]
pub fn date(answer: &Answer) -> Option<Timestamp> {
    http_date(answer.date.as_deref()?).filter(|at| *at < Timestamp::MAX)
}

/// A date in any of the three forms that HTTP has (RFC 9110, 5.6.7). One that is too far for us is the furthest that there is.
fn http_date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    match httpdate::parse_http_date(text) {
        Ok(at) => Some(Timestamp::try_from(at).unwrap_or(Timestamp::MAX)),
        // It knows no year before 1970, which a clock that was never set may be in.
        Err(_) => jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp()),
    }
}

pub(crate) fn media_type(answer: &Answer, wanted: &str) -> Result<(), Reading> {
    let Some(found) = &answer.content_type else { return foreign("it has no content type") };
    let essence = found.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(wanted) { Ok(()) } else { foreign(format!("it is not {wanted}")) }
}

/// Never the parser's own message: it may repeat what it read.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reading> {
    serde_json::from_slice(body).or_else(|error| {
        foreign(format!("its body is not what was asked for (line {}, column {})", error.line(), error.column()))
    })
}

/// Characters that are kept of a text from outside: it goes into the file, to a terminal and into a window.
const DETAIL_CHARS_MAX: usize = 200;

/// The text on one line, with nothing in it that would act on a terminal or turn a line round.
fn readable(text: &str) -> String {
    let mut kept = text.chars().map(|c| if c.is_control() || protocol::is_invisible(c) { ' ' } else { c });
    let mut readable: String = kept.by_ref().take(DETAIL_CHARS_MAX).collect();
    if kept.next().is_some() {
        readable.push('…');
    }
    readable
}

/// Whether it can be shown as it is.
pub(crate) fn is_readable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || protocol::is_invisible(c))
}

/// `Retry-After` as a duration: seconds, or a date against our clock. Negative ones are zero; what is neither is none.
fn retry_after(answer: &Answer, now: Timestamp) -> Option<SignedDuration> {
    let text = answer.retry_after.as_deref()?.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // However many digits: more than fit are a very long time.
        let seconds = if text.starts_with('-') { 0 } else { digits.parse().unwrap_or(i64::MAX) };
        return Some(SignedDuration::from_secs(seconds));
    }
    Some(http_date(text)?.duration_since(now).max(SignedDuration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_after_may_be_a_date_in_each_form_of_http() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let after = |text: &str| retry_after(&Answer { retry_after: Some(text.to_owned()), ..Answer::default() }, now);
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(after(text), Some(SignedDuration::from_secs(7)), "{text}");
        }
        let never = after("Fri, 31 Dec 9999 23:59:59 GMT").unwrap();
        assert!(never > SignedDuration::from_hours(24 * 365 * 8_000), "{never}");
        assert_eq!(after("Wed, 31 Dec 1969 23:00:00 GMT"), Some(SignedDuration::ZERO));
    }

    #[test]
    fn whoever_wrote_a_text_it_is_kept_short_and_on_one_line() {
        let dirty = "wrong\u{1b}[2J\nmem\u{202e}ber";
        let clean = "wrong [2J mem ber";
        let dirty_name = || Cow::Owned(dirty.to_owned());
        let readings = [
            Reading::BankAttention(dirty.to_owned()),
            Reading::foreign(dirty),
            Reading::NoConnection(dirty.to_owned()),
            Reading::NoAnswer { how: Lost::Reset, detail: dirty.to_owned() },
            Reading::refused("odd", dirty),
        ];
        for reading in readings {
            assert_eq!(reading.clone().fit_to_show().detail(), clean, "{reading:?}");
        }
        let named = [
            Reading::refused(dirty_name(), ""),
            Reading::busy(dirty_name(), SignedDuration::ZERO),
            Reading::trouble(dirty_name()),
            Reading::not_allowed(dirty_name()),
        ];
        for reading in named {
            assert_eq!(reading.clone().fit_to_show().name(), clean, "{reading:?}");
        }
        let told = |text: String| Reading::foreign(text).fit_to_show().detail();
        assert_eq!(told("é".repeat(200)), "é".repeat(200));
        assert_eq!(told("é".repeat(60_000)), format!("{}…", "é".repeat(200)));
        let result = Reading::approved("a\nresult is kept as it was written");
        assert_eq!(result.clone().fit_to_show(), result);
    }
}
