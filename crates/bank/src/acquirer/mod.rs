//! The bank itself: it takes the till's payments and refunds, under the till's keys, and has the gateway move the
//! money.

pub(crate) mod acquiring;
pub(crate) mod asking;
pub(crate) mod breaker;
pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod contract;
pub(crate) mod health;
pub(crate) mod keyed;
pub(crate) mod lab_calls;
pub(crate) mod ledger;
pub(crate) mod names;
pub(crate) mod one_asks;
pub(crate) mod operations;
pub(crate) mod operator;
pub(crate) mod payments;
pub(crate) mod reading;
pub(crate) mod reads;
pub(crate) mod refunds;
pub(crate) mod share;

use crate::{
    config::{BankConfig, GatewayConfig, Token},
    ending::{KILL_TIME_MAX, KilledAtLast},
    files::{self, OpenError},
    gateway,
    http::{
        answer::{self, Refusal},
        connections::{self, Serving},
        door::Door,
        gate::Gate,
        problems,
        secrets::{Keyring, Secret},
    },
    ids,
    lab::{self, Lab, clock::LabClock, rules::Point},
    listening::listen,
    metrics::{self, GatewayCalls, Metrics},
    openapi::Calls,
};
use acquiring::Acquiring;
use asking::Gateway;
use axum::{Router, extract::State, response::Response};
use breaker::Breaker;
use client::Client;
use health::Health;
use idempotency::{Config, Engine, Limits};
use one_asks::OneAsks;
use rusqlite::Connection;
use serde::{Serialize, Serializer};
use share::Shares;
use std::{collections::BTreeSet, future::Future, io, net::Ipv4Addr, path::Path, sync::Arc, time::Duration};
use store::{Migration, Priority, Schema, Store};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// "KBNK" in the header of the file.
const APPLICATION_ID: i32 = 0x4b42_4e4b;
pub(crate) const SCHEMA: &str = include_str!("schema.sql");
/// The merchant where none is named.
const DEMO: &str = "demo";

/// An open bank.
pub struct Bank {
    inner: Arc<Inner>,
    door: Door,
    gate: Gate,
    demo_secret: Option<Secret>,
    gateway_url: String,
    /// The gateway that it brought along.
    own_gateway: Option<(gateway::Gateway, TcpListener)>,
}

pub(crate) struct Inner {
    pub(crate) id: Uuid,
    pub(crate) store: Store,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) clock: Arc<LabClock>,
    pub(crate) shares: Shares,
    pub(crate) retention: Duration,
    pub(crate) wait: Duration,
    pub(crate) lab: Option<Arc<Lab>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: OneAsks<Health>,
    /// Whether the operator's calls are there.
    pub(crate) operated: bool,
    /// Last, so that the lock that it holds is let go after all other handles of the store.
    pub(crate) engine: Engine<Acquiring>,
}

/// What a bank says when it is ready.
#[derive(Debug, Clone, Serialize)]
pub struct Ready {
    ready: bool,
    /// The bank's address.
    pub url: String,
    /// The gateway's address.
    pub gateway_url: String,
    /// The demo merchant's secret, where the bank made one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    secret: Option<Secret>,
}

/// Shows the secret in the one line that is meant to tell it.
fn exposed<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

impl Bank {
    /// Opens the bank's store, and makes it at the first start; and a gateway beside it where none is named.
    ///
    /// # Errors
    /// [`OpenError`] where another process has the store, or where it can't be used.
    pub async fn open(config: BankConfig) -> Result<Self, OpenError> {
        let schema = Schema {
            application_id: APPLICATION_ID,
            migrations: vec![
                Migration { version: 1, name: "operations", sql: idempotency::SCHEMA },
                Migration { version: 2, name: "bank", sql: SCHEMA },
            ],
        };
        // Looked at before anything is made.
        let named = config.gateway_url.as_deref().map(client::address).transpose().map_err(OpenError::GatewayUrl)?;
        let (lock, store) = files::open(config.db.clone(), schema).await?;
        let calls = Arc::new(GatewayCalls::default());
        let (client, own_gateway, gateway_url) = match named {
            Some(address) => {
                (Client::new(address, None, calls.clone())?, None, config.gateway_url.clone().unwrap_or_default())
            }
            None => {
                // Only this bank moves money at its own gateway.
                let secret = Secret::new(ids::secret());
                let (gateway, listener) = own_gateway(&config, secret.clone()).await?;
                let url = url(&listener)?;
                let address = client::address(&url).map_err(OpenError::GatewayUrl)?;
                (Client::new(address, Some(&secret), calls.clone())?, Some((gateway, listener)), url)
            }
        };
        let clock = Arc::new(LabClock::default());
        let gateway = Gateway {
            client,
            store: store.clone(),
            clock: clock.clone(),
            breaker: Breaker::new(),
            calls: calls.clone(),
        };
        let gateway = Arc::new(gateway);

        let demo_secret = if config.tokens.is_empty() { Some(demo_secret(&config.db).await?) } else { None };
        let demo = demo_secret.iter().map(|secret| Token { merchant: DEMO.to_owned(), secret: secret.clone() });
        let mut ring = Keyring::default();
        let mut merchants = BTreeSet::new();
        for token in config.tokens.iter().cloned().chain(demo) {
            ring.add(&token.merchant, &token.secret);
            merchants.insert(token.merchant);
        }

        let id = store.write(Priority::Click, identity).await.map_err(OpenError::store)?;
        let lab = config.lab.as_ref().map(|lab| Arc::new(Lab::new(lab, Point::BANK, clock.clone())));
        let settings = Config { wait: config.wait, retention: config.retention, limits: Limits::default() };
        let work = Acquiring { bank: id, gateway: gateway.clone() };
        let engine = Engine::open(store.clone(), lock, work, clock.clone(), settings).await?;
        let inner = Inner {
            id,
            store,
            gateway,
            clock,
            shares: Shares::new(merchants),
            retention: config.retention,
            wait: config.wait,
            lab,
            metrics: Arc::new(Metrics::new(metrics::OF_BANK, Some(calls))),
            health: health::asked(),
            operated: config.operator.is_some(),
            engine,
        };
        Ok(Self {
            inner: Arc::new(inner),
            door: Door::new(&config.hosts),
            gate: Gate::new(Some(ring), config.lab.as_ref(), config.operator.as_ref()).of_bank(id),
            demo_secret,
            gateway_url,
            own_gateway,
        })
    }

    /// The demo merchant's secret, where no merchants were named.
    #[must_use]
    pub fn demo_secret(&self) -> Option<&Secret> {
        self.demo_secret.as_ref()
    }

    /// What to tell those who wait for the bank to be ready. Connections are taken from here on: the listener is bound.
    ///
    /// # Errors
    /// Where the listener has no address.
    pub fn ready(&self, listener: &TcpListener) -> io::Result<Ready> {
        Ok(Ready {
            ready: true,
            url: url(listener)?,
            gateway_url: self.gateway_url.clone(),
            secret: self.demo_secret.clone(),
        })
    }

    /// Serves until `shutdown`, and finishes by itself what an earlier process left behind. After `shutdown`
    /// new requests get 503, what runs ends and is answered, for at most 10 s; what then still runs is
    /// finished by the next start. Dropping the future ends everything at once, as a crash would.
    ///
    /// # Errors
    /// Where a listener fails.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        // The gateway goes after the bank, which needs it to finish.
        let gateway_shutdown = CancellationToken::new();
        let _gateway_ends_too = gateway_shutdown.clone().drop_guard();
        let gateway = self.own_gateway.map(|(gateway, listener)| -> JoinHandle<io::Result<()>> {
            tokio::spawn(gateway.serve(listener, gateway_shutdown.clone().cancelled_owned()))
        });
        let inner = self.inner;
        let engine = inner.engine.clone();
        let killed_at_last = KilledAtLast { engine: engine.clone(), lab: inner.lab.clone() };
        engine.start();
        let asking = inner.gateway.clone();
        tokio::spawn(async move {
            if let Err(why) = asking.client.identity().await {
                tracing::warn!(why, "the gateway can't be reached yet");
            }
        });
        let metrics = inner.metrics.clone();
        let clock = inner.clock.clone();
        let serving = Serving { door: self.door, gate: self.gate, router: router(inner), metrics, clock };
        let result = connections::serve(listener, serving, shutdown, async {
            engine.stop();
            engine.idle().await;
        })
        .await;
        drop(killed_at_last);
        // So that the next start finds the store free.
        let _ = tokio::time::timeout(KILL_TIME_MAX, engine.close()).await;
        gateway_shutdown.cancel();
        if let Some(gateway) = gateway {
            gateway.await.map_err(io::Error::other)??;
        }
        result
    }
}

fn router(bank: Arc<Inner>) -> Router {
    let (lab, metrics, operated) = (bank.lab.clone(), bank.metrics.clone(), bank.operated);
    let calls = Calls::new(metrics.clone())
        .call(contract::payments::create(), keyed::create_payment)
        .call(contract::payments::list(), reads::list_payments)
        .call(contract::payments::get(), reads::show_payment)
        .call(contract::refunds::create(), keyed::create_refund)
        .call(contract::refunds::get(), reads::show_refund)
        .call(contract::operations::get(), operations::show)
        .call(contract::operations::cancel(), operations::cancel)
        .call(contract::operations::policy(), reads::policy)
        .call_if(operated, contract::operator::list(), operator::list)
        .call_if(operated, contract::operator::requeue(), operator::requeue)
        .call(contract::service::health(), health::show)
        .call(contract::service::metrics(), show_metrics)
        .call(contract::service::problem(), problems::show);
    let calls = if lab.is_some() { lab_calls::add(calls) } else { calls };
    let about = contract::about(lab.is_some());
    let mut calls = calls.with_state(bank);
    if let Some(lab) = lab {
        calls = calls.merge(lab::routes::calls(lab, metrics));
    }
    let router = calls.with_document(about);
    router.fallback(answer::not_found).method_not_allowed_fallback(answer::method_not_allowed)
}

/// `GET /metrics`
async fn show_metrics(State(bank): State<Arc<Inner>>) -> Result<Response, Refusal> {
    let breaker_open = Some(bank.gateway.breaker.is_open());
    bank.metrics.answer(&bank.engine, &bank.store, &*bank.clock, breaker_open).await
}

/// The gateway beside a bank that names none.
async fn own_gateway(config: &BankConfig, secret: Secret) -> Result<(gateway::Gateway, TcpListener), OpenError> {
    let stem = config.db.with_extension("");
    let gateway = GatewayConfig {
        db: files::beside(&stem, "-gateway.db"),
        hosts: Vec::new(),
        secret: Some(secret),
        lab: config.lab.clone(),
    };
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok((gateway::Gateway::open(gateway).await?, listener))
}

async fn demo_secret(db: &Path) -> io::Result<Secret> {
    let path = files::beside(db, ".secret");
    let secret = tokio::task::spawn_blocking(move || files::secret(&path, ids::secret));
    secret.await.map_err(io::Error::other)?.map(Secret::new)
}

/// The id of this file's bank, made at the first start.
fn identity(tx: &Connection) -> rusqlite::Result<Uuid> {
    tx.execute("INSERT INTO bank (one, id) VALUES (1, ?1) ON CONFLICT DO NOTHING", [ids::store_id().into_bytes()])?;
    tx.query_row("SELECT id FROM bank", [], |row| row.get::<_, [u8; 16]>(0)).map(Uuid::from_bytes)
}

pub(crate) fn url(listener: &TcpListener) -> io::Result<String> {
    Ok(format!("http://{}", listener.local_addr()?))
}
