//! The bank towards a gateway in trouble.

use crate::running::{KEY, OTHER, Result, coffee, config, start, within};
use bank::{BankConfig, Gateway, GatewayConfig, LabConfig, Secret};
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path, time::Duration};
use tokio::{sync::oneshot, task::JoinHandle};

/// A bank that lets nobody wait long.
fn impatient(dir: &Path) -> BankConfig {
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

/// A gateway that runs by itself.
struct OutsideGateway {
    at: SocketAddr,
    end: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl OutsideGateway {
    async fn start(dir: &Path, at: SocketAddr) -> Result<Self> {
        let lab = Some(LabConfig { secret: Some(Secret::new("lab_run")), may_abort: false });
        let gateway = Gateway::open(GatewayConfig { db: dir.join("gateway.db"), hosts: Vec::new(), secret: None, lab });
        let (gateway, listener) = (gateway.await?, bank::listen(at)?);
        let at = listener.local_addr()?;
        let (end, told) = oneshot::channel();
        let ended = tokio::spawn(gateway.serve(listener, async {
            let _ = told.await;
        }));
        Ok(Self { at, end, ended })
    }

    async fn end(self) -> Result {
        let _ = self.end.send(());
        Ok(self.ended.await??)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_replaced_and_came_back_is_asked_again() -> Result {
    let (dir, elsewhere) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let gateway = OutsideGateway::start(dir.path(), SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let at = gateway.at;
    let config = BankConfig {
        gateway_url: Some(format!("http://{at}")),
        operator: Some(Secret::new("op_1")),
        ..impatient(dir.path())
    };
    let bank = start(config).await?;
    within(async || (bank.pay(OTHER, &coffee()).await.ok()?.status() == 201).then_some(())).await?;
    // Charged, and the answer is lost, when another one takes the place of the gateway.
    assert_eq!(bank.gateway_fault(json!([{"at": "committed", "do": "drop"}])).await?, 200);
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 409);
    gateway.end().await?;
    let other = OutsideGateway::start(elsewhere.path(), at).await?;
    within(async || bank.state(KEY).await.filter(|state| state == "needs_attention")).await?;
    within(async || (bank.pay(&key(1), &coffee()).await.ok()?.status() == 201).then_some(())).await?;
    assert_eq!(bank.charges().await?, 1, "at the other one");
    other.end().await?;

    let gateway = OutsideGateway::start(dir.path(), at).await?;
    let requeue = format!("{}/operator/operations/shop/{KEY}/requeue", bank.url);
    assert_eq!(bank.http.post(&requeue).bearer_auth("op_1").send().await?.status(), 200);
    let state = within(async || bank.state(KEY).await.filter(|state| state != "processing")).await?;
    assert_eq!((state.as_str(), bank.charges().await?), ("approved", json!(2)));
    bank.end().await?;
    gateway.end().await
}
