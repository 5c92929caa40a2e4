//! Clients that nobody wants.

use crate::program::Result;
use rand::Rng;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{AbortHandle, JoinHandle},
};
use uuid::Uuid;

/// Between two bytes of those who trickle.
const TRICKLE: Duration = Duration::from_millis(200);
/// How long those who come again stay away, at the least and at the most. Spread, as nobody keeps a place among hundreds who
/// come in the same moment.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// What those who never read ask for, again and again: far more answers than the system keeps for them.
const PIPELINED: usize = 20_000;

/// A task that ends with the crowd.
pub(crate) struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> From<JoinHandle<T>> for Task {
    fn from(task: JoinHandle<T>) -> Self {
        Self(task.abort_handle())
    }
}

/// Clients that connect and say nothing.
pub(crate) async fn idle(bank: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let mut crowd = Vec::with_capacity(count);
    for _ in 0..count {
        crowd.push(TcpStream::connect(bank).await?);
    }
    Ok(crowd)
}

/// Clients that send the head of a request byte by byte, and never the end of it.
pub(crate) async fn slow_heads(bank: SocketAddr, count: usize) -> Result<Task> {
    trickling(bank, count, |_| format!("GET /v1/policy HTTP/1.1\r\nHost: {bank}\r\nX-Slow: ")).await
}

/// Clients that may ask, and send the body byte by byte.
pub(crate) async fn slow_bodies(bank: SocketAddr, secret: &str, count: usize) -> Result<Task> {
    trickling(bank, count, |_| head_of_payment(bank, secret)).await
}

/// Clients that announce a body and never send it, and come again whenever they are sent away.
pub(crate) async fn bodies_that_never_come(bank: SocketAddr, secret: &'static str, count: usize) -> Result<Vec<Task>> {
    let ask = |mut client: TcpStream| {
        let task = tokio::spawn(async move {
            loop {
                let pause = rand::rng().random_range(PAUSE_MIN..PAUSE_MAX);
                let asked = client.write_all(head_of_payment(bank, secret).as_bytes()).await;
                // An answer, an end or an error: sent away in any case.
                if asked.is_ok() {
                    let _ = client.read_to_end(&mut Vec::new()).await;
                }
                tokio::time::sleep(pause).await;
                match TcpStream::connect(bank).await {
                    Ok(anew) => client = anew,
                    Err(_) => return,
                }
            }
        });
        task.into()
    };
    Ok(idle(bank, count).await?.into_iter().map(ask).collect())
}

fn head_of_payment(bank: SocketAddr, secret: &str) -> String {
    format!(
        "POST /v1/payments HTTP/1.1\r\nHost: {bank}\r\nAuthorization: Bearer {secret}\r\nIdempotency-Key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
        Uuid::now_v7()
    )
}

async fn trickling(bank: SocketAddr, count: usize, start: impl Fn(usize) -> String) -> Result<Task> {
    let mut crowd = idle(bank, count).await?;
    for (i, client) in crowd.iter_mut().enumerate() {
        client.write_all(start(i).as_bytes()).await?;
    }
    let task = tokio::spawn(async move {
        loop {
            tokio::time::sleep(TRICKLE).await;
            for client in &mut crowd {
                // Some have lost their place by now.
                let _ = client.try_write(b" ");
            }
        }
    });
    Ok(task.into())
}

/// Clients that ask and ask and never read.
pub(crate) async fn never_reading(bank: SocketAddr, count: usize) -> Result<Vec<Task>> {
    let crowd = idle(bank, count).await?;
    let asking = format!("GET /v1/policy HTTP/1.1\r\nHost: {bank}\r\n\r\n").repeat(PIPELINED);
    let ask = |mut client: TcpStream| {
        let asking = asking.clone();
        let task = tokio::spawn(async move {
            // An error is the loss of its place; until then it waits, with the connection open.
            let _ = client.write_all(asking.as_bytes()).await;
            std::future::pending::<()>().await;
        });
        task.into()
    };
    Ok(crowd.into_iter().map(ask).collect())
}
