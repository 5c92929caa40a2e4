//! A bank of a few lines, idempotent by key, that answers by the card: enough to see what the command makes of its answers.

use protocol::{
    Amount, Card, Key, Kind, Operation, OperationState, Outcome, Payment, PaymentRequest, Policy, Problem, ProblemType,
};
use std::{
    collections::HashMap,
    error::Error,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use uuid::Uuid;

/// Approved.
pub(crate) const GOOD: &str = "tok_visa";
/// Declined.
pub(crate) const POOR: &str = "tok_insufficient_funds";
/// Never answered.
pub(crate) const SILENT: &str = "tok_silent";
/// Refused in a way that a person must look at.
pub(crate) const STRANGE: &str = "tok_strange";

/// What the bank has seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// The payment of each key, made once.
    pub(crate) payments: HashMap<Key, Payment>,
    /// How often a payment was asked for.
    pub(crate) requests: u32,
    /// How often a key was looked up.
    pub(crate) lookups: u32,
    /// How many were cancelled.
    pub(crate) cancellations: u32,
    /// From how many requests on it charges and does not answer.
    pub(crate) answers_max: Option<u32>,
    /// Whether a look at a strange one finds it approved.
    pub(crate) is_resolved: bool,
    /// What it answers to who asks it who it is, in place of that.
    pub(crate) problem: Option<ProblemType>,
    /// Whom the secret stands for; `demo` where none is named.
    pub(crate) merchant: Option<&'static str>,
}

#[derive(Clone)]
pub(crate) struct FakeBank {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
}

impl FakeBank {
    pub(crate) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let bank = Self { url: format!("http://{}", listener.local_addr()?), seen: Arc::default() };
        let answering = bank.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bank = answering.clone();
                thread::spawn(move || bank.answer(stream));
            }
        });
        Ok(bank)
    }

    pub(crate) fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One request, one answer. A client that goes away in the middle is nobody's fault.
    fn answer(&self, mut stream: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
        let request = Request::read(&mut stream)?;
        let (status, kind, body) = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/v1/policy") if let Some(kind) = self.seen(|seen| seen.problem) => problem(kind)?,
            ("GET", "/v1/policy") => {
                (200, "application/json", policy(self.seen(|seen| seen.merchant.unwrap_or("demo")))?)
            }
            ("POST", "/v1/payments") => {
                let payment = PaymentRequest::decode(&request.body)?;
                let key = request.key.ok_or("no key")?;
                self.seen(|seen| seen.requests += 1);
                match payment.card.expose() {
                    SILENT => loop {
                        thread::park();
                    },
                    STRANGE => problem(ProblemType::RequestInvalid)?,
                    card => {
                        let answer = self.charge(key, &payment, card)?;
                        while self.seen(|seen| seen.answers_max.is_some_and(|most| seen.requests > most)) {
                            thread::park_timeout(Duration::from_millis(20));
                        }
                        answer
                    }
                }
            }
            ("PUT", path) => {
                let key = path.strip_suffix("/cancellation").and_then(|path| path.rsplit('/').next());
                self.cancel(Key::parse(key.unwrap_or_default())?)?
            }
            ("GET", path) => {
                let key = Key::parse(path.rsplit('/').next().unwrap_or_default())?;
                self.look_up(key)?
            }
            _ => problem(ProblemType::NotFound)?,
        };
        let echo = request.key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
        write!(
            stream,
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{echo}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        )?;
        stream.write_all(&body)?;
        Ok(())
    }

    fn charge(&self, key: Key, request: &PaymentRequest, card: &str) -> Result<Answer, serde_json::Error> {
        let payment = self.seen(|seen| seen.payments.entry(key).or_insert_with(|| pay(key, request, card)).clone());
        let status = if payment.status == Outcome::Approved { 201 } else { 402 };
        Ok((status, "application/json", serde_json::to_vec(&payment)?))
    }

    fn cancel(&self, key: Key) -> Result<Answer, serde_json::Error> {
        let charged = self.seen(|seen| {
            seen.cancellations += 1;
            seen.payments.get(&key).cloned()
        });
        if let Some(payment) = charged {
            let operation = Operation {
                key,
                state: OperationState::Approved,
                kind: Some(Kind::Payment),
                created_at: payment.created_at,
                completed_at: Some(payment.created_at),
                result: Some(serde_json::to_value(payment)?),
            };
            return Ok((200, "application/json", serde_json::to_vec(&operation)?));
        }
        let at = jiff::Timestamp::UNIX_EPOCH;
        let operation = Operation {
            key,
            state: OperationState::Cancelled,
            kind: None,
            created_at: at,
            completed_at: Some(at),
            result: None,
        };
        Ok((200, "application/json", serde_json::to_vec(&operation)?))
    }

    fn look_up(&self, key: Key) -> Result<Answer, Box<dyn Error + Send + Sync>> {
        let is_resolved = self.seen(|seen| {
            seen.lookups += 1;
            seen.is_resolved
        });
        if !is_resolved {
            return Ok(problem(ProblemType::OperationUnknown)?);
        }
        let request = PaymentRequest::decode(br#"{"amount":2490,"currency":"EUR","card":"tok_visa"}"#)?;
        let payment = pay(key, &request, GOOD);
        let operation = Operation {
            key,
            state: OperationState::Approved,
            kind: Some(Kind::Payment),
            created_at: payment.created_at,
            completed_at: Some(payment.created_at),
            result: Some(serde_json::to_value(payment)?),
        };
        Ok((200, "application/json", serde_json::to_vec(&operation)?))
    }
}

type Answer = (u16, &'static str, Vec<u8>);

fn policy(merchant: &str) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Policy {
        bank_id: Uuid::from_u128(0xba4c),
        merchant: merchant.to_owned(),
        claims: Policy::CLAIMS_PERMANENT.to_owned(),
        retention_s: 86_400,
        key_format: "uuid".to_owned(),
        max_body_bytes: 65_536,
        wait_ms: 3_000,
        currencies: protocol::Currency::supported().collect(),
    })
}

fn problem(kind: ProblemType) -> Result<Answer, serde_json::Error> {
    let problem = Problem::new(kind, "as the test wants it");
    Ok((kind.status(), "application/problem+json", serde_json::to_vec(&problem)?))
}

fn pay(key: Key, request: &PaymentRequest, card: &str) -> Payment {
    let is_approved = card == GOOD;
    Payment {
        id: format!("pay_{}", key.short_code()),
        status: if is_approved { Outcome::Approved } else { Outcome::Declined },
        amount: Amount::new(request.amount.get()).unwrap_or(Amount::MIN),
        currency: request.currency,
        card: Some(Card { brand: "visa".to_owned(), last4: "4242".to_owned() }),
        reference: request.reference.clone(),
        approval_code: is_approved.then(|| "8F21K0".to_owned()),
        decline_code: (!is_approved).then(|| "insufficient_funds".to_owned()),
        operation: key,
        short_code: key.short_code(),
        created_at: jiff::Timestamp::UNIX_EPOCH,
    }
}

struct Request {
    method: String,
    path: String,
    key: Option<Key>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut TcpStream) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().ok_or("no method")?, words.next().ok_or("no path")?);
        let (mut key, mut length) = (None, 0);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => key = Some(Key::parse(value)?),
                "content-length" => length = value.trim().parse()?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { method, path, key, body })
    }
}
