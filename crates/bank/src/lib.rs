//! The mock bank and its gateway, with a fault lab: a real HTTP server over a real store, that happens to hold
//! play money.
//!
//! There are two services. The **bank** takes the till's payments and refunds, idempotent by the till's key. The
//! **gateway** is the card network behind it and holds the cardholders' accounts; the bank calls it over HTTP, as
//! the outside service that it stands for, under keys of the bank's own. One engine (the crate `idempotency`)
//! serves the keys of both.
//!
//! **The one invariant:** what the cardholders paid, counted at the gateway, is what the bank tells as approved:
//! whatever fails between them, and however often anyone asks.
//!
//! A service is opened over its configuration and then served on a bound listener until told to end, so a test, a
//! program that brings its own bank along, and the command line all do the same:
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use bank::{Bank, BankConfig};
//!
//! let bank = Bank::open(BankConfig::new("bank.db")).await?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! println!("{}", bank.ready(&listener)?.url);
//! let (end, ended) = tokio::sync::oneshot::channel::<()>();
//! bank.serve(listener, async {
//!     let _ = ended.await;
//! })
//! .await?;
//! # drop(end);
//! # Ok(()) }
//! ```

mod acquirer;
pub mod cli;
mod config;
mod ending;
mod files;
mod gateway;
mod http;
mod ids;
mod lab;
mod listening;
mod metrics;
pub mod open_files;
mod openapi;

pub use acquirer::{Bank, Ready};
pub use config::{BankConfig, GatewayConfig, RETENTION, Token, WAIT};
pub use files::OpenError;
pub use gateway::Gateway;
pub use http::secrets::Secret;
pub use lab::LabConfig;
pub use listening::listen;
