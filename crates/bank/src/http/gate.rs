//! Which calls need which secret.

use crate::{
    http::{
        answer::Refusal,
        secrets::{Keyring, Secret},
    },
    lab::LabConfig,
};
use axum::http::request::Parts;
use protocol::ProblemType;
use std::sync::Arc;

/// Whom the secret of a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merchant(pub(crate) Arc<str>);

/// The secrets of one service.
#[derive(Default)]
pub(crate) struct Gate {
    /// Needed on all of `/v1`; none where nobody has to prove anything.
    merchants: Option<Keyring>,
    /// Needed on all of `/lab`.
    lab: Option<Keyring>,
    /// Needed on all of `/operator`.
    operator: Option<Keyring>,
}

impl Gate {
    pub(crate) fn new(merchants: Option<Keyring>, lab: Option<&LabConfig>, operator: Option<&Secret>) -> Self {
        let one = |secret: &Secret| {
            let mut ring = Keyring::default();
            ring.add("", secret);
            ring
        };
        Self { merchants, lab: lab.and_then(|lab| lab.secret.as_ref()).map(one), operator: operator.map(one) }
    }

    /// Lets a request in, and marks it with its merchant.
    pub(crate) fn check(&self, parts: &mut Parts) -> Result<(), Refusal> {
        let (ring, of_merchant) = match section(parts.uri.path()) {
            "v1" => (&self.merchants, true),
            "lab" => (&self.lab, false),
            "operator" => (&self.operator, false),
            _ => return Ok(()),
        };
        let Some(ring) = ring else { return Ok(()) };
        let Some(name) = ring.name(&parts.headers) else {
            if !of_merchant && self.merchants.as_ref().is_some_and(|ring| ring.name(&parts.headers).is_some()) {
                return Err(Refusal::new(ProblemType::Forbidden, "a merchant's secret is not for this call"));
            }
            return Err(Refusal::new(
                ProblemType::Unauthorized,
                "send a valid secret as `Authorization: Bearer SECRET`",
            ));
        };
        if of_merchant {
            parts.extensions.insert(Merchant(name));
        }
        Ok(())
    }
}

/// The first segment of a path.
fn section(path: &str) -> &str {
    path.trim_start_matches('/').split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn check(gate: &Gate, path: &str, secret: Option<&str>) -> Result<Option<Merchant>, u16> {
        let mut request = Request::builder().uri(path);
        if let Some(secret) = secret {
            request = request.header("authorization", format!("Bearer {secret}"));
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        gate.check(&mut parts).map_err(|refusal| refusal.problem.status)?;
        Ok(parts.extensions.get::<Merchant>().cloned())
    }

    #[test]
    fn v1_needs_a_merchants_secret_and_a_lab_inside_the_app_its_own() {
        let mut ring = Keyring::default();
        ring.add("shop", &Secret::new("sk_1"));
        let lab = LabConfig { secret: Some(Secret::new("lab_1")), may_abort: false };
        let gate = Gate::new(Some(ring), Some(&lab), Some(&Secret::new("op_1")));
        assert_eq!(check(&gate, "/v1/policy", Some("sk_1")), Ok(Some(Merchant("shop".into()))));
        assert_eq!(check(&gate, "//v1/policy", None), Err(401));
        assert_eq!(check(&gate, "/v1", None), Err(401));
        assert_eq!(check(&gate, "/v1/policy", Some("lab_1")), Err(401));
        assert_eq!(check(&gate, "/lab/faults", Some("lab_1")), Ok(None));
        assert_eq!(check(&gate, "/lab/faults", Some("sk_1")), Err(403));
        assert_eq!(check(&gate, "/lab/faults", None), Err(401));
        assert_eq!(check(&gate, "/operator/attention", Some("op_1")), Ok(None));
        assert_eq!(check(&gate, "/operator/attention", Some("sk_1")), Err(403));
        assert_eq!(check(&gate, "/operator/attention", Some("lab_1")), Err(401));
        assert_eq!(check(&gate, "/v1/policy", Some("op_1")), Err(401));
        assert_eq!(check(&gate, "/elsewhere", None), Ok(None));
        assert_eq!(check(&Gate::default(), "/lab/faults", None), Ok(None));
    }
}
