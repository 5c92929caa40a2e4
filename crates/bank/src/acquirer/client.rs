//! Calling the gateway.

use crate::{
    acquirer::{one_asks::OneAsks, reading::Raw},
    files::OpenError,
    gateway::wire::{GATEWAY_ID, IDENTITY_PATH, Identity},
    http::secrets::Secret,
    metrics::{Ended, GatewayCall, GatewayCalls},
};
use bytes::{Bytes, BytesMut};
use protocol::Key;
use reqwest::{
    RequestBuilder, Response, Url,
    header::{self, HeaderMap, HeaderValue},
};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use uuid::Uuid;

/// How long a call may take from the first byte to the last.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How long connecting may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a connection is kept for the next call: less than the gateway keeps it.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);
/// How much of an answer is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// A client of one gateway. It makes one attempt for each call and repeats none whose request was begun to be written: what
/// went wrong on the way is unknown to it, and whoever called decides. A connection that the gateway closed before anything was written
/// on it is replaced by another, under the same key.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    identity: Mutex<Option<Uuid>>,
    reaching: OneAsks<Result<Uuid, &'static str>>,
    calls: Arc<GatewayCalls>,
}

impl Client {
    /// A client of the gateway at that address, which asks for the secret. It counts its questions which gateway it is; all
    /// other calls are counted where their answers are read.
    pub(crate) fn new(address: Url, secret: Option<&Secret>, calls: Arc<GatewayCalls>) -> Result<Self, OpenError> {
        let wrong = |error: &dyn std::fmt::Display| OpenError::Io(io::Error::other(format!("no HTTP client: {error}")));
        let mut headers = HeaderMap::new();
        if let Some(secret) = secret {
            let value = HeaderValue::from_str(&format!("Bearer {}", secret.expose()));
            let mut value = value.map_err(|error| wrong(&error))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .timeout(TIME_MAX)
            .connect_timeout(CONNECT_TIME_MAX)
            .pool_idle_timeout(IDLE_TIME_MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| wrong(&error))?;
        Ok(Self {
            http,
            base: address.as_str().trim_end_matches('/').to_owned(),
            identity: Mutex::default(),
            reaching: OneAsks::new(Duration::ZERO),
            calls,
        })
    }

    /// Which gateway it is, where that was found out before.
    pub(crate) fn known_identity(&self) -> Option<Uuid> {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets which gateway it is: another one has answered.
    pub(crate) fn forget_identity(&self) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Which gateway it is; asks where that isn't known yet.
    pub(crate) async fn identity(&self) -> Result<Uuid, &'static str> {
        match self.known_identity() {
            Some(known) => Ok(known),
            None => self.reach().await,
        }
    }

    /// Asks which gateway it is, now. All who ask while one call is under way share it, also where it fails.
    pub(crate) async fn reach(&self) -> Result<Uuid, &'static str> {
        self.reaching.ask(self.identify()).await
    }

    async fn identify(&self) -> Result<Uuid, &'static str> {
        let start = Instant::now();
        let read = read(self.http.get(format!("{}{IDENTITY_PATH}", self.base))).await;
        let identity = read.and_then(|raw| identity(&raw));
        let ended = if identity.is_ok() { Ended::Known } else { Ended::Unknown };
        self.calls.count(GatewayCall::Identify, ended, start.elapsed());
        if let Ok(gateway) = identity {
            *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
        }
        identity
    }

    /// Makes one attempt at a keyed request with a JSON body.
    pub(crate) async fn send(&self, path: &str, key: &Key, gateway: Uuid, body: Bytes) -> Result<Raw, &'static str> {
        let request = self
            .http
            .post(format!("{}{path}", self.base))
            .header(protocol::IDEMPOTENCY_KEY, key.to_string())
            .header(GATEWAY_ID, gateway.to_string())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        read(request).await
    }

    /// Asks what became of a reference.
    pub(crate) async fn ask(&self, path: &str, reference: &str) -> Result<Raw, &'static str> {
        read(self.http.get(format!("{}{path}/{reference}", self.base))).await
    }
}

/// Reads a gateway's address. The error doesn't repeat it.
pub(crate) fn address(text: &str) -> Result<Url, &'static str> {
    let plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && (url.username(), url.password(), url.query(), url.fragment()) == ("", None, None, None)
    };
    Url::parse(text).ok().filter(plain).ok_or("write an address such as http://127.0.0.1:8461")
}

/// Which gateway an answer names. A name out of any other answer would be kept, and operations bound to it.
fn identity(raw: &Raw) -> Result<Uuid, &'static str> {
    let media_type = raw.content_type.split(';').next().unwrap_or_default().trim();
    if raw.status != 200 || !media_type.eq_ignore_ascii_case("application/json") {
        return Err("the gateway didn't say which one it is");
    }
    let identity: Identity =
        serde_json::from_slice(&raw.body).map_err(|_| "the gateway's word on which one it is can't be read")?;
    Ok(identity.gateway_id)
}

async fn read(request: RequestBuilder) -> Result<Raw, &'static str> {
    let response = request.send().await.map_err(|error| why(&error))?;
    let status = response.status().as_u16();
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let content_type = text(header::CONTENT_TYPE);
    let retry_after_s = text(header::RETRY_AFTER).parse().ok();
    let body = body(response).await?;
    Ok(Raw { status, content_type, retry_after_s, body })
}

async fn body(mut response: Response) -> Result<Bytes, &'static str> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| why(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("an answer beyond all measure");
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The class of an error, without the address that its own text holds.
fn why(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection to the gateway"
    } else if error.is_body() || error.is_decode() {
        "a torn answer"
    } else {
        "the connection to the gateway broke"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    const ID: &str = "0194f39f-8f00-7000-8000-000000000001";

    /// A client of something that gives this answer to each request, and the count of what it asked.
    async fn asking(status: u16, media_type: &str, body: String) -> io::Result<(Arc<Client>, Arc<GatewayCalls>)> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let head = format!("HTTP/1.1 {status} Why\r\nContent-Type: {media_type}\r\nConnection: close\r\n");
        let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4_096];
                // The client's requests have no body and come in one piece. What goes wrong shows in what the client is told.
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let calls = Arc::new(GatewayCalls::default());
        let address = address(&url).map_err(io::Error::other)?;
        let client = Client::new(address, None, calls.clone()).map_err(io::Error::other)?;
        Ok((Arc::new(client), calls))
    }

    fn identified(calls: &GatewayCalls) -> Vec<(&'static str, u64)> {
        calls.of(GatewayCall::Identify).by_end().filter(|(_, count)| *count > 0).collect()
    }

    #[tokio::test]
    async fn one_call_asks_which_gateway_it_is_for_all_who_need_to_know() {
        for (status, ended) in [(200, "known"), (503, "unknown")] {
            let body = format!("{{\"gateway_id\":\"{ID}\"}}");
            let (client, calls) = asking(status, "application/json", body).await.unwrap();
            let told = futures::future::join_all((0..50).map(|_| client.identity())).await;
            assert!(told.iter().all(|told| told.is_ok() == (status == 200)), "{told:?}");
            assert_eq!(identified(&calls), [(ended, 1)]);
        }
    }

    #[tokio::test]
    async fn only_the_gateways_own_word_says_which_one_it_is() {
        let named = format!("{{\"gateway_id\":\"{ID}\"}}");
        let whole = format!("{{\"more\":1,\"gateway_id\":\"{ID}\"}}");
        for media_type in ["application/json", "Application/JSON; charset=utf-8"] {
            let (client, _) = asking(200, media_type, whole.clone()).await.unwrap();
            assert_eq!(client.identity().await.map(|id| id.to_string()).as_deref(), Ok(ID));
        }
        for (status, media_type, body) in [
            (404, "application/json", named.as_str()),
            (500, "application/json", &named),
            (201, "application/json", &named),
            (200, "text/html", &named),
            (200, "application/json-seq", &named),
            (200, "application/json", "{}"),
        ] {
            let (client, calls) = asking(status, media_type, body.to_owned()).await.unwrap();
            assert!(client.identity().await.is_err(), "{status} {media_type} {body}");
            assert_eq!((client.known_identity(), identified(&calls)), (None, vec![("unknown", 1)]));
        }
    }

    #[test]
    fn an_address_is_plain_and_a_wrong_one_is_not_repeated() {
        for right in ["http://127.0.0.1:8461", "https://gateway.example/cards/"] {
            assert!(address(right).is_ok(), "{right}");
        }
        for wrong in
            ["", "nonsense", "ftp://x", "http://", "http://a:sk_secret@x", "http://x/?k=sk_secret", "http://x#a"]
        {
            let error = address(wrong).unwrap_err();
            assert!(!error.contains("sk_secret"), "{wrong}");
        }
    }
}
