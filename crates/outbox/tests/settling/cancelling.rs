//! The wish to cancel, brought to the bank until it says how it ended.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use outbox::{AcceptError, CancelAs, CancelError, LateAnswer, State, accept_offline, cancel};
use protocol::{Key, ProblemType};
use rusqlite::Connection;
use store::{Priority, WriteError};

use crate::bank::{Bank, Do, result};
use crate::till::{Till, until};

/// What the bank was asked about that key, by method, in turn.
fn asked(bank: &Bank, key: Key) -> Vec<String> {
    let key = key.to_string();
    let about = |path: &str| path.contains(&key);
    let seen = bank.seen("/v1/").into_iter().filter(|seen| about(&seen.path) || seen.key.as_ref() == Some(&key));
    seen.map(|seen| seen.method).collect()
}

#[tokio::test]
async fn what_was_never_sent_is_cancelled_at_once_and_the_bank_is_told() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let key = till.pay(2490).await?.key;
    let cancelled = till.cancel(key).await?;
    assert_eq!((cancelled.state, cancelled.tombstone, cancelled.attempts), (State::Cancelled, true, 0));
    assert_eq!(till.summary().await?.tombstones, 1);
    // Told through trouble, as anything is.
    bank.next_cancellations([Do::DropAfter, Do::Problem(ProblemType::Internal, None), Do::HalfAfter]);
    till.start(&bank)?;
    let told = till.until(key, "told", |operation| !operation.tombstone).await?;
    assert_eq!((told.state, told.due_at, told.settled_at), (State::Cancelled, None, cancelled.settled_at));
    assert_eq!(asked(&bank, key), ["PUT"; 4]);
    assert_eq!((bank.charges(), bank.payments().len()), (0, 0));
    assert_eq!(till.summary().await?.tombstones, 0);
    // Once more, and at the bank: the same.
    assert_eq!(till.cancel(key).await?.state, State::Cancelled);
    till.outbox.check_now();
    let paid = till.pay(2490).await?.key;
    till.until_state(paid, State::Approved).await?;
    assert_eq!(asked(&bank, key).len(), 4, "nothing more is owed");
    Ok(())
}

#[tokio::test]
async fn a_copy_that_sent_what_was_cancelled_here_is_an_alarm_and_no_change() -> Result<()> {
    let (bank, till) = (Bank::new().await?, Till::new()?);
    let alarms: Arc<Mutex<Vec<LateAnswer>>> = Arc::default();
    let heard = alarms.clone();
    let mut till = till.set(|outbox| {
        outbox.on_late_answer(Arc::new(move |_, _, late| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(late.clone());
            Ok(())
        }))
    });
    let key = till.pay(2490).await?.key;
    // A copy of this file sent it.
    let body = br#"{"amount":2490,"currency":"EUR","card":"tok_visa","reference":"till-1/1042"}"#;
    let charged = result(&key.to_string(), body)?;
    bank.knows(&key, charged.clone());
    till.cancel(key).await?;
    till.start(&bank)?;
    let told = till.until(key, "told", |operation| !operation.tombstone).await?;
    assert_eq!((told.state, told.result), (State::Cancelled, None));
    let late = till.log(key).await?.pop().map(|entry| (entry.event, entry.reading));
    assert_eq!(late, Some(("late-answer".to_owned(), Some("approved".to_owned()))));
    let alarms = alarms.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(alarms, [LateAnswer { state: State::Approved, result: Some(charged.to_string()) }]);
    Ok(())
}

#[tokio::test]
async fn of_what_was_perhaps_sent_only_the_cancellation_is_sent_from_the_wish_on() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.always(Some(Do::DropBefore));
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::Unknown).await?;
    let wished = till.cancel(key).await?;
    assert!(!wished.state.is_final() && wished.cancel_wished_at.is_some(), "{wished:?}");
    let sent = bank.payments().len();
    bank.next_cancellations([Do::DropBefore, Do::Problem(ProblemType::InProgress, Some(1))]);
    let cancelled = till.until_state(key, State::Cancelled).await?;
    assert!(!cancelled.tombstone, "the bank said so itself");
    // One may have been on its way when the wish was saved.
    assert!(bank.payments().len() <= sent + 1, "{:?}", asked(&bank, key));
    let requests = asked(&bank, key);
    let first_put = requests.iter().position(|method| method == "PUT").unwrap_or(usize::MAX);
    assert!(requests.iter().skip(first_put).all(|method| method == "PUT"), "{requests:?}");
    assert_eq!(bank.charges(), 0);
    Ok(())
}

#[tokio::test]
async fn a_wish_that_comes_while_its_request_is_on_its_way_is_due_at_once_after_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::HangAfter]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    until("the request is there", || bank.payments().len() == 1).await?;
    let wished = till.cancel(key).await?;
    assert_eq!((wished.state, wished.due_at), (State::Sending, None), "its call still runs");
    till.stop().await?;
    till.start(&bank)?;
    // It was charged all the same: that is its end.
    let ended = till.until(key, "final", |operation| operation.state.is_final()).await?;
    assert_eq!((ended.state, ended.attempts), (State::Approved, 1));
    assert_eq!(asked(&bank, key), ["POST", "PUT"]);
    assert_eq!(bank.charges(), 1);
    let refused = till.cancel(key).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("approved already")));
    Ok(())
}

#[tokio::test]
async fn what_needs_attention_can_be_cancelled_at_the_bank_and_is_never_sent_again() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::KeyReused, None)]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_state(key, State::NeedsAttention).await?;
    till.cancel(key).await?;
    till.until_state(key, State::Cancelled).await?;
    assert_eq!(asked(&bank, key), ["POST", "PUT"]);
    Ok(())
}

/// A write of the till's own, with what it refused.
async fn write<E: Send + 'static>(
    till: &Till,
    change: impl FnOnce(&Connection) -> Result<(), E> + Send + 'static,
) -> Option<E> {
    match till.store.write(Priority::Click, change).await {
        Err(WriteError::Refused(error)) => Some(error),
        _ => None,
    }
}

#[tokio::test]
async fn cancelling_and_accepting_offline_exclude_each_other() -> Result<()> {
    let till = Till::new()?;
    let now = jiff::Timestamp::now();
    let (gone, kept) = (till.pay(2490).await?.key, till.pay(990).await?.key);
    let accept = move |key: Key| move |tx: &Connection| accept_offline(tx, &key, now).map(drop);
    let wish = move |key: Key, by| move |tx: &Connection| cancel(tx, &key, by, now).map(drop);
    assert!(write(&till, accept(gone)).await.is_none());
    assert!(write(&till, accept(gone)).await.is_none(), "again");
    assert!(matches!(write(&till, wish(gone, CancelAs::Wish)).await, Some(CancelError::AcceptedOffline(_))));
    assert_eq!(till.operation(gone).await?.state, State::Saved);
    assert!(write(&till, wish(gone, CancelAs::WriteOff)).await.is_none());
    assert_eq!(till.operation(gone).await?.state, State::Cancelled);

    till.store
        .write(Priority::Click, move |tx| {
            tx.execute("UPDATE operations SET state = 'unknown' WHERE key = ?1", [kept.as_bytes()])
        })
        .await?;
    assert!(write(&till, wish(kept, CancelAs::Wish)).await.is_none());
    assert!(matches!(write(&till, accept(kept)).await, Some(AcceptError::CancelWished(_))));
    assert!(write(&till, accept(gone)).await.is_none(), "accepted before it ended");
    let unknown: Key = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b".parse()?;
    assert!(matches!(write(&till, accept(unknown)).await, Some(AcceptError::Unknown)));
    assert!(matches!(write(&till, wish(unknown, CancelAs::Wish)).await, Some(CancelError::Unknown)));

    // The file refuses what the code would not do.
    for change in [
        "UPDATE operations SET accepted_offline_at = 1 WHERE cancel_wished_at IS NOT NULL AND accepted_offline_at IS NULL",
        "UPDATE operations SET cancel_wished_at = NULL WHERE cancel_wished_at IS NOT NULL",
        "UPDATE operations SET attempts = attempts + 1 WHERE cancel_wished_at IS NOT NULL",
        "UPDATE operations SET tombstone = 1 WHERE state = 'unknown'",
    ] {
        let refused = till.store.write(Priority::Click, move |tx| tx.execute(change, [])).await;
        assert!(refused.is_err(), "{change}");
    }
    Ok(())
}
