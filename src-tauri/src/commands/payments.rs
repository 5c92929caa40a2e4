//! The operations, and the queue that settles them.

use protocol::Key;
use tauri::State;
use till::{Till, TillError};

use super::Answer;
use crate::dto::{Operation, OperationPage, OperationQuery, Summary, TimelineEntry, all};

/// One operation.
#[tauri::command]
#[specta::specta]
pub(crate) async fn operation(till: State<'_, Till>, key: String) -> Answer<Operation> {
    Ok(till.operation(parsed(&key)?).await?.into())
}

/// Operations, newest first.
#[tauri::command]
#[specta::specta]
pub(crate) async fn operations(till: State<'_, Till>, query: OperationQuery) -> Answer<OperationPage> {
    let query = till::OperationQuery {
        state: query.state.map(till::State::from),
        before: query.before.map(|seq| seq.0),
        limit: Some(query.limit),
        ..till::OperationQuery::default()
    };
    Ok(till.operations(query).await?.into())
}

/// What happened to an operation, oldest first.
#[tauri::command]
#[specta::specta]
pub(crate) async fn timeline(till: State<'_, Till>, key: String) -> Answer<Vec<TimelineEntry>> {
    Ok(all(till.timeline(parsed(&key)?).await?))
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
    let key = key.as_deref().map(parsed).transpose()?;
    Ok(till.retry_now(key).await?)
}

fn parsed(key: &str) -> Result<Key, TillError> {
    Key::parse(key).map_err(|_| TillError::NotFound("operation"))
}
