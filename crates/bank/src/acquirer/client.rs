//! Calling the gateway.

use crate::{
    acquirer::reading::Raw,
    files::OpenError,
    gateway::wire::{GATEWAY_ID, IDENTITY_PATH, Identity},
    http::secrets::Secret,
};
use bytes::{Bytes, BytesMut};
use protocol::Key;
use reqwest::{
    RequestBuilder, Response, Url,
    header::{self, HeaderMap, HeaderValue},
};
use std::{
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
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

/// A client of one gateway. It makes one attempt for each call and never repeats one by itself: what went wrong
/// on the way is unknown to it, and whoever called decides.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    identity: Mutex<Option<Uuid>>,
}

impl Client {
    /// A client of the gateway at that address, which asks for the secret.
    pub(crate) fn new(address: Url, secret: Option<&Secret>) -> Result<Self, OpenError> {
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
        Ok(Self { http, base: address.as_str().trim_end_matches('/').to_owned(), identity: Mutex::default() })
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

    /// Asks which gateway it is, now.
    pub(crate) async fn reach(&self) -> Result<Uuid, &'static str> {
        let raw = read(self.http.get(format!("{}{IDENTITY_PATH}", self.base))).await?;
        let identity: Identity =
            serde_json::from_slice(&raw.body).map_err(|_| "the gateway didn't say which one it is")?;
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity.gateway_id);
        Ok(identity.gateway_id)
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
