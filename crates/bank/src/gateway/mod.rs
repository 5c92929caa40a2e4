//! The card network behind the bank: it holds the cardholders' accounts and moves their money. The bank calls it
//! as an outside service, over HTTP, under keys of the bank's own; the same engine that serves the till's keys
//! serves these.

pub(crate) mod accounts;
pub(crate) mod cards;
pub(crate) mod charges;
pub(crate) mod ledger;
pub(crate) mod refunds;
pub(crate) mod routes;
pub(crate) mod wire;

use crate::{
    config::GatewayConfig,
    ending::{KILL_TIME_MAX, KilledAtLast},
    files::{self, OpenError},
    http::{
        connections::{self, Serving},
        door::Door,
        gate::Gate,
        secrets::Keyring,
    },
    ids,
    lab::{Lab, clock::LabClock, rules::Point},
    metrics::{self, Metrics},
};
use idempotency::{Begin, Config, Engine, Job, Limits, Response, Settlement, Undo, Verdict, Work};
use protocol::{Amount, Currency, Outcome};
use rusqlite::Connection;
use std::{future::Future, io, sync::Arc, time::Duration};
use store::{Migration, Priority, Schema, Store};
use tokio::net::TcpListener;
use uuid::Uuid;
use wire::Moved;

/// "KGTW" in the header of the file.
const APPLICATION_ID: i32 = 0x4b47_5457;
pub(crate) const SCHEMA: &str = include_str!("schema.sql");
/// How long the gateway stores a response. Its claims, too, are for ever.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the gateway lets a repeat wait for a commit.
const WAIT: Duration = Duration::from_secs(3);

/// An open gateway.
pub struct Gateway {
    pub(crate) inner: Arc<Inner>,
    door: Door,
    gate: Gate,
}

pub(crate) struct Inner {
    pub(crate) id: Uuid,
    pub(crate) store: Store,
    pub(crate) engine: Engine<AtOnce>,
    pub(crate) clock: Arc<LabClock>,
    pub(crate) lab: Option<Arc<Lab>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The gateway's work is done in the claim's own commit, so there is never anything to run after it.
pub(crate) struct AtOnce;

impl Work for AtOnce {
    type Context = ();

    async fn run(&self, job: Job<()>) -> Verdict {
        // Only a file that something else has written holds a claim without its result.
        Verdict::NeedsAttention(format!("claim {} of the gateway has no result", job.id))
    }

    async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
        Undo::Kept
    }
}

impl Gateway {
    /// Opens the gateway's store, and makes it at the first start.
    ///
    /// # Errors
    /// [`OpenError`] where another process has it, or where it can't be used.
    pub async fn open(config: GatewayConfig) -> Result<Self, OpenError> {
        let schema = Schema {
            application_id: APPLICATION_ID,
            migrations: vec![
                Migration { version: 1, name: "operations", sql: idempotency::SCHEMA },
                Migration { version: 2, name: "gateway", sql: SCHEMA },
            ],
        };
        let (lock, store) = files::open(config.db, schema).await?;
        let id = store.write(Priority::Click, identity).await.map_err(OpenError::store)?;
        let clock = Arc::new(LabClock::default());
        let lab = config.lab.as_ref().map(|lab| Arc::new(Lab::new(lab, Point::GATEWAY, clock.clone())));
        let settings = Config { wait: WAIT, retention: RETENTION, limits: Limits::default() };
        let engine = Engine::open(store.clone(), lock, AtOnce, clock.clone(), settings).await?;
        let metrics = Arc::new(Metrics::new(metrics::OF_GATEWAY, None));
        let inner = Arc::new(Inner { id, store, engine, clock, lab, metrics });
        let bank = config.secret.as_ref().map(|secret| Keyring::of(routes::SCOPE, secret));
        Ok(Self { inner, door: Door::new(&config.hosts), gate: Gate::new(bank, config.lab.as_ref(), None) })
    }

    /// Serves until `shutdown`; then what runs is answered, for at most 10 s.
    ///
    /// # Errors
    /// Where the listener fails.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let engine = self.inner.engine.clone();
        let killed_at_last = KilledAtLast { engine: engine.clone(), lab: self.inner.lab.clone() };
        engine.start();
        let metrics = self.inner.metrics.clone();
        let clock = self.inner.clock.clone();
        let router = routes::router(self.inner);
        let serving = Serving { door: self.door, gate: self.gate, router, metrics, clock };
        let result = connections::serve(listener, serving, shutdown, engine.idle()).await;
        drop(killed_at_last);
        // So that the next start finds the store free.
        let _ = tokio::time::timeout(KILL_TIME_MAX, engine.close()).await;
        result
    }
}

/// The id of this file's gateway, made at the first start.
fn identity(tx: &Connection) -> rusqlite::Result<Uuid> {
    tx.execute("INSERT INTO gateway (one, id) VALUES (1, ?1) ON CONFLICT DO NOTHING", [ids::store_id().into_bytes()])?;
    tx.query_row("SELECT id FROM gateway", [], |row| row.get::<_, [u8; 16]>(0)).map(Uuid::from_bytes)
}

/// The word for an outcome in the file.
pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Approved => "approved",
        Outcome::Declined => "declined",
    }
}

/// The stored result of a claim that brought it along.
fn settled(moved: &Moved, path: &str) -> rusqlite::Result<Begin> {
    let body = serde_json::to_vec(moved).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok(Begin::Settled(Settlement {
        outcome: word(moved.status),
        subject: Some(moved.id.clone()),
        response: Response {
            status: if moved.status == Outcome::Approved { 201 } else { 402 },
            content_type: "application/json".into(),
            location: Some(format!("{path}/{}", moved.reference)),
            body: body.into(),
        },
        rows: Arc::new(|_| Ok(())),
    }))
}

/// Reads the columns that charges and refunds have in common, from the first on.
fn moved(row: &rusqlite::Row<'_>) -> rusqlite::Result<Moved> {
    let broken = |column, what: &str| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, what.to_owned().into())
    };
    Ok(Moved {
        id: row.get(0)?,
        status: if row.get::<_, String>(1)? == word(Outcome::Approved) { Outcome::Approved } else { Outcome::Declined },
        amount: Amount::new(row.get(2)?).map_err(|_| broken(2, "not an amount"))?,
        currency: Currency::parse(&row.get::<_, String>(3)?).map_err(|_| broken(3, "not a currency"))?,
        reference: row.get(4)?,
        card: None,
        approval_code: row.get(5)?,
        decline_code: row.get(6)?,
    })
}
