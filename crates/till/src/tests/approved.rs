//! What takes a manager's PIN once goods are gone or come back, and what the drawer makes of it.

use super::{
    Checked, Scene,
    people::{by_boris, staffed},
    returns::{new, settle_legs},
};
use crate::{
    DrawerMoveKind, LateState, LegState, Limit, OfflineLimits, ReturnedGoods, Right, Role, RoleRight, Settings,
    ShiftOpening, State, TakeOffline, TillError,
};
use uuid::Uuid;

#[tokio::test]
async fn over_the_offline_limit_a_manager_must_have_seen_it() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let boss = by_boris(&scene, &boris).await?;
    let offline = OfflineLimits { payment_max: 589, ..OfflineLimits::default() };
    boss.save_settings(Settings { offline, ..Settings::default() }).await?;
    let boss = by_boris(&scene, &boris).await?;
    let tender_id = scene.by_card_tender(&scene.sale().await?, 590).await?;
    let take = |over_limit| TakeOffline { tender_id, contact: None, over_limit };
    for (till, over_limit, code) in
        [(&scene.till, false, "offline-limit"), (&boss, false, "offline-limit"), (&scene.till, true, "not-allowed")]
    {
        let refused = till.take_offline(take(over_limit)).await.err().ok_or("it was taken")?;
        assert_eq!(refused.code(), code, "{refused}");
    }
    assert!(boss.take_offline(take(true)).await?.accepted_offline);
    let entries = scene.till.as_program("test").audit(None, 0, 100).await?;
    let taken = entries.iter().find(|entry| entry.what == "payment-taken-offline").ok_or("no entry")?;
    assert_eq!((taken.who.as_str(), taken.approved_by.as_deref()), (anna.name.as_str(), Some("Boris")));
    assert_eq!(taken.details["over_limit"], true);
    assert_eq!(scene.count("SELECT over_limit FROM taken_offline")?, 1);
    Ok(())
}

#[tokio::test]
async fn a_loss_is_a_managers_to_take() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    scene.settle(&card, State::Declined).await?;
    let late = scene.till.sale(sale.id).await?.tenders[0].id;
    let refused = scene.till.write_off(late, "gone").await;
    assert!(matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("Boris")), "{refused:?}");
    let boss = by_boris(&scene, &boris).await?;
    assert_eq!(boss.write_off(late, "gone").await?.state, LateState::WrittenOff);
    Ok(())
}

#[tokio::test]
async fn a_refund_over_the_cashiers_limit_and_cash_for_a_cards_take_a_manager() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let boss = by_boris(&scene, &boris).await?;
    let limit = Limit { allowed: true, amount_max: Some(589), percent_max: None };
    boss.set_right(RoleRight { role: Role::Cashier, right: Right::Refund, limit }).await?;
    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 590).await?, State::Approved).await?;
    let whole = new(&sale, ReturnedGoods::Whole);
    let refused = scene.till.return_goods(whole.clone()).await;
    assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    let made = by_boris(&scene, &boris).await?.return_goods(whole.clone()).await?;
    // What was made is shown to whoever clicks again.
    assert_eq!(scene.till.return_goods(whole).await?, made);
    settle_legs(&scene, &made, State::Declined).await?;
    let (leg, cash) = (made.legs[0].id, Uuid::now_v7());
    let refused = scene.till.refund_in_cash(leg, cash).await;
    assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    let boss = by_boris(&scene, &boris).await?;
    assert_eq!(boss.refund_in_cash(leg, cash).await?.leg.state, LegState::HandedOver);
    Ok(())
}

#[tokio::test]
async fn cash_goes_back_out_of_the_open_drawer_and_is_on_its_report() -> Checked {
    let scene = Scene::new()?;
    let opening = ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 1_000 };
    scene.till.open_shift(opening).await?;
    let sale = scene.sale().await?;
    let sale = scene.in_cash(&sale, 1_000).await?.sale;
    let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    let report = scene.till.x_report().await?;
    assert_eq!((report.cash_refunds.count, report.cash_refunds.amount, report.drawer.expected), (1, 590, 1_000));
    let moves = scene.till.drawer_moves(1).await?;
    assert_eq!((moves.len(), moves[0].kind, moves[0].id), (1, DrawerMoveKind::Refund, made.legs[0].id));
    Ok(())
}

#[tokio::test]
async fn with_no_drawer_open_no_cash_goes_back_and_a_drawer_gives_no_more_than_it_holds() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let sale = scene.in_cash(&sale, 1_000).await?.sale;
    // It was taken before there were shifts, and is in no drawer.
    scene.till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 589 }).await?;
    let refused = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await;
    assert!(matches!(refused, Err(TillError::InvalidAmount(_))), "{refused:?}");
    scene.till.count_drawer(crate::Count::Total(589)).await?;
    scene.till.close_shift(1).await?;
    let refused = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await;
    assert!(matches!(refused, Err(TillError::NoShift(_))), "{refused:?}");
    assert_eq!(scene.count("SELECT (SELECT count(*) FROM returns) + (SELECT count(*) FROM cash_refunds)")?, 0);
    Ok(())
}
