//! What the other side understands, and what its answers mean: all that the outbox knows of it.
//!
//! [`BankContract`](crate::BankContract) is Kassa's bank. A program that sends something else, to somebody else, writes its own: which request
//! shows that they are there, how the key is sent, and which answers are an end. The rest (durability, order, back-off,
//! breaker, wakes) is the same for all.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::answer::{Answer, Reading, foreign, is_readable};
use crate::operations::Operation;
use crate::settings::Settings;
use crate::state::Ask;
use crate::step::BankIdentity;
use crate::transport::Call;

/// Who the other side is, and what it promises about keys. It is asked anew at each introduction, so it may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Operations are bound to it from their first call on, and go to no other: where another one answers at the same address,
    /// or to another secret, they wait. One that has no name of its own gets one by its contract, always the same.
    pub identity: BankIdentity,
    /// How long it repeats its answer to a known key. What was first sent longer ago is looked up before it is sent again;
    /// nothing is where it does so for ever ([`Promise::for_ever`]).
    pub retention: SignedDuration,
    /// Whether a key, once used, is never executed again, however old. Where it isn't, what was perhaps sent and is not known
    /// there after the retention is left to a person, and so is its cancellation.
    pub permanent: bool,
}

impl Promise {
    /// Of one that keeps every key with its answer for ever: to send again is to ask, however late.
    #[must_use]
    pub const fn for_ever(identity: BankIdentity) -> Promise {
        Promise { identity, retention: SignedDuration::MAX, permanent: true }
    }

    /// Refused where the name that it gives us can't be shown: who it is, is never altered to make it so.
    pub(crate) fn fit_to_show(self) -> Result<Promise, Reading> {
        if is_readable(&self.identity.merchant) {
            Ok(self)
        } else {
            foreign("its name for us has characters that can't be shown")
        }
    }

    /// Whether its answer to a request that was first sent so long ago may be gone. One that was sent in the future was sent by a
    /// clock that was wrong, and may be of any age.
    pub(crate) fn may_have_dropped(&self, age: SignedDuration, settings: &Settings) -> bool {
        self.retention < SignedDuration::MAX && (age > self.retention || age < -settings.drift_max)
    }
}

/// The request of an operation, as it was saved: every attempt sends these bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    /// `POST`, …
    pub method: String,
    /// The path below the other side's address.
    pub path: String,
    /// The body, byte for byte.
    pub body: Vec<u8>,
}

impl StoredRequest {
    /// The call that sends it, still without the key.
    #[must_use]
    pub fn call(&self) -> Call {
        Call { body: Some(self.body.clone()), ..Call::new(&self.method, &self.path) }
    }
}

/// What the other side understands. `examples/webhooks.rs` has a short one.
///
/// **What an implementation must keep**
/// - [`Reading::Final`] and [`Reading::Cancelled`] only for an answer that surely is the other side's own and about this
///   operation; everything doubtful is [`Reading::Foreign`], and is asked again under the same key. A [`Reading::Final`] that is
///   wrong can't be taken back.
/// - [`Reading::Busy`] too only for its own word: whoever says it holds everybody.
/// - Each call that sends the request sends its bytes as they were saved, and has the key in it, so that the other side can tell
///   a repeat. The key is the same in all of them.
/// - The same arguments give the same call, in every version of the program: operations outlive it. [`Contract::call`] runs in a
///   commit of the file, so it is quick, and asks nobody.
/// - Details and names of problems are for people and may be the other side's own words: before they are kept they are put on one
///   line, without characters that act on a terminal or turn a line round, and cut after 200 characters. A result is kept as it is.
/// - It answers always. A panic in it counts as a fault of the operation, and the third sets that aside.
///
/// Whether the other side keeps its half (see the [crate's page](crate#what-the-other-side-must-do)) can't be found out from here.
pub trait Contract: Send + Sync + 'static {
    /// The question that shows that the other side is there, and who it is. It changes nothing there. It is asked at the start,
    /// after each change of address or secret and after each failure of the transport, before anything is sent.
    fn introduction(&self) -> Call;

    /// What the answer to it means. `now` is our clock, for a `Retry-After` that is a date.
    ///
    /// # Errors
    /// How an answer is read that is no introduction: `Foreign`, `NotAllowed`, `Busy` or `Trouble`. It is asked again with
    /// back-off, and until then nothing is sent.
    fn read_introduction(&self, answer: &Answer, now: Timestamp) -> Result<Promise, Reading>;

    /// The call that asks this for the operation. None where the other side has no such call: then the operation needs
    /// attention; but one that was cancelled here before it was sent is done with, as nobody can be told.
    ///
    /// The key of the operation must be in every call that sends its request ([`Ask::sends`]).
    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call>;

    /// What the answer to that call means. `now` is our clock, for a `Retry-After` that is a date.
    fn read(
        &self,
        ask: Ask,
        operation: &Operation,
        request: &StoredRequest,
        answer: &Answer,
        now: Timestamp,
    ) -> Reading;
}

/// A contract that is chosen at run time, or shared.
impl<C: Contract + ?Sized> Contract for Arc<C> {
    fn introduction(&self) -> Call {
        (**self).introduction()
    }

    fn read_introduction(&self, answer: &Answer, now: Timestamp) -> Result<Promise, Reading> {
        (**self).read_introduction(answer, now)
    }

    fn call(&self, ask: Ask, operation: &Operation, request: &StoredRequest) -> Option<Call> {
        (**self).call(ask, operation, request)
    }

    fn read(
        &self,
        ask: Ask,
        operation: &Operation,
        request: &StoredRequest,
        answer: &Answer,
        now: Timestamp,
    ) -> Reading {
        (**self).read(ask, operation, request, answer, now)
    }
}
