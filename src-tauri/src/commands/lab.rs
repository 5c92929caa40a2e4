//! The bank lab: only where the bundled bank runs. The secret of its calls stays on this side.

use std::sync::Arc;

use tauri::State;
use till::Till;

use super::Answer;
use crate::{
    dto::{LabFaultHits, LabFaultRule, LabState},
    error::{CommandError, ErrorCode},
    lab::Lab,
};

/// The lab of this run; none where the till asks a bank of its own.
pub(crate) type LabHere = Option<Arc<Lab>>;

fn here(lab: &LabHere) -> Result<&Lab, CommandError> {
    lab.as_deref().ok_or_else(|| {
        CommandError::of_lab(ErrorCode::NoLab, "the till asks a bank of its own: only the bundled one has a lab")
    })
}

/// The books of bank and gateway beside the till's, and the faults that are set.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_state(till: State<'_, Till>, lab: State<'_, LabHere>) -> Answer<LabState> {
    here(&lab)?.state(&till).await
}

/// The faults that are set, each with how often it was met.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_faults(lab: State<'_, LabHere>) -> Answer<Vec<LabFaultHits>> {
    here(&lab)?.faults().await
}

/// Sets these faults in place of those before. The first that is due takes a request; none lets go what hangs.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_set_faults(lab: State<'_, LabHere>, faults: Vec<LabFaultRule>) -> Answer<Vec<LabFaultHits>> {
    here(&lab)?.set_faults(faults).await
}

/// Ends every fault, and lets go what hangs.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_clear(lab: State<'_, LabHere>) -> Answer<()> {
    here(&lab)?.clear().await
}

/// Empties the account that `tok_account_1` draws on, as if its holder had spent all of it elsewhere.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_drain(till: State<'_, Till>, lab: State<'_, LabHere>) -> Answer<()> {
    here(&lab)?.drain(&till).await
}

/// Kills the bank where it stands: from here on its connections are refused. Its data stays. The same again changes nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_bank_stop(lab: State<'_, LabHere>) -> Answer<()> {
    here(&lab)?.stop().await
}

/// Starts the bank again on its data, at the same address. The same again changes nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lab_bank_start(lab: State<'_, LabHere>) -> Answer<()> {
    here(&lab)?.start().await
}
