//! The shift, as far as cash can be taken only while one is open.

use tauri::State;
use till::Till;

use super::{Answer, id};
use crate::dto::{Shift, ShiftOpening};

/// The open shift.
#[tauri::command]
#[specta::specta]
pub(crate) async fn shift(till: State<'_, Till>) -> Answer<Option<Shift>> {
    Ok(till.shift().await?.map(Shift::from))
}

/// Opens a shift with what is in the drawer.
#[tauri::command]
#[specta::specta]
pub(crate) async fn open_shift(till: State<'_, Till>, opening: ShiftOpening) -> Answer<Shift> {
    let ShiftOpening { intent_id, float_amount } = opening;
    let opening = till::ShiftOpening { intent_id: id(&intent_id, "shift")?, float_amount: float_amount.0 };
    Ok(till.open_shift(opening).await?.into())
}
