//! An order system that tells a partner about each parcel that it ships, exactly once: what it takes to put the outbox into a
//! program of your own. Read it from top to bottom, and run it:
//! ```console
//! $ cargo run -p outbox --example webhooks
//! $ cargo run -p outbox --example webhooks -- --forgetful     # what becomes of it with a partner that keeps no keys
//! ```
//! Shop and partner are both in this one program, and meet over HTTP only. The partner misbehaves: it takes a webhook and drops
//! its answer, one time in three; it says "come back in a second" once; it is down for a while. The shop is started again in the
//! middle, over the same file. At the end everybody's books are compared.
//!
//! What "exactly once" rests on is two halves. **The outbox's:** a webhook is saved in the commit that ships the parcel, and is
//! sent, the same bytes under the same key, until there is an answer that ends it: *at least* once. **The partner's:** it keeps
//! the key, in the commit that does what the webhook says, together with its answer, and gives a repeat that answer: *at most*
//! once. Without the second half nobody can do it, and `--forgetful` shows that: then parcels are counted twice, and the program
//! says so and fails.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use outbox::answer::{Answer, Reading};
use outbox::jiff::{SignedDuration, Timestamp};
use outbox::rusqlite::{self, Connection, OptionalExtension};
use outbox::store::{Migration, Priority, Schema, Store};
use outbox::uuid::Uuid;
use outbox::{
    Ask, Backoff, Bank, BankIdentity, Call, CancellationToken, Contract, Ended, EnqueueError, Event, HttpTransport,
    Key, Message, NewOperation, Operation, Outbox, Promise, Settings, StoredRequest, Summary,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The header that the partner wants the key in.
const KEY_HEADER: &str = "webhook-id";
const PARCELS: u32 = 30;
/// The longest that all of it may take.
const LIMIT: Duration = Duration::from_secs(9);

// ---- The contract: what the partner understands, and which of its answers are an end.

struct Webhooks;

/// What the partner writes into each answer: whose it is, and what became of it.
#[derive(Deserialize)]
struct Said {
    webhook: Key,
    state: String,
}

impl Contract for Webhooks {
    /// Changes nothing there. A partner that has no such route is asked for anything harmless that it answers.
    fn introduction(&self) -> Call {
        Call::new("GET", "/about")
    }

    fn read_introduction(&self, answer: &Answer, _: Timestamp) -> Result<Promise, Reading> {
        #[derive(Deserialize)]
        struct About {
            partner: Uuid,
            account: String,
        }
        let About { partner, account } = answer.json()?;
        // It keeps our keys for ever, with its answers. One that drops them after a while says so here, and needs a look-up.
        Ok(Promise::for_ever(BankIdentity { bank_id: partner, merchant: account }))
    }

    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
        match ask {
            Ask::Send => Some(request.call().with(KEY_HEADER, operation.key.to_string())),
            // It has no such calls.
            Ask::LookUp | Ask::Cancel => None,
        }
    }

    /// Only what is surely the partner's own, and about this webhook, may end it. A proxy's page and half a body may not: whatever
    /// is not understood is asked again.
    fn read(&self, _: Ask, operation: &Operation, _: &StoredRequest, answer: &Answer, now: Timestamp) -> Reading {
        let said: Said = match answer.json() {
            Ok(said) => said,
            Err(reading) => return reading,
        };
        if said.webhook != operation.key {
            return Reading::foreign("it is about another webhook");
        }
        match (answer.status, said.state.as_str(), answer.retry_in(now)) {
            (200, "taken", _) => Reading::approved(answer.text()),
            (422, "refused", _) => Reading::declined(answer.text()),
            // The key was used for something else: a fault that a person must find.
            (409, "reused", _) => Reading::refused("reused", "the key has another body there"),
            (503, "busy", Some(retry_after)) => Reading::busy("busy", retry_after),
            (503, "busy", None) => Reading::trouble("busy"),
            (status, ..) => Reading::foreign(format!("status {status}")),
        }
    }
}

// ---- The shop: its own table and the outbox's in one file.

#[derive(Clone, Serialize, Deserialize)]
struct Parcel {
    /// Made when the parcel was packed, long before anybody clicks "shipped".
    id: Uuid,
    number: u32,
    order: String,
}

struct Shop {
    store: Store,
    outbox: Outbox,
    settling: JoinHandle<Ended>,
    shutdown: CancellationToken,
}

impl Shop {
    fn open(folder: &Path, partner: SocketAddr) -> Result<Shop> {
        let own =
            "CREATE TABLE shipments (parcel TEXT PRIMARY KEY, key BLOB NOT NULL UNIQUE REFERENCES operations (key),
            webhook TEXT NOT NULL) STRICT";
        // The outbox's steps and the shop's, in one numbering. A later step of either comes after all that were released.
        let mut migrations = outbox::migrations([1, 2]);
        migrations.push(Migration { version: 3, name: "shipments", sql: own });
        let store = Store::open(&folder.join("shop.db"), &Schema { application_id: 0x5348_4f50, migrations })?;
        let outbox = Outbox::new(store.clone(), Webhooks)
            .with_settings(impatient())
            // In the commit of each change, so that the shop's row never says anything else than the outbox's.
            .on_change(Arc::new(|tx, operation| {
                tx.execute(
                    "UPDATE shipments SET webhook = ?1 WHERE key = ?2",
                    (operation.state.as_str(), operation.key.as_bytes()),
                )
                .map(|_| ())
            }));
        let transport = HttpTransport::new(&Bank::new(format!("http://{partner}"), "secret-of-the-shop"))?;
        let shutdown = CancellationToken::new();
        // What an earlier process left unfinished goes on from here, with nobody asking.
        let settling = outbox.start(Arc::new(transport), shutdown.clone())?;
        Ok(Shop { store, outbox, settling, shutdown })
    }

    /// The click on "shipped". Says whether it was shipped before.
    ///
    /// On an error nothing is known to be saved, and the same call may be made again, now or after the next start: the parcel's id
    /// finds the webhook, or makes it.
    async fn ship(&self, parcel: &Parcel) -> Result<bool> {
        let (outbox, parcel) = (self.outbox.clone(), parcel.clone());
        let message = Message::post("/parcels", serde_json::to_vec(&parcel)?);
        let webhook = NewOperation::new(parcel.id, parcel.order, message);
        let saved = self
            .store
            .write(Priority::Click, move |tx| {
                let saved = outbox.enqueue(tx, &webhook)?;
                if !saved.existed {
                    tx.execute(
                        "INSERT INTO shipments VALUES (?1, ?2, ?3)",
                        (parcel.id.to_string(), saved.operation.key.as_bytes(), saved.operation.state.as_str()),
                    )?;
                }
                Ok::<_, EnqueueError>(saved)
            })
            .await?;
        self.outbox.wake();
        Ok(saved.existed)
    }

    async fn summary(&self) -> Result<Summary> {
        Ok(self.store.read(|conn| outbox::summary(conn, Timestamp::now())).await?)
    }

    /// Waits until nothing is unsettled.
    async fn settled(&self) -> Result<Summary> {
        let mut events = self.outbox.subscribe();
        loop {
            let summary = self.summary().await?;
            if summary.unsettled == 0 {
                return Ok(summary);
            }
            // Whatever it is, and also where some were missed: the file says how things stand.
            let _ = events.recv().await;
        }
    }

    /// Ends the task. What is in flight is `unknown`, and goes on at the next start.
    async fn close(self) -> Result<()> {
        self.shutdown.cancel();
        ensure!(self.settling.await? == Ended::Stopped, "another process took the queue over");
        Ok(())
    }

    /// How many webhooks stand so in the shop's own table.
    async fn count(&self, state: outbox::State) -> Result<u32> {
        let count = "SELECT count(*) FROM shipments WHERE webhook = ?1";
        Ok(self.store.read(move |conn| conn.query_row(count, [state.as_str()], |row| row.get(0))).await?)
    }
}

/// A real program takes `Settings::default()`. This one has seconds.
fn impatient() -> Settings {
    Settings {
        backoff: Backoff { base: SignedDuration::from_millis(20), cap: SignedDuration::from_millis(200) },
        retry_after_jitter: SignedDuration::from_millis(100),
        drain_per_s: 100,
        ..Settings::default()
    }
}

// ---- The partner: counts parcels, and has no idea of outboxes.

struct Partner {
    store: Store,
    keeps_keys: bool,
    requests: AtomicU32,
    answers_dropped: AtomicU32,
    told_to_wait: AtomicU32,
}

impl Partner {
    fn open(folder: &Path, keeps_keys: bool) -> Result<Arc<Partner>> {
        let sql = "CREATE TABLE answered (key BLOB PRIMARY KEY, body BLOB NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL) STRICT;
            CREATE TABLE parcels (id TEXT PRIMARY KEY, counted INTEGER NOT NULL) STRICT;";
        let migrations = vec![Migration { version: 1, name: "parcels", sql }];
        let store = Store::open(&folder.join("partner.db"), &Schema { application_id: 0x5041_5254, migrations })?;
        let (requests, answers_dropped, told_to_wait) = Default::default();
        Ok(Arc::new(Partner { store, keeps_keys, requests, answers_dropped, told_to_wait }))
    }

    /// Listens from now on, until the task is aborted.
    async fn listen(self: &Arc<Self>, address: SocketAddr) -> Result<(SocketAddr, JoinHandle<std::io::Result<()>>)> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/about", get(about)).route("/parcels", post(parcels));
        let serving = axum::serve(listener, router.with_state(self.clone())).into_future();
        Ok((address, tokio::spawn(serving)))
    }

    /// How often each parcel was counted.
    async fn counted(&self) -> Result<BTreeMap<String, u32>> {
        let query = |conn: &Connection| {
            let mut statement = conn.prepare("SELECT id, counted FROM parcels")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()
        };
        Ok(self.store.read(query).await?)
    }
}

async fn about() -> Response {
    Json(json!({"partner": "6f0f3c5e-5a3b-4d6e-9a1f-0c9b8a7d6e5f", "account": "shop-7"})).into_response()
}

/// `POST /parcels`, the webhook's end.
async fn parcels(State(partner): State<Arc<Partner>>, headers: HeaderMap, body: Bytes) -> Response {
    let number = partner.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let Some(key) = headers.get(KEY_HEADER).and_then(|value| value.to_str().ok()?.parse::<Key>().ok()) else {
        return (StatusCode::BAD_REQUEST, format!("send a UUID as {KEY_HEADER}")).into_response();
    };
    if number == 5 {
        partner.told_to_wait.fetch_add(1, Ordering::Relaxed);
        return ([(header::RETRY_AFTER, "1")], answer(503, said(&key, "busy"))).into_response();
    }
    let keeps_keys = partner.keeps_keys;
    let Ok((status, text)) = partner.store.write(Priority::Click, move |tx| take(tx, &key, &body, keeps_keys)).await
    else {
        return answer(503, said(&key, "busy"));
    };
    if number.is_multiple_of(3) {
        // It has taken it, and the shop never hears of it.
        partner.answers_dropped.fetch_add(1, Ordering::Relaxed);
        let cut_off = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("the cable was pulled")) });
        return Body::from_stream(cut_off).into_response();
    }
    answer(status, text)
}

fn said(key: &Key, state: &str) -> String {
    json!({"webhook": key, "state": state}).to_string()
}

fn answer(status: u16, text: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The partner's half of "exactly once": the key, what it stands for, and the answer are one commit. What is counted here is
/// counted anew by each call that gets past the question for the key.
fn take(tx: &Connection, key: &Key, body: &[u8], keeps_keys: bool) -> rusqlite::Result<(u16, String)> {
    let known = tx
        .query_row("SELECT body, status, answer FROM answered WHERE key = ?1", [key.as_bytes()], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    if let Some((first_body, status, answer)) = known {
        return Ok(if first_body == body { (status, answer) } else { (409, said(key, "reused")) });
    }
    // Parcel 0 is none that it knows: it refuses it, today and at each repeat.
    let parcel = serde_json::from_slice::<Parcel>(body).ok().filter(|parcel| parcel.number > 0);
    let (status, answer) = match parcel {
        Some(parcel) => {
            tx.execute(
                "INSERT INTO parcels VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET counted = counted + 1",
                [parcel.id.to_string()],
            )?;
            (200, said(key, "taken"))
        }
        None => (422, said(key, "refused")),
    };
    if keeps_keys {
        tx.execute("INSERT INTO answered VALUES (?1, ?2, ?3, ?4)", (key.as_bytes(), body, status, &answer))?;
    }
    Ok((status, answer))
}

// ---- What happens.

/// Clicks "shipped" for each, twice.
async fn ship(shop: &Shop, parcels: &[Parcel]) -> Result<()> {
    for parcel in parcels {
        ensure!(!shop.ship(parcel).await?, "it was shipped before");
        ensure!(shop.ship(parcel).await?, "the second click made a second webhook");
    }
    Ok(())
}

async fn run(folder: &Path, keeps_keys: bool, said: &mut String) -> Result<()> {
    let partner = Partner::open(folder, keeps_keys)?;
    let (address, serving) = partner.listen(([127, 0, 0, 1], 0).into()).await?;
    let parcels: Vec<_> = (0..=PARCELS)
        .map(|number| Parcel { id: Uuid::new_v4(), number, order: format!("order-{}", number / 3) })
        .collect();
    let (first, rest) = parcels.split_at(11);
    let (second, third) = rest.split_at(10);

    let shop = Shop::open(folder, address)?;
    ship(&shop, first).await?;
    shop.settled().await?;

    let mut events = shop.outbox.subscribe();
    serving.abort();
    let _ = serving.await;
    ship(&shop, second).await?;
    // The shop finds out that nobody is there, and is switched off with everything unsent.
    while !matches!(events.recv().await?, Event::Bank { reachable: false, .. }) {}
    shop.close().await?;

    let shop = Shop::open(folder, address)?;
    let waited = shop.summary().await?.unsettled;
    let _ = partner.listen(address).await?;
    ship(&shop, third).await?;
    let summary = shop.settled().await?;

    let saved = shop.store.read(|conn| conn.query_row("SELECT count(*) FROM operations", [], |row| row.get(0))).await?;
    let (approved, declined) = (shop.count(outbox::State::Approved).await?, shop.count(outbox::State::Declined).await?);
    shop.close().await?;
    report(&partner, &Books { saved, waited, approved, declined, attention: summary.needs_attention }, said).await
}

/// What the shop has on its side.
struct Books {
    saved: u32,
    waited: u32,
    approved: u32,
    declined: u32,
    attention: u32,
}

/// Compares the shop's books with the partner's.
async fn report(partner: &Partner, books: &Books, said: &mut String) -> Result<()> {
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let (requests, dropped) = (count(&partner.requests), count(&partner.answers_dropped));
    let counted = partner.counted().await?;
    let deliveries: u32 = counted.values().sum();
    let twice = counted.values().filter(|&&times| times != 1).count();
    writeln!(
        said,
        "{} webhooks saved, with two clicks each; {} waited for the partner over a restart",
        books.saved, books.waited
    )?;
    let waits = count(&partner.told_to_wait);
    writeln!(said, "{requests} requests came; {dropped} answers were lost, {waits} said to come later")?;
    let (parcels, declined) = (counted.len(), books.declined);
    writeln!(said, "{deliveries} deliveries counted for {parcels} parcels; {declined} webhook refused for good")?;

    // The books are worth something only where what they are about really happened.
    ensure!(dropped > 0 && waits == 1 && books.waited > 0, "the partner behaved too well");
    ensure!(requests > books.saved, "nothing was ever repeated");
    ensure!(twice == 0, "{twice} parcels were not counted exactly once");
    ensure!(books.saved == PARCELS + 1 && counted.len() == PARCELS as usize, "something is missing");
    ensure!((books.approved, books.declined, books.attention) == (PARCELS, 1, 0), "the shop has it otherwise");
    writeln!(said, "each exactly once")?;
    Ok(())
}

/// All of it, within its limit. What there is to say of it stands in `said`, also where it fails.
pub(crate) async fn play(keeps_keys: bool, said: &mut String) -> Result<()> {
    let folder = tempfile::tempdir()?;
    tokio::time::timeout(LIMIT, run(folder.path(), keeps_keys, said)).await.context("it took too long")?
}

#[tokio::main]
async fn main() -> Result<()> {
    let keeps_keys = match std::env::args().nth(1).as_deref() {
        None => true,
        Some("--forgetful") => false,
        Some(other) => anyhow::bail!("{other}: no such option; there is --forgetful"),
    };
    let mut said = String::new();
    let played = play(keeps_keys, &mut said).await;
    print!("{said}");
    played
}
