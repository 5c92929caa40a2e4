//! The same queue as the window has it: by events, beside the cashier's clicks.

use super::{
    Checked, LIMIT,
    bank::{FakeBank, GOOD, POOR, SILENT},
    wait_for,
};
use till::{Bank, CardPayment, Chip, Event, Operation, Sale, SaleState, Secret, State, Till, TillError};
use tokio::{sync::broadcast::Receiver, time::timeout};
use tokio_util::sync::CancellationToken;

/// Waits for the event that an operation has come to this state.
async fn told(events: &mut Receiver<Event>, state: State) -> Checked<Operation> {
    let wait = async {
        loop {
            if let Event::OperationChanged(operation) = events.recv().await?
                && operation.state == state
            {
                return Ok(*operation);
            }
        }
    };
    timeout(LIMIT, wait).await?
}

async fn pay(till: &Till, sale: &Sale, card: &str) -> Checked<CardPayment> {
    let dialog = till.begin_tender(sale.id).await?;
    let payment =
        CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount: dialog.due, card: card.to_owned() };
    till.pay_card(payment.clone()).await?;
    Ok(payment)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_is_told_and_the_late_click_finds_its_operation() -> Checked {
    let (bank, dir) = (FakeBank::start()?, tempfile::tempdir()?);
    let till = Till::open(dir.path())?;
    assert!(matches!(till.retry_now(None).await, Err(TillError::NoBank(_))));
    assert!(!till.start_settling(None, CancellationToken::new())?.is_running());
    let named = Bank { url: bank.url.clone(), token: Secret::new("sk_test") };
    let shutdown = CancellationToken::new();
    let mut events = till.subscribe();
    let mut settling = till.start_settling(Some(named.clone()), shutdown.clone())?;
    assert!(matches!(till.start_settling(Some(named), shutdown.clone()), Err(TillError::InUse(_))));

    let sale = till.add_article("BAK-201", None).await?;
    pay(&till, &sale, POOR).await?;
    assert_eq!(told(&mut events, State::Saved).await?.sale_id, sale.id);
    let declined = told(&mut events, State::Declined).await?;
    assert_eq!(declined.decline_code.as_deref(), Some("insufficient_funds"));
    let payment = pay(&till, &sale, GOOD).await?;
    let approved = told(&mut events, State::Approved).await?;
    assert_eq!((approved.receipt_number, approved.last4.as_deref()), (Some(1), Some("4242")));
    assert_eq!(till.sale(sale.id).await?.state, SaleState::Completed);
    assert_eq!(till.pay_card(payment).await?.approval_code.as_deref(), Some("8F21K0"));
    assert_eq!(till.summary().await?.chip, Chip::Ok);

    // What is in flight at the end is told as unknown, and the chip counts it.
    let sale = till.new_sale().await?;
    till.add_article("CAF-101", None).await?;
    pay(&till, &sale, SILENT).await?;
    told(&mut events, State::Sending).await?;
    // Counted is not yet sent: the end must find it at the bank.
    tokio::task::spawn_blocking({
        let bank = bank.clone();
        move || wait_for("the request", || bank.seen(|seen| seen.requests == 3)).map_err(|error| error.to_string())
    })
    .await??;
    till.retry_now(None).await?;
    assert_eq!(till.summary().await?.chip, Chip::Busy);
    shutdown.cancel();
    timeout(LIMIT, settling.stopped()).await??;
    told(&mut events, State::Unknown).await?;
    let summary = till.summary().await?;
    assert_eq!((summary.chip, summary.waiting, summary.amounts[0].amount), (Chip::Waiting, 1, 220));
    assert_eq!(bank.seen(|seen| (seen.requests, seen.payments.len())), (3, 2));
    Ok(())
}
