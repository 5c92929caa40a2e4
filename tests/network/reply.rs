//! Answers that the bank did not give, or did not give so.

use serde_json::{Value, json};

use crate::proxy::wire::Message;

/// An answer in its parts. Its length is counted when it is put together.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) version: &'static str,
    pub(crate) status: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn new(status: &str) -> Self {
        Self { version: "HTTP/1.1", status: status.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// A page, such as a hotel's network shows.
    pub(crate) fn page(status: &str) -> Self {
        Self::new(status).header("content-type", "text/html").body("<!doctype html><title>Welcome</title><p>Log in")
    }

    /// A problem document of ours, whole and valid.
    pub(crate) fn problem(name: &str, status: &str) -> Self {
        let code: u16 = status.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or_default();
        let problem = json!({
            "type": format!("/problems/{name}"), "title": "From the middle", "status": code, "detail": "said by the proxy",
            "retryable": matches!(code, 409 | 429 | 500 | 503),
        });
        Self::new(status).header("content-type", "application/problem+json").body(problem.to_string())
    }

    /// The bank's answer in its parts.
    pub(crate) fn of(answer: &Message) -> Self {
        let head = String::from_utf8_lossy(&answer.bytes[..answer.head_bytes]);
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status);
        let fields = lines.filter_map(|line| line.split_once(':'));
        let headers = fields
            .filter(|(name, _)| *name != "content-length")
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Self { headers, body: answer.body().to_vec(), ..Self::new(status) }
    }

    pub(crate) fn status(self, status: &str) -> Self {
        Self { status: status.to_owned(), ..self }
    }

    /// Sets a header, in place of one of that name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let mut reply = self.without(name);
        reply.headers.push((name.to_owned(), value.to_owned()));
        reply
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Changes the body's object.
    pub(crate) fn object(self, change: impl FnOnce(&mut Value)) -> Self {
        let mut object = serde_json::from_slice(&self.body).unwrap_or_default();
        change(&mut object);
        self.body(object.to_string())
    }

    /// Put together, with the body's length where nothing else was said of it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {}\r\n", self.version, self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.headers.iter().any(|(name, _)| name == "content-length" || name == "transfer-encoding") {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    pub(crate) fn message(&self) -> Message {
        let bytes = self.bytes();
        Message { head_bytes: bytes.len() - self.body.len(), bytes }
    }
}
