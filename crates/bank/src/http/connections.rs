//! Accepting connections and serving them until told to drain.

use crate::lab::clock::LabClock;
use crate::metrics::Metrics;
use crate::{
    http::{
        answer::{self, Refusal},
        body::{self, Coming},
        door::Door,
        gate::Gate,
        keyed,
        places::{Held, Places},
    },
    open_files,
};
use axum::{
    Router,
    body::Body,
    http::{HeaderValue, header::DATE, request::Parts},
    response::IntoResponse,
};
use futures::FutureExt;
use hyper::{
    body::{Body as _, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::ProblemType;
use std::{future::Future, io, net::SocketAddr, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// Connections that are served at once, where the system lets the process have that many. What becomes of one more: see [`Places`].
const CONNECTIONS_MAX: usize = 4_096;
/// How long a connection may take to send the head of its next request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// How large the head of a request may be, in bytes: its path and its headers.
const HEAD_BYTES_MAX: usize = 32 * 1_024;
/// How much is read of a head at all, in bytes. About here, and at a hundred headers, a bare 431 ends the connection.
const BUFFER_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;
/// How long an answer may wait for a client that reads nothing.
const WRITE_TIME_MAX: Duration = Duration::from_secs(15);
/// How long what runs may go on after the word to end.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an answer that was given may still take to be sent.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// A mark on a response: close the connection and send nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hangup;

#[derive(Debug, Error)]
#[error("the connection is closed without an answer")]
struct HungUp;

/// A service, as the connections see it.
pub(crate) struct Serving {
    pub(crate) door: Door,
    pub(crate) gate: Gate,
    pub(crate) router: Router,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<LabClock>,
}

/// Requests that are being answered, and whether more are taken.
struct Traffic {
    draining: CancellationToken,
    requests: watch::Sender<usize>,
}

/// Counts a request for as long as it is being answered.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(requests: &'a watch::Sender<usize>) -> Self {
        requests.send_modify(|count| *count += 1);
        Self(requests)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Serves until `shutdown`. Then new requests get 503 on a listener that stays open, those that run are answered,
/// and `rest` is waited for, all for at most 10 s.
pub(crate) async fn serve(
    listener: TcpListener,
    mut serving: Serving,
    shutdown: impl Future<Output = ()>,
    rest: impl Future<Output = ()>,
) -> io::Result<()> {
    serving.door = serving.door.at(listener.local_addr()?);
    let serving = Arc::new(serving);
    let traffic = Arc::new(Traffic { draining: CancellationToken::new(), requests: watch::Sender::new(0) });
    let finish = CancellationToken::new();
    // Also where this future is dropped instead of being told to end.
    let _finish_at_last = finish.clone().drop_guard();
    let connections = TaskTracker::new();
    let accepting = accept(&listener, &serving, &traffic, &finish, &connections);
    let drained = async {
        shutdown.await;
        tracing::info!("draining: what runs is finished, new requests are refused");
        traffic.draining.cancel();
        let mut requests = traffic.requests.subscribe();
        let deadline = Instant::now() + DRAIN_TIME_MAX;
        let all = async {
            // The sender lives as long as this function.
            let _ = requests.wait_for(|&count| count == 0).await;
            rest.await;
            let _ = requests.wait_for(|&count| count == 0).await;
        };
        if timeout_at(deadline, all).await.is_err() {
            tracing::warn!("not all was finished in time; the next start goes on with it");
        }
    };
    tokio::select! {
        () = accepting => {}
        () = drained => {}
    }
    drop(listener);
    finish.cancel();
    connections.close();
    connections.wait().await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    serving: &Arc<Serving>,
    traffic: &Arc<Traffic>,
    finish: &CancellationToken,
    connections: &TaskTracker,
) {
    let places = Places::new(open_files::connections_max(CONNECTIONS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely.
                tracing::warn!(%error, "a connection could not be accepted");
                places.free_one();
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let place = places.take().await;
        let (serving, traffic, finish) = (serving.clone(), traffic.clone(), finish.clone());
        connections.spawn(connection(stream, place, serving, traffic, finish));
    }
}

async fn connection(
    stream: TcpStream,
    place: Held,
    serving: Arc<Serving>,
    traffic: Arc<Traffic>,
    finish: CancellationToken,
) {
    let Ok(local) = stream.local_addr() else { return };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not taken");
    }
    speak(stream, local, &place, serving, traffic, finish).await;
}

/// Answers the requests of one connection. A client that is slow to ask or to read loses its place.
async fn speak(
    io: impl AsyncRead + AsyncWrite,
    local: SocketAddr,
    place: &Held,
    serving: Arc<Serving>,
    traffic: Arc<Traffic>,
    finish: CancellationToken,
) {
    let mut io = TimeoutStream::new(io);
    io.set_write_timeout(Some(WRITE_TIME_MAX));
    let io = Box::pin(io);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (serving, traffic) = (serving.clone(), traffic.clone());
        async move {
            let whole = request.body().is_end_stream();
            let Some(in_hand) = place.ask(whole) else { return Err(HungUp) };
            let request = request.map(|body| Coming::new(body, in_hand.unread()));
            let _counted = Counted::new(&traffic.requests);
            let (start, asked) = (Instant::now(), serving.metrics.counting.request());
            let response = answer(request, &serving, &traffic, local).await;
            asked.answered(&response, start.elapsed());
            if response.extensions().get::<Hangup>().is_some() { Err(HungUp) } else { Ok(response) }
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(BUFFER_BYTES_MAX)
            // Who has sent the whole request and closes that way is answered the other way.
            .half_close(true)
            .serve_connection(TokioIo::new(io), service)
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = place.lost() => {
            tracing::debug!("a connection that had nothing begun makes way for another");
            return;
        }
        () = finish.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // A client that doesn't read its answer holds nothing up.
            match tokio::time::timeout(FLUSH_TIME_MAX, connection).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    request: hyper::Request<Coming>,
    serving: &Serving,
    traffic: &Traffic,
    local: SocketAddr,
) -> axum::response::Response {
    let (mut parts, body) = request.into_parts();
    // Read here, so that every refusal of a keyed request echoes it, wherever it is made.
    let key = keyed::key(&parts.headers).ok();
    let body = Body::new(body);
    let mut response = if let Err(refusal) = admit(&mut parts, serving, traffic, local) {
        body::discard(body).await;
        refusal.closing().into_response()
    } else {
        let routed = serving.router.clone().oneshot(hyper::Request::from_parts(parts, body));
        match AssertUnwindSafe(routed).catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                tracing::error!("a handler panicked");
                let detail = "the bank failed; send the same request again later";
                Refusal::new(ProblemType::Internal, detail).into_response()
            }
        }
    };
    if let Some(key) = key
        && answer::is_problem(&response)
    {
        answer::echo(response.headers_mut(), &key);
    }
    // The server's own, kept for a second, is quicker; it is of the machine's clock.
    if let Some(date) = serving.clock.date_if_moved().and_then(|date| HeaderValue::try_from(date).ok()) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

/// How large a head is, near enough: what stands in it besides separators.
fn head_bytes(parts: &Parts) -> usize {
    let headers = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    parts.uri.path_and_query().map_or(0, |path| path.as_str().len()) + headers.sum::<usize>()
}

/// Whether a request is let in at all.
fn admit(parts: &mut Parts, serving: &Serving, traffic: &Traffic, local: SocketAddr) -> Result<(), Refusal> {
    serving.door.check(&parts.uri, &parts.headers, local)?;
    if head_bytes(parts) > HEAD_BYTES_MAX {
        let detail = format!("path and headers may have up to {HEAD_BYTES_MAX} bytes");
        return Err(Refusal::new(ProblemType::PayloadTooLarge, detail));
    }
    if traffic.draining.is_cancelled() {
        let detail = "the service is going down; send the same request again later";
        return Err(Refusal::new(ProblemType::Unavailable, detail));
    }
    serving.gate.check(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{
        extract::Request,
        routing::{get, post},
    };
    use protocol::Key;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
        task::JoinSet,
    };

    const KEY: &str = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b";

    /// A service with one good path, one that panics, and one that reads a body.
    fn service() -> Serving {
        async fn panics() -> &'static str {
            std::panic::resume_unwind(Box::new("the test asks for it"))
        }
        async fn reads(request: Request) -> Result<&'static str, Refusal> {
            let (parts, body) = request.into_parts();
            body::read(&parts.headers, body).await.map(|_| "read")
        }
        let router = Router::new().route("/good", get(async || "good")).route("/bad", get(panics));
        let router = router.route("/read", post(reads)).fallback(answer::not_found);
        let metrics = Arc::new(Metrics::new("test", None));
        Serving { door: Door::default(), gate: Gate::default(), router, metrics, clock: Arc::default() }
    }

    /// A connection on one of these places.
    async fn connect_at(places: &Arc<Places>, draining: bool) -> (DuplexStream, impl Future<Output = ()> + use<>) {
        let traffic = Traffic { draining: CancellationToken::new(), requests: watch::Sender::new(0) };
        if draining {
            traffic.draining.cancel();
        }
        let (client, server) = tokio::io::duplex(4_096);
        let local = "127.0.0.1:8460".parse().unwrap();
        let place = places.take().await;
        let spoken = async move {
            speak(server, local, &place, Arc::new(service()), Arc::new(traffic), CancellationToken::new()).await;
        };
        (client, spoken)
    }

    async fn connect(draining: bool) -> (DuplexStream, impl Future<Output = ()>) {
        connect_at(&Places::new(1), draining).await
    }

    async fn ask(draining: bool, path: &str, headers: &str) -> String {
        let (mut client, spoken) = connect(draining).await;
        let asking = async move {
            let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n");
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::join!(asking, spoken).0
    }

    #[tokio::test]
    async fn a_client_that_has_sent_all_and_closes_that_way_is_answered() {
        let (mut client, spoken) = connect(false).await;
        let asking = async move {
            let request = b"GET /good HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(3);
            client.write_all(&request).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (answer, ()) = tokio::join!(asking, spoken);
        assert_eq!(answer.matches("HTTP/1.1 200 ").count(), 3, "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_loses_its_place() {
        let (mut client, spoken) = connect(false).await;
        let asking = async {
            let request = b"GET /good HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(10_000);
            // An error is the end of the connection.
            let _ = client.write_all(&request).await;
        };
        let both = async { tokio::join!(asking, spoken) };
        tokio::time::timeout(WRITE_TIME_MAX * 2, both).await.expect("the place is held");
    }

    /// Less than any body is waited for.
    const AT_ONCE: Duration = Duration::from_millis(500);

    #[tokio::test(start_paused = true)]
    async fn bodies_that_never_come_whole_keep_nobody_out() {
        // Refused for its head, with the rest read and dropped; refused as there is nothing; and let in.
        for head in ["/read HTTP/1.1\r\nOrigin: null", "/nothing HTTP/1.1", "/read HTTP/1.1"] {
            let (places, began) = (Places::new(3), Instant::now());
            let (mut crowd, mut connections) = (Vec::new(), JoinSet::new());
            for sent in ["", "half"].repeat(4) {
                let (mut client, spoken) = connect_at(&places, false).await;
                connections.spawn(spoken);
                let request = format!("POST {head}\r\nHost: 127.0.0.1\r\nContent-Length: 8\r\n\r\n{sent}");
                client.write_all(request.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
                crowd.push(client);
            }
            let (mut client, spoken) = connect_at(&places, false).await;
            connections.spawn(spoken);
            let request = b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
            client.write_all(request).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 ") && began.elapsed() < AT_ONCE, "{answer} {:?}", began.elapsed());
        }
    }

    #[tokio::test]
    async fn every_refusal_of_a_keyed_request_echoes_its_key() {
        let echo = format!("idempotency-key: {KEY}\r\n");
        let keyed = format!("Idempotency-Key: \"{}\"\r\n", KEY.to_uppercase());
        assert_eq!(Key::parse(KEY).unwrap().to_string(), KEY);
        for (status, draining, path, more) in
            [(403, false, "/good", "Origin: null\r\n"), (503, true, "/good", ""), (500, false, "/bad", "")]
        {
            let answer = ask(draining, path, &format!("{keyed}{more}")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(&echo), "{answer}");
            let answer = ask(draining, path, more).await;
            assert!(!answer.contains("idempotency-key"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_head_that_is_too_large_is_refused_with_a_document() {
        let padded = |bytes: usize| format!("X-Padding: {}\r\n", "x".repeat(bytes));
        assert!(ask(false, "/good", &padded(HEAD_BYTES_MAX - 1_000)).await.starts_with("HTTP/1.1 200 "));
        let answer = ask(false, "/good", &padded(HEAD_BYTES_MAX)).await;
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("/problems/payload-too-large"), "{answer}");
    }
}
