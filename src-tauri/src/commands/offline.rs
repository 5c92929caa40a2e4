//! Goods handed over before the bank has answered, at the shop's risk.

use tauri::State;
use till::Till;

use super::{Answer, approved, id};
use crate::dto::{OfflineAsk, Operation, PinEntry, TakeOffline};

/// What taking a card payment offline would mean. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn offline_ask(till: State<'_, Till>, tender_id: String) -> Answer<OfflineAsk> {
    Ok(till.offline_ask(id(&tender_id, "tender")?).await?.into())
}

/// Hands the goods of an open card payment over. The payment goes on being tried.
#[tauri::command]
#[specta::specta]
pub(crate) async fn take_offline(
    till: State<'_, Till>,
    take: TakeOffline,
    approval: Option<PinEntry>,
) -> Answer<Operation> {
    let TakeOffline { tender_id, contact, over_limit } = take;
    let take = till::TakeOffline { tender_id: id(&tender_id, "tender")?, contact, over_limit };
    Ok(approved(&till, approval).await?.take_offline(take).await?.into())
}

/// Notes how the customer of a payment that was taken offline can be reached; none takes the note away.
#[tauri::command]
#[specta::specta]
pub(crate) async fn note_contact(till: State<'_, Till>, tender_id: String, contact: Option<String>) -> Answer<()> {
    Ok(till.note_contact(id(&tender_id, "tender")?, contact).await?)
}
