//! Accepting connections and serving them until told to drain.

use crate::http::{answer::Refusal, body, door::Door, gate::Gate};
use axum::{Router, body::Body, http::request::Parts, response::IntoResponse};
use futures::FutureExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use protocol::ProblemType;
use std::{future::Future, io, net::SocketAddr, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::{Instant, timeout_at},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// Connections that are served at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;
/// How long a connection may take to send the head of its next request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// How large the head of a request may be, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1_024;
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
        result = accepting => result?,
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
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: give those that are open the time to end.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (serving, traffic, finish) = (serving.clone(), traffic.clone(), finish.clone());
        connections.spawn(async move {
            connection(stream, serving, traffic, finish).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, serving: Arc<Serving>, traffic: Arc<Traffic>, finish: CancellationToken) {
    let Ok(local) = stream.local_addr() else { return };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was not taken");
    }
    speak(stream, local, serving, traffic, finish).await;
}

/// Answers the requests of one connection. A client that is slow to ask or to read loses its place.
async fn speak(
    io: impl AsyncRead + AsyncWrite,
    local: SocketAddr,
    serving: Arc<Serving>,
    traffic: Arc<Traffic>,
    finish: CancellationToken,
) {
    let mut io = TimeoutStream::new(io);
    io.set_write_timeout(Some(WRITE_TIME_MAX));
    let io = Box::pin(io);
    let service = service_fn(move |request| {
        let (serving, traffic) = (serving.clone(), traffic.clone());
        async move {
            let _counted = Counted::new(&traffic.requests);
            let response = answer(request, &serving, &traffic, local).await;
            if response.extensions().get::<Hangup>().is_some() { Err(HungUp) } else { Ok(response) }
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(io), service)
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
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
    request: hyper::Request<Incoming>,
    serving: &Serving,
    traffic: &Traffic,
    local: SocketAddr,
) -> axum::response::Response {
    let (mut parts, body) = request.into_parts();
    let body = Body::new(body);
    if let Err(refusal) = admit(&mut parts, serving, traffic, local) {
        body::discard(body).await;
        return refusal.closing().into_response();
    }
    let request = hyper::Request::from_parts(parts, body);
    let routed = serving.router.clone().oneshot(request);
    match AssertUnwindSafe(routed).catch_unwind().await {
        Ok(Ok(response)) => response,
        Err(_) => {
            tracing::error!("a handler panicked");
            Refusal::new(ProblemType::Internal, "the bank failed; send the same request again later").into_response()
        }
    }
}

/// Whether a request is let in at all.
fn admit(parts: &mut Parts, serving: &Serving, traffic: &Traffic, local: SocketAddr) -> Result<(), Refusal> {
    serving.door.check(&parts.uri, &parts.headers, local)?;
    if traffic.draining.is_cancelled() {
        let detail = "the service is going down; send the same request again later";
        return Err(Refusal::new(ProblemType::Unavailable, detail));
    }
    serving.gate.check(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncWriteExt, DuplexStream};

    /// A connection to a service with one good path.
    fn connect() -> (DuplexStream, impl Future<Output = ()>) {
        let router = Router::new().route("/good", get(async || "good"));
        let serving = Serving { door: Door::default(), gate: Gate::default(), router };
        let traffic = Traffic { draining: CancellationToken::new(), requests: watch::Sender::new(0) };
        let (client, server) = tokio::io::duplex(4_096);
        let local = "127.0.0.1:8460".parse().unwrap();
        (client, speak(server, local, Arc::new(serving), Arc::new(traffic), CancellationToken::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_loses_its_place() {
        let (mut client, spoken) = connect();
        let asking = async {
            let request = b"GET /good HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(10_000);
            // An error is the end of the connection.
            let _ = client.write_all(&request).await;
        };
        let both = async { tokio::join!(asking, spoken) };
        tokio::time::timeout(WRITE_TIME_MAX * 2, both).await.expect("the place is held");
    }
}
