//! The bytes of a payment and of its answer, read and written by hand: load and bank share the processor's cores, and what the load
//! takes is lacking to the bank.

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use protocol::Key;
use std::io::Write;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The secret of the one merchant.
pub(crate) const SECRET: &str = "sk_bench_0123456789";
/// The one merchant.
pub(crate) const MERCHANT: &str = "demo";
/// What every payment is about, in minor units.
pub(crate) const AMOUNT: u32 = 2_490;

/// Bytes read at once.
const READ_BYTES: usize = 4_096;
/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// How keys are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Keys {
    /// As the till makes them: their order follows the time.
    V7,
    /// At random.
    V4,
}

impl Keys {
    /// A new key.
    pub(crate) fn make(self) -> Result<Key> {
        match self {
            Self::V7 => Ok(Key::v7(Timestamp::now(), rand::random())),
            Self::V4 => Key::from_uuid(uuid::Uuid::new_v4()).context("a random key is reserved"),
        }
    }
}

/// One payment that is asked for: the same parts give the same request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) key: Key,
    /// Goes into the reference.
    pub(crate) number: u64,
    pub(crate) amount: u32,
}

impl Ask {
    /// The body of the request.
    pub(crate) fn body(&self) -> String {
        let Self { number, amount, .. } = self;
        format!(r#"{{"amount":{amount},"currency":"EUR","card":"tok_visa","reference":"till-1/{number:09}"}}"#)
    }

    /// Writes the request in place of what the buffer holds.
    pub(crate) fn write(&self, host: &str, buffer: &mut Vec<u8>) -> Result<()> {
        let body = self.body();
        buffer.clear();
        write!(
            buffer,
            "POST /v1/payments HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {SECRET}\r\nidempotency-key: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.key,
            body.len(),
        )?;
        Ok(())
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// Fails on anything but an approved payment.
    pub(crate) fn approved(&self) -> Result<()> {
        let text = || String::from_utf8_lossy(self.body).into_owned();
        ensure!(self.status == 201, "answered {} and not 201: {}", self.status, text());
        ensure!(self.body.starts_with(br#"{"id":"pay_"#), "a payment without its id: {}", text());
        Ok(())
    }
}

/// A connection on which one request is answered after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects to `http://HOST`.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let host = url.strip_prefix("http://").context("an address starts with http://")?.to_owned();
        let stream = TcpStream::connect(&host).await.with_context(|| format!("no connection to {host}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host, request: Vec::with_capacity(512), answer: Vec::with_capacity(2 * READ_BYTES) })
    }

    /// Pays, and reads the whole answer.
    pub(crate) async fn pay(&mut self, ask: &Ask) -> Result<Answer<'_>> {
        ask.write(&self.host, &mut self.request)?;
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        let head = loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the connection was closed in place of an answer");
            }
            ensure!(self.answer.len() <= ANSWER_BYTES_MAX, "an answer beyond all measure");
            if let Some(head) = Head::read(&self.answer)? {
                break head;
            }
            self.answer.reserve(READ_BYTES);
        };
        let end = head.bytes + head.body_bytes;
        ensure!(end <= ANSWER_BYTES_MAX, "an answer beyond all measure");
        self.answer.reserve(end.saturating_sub(self.answer.len()));
        while self.answer.len() < end {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the connection was closed within an answer");
            }
        }
        ensure!(self.answer.len() == end, "more was answered than announced");
        Ok(Answer { status: head.status, replayed: head.replayed, body: &self.answer[head.bytes..] })
    }
}

/// What has to be known of the head of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    replayed: bool,
    /// Up to where the body starts.
    bytes: usize,
    body_bytes: usize,
}

impl Head {
    /// Reads a head; none where it is not whole yet.
    fn read(answer: &[u8]) -> Result<Option<Self>> {
        let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&answer[..end]).context("the head of an answer is no text")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|line| line.get(..3));
        let status = status.and_then(|status| status.parse().ok()).context("an answer without a status")?;
        let (mut body_bytes, mut replayed) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                body_bytes = Some(value.trim().parse().context("the length of an answer is no number")?);
            } else if name.eq_ignore_ascii_case(protocol::IDEMPOTENT_REPLAYED) {
                replayed = value.trim() == "true";
            }
        }
        let body_bytes = body_bytes.context("an answer without its length")?;
        Ok(Some(Self { status, replayed, bytes: end + 4, body_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nidempotent-replayed: true\r\n\r\n{}";
        assert_eq!(Head::read(&answer[..answer.len() - 4]).unwrap(), None);
        let head = Head { status: 201, replayed: true, bytes: answer.len() - 2, body_bytes: 2 };
        assert_eq!(Head::read(answer).unwrap(), Some(head));
        assert!(Head::read(b"HTTP/1.1 201 Created\r\n\r\n").is_err(), "no length");
        assert!(Head::read(b"HTTP/1.1 2\r\ncontent-length: 0\r\n\r\n").is_err(), "no status");
    }

    #[test]
    fn only_an_approved_payment_counts() {
        let answer = |status, body| Answer { status, replayed: false, body };
        assert!(answer(201, br#"{"id":"pay_1"}"#).approved().is_ok());
        assert!(answer(200, br#"{"id":"pay_1"}"#).approved().is_err());
        assert!(answer(201, br#"{}"#).approved().is_err());
    }

    #[test]
    fn a_request_is_one_that_the_bank_takes() {
        let ask = Ask { key: Keys::V7.make().unwrap(), number: 7, amount: AMOUNT };
        let request = protocol::PaymentRequest::decode(ask.body().as_bytes()).unwrap();
        assert_eq!((request.amount.get(), request.reference.as_deref()), (2_490, Some("till-1/000000007")));
        let mut bytes = Vec::new();
        ask.write("127.0.0.1:1", &mut bytes).unwrap();
        assert!(bytes.ends_with(ask.body().as_bytes()));
    }
}
