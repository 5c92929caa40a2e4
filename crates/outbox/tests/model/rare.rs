//! What is rare enough that a run might never come to it. It is counted, and a run without it proves nothing.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! rare {
    ($($name:ident = $text:literal,)*) => {
        /// Something rare.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Rare { $($name,)* }

        impl Rare {
            pub(crate) const ALL: &[(Rare, &str)] = &[$((Rare::$name, $text),)*];
        }
    };
}

rare! {
    KilledInFlight = "killed while a call ran",
    KilledWithAnswer = "killed with an answer that it had not read",
    DiedCounted = "died between counting an attempt and making it",
    DiedSaved = "died right after an outcome was durable",
    Stopped = "stopped while a call ran",
    AnswerLostAfterCharge = "answer lost after the charge",
    AnswerGarbledAfterCharge = "answer of the charge was not the bank's own",
    ConnectionRefused = "no connection was made, and it stayed saved",
    Twice = "the network doubled a request",
    LateCopy = "a request came late, once more",
    LateAfterCancellation = "a request came late, after its cancellation",
    WishDuringCall = "wish to cancel while the request was on its way",
    CancelledUnsent = "wish to cancel during a call for which there was no connection",
    ChargedDespiteWish = "charged all the same, after a wish to cancel",
    CancelledAtBank = "cancelled at the bank, perhaps sent before",
    Reversed = "a charge that ran was reversed by a wish",
    TombstoneTold = "the bank was told of a tombstone",
    TombstoneContradicted = "a copy had sent what was cancelled here",
    CancelledByCopy = "a copy had cancelled what was sent here",
    RefundWaited = "a refund waited until its payment was approved",
    RefundCancelled = "a refund was cancelled with its payment",
    RefundOver = "a refund over what is left was refused",
    AcceptedOffline = "accepted offline while it was open",
    WrittenOff = "written off",
    WishRefused = "a wish to cancel what was accepted offline was refused",
    Replaced = "another card took the place of a refused one",
    IntentReused = "an intent with another amount was refused",
    ClickedAgain = "an intent came again, after its end",
    InProgress = "the bank was at it",
    Held = "all waited for Retry-After",
    Refused = "the bank refused a request",
    Attention = "the bank's people had to look",
    AttentionEnded = "what was set aside ended by a look-up",
    Paused = "the secret was refused",
    SetAside = "set aside after three faults",
    Expired = "the stored response had expired",
    LookedUp = "looked up before it was sent again",
    SentAfterLookUp = "sent again after a look-up that found nothing",
    Forgotten = "set aside, because the bank may have forgotten it",
    OtherBank = "another bank refused what was not for it",
    MovedAnswer = "an answer came from the bank of another address",
    MovedHeld = "started with another address, while all waited at the first",
    AllDue = "all that waited was due at once",
    AskedForAnother = "asked who it is, because something waits for another bank",
    OutageEnded = "an outage ended",
    JumpedForward = "the clock was set forward by more than a year",
    JumpedBack = "the clock was set back by more than a year",
    JumpedWhileDown = "the clock was set while nothing ran",
    Suspended = "the machine slept for more than an hour",
    Full = "four calls at once",
    TriedAlone = "what the process died with twice was tried alone",
}

static COUNTS: [AtomicU32; Rare::ALL.len()] = [const { AtomicU32::new(0) }; Rare::ALL.len()];

/// It was reached.
pub(crate) fn reached(rare: Rare) {
    COUNTS[rare as usize].fetch_add(1, Ordering::Relaxed);
}

/// What was reached, how often.
pub(crate) fn counts() -> Vec<(&'static str, u32)> {
    Rare::ALL.iter().map(|(rare, text)| (*text, COUNTS[*rare as usize].load(Ordering::Relaxed))).collect()
}
