//! A bank that keeps its contract, and the truth: what it charged for each key. What becomes of its answers on their way is the
//! network's business.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use outbox::answer::Answer;
use outbox::{Call, State};
use protocol::{
    Currency, IDEMPOTENCY_KEY, Key, OperationState, Outcome, PAYMENTS_PATH, PaymentRequest, Policy, Problem,
    ProblemType, RefundRequest,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rare::{Rare, reached};
use crate::steps::DECLINES;

pub(crate) const RETENTION_MS: i64 = 24 * 3_600_000;
/// A bank that forgets its claims does so later than it says: what was asked at the last moment is on its way for a while.
const FORGETS_AFTER_MS: i64 = RETENTION_MS + 60_000;

/// What a call asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Introduction,
    Request(Key),
    LookUp(Key),
    Cancellation(Key),
}

impl Asked {
    pub(crate) fn of(call: &Call) -> Result<Asked> {
        if call.path == protocol::POLICY_PATH {
            return Ok(Asked::Introduction);
        }
        if call.method == "POST" {
            return Ok(Asked::Request(call.header(IDEMPOTENCY_KEY).context("a request without a key")?.parse()?));
        }
        let rest = call.path.strip_prefix("/v1/operations/").context("a path of no contract")?;
        Ok(match rest.strip_suffix("/cancellation") {
            Some(key) => Asked::Cancellation(key.parse()?),
            None => Asked::LookUp(rest.parse()?),
        })
    }

    pub(crate) const fn key(self) -> Option<Key> {
        match self {
            Asked::Introduction => None,
            Asked::Request(key) | Asked::LookUp(key) | Asked::Cancellation(key) => Some(key),
        }
    }
}

/// What came, as the contract means it: what a till must make of it is [`crate::expected`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Came {
    Ended(State, Value),
    Cancelled,
    Attention,
    /// Whole seconds until it may be asked again.
    InProgress(i64),
    Busy(i64),
    Trouble,
    Refused,
    Expired,
    UnknownKey,
    NotAllowed,
    /// Something, and not the bank's word.
    Garbled,
    NoAnswer,
    NoConnection,
    /// A fault of the till's own.
    Fault,
    Introduced,
}

/// How far the bank lets a request come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    ToItsEnd,
    /// It goes on running, and the caller is to come back after so many seconds.
    OnAndOn(i64),
    /// The bank's people must look.
    ForPeople,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    People,
    Ended(Outcome),
    Cancelled,
}

/// What the bank has of a key.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// Path and body of the request; none of a tombstone.
    request: Option<(String, Vec<u8>)>,
    planned: Outcome,
    wished: bool,
    at_ms: i64,
    pub(crate) phase: Phase,
}

impl Claim {
    fn is_refund(&self) -> bool {
        self.request.as_ref().is_some_and(|(path, _)| path != PAYMENTS_PATH)
    }
}

/// The bank.
pub(crate) struct Bank {
    pub(crate) id: Uuid,
    pub(crate) permanent: bool,
    /// It forgets what is older than it promised to keep.
    pub(crate) forgets: bool,
    pub(crate) claims: BTreeMap<Key, Claim>,
    /// How often money moved for each key, whatever is remembered of it.
    pub(crate) moved: BTreeMap<Key, u32>,
    /// Keys that it knew, and knows no more.
    pub(crate) forgotten: BTreeSet<Key>,
    /// Keys that came with two requests.
    pub(crate) changed: Vec<Key>,
    /// Refunds of payments that were never made here.
    pub(crate) strange: Vec<Key>,
    /// Refunds of more than was left of their payment.
    pub(crate) over: Vec<Key>,
}

impl Bank {
    pub(crate) fn new(number: u128, permanent: bool) -> Bank {
        Bank {
            id: Uuid::from_u128(number),
            permanent,
            forgets: !permanent,
            claims: BTreeMap::new(),
            moved: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            changed: Vec::new(),
            strange: Vec::new(),
            over: Vec::new(),
        }
    }

    pub(crate) fn handle(&mut self, asked: Asked, call: &Call, run: Run, now_ms: i64) -> Result<(Answer, Came)> {
        if self.forgets {
            let has_ended = |claim: &Claim| matches!(claim.phase, Phase::Ended(_) | Phase::Cancelled);
            let is_old = |claim: &Claim| has_ended(claim) && now_ms - claim.at_ms > FORGETS_AFTER_MS;
            let old = self.claims.iter().filter(|(_, claim)| is_old(claim)).map(|(key, _)| *key);
            self.forgotten.extend(old);
            self.claims.retain(|_, claim| !is_old(claim));
        }
        let key = asked.key();
        let own = self.id.to_string();
        if call.header(protocol::BANK_ID).is_some_and(|id| id != own) {
            reached(Rare::OtherBank);
            return Ok((problem(ProblemType::Forbidden, key, None)?, Came::NotAllowed));
        }
        match asked {
            Asked::Introduction => self.introduce(),
            Asked::Request(key) => self.request(key, &call.path, call.body.as_deref().unwrap_or_default(), run, now_ms),
            Asked::LookUp(key) => self.look_up(key, run),
            Asked::Cancellation(key) => self.cancel(key, run, now_ms),
        }
    }

    fn introduce(&self) -> Result<(Answer, Came)> {
        let claims = if self.permanent { Policy::CLAIMS_PERMANENT } else { "24h" };
        let policy = Policy {
            bank_id: self.id,
            merchant: "demo".to_owned(),
            claims: claims.to_owned(),
            retention_s: RETENTION_MS.unsigned_abs() / 1_000,
            key_format: Policy::KEY_FORMAT_UUID.to_owned(),
            max_body_bytes: 65_536,
            wait_ms: 3_000,
            currencies: vec![Currency::EUR],
        };
        Ok((answer(200, "application/json", None, serde_json::to_vec(&policy)?), Came::Introduced))
    }

    /// A request, of the till or of a copy of its file.
    pub(crate) fn request(
        &mut self,
        key: Key,
        path: &str,
        body: &[u8],
        run: Run,
        now_ms: i64,
    ) -> Result<(Answer, Came)> {
        if let Some(claim) = self.claims.get(&key) {
            if claim
                .request
                .as_ref()
                .is_some_and(|(known_path, known)| (known_path.as_str(), known.as_slice()) != (path, body))
            {
                self.changed.push(key);
                return Ok((problem(ProblemType::KeyReused, Some(key), None)?, Came::Refused));
            }
            if matches!(claim.phase, Phase::Ended(_)) && now_ms - claim.at_ms > RETENTION_MS {
                reached(Rare::Expired);
                return Ok((problem(ProblemType::KeyExpired, Some(key), None)?, Came::Expired));
            }
        } else {
            let Some(planned) = self.plan(path, body)? else {
                let payment_id = RefundRequest::decode(body)?.payment_id;
                if !self.forgotten.iter().any(|key| self.reference(*key) == payment_id) {
                    self.strange.push(key);
                }
                return Ok((problem(ProblemType::PaymentUnknown, Some(key), None)?, Came::Refused));
            };
            if path != PAYMENTS_PATH && planned == Outcome::Declined {
                self.over.push(key);
            }
            let request = Some((path.to_owned(), body.to_vec()));
            self.claims.insert(key, Claim { request, planned, wished: false, at_ms: now_ms, phase: Phase::Running });
        }
        self.go_on(key, run);
        let claim = self.claims.get(&key).context("it was just claimed")?;
        Ok(match (claim.phase, run) {
            (Phase::Running, Run::OnAndOn(seconds)) => in_progress(key, seconds)?,
            (Phase::Running, _) => in_progress(key, 1)?,
            (Phase::People, _) => {
                let state = Some(OperationState::NeedsAttention);
                let document = Problem { state, ..Problem::new(ProblemType::InProgress, "a person must look") };
                (answer(409, Problem::MEDIA_TYPE, Some(key), serde_json::to_vec(&document)?), Came::Attention)
            }
            (Phase::Cancelled, _) => (problem(ProblemType::OperationCancelled, Some(key), None)?, Came::Cancelled),
            (Phase::Ended(outcome), _) => {
                let result = self.result(key, claim, outcome)?;
                let status = if outcome == Outcome::Approved { 201 } else { 402 };
                let body = serde_json::to_vec(&result)?;
                (answer(status, "application/json", Some(key), body), Came::Ended(outcome.into(), result))
            }
        })
    }

    /// How a new request will end; none where it names a payment that was never made here.
    fn plan(&self, path: &str, body: &[u8]) -> Result<Option<Outcome>> {
        if path == PAYMENTS_PATH {
            let declines = PaymentRequest::decode(body)?.card.expose() == DECLINES;
            return Ok(Some(if declines { Outcome::Declined } else { Outcome::Approved }));
        }
        let refund = RefundRequest::decode(body)?;
        let paid = self.claims.iter().find(|(key, claim)| {
            claim.phase == Phase::Ended(Outcome::Approved)
                && !claim.is_refund()
                && self.reference(**key) == refund.payment_id
        });
        let Some((_, payment)) = paid else { return Ok(None) };
        let amount =
            PaymentRequest::decode(&payment.request.as_ref().context("a payment has a request")?.1)?.amount.get();
        let mut taken = 0;
        for claim in self.claims.values().filter(|claim| claim.is_refund() && claim.planned == Outcome::Approved) {
            let other = RefundRequest::decode(&claim.request.as_ref().context("a refund has a request")?.1)?;
            let counts = !matches!(claim.phase, Phase::Cancelled) && other.payment_id == refund.payment_id;
            taken += if counts { other.amount.get() } else { 0 };
        }
        let is_left = taken + refund.amount.get() <= amount;
        Ok(Some(if is_left { Outcome::Approved } else { Outcome::Declined }))
    }

    /// What runs goes on.
    fn go_on(&mut self, key: Key, run: Run) {
        let Some(claim) = self.claims.get_mut(&key) else { return };
        if claim.phase != Phase::Running {
            return;
        }
        match run {
            Run::OnAndOn(_) => {}
            Run::ForPeople => claim.phase = Phase::People,
            Run::ToItsEnd => self.end(key),
        }
    }

    fn end(&mut self, key: Key) {
        let Some(claim) = self.claims.get_mut(&key) else { return };
        let is_reversed = claim.wished && !claim.is_refund();
        claim.phase = if is_reversed { Phase::Cancelled } else { Phase::Ended(claim.planned) };
        if is_reversed {
            reached(Rare::Reversed);
        } else if claim.planned == Outcome::Approved {
            *self.moved.entry(key).or_default() += 1;
        }
    }

    /// The bank's people have looked, and what ran has ended.
    pub(crate) fn end_all(&mut self) {
        let open: Vec<Key> = self
            .claims
            .iter()
            .filter(|(_, claim)| matches!(claim.phase, Phase::Running | Phase::People))
            .map(|(key, _)| *key)
            .collect();
        for key in open {
            self.end(key);
        }
    }

    fn look_up(&mut self, key: Key, run: Run) -> Result<(Answer, Came)> {
        self.go_on(key, run);
        let Some(claim) = self.claims.get(&key) else {
            return Ok((problem(ProblemType::OperationUnknown, Some(key), None)?, Came::UnknownKey));
        };
        self.told(key, claim)
    }

    /// The wish to cancel, of the till or of a copy of its file.
    pub(crate) fn cancel(&mut self, key: Key, run: Run, now_ms: i64) -> Result<(Answer, Came)> {
        let unknown = || Claim {
            request: None,
            planned: Outcome::Declined,
            wished: true,
            at_ms: now_ms,
            phase: Phase::Cancelled,
        };
        let claim = self.claims.entry(key).or_insert_with(unknown);
        claim.wished |= claim.phase == Phase::Running;
        self.go_on(key, run);
        let claim = self.claims.get(&key).context("it was just claimed")?;
        match claim.phase {
            Phase::Running => in_progress(key, if let Run::OnAndOn(seconds) = run { seconds } else { 1 }),
            _ => self.told(key, claim),
        }
    }

    /// The operation, as a look-up and a cancellation tell it.
    fn told(&self, key: Key, claim: &Claim) -> Result<(Answer, Came)> {
        let kind = claim.request.as_ref().map(|_| if claim.is_refund() { "refund" } else { "payment" });
        let (state, result, came) = match claim.phase {
            Phase::Running => ("processing", None, Came::InProgress(1)),
            Phase::People => ("needs_attention", None, Came::Attention),
            Phase::Cancelled => ("cancelled", None, Came::Cancelled),
            Phase::Ended(outcome) => {
                let result = self.result(key, claim, outcome)?;
                let state = State::from(outcome);
                (state.as_str(), Some(result.clone()), Came::Ended(state, result))
            }
        };
        let operation = json!({"key": key, "state": state, "kind": kind, "result": result,
            "created_at": "2026-11-29T10:00:00Z", "completed_at": null});
        Ok((answer(200, "application/json", None, operation.to_string().into_bytes()), came))
    }

    /// The bank's own name for what a key made.
    fn reference(&self, key: Key) -> String {
        format!("pay_{}_{key}", self.id.as_u128())
    }

    fn result(&self, key: Key, claim: &Claim, outcome: Outcome) -> Result<Value> {
        let (_, body) = claim.request.as_ref().context("an end without a request")?;
        let mut result = if claim.is_refund() {
            let request = RefundRequest::decode(body)?;
            json!({"id": format!("re_{key}"), "payment_id": request.payment_id, "amount": request.amount, "currency": "EUR"})
        } else {
            let request = PaymentRequest::decode(body)?;
            json!({"id": self.reference(key), "amount": request.amount, "currency": request.currency,
                "card": {"brand": "visa", "last4": "4242"}, "reference": request.reference})
        };
        result["status"] = json!(State::from(outcome).as_str());
        result["operation"] = json!(key);
        result["short_code"] = json!(key.short_code());
        result["created_at"] = json!("2026-11-29T10:00:00Z");
        match outcome {
            Outcome::Declined => result["decline_code"] = json!("insufficient_funds"),
            Outcome::Approved if !claim.is_refund() => result["approval_code"] = json!("8F21K0"),
            Outcome::Approved => {}
        }
        Ok(result)
    }
}

pub(crate) fn answer(status: u16, media_type: &str, key: Option<Key>, body: Vec<u8>) -> Answer {
    let key = key.map(|key| key.to_string());
    Answer { status, content_type: Some(media_type.to_owned()), retry_after: None, key, date: None, body }
}

/// A problem document of the bank's.
pub(crate) fn problem(kind: ProblemType, key: Option<Key>, retry_after: Option<String>) -> Result<Answer> {
    let body = serde_json::to_vec(&Problem::new(kind, "as told"))?;
    Ok(Answer { retry_after, ..answer(kind.status(), Problem::MEDIA_TYPE, key, body) })
}

fn in_progress(key: Key, seconds: i64) -> Result<(Answer, Came)> {
    reached(Rare::InProgress);
    Ok((problem(ProblemType::InProgress, Some(key), Some(seconds.to_string()))?, Came::InProgress(seconds)))
}
