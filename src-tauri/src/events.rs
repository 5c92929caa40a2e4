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

/// A payment that was taken offline did not pay, or what became of it since changed.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct LateDeclined(pub(crate) dto::LateDecline);

/// Somebody logged in or locked the till, or what is known of who is logged in changed. The window asks for it.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct SessionChanged;

/// Articles, categories or the shop's settings changed. The window asks for what it shows.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct CatalogueChanged;

/// A shift was opened or closed, or its drawer moved. The window asks for it.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
pub(crate) struct ShiftChanged;

/// Somebody is about to close the window while payments are not settled. The window asks them: Stay, or `closeAnyway`.
#[derive(Debug, Clone, Serialize, Deserialize, Type, Event)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CloseRequested {
    pub(crate) unsettled: u32,
    /// What they come to, for each currency.
    pub(crate) amounts: Vec<dto::CurrencyAmount>,
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
        till::Event::LateDecline(late) => {
            SaleChanged { sale_id: late.sale_id.to_string() }.emit(window)?;
            LateDeclined((*late).into()).emit(window)
        }
        till::Event::SaleChanged { sale_id } => SaleChanged { sale_id: sale_id.to_string() }.emit(window),
        till::Event::SessionChanged => SessionChanged.emit(window),
        till::Event::CatalogueChanged => CatalogueChanged.emit(window),
        till::Event::ShiftChanged => ShiftChanged.emit(window),
    }
}
