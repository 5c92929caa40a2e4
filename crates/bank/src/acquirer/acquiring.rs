//! The bank's work behind a key: ask the gateway, and make the result out of its answer.

use crate::{
    acquirer::{
        asking::{self, Gateway, Request},
        calls::{self, Call},
        ledger,
        names::{Named, Purpose},
        payments,
        reading::Expected,
        refunds::{self, Refunded},
    },
    gateway::wire::{self, ChargeRequest, Moved},
    ids,
    lab::{Lab, rules::Point, tamper::Tamper},
};
use bytes::Bytes;
use idempotency::{Job, Response, Settlement, Undo, Verdict, Work};
use protocol::{Key, Kind, Outcome, Payment, PaymentRequest, Refund, RefundRequest};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use uuid::Uuid;

/// What the first run of an operation has from the request that made the claim.
pub(crate) struct Passage {
    pub(crate) lab: Option<Arc<Lab>>,
    pub(crate) key: Key,
    /// Tells the request what a rule does to its answer.
    pub(crate) tell: mpsc::UnboundedSender<Tamper>,
    /// The call as it was stored with the claim.
    pub(crate) call: Call,
}

impl Passage {
    async fn pass(&self, point: Point) {
        if let Some(lab) = &self.lab
            && let Some(tamper) = lab.pass(point, &self.key).await
        {
            // Whoever asked may have gone; what is stored is not changed by it.
            let _ = self.tell.send(tamper);
        }
    }
}

/// Payments and refunds.
pub(crate) struct Acquiring {
    pub(crate) bank: Uuid,
    pub(crate) gateway: Arc<Gateway>,
}

type Context = Passage;

impl Work for Acquiring {
    type Context = Context;

    async fn run(&self, job: Job<Context>) -> Verdict {
        match self.make(job).await {
            Ok(settlement) => Verdict::Settled(settlement),
            Err(why) => Verdict::NeedsAttention(why.to_owned()),
        }
    }

    async fn undo(&self, job: Job<Context>, settled: Settlement) -> Undo {
        let approved = settled.outcome == payments::word(Outcome::Approved);
        match (kind(&job), approved) {
            (Some(Kind::Refund), true) => Undo::Kept,
            (Some(Kind::Refund), false) => {
                let operation = job.id;
                Undo::Cancelled(Arc::new(move |tx| refunds::cancel(tx, operation)))
            }
            (_, false) => Undo::Cancelled(Arc::new(|_| Ok(()))),
            (_, true) => match self.reverse(&job).await {
                Ok(undo) => undo,
                Err(why) => Undo::NeedsAttention(why.to_owned()),
            },
        }
    }
}

impl Acquiring {
    async fn make(&self, mut job: Job<Context>) -> Result<Settlement, &'static str> {
        let passage = job.context.take();
        if let Some(passage) = &passage {
            passage.pass(Point::Claimed).await;
        }
        let call = passage.as_ref().map(|passage| passage.call);
        match kind(&job) {
            Some(Kind::Payment) => {
                let request = PaymentRequest::decode_stored(&job.payload).map_err(|_| UNREADABLE)?;
                let charge = self.charge(&job, &request)?;
                let moved = self.gateway.ask(&charge, call).await?;
                pass_answered(passage.as_ref()).await;
                payment(&job, request, moved)
            }
            Some(Kind::Refund) => {
                let request = RefundRequest::decode(&job.payload).map_err(|_| UNREADABLE)?;
                let operation = job.id;
                let stored = asking::until_read(&self.gateway.store, move |connection| {
                    refunds::by_operation(connection, operation)
                })
                .await?;
                let refund = stored.ok_or("the claimed refund is not in the file")?;
                let asked = self.refund(&job, &request, &refund).await?;
                let moved = self.gateway.ask(&asked, call).await?;
                pass_answered(passage.as_ref()).await;
                refunded(&job, refund, moved)
            }
            None => Err("the work behind the key is not known to this bank"),
        }
    }

    fn charge(&self, job: &Job<Context>, request: &PaymentRequest) -> Result<Request, &'static str> {
        let key = key(job)?;
        let reference = self.named(job, &key).reference(Purpose::Charge);
        let body = ChargeRequest {
            amount: request.amount,
            currency: request.currency,
            card: request.card.expose().to_owned(),
            reference: reference.clone(),
            offline: request.accepted_offline_at.is_some(),
        };
        Ok(Request {
            operation: job.id,
            since: job.created_at,
            purpose: Purpose::Charge,
            path: wire::CHARGES_PATH,
            body: json(&body)?,
            expected: Expected {
                amount: request.amount,
                currency: request.currency,
                reference,
                card: Some(request.card.clone()),
            },
        })
    }

    async fn refund(
        &self,
        job: &Job<Context>,
        request: &RefundRequest,
        refund: &Refund,
    ) -> Result<Request, &'static str> {
        let (merchant, id) = (job.scope.clone(), request.payment_id.clone());
        let payment =
            asking::until_read(&self.gateway.store, move |connection| refunds::payment(connection, &merchant, &id))
                .await?;
        let Refunded { key: of_payment, .. } = payment.ok_or("the refunded payment is not in the file")?;
        let own = key(job)?;
        self.give_back(
            job,
            Purpose::Refund,
            (&own, &of_payment),
            Expected { amount: request.amount, currency: refund.currency, reference: String::new(), card: None },
        )
    }

    /// A request that gives money back: `own` is the key that asks, `of_charge` the key of the payment.
    fn give_back(
        &self,
        job: &Job<Context>,
        purpose: Purpose,
        (own, of_charge): (&Key, &Key),
        mut expected: Expected,
    ) -> Result<Request, &'static str> {
        expected.reference = self.named(job, own).reference(purpose);
        let body = wire::RefundRequest {
            charge: self.named(job, of_charge).reference(Purpose::Charge),
            amount: expected.amount,
            currency: expected.currency,
            reference: expected.reference.clone(),
        };
        Ok(Request {
            operation: job.id,
            since: job.created_at,
            purpose,
            path: wire::REFUNDS_PATH,
            body: json(&body)?,
            expected,
        })
    }

    /// Gives the whole of a charge back, under a key of its own, which is stored before its first use.
    async fn reverse(&self, job: &Job<Context>) -> Result<Undo, &'static str> {
        let request = PaymentRequest::decode_stored(&job.payload).map_err(|_| UNREADABLE)?;
        let key = key(job)?;
        let call = Call { key: self.named(job, &key).gateway_key(Purpose::Reversal), gateway: None, attempts: 0 };
        let operation = job.id;
        asking::until_stored(&self.gateway.store, "a reversal", move |tx| {
            calls::insert(tx, operation, Purpose::Reversal, &call)
        })
        .await?;
        let (amount, currency) = (request.amount, request.currency);
        let expected = Expected { amount, currency, reference: String::new(), card: None };
        let asked = self.give_back(job, Purpose::Reversal, (&key, &key), expected)?;
        if self.gateway.ask(&asked, None).await?.status != Outcome::Approved {
            return Err("the gateway did not take the charge back");
        }
        let merchant = job.scope.clone();
        Ok(Undo::Cancelled(Arc::new(move |tx| {
            ledger::post(tx, operation, Purpose::Charge, &merchant, currency, amount.get())?;
            ledger::post(tx, operation, Purpose::Reversal, &merchant, currency, amount.get())
        })))
    }

    fn named<'a>(&self, job: &'a Job<Context>, key: &'a Key) -> Named<'a> {
        Named { bank: self.bank, merchant: &job.scope, key }
    }
}

const UNREADABLE: &str = "the stored request can't be read by this version";

async fn pass_answered(passage: Option<&Passage>) {
    if let Some(passage) = passage {
        passage.pass(Point::GatewayAnswered).await;
    }
}

fn kind(job: &Job<Context>) -> Option<Kind> {
    [Kind::Payment, Kind::Refund].into_iter().find(|kind| kind.as_str() == job.kind)
}

fn key(job: &Job<Context>) -> Result<Key, &'static str> {
    Key::from_bytes(job.key).map_err(|_| "the stored key is no key")
}

fn json(value: &impl Serialize) -> Result<Bytes, &'static str> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|_| "the request can't be written as JSON")
}

fn payment(job: &Job<Context>, request: PaymentRequest, moved: Moved) -> Result<Settlement, &'static str> {
    let key = key(job)?;
    let payment = Payment {
        id: ids::new_id("pay", job.created_at),
        status: moved.status,
        amount: request.amount,
        currency: request.currency,
        card: moved.card,
        reference: request.reference,
        approval_code: moved.approval_code,
        decline_code: moved.decline_code,
        operation: key,
        short_code: key.short_code(),
        created_at: job.created_at,
    };
    let location = format!("{}/{}", protocol::PAYMENTS_PATH, payment.id);
    let (operation, merchant) = (job.id, job.scope.clone());
    let response = response(payment.status, location, &payment)?;
    Ok(Settlement {
        outcome: payments::word(payment.status),
        subject: Some(payment.id.clone()),
        response,
        rows: Arc::new(move |tx| payments::insert(tx, operation, &merchant, &payment)),
    })
}

fn refunded(job: &Job<Context>, refund: Refund, moved: Moved) -> Result<Settlement, &'static str> {
    let refund = Refund { status: moved.status, decline_code: moved.decline_code, ..refund };
    let (operation, merchant) = (job.id, job.scope.clone());
    let mut settlement = refund_settlement(&refund)?;
    settlement.rows = Arc::new(move |tx| refunds::settle(tx, operation, &merchant, &refund));
    Ok(settlement)
}

/// The result of a refund, with no rows of its own.
pub(crate) fn refund_settlement(refund: &Refund) -> Result<Settlement, &'static str> {
    let location = format!("{}/{}", protocol::REFUNDS_PATH, refund.id);
    Ok(Settlement {
        outcome: payments::word(refund.status),
        subject: Some(refund.id.clone()),
        response: response(refund.status, location, refund)?,
        rows: Arc::new(|_| Ok(())),
    })
}

fn response(outcome: Outcome, location: String, body: &impl Serialize) -> Result<Response, &'static str> {
    Ok(Response {
        status: if outcome == Outcome::Approved { 201 } else { 402 },
        content_type: "application/json".into(),
        location: Some(location),
        body: serde_json::to_vec(body).map_err(|_| "the result can't be written as JSON")?.into(),
    })
}
