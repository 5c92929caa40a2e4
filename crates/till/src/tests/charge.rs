//! An amount charged with no cart before it: a sale of its own, in nobody's way.

use super::{Checked, Scene};
use crate::{Charge, OperationQuery, Refund, State, TillError, audit::Signature, charge as charging, new_id, queue};
use protocol::{Amount, CardToken, Currency};
use std::time::{Duration, SystemTime};
use store::Priority;
use uuid::Uuid;

fn charge() -> Checked<Charge> {
    Ok(Charge {
        intent_id: Uuid::now_v7(),
        amount: Amount::new(2_490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline: false,
    })
}

#[tokio::test]
async fn it_is_among_the_payments_and_never_among_the_held_sales() -> Checked {
    let scene = Scene::new()?;
    let held = scene.sale().await?;
    scene.by_card(&held, 590).await?;
    let front = scene.till.hold_sale(held.id).await?;
    let declined = scene.till.charge(charge()?).await?;
    let open = scene.till.charge(charge()?).await?;
    let ids =
        async || Ok::<_, TillError>(scene.till.held_sales().await?.iter().map(|sale| sale.id).collect::<Vec<_>>());
    assert_eq!(ids().await?, [held.id]);
    for state in [State::Unknown, State::NeedsAttention, State::Declined] {
        scene.settle(&declined, state).await?;
        assert_eq!(ids().await?, [held.id], "{state}");
    }
    assert_eq!(scene.till.open_sale().await?.id, front.id);
    let refused = scene.till.resume_sale(declined.sale_id).await;
    assert!(matches!(refused, Err(TillError::SaleChanged(_))), "{refused:?}");
    assert_eq!(scene.settle(&open, State::Approved).await?.receipt_number, Some(1));
    // Nothing of it is lost.
    assert_eq!(scene.till.sale(declined.sale_id).await?.due, 2_490);
    assert_eq!(scene.till.operation(declined.key).await?.state, State::Declined);
    let changed = scene.file()?.execute("UPDATE sales SET has_cart = 1", []);
    assert!(changed.is_err());
    Ok(())
}

#[tokio::test]
async fn however_many_there_are_a_cashiers_own_are_shown() -> Checked {
    let scene = Scene::new()?;
    for _ in 0..201 {
        scene.till.charge(charge()?).await?;
    }
    let held = scene.sale().await?;
    scene.by_card(&held, 590).await?;
    scene.till.hold_sale(held.id).await?;
    assert_eq!(scene.till.held_sales().await?.iter().map(|sale| sale.id).collect::<Vec<_>>(), [held.id]);
    Ok(())
}

/// A clock may leave all bounds while the till runs: what it saves then it can still show.
#[tokio::test]
async fn a_payment_can_be_saved_and_shown_at_any_time() -> Checked {
    let scene = Scene::new()?;
    let store = &scene.till.inner.store;
    let far = Duration::from_secs(400_000_000_000);
    let (past, future) = (SystemTime::UNIX_EPOCH - far, SystemTime::UNIX_EPOCH + far);
    for at in [past, SystemTime::UNIX_EPOCH, future, SystemTime::now()].map(protocol::instant) {
        let charge = Charge { accepted_offline: at.as_second() > 0, ..charge()? };
        let signature = Signature::of_program("test", at);
        let saved = store.write(Priority::Click, move |tx| charging::charge(tx, &signature, &charge)).await?;
        let settled = scene.settle_at(&saved, State::Approved, at).await?;
        assert_eq!(settled.created_at.as_millisecond(), at.as_millisecond());
        assert!(scene.till.receipt(settled.sale_id).await?.text.contains("24.90"));
        scene.till.refund(Refund { intent_id: new_id(), payment: saved.key, amount: Amount::new(100)? }).await?;
        store.read(move |conn| queue::summary(conn, at, queue::Settles::Somebody)).await?;
    }
    assert_eq!(scene.till.operations(OperationQuery::default()).await?.operations.len(), 8);
    Ok(())
}
