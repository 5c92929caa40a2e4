//! A segment of a path.

use crate::http::answer::Refusal;
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use protocol::ProblemType;

/// The variable segment of a path, decoded. What can't be decoded names nothing.
pub(crate) struct Segment<T = String>(pub(crate) T);

impl<T: serde::de::DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segment<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(segment)) => Ok(Self(segment)),
            Err(_) => Err(Refusal::new(ProblemType::NotFound, "there is nothing at this path")),
        }
    }
}
