//! Which calls need which secret.

use crate::{
    http::{
        answer::Refusal,
        secrets::{Keyring, Secret},
    },
    lab::LabConfig,
};
use axum::http::{HeaderMap, request::Parts};
use protocol::{BANK_ID, MERCHANT, ProblemType};
use std::sync::Arc;
use uuid::Uuid;

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
    /// Whose gate it is, where a request may name the bank that it is meant for.
    bank: Option<Uuid>,
}

impl Gate {
    pub(crate) fn new(merchants: Option<Keyring>, lab: Option<&LabConfig>, operator: Option<&Secret>) -> Self {
        let one = |secret: &Secret| Keyring::of("", secret);
        Self {
            merchants,
            lab: lab.and_then(|lab| lab.secret.as_ref()).map(one),
            operator: operator.map(one),
            bank: None,
        }
    }

    /// The same gate, which refuses requests that are meant for another bank or merchant.
    pub(crate) fn of_bank(self, bank: Uuid) -> Self {
        Self { bank: Some(bank), ..self }
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
            self.check_meant(&parts.headers, &name)?;
            parts.extensions.insert(Merchant(name));
        }
        Ok(())
    }
}

impl Gate {
    /// A till that was told one bank and reaches another, at the same address, must not be charged there again.
    fn check_meant(&self, headers: &HeaderMap, merchant: &str) -> Result<(), Refusal> {
        let Some(bank) = self.bank else { return Ok(()) };
        let bank = bank.to_string();
        for (header, own, what) in [(BANK_ID, bank.as_str(), "bank"), (MERCHANT, merchant, "merchant")] {
            if headers.get_all(header).iter().any(|meant| meant.as_bytes() != own.as_bytes()) {
                let detail =
                    format!("`{header}` names another {what}: ask for the policy, and send nothing of that one here");
                return Err(Refusal::new(ProblemType::Forbidden, detail));
            }
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
    fn what_is_meant_for_another_bank_or_merchant_is_refused() {
        let mut ring = Keyring::default();
        ring.add("shop", &Secret::new("sk_1"));
        let gate = Gate::new(Some(ring), None, None).of_bank(Uuid::from_u128(7));
        let check = |headers: &[(&str, &str)]| {
            let mut request = Request::builder().uri("/v1/payments").header("authorization", "Bearer sk_1");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            gate.check(&mut parts).map_err(|refusal| refusal.problem.status)
        };
        let (ours, other) = (Uuid::from_u128(7).to_string(), Uuid::from_u128(8).to_string());
        assert_eq!(check(&[]), Ok(()), "who names no bank means any");
        assert_eq!(check(&[(BANK_ID, &ours), (MERCHANT, "shop")]), Ok(()));
        for wrong in [(BANK_ID, other.as_str()), (MERCHANT, "shop_b"), (BANK_ID, "")] {
            assert_eq!(check(&[wrong]), Err(403), "{wrong:?}");
        }
        assert_eq!(check(&[(BANK_ID, &ours), (BANK_ID, &other)]), Err(403), "named twice");
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
