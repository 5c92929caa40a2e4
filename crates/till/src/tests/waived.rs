//! Goods that come back of what nobody has paid: less is owed, and no money goes back for them.

use super::{
    Checked, Scene,
    doctor::found,
    frozen::refuses,
    people::{by_boris, staffed},
    returns::{new, settle_legs},
    shifts::{moved, opened},
};
use crate::{
    CollectAgain, CollectInCash, DrawerOpening, Event, Goods, LateDecline, LateQuery, LateState, LegState, Limit,
    NewReturn, Operation, ReturnState, ReturnedGoods, Right, Role, RoleRight, Sale, State, TenderKind, TillError,
};
use std::collections::HashSet;
use uuid::Uuid;

/// A sale of 5.90: what was paid of it by card, and 2.90 or all that was taken offline, with its operation.
async fn offline(scene: &Scene, paid: i64) -> Checked<(Sale, Operation)> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    if paid > 0 {
        scene.settle(&scene.by_card(&sale, paid).await?, State::Approved).await?;
    }
    let card = scene.taken_offline(&sale, 590 - paid).await?;
    Ok((scene.till.sale(sale.id).await?, card))
}

/// The same, declined late.
async fn declined_late(scene: &Scene, paid: i64) -> Checked<(Sale, Uuid)> {
    let (sale, card) = offline(scene, paid).await?;
    scene.settle(&card, State::Declined).await?;
    let late = sale.tenders.last().ok_or("no tender")?.id;
    Ok((scene.till.sale(sale.id).await?, late))
}

/// Of the lines, two croissants for 3.70 and an espresso for 2.20.
fn line(sale: &Sale, at: usize, quantity: Option<&str>) -> NewReturn {
    let goods = vec![Goods { line_id: sale.lines[at].id, quantity: quantity.map(str::to_owned) }];
    new(sale, ReturnedGoods::Lines(goods))
}

fn collect(late_tender_id: Uuid) -> CollectAgain {
    CollectAgain { tender_id: Uuid::now_v7(), late_tender_id, card: "tok_visa".into() }
}

async fn late(scene: &Scene) -> Checked<LateDecline> {
    let query = LateQuery { with_ended: true, ..LateQuery::default() };
    Ok(scene.till.late_declines(query).await?.late.into_iter().next().ok_or("there is none")?)
}

fn standing(late: &LateDecline) -> (LateState, i64, i64) {
    (late.state, late.amount, late.returned)
}

#[tokio::test]
async fn all_that_nobody_paid_comes_back_and_nothing_is_owed_and_no_money_moves() -> Checked {
    let scene = Scene::new()?;
    let (sale, late_tender_id) = declined_late(&scene, 0).await?;
    let price = scene.till.price_return(sale.id, ReturnedGoods::Whole).await?;
    assert_eq!((price.total, price.waived, price.cards.len(), price.cash), (590, 590, 0, 0));
    let mut events = scene.till.subscribe();
    let new = new(&sale, ReturnedGoods::Whole);
    let made = scene.till.return_goods(new.clone()).await?;
    assert_eq!((made.total, made.waived, made.legs.len(), made.state), (590, 590, 0, ReturnState::Done));
    assert_eq!((made.receipt_number, made.net, made.tax), (2, 531, 59));
    let settled = late(&scene).await?;
    assert_eq!(standing(&settled), (LateState::Settled, 0, 590));
    assert!(settled.ended_at.is_some() && settled.cash.is_none());
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let told: Vec<_> =
        told.filter_map(|event| if let Event::LateDecline(late) = event { Some(*late) } else { None }).collect();
    assert_eq!(told, [settled]);
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.waived, now.paid), (0, 590, 0));
    assert_eq!(scene.count("SELECT (SELECT count(*) FROM operations) - 1 + (SELECT count(*) FROM cash_refunds)")?, 0);
    // However late the click comes, it is the same return; and there is nothing left to come back or to collect.
    assert_eq!(scene.till.return_goods(new.clone()).await?, made);
    let other = NewReturn { goods: line(&sale, 0, Some("1")).goods, ..new };
    assert!(matches!(scene.till.return_goods(other).await, Err(TillError::IntentReused(_))));
    for refused in [
        scene.till.collect_again(collect(late_tender_id)).await.map(drop),
        scene.till.begin_collecting(late_tender_id).await.map(drop),
        scene.till.write_off(late_tender_id, "gone").await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::AlreadyFinal(_))), "{refused:?}");
    }
    assert_eq!(
        (scene.till.owed_returns().await?.len(), scene.till.late_declines(LateQuery::default()).await?.late.len()),
        (0, 0)
    );
    let listed = scene.till.sales(crate::SalesQuery::default()).await?.sales;
    assert_eq!(listed[0].given_back, 0, "no money went back");
    assert_eq!(found(&scene).await?.1, []);
    let slip = scene.till.return_slip(made.id, None).await?.text;
    assert!(slip.contains("Never paid, not given back"), "{slip}");
    assert!(slip.lines().any(|line| line.starts_with("GIVEN BACK EUR") && line.ends_with(" 0.00")), "{slip}");
    let entries = scene.till.audit(None, 0, 1_000).await?;
    let [.., returned, lowered] = &entries[..] else { return Err("no entries".into()) };
    assert_eq!((returned.what.as_str(), lowered.what.as_str()), ("goods-returned", "late-decline"));
    assert_eq!((&returned.details["waived"][0]["amount"], &lowered.details["after"]), (&590.into(), &"settled".into()));
    Ok(())
}

#[tokio::test]
async fn a_debt_goes_down_before_anybody_gets_money_back() -> Checked {
    let scene = Scene::new()?;
    let (sale, late_tender_id) = declined_late(&scene, 300).await?;
    let one = scene.till.return_goods(line(&sale, 1, None)).await?;
    assert_eq!((one.total, one.waived, one.legs.len()), (220, 220, 0));
    assert_eq!(standing(&late(&scene).await?), (LateState::Open, 70, 220));
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.waived, now.paid), (70, 220, 300));
    assert_eq!(scene.till.begin_collecting(late_tender_id).await?.due, 70);
    // A croissant costs more than is left of the debt: the rest of it goes to the card that paid.
    let two = scene.till.return_goods(line(&sale, 0, Some("1"))).await?;
    assert_eq!((two.total, two.waived, two.legs.len(), two.legs[0].amount), (185, 70, 1, 115));
    assert_eq!(two.legs[0].tender_id, Some(sale.tenders[0].id));
    assert_eq!(standing(&late(&scene).await?), (LateState::Settled, 0, 290));
    let three = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((three.total, three.waived, three.legs[0].amount), (185, 0, 185));
    for made in [two, three] {
        assert_eq!(settle_legs(&scene, &made, State::Approved).await?.state, ReturnState::Done);
    }
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

#[tokio::test]
async fn what_is_left_of_a_debt_after_goods_came_back_is_collected_or_written_off() -> Checked {
    for in_cash in [true, false] {
        let scene = Scene::new()?;
        let (sale, late_tender_id) = declined_late(&scene, 0).await?;
        scene.till.return_goods(line(&sale, 1, None)).await?;
        if in_cash {
            let tender_id = Uuid::now_v7();
            scene.till.collect_in_cash(CollectInCash { tender_id, late_tender_id, tendered: 400 }).await?;
            assert_eq!(standing(&late(&scene).await?), (LateState::Settled, 370, 220));
            let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
            assert_eq!((made.waived, made.legs[0].kind, made.legs[0].amount), (0, TenderKind::Cash, 370));
        } else {
            let operation = scene.till.collect_again(collect(late_tender_id)).await?;
            assert_eq!(operation.amount, 370);
            scene.settle(&operation, State::Declined).await?;
            scene.till.write_off(late_tender_id, "gone").await?;
            assert_eq!(standing(&late(&scene).await?), (LateState::WrittenOff, 370, 220));
        }
        assert_eq!((scene.till.sale(sale.id).await?.due, found(&scene).await?.1), (0, vec![]));
    }
    Ok(())
}

#[tokio::test]
async fn what_falls_on_a_payment_that_collects_waits_with_it_before_other_cards_give_back() -> Checked {
    for (end, state) in [(State::Approved, LateState::Settled), (State::Declined, LateState::Open)] {
        let scene = Scene::new()?;
        let (sale, late_tender_id) = declined_late(&scene, 300).await?;
        let click = collect(late_tender_id);
        let collecting = scene.till.collect_again(click.clone()).await?;
        let made = scene.till.return_goods(line(&sale, 1, None)).await?;
        assert_eq!((made.waived, made.legs.len(), made.legs[0].tender_id), (0, 1, Some(click.tender_id)));
        assert_eq!(made.legs[0].state, LegState::Settling);
        scene.settle(&collecting, end).await?;
        let now = late(&scene).await?;
        let made = scene.till.return_by_id(made.id).await?;
        if end == State::Approved {
            assert_eq!((standing(&now), made.legs[0].state), ((state, 290, 0), LegState::Settling));
            settle_legs(&scene, &made, State::Approved).await?;
            let rest = scene.till.price_return(sale.id, ReturnedGoods::Whole).await?;
            assert_eq!(rest.cards.iter().map(|card| card.amount).collect::<Vec<_>>(), [300, 70]);
        } else {
            assert_eq!((standing(&now), made.legs[0].state), ((state, 70, 220), LegState::Void));
            let rest = scene.till.price_return(sale.id, ReturnedGoods::Whole).await?;
            assert_eq!((rest.waived, rest.cards[0].amount), (70, 300));
        }
        assert_eq!(found(&scene).await?.1, []);
    }
    Ok(())
}

#[tokio::test]
async fn while_a_payment_that_collects_is_being_cancelled_the_goods_wait_for_the_bank() -> Checked {
    let scene = Scene::new()?;
    let (sale, late_tender_id) = declined_late(&scene, 300).await?;
    let collecting = scene.till.collect_again(collect(late_tender_id)).await?;
    scene.settle(&collecting, State::Unknown).await?;
    assert!(scene.till.cancel(collecting.key).await?.cancel_wished);
    let back = line(&sale, 1, None);
    let refused = scene.till.return_goods(back.clone()).await;
    assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
    scene.settle(&collecting, State::Cancelled).await?;
    assert_eq!(scene.till.return_goods(back).await?.waived, 220);
    Ok(())
}

#[tokio::test]
async fn what_falls_on_a_payment_that_needs_a_look_waits_with_it() -> Checked {
    let scene = Scene::new()?;
    let (sale, card) = offline(&scene, 300).await?;
    scene.settle(&card, State::NeedsAttention).await?;
    let made = scene.till.return_goods(line(&sale, 1, None)).await?;
    assert_eq!((made.waived, made.legs[0].tender_id), (0, Some(sale.tenders[1].id)));
    scene.settle(&card, State::Declined).await?;
    assert_eq!(standing(&late(&scene).await?), (LateState::Open, 70, 220));
    Ok(())
}

#[tokio::test]
async fn while_a_payment_is_being_given_up_its_goods_wait_for_the_bank() -> Checked {
    for (end, waived) in [(State::Cancelled, 220), (State::Declined, 220), (State::Approved, 0)] {
        let scene = Scene::new()?;
        let (sale, card) = offline(&scene, 300).await?;
        scene.settle(&card, State::Unknown).await?;
        let given_up = scene.till.write_off(sale.tenders[1].id, "never came back").await?;
        assert_eq!(given_up.state, LateState::WritingOff);
        let back = line(&sale, 1, None);
        let before = scene.count("SELECT count(*) FROM audit")?;
        for refused in [
            scene.till.return_goods(back.clone()).await.map(drop),
            scene.till.price_return(sale.id, back.goods.clone()).await.map(drop),
        ] {
            assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
        }
        assert_eq!(scene.count("SELECT count(*) FROM audit")?, before);
        scene.settle(&card, end).await?;
        let made = scene.till.return_goods(back).await?;
        let paid = made.legs.iter().map(|leg| (leg.tender_id, leg.amount)).collect::<Vec<_>>();
        let by_card = if waived == 0 { vec![(Some(sale.tenders[0].id), 220)] } else { vec![] };
        assert_eq!((made.waived, paid), (waived, by_card), "{end}");
        assert_eq!(found(&scene).await?.1, []);
    }
    Ok(())
}

/// The loss is in a report that never changes: it stays what it was, and what comes back of it is told beside it.
#[tokio::test]
async fn goods_of_what_was_written_off_come_back_for_nothing_and_the_loss_stays_booked() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 1_000).await?;
    let (sale, late_tender_id) = declined_late(&scene, 300).await?;
    scene.till.write_off(late_tender_id, "gone").await?;
    let one = scene.till.return_goods(line(&sale, 1, None)).await?;
    assert_eq!((one.total, one.waived, one.legs.len()), (220, 220, 0));
    assert_eq!(standing(&late(&scene).await?), (LateState::WrittenOff, 290, 0));
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.waived), (0, 290));
    let rest = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((rest.total, rest.waived, rest.legs[0].amount), (370, 70, 300));
    let x = scene.till.x_report().await?;
    assert_eq!((x.late.written_off.amount, x.late.lost_returned.amount, x.late.lost_returned.count), (290, 290, 2));
    assert_eq!(
        (x.late.returned.count, x.returns.total, x.returns.waived.amount, x.returns.cards.amount),
        (0, 590, 290, 300)
    );
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

#[tokio::test]
async fn debts_go_down_from_the_oldest_on_before_losses_and_then_cash_goes_back() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 1_000).await?;
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    let mut cards = Vec::new();
    for _ in 0..3 {
        cards.push(scene.taken_offline(&sale, 100).await?);
    }
    scene.in_cash(&sale, 290).await?;
    for at in [2, 0, 1] {
        scene.settle(&cards[at], State::Declined).await?;
    }
    let sale = scene.till.sale(sale.id).await?;
    let [first, second, third] = [sale.tenders[0].id, sale.tenders[1].id, sale.tenders[2].id];
    scene.till.write_off(third, "gone").await?;
    let made = scene.till.return_goods(line(&sale, 1, None)).await?;
    assert_eq!((made.waived, made.legs.len()), (220, 0));
    let parts = scene.file()?;
    let mut parts = parts
        .prepare("SELECT tender_id, amount, rest, was_lost FROM return_waived ORDER BY was_lost, rest, tender_id")?;
    let parts = parts.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let parts: Vec<(String, i64, i64, bool)> = parts.collect::<Result<_, _>>()?;
    assert_eq!(
        parts,
        [(first.to_string(), 100, 0, false), (second.to_string(), 100, 0, false), (third.to_string(), 20, 80, true)]
    );
    let rest = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((rest.waived, rest.legs[0].kind, rest.legs[0].amount), (80, TenderKind::Cash, 290));
    let x = scene.till.x_report().await?;
    assert_eq!((x.late.returned.amount, x.late.lost_returned.amount, x.drawer.expected), (200, 100, 1_000));
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

#[tokio::test]
async fn twenty_clicks_lower_it_once_and_a_fault_lowers_nothing() -> Checked {
    let scene = Scene::new()?;
    let (sale, _) = declined_late(&scene, 0).await?;
    let all =
        "SELECT (SELECT count(*) FROM returns) + (SELECT count(*) FROM return_waived) + (SELECT count(*) FROM audit)
        + (SELECT sum(returned) FROM late_declines)";
    let before = scene.count(all)?;
    for place in ["INSERT ON return_waived", "UPDATE ON late_declines", "INSERT ON returns", "INSERT ON audit"] {
        let fault = format!("CREATE TRIGGER fault BEFORE {place} BEGIN SELECT RAISE(ABORT, 'a fault'); END");
        scene.file()?.execute_batch(&fault)?;
        let refused = scene.till.return_goods(line(&sale, 1, None)).await;
        scene.file()?.execute_batch("DROP TRIGGER fault")?;
        assert!(refused.is_err(), "{place}");
        assert_eq!(scene.count(all)?, before, "{place}");
    }
    let click = line(&sale, 1, None);
    let clicks: Vec<_> = (0..20)
        .map(|_| {
            let (till, click) = (scene.till.clone(), click.clone());
            tokio::spawn(async move { till.return_goods(click).await.map(|made| made.receipt_number) })
        })
        .collect();
    let mut numbers = HashSet::new();
    for click in clicks {
        numbers.insert(click.await??);
    }
    assert_eq!((numbers, standing(&late(&scene).await?)), (HashSet::from([2]), (LateState::Open, 370, 220)));
    Ok(())
}

/// Goods that are only said to be back would make a debt go away: the limit of who takes them holds as for money.
#[tokio::test]
async fn a_cashiers_limit_holds_for_what_is_waived() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let limit = Limit { allowed: true, amount_max: Some(300), percent_max: None };
    let right = RoleRight { role: Role::Cashier, right: Right::Refund, limit };
    by_boris(&scene, &boris).await?.set_right(right).await?;
    let (sale, _) = declined_late(&scene, 0).await?;
    let back = new(&sale, ReturnedGoods::Whole);
    assert!(matches!(scene.till.return_goods(back.clone()).await, Err(TillError::NotAllowed(_))));
    assert_eq!(by_boris(&scene, &boris).await?.return_goods(back).await?.waived, 590);
    Ok(())
}

#[tokio::test]
async fn the_database_waives_only_what_nobody_paid_and_pays_no_debtor() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene, 300).await?;
    let (other, other_late) = declined_late(&scene, 0).await?;
    let file = scene.file()?;
    let id = "00000000-0000-4000-8000-000000000001";
    let (line, paid) = (sale.lines[1].id, sale.tenders[0].id);
    let waive = |late: Uuid, amount: i64, rest: i64, was_lost: i64| {
        format!("INSERT INTO return_waived VALUES ('{id}', '{late}', {amount}, {rest}, {was_lost});")
    };
    // An espresso, in parts that would be right with 2.20 waived.
    let goods = format!(
        "INSERT INTO return_lines VALUES ('{id}', {line}, 1000, 220); INSERT INTO return_taxes VALUES ('{id}', 19000, 185, 35);
         UPDATE counters SET last = last + 1 WHERE name = 'receipt';"
    );
    let refund = |amount: i64| {
        format!(
            "INSERT INTO refunds (id, tender_id, state, amount, return_id, created_at, updated_at)
             VALUES ('00000000-0000-4000-8000-000000000002', '{paid}', 'settling', {amount}, '{id}', 1, 1);"
        )
    };
    let returned = format!("INSERT INTO returns VALUES ('{id}', '{}', 3, 185, 35, 0, 220, NULL, 1, 0);", sale.id);
    for (parts, reason) in [
        (waive(late, 220, 71, 0), "only what is owed or lost"),
        (waive(late, 291, 0, 0), "only what is owed or lost"),
        (waive(late, 220, 70, 1), "only what is owed or lost"),
        (waive(paid, 220, 70, 0), "only what is owed or lost"),
        (waive(late, 219, 71, 0), "is whole"),
        (waive(other_late, 220, 370, 0), "of one completed sale"),
        (refund(220), "no money goes back while something of the sale was never paid"),
        (waive(late, 219, 71, 0) + &refund(1), "no money goes back while something of the sale was never paid"),
    ] {
        file.execute_batch("BEGIN")?;
        let all = format!("{goods} {parts} {returned}");
        let refused = file.execute_batch(&all).expect_err(&parts).to_string();
        file.execute_batch("ROLLBACK")?;
        assert!(refused.contains(reason), "{parts}: {refused}");
    }
    // Waived without a return is no commit, and what is owed goes down by a return alone.
    file.execute_batch(&format!("BEGIN; {}", waive(late, 220, 70, 0)))?;
    let lower = format!("UPDATE late_declines SET amount = 70, returned = 220 WHERE tender_id = '{late}'");
    refuses(&file, &lower, "once");
    assert!(file.execute_batch("COMMIT").is_err_and(|error| error.to_string().contains("FOREIGN KEY")));
    file.execute_batch("ROLLBACK")?;
    refuses(&file, &lower, "once");
    file.execute_batch(&format!("BEGIN; {goods} {} {returned} COMMIT", waive(late, 220, 70, 0)))?;
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.waived), (70, 220));
    for (change, reason) in [
        // Not a second time by the same return, nor to another end.
        (format!("UPDATE late_declines SET amount = 0, returned = 290 WHERE tender_id = '{late}'"), "once"),
        (
            format!("UPDATE late_declines SET amount = 0, returned = 290, state = 'settled', ended_at = 1, ended_shift = 0 WHERE tender_id = '{late}'"),
            "once",
        ),
        (
            format!(
                "UPDATE late_declines SET state = 'written_off', amount = 60, returned = 230, reason = 'x', written_off_by = 'x', ended_at = 1,
                     ended_shift = 0 WHERE tender_id = '{late}'"
            ),
            "once",
        ),
        ("UPDATE return_waived SET rest = 0".to_owned(), "never changes"),
        ("DELETE FROM return_waived".to_owned(), "never changes"),
        (waive(late, 70, 0, 0), "only what is owed or lost"),
    ] {
        refuses(&file, &change, reason);
    }
    assert_eq!(other.due, 590);
    Ok(())
}

#[tokio::test]
async fn the_database_ties_cash_that_is_given_back_to_the_drawer() -> Checked {
    let scene = Scene::new()?;
    let early = scene.sale().await?;
    let early = scene.in_cash(&early, 1_000).await?.sale;
    let from_no_drawer = scene.till.return_goods(line(&early, 1, None)).await?.legs[0].id;
    scene.till.new_sale().await?;
    opened(&scene, 1_000).await?;
    moved(&scene, DrawerOpening::In(1_000), "change").await?;
    let sale = scene.sale().await?;
    let sale = scene.in_cash(&sale, 1_000).await?.sale;
    let file = scene.file()?;
    let (id, cash) = ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002");
    let give =
        |amount: i64| format!("INSERT INTO cash_refunds VALUES ('{cash}', '{id}', NULL, {amount}, 0, 1, 1, NULL);");
    let take = |amount: i64, kind: &str| {
        format!(
            "INSERT INTO drawer_moves (id, shift, kind, amount, reason, who, at) VALUES ('{cash}', 1, '{kind}', {amount}, 'refund', 'x', 1);"
        )
    };
    for parts in [
        give(220),
        give(220) + &take(220, "refund"),
        take(219, "refund") + &give(220),
        take(220, "out") + &give(220),
        take(220, "refund") + &give(0),
        // What was given back before there were drawers left none, and leaves none later.
        take(220, "refund").replace(cash, &from_no_drawer.to_string()),
    ] {
        file.execute_batch("BEGIN")?;
        let refused = file.execute_batch(&parts).expect_err(&parts).to_string();
        file.execute_batch("ROLLBACK")?;
        assert!(refused.contains("leaves the drawer of the open shift"), "{parts}: {refused}");
    }
    // What leaves the drawer as given back, and is given back to nobody, is no commit.
    file.execute_batch(&format!("BEGIN; {}", take(220, "refund")))?;
    assert!(file.execute_batch("COMMIT").is_err_and(|error| error.to_string().contains("FOREIGN KEY")));
    file.execute_batch("ROLLBACK")?;
    scene.till.return_goods(line(&sale, 1, None)).await?;
    assert_eq!(scene.till.x_report().await?.drawer.expected, 1_000 + 1_000 + 590 - 220);
    Ok(())
}
