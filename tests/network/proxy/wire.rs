//! As much of HTTP/1.1 as the proxy must see: where a message ends, what a request asks for, and how an answer can be framed
//! otherwise.

use std::io;

use anyhow::{Context, Result, bail, ensure};
use tokio::{io::AsyncReadExt, net::TcpStream};

/// No message of the till or the bank is longer.
const MESSAGE_BYTES_MAX: usize = 256 * 1_024;

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `GET /v1/policy`: who the bank is.
    Policy,
    /// `POST` with a key: an operation is sent.
    Keyed,
    /// `GET /v1/operations/{key}`.
    LookUp,
    /// `PUT /v1/operations/{key}/cancellation`.
    Cancellation,
    /// All else.
    Other,
}

/// A message, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    /// Where the body begins.
    pub(crate) head_bytes: usize,
}

impl Message {
    /// Reads one whole message; none where the peer closed before its first byte.
    pub(crate) async fn read(stream: &mut TcpStream) -> Result<Option<Self>> {
        let mut bytes = Vec::new();
        loop {
            if let Some(message) = Self::whole(&bytes)? {
                ensure!(message.bytes.len() == bytes.len(), "more than one message at once");
                return Ok(Some(message));
            }
            ensure!(bytes.len() < MESSAGE_BYTES_MAX, "a message with no end");
            if stream.read_buf(&mut bytes).await? == 0 {
                ensure!(bytes.is_empty(), io::Error::from(io::ErrorKind::UnexpectedEof));
                return Ok(None);
            }
        }
    }

    /// The message at the beginning of some bytes, once it is there as a whole.
    pub(crate) fn whole(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(head) = Self::head_alone(bytes) else { return Ok(None) };
        let body_bytes = match head.header("content-length") {
            Some(length) => length.parse().context("a length that is no number")?,
            None if head.header("transfer-encoding").is_some() => bail!("a message in chunks is not understood here"),
            None => 0,
        };
        let end = head.head_bytes + body_bytes;
        Ok((bytes.len() >= end).then(|| Self { bytes: bytes[..end].to_vec(), ..head }))
    }

    /// Its head, once that is there as a whole.
    pub(crate) fn head_alone(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        Some(Self { bytes: bytes[..end].to_vec(), head_bytes: end })
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        std::str::from_utf8(&self.bytes[..self.head_bytes]).unwrap_or_default().trim_end().split("\r\n")
    }

    /// A header's value, whatever the case of its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head_bytes..]
    }

    /// What a request is about, and the key that it names.
    pub(crate) fn asks(&self) -> (Kind, Option<String>) {
        let mut words = self.lines().next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let below = path.strip_prefix("/v1/operations/");
        match (method, below, self.header("idempotency-key")) {
            ("GET", None, None) if path == "/v1/policy" => (Kind::Policy, None),
            ("POST", None, Some(key)) => (Kind::Keyed, Some(key.to_owned())),
            ("GET", Some(key), None) => (Kind::LookUp, Some(key.to_owned())),
            ("PUT", Some(below), _) => (Kind::Cancellation, below.split_once('/').map(|(key, _)| key.to_owned())),
            _ => (Kind::Other, None),
        }
    }

    /// The same answer with one header less.
    fn head_without(&self, name: &str) -> String {
        let kept = self
            .lines()
            .filter(|line| !line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name)));
        kept.fold(String::new(), |head, line| head + line + "\r\n")
    }

    /// The same answer in chunks of so many bytes.
    pub(crate) fn in_chunks(&self, chunk_bytes: usize) -> Self {
        let head = self.head_without("content-length") + "transfer-encoding: chunked\r\n\r\n";
        let mut bytes = head.clone().into_bytes();
        for chunk in self.body().chunks(chunk_bytes) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        Self { bytes, head_bytes: head.len() }
    }

    /// The same answer, its body ended by the end of the connection alone.
    pub(crate) fn until_close(&self) -> Self {
        let head = self.head_without("content-length") + "connection: close\r\n\r\n";
        Self { bytes: [head.as_bytes(), self.body()].concat(), head_bytes: head.len() }
    }
}
