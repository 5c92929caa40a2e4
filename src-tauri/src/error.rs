//! Errors as the window reads them: it decides by the code and shows words of its own.

use serde::Serialize;
use specta::Type;
use till::TillError;

use crate::dto::{Count, Minor};

/// Declares the codes once: as the window reads them, and as they are found by the till's own word.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:tt,)*) => {
        /// What somebody at the window acts on: the till's own codes, which `docs/ERRORS.md` explains, and the bank lab's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
        pub(crate) enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $word)] $name,)*
        }

        impl ErrorCode {
            const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$name),)*];
        }
    };
}

codes! {
    AcceptedOffline = "accepted-offline",
    AlreadyFinal = "already-final",
    Backup = "backup",
    CardMayBeCharged = "card-may-be-charged",
    CategoryInUse = "category-in-use",
    Clock = "clock",
    CountNeeded = "count-needed",
    Export = "export",
    Import = "import",
    InUse = "in-use",
    IntentReused = "intent-reused",
    /// A fault of the program.
    Internal = "internal",
    InvalidAmount = "invalid-amount",
    InvalidArticle = "invalid-article",
    InvalidBarcode = "invalid-barcode",
    InvalidCard = "invalid-card",
    InvalidDiscount = "invalid-discount",
    InvalidKey = "invalid-key",
    InvalidPerson = "invalid-person",
    InvalidPin = "invalid-pin",
    InvalidPrice = "invalid-price",
    InvalidQuantity = "invalid-quantity",
    InvalidReason = "invalid-reason",
    InvalidReference = "invalid-reference",
    InvalidReturn = "invalid-return",
    InvalidSetting = "invalid-setting",
    InvalidText = "invalid-text",
    KeyUsedTwice = "key-used-twice",
    Locked = "locked",
    NeedsLook = "needs-look",
    NoBank = "no-bank",
    NoPrinter = "no-printer",
    NoShift = "no-shift",
    NotAllowed = "not-allowed",
    NotFound = "not-found",
    NotRefundable = "not-refundable",
    NothingToUndo = "nothing-to-undo",
    OfflineLimit = "offline-limit",
    OtherTerms = "other-terms",
    OverDue = "over-due",
    OverRefund = "over-refund",
    PaymentUnmatched = "payment-unmatched",
    PinWait = "pin-wait",
    PriceNeeded = "price-needed",
    PrinterDisconnected = "printer-disconnected",
    PrinterDiskFull = "printer-disk-full",
    PrinterFault = "printer-fault",
    PrinterNoPermission = "printer-no-permission",
    PrinterNotFound = "printer-not-found",
    PrinterRefused = "printer-refused",
    PrinterTimeout = "printer-timeout",
    PrinterUnreachable = "printer-unreachable",
    Restored = "restored",
    RestoredSale = "restored-sale",
    SaleChanged = "sale-changed",
    SaleFrozen = "sale-frozen",
    SaleNotCompleted = "sale-not-completed",
    ShiftOpen = "shift-open",
    /// The till's file can't be written or read.
    Storage = "storage",
    UnknownArticle = "unknown-article",
    WrongPin = "wrong-pin",
    /// There is no bank lab here: the till asks a bank of its own.
    NoLab = "no-lab",
    /// The bundled bank is stopped, or its lab did not do what was asked.
    LabRefused = "lab-refused",
}

impl ErrorCode {
    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, code)| *code)
    }
}

/// Figures that a screen needs beside the code. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum ErrorDetails {
    /// Tries that are left before one has to wait, and how long one has to wait now, in seconds.
    WrongPin { tries_left: u32, wait_s: u32 },
    /// Seconds left.
    PinWait { wait_s: u32 },
    /// What was asked for, and what is still due.
    OverDue { amount: Minor, due: Minor, currency: String },
    /// What was asked for, and what is left to give back.
    OverRefund { amount: Minor, left: Minor, currency: String },
    /// How many articles are in it.
    CategoryInUse { name: String, articles: Count },
}

/// Why a command did not do what it was asked.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    /// For the log and the details; never holds a card token or a secret.
    pub(crate) message: String,
    /// Whether the same call may succeed later with nothing else changed.
    pub(crate) retryable: bool,
    /// None for most codes: the union says for which there are some.
    pub(crate) details: Option<ErrorDetails>,
}

impl CommandError {
    /// What the bank lab has to say.
    pub(crate) fn of_lab(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code == ErrorCode::LabRefused, details: None }
    }
}

impl From<TillError> for CommandError {
    fn from(error: TillError) -> Self {
        // A test holds the codes against those of `docs/ERRORS.md`, where none of the till's is missing.
        let code = ErrorCode::of(error.code()).unwrap_or(ErrorCode::Internal);
        let failed = Self { code, message: error.to_string(), retryable: error.retryable(), details: details(&error) };
        if matches!(code, ErrorCode::Storage | ErrorCode::Internal) {
            tracing::error!(code = error.code(), "{}", failed.message);
        }
        failed
    }
}

fn details(error: &TillError) -> Option<ErrorDetails> {
    match error {
        TillError::WrongPin { tries_left, wait_s } => {
            Some(ErrorDetails::WrongPin { tries_left: *tries_left, wait_s: *wait_s })
        }
        TillError::PinWait { wait_s } => Some(ErrorDetails::PinWait { wait_s: *wait_s }),
        TillError::OverDue { amount, due, currency } => {
            Some(ErrorDetails::OverDue { amount: Minor(*amount), due: Minor(*due), currency: currency.to_string() })
        }
        TillError::OverRefund { amount, left, currency } => Some(ErrorDetails::OverRefund {
            amount: Minor(*amount),
            left: Minor(*left),
            currency: currency.to_string(),
        }),
        TillError::CategoryInUse { name, articles } => {
            Some(ErrorDetails::CategoryInUse { name: name.clone(), articles: Count(*articles) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The till's codes as `docs/ERRORS.md` lists them; a test of the till's holds that list against its source.
    fn documented() -> BTreeSet<String> {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ERRORS.md")).unwrap();
        let (_, rest) = page.split_once("<!-- till: written by a test -->").unwrap();
        let (table, _) = rest.split_once("<!-- end of till -->").unwrap();
        table.lines().filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
    }

    #[test]
    fn every_code_of_the_till_crosses_as_itself() {
        let lab = ["no-lab", "lab-refused"];
        let known: BTreeSet<String> =
            ErrorCode::ALL.iter().map(|(word, _)| (*word).to_owned()).filter(|word| !lab.contains(&&**word)).collect();
        assert!(known.len() > 50, "{known:?}");
        assert_eq!(known, documented());
        for (word, code) in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), *word);
        }
    }

    #[test]
    fn the_figures_of_an_error_come_with_it() {
        let json = |error: TillError| serde_json::to_value(CommandError::from(error)).unwrap();
        let wrong = json(TillError::WrongPin { tries_left: 1, wait_s: 0 });
        assert_eq!(wrong["code"], "wrong-pin");
        assert_eq!(wrong["details"], serde_json::json!({"kind": "wrong-pin", "triesLeft": 1, "waitS": 0}));
        let wait = json(TillError::PinWait { wait_s: 30 });
        assert_eq!(wait["details"], serde_json::json!({"kind": "pin-wait", "waitS": 30}));
        let over = json(TillError::OverDue { amount: 200, due: 185, currency: protocol::Currency::EUR });
        let figures = serde_json::json!({"kind": "over-due", "amount": 200, "due": 185, "currency": "EUR"});
        assert_eq!(over["details"], figures);
        assert!(json(TillError::Locked)["details"].is_null());
    }
}
