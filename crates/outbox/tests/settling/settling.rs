//! What comes back, and what becomes of it.

use anyhow::Result;
use outbox::{Event, State};
use protocol::ProblemType;

use crate::bank::{Bank, Do, result};
use crate::till::Till;

#[tokio::test]
async fn an_approved_payment_is_charged_once_and_kept_as_the_bank_wrote_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let mut events = till.outbox.subscribe();
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    let paid = till.until_state(key, State::Approved).await?;
    assert_eq!(paid.attempts, 1);
    assert_eq!(paid.approval_code(), Some("8F21K0"));
    assert_eq!(paid.card(), Some(("visa", "4242")));
    let payments = bank.payments();
    assert_eq!(payments.len(), 1);
    assert_eq!(payments[0].key.as_deref(), Some(key.to_string().as_str()));
    assert_eq!(paid.result, Some(result(&key.to_string(), &payments[0].body)?));
    assert_eq!(
        till.tender(key).await?,
        ("approved".to_owned(), 2),
        "sending and approved, each in the outbox's commit"
    );
    let events_of: Vec<_> =
        till.log(key).await?.into_iter().map(|entry| (entry.event, entry.answer, entry.attempt)).collect();
    assert_eq!(
        events_of,
        [("saved".to_owned(), None, 0), ("sent".to_owned(), None, 1), ("answer".to_owned(), Some(201), 1)]
    );
    let mut states = Vec::new();
    while states.last() != Some(&State::Approved) {
        if let Event::OperationChanged(operation) = events.recv().await? {
            states.push(operation.state);
        }
    }
    assert_eq!(states, [State::Sending, State::Approved]);
    let summary = till.until_summary("empty", |summary| summary.unsettled == 0).await?;
    assert_eq!((summary.bank_reachable, summary.paused), (Some(true), None));
    assert!(summary.last_contact_at.is_some());
    Ok(())
}

#[tokio::test]
async fn a_declined_payment_is_final_for_its_key() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    till.start(&bank)?;
    let key = till.pay_with(2490, "tok_insufficient_funds", "sale-1").await?.key;
    let refused = till.until_state(key, State::Declined).await?;
    assert_eq!(refused.decline_code(), Some("insufficient_funds"));
    till.outbox.check_now();
    let next = till.pay_with(2490, "tok_visa", "sale-1").await?.key;
    till.until_state(next, State::Approved).await?;
    assert_eq!((bank.payments().len(), bank.charges()), (2, 1));
    Ok(())
}

#[tokio::test]
async fn without_a_valid_answer_the_same_bytes_go_out_again_under_the_same_key() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let troubles = [
        Do::DropAfter,
        Do::HalfAfter,
        Do::DropBefore,
        Do::Html(200),
        Do::Html(502),
        Do::Redirect,
        Do::Problem(ProblemType::Internal, None),
        Do::Problem(ProblemType::Unavailable, None),
    ];
    let count = troubles.len() + 1;
    bank.next(troubles);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    let paid = till.until_state(key, State::Approved).await?;
    let payments = bank.payments();
    assert_eq!(payments.len(), count);
    assert_eq!(usize::try_from(paid.attempts)?, count);
    assert!(payments.iter().all(|other| other.key == payments[0].key && other.body == payments[0].body));
    assert!(payments.iter().all(|seen| seen.path == "/v1/payments"), "no redirect was followed");
    assert_eq!(bank.charges(), 1);
    let readings: Vec<_> = till.log(key).await?.into_iter().filter_map(|entry| entry.reading).collect();
    let no_answer = ["reset", "torn", "reset"];
    let answers = ["not-the-bank", "not-the-bank", "not-the-bank", "internal", "unavailable", "approved"];
    assert_eq!(readings, [&no_answer[..], &answers[..]].concat());
    Ok(())
}

#[tokio::test]
async fn after_a_failure_of_the_way_the_bank_is_asked_who_it_is_before_anything_is_sent() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::DropAfter]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Approved).await?;
    let order: Vec<_> = bank.seen("/").into_iter().map(|seen| seen.path).collect();
    assert_eq!(order, ["/v1/policy", "/v1/payments", "/v1/policy", "/v1/payments"]);
    Ok(())
}

#[tokio::test]
async fn an_expired_response_is_looked_up() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::DropAfter, Do::Problem(ProblemType::KeyExpired, None)]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    let paid = till.until_state(key, State::Approved).await?;
    assert_eq!((paid.attempts, bank.payments().len(), bank.charges()), (2, 2, 1));
    assert_eq!(paid.result, Some(result(&key.to_string(), &bank.payments()[0].body)?));
    assert_eq!(bank.seen("/v1/operations/").len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_key_ends_cancelled() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::OperationCancelled, None)]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Cancelled).await?;
    assert_eq!(till.tender(key).await?.0, "cancelled");
    Ok(())
}

#[tokio::test]
async fn what_the_bank_refuses_is_set_aside_looked_up_and_never_sent_again() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::KeyReused, None)]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    let aside = till.until_state(key, State::NeedsAttention).await?;
    assert!(aside.reason.is_some_and(|reason| reason.starts_with("key-reused")));
    assert_eq!(till.summary().await?.needs_attention, 1);
    // Nothing is known at the bank yet; then its people settle it there.
    till.outbox.check_now();
    till.until(key, "looked up", |operation| operation.last_answer.as_deref() == Some("operation-unknown")).await?;
    assert_eq!(till.operation(key).await?.state, State::NeedsAttention);
    bank.knows(&key, result(&key.to_string(), &bank.payments()[0].body)?);
    till.outbox.check_now();
    till.until_state(key, State::Approved).await?;
    assert_eq!(bank.payments().len(), 1, "it was never sent again");
    assert_eq!(till.summary().await?.needs_attention, 0);
    Ok(())
}

#[tokio::test]
async fn a_bank_that_is_at_it_is_asked_again_when_it_said() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::InProgress, Some(1))]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Approved).await?;
    let readings: Vec<_> = till.log(key).await?.into_iter().filter_map(|entry| entry.reading).collect();
    assert_eq!(readings, ["in-progress", "approved"]);
    let payments = bank.payments();
    assert_eq!(payments.len(), 2);
    assert!(payments[1].at.duration_since(payments[0].at) >= std::time::Duration::from_secs(1));
    Ok(())
}

#[tokio::test]
async fn a_bank_that_is_at_it_for_long_holds_up_no_other_sale_and_no_button_hurries_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::InProgress, Some(900))]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    // For the next quarter of an hour nothing changes about it.
    let waiting = till.until(key, "in progress", |operation| operation.last_answer.is_some()).await?;
    assert_eq!((waiting.state, waiting.last_answer.as_deref()), (State::Sending, Some("in-progress")));
    assert!(waiting.not_before.is_some());
    for _ in 0..2 {
        let other = till.pay(100).await?.key;
        till.until_state(other, State::Approved).await?;
        till.outbox.check_now();
    }
    assert_eq!(till.operation(key).await?.state, State::Sending);
    assert_eq!(bank.payments().into_iter().filter(|seen| seen.key == Some(key.to_string())).count(), 1);
    Ok(())
}
