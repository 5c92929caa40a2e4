//! Pay: a tender has its id from the moment its dialog opens, so that however often it is clicked it is one tender.

use tauri::State;
use till::{Till, TillError};

use super::{Answer, approved, id};
use crate::dto::{BegunTender, CardPayment, CashPayment, CashTaken, Operation, PinEntry};

/// What is due, and an id for the tender that is to pay it. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn begin_tender(till: State<'_, Till>, sale_id: String) -> Answer<BegunTender> {
    Ok(till.begin_tender(id(&sale_id, "sale")?).await?.into())
}

/// Pays by card: durable when it answers, and sent only then.
#[tauri::command]
#[specta::specta]
pub(crate) async fn pay_card(
    till: State<'_, Till>,
    payment: CardPayment,
    approval: Option<PinEntry>,
) -> Answer<Operation> {
    let payment = till::CardPayment {
        tender_id: id(&payment.tender_id, "tender")?,
        sale_id: id(&payment.sale_id, "sale")?,
        amount: payment.amount.0,
        card: payment.card,
    };
    Ok(approved(&till, approval).await?.pay_card(payment).await?.into())
}

/// Pays in cash: all that is due, or a part of it.
#[tauri::command]
#[specta::specta]
pub(crate) async fn pay_cash(
    till: State<'_, Till>,
    payment: CashPayment,
    approval: Option<PinEntry>,
) -> Answer<CashTaken> {
    Ok(approved(&till, approval).await?.pay_cash(cash(&payment)?).await?.into())
}

/// What is due in cash in the place of a card payment, and an id for the tender that is to pay it. Saves nothing.
#[tauri::command]
#[specta::specta]
pub(crate) async fn begin_cash_instead(till: State<'_, Till>, card_tender_id: String) -> Answer<BegunTender> {
    Ok(till.begin_cash_instead(id(&card_tender_id, "tender")?).await?.into())
}

/// Takes cash in the place of a card payment that was never sent, and cancels that: both in one commit.
#[tauri::command]
#[specta::specta]
pub(crate) async fn pay_cash_instead(
    till: State<'_, Till>,
    payment: CashPayment,
    card_tender_id: String,
    approval: Option<PinEntry>,
) -> Answer<CashTaken> {
    let card_tender_id = id(&card_tender_id, "tender")?;
    Ok(approved(&till, approval).await?.pay_cash_instead(cash(&payment)?, card_tender_id).await?.into())
}

/// Cancels an operation: at once where it was never sent, else the wish is saved and brought to the bank.
#[tauri::command]
#[specta::specta]
pub(crate) async fn cancel(till: State<'_, Till>, key: String) -> Answer<Operation> {
    Ok(till.cancel(super::key(&key)?).await?.into())
}

fn cash(payment: &CashPayment) -> Result<till::CashPayment, TillError> {
    Ok(till::CashPayment {
        tender_id: id(&payment.tender_id, "tender")?,
        sale_id: id(&payment.sale_id, "sale")?,
        tendered: payment.tendered.0,
    })
}
