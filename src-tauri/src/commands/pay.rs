//! Pay: a tender has its id from the moment its dialog opens, so that however often it is clicked it is one tender.

use tauri::State;
use till::Till;

use super::{Answer, id};
use crate::dto::{BegunTender, CardPayment, CashPayment, CashTaken, Operation};

/// What is due, and an id for the tender that is to pay it. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn begin_tender(till: State<'_, Till>, sale_id: String) -> Answer<BegunTender> {
    Ok(till.begin_tender(id(&sale_id, "sale")?).await?.into())
}

/// Pays by card: durable when it answers, and sent only then.
#[tauri::command]
#[specta::specta]
pub(crate) async fn pay_card(till: State<'_, Till>, payment: CardPayment) -> Answer<Operation> {
    let payment = till::CardPayment {
        tender_id: id(&payment.tender_id, "tender")?,
        sale_id: id(&payment.sale_id, "sale")?,
        amount: payment.amount.0,
        card: payment.card,
    };
    Ok(till.pay_card(payment).await?.into())
}

/// Pays all that is due in cash.
#[tauri::command]
#[specta::specta]
pub(crate) async fn pay_cash(till: State<'_, Till>, payment: CashPayment) -> Answer<CashTaken> {
    let payment = till::CashPayment {
        tender_id: id(&payment.tender_id, "tender")?,
        sale_id: id(&payment.sale_id, "sale")?,
        tendered: payment.tendered.0,
    };
    Ok(till.pay_cash(payment).await?.into())
}
