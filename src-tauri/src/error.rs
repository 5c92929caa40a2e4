//! Errors as the window reads them: it decides by the code and shows words of its own.

use serde::Serialize;
use specta::Type;
use till::TillError;

/// What somebody at the window acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ErrorCode {
    /// The till can't save: nothing was sent.
    Storage,
    SaleChanged,
    SaleFrozen,
    UnknownArticle,
    InvalidQuantity,
    InvalidCard,
    InvalidAmount,
    OverDue,
    IntentReused,
    NotFound,
    NoBank,
    /// A fault of the program.
    Internal,
}

/// Why a command did not do what it was asked.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    /// For the log and the details; never holds a card token or a secret.
    pub(crate) message: String,
    /// Whether the same call may succeed later with nothing else changed.
    pub(crate) retryable: bool,
}

impl From<TillError> for CommandError {
    fn from(error: TillError) -> Self {
        let code = match error {
            TillError::Storage(_)
            | TillError::NotOpened(_)
            | TillError::NotRead(_)
            | TillError::Damaged(_)
            | TillError::Unreadable(_)
            | TillError::Refused(_) => ErrorCode::Storage,
            TillError::SaleChanged(_) => ErrorCode::SaleChanged,
            TillError::SaleFrozen(_) => ErrorCode::SaleFrozen,
            TillError::UnknownArticle(_) => ErrorCode::UnknownArticle,
            TillError::InvalidQuantity(_) => ErrorCode::InvalidQuantity,
            TillError::InvalidCard(_) => ErrorCode::InvalidCard,
            TillError::InvalidAmount(_) => ErrorCode::InvalidAmount,
            TillError::OverDue { .. } => ErrorCode::OverDue,
            TillError::IntentReused(_) => ErrorCode::IntentReused,
            TillError::NotFound(_) => ErrorCode::NotFound,
            TillError::NoBank(_) => ErrorCode::NoBank,
            _ => ErrorCode::Internal,
        };
        let failed = Self { code, message: error.to_string(), retryable: error.retryable() };
        if matches!(code, ErrorCode::Storage | ErrorCode::Internal) {
            tracing::error!(code = error.code(), "{}", failed.message);
        }
        failed
    }
}
