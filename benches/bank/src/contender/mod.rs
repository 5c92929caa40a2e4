//! The other ways of building a bank. HTTP front, gateway client and what is stored are one and the same for all of them; they
//! differ in how they store it ([`Books`]).

mod front;
mod gateway;
mod memory;
mod payment;
mod postgres;
mod sqlite;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use payment::{Claim, Claimed, Settled, Unfinished};
use std::{future::Future, path::PathBuf};

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
