//! A service that prints a shipping label exactly once, however often it is asked: what it takes to put the engine into an
//! axum service of your own. Read it from top to bottom. Start it, and ask for a label under a key of your choice; the
//! printer takes its time. In one terminal:
//! ```console
//! $ cargo run -p idempotency --example labels -- 127.0.0.1:8470 /tmp/labels-1 3000     # a folder that is not there yet
//! listening on http://127.0.0.1:8470
//! ```
//! In another:
//! ```console
//! $ ask() { curl -sSi -H "Idempotency-Key: $1" -H 'Content-Type: application/json' -d "$2" http://127.0.0.1:8470/labels; }
//! $ K=0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b
//! $ ask $K '{"parcel":"P-1","to":"Ann, 1 High Street","weight_g":500}'
//! HTTP/1.1 201 Created …  idempotent-replayed: false …  {"label":"label-1","parcel":"P-1"}
//! $ ask $K '{"weight_g":500, "to":"Ann, 1 High Street", "parcel":"P-1"}'     # at once: the same bytes, no second sheet
//! HTTP/1.1 201 Created …  idempotent-replayed: true …  {"label":"label-1","parcel":"P-1"}
//! $ ask $K '{"parcel":"P-1","to":"Bob","weight_g":500}'
//! HTTP/1.1 422 Unprocessable Entity …  {"error":"the key belongs to another request","differs":["to"]}
//! ```
//! Now kill it in the middle of the next one and start it again: the label is finished with nobody asking.
//! ```console
//! $ K=0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0c
//! $ ask $K '{"parcel":"P-2","to":"Bob","weight_g":70}' & sleep 1; kill -9 "$(cat /tmp/labels-1/labels.lock)"
//! curl: (52) Empty reply from server
//! $ cargo run -p idempotency --example labels -- 127.0.0.1:8470 /tmp/labels-1 3000 &
//! $ sleep 5; curl -s http://127.0.0.1:8470/operations/$K
//! {"state":"printed","label":"label-2"}
//! $ ls /tmp/labels-1/tray       # one sheet for each key
//! 0194f3a01c2d7e3f8a4b5c6d7e8f9a0b  0194f3a01c2d7e3f8a4b5c6d7e8f9a0c
//! $ kill "$(cat /tmp/labels-1/labels.lock)"; rm -r /tmp/labels-1
//! ```

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use idempotency::{
    Answer, Begin, Config, Engine, Job, Limits, Request, Settlement, State as Stored, SystemClock, Undo, Verdict, Work,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};
use store::{LockFile, Migration, Schema, Store};
use tokio::fs;
use uuid::Uuid;

/// Whose keys they are. A real service puts its authenticated customer here: the same key of another one is another operation.
const SCOPE: &str = "everybody";
/// What `Retry-After` says, in seconds. A real service adds chance, so that not all come back at once.
const RETRY_AFTER_S: u32 = 2;

/// What is asked for. Unknown members are refused: what is not understood can't be compared with a repeat either.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelRequest {
    parcel: String,
    to: String,
    weight_g: u32,
}

impl LabelRequest {
    /// Each member with bytes that are equal exactly where its meaning is equal: a repeat may be written another way.
    fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("parcel", self.parcel.clone().into()),
            ("to", self.to.clone().into()),
            ("weight_g", self.weight_g.to_string().into()),
        ]
    }
}

/// The outside: slow, and repeatable by the name of a job, as whatever a work asks must be. A job that was printed already is
/// not printed again.
struct Printer {
    tray: PathBuf,
    takes: Duration,
}

impl Printer {
    async fn print(&self, job: &str, text: &str) -> io::Result<()> {
        tokio::time::sleep(self.takes / 2).await;
        let (sheet, half) = (self.tray.join(job), self.tray.join(format!("{job}.half")));
        if !fs::try_exists(&sheet).await? {
            fs::write(&half, text).await?;
            fs::rename(half, sheet).await?;
        }
        tokio::time::sleep(self.takes / 2).await;
        Ok(())
    }
}

/// The work behind a key. It may be cut off anywhere and run again from the start, by a later process too.
struct Printing {
    printer: Printer,
}

impl Work for Printing {
    type Context = ();

    async fn run(&self, job: Job<()>) -> Verdict {
        // Stored with the claim, so it is there after a crash.
        let Ok(request) = serde_json::from_slice::<LabelRequest>(&job.payload) else {
            return Verdict::NeedsAttention("the stored request can't be read by this version".into());
        };
        // Made from the operation and from nothing else: the same in every run.
        let name = Uuid::from_bytes(job.key).simple().to_string();
        let text = format!("{}\n{}\n{} g\n", request.parcel, request.to, request.weight_g);
        // No answer is no outcome: ask again, under the same name, until it is known.
        while let Err(error) = self.printer.print(&name, &text).await {
            tracing::warn!(%error, "the printer doesn't answer");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let label = format!("label-{}", job.id);
        let body = json!({"label": label, "parcel": request.parcel}).to_string();
        let (operation, parcel) = (job.id, request.parcel);
        Verdict::Settled(Settlement {
            outcome: "printed",
            subject: Some(label),
            // Every repeat gets exactly this; so nothing in it may depend on who asks, or when.
            response: idempotency::Response {
                status: 201,
                content_type: "application/json".into(),
                location: Some(format!("/operations/{}", Uuid::from_bytes(job.key))),
                body: body.into(),
            },
            // The service's own rows, in the same commit as the result.
            rows: Arc::new(move |tx| {
                tx.execute("INSERT INTO labels (operation, parcel) VALUES (?1, ?2)", (operation, &parcel)).map(|_| ())
            }),
        })
    }

    async fn undo(&self, _: Job<()>, _: Settlement) -> Undo {
        Undo::Kept // paper can't be unprinted
    }
}

type Labels = Engine<Printing>;

/// `POST /labels`. What is refused before the engine is asked has claimed nothing: the corrected request may use the same key.
async fn print(State(engine): State<Labels>, headers: HeaderMap, body: Bytes) -> Response {
    let mut keys =
        headers.get_all("idempotency-key").iter().map(|value| value.to_str().unwrap_or_default().parse::<Uuid>());
    let (Some(Ok(key)), None) = (keys.next(), keys.next()) else {
        return error(StatusCode::BAD_REQUEST, "send one Idempotency-Key, a UUID");
    };
    let Ok(request) = serde_json::from_slice::<LabelRequest>(&body) else {
        return error(StatusCode::BAD_REQUEST, "send parcel, to and weight_g");
    };
    let asked = Request {
        scope: SCOPE.into(),
        key: key.into_bytes(),
        kind: "label",
        route: "POST /labels".into(),
        members: request.members(),
        payload: json!(request).to_string().into_bytes(),
        begin: Box::new(|_tx, _claim| Ok(Begin::Run)),
        context: (),
    };
    // A client that hangs up ends this waiting, and nothing else: the work runs in a task of the engine's.
    told(engine.run(asked).await)
}

/// What each answer is in HTTP.
fn told(answer: Answer) -> Response {
    let again = [(header::RETRY_AFTER, RETRY_AFTER_S.to_string())];
    match answer {
        Answer::Done { response, replayed } => {
            let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let headers = [
                ("content-type", response.content_type),
                ("location", response.location.unwrap_or_default()),
                ("idempotent-replayed", replayed.to_string()),
            ];
            (status, headers, response.body).into_response()
        }
        // Claimed, and not known yet: never "failed".
        Answer::InProgress => (again, error(StatusCode::CONFLICT, "it is being printed; ask again")).into_response(),
        Answer::NeedsAttention => (again, error(StatusCode::CONFLICT, "somebody has to look at it")).into_response(),
        Answer::Reused { differs } => {
            let body = json!({"error": "the key belongs to another request", "differs": differs});
            (StatusCode::UNPROCESSABLE_ENTITY, Json(body)).into_response()
        }
        // The claim never expires: it was printed once, and is not printed again.
        Answer::Expired { .. } => error(StatusCode::GONE, "it was printed; the response is not stored any more"),
        Answer::Cancelled => error(StatusCode::GONE, "the key was cancelled"),
        // Nothing was claimed.
        Answer::Refused(why) => error(StatusCode::NOT_FOUND, why),
        Answer::Unavailable(_) => (again, error(StatusCode::SERVICE_UNAVAILABLE, "not now; ask again")).into_response(),
    }
}

fn error(status: StatusCode, what: &str) -> Response {
    (status, Json(json!({"error": what}))).into_response()
}

/// `GET /operations/{key}`: what became of a key, also long after its response has expired. Changes nothing.
async fn show(State(engine): State<Labels>, Path(key): Path<Uuid>) -> Response {
    match engine.lookup(SCOPE, key.into_bytes()).await {
        Err(_) => told(Answer::Unavailable(idempotency::Hindrance::Store)),
        Ok(None) => error(StatusCode::NOT_FOUND, "this key was never used"),
        Ok(Some(record)) => {
            let state = match &record.state {
                Stored::Processing => "processing",
                Stored::Settled { outcome } => outcome,
                Stored::Cancelled => "cancelled",
                Stored::NeedsAttention { .. } => "needs_attention",
            };
            Json(json!({"state": state, "label": record.subject})).into_response()
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8470".into());
    let folder = PathBuf::from(arguments.next().unwrap_or("labels".into()));
    let takes = Duration::from_millis(arguments.next().unwrap_or("3000".into()).parse()?);

    // The lock first: holding it is the proof that every earlier process on this store is dead.
    let lock = LockFile::acquire(&folder.join("labels.lock"))?;
    let migrations = vec![
        Migration { version: 1, name: "operations", sql: idempotency::SCHEMA },
        Migration {
            version: 2,
            name: "labels",
            sql: "CREATE TABLE labels (operation INTEGER PRIMARY KEY, parcel TEXT NOT NULL) STRICT",
        },
    ];
    let store = Store::open(&folder.join("labels.db"), &Schema { application_id: 0x4c41_424c, migrations })?;
    let tray = folder.join("tray");
    fs::create_dir_all(&tray).await?;
    let config =
        Config { wait: Duration::from_secs(5), retention: Duration::from_secs(86_400), limits: Limits::default() };
    let work = Printing { printer: Printer { tray, takes } };
    let engine = Engine::open(store, lock, work, Arc::new(SystemClock), config).await?;
    // From here on what an earlier process left unfinished goes on, with nobody asking.
    engine.start();

    let router = Router::new().route("/labels", post(print)).route("/operations/{key}", get(show));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    // What a service manager sends, and Ctrl-C.
    let mut told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let end = async move {
        tokio::select! {
            _ = told.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    axum::serve(listener, router.with_state(engine.clone())).with_graceful_shutdown(end).await?;
    // What runs may end. What doesn't in time is finished by the next start.
    engine.stop();
    let _ = tokio::time::timeout(Duration::from_secs(10), engine.idle()).await;
    engine.close().await;
    Ok(())
}
