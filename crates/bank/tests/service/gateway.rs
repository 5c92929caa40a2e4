//! The bank towards a gateway in trouble.

use crate::running::{KEY, OTHER, Result, coffee, config, start, within};
use bank::BankConfig;
use serde_json::{Value, json};
use std::time::Duration;

/// A bank that lets nobody wait long.
fn impatient(dir: &std::path::Path) -> BankConfig {
    BankConfig { wait: Duration::from_millis(50), ..config(dir) }
}

fn key(number: usize) -> String {
    format!("0194f3a0-1c2d-7e3f-8a4b-{number:012x}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_in_trouble_is_tried_one_call_at_a_time_and_all_is_finished_when_it_is_back() -> Result {
    const PAYMENTS: usize = 60;
    let dir = tempfile::tempdir()?;
    let bank = start(impatient(dir.path())).await?;
    assert_eq!(bank.gateway_fault(json!([{"at": "received", "do": "status", "status": 503}])).await?, 200);
    for number in 0..PAYMENTS {
        assert_eq!(bank.pay(&key(number), &coffee()).await?.status(), 409);
    }
    let requests = async || bank.gateway_ledger().await.ok()?["requests"].as_u64();
    let before = requests().await.ok_or("no ledger")?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let more = requests().await.ok_or("no ledger")? - before;
    assert!(more <= 5, "{more} requests in 3 s from {PAYMENTS} operations that wait");
    let health: Value = bank.get("/healthz", "").await?.json().await?;
    assert_eq!(health, json!({"status": "degraded", "store": "ok", "gateway": "failing"}));

    assert_eq!(bank.gateway_fault(json!([])).await?, 200);
    for number in 0..PAYMENTS {
        within(async || bank.state(&key(number)).await.filter(|state| state == "approved")).await?;
    }
    assert_eq!(bank.charges().await?, PAYMENTS);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_operation_in_trouble_keeps_no_other_from_the_gateway() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(impatient(dir.path())).await?;
    assert_eq!(bank.gateway_fault(json!([{"at": "committed", "do": "status", "status": 500, "times": 6}])).await?, 200);
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 409);
    within(async || bank.state(KEY).await.filter(|state| state == "approved")).await?;
    assert_eq!(bank.pay(OTHER, &coffee()).await?.status(), 201);
    assert_eq!(bank.charges().await?, 2);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_longer_than_a_gateway_knows_its_keys_is_asked_by_reference() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(impatient(dir.path())).await?;
    // It charges, and its answer is lost every time: only the question by reference finds it out.
    assert_eq!(bank.gateway_fault(json!([{"at": "committed", "do": "drop"}])).await?, 200);
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 409);
    assert_eq!(bank.state(KEY).await.as_deref(), Some("processing"));
    assert_eq!(bank.move_clock(25 * 60 * 60).await?, 200);
    within(async || bank.state(KEY).await.filter(|state| state == "approved")).await?;

    // One that never came there is sent after the look, and charged now.
    assert_eq!(bank.move_clock(0).await?, 200);
    assert_eq!(bank.gateway_fault(json!([{"at": "received", "do": "drop"}])).await?, 200);
    assert_eq!(bank.pay(OTHER, &coffee()).await?.status(), 409);
    assert_eq!(bank.move_clock(25 * 60 * 60).await?, 200);
    assert_eq!(bank.gateway_fault(json!([])).await?, 200);
    within(async || bank.state(OTHER).await.filter(|state| state == "approved")).await?;
    assert_eq!(bank.charges().await?, 2);
    bank.end().await
}
