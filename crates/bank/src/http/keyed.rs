//! The key header.

use crate::http::answer::Refusal;
use axum::http::HeaderMap;
use protocol::{Key, KeyError, ProblemType};

/// Reads the one key of a request.
pub(crate) fn key(headers: &HeaderMap) -> Result<Key, Refusal> {
    let mut values = headers.get_all(protocol::IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Err(Refusal::new(ProblemType::KeyMissing, "send a UUID in the Idempotency-Key header"));
    };
    if values.next().is_some() {
        return Err(Refusal::new(ProblemType::KeyInvalid, "send the Idempotency-Key header once"));
    }
    // What is no text is no UUID either.
    match Key::parse(value.to_str().unwrap_or("?")) {
        Ok(key) => Ok(key),
        Err(error @ KeyError::Empty) => Err(Refusal::new(ProblemType::KeyMissing, error.to_string())),
        Err(error) => Err(Refusal::new(ProblemType::KeyInvalid, error.to_string())),
    }
}

/// Reads a key that stands in a path.
pub(crate) fn key_in_path(text: &str) -> Result<Key, Refusal> {
    Key::parse(text).map_err(|error| Refusal::new(ProblemType::KeyInvalid, error.to_string()))
}
