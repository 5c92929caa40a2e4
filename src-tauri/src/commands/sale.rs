//! The sale in front of the cashier, and those put aside.

use tauri::State;
use till::Till;

use super::{Answer, approved, id, line};
use crate::dto::{Minor, PinEntry, Sale, all};

/// The sale in front, made where there is none.
#[tauri::command]
#[specta::specta]
pub(crate) async fn open_sale(till: State<'_, Till>) -> Answer<Sale> {
    Ok(till.open_sale().await?.into())
}

/// One sale, whatever became of it.
#[tauri::command]
#[specta::specta]
pub(crate) async fn sale(till: State<'_, Till>, sale_id: String) -> Answer<Sale> {
    Ok(till.sale(id(&sale_id, "sale")?).await?.into())
}

/// Rings up an article by SKU or barcode: one of it, or the quantity given.
#[tauri::command]
#[specta::specta]
pub(crate) async fn add_article(
    till: State<'_, Till>,
    sku: String,
    quantity: Option<String>,
    approval: Option<PinEntry>,
) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.add_article(&sku, quantity.as_deref()).await?.into())
}

/// Rings up an article that has no price of its own, at this one.
#[tauri::command]
#[specta::specta]
pub(crate) async fn add_at_price(
    till: State<'_, Till>,
    sku: String,
    quantity: Option<String>,
    price: Minor,
) -> Answer<Sale> {
    Ok(till.add_at_price(&sku, quantity.as_deref(), price.0).await?.into())
}

/// Sets the quantity of a line.
#[tauri::command]
#[specta::specta]
pub(crate) async fn set_quantity(
    till: State<'_, Till>,
    line_id: String,
    quantity: String,
    approval: Option<PinEntry>,
) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.set_quantity(line(&line_id)?, &quantity).await?.into())
}

/// Removes a line.
#[tauri::command]
#[specta::specta]
pub(crate) async fn remove_line(till: State<'_, Till>, line_id: String, approval: Option<PinEntry>) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.remove_line(line(&line_id)?).await?.into())
}

/// Removes all lines.
#[tauri::command]
#[specta::specta]
pub(crate) async fn clear_sale(till: State<'_, Till>, approval: Option<PinEntry>) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.clear_sale().await?.into())
}

/// A sale to begin with, after a completed one.
#[tauri::command]
#[specta::specta]
pub(crate) async fn new_sale(till: State<'_, Till>) -> Answer<Sale> {
    Ok(till.new_sale().await?.into())
}

/// Puts a sale under payment aside, where it completes by itself, and gives the one to go on with.
#[tauri::command]
#[specta::specta]
pub(crate) async fn hold_sale(till: State<'_, Till>, sale_id: String) -> Answer<Sale> {
    Ok(till.hold_sale(id(&sale_id, "sale")?).await?.into())
}

/// Parks an open sale under a name, and gives the one to go on with.
#[tauri::command]
#[specta::specta]
pub(crate) async fn park_sale(till: State<'_, Till>, sale_id: String, name: String) -> Answer<Sale> {
    Ok(till.park_sale(id(&sale_id, "sale")?, &name).await?.into())
}

/// The sales put aside and not completed.
#[tauri::command]
#[specta::specta]
pub(crate) async fn held_sales(till: State<'_, Till>) -> Answer<Vec<Sale>> {
    Ok(all(till.held_sales().await?))
}

/// Takes up a sale that was put aside.
#[tauri::command]
#[specta::specta]
pub(crate) async fn resume_sale(till: State<'_, Till>, sale_id: String) -> Answer<Sale> {
    Ok(till.resume_sale(id(&sale_id, "sale")?).await?.into())
}

/// Gives up a sale of which nothing is or may be paid, and gives the one to go on with.
#[tauri::command]
#[specta::specta]
pub(crate) async fn drop_sale(till: State<'_, Till>, sale_id: String, approval: Option<PinEntry>) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.drop_sale(id(&sale_id, "sale")?).await?.into())
}

/// Opens a sale again whose payments were all declined or cancelled.
#[tauri::command]
#[specta::specta]
pub(crate) async fn back_to_cart(till: State<'_, Till>, sale_id: String) -> Answer<Sale> {
    Ok(till.back_to_cart(id(&sale_id, "sale")?).await?.into())
}
