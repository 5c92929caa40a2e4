//! What the window has to know before it shows anything.

use tauri::{AppHandle, State};
use till::Till;

use super::Answer;
use crate::{
    dto::{AppInfo, BankInfo, Minor, TestCard, TestCardOutcome},
    guard,
};

/// The cards of the mock card reader: a token of the bank's contract, what the customer shows, and what the play bank
/// says to it.
const TEST_CARDS: [(&str, &str, TestCardOutcome); 9] = [
    ("tok_visa", "Visa ·· 4242", TestCardOutcome::Approves),
    ("tok_mastercard", "Mastercard ·· 4444", TestCardOutcome::Approves),
    ("tok_mir", "Mir ·· 2200", TestCardOutcome::Approves),
    ("tok_insufficient_funds", "Not enough funds", TestCardOutcome::Declines),
    ("tok_expired", "Expired card", TestCardOutcome::Declines),
    ("tok_lost", "Lost card", TestCardOutcome::Declines),
    ("tok_do_not_honor", "Do not honor", TestCardOutcome::Declines),
    ("tok_account_1", "Account 1", TestCardOutcome::Account),
    ("tok_late_decline", "Declines after an offline sale", TestCardOutcome::LateDeclines),
];

/// Whether the till can save now, found out by a write that reaches the disk.
#[tauri::command]
#[specta::specta]
pub(crate) async fn probe_storage(till: State<'_, Till>) -> Answer<()> {
    Ok(till.probe().await?)
}

/// This program, its shop and its bank.
#[tauri::command]
#[specta::specta]
pub(crate) async fn app_info(till: State<'_, Till>, bank: State<'_, BankInfo>) -> Answer<AppInfo> {
    let settings = till.settings().await?;
    Ok(AppInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        data_dir: till.data_dir().display().to_string(),
        currency: settings.currency.to_string(),
        decimals: settings.currency.minor_digits(),
        cash_step: Minor(settings.cash.step()),
        bank: bank.inner().clone(),
        test_cards: TEST_CARDS
            .map(|(token, label, outcome)| TestCard { token: token.to_owned(), label: label.to_owned(), outcome })
            .into(),
    })
}

/// Closes the window, whatever is unsettled: it goes on at the next start.
#[tauri::command]
#[specta::specta]
pub(crate) async fn close_anyway(app: AppHandle) -> Answer<()> {
    guard::close(&app);
    Ok(())
}
