//! The durable queue of operations over SQLite, and the task that settles them over HTTP: for a thing that must be done exactly
//! once by somebody else, such as a charge, a refund, a webhook.
//!
//! [`enqueue`](Outbox::enqueue) saves an *operation* in the caller's own transaction, so that a sale and what is to be charged
//! for it are one commit. A task then sends the saved bytes under the saved key until the other side has said how it ended,
//! over time-outs, restarts, kills and days without a network.
//!
//! **The one invariant:** an operation has one key for life; nothing of it leaves before it is durable, every attempt is
//! counted before its first byte, and only a valid answer of its own other side makes it final, once. No answer is `unknown`,
//! never "failed".
//!
//! The other side is called *the bank* all over this crate, because that is what it was made for. It is whoever a [`Contract`]
//! describes: with [`BankContract`], Kassa's bank; with [one of your own](crate#a-contract-of-your-own), anybody who keeps a key.
//! An outbox is made with one, and speaks to nobody else.
//!
//! # What it is for, and what not
//! For requests that are too dear to be made twice and too dear to be lost, to **one** other side for each file. It is not for
//! - another side that keeps no key. The outbox sends *at least* once, under one key for ever; it is the other side's dropping
//!   of repeats that makes it *exactly* once. No client can do that alone.
//! - many other sides from one file: contract, breaker and `Retry-After` are one for all that is in it. Take a file for each.
//! - high rates, or sending at a set time: four calls run at once, the oldest first, and everything is due when it is saved.
//! - data that must go: operations and their log are never deleted, the database refuses it.
//!
//! # A first use
//! ```
//! use std::sync::Arc;
//! use outbox::store::{Migration, Priority, Schema, Store, WriteError};
//! use outbox::{
//!     Bank, CancellationToken, Ended, EnqueueError, Enqueued, HttpTransport, Message, NewOperation, Outbox, State, uuid::Uuid,
//! };
//! # use outbox::{answer::{Answer, Reading}, jiff::Timestamp, Ask, Call, Contract, Operation, Promise, StoredRequest};
//! # struct Parcels;
//! # impl Contract for Parcels {
//! #     fn introduction(&self) -> Call { Call::new("GET", "/about") }
//! #     fn read_introduction(&self, _: &Answer, _: Timestamp) -> Result<Promise, Reading> { Err(Reading::foreign("nobody")) }
//! #     fn call(&self, _: Ask, _: &Operation, request: &StoredRequest) -> Option<Call> { Some(request.call()) }
//! #     fn read(&self, _: Ask, _: &Operation, _: &StoredRequest, _: &Answer, _: Timestamp) -> Reading { Reading::foreign("nobody") }
//! # }
//!
//! /// The click on "shipped". `shipment` is the id that it got when its dialog was opened: however often this is called, it is one
//! /// shipment and one webhook.
//! async fn ship(outbox: &Outbox, store: &Store, shipment: Uuid) -> Result<Enqueued, WriteError<EnqueueError>> {
//!     let message = Message::post("/shipments", format!(r#"{{"shipment":"{shipment}"}}"#));
//!     let (new, queue) = (NewOperation::new(shipment, "customer-7", message), outbox.clone());
//!     // Your rows and the operation: one commit. It is answered after the disk has it.
//!     let saved = store
//!         .write(Priority::Click, move |tx| {
//!             let saved = queue.enqueue(tx, &new)?;
//!             if !saved.existed {
//!                 let key = saved.operation.key;
//!                 tx.execute("INSERT INTO shipments (id, key) VALUES (?1, ?2)", (shipment.to_string(), key.as_bytes()))?;
//!             }
//!             Ok(saved)
//!         })
//!         .await?;
//!     outbox.wake();
//!     Ok(saved)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.db");
//! // Your tables and the outbox's in one file, in one numbering.
//! let own = "CREATE TABLE shipments (id TEXT PRIMARY KEY, key BLOB NOT NULL REFERENCES operations (key)) STRICT";
//! let mut migrations = outbox::migrations([1, 2]);
//! migrations.push(Migration { version: 3, name: "shipments", sql: own });
//! let store = Store::open(&path, &Schema { application_id: 7, migrations })?;
//! // What the other side understands: `Parcels` is below, under "A contract of your own". `.on_change(…)` comes here too.
//! let outbox = Outbox::new(store.clone(), Parcels);
//!
//! let shipment = Uuid::new_v4();
//! let saved = ship(&outbox, &store, shipment).await?;
//! assert_eq!((saved.operation.state, saved.existed), (State::Saved, false));
//! let again = ship(&outbox, &store, shipment).await?;
//! assert_eq!((again.operation.key, again.existed), (saved.operation.key, true));
//!
//! // From here on everything that is open is settled, with nobody asking, until the token is cancelled.
//! let shutdown = CancellationToken::new();
//! let address = "http://127.0.0.1:9"; // https, where it is not this machine
//! let transport = HttpTransport::new(&Bank::new(address, "secret"))?;
//! let settling = outbox.start(Arc::new(transport), shutdown.clone())?;
//! // …
//! shutdown.cancel();
//! assert_eq!(settling.await?, Ended::Stopped);
//! // Nobody is at that address, so it is still saved, and goes out at a later start.
//! let key = saved.operation.key;
//! let now = store.read(move |conn| outbox::by_key(conn, &key)).await?;
//! assert_eq!(now.map(|operation| operation.state), Some(State::Saved));
//! # Ok(()) }
//! ```
//! The whole of it, with a contract, a receiver that misbehaves and a restart, is in `examples/webhooks.rs` (`cargo run -p
//! outbox --example webhooks`). Money, to Kassa's bank:
//! ```no_run
//! # use outbox::{store::{Priority, Store}, uuid::Uuid, *};
//! # async fn pay(outbox: Outbox, store: Store, tender_id: Uuid) -> Result<(), Box<dyn std::error::Error>> {
//! let payment = PaymentRequest {
//!     amount: Amount::new(2490)?, // minor units: 24.90
//!     currency: Currency::EUR,
//!     card: CardToken::new("tok_visa")?,
//!     reference: Some("till-1/1042".to_owned()),
//!     accepted_offline_at: None,
//! };
//! let new = NewOperation::new(tender_id, "sale-1042", payment);
//! let mut events = outbox.subscribe();
//! let queue = outbox.clone();
//! let key = store.write(Priority::Click, move |tx| queue.enqueue(tx, &new)).await?.operation.key;
//! outbox.wake();
//! loop {
//!     // Whoever is too slow for them gets an error here, and reads on with `changed_since`.
//!     if let Event::OperationChanged(operation) = events.recv().await?
//!         && operation.key == key
//!         && operation.state.is_final()
//!     {
//!         println!("{} {:?}", operation.state, operation.approval_code());
//!         break;
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! # What an operation is in each state
//! | [`State`] | It means | What the outbox does next | What you may do | What never happens |
//! |---|---|---|---|---|
//! | `saved` | Durable, and no byte of it ever left; what was counted as an attempt made no connection. A refund may have no bytes yet | Sends it, when it is due (at once, and after its back-off where no connection was made), as soon as the bank has said who it is, nothing older is unsettled in its lane, and there is a place for its call: four run at once. A refund waits for its payment | [`cancel`] it: it ends at once. [`accept_offline`], of a payment | Sent with other bytes or under another key |
//! | `sending` | Counted: a call runs or begins within 0.2 s (no `due_at`), or the bank said that it is at it (`due_at` is when it is asked again) | Takes the answer, or asks again when that is due. Where no place for its call comes free in 0.2 s, it is what it was before. Where the process dies, the next start makes it `unknown` | `cancel`: the wish is saved; a call that runs ends first, and what it brings counts; one that was not made yet is not made. `accept_offline` | Back to `saved` once a byte may have left |
//! | `unknown` | Perhaps sent; no valid answer that ends it | Sends the same bytes under the same key, after its back-off; looks it up first where it is older than the bank's retention, or the bank's answer has expired | `cancel`: from the wish on only the cancellation is sent. `accept_offline` | "Failed"; a new key; given up |
//! | `approved` | Final. The bank did it: the money moved, the message was taken | Gives the refunds that waited for it their bytes, in the same commit. Sends nothing more | Refund it, a payment | Any change. Another end that comes later is an alarm |
//! | `declined` | Final. The bank refused it for good: no money moved | Cancels the refunds that waited for it, in the same commit. Sends nothing more | Save another in its place, [once](NewOperation::replacing), with a key of its own | Any change; a second try of this key |
//! | `cancelled` | Final. It was never sent, or the bank confirmed that this key never charges | Cancels the refunds that waited for it, in the same commit. While it is a [`tombstone`](Operation::tombstone), tells the bank that this key shall never charge | Save another in its place, once | Any change; sent. Another end that the bank tells is an alarm |
//! | `needs_attention` | A person must look; [`reason`](Operation::reason) says why | Looks it up, every 15 min, at each start and [`check_now`](Outbox::check_now): an end that is found there is its end. Lets the next in its lane go | Settle it at the bank; `cancel` it: from then on its cancellation is asked in place of the look-up, and what the bank says ends it; refund it (that waits), `accept_offline` | Sent again; dropped; made final by hand |
//!
//! `needs_attention` comes from: a definite refusal (`request-invalid: …`), the bank's own word that its people must look
//! (`bank: …`), a bank that forgets keys and does not know this one any more (`forgotten: …`), a call that can't be sent
//! (`unsendable: …`) or that the contract hasn't (`not-offered: …`), and the third fault of this program or of your hook in its
//! handling (`fault: …`).
//!
//! An operation that is open may wait with the reason `other-bank: MERCHANT at BANK`: it is bound to the bank that its first
//! call was meant for, and is sent, looked up and cancelled only there. While it is unsettled it holds its lane. That it begins to
//! wait so, and ends, is a change of it like any other: in its log, with an event.
//!
//! To save, to read and to cancel, no task needs to run: what is saved waits for the next one.
//!
//! # What an answer does
//! The contract reads it as one of these ([`answer::Reading`]). Each state with each answer, and the queue with each event, made
//! by running the code, is on the page of [`decide`] (`docs/OUTBOX.md` in the repository).
//!
//! | Reading | of Kassa's bank | The operation becomes, where its request was sent | Then |
//! |---|---|---|---|
//! | `Final` | a valid 201 or 402 that repeats key, amount and currency | `approved`, `declined` | stored with the bank's own bytes, before anybody is told |
//! | `Cancelled` | 410 `operation-cancelled` | `cancelled` | |
//! | `InProgress` | 409 | `sending` | the same again, not before its `Retry-After` |
//! | `Busy` | 429, 503 with `Retry-After` | `unknown` | **nothing at all** is sent before `Retry-After`; then the same again |
//! | `Trouble` | any other 5xx with a problem document | `unknown` | the same again after its own back-off; others go on, unless the bank fails at five different ones and completes none between: then all of it is asked for one at a time |
//! | `Expired` | 410 `key-expired` | `unknown` | looked up at once |
//! | `UnknownKey` | a look-up's 404 | `unknown` | sent again where keys are [permanent](Promise::permanent); else it is `needs_attention` |
//! | `Refused`, `BankAttention` | 400, 404, 413, 415, 422; 409 with that state | `needs_attention` | looked up every 15 min |
//! | `NotAllowed` | 401, 403 | `unknown` | **all** pause, and the bank is asked who it is, with back-off, until our secret works again |
//! | `Foreign` | anything else: HTML, a redirect, another key, half a body | `unknown` | the breaker opens |
//! | `NoAnswer` | time-out, reset, torn, longer than 64 KiB | `unknown` | the breaker opens |
//! | `NoConnection` | refused, no route, no name | `saved` stays `saved`, all else is `unknown` | the breaker opens |
//!
//! The same answer to a look-up or to a cancellation does the same: an end is an end, what is refused needs attention, and after
//! everything else the same question is asked again with the same pauses. A request, once a cancellation is wished, is never sent
//! again. What needs attention stays so until there is an end. Of a *tombstone* nothing changes but that it is one: `Cancelled` ends
//! it, another end ends it with an alarm ([`on_late_answer`](Outbox::on_late_answer)), `BankAttention`, `Refused` and `UnknownKey`
//! are an alarm too and it is told again after 15 min, and after everything else it is told again with the same pauses.
//!
//! # What is promised
//! - **Durable first.** [`Store::write`](store::Store::write) answers after the commit is on the disk. An attempt is counted in
//!   a commit of its own before its first byte; a result is in the file before anybody is told.
//! - **One key, one request, for life**, over every attempt, restart and upgrade of the program. The database refuses a change
//!   of either.
//! - **Order.** In each [lane](NewOperation::lane) one at a time, in the order of saving, whatever the clocks say; what is
//!   final or needs attention lets the next go. Over all lanes the oldest first, [four](Settings::in_flight_max) calls at
//!   once (while answers come within 50 ms, four more are counted ahead of theirs, for 0.2 s at most); a stuck one holds up its own lane and no other. So what failed three times in a row goes after what did not, what is only
//!   looked up or told as cancelled after all that is to be settled, and what the process died with twice last, and alone.
//! - **Back-off** after each failure of an operation: anything between nothing and 0.5 s, doubled with each failure in a row up
//!   to 30 s. No limit on attempts, ever.
//! - **One breaker.** It opens where no valid answer comes. While it is open, one question at a time goes out
//!   ([`Contract::introduction`]), with the same back-off, that only a completed operation resets. When the bank has said who
//!   it is, what waited for the way is due at once, and goes out at 20 in the first second, doubling each second; only what
//!   failed three times in a row keeps its own back-off, as the way may be broken for it alone.
//! - **`Retry-After`** is believed from 1 s to 15 min, with up to 1 s on top, and is kept in the file: no wake, no button and
//!   no restart passes it.
//! - **Liveness.** After faults have ended, everything that is `saved`, `sending` or `unknown`, and belongs to the bank that
//!   answers, ends or needs attention, with nobody touching anything.
//! - **Limits of a call**, by [`HttpTransport`]: 2 s to a connection, 10 s in all, an answer up to 64 KiB; no redirects, no
//!   proxy, no kept connections, no resend of its own. By the outbox itself: 15 s for each call and each write to the file.
//! - **Isolation.** An operation whose handling panics three times is set aside, and the rest go on; a panic of the task itself
//!   starts it again.
//!
//! All figures are in [`Settings`], but those of counting ahead: they follow from what a commit takes, and not from the bank.
//!
//! # What you must do
//! 1. **Give the intent an id before the click**: a UUID that the dialog, the form or the row has before anybody can ask twice.
//!    [`Outbox::enqueue`] gives the operation of a known intent back, in whatever state, and another request under the same intent is
//!    refused. Two ids are two operations.
//! 2. **One commit.** Enqueue in the same [`Store::write`](store::Store::write) as your own rows, and write these only where
//!    [`existed`](Enqueued::existed) is false. The piece must not end the transaction and should be quick. Everything that you
//!    write to the file goes through its one `Store`; only read through other connections.
//! 3. **Tell nobody "saved" before the write is answered, nor "failed" where that is not known.**
//!    [`Refused`](store::WriteError::Refused) and [`Storage`](store::WriteError::Storage) (and `Closed`, `Overloaded`): nothing
//!    is saved, and nothing will be sent. [`Unproven`](store::WriteError::Unproven): neither; what [`by_intent`] finds is an earlier
//!    call's, and may be on no disk. [`Uncertain`](store::WriteError::Uncertain): call again with the same intent, or read
//!    with [`by_intent`]. [`Untrusted`](store::WriteError::Untrusted): call again too, but nothing can be told before it succeeds. To
//!    make the same call again is right after every error.
//! 4. **[`wake`](Outbox::wake)** after the write. One that is forgotten, or an operation that another process saved, costs up
//!    to 5 s. Also [`check_now`](Outbox::check_now) for a button, [`network_changed`](Outbox::network_changed) where you know
//!    of it, [`change_bank`](Outbox::change_bank) for another address or secret.
//! 5. **Keep your rows in step by [`on_change`](Outbox::on_change)**, not by events: the hook runs in the commit of each
//!    change. It gets the transaction: it may read and write, must not end it, and should be quick. Its error or panic takes
//!    the change back, and is counted as a fault: tried again after the back-off, and the third sets the operation aside, with
//!    what the bank said kept in its log. An error of the file itself (full, locked, I/O) is not counted. It doesn't run for
//!    what you do yourself in a transaction of yours: enqueue, cancel, accept.
//! 6. **End it** by the token, and wait for the task: up to 5 s, and what is in flight is left `unknown`, durably. To just exit
//!    is a crash, and as safe.
//!
//! # What the other side must do
//! Your [`Contract`] says it of the other side; it can't be checked from here.
//! - **Keep the key**, in the same commit as the effect, with the answer; give a repeat that answer and do nothing. A repeat
//!   that comes while the first is still being done gets neither a second run nor a refusal.
//! - **Not forget it**, for as long as a repeat may come: that is for ever ([`Promise::for_ever`]), since a program may be
//!   switched off for a year. A side that drops *answers* after a while but never the key says its retention, and needs a
//!   look-up. One that forgets *keys* says `permanent: false`: what was perhaps sent, is older than its retention and not known
//!   there is left to a person.
//! - **Answer so that it can be told**: with the key, or whatever of the request shows that it is this one, in a body of its
//!   own format. A contract reads only that as an end. What it doesn't understand it calls `Foreign`, and it is asked again
//!   under the same key: a wrong `Foreign` has that one operation asked again for ever, at up to 30 s, a wrong `Final` can't be taken
//!   back.
//!
//! What a side hasn't got, the contract gives no call for. Without a *look-up* nothing can end what needs attention, so read a
//! definite refusal as [`declined`](answer::Reading::declined) and not as `Refused`. Without a *cancellation* don't offer
//! [`cancel`] for what is not `saved`: it would need attention, for good. Without an *introduction*, ask anything harmless that
//! is answered, and give an identity of your own making that never changes.
//!
//! # A contract of your own
//! A side that takes parcels, wants the key in a header `x-key`, and writes it into each of its answers. It can be asked what became
//! of a key, and has no cancellation:
//! ```
//! use outbox::answer::{Answer, Reading};
//! use outbox::{Ask, BankIdentity, Call, Contract, Operation, Promise, StoredRequest, jiff::Timestamp, uuid::Uuid};
//! use serde_json::Value;
//!
//! struct Parcels;
//!
//! impl Contract for Parcels {
//!     fn introduction(&self) -> Call {
//!         Call::new("GET", "/about")
//!     }
//!
//!     fn read_introduction(&self, answer: &Answer, _: Timestamp) -> Result<Promise, Reading> {
//!         let about: Value = answer.json()?;
//!         if about["service"] != "parcels" {
//!             return Err(Reading::foreign("it is another service"));
//!         }
//!         // It has no name of its own, so it gets one here, always the same. It keeps keys and answers for ever.
//!         let identity = BankIdentity { bank_id: Uuid::from_u128(7), merchant: "shop-7".to_owned() };
//!         Ok(Promise::for_ever(identity))
//!     }
//!
//!     fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
//!         match ask {
//!             Ask::Send => Some(request.call().with("x-key", operation.key.to_string())),
//!             Ask::LookUp => Some(Call::new("GET", &format!("/parcels/{}", operation.key))),
//!             Ask::Cancel => None,
//!         }
//!     }
//!
//!     /// An end only where it is surely this side's own word, about this key. Whatever else comes is asked again.
//!     fn read(&self, ask: Ask, operation: &Operation, _: &StoredRequest, answer: &Answer, now: Timestamp) -> Reading {
//!         let said: Value = match answer.json() {
//!             Ok(said) => said,
//!             Err(reading) => return reading,
//!         };
//!         if said["key"] != operation.key.to_string() {
//!             return Reading::foreign("it is about another key");
//!         }
//!         match (answer.status, answer.retry_in(now)) {
//!             (200 | 201, _) if said["state"] == "taken" => Reading::approved(answer.text()),
//!             (422, _) => Reading::declined(answer.text()),
//!             (404, _) if ask == Ask::LookUp => Reading::UnknownKey,
//!             (503, Some(retry_after)) => Reading::busy("busy", retry_after),
//!             // It may name its own problem.
//!             (500.., _) => Reading::trouble(said["problem"].as_str().unwrap_or("failed").to_owned()),
//!             (status, _) => Reading::foreign(format!("status {status}")),
//!         }
//!     }
//! }
//! # use std::sync::{Arc, Mutex};
//! # use outbox::{answer::CallError, store::{Priority, Schema, Store}, *};
//! # /// Answers its first parcel by a portal's page, then by a failure, and then as it should.
//! # struct Script(Mutex<u16>);
//! # impl Transport for Script {
//! #     fn address(&self) -> &str { "https://parcels.example" }
//! #     fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, CallError>> {
//! #         let Some(key) = call.header("x-key") else {
//! #             let body = br#"{"service": "parcels"}"#.to_vec();
//! #             let content_type = Some("application/json".to_owned());
//! #             return Box::pin(async { Ok(Answer { status: 200, content_type, body, ..Answer::default() }) });
//! #         };
//! #         let mut calls = self.0.lock().unwrap();
//! #         *calls += 1;
//! #         let (status, content_type, body) = match *calls {
//! #             1 => (200, "text/html", "<h1>Welcome to our hotel</h1>".to_owned()),
//! #             2 => (500, "application/json", format!(r#"{{"key": "{key}", "problem": "flat-tyre"}}"#)),
//! #             _ => (201, "application/json", format!(r#"{{"key": "{key}", "state": "taken"}}"#)),
//! #         };
//! #         let answer = Answer { status, content_type: Some(content_type.to_owned()), body: body.into(), ..Answer::default() };
//! #         Box::pin(async { Ok(answer) })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let schema = Schema { application_id: 7, migrations: outbox::migrations(1..) };
//! # let store = Store::open(&folder.path().join("shop.db"), &schema)?;
//! # let outbox = Outbox::new(store.clone(), Parcels);
//! # let mut events = outbox.subscribe();
//! # let shutdown = CancellationToken::new();
//! # let settling = outbox.start(Arc::new(Script(Mutex::new(0))), shutdown.clone())?;
//! # let new = NewOperation::new(Uuid::new_v4(), "order-7", Message::post("/parcels", "{}"));
//! # let queue = outbox.clone();
//! # let key = store.write(Priority::Click, move |tx| queue.enqueue(tx, &new)).await?.operation.key;
//! # outbox.wake();
//! # while !matches!(events.recv().await?, Event::OperationChanged(operation) if operation.state == State::Approved) {}
//! # let log = store.read(move |conn| attempts(conn, &key)).await?;
//! # let read: Vec<_> = log.iter().filter_map(|line| line.reading.as_deref()).collect();
//! # assert_eq!(read, ["not-the-bank", "flat-tyre", "approved"]);
//! # shutdown.cancel();
//! # assert_eq!(settling.await?, Ended::Stopped);
//! # Ok(()) }
//! ```
//!
//! # Refunds, cancelling, acceptance offline
//! A **refund** is an operation of its own, with its own intent and key, for a payment of this file in any state but declined
//! or cancelled, and never for more than what is left of it: refunds under way count. While its payment is open it is `saved`,
//! has no bytes and holds up no lane. The commit that stores the payment's approval gives it its bytes (so an approved
//! payment's result must be an object with the bank's `id`); any other end of the payment cancels it, with the reason
//! `payment-declined` or `payment-cancelled`. Where it was the bank that said so, nobody is told: no copy of this file can have got
//! bytes for it. Where the payment was cancelled here alone, and where the refund itself was, it is a tombstone like any other, told
//! to the payment's bank where that is known. A payment that needs attention blocks it ([`Summary::blocked`]).
//!
//! [`cancel`] ends what is `saved` in the commit that wishes it. The bank is told all the same, in the background: the file may
//! be a copy of one that did send it. If the bank says that it ended otherwise, that goes to
//! [`on_late_answer`](Outbox::on_late_answer), and changes nothing here. Where the contract has no cancellation, nobody is
//! told. Of anything else that is open the wish is saved, and from then on only the cancellation is sent, until the bank says
//! `cancelled`, or that it was done after all: that is then its end. A wish is never taken back.
//!
//! [`accept_offline`] marks a payment as one whose goods are gone before the bank answered. It changes nothing of its sending.
//! It excludes a plain cancel, and a cancel excludes it, in one commit; [`CancelAs::WriteOff`] cancels it all the same. A
//! request that was taken offline from the outset has the mark, and the bank is told so in its bytes.
//!
//! # What it tells
//! [`Outbox::subscribe`] gives [`Event`]s of what this outbox's task does, each after it is durable; a listener that is more than
//! 1,024 behind is told that it missed some, and reads on with [`changed_since`], which also has what was saved or cancelled
//! by you, and what a task in another process did. To read at any time: [`by_key`], [`by_intent`], [`list`],
//! [`refunds_of`]; [`summary`] for the figures (unsettled and their sum, the oldest, next attempt, last contact, why nothing is
//! sent); [`attempts`] for the history of one operation, append-only, with both clocks; [`export`] for everything, a line of
//! JSON each. None of these holds a card token, a secret or a request's body; results, paths and the bank's problem texts they
//! do. `tracing` has a span `attempt` for each call, with the short code.
//!
//! # The program dies here. What happens?
//! | It dies | The file has | At the next start |
//! |---|---|---|
//! | before the commit of your write | nothing of it | nothing was sent, nothing will be |
//! | in that commit | your rows and the operation, or neither | read with [`by_intent`], or make the same call again |
//! | after it, before `wake` | `saved` | it is sent |
//! | after the commit that counts an attempt; before, while or after its bytes leave; while the bank works; with half an answer; with an answer that is not stored yet | `sending` | `unknown`, and the same bytes go out under the same key, at once; the bank repeats its answer. The log says `resumed` |
//! | in the commit of the result | `sending` as before, or the end with your hook's rows | as above, or nothing is left to do |
//! | after it, before its event | the end | your rows have it already; [`changed_since`] tells the rest |
//! | while it waits: back-off, `Retry-After`, an outage | the state it had, and until when the bank asked to wait | all is due at once, but for `Retry-After` |
//! | while it is looked up, or its cancellation is on the way | the state it had | the same is asked again |
//! | in a migration | the version before the step that was under way, whole, and a copy beside it | the step is made, at the opening |
//! | again and again, with the same operations in flight | how often in a row | what it died with twice is tried alone, so that one that kills the program doesn't take three others along. However often, it is never given up |
//!
//! Where the bank dies, its side is the same as a lost answer. Where your *hook* panics, its change is taken back, see above.
//! Where the *disk* takes no write (full, read-only, locked by another program, damaged): your write fails with nothing saved,
//! or says that it isn't known; the task makes no call that it couldn't count, keeps an answer that it couldn't store and tries
//! to store it, and goes on by itself when the file takes a commit again. Where it dies meanwhile, that was `sending`, see above.
//!
//! # One owner, several processes, copies
//! One task settles a file: [`Outbox::start`] takes the lock `FILE.settling` beside it, which lasts as long as the task and no
//! longer than its process, so it needs no care after a kill. Each start has a new epoch in the file, and a task that finds
//! another one than its own ends with [`Ended::TakenOver`]. The lock is no leader election: a second process is refused, not
//! queued. Other processes may read at any time; one at a time should write. On a network file system neither lock nor commit
//! proves anything.
//!
//! A **copy** of the file is another owner of the same keys: both send the same bytes under the same key, and the bank does
//! each once. What each saves after that has keys of its own, so the same *intent* asked of both is two operations: don't run
//! both on purpose. An **older copy that is restored** doesn't know what was saved since, though the bank may: compare with the
//! bank's list before you let anybody save the same again.
//!
//! # Clocks
//! Order is by sequence, never by time. Times are Unix milliseconds in the file; all durations here are of the wall clock, and
//! where it parts from the monotonic one by more than 2 s (it was set, the machine slept) everything is due at once, and what
//! was left of a `Retry-After` is still left. A due time further ahead than anything is ever planned means nothing and is due.
//! What was sent in the future, by a clock that was wrong, counts as older than any retention that ends. The gap between our clock and
//! the bank's is in [`Summary::clock_gap_s`], and each log line of an answer has both times.
//!
//! # Taking it into your project
//! The crate is not on a registry: depend on this repository, by path or by git, and on `tokio` with time and I/O enabled, of
//! either flavour (`tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "time"] }`); a contract that reads JSON
//! needs `serde_json` too. The first build takes some minutes, most of them for SQLite and TLS. Types of other crates that stand in the interface are re-exported here ([`store`], [`rusqlite`], [`jiff`],
//! [`uuid`], [`CancellationToken`], [`BoxFuture`]): use these. SQLite is the bundled one, 3.51.3 or newer, and a second crate
//! that links SQLite another way can't be in the same program. A dependency doesn't inherit this repository's
//! `.cargo/config.toml`: set `LIBSQLITE3_FLAGS` in your own as it stands there, or every commit syncs a little more than it
//! must. It needs the default `panic = "unwind"` to set a faulty operation aside; with `abort`, a panic is a crash.
//!
//! **Migrations.** [`migrations`] gives the outbox's steps for your [`Schema`](store::Schema), each under a number of your
//! choice, in order; your own stand before, between or after. Steps are numbered 1, 2, 3, … over all of them, and a number that
//! was released keeps its text: where a later version of this crate has one more, it gets the next free number of yours, and
//! until it has it the program builds, and the start says what is missing. The names
//! `operations`, `attempts`, `outbox` and what begins with one of the first two are the outbox's. Your tables may refer to
//! `operations (key)`. Before it migrates a file, the store copies it to `FILE.before-N`; a file of a newer program is refused,
//! untouched. [`Outbox::start`] refuses a file that has not all steps.

/// What the index `operations_open` holds. A query finds that index only by these very words.
macro_rules! open {
    () => {
        "(state IN ('saved', 'sending', 'unknown', 'needs_attention') OR tombstone = 1)"
    };
}

mod attempts;
mod awaited;
mod backoff;
mod breaker;
mod cancelling;
mod changes;
mod clock;
mod columns;
mod contract;
mod events;
mod export;
mod failing;
mod one_row;
mod operations;
mod outbox;
mod outcome;
mod pacing;
mod refunds;
mod rows;
mod saving;
mod settings;
mod settler;
#[cfg(test)]
mod simulation;
mod state;
mod step;
mod summary;
mod tables;
mod transport;

pub mod answer;
pub mod bank;
pub mod decide;

pub use attempts::{Attempt, attempts};
pub use awaited::{last_answer, starts, tombstones_for};
pub use backoff::Backoff;
pub use bank::BankContract;
pub use cancelling::{AcceptError, CancelAs, CancelError, Cancelled, accept_offline, cancel};
pub use changes::{Changes, bank_asked, changed_since, last_change};
pub use clock::{Clock, SystemClock};
pub use contract::{Contract, Promise, StoredRequest};
pub use events::Event;
pub use export::{ExportError, export};
pub use operations::{Filter, Kind, Money, Operation, by_intent, by_key, list, refunds_of, replacement_of};
pub use outbox::{Ended, OnChange, OnLateAnswer, Outbox, StartError};
pub use rows::LateAnswer;
pub use saving::{EnqueueError, Enqueued, Message, NewOperation, Request, enqueue};
pub use settings::Settings;
pub use state::{Ask, State};
pub use step::BankIdentity;
pub use summary::{Backlog, Summary, summary};
pub use transport::{Bank, BankError, Call, HttpTransport, Secret, Transport};

// What stands in the interface, so that a user of this crate needs to name no other, nor to find the version that fits.
pub use futures::future::BoxFuture;
pub use protocol::{Amount, AmountError, CardToken, Currency, Key, KeyError, Outcome, PaymentRequest, ShortCode};
pub use tokio_util::sync::CancellationToken;
pub use {jiff, rusqlite, store, uuid};

/// The outbox's tables, as steps from nothing to what this version needs, in SQL; [`migrations`] gives them to a
/// [`Schema`](store::Schema). A step that was released never changes; a later version may have more.
pub const MIGRATIONS: &[&str] = &[include_str!("migrations/001_outbox.sql"), include_str!("migrations/002_outbox.sql")];

/// The steps of [`MIGRATIONS`] as migrations of the caller's file, each under one of these versions, in order: the first step
/// under the first, and so on, as far as there are both.
///
/// `migrations(1..)` has all of them, of every later version of this crate too, and is for a file with no other tables, or with
/// other tables that are made elsewhere. Where steps of your own stand between them, name the versions: `migrations([1, 3])`. A
/// later version of this crate that has one more step then still builds, and [`Outbox::start`] refuses the file until that step
/// has its version, the next free one.
#[must_use]
pub fn migrations(versions: impl IntoIterator<Item = u32>) -> Vec<store::Migration> {
    let steps = MIGRATIONS.iter().zip(versions);
    steps.map(|(&sql, version)| store::Migration { version, name: "outbox", sql }).collect()
}
