//! Receipts, shown and on paper.

use tauri::State;
use till::Till;

use super::{Answer, id};
use crate::dto::{Printed, PrinterSettings, Receipt, ReceiptForm};

/// The receipt of a sale that is paid or under payment, as the printer's settings say.
#[tauri::command]
#[specta::specta]
pub(crate) async fn receipt(till: State<'_, Till>, sale_id: String) -> Answer<Receipt> {
    Ok(till.receipt(id(&sale_id, "sale")?).await?.into())
}

/// The same on another paper or in another language.
#[tauri::command]
#[specta::specta]
pub(crate) async fn receipt_in(till: State<'_, Till>, sale_id: String, form: ReceiptForm) -> Answer<Receipt> {
    Ok(till.receipt_in(id(&sale_id, "sale")?, form.into()).await?.into())
}

/// Prints the receipt: the first time as the original, then as a counted copy.
#[tauri::command]
#[specta::specta]
pub(crate) async fn print_receipt(till: State<'_, Till>, sale_id: String) -> Answer<Printed> {
    Ok(till.print_receipt(id(&sale_id, "sale")?).await?.into())
}

/// Where receipts are printed, and how.
#[tauri::command]
#[specta::specta]
pub(crate) async fn printer_settings(till: State<'_, Till>) -> Answer<PrinterSettings> {
    Ok(till.printer_settings().await?.into())
}
