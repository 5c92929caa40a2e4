//! Asking the gateway until it is known what became of a request: one attempt at a time, all under one key.

use crate::{
    acquirer::{
        breaker::{Breaker, Showed},
        calls::{self, Call},
        client::Client,
        names::Purpose,
        reading::{self, Expected, Reading},
    },
    gateway::wire::Moved,
    metrics::{GatewayCall, GatewayCalls},
};
use bytes::Bytes;
use idempotency::Clock;
use jiff::Timestamp;
use rand::Rng;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use store::{Priority, ReadError, Store, WriteError};
use uuid::Uuid;

/// The pause before the second attempt; doubled from there.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two attempts.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// How long a gateway is relied on to know a key. Cautious: Kassa's own never forgets one, others do after a day.
const WINDOW: Duration = Duration::from_secs(23 * 60 * 60);

/// A request to the gateway.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) operation: i64,
    /// No attempt was made before this time.
    pub(crate) since: Timestamp,
    pub(crate) purpose: Purpose,
    /// Where it goes, and where it is asked for by reference.
    pub(crate) path: &'static str,
    /// JSON.
    pub(crate) body: Bytes,
    pub(crate) expected: Expected,
}

/// The gateway, with the bank's own count of what it was asked.
pub(crate) struct Gateway {
    pub(crate) client: Client,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) breaker: Breaker,
    pub(crate) calls: Arc<GatewayCalls>,
}

/// What is done next to find out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Send the request, under its one key.
    Send,
    /// Ask by reference: what was sent may be known by now, and the key may not be any more. What the gateway doesn't know is
    /// then sent, unless its answer was there once and has expired.
    Look { then_send: bool },
}

impl Gateway {
    /// Asks until it is known. `counted` is the call where its first attempt was counted with the claim; without it an
    /// earlier run may have asked, so the gateway is looked at before anything is sent again. The error says why a
    /// person must look.
    pub(crate) async fn ask(&self, request: &Request, counted: Option<Call>) -> Result<Moved, &'static str> {
        let mut counted = counted.filter(|call| call.attempts > 0);
        let mut call = match counted {
            Some(call) => call,
            None => self.stored_call(request).await?,
        };
        // Whether the gateway can't have it: nothing was sent, or it was looked for and is not there.
        let mut is_new = counted.is_some() || call.attempts == 0;
        let mut step = if is_new { Step::Send } else { Step::Look { then_send: true } };
        let mut back_off = BackOff::new();
        loop {
            let reading = match self.gateway_of(&call, is_new).await {
                Err(reading) => reading,
                Ok(gateway) => {
                    // Before the breaker: while it can't be counted nobody else is kept waiting for it.
                    if step == Step::Send && counted.take().is_none() {
                        call = self.count(request, gateway).await?;
                    }
                    let permit = self.breaker.pass(is_new).await;
                    if step == Step::Send && !is_new && self.window_is_over(request) {
                        step = Step::Look { then_send: true };
                    }
                    let reading = match step {
                        Step::Look { .. } => self.look(request).await,
                        Step::Send => {
                            is_new = false;
                            self.send(request, &call, gateway).await
                        }
                    };
                    permit.tell(showed(&reading));
                    reading
                }
            };
            match (reading, step) {
                (Reading::Known(moved), _) => return Ok(moved),
                (Reading::NeedsAttention(why), _) => return Err(why),
                (Reading::OtherGateway, _) => {
                    self.client.forget_identity();
                    return Err("another gateway answers than the one that it was sent to");
                }
                (Reading::Expired, _) => step = Step::Look { then_send: false },
                (Reading::NotThere, Step::Look { then_send: true }) => {
                    is_new = true;
                    step = Step::Send;
                }
                (Reading::NotThere, _) => return Err("the gateway has dropped its answer and knows no such reference"),
                (Reading::InProgress { retry_after_s }, _) => back_off.rest(retry_after_s).await,
                (Reading::Unknown { why, retry_after_s }, _) => {
                    let (operation, purpose) = (request.operation, request.purpose.as_str());
                    if back_off.is_first() {
                        tracing::warn!(operation, purpose, why, "asking the gateway until it is known");
                    } else {
                        tracing::debug!(operation, purpose, why, "asking the gateway again");
                    }
                    back_off.rest(retry_after_s).await;
                }
            }
        }
    }

    /// Which gateway the call goes to. The error says why it can't be made now, or never: what was sent to one gateway is never
    /// sent to another, which would know nothing of it.
    async fn gateway_of(&self, call: &Call, is_new: bool) -> Result<Uuid, Reading> {
        let is_ours = |gateway: &Uuid| call.gateway.is_none_or(|of_call| of_call == *gateway);
        if let Some(known) = self.client.known_identity().filter(is_ours) {
            return Ok(known);
        }
        // Also where another is known: it may have been replaced since.
        let permit = self.breaker.pass(is_new).await;
        let told = self.client.reach().await.map_err(|why| Reading::Unknown { why, retry_after_s: None });
        permit.tell(told.as_ref().map_or_else(showed, |_| Showed::Works));
        let gateway = told?;
        if is_ours(&gateway) { Ok(gateway) } else { Err(Reading::OtherGateway) }
    }

    async fn send(&self, request: &Request, call: &Call, gateway: Uuid) -> Reading {
        let start = Instant::now();
        let reading = match self.client.send(request.path, &call.key, gateway, request.body.clone()).await {
            Ok(raw) => reading::of_request(&raw, &request.expected),
            Err(why) => Reading::Unknown { why, retry_after_s: None },
        };
        self.calls.count(GatewayCall::Send, reading.ended(), start.elapsed());
        reading
    }

    async fn look(&self, request: &Request) -> Reading {
        let start = Instant::now();
        let reading = match self.client.ask(request.path, &request.expected.reference).await {
            Ok(raw) => reading::of_question(&raw, &request.expected),
            Err(why) => Reading::Unknown { why, retry_after_s: None },
        };
        self.calls.count(GatewayCall::Look, reading.ended(), start.elapsed());
        reading
    }

    /// Whether a gateway may have forgotten the key by now, so that sending again could move the money again.
    fn window_is_over(&self, request: &Request) -> bool {
        self.clock.now().duration_since(request.since).unsigned_abs() > WINDOW
    }

    async fn stored_call(&self, request: &Request) -> Result<Call, &'static str> {
        let (operation, purpose) = (request.operation, request.purpose);
        let call = until_read(&self.store, move |connection| calls::get(connection, operation, purpose)).await?;
        call.ok_or("the call to the gateway is not in the file")
    }

    /// Counts an attempt before it is made. While it can't be counted it isn't made.
    async fn count(&self, request: &Request, gateway: Uuid) -> Result<Call, &'static str> {
        let (operation, purpose) = (request.operation, request.purpose);
        until_stored(&self.store, "an attempt", move |tx| calls::count(tx, operation, purpose, gateway)).await
    }
}

/// What a reading shows of the gateway itself.
fn showed(reading: &Reading) -> Showed {
    match reading {
        Reading::Unknown { retry_after_s, .. } => Showed::Fails { retry_after_s: *retry_after_s },
        Reading::Known(_)
        | Reading::InProgress { .. }
        | Reading::Expired
        | Reading::NotThere
        | Reading::NeedsAttention(_)
        | Reading::OtherGateway => Showed::Works,
    }
}

/// Writes until it is in the file. The error says why it never will be.
pub(crate) async fn until_stored<T: Send + 'static>(
    store: &Store,
    what: &'static str,
    piece: impl Fn(&rusqlite::Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
) -> Result<T, &'static str> {
    let piece = Arc::new(piece);
    let mut back_off = BackOff::new();
    loop {
        let piece = piece.clone();
        match store.write(Priority::Click, move |tx| piece(tx)).await {
            Ok(done) => return Ok(done),
            Err(WriteError::Refused(error)) if !idempotency::may_pass(&error) => {
                tracing::error!(%error, what, "can't be stored");
                return Err("what belongs to the call breaks a rule of the store");
            }
            Err(error) => tracing::warn!(%error, what, "could not be stored yet"),
        }
        back_off.rest(None).await;
    }
}

/// Reads until the file can be read. The error says why it never will be.
pub(crate) async fn until_read<T: Send + 'static>(
    store: &Store,
    look: impl Fn(&rusqlite::Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
) -> Result<T, &'static str> {
    let look = Arc::new(look);
    let mut back_off = BackOff::new();
    loop {
        let look = look.clone();
        match store.read(move |connection| look(connection)).await {
            Ok(found) => return Ok(found),
            Err(ReadError::Failed(error)) if !idempotency::may_pass(&error) => {
                tracing::error!(%error, "what is stored can't be read");
                return Err("what is stored of the operation can't be read");
            }
            Err(error) => tracing::warn!(%error, "the store can't be read"),
        }
        back_off.rest(None).await;
    }
}

/// A pause that doubles, up to a limit, jittered so that what stopped together doesn't go on together.
struct BackOff(Duration);

impl BackOff {
    fn new() -> Self {
        Self(BACK_OFF_MIN)
    }

    /// Whether there was no pause yet.
    fn is_first(&self) -> bool {
        self.0 == BACK_OFF_MIN
    }

    async fn rest(&mut self, retry_after_s: Option<u32>) {
        let jittered = self.0.mul_f64(rand::rng().random_range(0.5..=1.0));
        let asked_for = Duration::from_secs(retry_after_s.unwrap_or(0).into());
        tokio::time::sleep(jittered.max(asked_for).min(BACK_OFF_MAX)).await;
        self.0 = (self.0 * 2).min(BACK_OFF_MAX);
    }
}
