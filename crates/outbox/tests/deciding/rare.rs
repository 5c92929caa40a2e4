//! What a run must have come to, counted.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! rare {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Rare { $($name,)* }

        const ALL: &[&str] = &[$($text,)*];
    };
}

rare! {
    Died = "died with something under way",
    ClockJumped = "the clock jumped",
    CalledFromReady = "begun ahead, and called once there was a place",
    WishWhileReady = "a wish to cancel what stood ready",
    PutBackFromReady = "begun ahead, and put back",
    FileFailed = "a write failed",
    Held = "all waited for the bank",
    CancelledHere = "cancelled before it was ever sent",
    WishInFlight = "wish to cancel while a call ran",
    WishInTime = "a wish that came between the scan and the counting",
    CancelledUnsent = "cancelled here after a call that never left",
    ChargedDespiteWish = "charged all the same, after a wish",
    CancelledAtBank = "cancelled at the bank",
    TombstoneTold = "the bank was told of a tombstone",
    TombstoneContradicted = "a copy had sent what was cancelled here",
    CancelledByCopy = "a copy had cancelled what was sent here",
    RefundWaited = "a refund waited for its payment",
    RefundCancelled = "a refund was cancelled with its payment",
    SetAside = "set aside",
    AsideCancelled = "what was set aside was cancelled",
    BankChanged = "another secret or address, with calls on their way",
    Moved = "an answer of the other address",
    HoursPassed = "hours passed with nobody asking",
    SentAfterLookUp = "sent again after the retention, and a look-up that found nothing",
    Forgotten = "set aside, because the bank may have forgotten it",
    ClaimedAgain = "told as cancelled what the bank had forgotten",
    AskedForAnother = "asked who it is, because something waits for another bank",
    Stopped = "stopped in good order",
    SavePanicked = "a fault while an outcome was being saved",
    TriedAlone = "what the process died with twice was tried alone",
}

static COUNTS: [AtomicU32; ALL.len()] = [const { AtomicU32::new(0) }; ALL.len()];

pub(crate) fn reached(rare: Rare) {
    COUNTS[rare as usize].fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn counts() -> Vec<(&'static str, u32)> {
    ALL.iter().zip(&COUNTS).map(|(text, count)| (*text, count.load(Ordering::Relaxed))).collect()
}
