//! The way to the bank: one request, one answer, nothing done behind the outbox's back.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::IDEMPOTENCY_KEY;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url};

use crate::answer::{Answer, CallError, Lost};

/// Longest time to a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// Longest time from the start of a call to the last byte of its answer.
const WHOLE: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 65_536;

/// A text that is never printed: its `Debug` is `Secret(…)`. It is not kept in the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text as a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the header that it goes in.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where the bank (or whoever the [`Contract`](crate::Contract) describes) is, and our secret there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Its address: `https://…`, or `http://` on this machine; perhaps with a path, which then stands before each call's. No user,
    /// no query.
    pub url: String,
    /// What names us there, sent as `Authorization: Bearer …` (RFC 6750) with each call. Nothing is sent where it is empty; a
    /// contract may put another `authorization` into its calls.
    pub token: Secret,
}

impl Bank {
    /// That address with that secret.
    #[must_use]
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Bank {
        Bank { url: url.into(), token: Secret::new(token) }
    }
}

/// Why a bank can't be asked at all. Each text is one line for people, without the secret.
#[derive(Debug, thiserror::Error)]
pub enum BankError {
    /// The address is none, or has a user, a query or a fragment.
    #[error("the bank's address is no http or https address, or has more than a host and a path")]
    Address,
    /// Money and secret would go over the network in the clear.
    #[error("the bank's address must begin with https:// unless it is on this machine")]
    NotEncrypted,
    /// The secret has characters that no header can hold.
    #[error("the bank's secret has characters that can't be sent")]
    Token,
    /// The client could not be made.
    #[error("no HTTP client: {0}")]
    Client(reqwest::Error),
}

/// One request, as a [`Contract`](crate::Contract) makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST`, `PUT`.
    pub method: String,
    /// Path below the bank's address, beginning with `/`, perhaps with a `?query`. It stands in the log: no secret in it.
    pub path: String,
    /// Headers beside those that the transport makes: the key, above all. One of the same name stands in the place of the
    /// transport's own `authorization` and `content-type`.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte; `application/json` where no header says otherwise.
    pub body: Option<Vec<u8>>,
}

impl Call {
    /// A call with no headers and no body.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Call {
        Call { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: None }
    }

    /// The same call with one more header. A name or a value that no header can hold sets the operation aside.
    #[must_use]
    pub fn with(mut self, name: &str, value: String) -> Call {
        self.headers.push((name.to_owned(), value));
        self
    }

    /// The value of a header, by its name in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What carries calls to the bank. It must never send a call twice, follow a redirect, or say that no connection was made
/// where a byte may have left: by that word alone an operation counts as never sent.
pub trait Transport: Send + Sync + 'static {
    /// The bank's address, without a secret: it is kept in the file, so that a `Retry-After` is held where it was asked for.
    fn address(&self) -> &str;

    /// Makes one call, now. The future may be dropped at any time: after 15 s ([`Settings::deadline`](crate::Settings::deadline)),
    /// and where the program ends.
    ///
    /// # Errors
    /// Why there is no answer, see [`CallError`]. An answer of any status is none.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>>;
}

/// The real one, over HTTP: 2 s to a connection, 10 s in all, an answer up to 64 KiB, no redirects, no system proxy, no kept
/// connections, and no resend of its own. Certificates are checked as the machine does.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl HttpTransport {
    /// Makes a client for that bank.
    ///
    /// # Errors
    /// The address or the secret can't be used: see [`BankError`].
    pub fn new(bank: &Bank) -> Result<Self, BankError> {
        let mut url = Url::parse(&bank.url).map_err(|_| BankError::Address)?;
        let plain = !url.has_host() || !url.username().is_empty() || url.password().is_some();
        if plain || url.query().is_some() || url.fragment().is_some() {
            return Err(BankError::Address);
        }
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .redirect(reqwest::redirect::Policy::none())
            // A system proxy must not see a bank on this machine, and resends are ours alone to make and to count.
            .no_proxy()
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .referer(false)
            .user_agent(concat!("kassa-outbox/", env!("CARGO_PKG_VERSION")));
        builder = match url.scheme() {
            "https" => builder.https_only(true),
            // No certificates are looked for where none are used: a bare machine may have none.
            "http" if is_loopback(&url) => builder.tls_certs_only([]),
            "http" => return Err(BankError::NotEncrypted),
            _ => return Err(BankError::Address),
        };
        let authorization = match bank.token.expose() {
            "" => None,
            token => {
                let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| BankError::Token)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(HttpTransport { client: builder.build().map_err(BankError::Client)?, url, authorization })
    }

    async fn exchange(self, call: Call) -> Result<Answer, CallError> {
        let unsendable = |what: &str| CallError::Unsendable(format!("{what} can't be sent"));
        let method = Method::from_bytes(call.method.as_bytes()).map_err(|_| unsendable("the method"))?;
        let mut url = self.url;
        let (path, query) =
            call.path.split_once('?').map_or((call.path.as_str(), None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        url.set_query(query);
        let mut headers = HeaderMap::new();
        if let Some(authorization) = self.authorization {
            headers.insert(AUTHORIZATION, authorization);
        }
        for (name, value) in call.headers {
            // As bytes: a merchant's name need not be ASCII.
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable(&name))?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable("a header"))?;
            headers.insert(name, value);
        }
        let mut request = self.client.request(method, url);
        if let Some(body) = call.body {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            request = request.body(body);
        }
        let response = request.headers(headers).send().await.map_err(not_answered)?;
        read(response).await
    }
}

impl Transport for HttpTransport {
    fn address(&self) -> &str {
        self.url.as_str()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
        Box::pin(self.clone().exchange(call))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Only a failed connection proves that nothing left.
fn not_answered(error: reqwest::Error) -> CallError {
    let (unsendable, no_connection) = (error.is_builder(), error.is_connect());
    let how = if error.is_timeout() { Lost::TimeOut } else { Lost::Reset };
    let detail = chain(&error.without_url());
    match (unsendable, no_connection) {
        (true, _) => CallError::Unsendable(detail),
        (false, true) => CallError::NoConnection(detail),
        (false, false) => CallError::NoAnswer { how, detail },
    }
}

async fn read(mut response: Response) -> Result<Answer, CallError> {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    // A box in the middle may say it twice. Said otherwise too, it is an echo of nothing: no key comes of a list (RFC 9110, 5.3).
    let all = |name: &str| {
        let said = response.headers().get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let said = said.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        (!said.is_empty()).then(|| said.join(", "))
    };
    let mut answer = Answer {
        status: response.status().as_u16(),
        content_type: text(CONTENT_TYPE.as_str()),
        retry_after: text(RETRY_AFTER.as_str()),
        key: all(IDEMPOTENCY_KEY),
        date: text(DATE.as_str()),
        body: Vec::new(),
    };
    while let Some(chunk) = response.chunk().await.map_err(torn)? {
        if answer.body.len() + chunk.len() > ANSWER_BYTES_MAX {
            let detail = format!("status {}, more than {ANSWER_BYTES_MAX} bytes", answer.status);
            return Err(CallError::NoAnswer { how: Lost::TooLarge, detail });
        }
        answer.body.extend_from_slice(&chunk);
    }
    Ok(answer)
}

fn torn(error: reqwest::Error) -> CallError {
    let how = if error.is_timeout() { Lost::TimeOut } else { Lost::Torn };
    CallError::NoAnswer { how, detail: chain(&error.without_url()) }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
