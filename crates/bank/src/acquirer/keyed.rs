//! Keyed requests: a payment and a refund go the same way, from the header to the stored answer.

use crate::{
    acquirer::{
        Inner,
        acquiring::{self, Passage},
        calls::{self, Call},
        names::{Named, Purpose},
        refunds,
    },
    http::{
        answer::{self, Refusal},
        body,
        gate::Merchant,
        keyed,
    },
    ids,
    lab::{Lab, rules::Point, tamper},
};
use axum::{
    Extension,
    extract::{Request, State},
    http::Method,
    response::Response,
};
use bytes::Bytes;
use idempotency::{Begin, BeginFn, Claim};
use protocol::{
    Amount, Currency, Key, Kind, Outcome, PAYMENTS_PATH, PaymentRequest, ProblemType, REFUNDS_PATH, Refund,
    RefundRequest,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What is known of a keyed request before it is claimed.
struct Asked {
    kind: Kind,
    path: &'static str,
    members: Vec<(&'static str, Vec<u8>)>,
    payload: Vec<u8>,
    call: Call,
    begin: BeginFn,
    amount: Amount,
    /// What an answer that the lab invents has besides the amount.
    more: More,
}

/// Made only where there is a lab that invents answers.
type More = Box<dyn FnOnce() -> Value + Send>;

/// `POST /v1/payments`
pub(crate) async fn create_payment(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    request: Request,
) -> Result<Response, Refusal> {
    let (key, body) = receive(request).await?;
    let request = PaymentRequest::decode(&body).map_err(|error| Refusal::from(error).of(key))?;
    let call = bank.call(&merchant, &key, Purpose::Charge);
    let begin = move |tx: &rusqlite::Connection, claim: Claim| {
        calls::insert(tx, claim.id, Purpose::Charge, &call)?;
        Ok(Begin::Run)
    };
    let (currency, reference) = (request.currency, request.reference.clone());
    let asked = Asked {
        kind: Kind::Payment,
        path: PAYMENTS_PATH,
        members: request.members(),
        payload: request.encode(),
        call,
        begin: Box::new(begin),
        amount: request.amount,
        more: Box::new(
            move || json!({"currency": currency, "reference": reference, "operation": key, "short_code": key.short_code()}),
        ),
    };
    run(bank, merchant, key, asked).await
}

/// `POST /v1/refunds`
pub(crate) async fn create_refund(
    State(bank): State<Arc<Inner>>,
    Extension(Merchant(merchant)): Extension<Merchant>,
    request: Request,
) -> Result<Response, Refusal> {
    let (key, body) = receive(request).await?;
    let request = RefundRequest::decode(&body).map_err(|error| Refusal::from(error).of(key))?;
    let call = bank.call(&merchant, &key, Purpose::Refund);
    let (of_merchant, of_payment, amount) = (merchant.clone(), request.payment_id.clone(), request.amount);
    let begin = move |tx: &rusqlite::Connection, claim: Claim| {
        // Looked up behind the claim: what is known of the key is told first, whatever the request names.
        let Some(payment) = refunds::payment(tx, &of_merchant, &of_payment)? else {
            return Ok(Begin::Refused("this merchant has no such payment"));
        };
        let is_left = refunds::is_left(tx, payment.operation, amount)?;
        let refund = Refund {
            id: ids::new_id("re", claim.created_at),
            status: Outcome::Declined,
            payment_id: payment.id,
            amount,
            currency: payment.currency,
            decline_code: (!is_left).then(|| "exceeds_refundable".to_owned()),
            operation: key,
            short_code: key.short_code(),
            created_at: claim.created_at,
        };
        refunds::insert(tx, claim.id, &of_merchant, payment.operation, &refund)?;
        if is_left {
            calls::insert(tx, claim.id, Purpose::Refund, &call)?;
            return Ok(Begin::Run);
        }
        let settlement = acquiring::refund_settlement(&refund);
        settlement.map(Begin::Settled).map_err(|why| rusqlite::Error::ToSqlConversionFailure(why.into()))
    };
    let currency = invented_currency(&bank, &merchant, &request.payment_id).await;
    let asked = Asked {
        kind: Kind::Refund,
        path: REFUNDS_PATH,
        members: request.members(),
        payload: request.encode(),
        call,
        begin: Box::new(begin),
        amount: request.amount,
        more: Box::new(
            move || json!({"currency": currency, "payment_id": request.payment_id, "operation": key, "short_code": key.short_code()}),
        ),
    };
    run(bank, merchant, key, asked).await
}

/// The currency of an answer to a refund that the lab invents; nobody needs it without a lab.
async fn invented_currency(bank: &Inner, merchant: &Arc<str>, payment: &str) -> Option<Currency> {
    bank.lab.as_ref()?;
    let (merchant, id) = (merchant.clone(), payment.to_owned());
    let found = bank.store.read(move |connection| refunds::payment(connection, &merchant, &id)).await;
    Some(found.ok()??.currency)
}

/// Reads key and body of a request. From the key on, a refusal echoes it.
async fn receive(request: Request) -> Result<(Key, Bytes), Refusal> {
    let (parts, body) = request.into_parts();
    let key = keyed::key(&parts.headers)?;
    body::check_media_type(&parts.headers).map_err(|refusal| refusal.of(key))?;
    let body = body::read(&parts.headers, body).await.map_err(|refusal| refusal.of(key))?;
    Ok((key, body))
}

impl Inner {
    /// The call that is stored with a claim. Its first attempt is counted with it where the gateway is known,
    /// which is always but right after the first start with the gateway away.
    fn call(&self, merchant: &str, key: &Key, purpose: Purpose) -> Call {
        let gateway = self.gateway.client.known_identity();
        let named = Named { bank: self.id, merchant, key };
        Call { key: named.gateway_key(purpose), gateway, attempts: u32::from(gateway.is_some()) }
    }
}

/// Runs a request in a task of its own, which no client's hanging up ends.
async fn run(bank: Arc<Inner>, merchant: Arc<str>, key: Key, asked: Asked) -> Result<Response, Refusal> {
    let place = bank.shares.take(&merchant).map_err(|refusal| refusal.of(key))?;
    let engine = bank.engine.clone();
    let task = engine.spawn(async move {
        let response = go(bank, merchant, key, asked).await;
        drop(place);
        response
    });
    task.await.map_err(|_| {
        tracing::error!("a request panicked");
        Refusal::new(ProblemType::Internal, "the bank failed; send the same request again later").of(key)
    })
}

async fn go(bank: Arc<Inner>, merchant: Arc<str>, key: Key, asked: Asked) -> Response {
    let lab = bank.lab.clone();
    let pass = async |lab: &Option<Arc<Lab>>, point| match lab {
        Some(lab) => lab.pass(point, &key).await,
        None => None,
    };
    let (amount, more) = (asked.amount, asked.more);
    // Only a rule of the lab asks for it, and at most once.
    let invented = || tamper::invented(amount.get(), &more(), key);
    if let Some(tamper) = pass(&lab, Point::Received).await {
        return tamper.apply(invented(), key).await;
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let running = bank.engine.run(idempotency::Request {
        scope: merchant,
        key: *key.as_bytes(),
        kind: asked.kind.as_str(),
        route: format!("{} {}", Method::POST, asked.path),
        members: asked.members,
        payload: asked.payload,
        begin: asked.begin,
        context: Passage { lab: lab.clone(), key, tell, call: asked.call },
    });
    let answer = tokio::select! {
        biased;
        Some(tamper) = told.recv() => return tamper.apply(invented(), key).await,
        answer = running => answer,
    };
    let saved = matches!(answer, idempotency::Answer::Done { .. });
    let response = answer::of_engine(answer, key);
    if saved && let Some(tamper) = pass(&lab, Point::Saved).await {
        return tamper.apply(response, key).await;
    }
    response
}
