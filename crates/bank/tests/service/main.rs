//! The bank from the outside, in this process: what a program that brings it along relies on.

mod gateway;
mod running;

use bank::{Bank, BankConfig, Gateway, GatewayConfig, LabConfig, OpenError, Secret};
use reqwest::Response;
use running::{KEY, OTHER, Result, coffee, config, start, within};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{net::TcpListener, sync::oneshot};

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_made_once_and_replayed_after_a_restart() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let first = bank.pay(KEY, &coffee()).await?;
    assert_eq!((first.status().as_u16(), &first.headers()["idempotent-replayed"]), (201, &"false".parse()?));
    let bytes = first.bytes().await?;
    bank.end().await?;

    let bank = start(config(dir.path())).await?;
    let again = bank.pay(KEY, &coffee()).await?;
    assert_eq!((again.status().as_u16(), &again.headers()["idempotent-replayed"]), (201, &"true".parse()?));
    assert_eq!(again.bytes().await?, bytes);
    assert_eq!(bank.charges().await?, 1);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_running_at_the_word_to_end_is_answered() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    assert_eq!(bank.fault(json!({"at": "claimed", "do": "delay", "ms": 700})).await?, 200);
    let (url, http) = (bank.url.clone(), bank.http.clone());
    let paying = tokio::spawn(async move {
        let request = http.post(format!("{url}/v1/payments")).bearer_auth("sk_shop").header("Idempotency-Key", KEY);
        request.json(&coffee()).send().await
    });
    within(async || bank.state(KEY).await).await?;
    bank.end().await?;
    assert_eq!(paying.await??.status(), 201);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_owns_a_store() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let second = Bank::open(config(dir.path())).await;
    assert!(matches!(second.err(), Some(OpenError::Lock(_))));
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_another_program_the_lab_needs_its_secret_and_ends_no_process() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    assert_eq!(bank.get("/lab/faults", "sk_shop").await?.status(), 403);
    assert_eq!(bank.get("/lab/faults", "sk_nobody").await?.status(), 401);
    assert_eq!(bank.get("/lab/faults", "lab_run").await?.status(), 200);
    assert_eq!(bank.fault(json!({"at": "received", "do": "abort"})).await?, 400);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_merchant_has_a_secret_that_is_kept() -> Result {
    let dir = tempfile::tempdir()?;
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let bank = Bank::open(BankConfig::new(dir.path().join("bank.db"))).await?;
        let ready = bank.ready(&TcpListener::bind("127.0.0.1:0").await?)?;
        assert!(!format!("{ready:?}").contains("sk_") && serde_json::to_string(&ready)?.contains("sk_"));
        secrets.push(bank.demo_secret().ok_or("no secret")?.expose().to_owned());
        drop(bank);
    }
    assert_eq!(secrets[0], secrets[1]);
    assert!(secrets[0].starts_with("sk_") && secrets[0].len() > 30);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_request_goes_on_when_the_lab_lets_go() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(BankConfig { wait: Duration::from_millis(200), ..config(dir.path()) }).await?;
    assert_eq!(bank.fault(json!({"at": "gateway_answered", "do": "hang"})).await?, 200);
    let hanging = bank.pay(KEY, &coffee()).await?;
    assert_eq!(hanging.status(), 409);
    assert_eq!(hanging.json::<Value>().await?["state"], "processing");
    bank.http.delete(format!("{}/lab/faults", bank.url)).bearer_auth("lab_run").send().await?;
    within(async || bank.state(KEY).await.filter(|state| state == "approved")).await?;
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 201);
    assert_eq!(bank.charges().await?, 1);
    bank.end().await
}

/// What comes back for one request: status, `Allow`, and the problem document's type.
async fn refused(response: Response) -> Result<(u16, Option<String>, String)> {
    let allow = response.headers().get("allow").map(|allow| allow.to_str().map(str::to_owned)).transpose()?;
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let (status, problem) = (response.status().as_u16(), response.json::<Value>().await?);
    assert_eq!(problem["status"], status);
    Ok((status, allow, problem["type"].as_str().unwrap_or_default().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_a_problem_document() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(BankConfig { lab: None, ..config(dir.path()) }).await?;
    let get = async |path: &str| refused(bank.get(path, "sk_shop").await?).await;
    let of = |status, name: &str| (status, None, format!("/problems/{name}"));
    assert_eq!(get("/v1/nothing").await?, of(404, "not-found"));
    assert_eq!(get("/lab/faults").await?, of(404, "not-found"));
    assert_eq!(get("/").await?, of(404, "not-found"));
    assert_eq!(get("/v1/payments/pay_nothing").await?, of(404, "payment-unknown"));
    assert_eq!(get("/v1/refunds/re_nothing").await?, of(404, "payment-unknown"));
    assert_eq!(get(&format!("/v1/operations/{OTHER}")).await?, of(404, "operation-unknown"));
    assert_eq!(get("/v1/operations/7").await?, of(400, "key-invalid"));
    assert_eq!(get("/v1/payments?limit=0").await?, of(400, "request-invalid"));
    assert_eq!(get("/v1/payments?limit=x").await?, of(400, "request-invalid"));
    assert_eq!(get("/v1/payments?after=pay_nothing").await?, of(400, "request-invalid"));
    assert_eq!(refused(bank.get("/v1/policy", "sk_wrong").await?).await?, of(401, "unauthorized"));
    let wrong = json!({"amount": 0, "currency": "EUR", "card": "tok_visa"});
    assert_eq!(refused(bank.pay(KEY, &wrong).await?).await?, of(400, "request-invalid"));
    assert_eq!(refused(bank.pay("7", &coffee()).await?).await?, of(400, "key-invalid"));
    let (status, allow, problem) =
        refused(bank.http.delete(format!("{}/v1/payments", bank.url)).bearer_auth("sk_shop").send().await?).await?;
    assert_eq!((status, problem.as_str()), (405, "/problems/method-not-allowed"));
    let allow = allow.ok_or("no Allow")?;
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    let origin = bank.http.get(format!("{}/v1/policy", bank.url)).bearer_auth("sk_shop").header("origin", "null");
    assert_eq!(refused(origin.send().await?).await?, of(403, "forbidden"));
    let large =
        bank.http.post(format!("{}/v1/payments", bank.url)).bearer_auth("sk_shop").header("idempotency-key", KEY);
    let large = large.header("content-type", "application/json").body(vec![b' '; 70_000]);
    assert_eq!(refused(large.send().await?).await?, of(413, "payload-too-large"));
    let gzip =
        bank.http.post(format!("{}/v1/payments", bank.url)).bearer_auth("sk_shop").header("idempotency-key", KEY);
    let gzip = gzip.header("content-encoding", "gzip").json(&coffee());
    assert_eq!(refused(gzip.send().await?).await?, of(415, "unsupported-media-type"));
    assert_eq!(bank.get(&format!("/v1/operations/{KEY}"), "sk_shop").await?.status(), 404, "nothing of it was claimed");
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_an_unknown_payment_says_first_what_is_known_of_its_key() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(BankConfig { lab: None, ..config(dir.path()) }).await?;
    let of = |status, name: &str| (status, None, format!("/problems/{name}"));
    assert_eq!(refused(bank.refund(KEY, "pay_nothing").await?).await?, of(404, "payment-unknown"));
    assert_eq!(bank.state(KEY).await, None, "the key is free");
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 201);
    assert_eq!(refused(bank.refund(KEY, "pay_nothing").await?).await?, of(422, "key-reused"));
    let cancellation = format!("{}/v1/operations/{OTHER}/cancellation", bank.url);
    assert_eq!(bank.http.put(cancellation).bearer_auth("sk_shop").send().await?.status(), 200);
    assert_eq!(refused(bank.refund(OTHER, "pay_nothing").await?).await?, of(410, "operation-cancelled"));
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_not_sent_to_another_gateway() -> Result {
    let (dir, elsewhere) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let bank = start(config(dir.path())).await?;
    assert_eq!(bank.pay(OTHER, &coffee()).await?.status(), 201, "the bank knows its gateway by now");
    assert_eq!(bank.fault(json!({"at": "claimed", "do": "hang"})).await?, 200);
    let (url, http) = (bank.url.clone(), bank.http.clone());
    let paying = tokio::spawn(async move {
        let request = http.post(format!("{url}/v1/payments")).bearer_auth("sk_shop").header("Idempotency-Key", KEY);
        request.json(&coffee()).send().await
    });
    within(async || bank.state(KEY).await).await?;
    bank.ended.abort(); // as a crash
    paying.abort();
    drop(bank.end);
    let other = Gateway::open(GatewayConfig {
        db: elsewhere.path().join("gateway.db"),
        hosts: Vec::new(),
        secret: None,
        lab: Some(LabConfig { secret: None, may_abort: false }),
    });
    let (other, listener) = (other.await?, TcpListener::bind("127.0.0.1:0").await?);
    let other_url = format!("http://{}", listener.local_addr()?);
    let (end_other, told) = oneshot::channel::<()>();
    let other = tokio::spawn(other.serve(listener, async {
        let _ = told.await;
    }));
    let mut moved = config(dir.path());
    moved.gateway_url = Some(other_url.clone());
    // The dropped tasks let go of the lock when they are next polled.
    let bank = within(async || start(moved.clone()).await.ok()).await?;
    let state = within(async || bank.state(KEY).await.filter(|state| state != "processing")).await?;
    assert_eq!(state, "needs_attention");
    let ledger: Value = bank.http.get(format!("{other_url}/lab/ledger")).send().await?.json().await?;
    assert_eq!(ledger["charges"], 0);
    bank.end().await?;
    let _ = end_other.send(());
    Ok(other.await??)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needed_attention_is_listed_and_settled_after_a_look_at_the_gateway() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(BankConfig { operator: Some(Secret::new("op_1")), ..config(dir.path()) }).await?;
    let gateway_fault = bank.http.put(format!("{}/lab/faults", bank.gateway_url)).bearer_auth("lab_run");
    gateway_fault.json(&json!([{"at": "committed", "do": "foreign"}])).send().await?;
    let stuck = bank.pay(KEY, &coffee()).await?;
    assert_eq!((stuck.status().as_u16(), &stuck.json::<Value>().await?["state"]), (409, &json!("needs_attention")));

    assert_eq!(bank.get("/operator/attention", "sk_shop").await?.status(), 403);
    assert_eq!(bank.get("/operator/attention", "sk_nobody").await?.status(), 401);
    let list: Value = bank.get("/operator/attention", "op_1").await?.json().await?;
    assert_eq!(list["next"], Value::Null, "it is the last page");
    assert_eq!((&list["data"][0]["key"], &list["data"][0]["merchant"]), (&json!(KEY), &json!("shop")), "{list}");
    assert_eq!(list["data"][0]["gateway_attempts"], 1, "{list}");

    // The fault still holds: an answer to a request would be foreign again, the look is not.
    let requeue = format!("{}/operator/operations/shop/{KEY}/requeue", bank.url);
    assert_eq!(bank.http.post(&requeue).bearer_auth("op_1").send().await?.status(), 200);
    within(async || bank.state(KEY).await.filter(|state| state == "approved")).await?;
    assert_eq!((bank.pay(KEY, &coffee()).await?.status().as_u16(), bank.charges().await?), (201, json!(1)));
    let unknown = format!("{}/operator/operations/shop/{OTHER}/requeue", bank.url);
    assert_eq!(bank.http.post(&unknown).bearer_auth("op_1").send().await?.status(), 404);
    bank.end().await?;

    let bank = start(config(dir.path())).await?;
    assert_eq!(bank.get("/operator/attention", "op_1").await?.status(), 404, "without the flag nothing is there");
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_attention_is_listed_to_its_end() -> Result {
    const STUCK: usize = 257;
    let dir = tempfile::tempdir()?;
    let bank = start(BankConfig { operator: Some(Secret::new("op_1")), ..config(dir.path()) }).await?;
    let other = rusqlite::Connection::open(dir.path().join("bank.db"))?;
    let stick = "INSERT INTO operations (scope, key, state, kind, meaning, meaning_made, members, payload, owner, created_ms, reason)
                 VALUES ('shop', ?1, 3, 'payment', zeroblob(32), 1, x'', x'00', 0, 0, 'the test says so')";
    other.execute_batch("BEGIN IMMEDIATE")?;
    for number in 0..STUCK {
        other.execute(stick, [uuid::Uuid::from_u128(0x4000_8000_0000_0000_0000 + number as u128).into_bytes()])?;
    }
    other.execute_batch("COMMIT")?;
    let mut pages = Vec::new();
    let mut query = String::new();
    loop {
        let page: Value = bank.get(&format!("/operator/attention{query}"), "op_1").await?.json().await?;
        pages.push(page["data"].as_array().ok_or("no data")?.len());
        let Some(next) = page["next"].as_i64() else { break };
        query = format!("?after={next}");
        assert!(pages.len() < 5, "{pages:?}");
    }
    assert_eq!(pages, [STUCK - 1, 1]);
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_can_never_be_counted_is_for_a_person() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let away = bank.http.put(format!("{}/lab/faults", bank.gateway_url)).bearer_auth("lab_run");
    away.json(&json!([{"at": "received", "do": "status", "status": 503}])).send().await?;
    let other = rusqlite::Connection::open(dir.path().join("bank.db"))?;
    other.execute_batch(
        "CREATE TRIGGER rule BEFORE UPDATE ON gateway_calls BEGIN SELECT RAISE(ABORT, 'never again'); END",
    )?;
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 409);
    let state = within(async || bank.state(KEY).await.filter(|state| state != "processing")).await?;
    assert_eq!(state, "needs_attention");
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_ask_for_the_health_it_is_found_out_four_times_a_second() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let asked = async || -> Result<u32> {
        let page = bank.http.get(format!("{}/metrics", bank.gateway_url)).send().await?.text().await?;
        let count = "kassa_gateway_http_requests_total{route=\"/v1/gateway\",method=\"GET\",status=\"200\"} ";
        Ok(page.lines().find_map(|line| line.strip_prefix(count)).unwrap_or("0").parse()?)
    };
    // The bank asks its gateway who it is at its start.
    within(async || asked().await.ok().filter(|asked| *asked > 0)).await?;
    let (before, start) = (asked().await?, std::time::Instant::now());
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let (http, url) = (bank.http.clone(), format!("{}/healthz", bank.url));
            tokio::spawn(async move { http.get(url).send().await })
        })
        .collect();
    for task in asking {
        assert_eq!(task.await??.status(), 200);
    }
    let (found_out, may) = (asked().await? - before, 2 + start.elapsed().as_millis() / 250);
    assert!(found_out >= 1 && u128::from(found_out) <= may, "{found_out} times, {may} at most");
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn health_names_the_part_that_is_away() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let health = async || -> Result<(u16, Value)> {
        let response = bank.http.get(format!("{}/healthz", bank.url)).send().await?;
        Ok((response.status().as_u16(), response.json().await?))
    };
    assert_eq!(health().await?, (200, json!({"status": "ok", "store": "ok", "gateway": "ok"})));
    let other = rusqlite::Connection::open(dir.path().join("bank.db"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    assert_eq!(health().await?, (503, json!({"status": "unavailable", "store": "unavailable", "gateway": "ok"})));
    let refused = bank.pay(KEY, &coffee()).await?;
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("retry-after")), (503, true));
    other.execute_batch("ROLLBACK")?;
    assert_eq!((bank.state(KEY).await, bank.charges().await?), (None, json!(0)), "the gateway was not called");
    assert_eq!(bank.pay(KEY, &coffee()).await?.status(), 201);
    bank.end().await?;

    let away = BankConfig { gateway_url: Some("http://127.0.0.1:9".into()), ..config(dir.path()) };
    let bank = start(away).await?;
    let response = bank.http.get(format!("{}/healthz", bank.url)).send().await?;
    assert_eq!(response.status(), 200);
    assert_eq!(response.json::<Value>().await?, json!({"status": "degraded", "store": "ok", "gateway": "away"}));
    let page = bank.http.get(format!("{}/problems/key-reused", bank.url)).send().await?;
    assert!(page.text().await?.contains("The key belongs to another request"));
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_is_half_an_answer_and_not_none() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    for at in ["saved", "received"] {
        assert_eq!(bank.fault(json!({"at": at, "do": "truncate", "times": 1})).await?, 200);
        let mut response = bank.pay(KEY, &coffee()).await?;
        let announced = response.content_length().ok_or("no length")?;
        assert_eq!(response.status(), 201, "the head comes");
        let mut came = 0;
        let broken = loop {
            match response.chunk().await {
                Ok(Some(part)) => came += part.len() as u64,
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert!(broken && came == announced / 2, "{came} of {announced} bytes");
    }
    assert_eq!((bank.pay(KEY, &coffee()).await?.status().as_u16(), bank.charges().await?), (201, json!(1)));
    bank.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_date_of_an_answer_is_what_the_moved_clock_says() -> Result {
    let dir = tempfile::tempdir()?;
    let bank = start(config(dir.path())).await?;
    let ahead_s = async || -> Result<i64> {
        let response = bank.get("/v1/policy", "sk_shop").await?;
        let mut dates = response.headers().get_all("date").iter();
        let date = dates.next().ok_or("no date")?.to_str()?;
        assert!(dates.next().is_none(), "one date");
        let at = jiff::fmt::rfc2822::parse(date)?.timestamp();
        Ok(at.duration_since(jiff::Timestamp::now()).as_secs())
    };
    assert!(ahead_s().await?.abs() < 60);
    assert_eq!(bank.move_clock(25 * 60 * 60).await?, 200);
    assert!((89_940..90_060).contains(&ahead_s().await?));
    bank.end().await
}
