//! Reading a body: bounded in size and in time.

use crate::http::{answer::Refusal, places::Unread};
use axum::{
    BoxError,
    body::Body,
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use protocol::{BODY_BYTES_MAX, ProblemType};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use thiserror::Error;

/// How long a body may take to come.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// How much of a body that nobody wants is still read, in bytes.
const DISCARD_BYTES_MAX: usize = 1 << 20;
/// And for how long.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// A body on its way, which gives its connection a lasting place once it is whole.
pub(crate) struct Coming {
    body: Incoming,
    unread: Option<Unread>,
}

#[derive(Debug, Error)]
#[error("the connection has lost its place to another")]
struct PlaceLost;

impl Coming {
    pub(crate) fn new(body: Incoming, unread: Unread) -> Self {
        Self { body, unread: Some(unread) }
    }
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) {
            return Poll::Ready(Some(frame.map_err(Into::into)));
        }
        let lost = self.unread.take().is_some_and(|unread| !unread.whole());
        Poll::Ready(lost.then(|| Err(PlaceLost.into())))
    }

    fn is_end_stream(&self) -> bool {
        // Before, its end is still to be marked.
        self.unread.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Refuses anything but plain `application/json`, said once: of two lines, another reader on the way may take the other.
pub(crate) fn check_media_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = |detail| Err(Refusal::new(ProblemType::UnsupportedMediaType, detail));
    let mut media_types = headers.get_all(header::CONTENT_TYPE).iter();
    let media_type = media_types.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media_types.next().is_some() {
        return refused("send one Content-Type");
    }
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return refused("send the body as application/json");
    }
    if headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
        return refused("send the body without a Content-Encoding");
    }
    Ok(())
}

/// Reads a body of up to [`BODY_BYTES_MAX`] bytes.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body) -> Result<Bytes, Refusal> {
    let announced: Option<u64> =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return too_large(body).await;
    }
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| incomplete())?;
            if let Ok(data) = frame.into_data() {
                if read.len() + data.len() > BODY_BYTES_MAX {
                    return Ok(false);
                }
                read.extend_from_slice(&data);
            }
        }
        Ok(true)
    };
    match tokio::time::timeout(BODY_TIME_MAX, reading).await {
        Err(_) => Err(incomplete()),
        Ok(Err(refusal)) => Err(refusal),
        Ok(Ok(true)) => Ok(read.freeze()),
        Ok(Ok(false)) => too_large(body).await,
    }
}

fn incomplete() -> Refusal {
    Refusal::new(ProblemType::RequestMalformed, "the body did not arrive whole and in time").closing()
}

async fn too_large(body: Body) -> Result<Bytes, Refusal> {
    discard(body).await;
    let detail = format!("the body may have up to {BODY_BYTES_MAX} bytes");
    Err(Refusal::new(ProblemType::PayloadTooLarge, detail).closing())
}

/// Reads on for a while, and drops what comes: a connection that is closed on a client that is still sending takes the
/// answer with it.
pub(crate) async fn discard(mut body: Body) {
    let discarding = async {
        let mut discarded = 0;
        while let Some(Ok(frame)) = body.frame().await {
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > DISCARD_BYTES_MAX {
                break;
            }
        }
    };
    // However far it came, the answer is the same.
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, discarding).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn is_refused(lines: &[(HeaderName, &'static str)]) -> bool {
        let headers = lines.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        check_media_type(&headers).is_err_and(|refusal| refusal.problem.problem == ProblemType::UnsupportedMediaType)
    }

    #[test]
    fn a_body_has_one_media_type_and_no_coding() {
        let (media_type, coding) = (header::CONTENT_TYPE, header::CONTENT_ENCODING);
        let json = (media_type.clone(), "application/json");
        let plain = (coding.clone(), "identity");
        assert!(!is_refused(std::slice::from_ref(&json)));
        assert!(!is_refused(&[(media_type.clone(), "Application/JSON; charset=utf-8")]));
        assert!(!is_refused(&[json.clone(), plain.clone()]));
        assert!(!is_refused(&[json.clone(), plain.clone(), plain.clone()]));
        assert!(is_refused(&[]));
        assert!(is_refused(&[(media_type.clone(), "text/plain")]));
        assert!(is_refused(&[json.clone(), (media_type.clone(), "text/html")]), "whoever reads the last reads another");
        assert!(is_refused(&[(media_type.clone(), "text/html"), json.clone()]));
        assert!(is_refused(&[json.clone(), json.clone()]));
        assert!(is_refused(&[json.clone(), (coding.clone(), "gzip")]));
        assert!(is_refused(&[json.clone(), plain.clone(), (coding.clone(), "gzip")]));
        assert!(is_refused(&[json, (coding, "gzip"), plain]));
    }
}
