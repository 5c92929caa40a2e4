//! A bank that is away, busy, or another one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use outbox::answer::{Answer, CallError};
use outbox::{Event, State};
use protocol::{IDEMPOTENCY_KEY, ProblemType};
use tokio::sync::Semaphore;

use crate::bank::{Bank, Do};
use crate::till::{Till, quick, transport, until};

#[tokio::test]
async fn with_no_bank_there_it_stays_saved_and_goes_out_when_there_is_one() -> Result<()> {
    let (mut bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.stop().await;
    let mut events = till.outbox.subscribe();
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    let summary = till.until_summary("out of reach", |summary| summary.bank_reachable == Some(false)).await?;
    assert_eq!(summary.bank_problem.as_deref(), Some("no-connection"));
    assert_eq!((summary.unsettled, summary.waiting), (1, 1));
    assert!(summary.next_attempt_at.is_some());
    let saved = till.operation(key).await?;
    assert_eq!((saved.state, saved.attempts), (State::Saved, 0));
    bank.start().await?;
    till.until_state(key, State::Approved).await?;
    let mut reach = Vec::new();
    while reach.last() != Some(&true) {
        if let Event::Bank { reachable, .. } = events.recv().await? {
            reach.push(reachable);
        }
    }
    assert_eq!(reach, [false, true]);
    assert_eq!(bank.charges(), 1);
    Ok(())
}

/// What went to the bank, as far as it must not come at once or in another order.
#[derive(Default)]
struct Seen {
    /// The lanes of the payments that run, by what they are about.
    running: Vec<i64>,
    /// What each payment that began was about, in that order.
    began: Vec<i64>,
    ended: usize,
    /// The most calls of any kind that ran at once, and how many run.
    most: usize,
    calls: usize,
    /// Calls other than the question who the bank is.
    keyed: usize,
    together: Vec<i64>,
}

/// The sale that a payment of that amount belongs to: each has four that were saved one after the other.
const fn sale(amount: i64) -> i64 {
    (amount - 1) / 4
}

/// The real way to the bank, on which every call is counted, and every payment waits until it is let through.
struct Gate {
    inner: Arc<outbox::HttpTransport>,
    seen: Arc<Mutex<Seen>>,
    let_through: Arc<Semaphore>,
}

impl Gate {
    fn new(bank: &Bank) -> Result<Arc<Gate>> {
        let (seen, let_through) = (Arc::default(), Arc::new(Semaphore::new(0)));
        Ok(Arc::new(Gate { inner: transport(bank)?, seen, let_through }))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn amount(call: &outbox::Call) -> Option<i64> {
    serde_json::from_slice::<serde_json::Value>(call.body.as_deref()?).ok()?["amount"].as_i64()
}

impl outbox::Transport for Gate {
    fn address(&self) -> &str {
        self.inner.address()
    }

    fn call(&self, call: outbox::Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        let paid = amount(&call);
        {
            let mut seen = self.seen();
            seen.calls += 1;
            seen.most = seen.most.max(seen.calls);
            if let Some(amount) = paid {
                let lane = sale(amount);
                if seen.running.contains(&lane) {
                    seen.together.push(amount);
                }
                seen.running.push(lane);
                seen.began.push(amount);
            }
            seen.keyed += usize::from(call.path != protocol::POLICY_PATH);
        }
        let (inner, seen, let_through) = (self.inner.clone(), self.seen.clone(), self.let_through.clone());
        Box::pin(async move {
            if paid.is_some() {
                // Closed, it lets all through.
                if let Ok(permit) = let_through.acquire().await {
                    permit.forget();
                }
            }
            let answer = inner.call(call).await;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.calls -= 1;
            if let Some(amount) = paid {
                seen.ended += 1;
                seen.running.retain(|lane| *lane != sale(amount));
            }
            answer
        })
    }
}

#[tokio::test]
async fn a_wish_to_cancel_holds_back_what_is_counted_and_not_on_its_way() -> Result<()> {
    // A bank that answers three at once and then hangs. Whether the last answer came soon enough for others to be counted ahead of
    // their calls is the machine's to say, so it is tried again where it did not.
    for _ in 0..20 {
        let (bank, mut till) = (Bank::new().await?, Till::new()?);
        let mut saved = Vec::new();
        for amount in (1..=12).map(|number| 4 * number) {
            saved.push((amount, till.pay(amount).await?.key));
        }
        let gate = Gate::new(&bank)?;
        gate.let_through.add_permits(3);
        till.start_with(gate.clone())?;
        until("three at once", || gate.seen().ended == 3 && gate.seen().running.len() == 4).await?;
        let mut wished = None;
        for (amount, key) in saved {
            let is_counted = till.operation(key).await?.state == State::Sending;
            if is_counted && !gate.seen().began.contains(&amount) {
                let operation = till.cancel(key).await?;
                wished = Some((amount, key)).filter(|_| operation.state == State::Sending);
                break;
            }
        }
        gate.let_through.close();
        till.until_summary("all settled", |summary| summary.unsettled == 0).await?;
        assert!(gate.seen().most <= 4, "{} calls at once", gate.seen().most);
        let Some((amount, key)) = wished else { continue };
        assert_eq!(till.operation(key).await?.state, State::Cancelled);
        assert!(!gate.seen().began.contains(&amount), "its request went out after the wish");
        assert_eq!(bank.charges(), 11);
        return Ok(());
    }
    anyhow::bail!("in twenty tries none was wished cancelled while it stood ready")
}

#[tokio::test]
async fn with_many_waiting_an_outage_costs_one_question_at_a_time() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.policy(Some(Do::Html(502)));
    let mut keys = Vec::new();
    for amount in 1..=100 {
        keys.push(till.pay(amount).await?.key);
    }
    let gate = Gate::new(&bank)?;
    gate.let_through.close();
    till.start_with(gate.clone())?;
    until("some probes", || bank.seen("/v1/policy").len() >= 5).await?;
    // And the more somebody wants to know, the less does that change.
    for _ in 0..100 {
        till.outbox.check_now();
        till.outbox.network_changed();
        tokio::task::yield_now().await;
    }
    let probes = bank.seen("/v1/policy").len();
    until("more probes", || bank.seen("/v1/policy").len() >= probes + 5).await?;
    let (most, keyed) = {
        let seen = gate.seen();
        (seen.most, seen.keyed)
    };
    assert_eq!((most, keyed), (1, 0), "one question at a time, and nothing else");
    let waiting = till.summary().await?;
    assert_eq!((waiting.unsettled, waiting.bank_reachable), (100, Some(false)));
    bank.policy(None);
    for key in keys {
        till.until_state(key, State::Approved).await?;
    }
    assert_eq!(bank.charges(), 100);
    assert_eq!(bank.payments().len(), 100);
    Ok(())
}

#[tokio::test]
async fn no_more_than_four_are_in_flight_and_one_of_a_sale() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    let mut keys = Vec::new();
    for amount in 1..=40 {
        keys.push(till.pay_with(amount, "tok_visa", &format!("sale-{}", sale(amount))).await?.key);
    }
    let gate = Gate::new(&bank)?;
    till.start_with(gate.clone())?;
    for ended in 0..keys.len() {
        // While four sales must have something left, four run: a fifth would have had every chance.
        if ended < 24 {
            until("four at once", || gate.seen().running.len() >= 4).await?;
        }
        gate.let_through.add_permits(1);
        until("one more end", || gate.seen().ended > ended).await?;
    }
    for key in &keys {
        till.until_state(*key, State::Approved).await?;
    }
    let seen = gate.seen();
    assert_eq!(seen.most, 4);
    assert!(seen.together.is_empty(), "two of one sale at once: {:?}", seen.together);
    assert_eq!(seen.began.len(), 40, "each once");
    for lane in 0..10 {
        let of_sale: Vec<_> = seen.began.iter().filter(|amount| sale(**amount) == lane).collect();
        assert!(of_sale.len() == 4 && of_sale.is_sorted(), "in the order in which they were saved: {of_sale:?}");
    }
    Ok(())
}

/// The real way to the bank, on which some are never answered.
struct Hanging {
    inner: Arc<outbox::HttpTransport>,
    keys: Vec<protocol::Key>,
}

impl outbox::Transport for Hanging {
    fn address(&self) -> &str {
        self.inner.address()
    }

    fn call(&self, call: outbox::Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        if call.header(IDEMPOTENCY_KEY).is_some_and(|key| self.keys.iter().any(|held| held.to_string() == key)) {
            return Box::pin(std::future::pending());
        }
        self.inner.call(call)
    }
}

#[tokio::test]
async fn three_that_hang_delay_nobody_elses_sale() -> Result<()> {
    let (bank, till) = (Bank::new().await?, Till::new()?);
    // They hang for as long as the test runs, however long that is.
    let patient = outbox::Settings { deadline: jiff::SignedDuration::from_hours(1), ..quick() };
    let mut till = till.set(|outbox| outbox.with_settings(patient));
    let mut hanging = Vec::new();
    for amount in 1..=3 {
        hanging.push(till.pay(amount).await?.key);
    }
    till.start_with(Arc::new(Hanging { inner: transport(&bank)?, keys: hanging.clone() }))?;
    for &key in &hanging {
        till.until_state(key, State::Sending).await?;
    }
    for amount in 4..=10 {
        let key = till.pay(amount).await?.key;
        till.until_state(key, State::Approved).await?;
    }
    for key in hanging {
        assert_eq!(till.operation(key).await?.state, State::Sending);
    }
    Ok(())
}

#[tokio::test]
async fn no_button_and_no_restart_passes_the_banks_retry_after() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::Problem(ProblemType::Unavailable, Some(2))]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_logged(key, "unavailable").await?;
    let other = till.pay(100).await?.key;
    for _ in 0..20 {
        till.outbox.check_now();
        till.outbox.network_changed();
        tokio::task::yield_now().await;
    }
    till.stop().await?;
    till.start(&bank)?;
    till.outbox.check_now();
    till.until_state(key, State::Approved).await?;
    till.until_state(other, State::Approved).await?;
    let asked = bank.seen("/");
    let told_at = bank.payments().first().context("a payment")?.at;
    let after: Vec<_> = asked.into_iter().filter(|seen| seen.at > told_at).collect();
    assert!(after.len() >= 3, "who are you, and the two: {after:?}");
    assert!(after.iter().all(|seen| seen.at.duration_since(told_at) >= Duration::from_secs(2)), "{after:?}");
    Ok(())
}

#[tokio::test]
async fn a_wrong_secret_pauses_everything_and_fails_nothing() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    till.start(&bank)?;
    let first = till.pay(100).await?.key;
    till.until_state(first, State::Approved).await?;
    bank.set_secret("sk_new");
    let key = till.pay(2490).await?.key;
    let summary = till.until_summary("paused", |summary| summary.paused.is_some()).await?;
    assert_eq!((summary.paused.as_deref(), summary.bank_reachable), (Some("unauthorized"), Some(true)));
    let more = till.pay(300).await?.key;
    let probes = bank.seen("/v1/policy").len();
    until("more probes", || bank.seen("/v1/policy").len() >= probes + 3).await?;
    assert_eq!(till.operation(key).await?.state, State::Unknown);
    assert_eq!(till.operation(more).await?.state, State::Saved);
    assert_eq!(bank.payments().len(), 2, "one was enough to find out");
    bank.set_secret(crate::till::SECRET);
    till.until_state(key, State::Approved).await?;
    till.until_state(more, State::Approved).await?;
    till.until_summary("going on", |summary| summary.paused.is_none()).await?;
    Ok(())
}

#[tokio::test]
async fn a_new_secret_is_used_at_once() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.set_secret("sk_new");
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    till.until_summary("paused", |summary| summary.paused.is_some()).await?;
    let token = outbox::Secret::new("sk_new");
    let transport = outbox::HttpTransport::new(&outbox::Bank { url: bank.url(), token })?;
    till.outbox.change_bank(Arc::new(transport));
    till.until_state(key, State::Approved).await?;
    Ok(())
}

#[tokio::test]
async fn another_bank_at_the_same_address_refuses_what_is_not_for_it() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    // The first bank charges it and fails with a valid answer, so the till has no reason to ask who it is.
    bank.next([Do::Problem(ProblemType::Internal, None)]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    until("the payment", || bank.payments().len() == 1).await?;
    let first_bank = bank.become_another();
    let for_whom = format!("other-bank: demo at {first_bank}");
    let waiting = till.until(key, "waiting", |operation| operation.reason.as_ref() == Some(&for_whom)).await?;
    assert_eq!((waiting.state, waiting.bank_id), (State::Unknown, Some(first_bank)));
    assert_eq!(bank.charges(), 0, "the other bank charged it");
    assert!(bank.payments().iter().all(|seen| seen.meant_for == Some(format!("demo at {first_bank}"))));
    bank.become_again(first_bank);
    till.outbox.change_bank(transport(&bank)?);
    till.until_state(key, State::Approved).await?;
    assert_eq!(bank.charges(), 1);
    Ok(())
}

#[tokio::test]
async fn what_was_sent_to_one_bank_waits_for_that_bank() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::HalfAfter]);
    let mut events = till.outbox.subscribe();
    till.start(&bank)?;
    till.until_summary("who it is", |summary| summary.bank_reachable == Some(true)).await?;
    // The answer is lost, and when the bank next says who it is another one has that address.
    bank.policy(Some(Do::Html(502)));
    let key = till.pay(2490).await?.key;
    until("the payment", || bank.payments().len() == 1).await?;
    let first_bank = bank.become_another();
    bank.policy(None);
    let for_whom = format!("other-bank: demo at {first_bank}");
    let waiting = till.until(key, "waiting", |operation| operation.reason.as_ref() == Some(&for_whom)).await;
    let other = till.pay(100).await?.key;
    till.until_state(other, State::Approved).await?;
    let waiting = waiting?;
    assert_eq!((waiting.state, waiting.bank_id), (State::Unknown, Some(first_bank)));
    assert_eq!(till.summary().await?.other_bank, 1);
    till.outbox.check_now();
    let next = till.pay(200).await?.key;
    till.until_state(next, State::Approved).await?;
    let asked = bank.seen("/").into_iter().filter(|seen| seen.key == Some(key.to_string())).count();
    assert_eq!((asked, bank.seen("/v1/operations").len()), (1, 0), "neither sent nor looked up elsewhere");
    // It was told while it waited.
    let mut reasons = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::OperationChanged(operation) = event
            && operation.key == key
        {
            reasons.push(operation.reason);
        }
    }
    reasons.dedup();
    assert_eq!(reasons, [None, Some(for_whom.clone())]);
    bank.become_again(first_bank);
    till.outbox.change_bank(transport(&bank)?);
    till.until_state(key, State::Approved).await?;
    assert_eq!(till.operation(key).await?.reason, None);
    // And its log has both.
    let log = till.log(key).await?;
    let told: Vec<_> = log.iter().filter(|line| ["other-bank", "bank-back"].contains(&line.event.as_str())).collect();
    let told: Vec<_> = told.into_iter().map(|line| (line.event.as_str(), line.detail.as_str())).collect();
    assert_eq!(told, [("other-bank", for_whom.as_str()), ("bank-back", "")]);
    Ok(())
}
