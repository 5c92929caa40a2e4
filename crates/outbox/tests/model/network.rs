//! What the network and the banks make of a call, and what must follow from it.

use anyhow::{Context, Result};
use outbox::Call;
use outbox::answer::{Answer, CallError};
use protocol::{Key, ProblemType};

use crate::bank::{Asked, Bank, Came, Run, problem};
use crate::expected::Expected;
use crate::rare::{Rare, reached};
use crate::steps::{Garble, How};
use crate::wire::{InTheWay, Reply, Waiting};
use crate::world::World;

/// As long as a hold can last, in what the till believes of the bank's word.
const LONGEST_WAIT_S: i64 = 900;

/// A request that left the till, for those that come once more.
#[derive(Clone)]
pub(crate) struct Sent {
    key: Key,
    call: Call,
    address: usize,
    at_ms: i64,
}

impl World {
    /// One of the calls that wait is answered.
    pub(crate) fn answer(&mut self, nth: usize, how: How) -> Result<()> {
        let Some(waiting) = self.take_waiting(nth) else { return Ok(()) };
        let is_poisoned = waiting.asked.key().is_some_and(|key| self.poisoned.contains(&key));
        let how = if is_poisoned { How::Fault } else { how };
        let (reply, came) = self.reply(&waiting, how)?;
        let ends_outage =
            came == Came::Introduced && !waiting.is_moved && std::mem::take(&mut self.wire.line().was_away);
        let key = waiting.asked.key().filter(|_| came != Came::Fault);
        let wished = key.map(|key| self.by_key(key).map(|operation| operation.wished_meanwhile)).transpose()?;
        self.believe(&waiting, &came)?;
        waiting.end(reply);
        self.settle()?;
        if ends_outage {
            reached(Rare::OutageEnded);
            // What fails by itself has nobody wait for it again and again.
            self.check_due(|operation| operation.waits_for_the_way && operation.failures < 3)?;
        }
        if wished == Some(true) {
            self.check_due(|operation| Some(operation.key) == key)?;
        }
        Ok(())
    }

    pub(crate) fn take_waiting(&self, nth: usize) -> Option<Waiting> {
        let mut line = self.wire.line();
        line.waiting.retain(Waiting::is_open);
        let count = line.waiting.len();
        (count > 0).then(|| line.waiting.remove(nth % count))
    }

    /// A request has left; it may come again.
    pub(crate) fn remember(&mut self, waiting: &Waiting) {
        if let Asked::Request(key) = waiting.asked {
            let (call, at_ms) = (waiting.call.clone(), self.hands.true_ms());
            self.sent.push(Sent { key, call, address: waiting.address, at_ms });
        }
    }

    /// What the bank and the network make of a call.
    pub(crate) fn reply(&mut self, waiting: &Waiting, how: How) -> Result<(Reply, Came)> {
        if how != How::Refused {
            self.remember(waiting);
        }
        let now_ms = self.hands.true_ms();
        let bank = self.at.get(waiting.address).and_then(|at| self.banks.get_mut(*at)).context("no such address")?;
        let (asked, call) = (waiting.asked, &waiting.call);
        let key = asked.key();
        let moved = |bank: &Bank| key.and_then(|key| bank.moved.get(&key)).copied().unwrap_or(0);
        let moved_before = moved(bank);
        let comes = |answer: Answer| Reply::Comes(Ok(answer));
        Ok(match how {
            How::Properly | How::NotTaken { .. } | How::Twice | How::OnAndOn { .. } | How::ForPeople => {
                let run = match how {
                    How::OnAndOn { seconds } => Run::OnAndOn(seconds),
                    How::ForPeople => Run::ForPeople,
                    _ => Run::ToItsEnd,
                };
                let is_new = key.is_some_and(|key| !bank.claims.contains_key(&key));
                let is_ours = call.header(protocol::BANK_ID) == Some(bank.id.to_string().as_str());
                if let How::NotTaken { status } = how
                    && is_new
                    && is_ours
                    && !matches!(asked, Asked::LookUp(_))
                {
                    let kind = match status {
                        400 => ProblemType::RequestInvalid,
                        404 => ProblemType::NotFound,
                        413 => ProblemType::PayloadTooLarge,
                        415 => ProblemType::UnsupportedMediaType,
                        _ => ProblemType::KeyReused,
                    };
                    return Ok((comes(problem(kind, key, None)?), Came::Refused));
                }
                if how == How::Twice {
                    bank.handle(asked, call, run, now_ms)?;
                    reached(Rare::Twice);
                }
                let (answer, came) = bank.handle(asked, call, run, now_ms)?;
                if came == Came::Attention {
                    reached(Rare::Attention);
                }
                (comes(answer), came)
            }
            How::Refused => (Reply::Comes(Err(CallError::NoConnection("refused".to_owned()))), Came::NoConnection),
            How::Lost { arrived, how } => {
                if arrived {
                    bank.handle(asked, call, Run::ToItsEnd, now_ms)?;
                    if moved(bank) > moved_before {
                        reached(Rare::AnswerLostAfterCharge);
                    }
                }
                (Reply::Comes(Err(CallError::NoAnswer { how, detail: String::new() })), Came::NoAnswer)
            }
            How::Garbled(garble) => {
                let (answer, _) = bank.handle(asked, call, Run::ToItsEnd, now_ms)?;
                if moved(bank) > moved_before {
                    reached(Rare::AnswerGarbledAfterCharge);
                }
                (comes(garbled(answer, garble)), Came::Garbled)
            }
            How::Busy { limited, seconds, arrived } => {
                if arrived {
                    bank.handle(asked, call, Run::ToItsEnd, now_ms)?;
                }
                let kind = if limited { ProblemType::RateLimited } else { ProblemType::Unavailable };
                (comes(problem(kind, key, Some(seconds.to_string()))?), Came::Busy(seconds))
            }
            How::Failed { arrived } => {
                if arrived {
                    bank.handle(asked, call, Run::ToItsEnd, now_ms)?;
                }
                (comes(problem(ProblemType::Internal, key, None)?), Came::Trouble)
            }
            How::NotAllowed { forbidden } => {
                reached(Rare::Paused);
                let kind = if forbidden { ProblemType::Forbidden } else { ProblemType::Unauthorized };
                (comes(problem(kind, key, None)?), Came::NotAllowed)
            }
            How::Fault => (Reply::Fault, Came::Fault),
        })
    }

    /// What the model makes of it.
    pub(crate) fn believe(&mut self, waiting: &Waiting, came: &Came) -> Result<()> {
        let now_ms = self.hands.true_ms();
        self.played.push((now_ms, waiting.asked, Some(came.clone())));
        let until = |seconds: i64| now_ms + seconds.clamp(1, LONGEST_WAIT_S) * 1_000;
        if let Came::Busy(seconds) = came
            && !waiting.is_moved
        {
            reached(Rare::Held);
            let mut line = self.wire.line();
            line.held_until_ms = Some(line.held_until_ms.unwrap_or(0).max(until(*seconds)));
        }
        if waiting.is_moved {
            reached(Rare::MovedAnswer);
        } else {
            self.way_after(waiting.asked, came);
        }
        let Some(key) = waiting.asked.key() else { return Ok(()) };
        if let Asked::Request(key) = waiting.asked {
            self.running.remove(&key);
        }
        {
            let mut line = self.wire.line();
            line.not_before_ms.retain(|(other, _)| *other != key);
            if let Came::InProgress(seconds) = came {
                line.not_before_ms.push((key, until(*seconds)));
            }
        }
        let permanent = self.by_key(key)?.bank.and_then(|bank| self.banks.get(bank)).is_none_or(|bank| bank.permanent);
        let was_final = self.by_key(key)?.state.is_final();
        self.by_key(key)?.take(waiting.asked, came, permanent);
        if was_final { Ok(()) } else { self.follow(key) }
    }

    /// A transport failure or a refused secret: the bank must say who it is before anything is asked. A 5xx is no such thing.
    fn way_after(&self, asked: Asked, came: &Came) {
        let mut line = self.wire.line();
        let is_asked_who = asked == Asked::Introduction;
        line.was_away |= matches!(came, Came::NoConnection | Came::NoAnswer | Came::Garbled)
            || (is_asked_who && *came == Came::Fault);
        line.in_the_way = match came {
            Came::Introduced => None,
            // The first stands.
            _ if line.in_the_way.is_some() && !is_asked_who => line.in_the_way,
            // It works for others meanwhile.
            Came::Trouble if line.in_the_way.is_none() => None,
            Came::NoConnection | Came::NoAnswer | Came::Garbled => Some(InTheWay::Transport),
            Came::NotAllowed => Some(InTheWay::Refused),
            Came::Fault if is_asked_who => Some(InTheWay::Transport),
            _ if is_asked_who => Some(InTheWay::Trouble),
            _ => None,
        };
    }

    /// A request comes once more, minutes late. Nobody waits for what the bank says.
    pub(crate) fn late_copy(&mut self, nth: usize) -> Result<()> {
        const MINUTES_MS: i64 = 600_000;
        let now_ms = self.hands.true_ms();
        let sent: Vec<_> = self.sent.iter().filter(|sent| now_ms - sent.at_ms < MINUTES_MS).cloned().collect();
        if sent.is_empty() {
            return Ok(());
        }
        let sent = &sent[nth % sent.len()];
        let bank = self.at.get(sent.address).and_then(|at| self.banks.get_mut(*at)).context("no such address")?;
        let (_, came) = bank.handle(Asked::Request(sent.key), &sent.call, Run::ToItsEnd, now_ms)?;
        reached(if came == Came::Cancelled { Rare::LateAfterCancellation } else { Rare::LateCopy });
        Ok(())
    }

    /// A copy of the file sends what it has of that operation, to the bank that it belongs to, or to the one that is asked now.
    pub(crate) fn copy_sends(&mut self, of: usize) -> Result<()> {
        let Some(operation) = self.operations.get(of).cloned().flatten().filter(|operation| operation.ready) else {
            return Ok(());
        };
        let key = operation.key;
        let (path, body): (String, Vec<u8>) = self.store()?.read_blocking(move |conn| {
            conn.query_row("SELECT path, body FROM operations WHERE key = ?1", [key.as_bytes()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        })?;
        let (now_ms, bank) = (self.hands.true_ms(), self.bank_of_copy(&operation)?);
        bank.request(key, &path, &body, Run::ToItsEnd, now_ms)?;
        self.by_key(key)?.copied = true;
        Ok(())
    }

    pub(crate) fn copy_cancels(&mut self, of: usize) -> Result<()> {
        let Some(operation) = self.operations.get(of).cloned().flatten().filter(|operation| operation.ready) else {
            return Ok(());
        };
        let (now_ms, bank) = (self.hands.true_ms(), self.bank_of_copy(&operation)?);
        bank.cancel(operation.key, Run::ToItsEnd, now_ms)?;
        self.by_key(operation.key)?.copied = true;
        Ok(())
    }

    pub(crate) fn bank_of_copy(&mut self, operation: &Expected) -> Result<&mut Bank> {
        let of_payment =
            operation.payment.and_then(|place| self.operations.get(place)).and_then(|payment| payment.as_ref()?.bank);
        let at = operation.bank.or(of_payment).or(self.at.get(self.address).copied()).context("no such address")?;
        self.banks.get_mut(at).context("no such bank")
    }
}

fn garbled(answer: Answer, garble: Garble) -> Answer {
    let html = |status| Answer {
        key: None,
        ..crate::bank::answer(status, "text/html", None, b"<html>welcome</html>".to_vec())
    };
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let replaced = |from: &str, to: &str| text.contains(from).then(|| text.replace(from, to).into_bytes());
    match garble {
        Garble::Html => html(200),
        Garble::BadGateway => html(502),
        Garble::Redirect => html(307),
        Garble::HalfOfIt => Answer { body: answer.body[..answer.body.len() / 2].to_vec(), ..answer },
        Garble::AnotherAmount => match replaced("\"amount\":", "\"amount\":7") {
            Some(body) => Answer { body, ..answer },
            None => html(200),
        },
        Garble::AnotherCurrency => match replaced("\"currency\":\"EUR\"", "\"currency\":\"USD\"") {
            Some(body) => Answer { body, ..answer },
            None => html(201),
        },
        Garble::AnotherPayment => match replaced("\"payment_id\":\"pay_", "\"payment_id\":\"pay_9") {
            Some(body) => Answer { body, ..answer },
            None => html(402),
        },
        Garble::AnotherKey => match replaced("0194f3a0-1c2d-7e3f-8a4b-", "0194f3a0-1c2d-7e3f-9a4b-") {
            Some(body) => Answer { body, ..answer },
            None => html(403),
        },
        Garble::AnotherKeyInTheHeader => match (&answer.key, answer.status) {
            (Some(_), 201 | 402 | 409 | 410 | 422) => {
                Answer { key: Some("0194f3a0-1c2d-7e3f-9a4b-5c6d7e8f9a0c".to_owned()), ..answer }
            }
            _ => html(404),
        },
        Garble::NoContentType => Answer { content_type: None, ..answer },
        Garble::AnotherStatus => Answer { status: answer.status + 1, ..answer },
    }
}
