//! Receipts, shown and on paper.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::Seq;

/// The receipt of a sale.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    pub(crate) sale_id: String,
    pub(crate) receipt_number: Option<Seq>,
    /// As it is printed, in columns.
    pub(crate) lines: Vec<String>,
    /// The same in one piece.
    pub(crate) text: String,
    /// How often it was printed, or may have been.
    pub(crate) printed: u32,
}

/// On what, and in which language, a receipt is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReceiptForm {
    pub(crate) paper: Paper,
    pub(crate) language: Language,
}

/// Characters of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
pub(crate) enum Paper {
    #[serde(rename = "32")]
    Columns32,
    #[serde(rename = "42")]
    Columns42,
    #[serde(rename = "48")]
    Columns48,
}

/// A language, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
pub(crate) enum Language {
    #[serde(rename = "en")]
    English,
    #[serde(rename = "ru")]
    Russian,
}

/// A print that was made.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Printed {
    /// Which print of it, from 1, those that failed counted.
    pub(crate) print: u32,
    /// Which copy it is marked as; 0 for the original.
    pub(crate) copy: u32,
}

/// Where receipts are printed, and how.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrinterSettings {
    pub(crate) printer: Printer,
    pub(crate) form: ReceiptForm,
    pub(crate) code_pages: CodePages,
}

/// Where receipts are printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Type)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Printer {
    /// Nowhere: the receipt is shown.
    None,
    /// A folder, or a device.
    File { path: String },
    /// Name or address, and port.
    Tcp { address: String },
}

/// Which of its pages of characters a printer is to use.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CodePages {
    Ascii,
    Western,
    Cyrillic,
    Both,
}

impl From<till::Receipt> for Receipt {
    fn from(receipt: till::Receipt) -> Self {
        Self {
            sale_id: receipt.sale_id.to_string(),
            receipt_number: receipt.receipt_number.map(Seq),
            lines: receipt.lines,
            text: receipt.text,
            printed: receipt.printed,
        }
    }
}

impl From<ReceiptForm> for till::ReceiptForm {
    fn from(form: ReceiptForm) -> Self {
        Self {
            paper: match form.paper {
                Paper::Columns32 => till::Paper::Columns32,
                Paper::Columns42 => till::Paper::Columns42,
                Paper::Columns48 => till::Paper::Columns48,
            },
            language: match form.language {
                Language::English => till::Language::English,
                Language::Russian => till::Language::Russian,
            },
        }
    }
}

impl From<till::ReceiptForm> for ReceiptForm {
    fn from(form: till::ReceiptForm) -> Self {
        Self {
            paper: match form.paper {
                till::Paper::Columns32 => Paper::Columns32,
                till::Paper::Columns42 => Paper::Columns42,
                till::Paper::Columns48 => Paper::Columns48,
            },
            language: match form.language {
                till::Language::English => Language::English,
                till::Language::Russian => Language::Russian,
            },
        }
    }
}

impl From<till::Printed> for Printed {
    fn from(printed: till::Printed) -> Self {
        Self { print: printed.print, copy: printed.copy }
    }
}

impl From<till::PrinterSettings> for PrinterSettings {
    fn from(settings: till::PrinterSettings) -> Self {
        Self {
            printer: match settings.printer {
                till::Printer::None => Printer::None,
                till::Printer::File { path } => Printer::File { path: path.display().to_string() },
                till::Printer::Tcp { address } => Printer::Tcp { address },
            },
            form: settings.form.into(),
            code_pages: match settings.code_pages {
                till::CodePages::Ascii => CodePages::Ascii,
                till::CodePages::Western => CodePages::Western,
                till::CodePages::Cyrillic => CodePages::Cyrillic,
                till::CodePages::Both => CodePages::Both,
            },
        }
    }
}
