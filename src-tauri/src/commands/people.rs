//! Who stands at the till.

use tauri::State;
use till::{Measure, Till};

use super::Answer;
use crate::dto::{Asked, Person, PinEntry, Right, Session, all};

/// Who is logged in, and whether somebody must.
#[tauri::command]
#[specta::specta]
pub(crate) async fn session(till: State<'_, Till>) -> Answer<Session> {
    Ok(till.session().await?.into())
}

/// Everybody who works here, by name.
#[tauri::command]
#[specta::specta]
pub(crate) async fn people(till: State<'_, Till>) -> Answer<Vec<Person>> {
    let working = till.people().await?.into_iter().filter(|person| person.active).collect();
    Ok(all(working))
}

/// Logs a person in, in the place of whoever was.
#[tauri::command]
#[specta::specta]
pub(crate) async fn log_in(till: State<'_, Till>, entry: PinEntry) -> Answer<Session> {
    Ok(till.log_in(entry.into()).await?.into())
}

/// Locks the till until somebody logs in.
#[tauri::command]
#[specta::specta]
pub(crate) async fn lock(till: State<'_, Till>) -> Answer<Session> {
    Ok(till.lock().await?.into())
}

/// Whether who is logged in may do this, or so much of it, alone: to ask for another's PIN in time. The command itself asks
/// again.
#[tauri::command]
#[specta::specta]
pub(crate) async fn check_right(till: State<'_, Till>, right: Right, measure: Option<Asked>) -> Answer<()> {
    let measure = match measure.map(till::Asked::try_from).transpose()? {
        None => Measure::Whole,
        Some(till::Asked::Percent(rate)) => Measure::Percent(rate.thousandths()),
        Some(till::Asked::Amount(amount)) => Measure::Amount(amount),
    };
    Ok(till.check_right(right.into(), measure).await?)
}
