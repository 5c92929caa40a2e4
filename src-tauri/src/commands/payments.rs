//! The operations, and the queue that settles them.

use tauri::State;
use till::Till;

use super::{Answer, key};
use crate::dto::{Attempt, Operation, OperationPage, OperationQuery, Summary, TimelineEntry, all};

/// One operation.
#[tauri::command]
#[specta::specta]
pub(crate) async fn operation(till: State<'_, Till>, key: String) -> Answer<Operation> {
    Ok(till.operation(super::key(&key)?).await?.into())
}

/// Operations, newest first.
#[tauri::command]
#[specta::specta]
pub(crate) async fn operations(till: State<'_, Till>, query: OperationQuery) -> Answer<OperationPage> {
    Ok(till.operations(query.into()).await?.into())
}

/// What happened to an operation in words, oldest first.
#[tauri::command]
#[specta::specta]
pub(crate) async fn timeline(till: State<'_, Till>, key: String) -> Answer<Vec<TimelineEntry>> {
    Ok(all(till.timeline(super::key(&key)?).await?))
}

/// The same with what went over the wire.
#[tauri::command]
#[specta::specta]
pub(crate) async fn attempts(till: State<'_, Till>, key: String) -> Answer<Vec<Attempt>> {
    Ok(all(till.attempts(super::key(&key)?).await?))
}

/// How the queue stands.
#[tauri::command]
#[specta::specta]
pub(crate) async fn summary(till: State<'_, Till>) -> Answer<Summary> {
    Ok(till.summary().await?.into())
}

/// Asks the bank now for this operation, or for all. What waits because the bank said so still waits.
#[tauri::command]
#[specta::specta]
pub(crate) async fn retry_now(till: State<'_, Till>, key: Option<String>) -> Answer<()> {
    let key = key.as_deref().map(self::key).transpose()?;
    Ok(till.retry_now(key).await?)
}
