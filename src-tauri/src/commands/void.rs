//! Sales that are given up after a part was paid.

use tauri::State;
use till::Till;

use super::{Answer, approved, id};
use crate::dto::{NewVoid, PinEntry, PricedVoid, SaleVoid};

/// What giving a partly paid sale up would give back, and an id for it. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn begin_void(till: State<'_, Till>, sale_id: String) -> Answer<PricedVoid> {
    Ok(till.begin_void(id(&sale_id, "sale")?).await?.into())
}

/// Gives a partly paid sale up: what was paid goes back.
#[tauri::command]
#[specta::specta]
pub(crate) async fn void_sale(till: State<'_, Till>, wanted: NewVoid, approval: Option<PinEntry>) -> Answer<SaleVoid> {
    let NewVoid { void_id, sale_id, reason } = wanted;
    let new = till::NewVoid { id: id(&void_id, "void")?, sale_id: id(&sale_id, "sale")?, reason };
    Ok(approved(&till, approval).await?.void_sale(new).await?.into())
}

/// How a sale was given up after a part was paid; none where it was not.
#[tauri::command]
#[specta::specta]
pub(crate) async fn void_of(till: State<'_, Till>, sale_id: String) -> Answer<Option<SaleVoid>> {
    Ok(till.void_of(id(&sale_id, "sale")?).await?.map(SaleVoid::from))
}
