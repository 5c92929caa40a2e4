//! Refunds: an operation of their own that waits for its payment.

use anyhow::Result;
use outbox::{EnqueueError, State};
use protocol::ProblemType;
use serde_json::{Value, json};
use store::WriteError;

use crate::bank::{Bank, Do};
use crate::till::Till;

fn refused(error: &anyhow::Error) -> Option<&EnqueueError> {
    match error.downcast_ref::<WriteError<EnqueueError>>() {
        Some(WriteError::Refused(refused)) => Some(refused),
        _ => None,
    }
}

#[tokio::test]
async fn a_refund_waits_for_its_payment_and_names_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let payment = till.pay(2490).await?;
    let (first, second) = (till.refund(&payment, 1000).await?, till.refund(&payment, 490).await?);
    assert_eq!(first.money.map(|money| money.currency), payment.money.map(|money| money.currency));
    bank.next([Do::DropAfter]);
    till.start(&bank)?;
    for refund in [&first, &second] {
        let ended = till.until_state(refund.key, State::Approved).await?;
        assert_eq!((ended.attempts, ended.payment_key), (1, Some(payment.key)));
        assert_eq!(till.tender(refund.key).await?.0, "approved", "the caller's rows go along");
    }
    let payment = till.operation(payment.key).await?;
    let seen = bank.seen("/v1/refunds");
    let bodies: Vec<Value> = seen.iter().map(|seen| serde_json::from_slice(&seen.body)).collect::<Result<_, _>>()?;
    let body = |amount| json!({"payment_id": payment.bank_reference(), "amount": amount});
    assert_eq!(bodies, [body(1000), body(490)]);
    let events: Vec<_> = till.log(first.key).await?.into_iter().map(|entry| entry.event).collect();
    assert_eq!(events, ["saved", "ready", "sent", "answer"]);

    // An approved payment is named at once.
    let third = till.refund(&payment, 1000).await?;
    till.until_state(third.key, State::Approved).await?;
    let over = till.refund(&payment, 1).await.err();
    assert!(
        matches!(over.as_ref().and_then(refused), Some(EnqueueError::OverRefund { asked: 1, left: 0 })),
        "{over:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_refund_of_a_payment_that_ends_otherwise_is_cancelled_with_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let payment = till.pay_with(2490, "tok_insufficient_funds", "sale-1").await?;
    let refund = till.refund(&payment, 2490).await?;
    till.start(&bank)?;
    till.until_state(payment.key, State::Declined).await?;
    let cancelled = till.until_state(refund.key, State::Cancelled).await?;
    assert_eq!(
        (cancelled.attempts, cancelled.tombstone),
        (0, false),
        "by the bank's own word there is nothing to give back"
    );
    assert_eq!(cancelled.reason.as_deref(), Some("payment-declined"));
    assert_eq!(till.tender(refund.key).await?.0, "cancelled");
    assert!(bank.seen("/v1/refunds").is_empty());
    let late = till.refund(&payment, 1).await.err();
    assert!(matches!(late.as_ref().and_then(refused), Some(EnqueueError::NothingToRefund("declined"))), "{late:?}");

    // One that is cancelled here takes its refunds along.
    till.stop().await?;
    let payment = till.pay(2490).await?;
    let refund = till.refund(&payment, 2490).await?;
    till.cancel(payment.key).await?;
    assert_eq!(till.operation(refund.key).await?.state, State::Cancelled);
    Ok(())
}

#[tokio::test]
async fn a_refund_that_waits_for_a_person_holds_up_nobody() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::KeyReused, None)]);
    till.start(&bank)?;
    let payment = till.pay_with(2490, "tok_visa", "sale-1").await?;
    let payment = till.until_state(payment.key, State::NeedsAttention).await?;
    let refund = till.refund(&payment, 490).await?;
    let other = till.pay_with(990, "tok_visa", "sale-1").await?;
    till.until_state(other.key, State::Approved).await?;
    let summary = till.summary().await?;
    assert_eq!((summary.unsettled, summary.blocked, summary.needs_attention), (1, 1, 1));
    // The bank's people settle the payment, and the refund follows.
    let body = br#"{"amount":2490,"currency":"EUR","card":"tok_visa","reference":"till-1/1042"}"#;
    bank.knows(&payment.key, crate::bank::result(&payment.key.to_string(), body)?);
    till.outbox.check_now();
    till.until_state(refund.key, State::Approved).await?;
    Ok(())
}
