//! Payments that were taken offline and then did not pay: collected again, or written off.

use tauri::State;
use till::Till;

use super::{Answer, approved, id};
use crate::dto::{
    BegunTender, CashTaken, CollectAgain, CollectInCash, LateDecline, LatePage, LateQuery, Operation, PinEntry,
};

/// The payments that were taken offline and did not pay, newest first.
#[tauri::command]
#[specta::specta]
pub(crate) async fn late_declines(till: State<'_, Till>, query: LateQuery) -> Answer<LatePage> {
    Ok(till.late_declines(query.into()).await?.into())
}

/// What is owed of a late decline, and an id for the tender that is to collect it. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn begin_collecting(till: State<'_, Till>, late_tender_id: String) -> Answer<BegunTender> {
    Ok(till.begin_collecting(id(&late_tender_id, "late decline")?).await?.into())
}

/// Collects a late decline by another card payment of the same sale.
#[tauri::command]
#[specta::specta]
pub(crate) async fn collect_again(till: State<'_, Till>, collect: CollectAgain) -> Answer<Operation> {
    let collect = till::CollectAgain {
        tender_id: id(&collect.tender_id, "tender")?,
        late_tender_id: id(&collect.late_tender_id, "late decline")?,
        card: collect.card,
    };
    Ok(till.collect_again(collect).await?.into())
}

/// Collects a late decline in cash.
#[tauri::command]
#[specta::specta]
pub(crate) async fn collect_in_cash(till: State<'_, Till>, collect: CollectInCash) -> Answer<CashTaken> {
    let collect = till::CollectInCash {
        tender_id: id(&collect.tender_id, "tender")?,
        late_tender_id: id(&collect.late_tender_id, "late decline")?,
        tendered: collect.tendered.0,
    };
    Ok(till.collect_in_cash(collect).await?.into())
}

/// Gives up a payment that was taken offline, for a reason.
#[tauri::command]
#[specta::specta]
pub(crate) async fn write_off(
    till: State<'_, Till>,
    late_tender_id: String,
    reason: String,
    approval: Option<PinEntry>,
) -> Answer<LateDecline> {
    let late_tender_id = id(&late_tender_id, "late decline")?;
    Ok(approved(&till, approval).await?.write_off(late_tender_id, &reason).await?.into())
}
