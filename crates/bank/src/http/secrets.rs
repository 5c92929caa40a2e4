//! Secrets: what a merchant proves itself by.

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, fmt, sync::Arc};

/// A secret. It is printed by nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text as a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends or shows it on purpose.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whom each secret names. Looked up by digest, so that how long a look takes says nothing about a secret.
#[derive(Clone, Default)]
pub(crate) struct Keyring {
    names: HashMap<[u8; 32], Arc<str>>,
}

impl Keyring {
    /// The ring with that one secret.
    pub(crate) fn of(name: &str, secret: &Secret) -> Self {
        let mut ring = Self::default();
        ring.add(name, secret);
        ring
    }

    pub(crate) fn add(&mut self, name: &str, secret: &Secret) {
        self.names.insert(secret.digest(), name.into());
    }

    /// Whom the request's secret names; none without a secret, or with one that nobody has.
    pub(crate) fn name(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        self.names.get(&bearer(headers)?.digest()).cloned()
    }
}

/// The secret in a request's `Authorization: Bearer`.
fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(secret.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_names_its_merchant_and_is_not_printed() {
        let mut ring = Keyring::default();
        ring.add("shop", &Secret::new("sk_1"));
        ring.add("shop", &Secret::new("sk_2"));
        let named = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            ring.name(&headers)
        };
        for right in ["Bearer sk_1", "bearer sk_2", "Bearer  sk_1"] {
            assert_eq!(named(right).as_deref(), Some("shop"), "{right}");
        }
        for wrong in ["sk_1", "Bearer", "Bearer ", "Basic sk_1", "Bearer sk_3", "Bearer sk_1x", ""] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
        assert_eq!(ring.name(&HeaderMap::new()), None);
        assert_eq!(format!("{:?}", Secret::new("sk_1")), "Secret(…)");
    }
}
