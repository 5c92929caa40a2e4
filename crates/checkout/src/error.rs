//! What is wrong with a cart, and where.

use std::fmt;

use crate::money::Overflow;

/// Why a cart has no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct PriceError {
    /// What kind of fault it is, for programs.
    pub code: Code,
    /// One sentence for people, without the place.
    pub message: String,
    /// The member at fault, such as `lines[0].quantity`; empty when it is the whole.
    pub path: String,
}

impl PriceError {
    pub(crate) fn new(code: Code, path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string(), path: path.into() }
    }

    /// The error for a result that does not fit, at the part of the cart that it belongs to.
    pub(crate) fn overflow(path: impl Into<String>) -> impl FnOnce(Overflow) -> Self {
        let path = path.into();
        move |Overflow| Self::new(Code::OutOfRange, path, "the amount that comes of this does not fit")
    }

    fn place(&self) -> String {
        if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) }
    }
}

/// The kinds of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// Not a JSON document, or not an object.
    Malformed,
    /// A member that the input does not have.
    UnknownMember,
    /// A member named twice: which of them is meant?
    DuplicateMember,
    /// A member that must be there.
    MissingMember,
    /// Another type of JSON value than the member takes.
    WrongType,
    /// The right type, but no value that the member takes.
    InvalidValue,
    /// More lines or tenders, or a longer text, than the engine takes.
    TooMany,
    /// An amount given, or coming out, that does not fit 64 bits.
    OutOfRange,
    /// A tender other than cash that is more than what is still to pay: change comes out of cash alone.
    OverDue,
    /// Cash that is not a multiple of the smallest coin.
    CashStep,
    /// More of a line than is left to come back.
    OverReturn,
}

impl Code {
    /// The code as it stands in an error document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownMember => "unknown-member",
            Self::DuplicateMember => "duplicate-member",
            Self::MissingMember => "missing-member",
            Self::WrongType => "wrong-type",
            Self::InvalidValue => "invalid-value",
            Self::TooMany => "too-many",
            Self::OutOfRange => "out-of-range",
            Self::OverDue => "over-due",
            Self::CashStep => "cash-step",
            Self::OverReturn => "over-return",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_sentence_with_its_place() {
        let error = |path| PriceError::new(Code::WrongType, path, "must be an object").to_string();
        assert_eq!(error("lines[2].discount"), "lines[2].discount: must be an object");
        assert_eq!(error(""), "must be an object");
    }
}
