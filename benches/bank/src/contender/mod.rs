//! The other ways of building a bank. HTTP front, gateway client and what is stored are one and the same for all of them; they
//! differ in how they store it ([`Books`]).

mod front;
mod gateway;
mod memory;
mod payment;
mod postgres;
mod sqlite;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use payment::{Claim, Claimed, Settled, Unfinished};
use serde::{Deserialize, Serialize};
use std::{
    future::Future,
    io::{Read, Write},
    path::PathBuf,
};
use tokio::net::TcpListener;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// A map in memory: not durable, the ceiling
    Memory,
    /// SQLite the usual way: two transactions per request behind a mutex
    Sqlite,
    /// PostgreSQL by the textbook: insert on conflict, gateway call, result
    Postgres,
}

/// A deliberate fault: each breaks a promise, so that it can be seen whether the check notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The gateway is asked under a new key each time
    NewGatewayKey,
    /// A key is not compared with the request that it belongs to
    AnyBody,
    /// What is stored is not what was answered
    OtherBytes,
    /// What was left behind is not finished at the start
    NoRecovery,
    /// The two postings of a payment don't add up to nothing
    Unbalanced,
}

#[derive(Args)]
pub(crate) struct Options {
    /// Which way
    #[arg(value_enum)]
    way: Way,
    /// The gateway's address
    #[arg(long, value_name = "URL")]
    gateway_url: String,
    /// The SQLite file
    #[arg(long, value_name = "FILE", required_if_eq("way", "sqlite"))]
    db: Option<PathBuf>,
    /// The PostgreSQL database, as `host=… user=… dbname=…`
    #[arg(long, value_name = "SETTINGS", required_if_eq("way", "postgres"))]
    database: Option<String>,
    /// Break a promise on purpose
    #[arg(long, value_enum, value_name = "FAULT")]
    broken: Option<Fault>,
}

/// How a contender stores.
pub(crate) trait Books: Send + Sync + 'static {
    /// Claims a key, or says what is stored of it.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<Claimed>> + Send;

    /// Stores the result with its payment and its two postings, all or nothing.
    fn settle(&self, operation: i64, settled: &Settled) -> impl Future<Output = Result<()>> + Send;

    /// What earlier processes claimed and did not settle.
    fn unfinished(&self) -> impl Future<Output = Result<Vec<Unfinished>>> + Send;
}

/// Serves until the one who started it closes the standard input, or is gone.
pub(crate) fn serve(options: Options) -> Result<()> {
    // The same runtime as Kassa's bank has.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match options.way {
            Way::Memory => front::serve(memory::Memory::default(), &[], &options).await,
            Way::Sqlite => {
                let (books, settings) = sqlite::Sqlite::open(options.db.clone().context("no --db")?).await?;
                front::serve(books, &settings, &options).await
            }
            Way::Postgres => {
                let database = options.database.as_deref().context("no --database")?;
                let (books, settings) = postgres::Postgres::open(database).await?;
                front::serve(books, &settings, &options).await
            }
        }
    })
}

/// A setting as the database gave it back when it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Setting {
    /// Fails where the value is not the one that was asked for: what was set and not taken promises nothing.
    fn read(name: &str, value: String, wanted: Option<&str>) -> Result<Self> {
        ensure!(
            wanted.is_none_or(|wanted| wanted == value),
            "{name} is {value}, and has to be {}",
            wanted.unwrap_or("-")
        );
        Ok(Self { name: name.to_owned(), value })
    }
}

/// What a process of the bench says once it listens.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    ready: bool,
    pub(crate) url: String,
    /// What its database said of itself.
    #[serde(default)]
    pub(crate) settings: Vec<Setting>,
}

/// Tells whoever waits for it where it listens, and how its database is set.
pub(crate) fn say_ready(listener: &TcpListener, settings: &[Setting]) -> Result<()> {
    let ready = Ready { ready: true, url: format!("http://{}", listener.local_addr()?), settings: settings.to_vec() };
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &ready)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Ends when the standard input does, which whoever started this process holds open.
pub(crate) async fn parent_gone() {
    let (gone, told) = tokio::sync::oneshot::channel();
    // A thread of its own, which the end of the runtime does not wait for.
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        // Nobody listens where the process ends by itself.
        let _ = gone.send(());
    });
    // The sender lives until it has told.
    let _ = told.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_was_not_taken_is_noticed() {
        let read = |value: &str, wanted| Setting::read("synchronous", value.to_owned(), wanted);
        assert_eq!(read("2", Some("2")).unwrap().value, "2");
        assert_eq!(read("anything", None).unwrap().value, "anything");
        assert_eq!(read("1", Some("2")).unwrap_err().to_string(), "synchronous is 1, and has to be 2");
    }
}
