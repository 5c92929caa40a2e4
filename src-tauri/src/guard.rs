//! Closing the window while payments are not settled: the window asks first, and they are safe either way.
//!
//! The page asks, so a page that does not answer must not hold the window open. A second wish to close within
//! [`ASKED_TWICE`] closes it without a question: who sees nothing happen clicks again. So does a till that can't say how
//! many there are, and SIGTERM, which never asks. What is unsettled goes on at the next start in every case.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tauri::{AppHandle, Manager, async_runtime};
use tauri_specta::Event;
use till::{Summary, Till};

use crate::{dto::all, events::CloseRequested};

/// How soon a second wish to close is meant as one.
const ASKED_TWICE: Duration = Duration::from_secs(10);

/// When somebody wished to close and was asked.
#[derive(Default)]
pub(crate) struct CloseGuard(Mutex<Option<Instant>>);

impl CloseGuard {
    /// Whether a wish to close at this time is the second one. Takes it as the first where it is not.
    fn is_second(&self, now: Instant) -> bool {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        before.is_some_and(|before| now.duration_since(before) < ASKED_TWICE)
    }
}

/// Whether the window may close at once. Where not, it is asked, or closed once the till has said that all is settled.
pub(crate) fn may_close(app: &AppHandle) -> bool {
    if app.state::<CloseGuard>().is_second(Instant::now()) {
        return true;
    }
    let app = app.clone();
    async_runtime::spawn(async move {
        let till = app.state::<Till>().inner().clone();
        match till.summary().await {
            Ok(summary) => match question(summary) {
                None => close(&app),
                Some(question) => {
                    if let Err(error) = question.emit(&app) {
                        tracing::warn!("the window can't be asked whether it may close: {error}");
                        close(&app);
                    }
                }
            },
            Err(error) => {
                tracing::warn!("closing without a question: {error}");
                close(&app);
            }
        }
    });
    false
}

/// What the window is asked; nothing where all is settled.
fn question(summary: Summary) -> Option<CloseRequested> {
    let Summary { unsettled, amounts, .. } = summary;
    (unsettled > 0).then(|| CloseRequested { unsettled, amounts: all(amounts) })
}

/// Closes every window, and the app with them.
pub(crate) fn close(app: &AppHandle) {
    for window in app.webview_windows().into_values() {
        if let Err(error) = window.destroy() {
            tracing::warn!("a window does not close: {error}");
            app.exit(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_wish_to_close_is_one_and_a_later_one_is_a_first() {
        let guard = CloseGuard::default();
        let start = Instant::now();
        assert!(!guard.is_second(start));
        assert!(guard.is_second(start + Duration::from_secs(9)));
        let stayed = CloseGuard::default();
        assert!(!stayed.is_second(start));
        assert!(!stayed.is_second(start + ASKED_TWICE), "somebody chose Stay, and works on");
        assert!(stayed.is_second(start + ASKED_TWICE + Duration::from_secs(1)));
    }

    #[tokio::test]
    async fn only_what_is_unsettled_is_asked_about() {
        let folder = tempfile::tempdir().unwrap();
        let till = Till::open(folder.path()).unwrap();
        assert!(question(till.summary().await.unwrap()).is_none());
        let sale = till.add_article("BAK-201", None).await.unwrap();
        let begun = till.begin_tender(sale.id).await.unwrap();
        let card = "tok_visa".to_owned();
        let payment = till::CardPayment { tender_id: begun.tender_id, sale_id: sale.id, amount: begun.due, card };
        till.pay_card(payment).await.unwrap();
        let CloseRequested { unsettled, amounts } = question(till.summary().await.unwrap()).unwrap();
        assert_eq!((unsettled, amounts[0].amount), (1, crate::dto::Minor(185)));
    }
}
