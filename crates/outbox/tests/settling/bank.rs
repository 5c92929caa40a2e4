//! A bank that does what a test tells it, and remembers every request. It charges a key once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use protocol::{Key, Policy, Problem, ProblemType};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// What to do with the next payment.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    /// Charge it and answer.
    Handle,
    /// Charge it and close without an answer.
    DropAfter,
    /// Close without reading further.
    DropBefore,
    /// Charge it and send half of the answer.
    HalfAfter,
    /// Charge it, and never answer.
    HangAfter,
    /// Answer with that problem, and that `Retry-After`.
    Problem(ProblemType, Option<u32>),
    /// Answer with that status and HTML.
    Html(u16),
    /// Send the client elsewhere.
    Redirect,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) meant_for: Option<String>,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    script: VecDeque<Do>,
    /// What to do with the next cancellations.
    cancellations: VecDeque<Do>,
    /// What its clock says, by a date as HTTP writes it; nothing where there is none.
    date: Option<String>,
    always: Option<Do>,
    policy: Option<Do>,
    secret: String,
    bank_id: Uuid,
    results: BTreeMap<String, Value>,
    charges: u32,
}

/// The bank. It goes away with `stop`, and comes back on the same port with `start`.
pub(crate) struct Bank {
    state: Arc<Mutex<State>>,
    port: u16,
    server: Option<JoinHandle<()>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bank {
    pub(crate) async fn new() -> Result<Bank> {
        let state = State { secret: "sk_test".to_owned(), bank_id: Uuid::new_v4(), ..State::default() };
        let mut bank = Bank { state: Arc::new(Mutex::new(state)), port: 0, server: None };
        bank.start().await?;
        Ok(bank)
    }

    pub(crate) async fn start(&mut self) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        self.port = listener.local_addr()?.port();
        let state = self.state.clone();
        self.server = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                tokio::spawn(async move {
                    // A client that hangs up is its own business.
                    let _ = serve(stream, &state).await;
                });
            }
        }));
        Ok(())
    }

    /// Refuses connections from now on. What runs goes on.
    pub(crate) async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            // The port is free once the listener is gone.
            let _ = server.await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What to do with the next payments, in turn; the rest is handled.
    pub(crate) fn next(&self, script: impl IntoIterator<Item = Do>) {
        lock(&self.state).script.extend(script);
    }

    /// What to do with the next cancellations, in turn; the rest is handled.
    pub(crate) fn next_cancellations(&self, script: impl IntoIterator<Item = Do>) {
        lock(&self.state).cancellations.extend(script);
    }

    /// What its clock says in every answer.
    pub(crate) fn says_date(&self, at: jiff::Timestamp) {
        let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        lock(&self.state).date = Some(date);
    }

    /// What to do with every payment that has no other instruction.
    pub(crate) fn always(&self, what: Option<Do>) {
        lock(&self.state).always = what;
    }

    /// What to do with `GET /v1/policy`.
    pub(crate) fn policy(&self, what: Option<Do>) {
        lock(&self.state).policy = what;
    }

    pub(crate) fn set_secret(&self, secret: &str) {
        lock(&self.state).secret = secret.to_owned();
    }

    /// Becomes another bank, with the same address.
    pub(crate) fn become_another(&self) -> Uuid {
        let mut state = lock(&self.state);
        std::mem::replace(&mut state.bank_id, Uuid::new_v4())
    }

    pub(crate) fn become_again(&self, bank_id: Uuid) {
        lock(&self.state).bank_id = bank_id;
    }

    /// What `GET /v1/operations/{key}` finds.
    pub(crate) fn knows(&self, key: &Key, result: Value) {
        lock(&self.state).results.insert(key.to_string(), result);
    }

    pub(crate) fn charges(&self) -> u32 {
        lock(&self.state).charges
    }

    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        lock(&self.state).seen.iter().filter(|seen| seen.path.starts_with(path)).cloned().collect()
    }

    pub(crate) fn payments(&self) -> Vec<Seen> {
        self.seen("/v1/payments")
    }
}

/// What stands in place of a result under a key that never charges.
const CANCELLED: &str = "cancelled";

/// An operation as a look-up and a cancellation are answered.
fn operation(key: &str, result: &Value) -> Value {
    let times = json!({"created_at": "2026-11-29T10:00:00Z", "completed_at": "2026-11-29T10:00:01Z"});
    let mut operation = if *result == CANCELLED {
        json!({"key": key, "state": CANCELLED, "kind": null, "result": null})
    } else {
        let kind = if result["payment_id"].is_string() { "refund" } else { "payment" };
        json!({"key": key, "state": result["status"], "kind": kind, "result": result})
    };
    for (name, time) in times.as_object().into_iter().flatten() {
        operation[name] = time.clone();
    }
    operation
}

/// The result that the bank stores for a refund.
fn refund<'a>(key: &str, body: &[u8], mut payments: impl Iterator<Item = &'a Value>) -> Result<Value> {
    let request: Value = serde_json::from_slice(body)?;
    let key: Key = key.parse()?;
    let payment = payments.find(|result| result["id"] == request["payment_id"]).context("a refund of no payment")?;
    Ok(json!({
        "id": format!("re_{}", key.short_code()), "status": "approved", "amount": request["amount"],
        "currency": payment["currency"], "payment_id": request["payment_id"], "operation": key,
        "short_code": key.short_code(), "created_at": "2026-11-29T10:00:00Z",
    }))
}

/// The result that the bank stores for that request.
pub(crate) fn result(key: &str, body: &[u8]) -> Result<Value> {
    let request: Value = serde_json::from_slice(body)?;
    let key: Key = key.parse()?;
    let declines = request["card"] == "tok_insufficient_funds";
    let mut result = json!({
        "id": format!("pay_{}", key.short_code()), "status": if declines { "declined" } else { "approved" },
        "amount": request["amount"], "currency": request["currency"], "card": {"brand": "visa", "last4": "4242"},
        "reference": request["reference"], "operation": key, "short_code": key.short_code(),
        "created_at": "2026-11-29T10:00:00Z",
    });
    let code = if declines { ("decline_code", "insufficient_funds") } else { ("approval_code", "8F21K0") };
    result[code.0] = json!(code.1);
    Ok(result)
}

async fn serve(mut stream: TcpStream, state: &Mutex<State>) -> Result<()> {
    let (seen, authorized) = read(&mut stream, state).await?;
    let what = {
        let mut state = lock(state);
        state.seen.push(seen.clone());
        if seen.path == protocol::POLICY_PATH {
            state.policy.clone()
        } else if seen.method == "POST" {
            state.script.pop_front().or_else(|| state.always.clone())
        } else if seen.method == "PUT" {
            state.cancellations.pop_front()
        } else {
            None
        }
    };
    let what = what.unwrap_or(Do::Handle);
    let answer = match &what {
        _ if !authorized => problem(&seen, ProblemType::Unauthorized, None)?,
        Do::Handle if is_for_another(&seen, state) => problem(&seen, ProblemType::Forbidden, None)?,
        Do::Handle | Do::DropAfter | Do::HalfAfter | Do::HangAfter => handle(&seen, state).await?,
        Do::DropBefore => return Ok(()),
        Do::Problem(kind, retry_after) => problem(&seen, *kind, *retry_after)?,
        Do::Html(status) => http(*status, "text/html", &[], b"<html>welcome</html>"),
        Do::Redirect => http(307, "text/html", &[("Location", "/v1/payments/elsewhere".to_owned())], b""),
    };
    let date = lock(state).date.clone();
    let answer = match date {
        Some(date) => String::from_utf8(answer)?.replacen("\r\n", &format!("\r\nDate: {date}\r\n"), 1).into_bytes(),
        None => answer,
    };
    match what {
        Do::DropAfter => {}
        Do::HalfAfter => stream.write_all(answer.get(..answer.len() - 20).unwrap_or_default()).await?,
        Do::HangAfter => std::future::pending().await,
        _ => stream.write_all(&answer).await?,
    }
    stream.shutdown().await?;
    Ok(())
}

async fn read(stream: &mut TcpStream, state: &Mutex<State>) -> Result<(Seen, bool)> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        anyhow::ensure!(stream.read_buf(&mut bytes).await? > 0, "the client hung up");
    };
    let head = String::from_utf8(bytes.get(..head_end).context("a head")?.to_vec())?;
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let length: usize = header("content-length").map_or(Ok(0), |length| length.parse())?;
    while bytes.len() < head_end + length {
        anyhow::ensure!(stream.read_buf(&mut bytes).await? > 0, "the client hung up");
    }
    let mut words = head.split(' ');
    let seen = Seen {
        at: Instant::now(),
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        key: header("idempotency-key"),
        meant_for: header(protocol::BANK_ID)
            .zip(header(protocol::MERCHANT))
            .map(|(id, merchant)| format!("{merchant} at {id}")),
        body: bytes.split_off(head_end),
    };
    let wanted = format!("Bearer {}", lock(state).secret);
    Ok((seen, header("authorization") == Some(wanted)))
}

fn is_for_another(seen: &Seen, state: &Mutex<State>) -> bool {
    let own = format!("demo at {}", lock(state).bank_id);
    seen.meant_for.as_ref().is_some_and(|meant_for| *meant_for != own)
}

async fn handle(seen: &Seen, state: &Mutex<State>) -> Result<Vec<u8>> {
    if seen.path == protocol::POLICY_PATH {
        let policy = policy(lock(state).bank_id);
        return Ok(http(200, "application/json", &[], serde_json::to_string(&policy)?.as_bytes()));
    }
    if let Some(key) = seen.path.strip_prefix("/v1/operations/") {
        return match key.strip_suffix("/cancellation") {
            Some(key) => {
                let result = lock(state).results.entry(key.to_owned()).or_insert_with(|| json!(CANCELLED)).clone();
                Ok(http(200, "application/json", &[], operation(key, &result).to_string().as_bytes()))
            }
            None => match lock(state).results.get(key) {
                Some(result) => Ok(http(200, "application/json", &[], operation(key, result).to_string().as_bytes())),
                None => problem(seen, ProblemType::OperationUnknown, None),
            },
        };
    }
    let key = seen.key.clone().context("a payment without a key")?;
    let mut state = lock(state);
    let result = match state.results.get(&key) {
        Some(result) if *result == CANCELLED => return problem(seen, ProblemType::OperationCancelled, None),
        Some(result) => result.clone(),
        None if seen.path == protocol::REFUNDS_PATH => {
            let result = refund(&key, &seen.body, state.results.values())?;
            state.results.insert(key.clone(), result.clone());
            result
        }
        None => {
            let result = result(&key, &seen.body)?;
            state.charges += u32::from(result["status"] == "approved");
            state.results.insert(key.clone(), result.clone());
            result
        }
    };
    let status = if result["status"] == "approved" { 201 } else { 402 };
    Ok(http(status, "application/json", &[("Idempotency-Key", key)], result.to_string().as_bytes()))
}

fn policy(bank_id: Uuid) -> Policy {
    Policy {
        bank_id,
        merchant: "demo".to_owned(),
        claims: Policy::CLAIMS_PERMANENT.to_owned(),
        retention_s: 86_400,
        key_format: "uuid".to_owned(),
        max_body_bytes: 65_536,
        wait_ms: 3_000,
        currencies: vec![protocol::Currency::EUR],
    }
}

fn problem(seen: &Seen, kind: ProblemType, retry_after: Option<u32>) -> Result<Vec<u8>> {
    let mut headers = Vec::new();
    if let Some(key) = &seen.key {
        headers.push(("Idempotency-Key", key.clone()));
    }
    if let Some(seconds) = retry_after {
        headers.push(("Retry-After", seconds.to_string()));
    }
    let body = serde_json::to_string(&Problem::new(kind, "as told"))?;
    Ok(http(kind.status(), Problem::MEDIA_TYPE, &headers, body.as_bytes()))
}

fn http(status: u16, content_type: &str, headers: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("Connection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}
