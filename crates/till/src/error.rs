//! What can go wrong at the till, by the code under which somebody acts on it.

use crate::{ImportErrors, PrintFault, amounts::format_amount, trouble};
use protocol::Currency;
use rusqlite::ErrorCode;
use std::io;
use thiserror::Error;

/// Why the till did not do what it was asked. The text is for people; it never holds a card token or a secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TillError {
    /// The file can't be written. Nothing was saved and nothing will be sent.
    #[error("nothing was saved or sent: {0}")]
    Storage(String),
    /// The file can't be opened for writing. Nothing was asked of it yet, so this says nothing of what an earlier click saved.
    #[error("nothing was done, and what was saved before is as it was: {0}")]
    NotOpened(String),
    /// The file can't be read now. What was saved and sent before is what it was.
    #[error("{0}")]
    NotRead(String),
    /// The file is damaged, or is not in its place any more: no waiting helps. It says nothing of what was saved and sent before.
    #[error("{0}")]
    Damaged(String),
    /// The commit's outcome could not be told, and the file could not be read to find out; or it takes nothing now, and what an earlier
    /// click saved stands in it, perhaps on no disk. What was asked may be saved.
    #[error("the till cannot tell whether this was saved: {0}. Look whether it is there before you do it again")]
    Unreadable(String),
    /// Another process has the data folder.
    #[error("{0}")]
    InUse(String),
    /// The file can't be opened: written by a newer program, not a till's, or damaged. It was left as it is.
    #[error("{0}")]
    Refused(String),
    /// The sale is another than the caller thinks: completed or put aside meanwhile.
    #[error("{0}")]
    SaleChanged(String),
    /// The sale is under payment: it can't be edited, dropped or paid twice.
    #[error("{0}")]
    SaleFrozen(String),
    /// Money is given back of a sale that is paid, or was given up; this one is under payment.
    #[error(
        "this sale is not completed: complete it and then take its goods back, or give it up, which gives back all that was paid of it"
    )]
    SaleNotCompleted,
    /// The sale was begun in another currency than the catalogue's, or with another tax rule.
    #[error("{0}")]
    OtherTerms(String),
    /// No article has this SKU or barcode.
    #[error("no article has the SKU or barcode “{0}”")]
    UnknownArticle(String),
    /// The quantity is no number above zero with at most three decimals, or not one that this article can have.
    #[error("{0}")]
    InvalidQuantity(String),
    /// The article has no price of its own: the cashier must be asked for it.
    #[error("“{0}” has no fixed price: ask for the price and ring it up with it")]
    PriceNeeded(String),
    /// The price is not one that can be taken here.
    #[error("{0}")]
    InvalidPrice(String),
    /// The discount or tip is not one that can be taken here.
    #[error("{0}")]
    InvalidDiscount(String),
    /// The code was misread, or says what this shop's settings and articles have no use for.
    #[error("{0}")]
    InvalidBarcode(String),
    /// The name, note or reason is too long, or holds what must not be kept; or a name is none.
    #[error("{0}")]
    InvalidText(String),
    /// The article or category is not one that can be kept.
    #[error("{0}")]
    InvalidArticle(String),
    /// The category has articles.
    #[error("“{name}” has {articles} articles: give them another category first")]
    CategoryInUse {
        /// Its name.
        name: String,
        /// How many articles are in it.
        articles: i64,
    },
    /// The catalogue that was to be brought in has errors. Nothing of it was.
    #[error("nothing was imported: {0}")]
    Import(ImportErrors),
    /// There is no change of this sale that could be taken back.
    #[error("there is nothing to take back")]
    NothingToUndo,
    /// What was given for the card is none: longer than a card reader's word, or the number of a card.
    #[error("{0}")]
    InvalidCard(String),
    /// The reference is one that no bank takes, or holds the number of a card.
    #[error("{0}")]
    InvalidReference(String),
    /// The amount is not one that can be taken here.
    #[error("{0}")]
    InvalidAmount(String),
    /// More than is due. Both figures in minor units of the sale's currency.
    #[error("{} is more than the {} still due", format_amount(*.amount, *.currency), format_amount(*.due, *.currency))]
    OverDue {
        /// What was asked for.
        amount: i64,
        /// What is still due.
        due: i64,
        /// The sale's currency.
        currency: Currency,
    },
    /// More than what is left of a payment, or of what paid a sale, refunds that are under way counted. Both figures in minor units of its
    /// currency.
    #[error("{} is more than the {} that is left to give back", format_amount(*.amount, *.currency), format_amount(*.left, *.currency))]
    OverRefund {
        /// What was asked for.
        amount: i64,
        /// What is left.
        left: i64,
        /// The sale's currency.
        currency: Currency,
    },
    /// The payment did not move money, and won't: there is nothing to give back.
    #[error("{0}")]
    NotRefundable(String),
    /// The operation has its end, which is another than the one that was wished.
    #[error("{0}")]
    AlreadyFinal(String),
    /// The goods were handed over before the bank answered.
    #[error("{0}")]
    AcceptedOffline(String),
    /// Over what may be taken offline. Says by how much.
    #[error("{0}")]
    OfflineLimit(String),
    /// It is not known whether the card was charged: nothing else may be taken for it.
    #[error("{0}")]
    CardMayBeCharged(String),
    /// A person must look at it first.
    #[error("{0}")]
    NeedsLook(String),
    /// What should come back is not what was sold, or is not there to come back any more.
    #[error("{0}")]
    InvalidReturn(String),
    /// The tender or intent already belongs to another request.
    #[error("{0}")]
    IntentReused(String),
    /// A setting can't have this value.
    #[error("{0}")]
    InvalidSetting(&'static str),
    /// No such key can do anything, or a command would have none.
    #[error("{0}")]
    InvalidKey(String),
    /// Two uses were made of one key.
    #[error("{key} is the key of {first}: it can't be that of {second} too")]
    KeyUsedTwice {
        /// The key.
        key: String,
        /// What it does.
        first: &'static str,
        /// What it was to do as well.
        second: &'static str,
    },
    /// Somebody must log in first.
    #[error("the till is locked: log in with your PIN")]
    Locked,
    /// Who acts may not do this alone. Says what is needed and who can give it.
    #[error("{0}")]
    NotAllowed(String),
    /// The PIN is not that person's. From the fifth wrong one in a row on there is a wait.
    #[error("wrong PIN: {}", after_wrong(*.tries_left, *.wait_s))]
    WrongPin {
        /// Tries before one has to wait.
        tries_left: u32,
        /// How long one has to wait now, in seconds.
        wait_s: u32,
    },
    /// There were too many wrong PINs: this one was not looked at.
    #[error("too many wrong PINs: try again in {wait_s} s")]
    PinWait {
        /// Seconds left.
        wait_s: u32,
    },
    /// The new PIN is none, or one that everybody tries first.
    #[error("{0}")]
    InvalidPin(&'static str),
    /// A person can't be like this: the name is none or another's, or no active manager would be left.
    #[error("{0}")]
    InvalidPerson(String),
    /// Cash can't be taken, counted or moved: no shift is open, or its drawer holds another currency.
    #[error("{0}")]
    NoShift(String),
    /// A shift is open already.
    #[error("{0}")]
    ShiftOpen(String),
    /// The drawer must be counted first, or again.
    #[error("{0}")]
    CountNeeded(String),
    /// No reason is given where there must be one. One that is given and can't be kept is [`TillError::InvalidText`].
    #[error("{0}")]
    InvalidReason(&'static str),
    /// There is no such sale, line or operation.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// What was to be written out could not be written where it was to go.
    #[error("the export could not be written: {0}")]
    Export(io::Error),
    /// No copy was made. Says why; the till's file is as it was.
    #[error("no copy was made: {0}")]
    Backup(String),
    /// The file was brought back from a copy, and the bank's payments since then were not matched yet.
    #[error(
        "this till was restored from a copy: nothing is paid, given back or given up before the bank's payments since then were matched (the till does so as soon as the bank answers; `kassa-till sync` does it first)"
    )]
    Restored,
    /// The sale was there when the copy was made, and the bank's payments were matched once and not again yet.
    #[error(
        "this till was restored from a copy, and this sale is older: nothing more is paid on it before the bank's payments were matched again, some minutes after the first time (the till does so by itself, and so does the next `kassa-till sync`)"
    )]
    RestoredSale,
    /// The bank has a payment for this sale that could not be matched with it.
    #[error(
        "the bank has a payment for this sale that has no place in it: do not charge again. Look at it with `kassa-till doctor` and the bank, and say what became of it with `--acknowledge PAYMENT --reason TEXT`"
    )]
    PaymentUnmatched,
    /// A receipt was not printed, or perhaps not whole. The sale is what it was.
    #[error("{0}")]
    Print(#[from] PrintFault),
    /// The machine's clock stands where it can't be right. Nothing was begun.
    #[error("{0}")]
    Clock(String),
    /// No bank is named, or its address or secret can't be used.
    #[error("{0}")]
    NoBank(String),
    /// A fault of the program.
    #[error("internal fault: {0}")]
    Internal(String),
}

impl TillError {
    /// The code by which a face of the till decides what to do.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Storage(_)
            | Self::NotOpened(_)
            | Self::NotRead(_)
            | Self::Damaged(_)
            | Self::Unreadable(_)
            | Self::Refused(_) => "storage",
            Self::InUse(_) => "in-use",
            Self::SaleChanged(_) => "sale-changed",
            Self::SaleFrozen(_) => "sale-frozen",
            Self::SaleNotCompleted => "sale-not-completed",
            Self::OtherTerms(_) => "other-terms",
            Self::UnknownArticle(_) => "unknown-article",
            Self::InvalidQuantity(_) => "invalid-quantity",
            Self::PriceNeeded(_) => "price-needed",
            Self::InvalidPrice(_) => "invalid-price",
            Self::InvalidDiscount(_) => "invalid-discount",
            Self::InvalidBarcode(_) => "invalid-barcode",
            Self::InvalidText(_) => "invalid-text",
            Self::InvalidArticle(_) => "invalid-article",
            Self::CategoryInUse { .. } => "category-in-use",
            Self::Import(_) => "import",
            Self::NothingToUndo => "nothing-to-undo",
            Self::InvalidCard(_) => "invalid-card",
            Self::InvalidReference(_) => "invalid-reference",
            Self::InvalidAmount(_) => "invalid-amount",
            Self::OverDue { .. } => "over-due",
            Self::OverRefund { .. } => "over-refund",
            Self::NotRefundable(_) => "not-refundable",
            Self::AlreadyFinal(_) => "already-final",
            Self::AcceptedOffline(_) => "accepted-offline",
            Self::OfflineLimit(_) => "offline-limit",
            Self::CardMayBeCharged(_) => "card-may-be-charged",
            Self::NeedsLook(_) => "needs-look",
            Self::InvalidReturn(_) => "invalid-return",
            Self::IntentReused(_) => "intent-reused",
            Self::InvalidSetting(_) => "invalid-setting",
            Self::InvalidKey(_) => "invalid-key",
            Self::KeyUsedTwice { .. } => "key-used-twice",
            Self::Locked => "locked",
            Self::NotAllowed(_) => "not-allowed",
            Self::WrongPin { .. } => "wrong-pin",
            Self::PinWait { .. } => "pin-wait",
            Self::InvalidPin(_) => "invalid-pin",
            Self::InvalidPerson(_) => "invalid-person",
            Self::NoShift(_) => "no-shift",
            Self::ShiftOpen(_) => "shift-open",
            Self::CountNeeded(_) => "count-needed",
            Self::InvalidReason(_) => "invalid-reason",
            Self::NotFound(_) => "not-found",
            Self::Export(_) => "export",
            Self::Backup(_) => "backup",
            Self::Restored => "restored",
            Self::RestoredSale => "restored-sale",
            Self::PaymentUnmatched => "payment-unmatched",
            Self::Print(fault) => fault.code(),
            Self::Clock(_) => "clock",
            Self::NoBank(_) => "no-bank",
            Self::Internal(_) => "internal",
        }
    }

    /// Whether the same call may succeed later with nothing else changed, and does nothing twice then. After
    /// [`TillError::Unreadable`] it might: what was asked may be saved, and only what has an id from before, as a payment has its tender's,
    /// is told from a second one.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Storage(_) | Self::NotOpened(_) | Self::NotRead(_) | Self::InUse(_) => true,
            Self::Print(fault) => fault.is_retryable(),
            _ => false,
        }
    }
}

fn after_wrong(tries_left: u32, wait_s: u32) -> String {
    match (wait_s, tries_left) {
        (0, 1) => "one more, and the till waits before it takes another".to_owned(),
        (0, left) => format!("{left} more, and the till waits before it takes another"),
        (wait_s, _) => format!("the next try is possible in {wait_s} s"),
    }
}

/// As in a change, of which nothing is saved then. A look says so by itself.
impl From<rusqlite::Error> for TillError {
    fn from(error: rusqlite::Error) -> Self {
        if store::is_damage(&error) {
            return Self::Damaged(trouble::of_sqlite(&error));
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::ConstraintViolation) => {
                let said = error.to_string();
                of_trigger(&said).unwrap_or(Self::Internal(said))
            }
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::OutOfMemory,
            ) => Self::Storage(trouble::of_sqlite(&error)),
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// The words of a trigger that guards a restored file: the tables refuse it whoever asks, and this is how it comes up.
fn of_trigger(said: &str) -> Option<TillError> {
    let says = |words: &str| said.contains(words);
    if says("older sale of a restored file") {
        Some(TillError::RestoredSale)
    } else if says("while a payment of the bank's for it has no place") {
        Some(TillError::PaymentUnmatched)
    } else if says("a restored file takes no payment") || says("a restored file gives no") {
        Some(TillError::Restored)
    } else {
        None
    }
}
