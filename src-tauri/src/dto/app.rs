//! This program, its shop and its bank.

use serde::Serialize;
use specta::Type;

use super::Minor;

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
    /// Whether it is the play bank that runs inside this program: then there is a bank lab.
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
    /// Approves, but not once the goods were handed over before the bank was asked.
    LateDeclines,
}
