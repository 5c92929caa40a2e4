//! What must be, by the rules alone: a plain model of each operation, that knows no queue, no back-off and no file.

use outbox::{Kind, State};
use protocol::Key;
use serde_json::Value;
use uuid::Uuid;

use crate::bank::{Asked, Came};
use crate::rare::{Rare, reached};

/// An operation, as it must be while no call for it runs.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) key: Key,
    pub(crate) intent: Uuid,
    pub(crate) kind: Kind,
    pub(crate) lane: String,
    pub(crate) amount: i64,
    pub(crate) declines: bool,
    /// Of a refund: its payment, by its place.
    pub(crate) payment: Option<usize>,
    pub(crate) replaced: bool,
    /// It has its bytes.
    pub(crate) ready: bool,
    pub(crate) state: State,
    pub(crate) wished: bool,
    pub(crate) offline: bool,
    pub(crate) tombstone: bool,
    pub(crate) result: Option<Value>,
    pub(crate) faults: u32,
    /// Requests that came to a bank, and those that were counted and did not.
    pub(crate) arrived: u32,
    pub(crate) unsent: u32,
    /// Those that were counted ahead, found no place, and were put back.
    pub(crate) put_back: u32,
    /// When it was first perhaps sent, in true time, as far as the till can know.
    pub(crate) first_sent_ms: Option<i64>,
    /// Deaths of the process in a row while its request ran, at least.
    pub(crate) deaths: u32,
    /// Failures in a row, at most.
    pub(crate) failures: u32,
    /// The bank that it was first sent to.
    pub(crate) bank: Option<usize>,
    /// A copy of the file sent it, or cancelled it.
    pub(crate) copied: bool,
    /// It may rightly stay set aside: the bank refused it, forgot it, or the till's own faults did it.
    pub(crate) may_stay_aside: bool,
    /// What came last is that the way to the bank is at fault.
    pub(crate) waits_for_the_way: bool,
    /// It was wished cancelled while a call of it ran, and that one has not ended.
    pub(crate) wished_meanwhile: bool,
    /// What the bank said last was that it doesn't know the key.
    pub(crate) unknown_to_bank: bool,
}

/// What becomes of an operation that a call brought no end of.
const fn unended(state: State) -> State {
    match state {
        State::Saved | State::Sending | State::Unknown => State::Unknown,
        other => other,
    }
}

impl Expected {
    /// What an answer makes of it.
    pub(crate) fn take(&mut self, asked: Asked, came: &Came, permanent: bool) {
        let is_request = matches!(asked, Asked::Request(_));
        self.deaths = 0;
        self.failures += 1;
        self.wished_meanwhile = false;
        self.waits_for_the_way = matches!(came, Came::NoConnection | Came::NoAnswer | Came::Garbled);
        self.unknown_to_bank = matches!(came, Came::UnknownKey);
        if self.state.is_final() {
            self.take_as_tombstone(came);
            return;
        }
        let was_aside = self.state == State::NeedsAttention;
        match came {
            Came::Ended(state, result) => {
                self.state = *state;
                self.result = Some(result.clone());
                if self.wished && *state == State::Approved {
                    reached(Rare::ChargedDespiteWish);
                }
            }
            Came::Cancelled => {
                self.state = State::Cancelled;
                reached(if self.copied && is_request { Rare::CancelledByCopy } else { Rare::CancelledAtBank });
            }
            Came::Attention => self.state = State::NeedsAttention,
            Came::Refused => {
                self.state = State::NeedsAttention;
                self.may_stay_aside = true;
                reached(Rare::Refused);
            }
            // The till's own word for "the bank is at it" is of its requests; a look-up changes nothing.
            Came::InProgress(_) if is_request => self.state = State::Sending,
            Came::InProgress(_) => {}
            Came::UnknownKey if permanent || was_aside => self.state = unended(self.state),
            Came::UnknownKey => {
                self.state = State::NeedsAttention;
                self.may_stay_aside = true;
                reached(Rare::Forgotten);
            }
            Came::NoConnection if self.state == State::Saved && self.wished => {
                self.state = State::Cancelled;
                self.tombstone = true;
                reached(Rare::CancelledUnsent);
            }
            Came::NoConnection if self.state == State::Saved => reached(Rare::ConnectionRefused),
            Came::Fault => {
                self.faults += 1;
                self.state = if self.faults >= 3 { State::NeedsAttention } else { unended(self.state) };
                self.may_stay_aside |= self.faults >= 3;
                if self.faults == 3 {
                    reached(Rare::SetAside);
                }
            }
            Came::NoConnection | Came::NoAnswer | Came::Garbled | Came::Busy(_) | Came::Trouble | Came::NotAllowed => {
                self.state = unended(self.state);
            }
            Came::Expired | Came::Introduced => self.state = unended(self.state),
        }
        if was_aside && self.state.is_final() {
            reached(Rare::AttentionEnded);
        }
    }

    /// It was cancelled here before it was ever sent: only whether the bank is still to be told can change.
    fn take_as_tombstone(&mut self, came: &Came) {
        match came {
            Came::Ended(..) => {
                self.tombstone = false;
                reached(Rare::TombstoneContradicted);
            }
            Came::Cancelled => {
                self.tombstone = false;
                reached(Rare::TombstoneTold);
            }
            _ => {}
        }
    }

    /// The process is gone, and with it every call and what a scan brought. A request that ran was perhaps sent.
    pub(crate) fn lose(&mut self, request_ran: bool) {
        self.deaths += u32::from(request_ran);
        self.wished_meanwhile = false;
        self.unknown_to_bank = false;
        if request_ran || self.state == State::Sending {
            self.state = unended(self.state);
        }
    }

    /// Its payment has ended. Of one that was cancelled here alone a copy may have charged it, and given it back.
    pub(crate) fn follow(&mut self, payment: State, bank: Option<usize>, is_tombstone: bool) {
        if self.state != State::Saved || self.ready {
            return;
        }
        if payment == State::Approved {
            self.ready = true;
            self.bank = bank;
            reached(Rare::RefundWaited);
        } else {
            self.state = State::Cancelled;
            self.tombstone = is_tombstone;
            self.bank = bank;
            reached(Rare::RefundCancelled);
        }
    }
}

/// What a command must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// It was so before; nothing was written.
    AlreadySo,
    Refused(&'static str),
}

/// Cancelling it, while a request of it runs or not.
pub(crate) fn cancelling(operation: &Expected, request_runs: bool, write_off: bool) -> Verdict {
    if operation.state == State::Cancelled || (!operation.state.is_final() && operation.wished) {
        Verdict::AlreadySo
    } else if operation.state.is_final() {
        Verdict::Refused("final")
    } else if operation.offline && !write_off {
        reached(Rare::WishRefused);
        Verdict::Refused("accepted offline")
    } else {
        if request_runs {
            reached(Rare::WishDuringCall);
        }
        if operation.offline {
            reached(Rare::WrittenOff);
        }
        Verdict::Done
    }
}

/// Accepting it offline.
pub(crate) fn accepting(operation: &Expected) -> Verdict {
    if operation.kind != Kind::Payment {
        Verdict::Refused("unknown")
    } else if operation.offline {
        Verdict::AlreadySo
    } else if operation.state.is_final() {
        Verdict::Refused("final")
    } else if operation.wished {
        Verdict::Refused("wished")
    } else {
        reached(Rare::AcceptedOffline);
        Verdict::Done
    }
}

/// Giving money of a payment back, after these refunds of it.
pub(crate) fn refunding<'a>(payment: &Expected, refunds: impl Iterator<Item = &'a Expected>, amount: i64) -> Verdict {
    if payment.kind != Kind::Payment {
        return Verdict::Refused("no payment");
    }
    match payment.state {
        State::Declined | State::Cancelled => return Verdict::Refused("nothing to refund"),
        State::Approved => {}
        _ if payment.wished => return Verdict::Refused("nothing to refund"),
        _ => {}
    }
    let taken: i64 = refunds
        .filter(|refund| !matches!(refund.state, State::Declined | State::Cancelled))
        .map(|refund| refund.amount)
        .sum();
    if taken + amount > payment.amount {
        reached(Rare::RefundOver);
        return Verdict::Refused("over");
    }
    Verdict::Done
}

/// Taking the place of another one.
pub(crate) fn replacing(other: &Expected) -> Verdict {
    match other.state {
        State::Declined | State::Cancelled if other.replaced => Verdict::Refused("replaced before"),
        State::Declined | State::Cancelled => {
            reached(Rare::Replaced);
            Verdict::Done
        }
        _ => Verdict::Refused("not replaceable"),
    }
}
