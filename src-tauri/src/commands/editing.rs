//! What is done to the sale in front beside ringing up: prices, notes, discounts, tip, undo.

use tauri::State;
use till::Till;

use super::{Answer, approved, id, line};
use crate::dto::{Asked, Minor, PinEntry, Sale};

/// Sets another price of a line; the one before it again takes that back.
#[tauri::command]
#[specta::specta]
pub(crate) async fn set_price(
    till: State<'_, Till>,
    line_id: String,
    price: Minor,
    approval: Option<PinEntry>,
) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.set_price(line(&line_id)?, price.0).await?.into())
}

/// Takes something off a line; none: off no more.
#[tauri::command]
#[specta::specta]
pub(crate) async fn discount_line(
    till: State<'_, Till>,
    line_id: String,
    discount: Option<Asked>,
    approval: Option<PinEntry>,
) -> Answer<Sale> {
    let discount = discount.map(till::Asked::try_from).transpose()?;
    Ok(approved(&till, approval).await?.discount_line(line(&line_id)?, discount).await?.into())
}

/// Takes something off the sale in front; none: off no more.
#[tauri::command]
#[specta::specta]
pub(crate) async fn discount_sale(
    till: State<'_, Till>,
    sale_id: String,
    discount: Option<Asked>,
    approval: Option<PinEntry>,
) -> Answer<Sale> {
    let discount = discount.map(till::Asked::try_from).transpose()?;
    Ok(approved(&till, approval).await?.discount_sale(id(&sale_id, "sale")?, discount).await?.into())
}

/// Sets the tip of the sale in front; none takes it away.
#[tauri::command]
#[specta::specta]
pub(crate) async fn set_tip(till: State<'_, Till>, sale_id: String, tip: Option<Asked>) -> Answer<Sale> {
    let tip = tip.map(till::Asked::try_from).transpose()?;
    Ok(till.set_tip(id(&sale_id, "sale")?, tip).await?.into())
}

/// Notes something on a line; an empty note takes it away.
#[tauri::command]
#[specta::specta]
pub(crate) async fn set_note(till: State<'_, Till>, line_id: String, note: String) -> Answer<Sale> {
    Ok(till.set_note(line(&line_id)?, &note).await?.into())
}

/// Takes the last change of the sale in front back.
#[tauri::command]
#[specta::specta]
pub(crate) async fn undo(till: State<'_, Till>, sale_id: String, approval: Option<PinEntry>) -> Answer<Sale> {
    Ok(approved(&till, approval).await?.undo(id(&sale_id, "sale")?).await?.into())
}
