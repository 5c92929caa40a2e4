//! What crosses between the till and its window, as the window reads it. Times are RFC 3339 in UTC; ids are opaque.

mod from_till;

pub(crate) use from_till::all;

use serde::{Deserialize, Serialize};
use specta::Type;

/// An amount in minor units of the currency beside it. The window shows it and never computes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Minor(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// A place in the order of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Seq(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// What the window has to know before it shows anything.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppInfo {
    pub(crate) version: String,
    pub(crate) data_dir: String,
    pub(crate) currency: String,
    /// Decimals of the currency.
    pub(crate) decimals: u8,
    /// The smallest coin, in minor units.
    pub(crate) cash_step: Minor,
    pub(crate) bank: BankInfo,
    pub(crate) test_cards: Vec<TestCard>,
}

/// The bank that this till asks.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BankInfo {
    /// Whether it is the play bank that runs inside this program.
    pub(crate) bundled: bool,
    pub(crate) address: String,
}

/// A card of the mock card reader.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TestCard {
    pub(crate) token: String,
    pub(crate) label: String,
    pub(crate) outcome: TestCardOutcome,
}

/// What the play bank says to a test card.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TestCardOutcome {
    Approves,
    Declines,
    /// Approves until its account is empty.
    Account,
}

/// A group of articles.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Category {
    pub(crate) id: String,
    pub(crate) name: String,
    /// `#rrggbb`, dark enough for white text.
    pub(crate) colour: String,
    pub(crate) count: u32,
}

/// How an article is sold.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Piece,
    Weight,
}

/// What is sold.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Article {
    pub(crate) sku: String,
    pub(crate) name: String,
    /// For one piece or one kilogram.
    pub(crate) price: Minor,
    /// The id of its category.
    pub(crate) category: String,
    pub(crate) colour: String,
    pub(crate) unit: Unit,
    pub(crate) favourite: bool,
    /// Percent.
    pub(crate) tax_rate: String,
}

/// Which articles are asked for.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArticleQuery {
    /// Words, or beginnings of words, of name, SKU or barcode.
    pub(crate) text: String,
    pub(crate) category: Option<String>,
}

/// The articles found, favourites first.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArticlePage {
    pub(crate) articles: Vec<Article>,
    /// Whether there are more than these.
    pub(crate) more: bool,
}

/// A sale as it stands, every figure computed by the till.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sale {
    pub(crate) id: String,
    pub(crate) state: SaleState,
    pub(crate) lines: Vec<Line>,
    pub(crate) taxes: Vec<Tax>,
    pub(crate) net: Minor,
    pub(crate) tax: Minor,
    pub(crate) discount: Minor,
    pub(crate) total: Minor,
    pub(crate) paid: Minor,
    pub(crate) due: Minor,
    pub(crate) currency: String,
    pub(crate) tenders: Vec<Tender>,
    pub(crate) receipt_number: Option<Seq>,
}

/// Where a sale stands.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SaleState {
    Open,
    /// Frozen: under payment.
    Paying,
    Completed,
}

/// One article of a sale.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) id: String,
    /// From 1.
    pub(crate) position: u32,
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) unit_price: Minor,
    /// Up to three decimals.
    pub(crate) quantity: String,
    pub(crate) gross: Minor,
    pub(crate) discount: Minor,
    pub(crate) total: Minor,
    /// Percent.
    pub(crate) tax_rate: String,
}

/// What one tax rate comes to.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tax {
    /// Percent.
    pub(crate) rate: String,
    pub(crate) net: Minor,
    pub(crate) tax: Minor,
}

/// How a part of a sale is paid.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TenderKind {
    Card,
    Cash,
}

/// One way of paying a part of a sale.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tender {
    pub(crate) id: String,
    pub(crate) kind: TenderKind,
    pub(crate) amount: Minor,
    /// Cash handed over.
    pub(crate) tendered: Option<Minor>,
    /// Cash given back.
    pub(crate) change: Option<Minor>,
    pub(crate) state: TenderState,
    pub(crate) operation: Option<Operation>,
}

/// Where a tender stands.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TenderState {
    /// Not yet final at the bank.
    Settling,
    Approved,
    Declined,
    Cancelled,
    NeedsAttention,
    /// Cash in the drawer.
    Taken,
}

/// A tender that a dialog has opened for. Nothing is saved yet.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BegunTender {
    pub(crate) tender_id: String,
    pub(crate) due: Minor,
    /// What is due in cash, rounded to the smallest coin.
    pub(crate) cash_due: Minor,
    /// Exact, and the next sensible notes.
    pub(crate) cash_notes: Vec<Minor>,
    pub(crate) rounding: Minor,
}

/// What Pay by card was clicked for. No `Debug`: the card's token is for the bank alone.
#[derive(Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CardPayment {
    pub(crate) tender_id: String,
    pub(crate) sale_id: String,
    pub(crate) amount: Minor,
    /// The token of a card.
    pub(crate) card: String,
}

/// What was handed over in cash.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CashPayment {
    pub(crate) tender_id: String,
    pub(crate) sale_id: String,
    pub(crate) tendered: Minor,
}

/// What became of cash handed over.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CashTaken {
    pub(crate) sale: Sale,
    pub(crate) change: Minor,
    pub(crate) rounding: Minor,
    /// What stays in the drawer.
    pub(crate) drawer: Minor,
}

/// One thing asked of the bank.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) seq: Seq,
    pub(crate) key: String,
    pub(crate) short_code: String,
    pub(crate) kind: OperationKind,
    pub(crate) state: OperationState,
    pub(crate) amount: Minor,
    pub(crate) currency: String,
    pub(crate) attempts: u32,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    /// When it is tried next.
    pub(crate) due_at: Option<String>,
    /// Before which the bank asked not to be asked.
    pub(crate) not_before: Option<String>,
    /// Why a person must look, or why it waits.
    pub(crate) reason: Option<String>,
    pub(crate) sale_id: String,
    pub(crate) receipt_number: Option<Seq>,
    pub(crate) approval_code: Option<String>,
    pub(crate) decline_code: Option<String>,
    pub(crate) card_brand: Option<String>,
    pub(crate) last4: Option<String>,
    /// Why it is not final yet: a word such as `no-connection`, `in-progress`, `rate-limited`.
    pub(crate) last_answer: Option<String>,
}

/// What is asked of the bank.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationKind {
    Payment,
    Refund,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    /// Never sent.
    Saved,
    Sending,
    /// Perhaps sent, with no valid answer.
    Unknown,
    Approved,
    Declined,
    Cancelled,
    NeedsAttention,
}

/// Which operations are asked for, newest first.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OperationQuery {
    pub(crate) state: Option<OperationState>,
    /// Only those older than this one.
    pub(crate) before: Option<Seq>,
    pub(crate) limit: u32,
}

/// The operations found.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationPage {
    pub(crate) operations: Vec<Operation>,
    pub(crate) more: bool,
}

/// One thing that happened to an operation.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimelineEntry {
    pub(crate) at: String,
    pub(crate) attempt: u32,
    pub(crate) event: String,
    pub(crate) detail: String,
}

/// The queue in one look.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) unsettled: u32,
    pub(crate) sending: u32,
    pub(crate) waiting: u32,
    /// What is unsettled, for each currency.
    pub(crate) amounts: Vec<CurrencyAmount>,
    pub(crate) oldest_at: Option<String>,
    pub(crate) needs_attention: u32,
    /// Those of `unsettled` that belong to another bank or merchant than the one asked now.
    pub(crate) other_bank: u32,
    /// Why the whole queue stands still.
    pub(crate) paused: Option<String>,
    pub(crate) bank_reachable: Option<bool>,
    /// What was in the way, where the bank was not reachable.
    pub(crate) bank_problem: Option<String>,
    pub(crate) last_contact_at: Option<String>,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) chip: Chip,
}

/// An amount with its currency.
#[derive(Debug, Clone, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrencyAmount {
    pub(crate) currency: String,
    pub(crate) amount: Minor,
}

/// What the chip in the top bar shows.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Chip {
    Ok,
    Busy,
    Waiting,
    Paused,
    Attention,
}

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
}
