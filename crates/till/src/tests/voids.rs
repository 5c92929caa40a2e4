//! A sale that is given up after a part was paid: all of that goes back, once, and nothing of the sale is left.

use super::{Checked, Scene, frozen::refuses, returns::new as new_return, shifts::opened};
use crate::{
    CashPayment, LegState, NewPerson, NewVoid, PinEntry, Refund, ReturnState, ReturnedGoods, Right, Role, RoleRight,
    Sale, SaleState, SaleVoid, State, TakeOffline, TenderKind, TillError,
};
use protocol::Amount;
use uuid::Uuid;

fn new(sale: &Sale) -> NewVoid {
    NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: None }
}

/// A sale of 5.90 of which 3.00 are paid by card and 1.00 in cash, with a declined card between.
async fn partly_paid(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 300).await?, State::Approved).await?;
    scene.settle(&scene.by_card(&sale, 290).await?, State::Declined).await?;
    scene.in_cash(&sale, 100).await?;
    Ok(scene.till.sale(sale.id).await?)
}

fn legs(void: &SaleVoid) -> Vec<(TenderKind, LegState, i64)> {
    void.legs.iter().map(|leg| (leg.kind, leg.state, leg.amount)).collect()
}

#[tokio::test]
async fn what_was_paid_goes_back_and_the_sale_is_over() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 1_000).await?;
    let sale = partly_paid(&scene).await?;
    let dialog = scene.till.begin_void(sale.id).await?;
    assert_eq!((dialog.cards, dialog.cash), (300, 100));
    let click = NewVoid { id: dialog.void_id, reason: Some(" went away ".into()), ..new(&sale) };
    let void = scene.till.void_sale(click.clone()).await?;
    assert_eq!((void.cards, void.cash, void.reason.as_deref()), (300, 100, Some("went away")));
    assert_eq!(
        legs(&void),
        [(TenderKind::Card, LegState::Settling, 300), (TenderKind::Cash, LegState::HandedOver, 100)]
    );
    assert_eq!(void.state, ReturnState::Settling);
    let refund = void.legs[0].operation.clone().ok_or("no operation")?;
    assert_ne!(Some(refund.key), sale.tenders[0].operation.as_ref().map(|operation| operation.key));
    // Killed and started again: it is decided, whole, and the refund goes on.
    let scene = scene.killed()?;
    assert_eq!(scene.till.void_of(sale.id).await?.as_ref(), Some(&void));
    scene.settle(&refund, State::Approved).await?;
    let done = scene.till.void_of(sale.id).await?.ok_or("no void")?;
    assert_eq!((done.state, done.legs[0].state), (ReturnState::Done, LegState::Approved));
    assert_eq!(scene.till.void_sale(click).await?, done);

    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.state, now.due, now.receipt_number, now.held), (SaleState::Voided, 0, None, true));
    assert!(scene.till.held_sales().await?.is_empty());
    assert_ne!(scene.till.open_sale().await?.id, sale.id);
    for refused in [
        scene.till.begin_tender(sale.id).await.map(drop),
        scene.till.back_to_cart(sale.id).await.map(drop),
        scene.till.resume_sale(sale.id).await.map(drop),
        scene.till.hold_sale(sale.id).await.map(drop),
        scene.till.drop_sale(sale.id).await.map(drop),
        scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await.map(drop),
        scene.till.set_quantity(sale.lines[0].id, "9").await.map(drop),
        scene.till.pay_cash(CashPayment { tender_id: Uuid::now_v7(), sale_id: sale.id, tendered: 190 }).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::SaleChanged(_))), "{refused:?}");
    }
    assert!(matches!(scene.till.void_sale(new(&sale)).await, Err(TillError::AlreadyFinal(_))));
    let entries = scene.till.audit(Some(sale.id), 0, 200).await?;
    assert_eq!(entries.iter().filter(|entry| entry.what == "sale-voided").count(), 1);

    let x = scene.till.x_report().await?;
    assert_eq!((x.sales, x.total, x.tenders.len(), x.returns.returns), (0, 0, 0, 0));
    assert_eq!((x.voids.voids, x.voids.cards, x.voids.cash, x.card_refunds.amount), (1, 300, 100, 300));
    assert_eq!((x.drawer.cash_of_open_sales, x.drawer.cash_refunds, x.drawer.expected), (100, 100, 1_000));
    assert!(x.text().contains("  Of it, of voided sales (1)         -4.00"), "{}", x.text());
    Ok(())
}

#[tokio::test]
async fn what_may_be_charged_is_settled_first_and_what_was_taken_offline_is_waited_for() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    assert!(matches!(scene.till.void_sale(new(&sale)).await, Err(TillError::SaleChanged(_))), "it is open");
    let card = scene.by_card(&sale, 300).await?;
    assert!(matches!(scene.till.void_sale(new(&sale)).await, Err(TillError::CardMayBeCharged(_))), "never sent");
    scene.settle(&card, State::Unknown).await?;
    let refused = scene.till.begin_void(sale.id).await;
    assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
    scene.settle(&card, State::NeedsAttention).await?;
    assert!(matches!(scene.till.void_sale(new(&sale)).await, Err(TillError::NeedsLook(_))));
    scene.settle(&card, State::Declined).await?;
    let refused = scene.till.void_sale(new(&sale)).await;
    assert!(matches!(refused, Err(TillError::SaleChanged(_))), "nothing is paid: {refused:?}");
    scene.till.drop_sale(sale.id).await?;

    for (end, leg) in [(State::Approved, LegState::Settling), (State::Declined, LegState::Void)] {
        let sale = scene.sale().await?;
        let card = scene.taken_offline(&sale, 300).await?;
        let void = scene.till.void_sale(new(&sale)).await?;
        assert_eq!(void.legs[0].operation.as_ref().map(|operation| operation.state), Some(State::Saved));
        scene.settle(&card, end).await?;
        let void = scene.till.void_of(sale.id).await?.ok_or("no void")?;
        assert_eq!(void.legs[0].state, leg);
        assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Voided);
        assert_eq!(scene.count("SELECT count(*) FROM late_declines")?, 0, "its goods were never gone for good");
    }
    let sale = scene.sale().await?;
    scene.in_cash(&sale, 590).await?;
    let refused = scene.till.void_sale(new(&sale)).await;
    assert!(matches!(refused, Err(TillError::SaleChanged(_))), "it is completed: {refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_card_that_refuses_its_refund_is_tried_again_or_paid_out() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 1_000).await?;
    let sale = partly_paid(&scene).await?;
    let void = scene.till.void_sale(new(&sale)).await?;
    scene.settle(void.legs[0].operation.as_ref().ok_or("no operation")?, State::Declined).await?;
    let second = Uuid::now_v7();
    let again = scene.till.refund_again(void.legs[0].id, second).await?;
    scene.settle(&again, State::Declined).await?;
    let owed = scene.till.void_of(sale.id).await?.ok_or("no void")?;
    assert_eq!(owed.state, ReturnState::Owed);
    assert_eq!(scene.till.owed_voids().await?, [owed]);
    let cash = Uuid::now_v7();
    let paid_out = scene.till.refund_in_cash(second, cash).await?;
    assert_eq!((paid_out.sale_id, paid_out.leg.amount), (sale.id, 300));
    assert_eq!(scene.till.refund_in_cash(second, cash).await?, paid_out);
    assert!(matches!(scene.till.refund_again(second, Uuid::now_v7()).await, Err(TillError::AlreadyFinal(_))));
    assert_eq!(scene.till.void_of(sale.id).await?.ok_or("no void")?.state, ReturnState::Done);
    assert_eq!(scene.till.owed_voids().await?, []);
    let x = scene.till.x_report().await?;
    assert_eq!((x.returns.paid_out.amount, x.voids.cash, x.drawer.expected), (300, 100, 700));
    Ok(())
}

#[tokio::test]
async fn it_is_decided_whole_or_not_at_all_and_by_one_click_of_twenty() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 0).await?;
    let sale = partly_paid(&scene).await?;
    let left =
        "SELECT (SELECT count(*) FROM voids) + (SELECT count(*) FROM refunds) + (SELECT count(*) FROM cash_refunds)
        + (SELECT count(*) FROM operations) + (SELECT count(*) FROM audit) + (SELECT count(*) FROM drawer_moves)
        + (SELECT count(*) FROM sales WHERE voided_at IS NOT NULL)";
    let before = scene.count(left)?;
    for place in [
        "INSERT ON operations",
        "INSERT ON refunds",
        "INSERT ON cash_refunds",
        "INSERT ON drawer_moves",
        "INSERT ON voids",
        "UPDATE ON sales",
        "INSERT ON audit",
    ] {
        let fault = format!("CREATE TRIGGER fault BEFORE {place} BEGIN SELECT RAISE(ABORT, 'a fault'); END");
        scene.file()?.execute_batch(&fault)?;
        let refused = scene.till.void_sale(new(&sale)).await;
        scene.file()?.execute_batch("DROP TRIGGER fault")?;
        assert!(refused.is_err(), "{place}");
        assert_eq!(scene.count(left)?, before, "{place}");
    }
    let click = new(&sale);
    let clicks: Vec<_> = (0..20)
        .map(|at| {
            let (till, click) = (scene.till.clone(), if at % 2 == 0 { click.clone() } else { new(&sale) });
            tokio::spawn(async move { till.void_sale(click).await })
        })
        .collect();
    let mut refused = 0;
    for click in clicks {
        match click.await? {
            Ok(_) => {}
            Err(TillError::AlreadyFinal(_)) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    assert!(refused == 10 || refused == 19, "{refused}");
    assert_eq!(scene.count("SELECT count(*) FROM refunds")?, 1);
    assert_eq!(scene.count("SELECT count(*) FROM drawer_moves")?, 1);
    Ok(())
}

#[tokio::test]
async fn who_may_not_give_so_much_back_needs_a_manager() -> Checked {
    let scene = Scene::new()?;
    let sale = partly_paid(&scene).await?;
    let person = |name: &str, role, pin: &str| NewPerson { name: name.into(), role, pin: pin.into() };
    let boss = scene.till.add_person(person("Boss", Role::Manager, "7391")).await?;
    scene.till.log_in(PinEntry { person_id: boss.id, pin: "7391".into() }).await?;
    let anna = scene.till.add_person(person("Anna", Role::Cashier, "8264")).await?;
    let limit = crate::Limit { allowed: true, amount_max: Some(399), percent_max: None };
    scene.till.set_right(RoleRight { role: Role::Cashier, right: Right::Refund, limit }).await?;
    scene.till.log_in(PinEntry { person_id: anna.id, pin: "8264".into() }).await?;
    let refused = scene.till.void_sale(new(&sale)).await;
    assert!(matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("4.00")), "{refused:?}");
    // Nor bit by bit: it is given up whole.
    let payment = sale.tenders[0].operation.as_ref().ok_or("no operation")?.key;
    let refused = scene.till.refund(Refund { intent_id: Uuid::now_v7(), payment, amount: Amount::new(100)? }).await;
    assert!(matches!(refused, Err(TillError::SaleNotCompleted)), "{refused:?}");
    let approved = scene.till.approved_by(PinEntry { person_id: boss.id, pin: "7391".into() }).await?;
    approved.void_sale(new(&sale)).await?;
    let entries = scene.till.audit(Some(sale.id), 0, 200).await?;
    let entry = entries.iter().find(|entry| entry.what == "sale-voided").ok_or("no entry")?;
    assert_eq!((entry.who.as_str(), entry.approved_by.as_deref()), ("Anna", Some("Boss")));
    Ok(())
}

#[tokio::test]
async fn the_database_voids_a_sale_whole_and_once() -> Checked {
    let scene = Scene::new()?;
    let sale = partly_paid(&scene).await?;
    let file = scene.file()?;
    let (id, tender) = ("00000000-0000-4000-8000-000000000001", sale.tenders[0].id);
    let parts = |cards: i64, cash: i64, rounding: i64| {
        format!(
            "INSERT INTO refunds (id, tender_id, state, amount, void_id, created_at, updated_at)
             VALUES ('00000000-0000-4000-8000-000000000002', '{tender}', 'settling', {cards}, '{id}', 1, 1);
             INSERT INTO cash_refunds VALUES ('00000000-0000-4000-8000-000000000003', NULL, NULL, {cash}, {rounding}, 1, 0, '{id}');"
        )
    };
    let void = |cards: i64, cash: i64, shift: i64| {
        format!("INSERT INTO voids VALUES ('{id}', '{}', {cards}, {cash}, NULL, 1, {shift})", sale.id)
    };
    for (before, last, reason) in [
        (parts(300, 100, 0), void(299, 100, 0), "all that was paid"),
        (parts(299, 100, 0), void(299, 100, 0), "all that was paid"),
        (parts(300, 99, 0), void(300, 99, 0), "all that was paid"),
        (parts(300, 101, 1), void(300, 101, 0), "all that was paid"),
        (parts(300, 100, 0), void(300, 100, 1), "belongs to the shift"),
        (parts(301, 100, 0), void(301, 100, 0), "never over what is left"),
        (String::new(), void(0, 0, 0), "all that was paid"),
    ] {
        file.execute_batch("BEGIN")?;
        let refused =
            file.execute_batch(&before).and_then(|()| file.execute_batch(&last)).expect_err(&last).to_string();
        file.execute_batch("ROLLBACK")?;
        assert!(refused.contains(reason), "{before} {last}: {refused}");
    }
    refuses(&file, "UPDATE sales SET voided_at = 1, held = 1 WHERE state = 'paying'", "all that was paid given back");
    file.execute_batch(&format!("BEGIN; {} {}; COMMIT", parts(300, 100, 0), void(300, 100, 0)))?;
    let state = "SELECT count(*) FROM sales WHERE voided_at = 1 AND held = 1";
    assert_eq!(scene.count(state)?, 1);
    for (change, reason) in [
        ("UPDATE voids SET cash = 0".to_owned(), "never changes"),
        ("DELETE FROM voids".to_owned(), "never changes"),
        ("UPDATE sales SET voided_at = NULL WHERE voided_at IS NOT NULL".to_owned(), "voided never changes"),
        ("UPDATE sales SET held = 0 WHERE voided_at IS NOT NULL".to_owned(), "voided never changes"),
        (
            "UPDATE sales SET state = 'completed', receipt_number = 1, rounding = 0, completed_at = 0 WHERE voided_at IS NOT NULL".to_owned(),
            "voided never changes",
        ),
        ("DELETE FROM sales WHERE voided_at IS NOT NULL".to_owned(), "never dropped"),
        (
            format!(
                "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, created_at, updated_at)
                 VALUES ('{id}', '{}', 9, 'cash', 'taken', 100, 100, 0, 1, 1)",
                sale.id
            ),
            "a tender is for a sale under payment",
        ),
        ("UPDATE refunds SET void_id = NULL".to_owned(), "never changes but for its state"),
        (
            format!("INSERT INTO cash_refunds VALUES ('{id}', NULL, NULL, 0, 0, 1, 0, '{id}')"),
            "paid out in cash once",
        ),
        (
            format!(
                "INSERT INTO refunds (id, tender_id, state, amount, void_id, created_at, updated_at)
                 VALUES ('{id}', '{tender}', 'settling', 1, '{id}', 1, 1)"
            ),
            "tried again once",
        ),
    ] {
        refuses(&file, &change, reason);
    }
    // Open: nobody knows what its card paid.
    scene.till.new_sale().await?;
    let open = scene.sale().await?;
    let tender = scene.by_card_tender(&open, 100).await?;
    let id = "00000000-0000-4000-8000-000000000004";
    let voided = format!(
        "INSERT INTO refunds (id, tender_id, state, amount, void_id, created_at, updated_at)
         VALUES ('00000000-0000-4000-8000-000000000005', '{tender}', 'settling', 100, '{id}', 1, 1);
         INSERT INTO voids VALUES ('{id}', '{}', 100, 0, NULL, 1, 0)",
        open.id
    );
    file.execute_batch("BEGIN")?;
    let refused = file.execute_batch(&voided).expect_err("its card may be charged").to_string();
    file.execute_batch("ROLLBACK")?;
    assert!(refused.contains("no card may be charged"), "{refused}");
    scene.till.take_offline(TakeOffline { tender_id: tender, contact: None, over_limit: false }).await?;
    file.execute_batch(&format!("BEGIN; {voided}; COMMIT"))?;
    Ok(())
}
