//! An amount charged with no cart before it: a sale of its own, in nobody's way.

use super::{Checked, Scene};
use crate::{Charge, State, TillError};
use protocol::{Amount, CardToken, Currency};
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
