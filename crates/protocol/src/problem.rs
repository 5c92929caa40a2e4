//! Problem documents (RFC 9457): every answer that is no result.

use crate::OperationState;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The problems that the bank tells. Their names and statuses are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemType {
    /// The key header is missing.
    KeyMissing,
    /// The key header is no UUID, or stands there twice.
    KeyInvalid,
    /// The body is no JSON object.
    RequestMalformed,
    /// A member of the request is wrong.
    RequestInvalid,
    /// No secret, or a wrong one.
    Unauthorized,
    /// The secret is right and the call is not for it, or a web page tried.
    Forbidden,
    /// The key was never seen.
    OperationUnknown,
    /// No such payment or refund of this merchant.
    PaymentUnknown,
    /// No such path.
    NotFound,
    /// The path has other methods.
    MethodNotAllowed,
    /// The body, or the head, is too large.
    PayloadTooLarge,
    /// The body is not `application/json`.
    UnsupportedMediaType,
    /// The operation runs and its outcome is not known yet. 409 means nothing else.
    InProgress,
    /// The stored response has expired; the claim on the key has not.
    KeyExpired,
    /// The key was cancelled and never charges.
    OperationCancelled,
    /// The key belongs to another request. 422 means nothing else.
    KeyReused,
    /// Too many requests.
    RateLimited,
    /// The bank failed.
    Internal,
    /// The bank can't take requests now.
    Unavailable,
}

impl ProblemType {
    /// Every problem, in the order of the contract.
    pub const ALL: [Self; 19] = [
        Self::KeyMissing,
        Self::KeyInvalid,
        Self::RequestMalformed,
        Self::RequestInvalid,
        Self::Unauthorized,
        Self::Forbidden,
        Self::OperationUnknown,
        Self::PaymentUnknown,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::InProgress,
        Self::KeyExpired,
        Self::OperationCancelled,
        Self::KeyReused,
        Self::RateLimited,
        Self::Internal,
        Self::Unavailable,
    ];

    /// The name in `/problems/NAME`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// A short sentence that is the same for every occurrence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// Whether the same request may succeed later, with nothing changed in it.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(self, Self::InProgress | Self::RateLimited | Self::Internal | Self::Unavailable)
    }

    /// The problem of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|problem| problem.name() == name)
    }

    /// The problem that a document's `type` names: `/problems/NAME`, as the bank writes it. The same name behind some address
    /// is somebody else's problem, and ends nothing.
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::from_name(uri.strip_prefix("/problems/")?)
    }

    const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::KeyMissing => ("key-missing", 400, "The Idempotency-Key header is missing"),
            Self::KeyInvalid => ("key-invalid", 400, "The Idempotency-Key header is not one UUID"),
            Self::RequestMalformed => ("request-malformed", 400, "The body is not one JSON object"),
            Self::RequestInvalid => ("request-invalid", 400, "A member of the request is not allowed"),
            Self::Unauthorized => ("unauthorized", 401, "The secret is missing or wrong"),
            Self::Forbidden => ("forbidden", 403, "This call is not allowed from here"),
            Self::OperationUnknown => ("operation-unknown", 404, "This key was never seen"),
            Self::PaymentUnknown => ("payment-unknown", 404, "There is no such payment or refund"),
            Self::NotFound => ("not-found", 404, "There is nothing at this path"),
            Self::MethodNotAllowed => ("method-not-allowed", 405, "This path has other methods"),
            Self::PayloadTooLarge => ("payload-too-large", 413, "The request is too large"),
            Self::UnsupportedMediaType => ("unsupported-media-type", 415, "The body must be application/json"),
            Self::InProgress => ("in-progress", 409, "The operation is not finished"),
            Self::KeyExpired => ("key-expired", 410, "The stored response has expired"),
            Self::OperationCancelled => ("operation-cancelled", 410, "The operation was cancelled and never charges"),
            Self::KeyReused => ("key-reused", 422, "The key belongs to another request"),
            Self::RateLimited => ("rate-limited", 429, "Too many requests"),
            Self::Internal => ("internal", 500, "The bank failed"),
            Self::Unavailable => ("unavailable", 503, "The bank can't take requests now"),
        }
    }
}

impl Serialize for ProblemType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("/problems/{}", self.name()))
    }
}

impl<'de> Deserialize<'de> for ProblemType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let uri = String::deserialize(deserializer)?;
        Self::from_uri(&uri).ok_or_else(|| D::Error::custom("not a problem of this bank"))
    }
}

/// A problem document: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Which problem it is, written as `/problems/NAME`.
    #[serde(rename = "type")]
    pub problem: ProblemType,
    /// The sentence that goes with the type.
    pub title: String,
    /// The HTTP status, as in the status line.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// What happened here and what to do, for the developer of the client.
    pub detail: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// On `in-progress` and `key-expired`: the state of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub state: Option<OperationState>,
    /// On `key-expired`: the payment that the key made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false, pattern = "^pay_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    pub payment_id: Option<String>,
    /// On `key-expired`: the refund that the key made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false, pattern = "^re_[0-7][0-9a-hjkmnp-tv-z]{25}$"))]
    pub refund_id: Option<String>,
    /// On `key-reused`: the members that differ, `path` for another route. Names only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub differs: Option<Vec<String>>,
}

impl Problem {
    /// The media type of the document.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A document of that type with its own detail.
    #[must_use]
    pub fn new(problem: ProblemType, detail: impl Into<String>) -> Self {
        Self {
            problem,
            title: problem.title().into(),
            status: problem.status(),
            detail: detail.into(),
            retryable: problem.retryable(),
            state: None,
            payment_id: None,
            refund_id: None,
            differs: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_survives_the_wire() {
        for kind in ProblemType::ALL {
            let problem = Problem::new(kind, "why");
            let json = serde_json::to_value(&problem).unwrap();
            assert_eq!(json["type"], format!("/problems/{}", kind.name()));
            assert_eq!(json["status"], kind.status());
            assert_eq!(json["retryable"], matches!(kind.status(), 409 | 429 | 500 | 503), "{kind:?}");
            assert_eq!(json.as_object().unwrap().len(), 5, "no empty members: {json}");
            assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
        }
    }

    #[test]
    fn only_our_own_types_are_read() {
        assert_eq!(ProblemType::from_uri("/problems/key-reused"), Some(ProblemType::KeyReused));
        for foreign in [
            "about:blank",
            "key-reused",
            "/problems/",
            "/problems/out-of-credit",
            "/errors/key-reused",
            "https://elsewhere.example/problems/operation-cancelled",
            "//elsewhere.example/problems/operation-cancelled",
            "",
        ] {
            assert_eq!(ProblemType::from_uri(foreign), None, "{foreign}");
        }
    }
}
