//! What the window may ask the till for, by subject. A command takes its arguments, asks the till, and hands on what it
//! says; it decides nothing.

pub(crate) mod app;
pub(crate) mod catalogue;
pub(crate) mod pay;
pub(crate) mod payments;
pub(crate) mod sale;

use till::TillError;
use uuid::Uuid;

use crate::error::CommandError;

/// What every command gives back.
type Answer<T> = Result<T, CommandError>;

/// The id of a sale or a tender. The window only hands back what it was given, so another text names nothing.
fn id(text: &str, of: &'static str) -> Result<Uuid, TillError> {
    text.parse().map_err(|_| TillError::NotFound(of))
}
