//! What the window may ask the till for, by subject. A command takes its arguments, asks the till, and hands on what it
//! says; it decides nothing.
//!
//! A command that may need more than the right of who is logged in takes, as its last argument, the PIN of who allows it:
//! see [`approved`].

pub(crate) mod app;
pub(crate) mod catalogue;
pub(crate) mod editing;
pub(crate) mod lab;
pub(crate) mod late;
pub(crate) mod offline;
pub(crate) mod pay;
pub(crate) mod payments;
pub(crate) mod people;
pub(crate) mod receipts;
pub(crate) mod sale;
pub(crate) mod shift;
pub(crate) mod void;

use protocol::Key;
use till::{Till, TillError};
use uuid::Uuid;

use crate::{dto::PinEntry, error::CommandError};

/// What every command gives back.
type Answer<T> = Result<T, CommandError>;

/// The id of a sale or a tender. The window only hands back what it was given, so another text names nothing.
fn id(text: &str, of: &'static str) -> Result<Uuid, TillError> {
    text.parse().map_err(|_| TillError::NotFound(of))
}

/// The id of a line.
fn line(text: &str) -> Result<i64, TillError> {
    text.parse().map_err(|_| TillError::NotFound("line"))
}

/// The key of an operation.
fn key(text: &str) -> Result<Key, TillError> {
    Key::parse(text).map_err(|_| TillError::NotFound("operation"))
}

/// The till with the approval of whose PIN came with a command, for that command alone. The till looks at the PIN, counts
/// the tries and knows the rights.
async fn approved(till: &Till, approval: Option<PinEntry>) -> Result<Till, TillError> {
    match approval {
        Some(entry) => till.approved_by(entry.into()).await,
        None => Ok(till.clone()),
    }
}
