//! What people do at the till, and what the rules say that it comes to.

use anyhow::{Context, Result, bail, ensure};
use outbox::{AcceptError, CancelAs, CancelError, EnqueueError, Kind, NewOperation, Operation, Request, State};
use protocol::{Amount, CardToken, Currency, Key, PaymentRequest};
use store::{Priority, WriteError};
use uuid::Uuid;

use crate::expected::{Expected, Verdict, accepting, cancelling, refunding, replacing};
use crate::process::mirror;
use crate::rare::{Rare, reached};
use crate::steps::{DECLINES, How};
use crate::world::World;

fn payment(amount: i64, card: &str, offline: Option<jiff::Timestamp>) -> Result<Request> {
    Ok(Request::Payment(PaymentRequest {
        amount: Amount::new(amount)?,
        currency: Currency::EUR,
        card: CardToken::new(card)?,
        reference: None,
        accepted_offline_at: offline,
    }))
}

fn key_of(place: usize) -> Result<Key> {
    Ok(Key::from_uuid(Uuid::from_u128(0x0194_f3a0_1c2d_7e3f_8a4b_0000_0000_0000 + u128::try_from(place)?))?)
}

fn intent_of(place: usize) -> Result<Uuid> {
    Ok(Uuid::from_u128(1_000 + u128::try_from(place)?))
}

impl World {
    /// Saves one, and says what the outbox said.
    pub(crate) fn enqueue(
        &mut self,
        new: NewOperation,
        place: usize,
    ) -> Result<Result<(Operation, bool), EnqueueError>> {
        let (key, now) = (key_of(place)?, self.hands.wall());
        let saved = self.store()?.write_blocking(Priority::Click, move |tx| {
            let saved = outbox::enqueue(tx, &new, key, now)?;
            mirror(tx, &saved.operation)?;
            Ok(saved)
        });
        self.process()?.outbox.wake();
        match saved {
            Ok(saved) => Ok(Ok((saved.operation, saved.existed))),
            Err(WriteError::Refused(error)) => Ok(Err(error)),
            Err(error) => bail!("the file: {error}"),
        }
    }

    pub(crate) fn pay(
        &mut self,
        amount: i64,
        declines: bool,
        lane: &str,
        offline: bool,
        replaces: Option<Uuid>,
    ) -> Result<()> {
        let place = self.operations.len();
        let card = if declines { DECLINES } else { "tok_visa" };
        let request = payment(amount, card, offline.then(|| self.hands.wall()))?;
        let new = NewOperation { intent_id: intent_of(place)?, replaces, lane: lane.to_owned(), request };
        let (saved, existed) =
            self.enqueue(new, place)?.map_err(|error| anyhow::anyhow!("a payment was refused: {error}"))?;
        ensure!(!existed && saved.key == key_of(place)?, "a new payment is an old one: {saved:?}");
        self.operations.push(Some(Expected {
            key: saved.key,
            intent: saved.intent_id,
            kind: Kind::Payment,
            lane: lane.to_owned(),
            amount,
            declines,
            payment: None,
            replaced: false,
            ready: true,
            state: State::Saved,
            wished: false,
            offline,
            tombstone: false,
            result: None,
            faults: 0,
            arrived: 0,
            unsent: 0,
            put_back: 0,
            first_sent_ms: None,
            deaths: 0,
            failures: 0,
            bank: None,
            copied: false,
            may_stay_aside: false,
            waits_for_the_way: false,
            wished_meanwhile: false,
            unknown_to_bank: false,
        }));
        Ok(())
    }

    /// A late click: the same intent once more.
    pub(crate) fn again(&mut self, of: usize, with_another_amount: bool) -> Result<()> {
        let Some(operation) = self.operations.get(of).cloned().flatten() else { return Ok(()) };
        let amount = operation.amount + i64::from(with_another_amount);
        let request = match operation.payment {
            None => payment(amount, if operation.declines { DECLINES } else { "tok_visa" }, None)?,
            Some(payment) => Request::Refund { payment: key_of(payment)?, amount: Amount::new(amount)? },
        };
        let new = NewOperation { intent_id: operation.intent, replaces: None, lane: "elsewhere".to_owned(), request };
        match self.enqueue(new, 1_000 + of)? {
            Ok((found, true)) if !with_another_amount => {
                ensure!(found.key == operation.key, "another operation has its intent: {found:?}");
                if operation.state.is_final() {
                    reached(Rare::ClickedAgain);
                }
            }
            Err(EnqueueError::IntentReused(found)) if with_another_amount => {
                ensure!(found.key == operation.key, "another operation has its intent: {found:?}");
                reached(Rare::IntentReused);
            }
            other => bail!("the same intent, another amount: {with_another_amount}: {other:?}"),
        }
        Ok(())
    }

    pub(crate) fn replace(&mut self, of: usize, amount: i64) -> Result<()> {
        let Some(operation) = self.operations.get(of).cloned().flatten().filter(|other| other.kind == Kind::Payment)
        else {
            self.operations.push(None);
            return Ok(());
        };
        let verdict = replacing(&operation);
        if verdict == Verdict::Done {
            self.pay(amount, false, &operation.lane, false, Some(operation.intent))?;
            if let Some(Some(operation)) = self.operations.get_mut(of) {
                operation.replaced = true;
            }
            return Ok(());
        }
        let place = self.operations.len();
        let (intent_id, request) = (intent_of(place)?, payment(amount, "tok_visa", None)?);
        let new = NewOperation { intent_id, replaces: Some(operation.intent), lane: operation.lane, request };
        let refused = match self.enqueue(new, place)? {
            Err(EnqueueError::NotReplaceable(_)) => "not replaceable",
            Err(EnqueueError::AlreadyReplaced(_)) => "replaced before",
            other => bail!("it should not have been replaced: {other:?}"),
        };
        ensure!(verdict == Verdict::Refused(refused), "{verdict:?}, and it is {refused}");
        self.operations.push(None);
        Ok(())
    }

    pub(crate) fn refund(&mut self, of: usize, percent: i64) -> Result<()> {
        let place = self.operations.len();
        let Some(payment) = self.operations.get(of).cloned().flatten() else {
            self.operations.push(None);
            return Ok(());
        };
        let amount = (payment.amount * percent / 100).max(1);
        let refunds = self.operations.iter().flatten().filter(|refund| refund.payment == Some(of));
        let verdict = refunding(&payment, refunds, amount);
        let request = Request::Refund { payment: payment.key, amount: Amount::new(amount)? };
        let new = NewOperation { intent_id: intent_of(place)?, replaces: None, lane: payment.lane.clone(), request };
        let refused = match self.enqueue(new, place)? {
            Ok((saved, false)) => {
                ensure!(verdict == Verdict::Done, "it should have been refused, {verdict:?}: {saved:?}");
                self.operations.push(Some(Expected {
                    key: saved.key,
                    intent: saved.intent_id,
                    kind: Kind::Refund,
                    amount,
                    payment: Some(of),
                    ready: payment.state == State::Approved,
                    state: State::Saved,
                    wished: false,
                    offline: false,
                    tombstone: false,
                    result: None,
                    faults: 0,
                    arrived: 0,
                    unsent: 0,
                    put_back: 0,
                    first_sent_ms: None,
                    deaths: 0,
                    failures: 0,
                    replaced: false,
                    bank: payment.bank.filter(|_| payment.state == State::Approved),
                    copied: false,
                    may_stay_aside: false,
                    waits_for_the_way: false,
                    wished_meanwhile: false,
                    unknown_to_bank: false,
                    ..payment
                }));
                return Ok(());
            }
            Err(EnqueueError::PaymentUnknown) => "no payment",
            Err(EnqueueError::NothingToRefund(_)) => "nothing to refund",
            Err(EnqueueError::OverRefund { .. }) => "over",
            other => bail!("a refund: {other:?}"),
        };
        ensure!(verdict == Verdict::Refused(refused), "{verdict:?}, and it is {refused}");
        self.operations.push(None);
        Ok(())
    }

    /// Gives the key where that changed something.
    pub(crate) fn cancel(&mut self, of: usize, write_off: bool) -> Result<Option<Key>> {
        let Some(operation) = self.operations.get(of).cloned().flatten() else { return Ok(None) };
        let runs = self.running.contains(&operation.key);
        let verdict = cancelling(&operation, runs, write_off);
        let (key, now) = (operation.key, self.hands.wall());
        let by = if write_off { CancelAs::WriteOff } else { CancelAs::Wish };
        let done = self.store()?.write_blocking(Priority::Click, move |tx| {
            let done = outbox::cancel(tx, &key, by, now)?;
            std::iter::once(&done.operation).chain(&done.refunds).try_for_each(|operation| mirror(tx, operation))?;
            Ok(done)
        });
        self.process()?.outbox.wake();
        let came = match done {
            Ok(done) => {
                if done.changed {
                    Verdict::Done
                } else {
                    Verdict::AlreadySo
                }
            }
            Err(WriteError::Refused(CancelError::Final(_))) => Verdict::Refused("final"),
            Err(WriteError::Refused(CancelError::AcceptedOffline(_))) => Verdict::Refused("accepted offline"),
            Err(error) => bail!("cancelling: {error}"),
        };
        ensure!(came == verdict, "cancelling comes to {came:?} and should to {verdict:?}: {operation:?}");
        if verdict == Verdict::Done {
            let payment =
                self.by_key(key)?.payment.and_then(|place| self.operations.get(place)).and_then(Option::as_ref);
            let of_payment = payment.and_then(|payment| payment.bank);
            let is_called = self.wire.line().waiting.iter().any(|call| call.is_open() && call.asked.key() == Some(key));
            let operation = self.by_key(key)?;
            operation.wished = true;
            operation.wished_meanwhile = is_called;
            if operation.state == State::Saved && !runs {
                operation.bank = operation.bank.or(of_payment);
                operation.state = State::Cancelled;
                operation.tombstone = true;
                self.follow(key)?;
            }
        }
        Ok((verdict == Verdict::Done).then_some(key))
    }

    /// Cancels one whose request is on its way just now, and lets its answer come.
    pub(crate) fn cancel_in_flight(&mut self, nth: usize, then: Option<How>) -> Result<()> {
        let requests: Vec<(usize, Key)> = {
            let line = self.wire.line();
            let waiting = line.waiting.iter().enumerate();
            waiting.filter_map(|(at, waiting)| Some((at, waiting.asked.key()?))).collect()
        };
        if requests.is_empty() {
            return Ok(());
        }
        let (at, key) = requests[nth % requests.len()];
        let of = self.operations.iter().position(|operation| operation.as_ref().is_some_and(|other| other.key == key));
        self.cancel(of.context("a call for nothing")?, false)?;
        // One after the other: which of two things at once comes first is for threads to say, and for no seed.
        self.settle()?;
        match then {
            Some(how) => self.answer(at, how),
            None => Ok(()),
        }
    }

    pub(crate) fn accept_offline(&mut self, of: usize) -> Result<()> {
        let Some(operation) = self.operations.get(of).cloned().flatten() else { return Ok(()) };
        let verdict = accepting(&operation);
        let (key, now) = (operation.key, self.hands.wall());
        let done = self.store()?.write_blocking(Priority::Click, move |tx| outbox::accept_offline(tx, &key, now));
        let came = match done {
            Ok(_) if operation.offline => Verdict::AlreadySo,
            Ok(_) => Verdict::Done,
            Err(WriteError::Refused(AcceptError::Unknown)) => Verdict::Refused("unknown"),
            Err(WriteError::Refused(AcceptError::Final(_))) => Verdict::Refused("final"),
            Err(WriteError::Refused(AcceptError::CancelWished(_))) => Verdict::Refused("wished"),
            Err(error) => bail!("accepting: {error}"),
        };
        ensure!(came == verdict, "accepting comes to {came:?} and should to {verdict:?}: {operation:?}");
        self.by_key(key)?.offline |= verdict == Verdict::Done;
        Ok(())
    }
}
