//! JSON objects read strictly: one flat object, no member twice, no member that nobody asked for.

use crate::{DecodeError, DecodeErrorKind, rfc3339};
use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The members of an object in the order in which they came, doubled ones included.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    if members.len() == MEMBERS_MAX {
                        return Err(A::Error::custom("too many members"));
                    }
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// More members than any request has; beyond it the rest is not read.
const MEMBERS_MAX: usize = 32;

/// The longest name of an unknown member that an error repeats, in characters.
const NAME_CHARS_MAX: usize = 24;

/// Where a body comes from, and with it which spellings of a time are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Off the wire: RFC 3339 and no other.
    Sent,
    /// Out of a file: whatever a version of ours may have written, years before 0 included.
    Stored,
}

/// One flat object whose members are taken out one by one. What is left over at the end is an error.
pub(crate) struct Object(Vec<(String, Value)>);

impl Object {
    /// Reads an object and refuses doubled members.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let Members(members) = serde_json::from_slice(body).map_err(|error| DecodeError {
            kind: DecodeErrorKind::Malformed,
            member: None,
            // Not the parser's own message: it may quote what it read.
            detail: format!("the body is not one JSON object (line {}, column {})", error.line(), error.column()),
        })?;
        for (i, (name, _)) in members.iter().enumerate() {
            if members[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(sent(name, "stands twice in the body; send it once"));
            }
        }
        Ok(Self(members))
    }

    /// Takes a member out; `null` is as if absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(member, _)| member == name)?;
        Some(self.0.remove(at).1).filter(|value| !value.is_null())
    }

    /// Takes a whole number; a fraction, a text and a number beyond 64 bits are refused.
    pub(crate) fn integer(&mut self, name: &'static str) -> Result<i64, DecodeError> {
        let value = self.take(name).ok_or_else(|| invalid(name, "is missing"))?;
        value.as_i64().ok_or_else(|| invalid(name, "must be a whole number of minor units"))
    }

    /// Takes a text of 1 to `chars_max` characters.
    pub(crate) fn text(&mut self, name: &'static str, chars_max: usize) -> Result<String, DecodeError> {
        self.optional_text(name, chars_max, 1)?.ok_or_else(|| invalid(name, "is missing"))
    }

    /// Takes a text of `chars_min` to `chars_max` characters that may be absent.
    pub(crate) fn optional_text(
        &mut self,
        name: &'static str,
        chars_max: usize,
        chars_min: usize,
    ) -> Result<Option<String>, DecodeError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if (chars_min..=chars_max).contains(&text.chars().count()) => Ok(Some(text)),
            Some(Value::String(_)) => Err(invalid(name, &format!("must have {chars_min} to {chars_max} characters"))),
            Some(_) => Err(invalid(name, "must be a text")),
        }
    }

    /// Takes a time that may be absent.
    pub(crate) fn optional_time(&mut self, name: &'static str, times: Times) -> Result<Option<Timestamp>, DecodeError> {
        let Some(text) = self.optional_text(name, 64, 1)? else { return Ok(None) };
        let time = match times {
            Times::Sent => rfc3339::parse(&text),
            Times::Stored => text.parse().ok(),
        };
        time.map(Some).ok_or_else(|| invalid(name, "must be a time such as 2026-11-29T10:00:00Z"))
    }

    /// Ends the reading: a member that nobody took is refused by its name.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(sent(name, "is not a member of this request")),
        }
    }
}

/// An error that names a member of ours and says what is wrong with it, but not what it holds.
pub(crate) fn invalid(member: &'static str, what: &str) -> DecodeError {
    DecodeError {
        kind: DecodeErrorKind::Invalid,
        detail: format!("`{member}` {what}"),
        member: Some(member.to_owned()),
    }
}

/// An error about a member as it was sent. Its name is the client's own text, and no answer may hold a card token or a secret:
/// it is repeated only where it can be neither.
fn sent(name: &str, what: &str) -> DecodeError {
    let is_a_name = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && !["tok_", "sk_"].iter().any(|secret| name.contains(secret));
    let (subject, member) = if is_a_name {
        (format!("`{name}`"), Some(name.to_owned()))
    } else {
        ("a member that is not known here".to_owned(), None)
    };
    DecodeError { kind: DecodeErrorKind::Invalid, detail: format!("{subject} {what}"), member }
}
