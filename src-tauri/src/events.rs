//! What the window is told without asking. An event may come late or twice: what it carries was true when it was sent.

use serde::{Deserialize, Serialize};
use specta::Type;
use tauri::AppHandle;
use tauri_specta::Event;
use till::Till;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::dto;

/// An operation changed.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct OperationChanged(pub(crate) dto::Operation);

/// The queue changed.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct SummaryChanged(pub(crate) dto::Summary);

/// A sale changed.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaleChanged {
    pub(crate) sale_id: String,
}

/// Hands on what the till tells, until it tells no more.
pub(crate) async fn forward(window: AppHandle, till: Till, mut told: Receiver<till::Event>) {
    loop {
        let sent = match told.recv().await {
            Ok(event) => send(&window, event),
            // The summary says how all stands; the window looks for the rest when it shows it.
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "the window was too slow for the till's events");
                match till.summary().await {
                    Ok(summary) => SummaryChanged(summary.into()).emit(&window),
                    Err(error) => {
                        tracing::error!("cannot tell the window how the queue stands: {error}");
                        continue;
                    }
                }
            }
            Err(RecvError::Closed) => return,
        };
        if let Err(error) = sent {
            tracing::warn!("an event did not reach the window: {error}");
        }
    }
}

fn send(window: &AppHandle, event: till::Event) -> tauri::Result<()> {
    match event {
        till::Event::OperationChanged(operation) => OperationChanged((*operation).into()).emit(window),
        till::Event::SummaryChanged(summary) => SummaryChanged(summary.into()).emit(window),
        till::Event::LateDecline(late) => SaleChanged { sale_id: late.sale_id.to_string() }.emit(window),
        till::Event::SaleChanged { sale_id } => SaleChanged { sale_id: sale_id.to_string() }.emit(window),
    }
}
