//! Goods that come back: in whatever parts, what was paid goes back the way it came, to the cent, and each of it once.

use super::{Checked, Scene, frozen::refuses};
use crate::{
    Goods, LegState, NewReturn, PricedReturn, Refund, Return, ReturnState, ReturnedGoods, Sale, Settings, State,
    TenderKind, TillError, Total,
};
use checkout::{CashRounding, CashRule};
use jiff::{SignedDuration, Timestamp};
use protocol::{Amount, Currency};
use std::collections::HashSet;
use uuid::Uuid;

pub(super) fn new(sale: &Sale, goods: ReturnedGoods) -> NewReturn {
    NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods, reason: None }
}

fn lines(goods: &[(&Sale, usize, Option<&str>)]) -> ReturnedGoods {
    let goods = goods
        .iter()
        .map(|(sale, at, quantity)| Goods { line_id: sale.lines[*at].id, quantity: quantity.map(str::to_owned) });
    ReturnedGoods::Lines(goods.collect())
}

async fn paid_by_card(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 590).await?, State::Approved).await?;
    Ok(scene.till.sale(sale.id).await?)
}

async fn paid_in_cash(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    Ok(scene.in_cash(&sale, 1_000).await?.sale)
}

/// The bank's word for every leg of a return that is open.
pub(super) async fn settle_legs(scene: &Scene, made: &Return, state: State) -> Checked<Return> {
    for leg in made.legs.iter().filter(|leg| leg.state == LegState::Settling) {
        scene.settle(leg.operation.as_ref().ok_or("no operation")?, state).await?;
    }
    Ok(scene.till.return_by_id(made.id).await?)
}

#[tokio::test]
async fn a_whole_sale_goes_back_to_its_card_with_a_number_of_its_own() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let begun = scene.till.begin_return_of_receipt(1).await?;
    assert_eq!((begun.sale.id, begun.lines[0].left.as_str(), begun.returns.len()), (sale.id, "2", 0));
    let new = NewReturn {
        id: begun.return_id,
        sale_id: sale.id,
        goods: ReturnedGoods::Whole,
        reason: Some(" stale ".into()),
    };
    let made = scene.till.return_goods(new.clone()).await?;
    assert_eq!((made.receipt_number, made.sale_receipt_number, made.total, made.rounding), (2, Some(1), 590, 0));
    assert_eq!((made.net, made.tax, made.reason.as_deref()), (531, 59, Some("stale")));
    assert_eq!((made.state, made.legs.len(), made.legs[0].amount), (ReturnState::Settling, 1, 590));
    let operation = made.legs[0].operation.clone().ok_or("no operation")?;
    assert_ne!(Some(operation.key), sale.tenders[0].operation.as_ref().map(|operation| operation.key));
    let done = settle_legs(&scene, &made, State::Approved).await?;
    assert_eq!((done.state, done.legs[0].state), (ReturnState::Done, LegState::Approved));
    // It stays what it is, however late a click comes; and there is nothing left.
    assert_eq!(scene.till.return_goods(new.clone()).await?, done);
    let other = NewReturn { goods: lines(&[(&sale, 0, Some("1"))]), ..new };
    assert!(matches!(scene.till.return_goods(other).await, Err(TillError::IntentReused(_))));
    let again = scene.till.return_goods(self::new(&sale, ReturnedGoods::Whole)).await;
    assert!(matches!(again, Err(TillError::InvalidReturn(_))), "{again:?}");
    assert_eq!(scene.till.returns(sale.id).await?, [done]);
    // The next sale takes the next number.
    assert_eq!(paid_by_card(&scene).await?.receipt_number, Some(3));
    assert!(matches!(scene.till.begin_return_of_receipt(2).await, Err(TillError::NotFound(_))));
    Ok(())
}

#[tokio::test]
async fn lines_and_quantities_come_back_in_parts_and_never_more_than_is_left() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let one = scene.till.return_goods(new(&sale, lines(&[(&sale, 0, Some("1"))]))).await?;
    assert_eq!(
        (one.total, one.lines[0].quantity.as_str(), one.lines[0].name.as_str()),
        (185, "1", &*sale.lines[0].name)
    );
    let left = scene.till.begin_return(sale.id).await?;
    assert_eq!(left.lines.iter().map(|line| line.left.as_str()).collect::<Vec<_>>(), ["1", "1"]);
    for (goods, code) in [
        (lines(&[(&sale, 0, Some("2"))]), "invalid-return"),
        (lines(&[(&sale, 0, Some("1")), (&sale, 0, Some("1"))]), "invalid-return"),
        (lines(&[(&sale, 0, Some("0.5"))]), "invalid-quantity"),
        (lines(&[(&sale, 0, Some("0"))]), "invalid-quantity"),
        (lines(&[(&sale, 0, Some("-1"))]), "invalid-quantity"),
        (lines(&[]), "invalid-return"),
        (ReturnedGoods::Lines(vec![Goods { line_id: 99, quantity: None }]), "not-found"),
    ] {
        let refused = scene.till.return_goods(new(&sale, goods.clone())).await.err().ok_or("it was taken")?;
        assert_eq!(refused.code(), code, "{goods:?}: {refused}");
    }
    let price = scene.till.price_return(sale.id, lines(&[(&sale, 0, None), (&sale, 1, None)])).await?;
    assert_eq!((price.total, price.is_last, price.cards[0].amount, price.cash), (405, true, 405, 0));
    let rest = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((rest.total, one.net + rest.net, one.tax + rest.tax), (405, 531, 59));
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 3);
    Ok(())
}

#[tokio::test]
async fn a_click_for_the_whole_is_the_same_only_as_one_that_took_all_that_was_left() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let one = new(&sale, lines(&[(&sale, 0, Some("1"))]));
    scene.till.return_goods(one.clone()).await?;
    let whole = |of: &NewReturn| NewReturn { goods: ReturnedGoods::Whole, ..of.clone() };
    let other = scene.till.return_goods(whole(&one)).await;
    assert!(matches!(other, Err(TillError::IntentReused(_))), "{other:?}");
    // What was asked for line by line and was all of it is the same as the whole.
    let rest = new(&sale, lines(&[(&sale, 0, None), (&sale, 1, None)]));
    let made = scene.till.return_goods(rest.clone()).await?;
    assert_eq!(scene.till.return_goods(whole(&rest)).await?, made);
    // One of two was meant, and not all that there was of them.
    let Some(line_id) = sale.lines.first().map(|line| line.id) else { return Err("no line".into()) };
    let rest_of_line = ReturnedGoods::Lines(vec![Goods { line_id, quantity: None }]);
    let other = scene.till.return_goods(NewReturn { goods: rest_of_line, ..one.clone() }).await;
    assert!(matches!(other, Err(TillError::IntentReused(_))), "{other:?}");
    let counted = lines(&[(&sale, 0, Some("1")), (&sale, 1, None)]);
    assert_eq!(scene.till.return_goods(NewReturn { goods: counted, ..rest.clone() }).await?, made);
    // The first is no more the whole for what came after it.
    assert!(matches!(scene.till.return_goods(whole(&one)).await, Err(TillError::IntentReused(_))));
    Ok(())
}

#[tokio::test]
async fn twenty_clicks_make_one_return() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let click = new(&sale, lines(&[(&sale, 0, Some("1"))]));
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
    assert_eq!((numbers, scene.count("SELECT count(*) FROM returns")?), (HashSet::from([2]), 1));
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 2);
    Ok(())
}

#[tokio::test]
async fn a_return_is_saved_whole_or_not_at_all() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let left = "SELECT (SELECT count(*) FROM returns) + (SELECT count(*) FROM return_lines) + (SELECT count(*) FROM return_taxes)
        + (SELECT count(*) FROM refunds) + (SELECT count(*) FROM operations) + (SELECT last FROM counters WHERE name = 'receipt')
        + (SELECT count(*) FROM audit)";
    let before = scene.count(left)?;
    for place in [
        "INSERT ON return_lines",
        "INSERT ON return_taxes",
        "INSERT ON operations",
        "INSERT ON refunds",
        "UPDATE ON counters",
        "INSERT ON returns",
        "INSERT ON audit",
    ] {
        let fault = format!("CREATE TRIGGER fault BEFORE {place} BEGIN SELECT RAISE(ABORT, 'a fault'); END");
        scene.file()?.execute_batch(&fault)?;
        let refused = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await;
        scene.file()?.execute_batch("DROP TRIGGER fault")?;
        assert!(refused.is_err(), "{place}");
        assert_eq!(scene.count(left)?, before, "{place}");
    }
    scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    Ok(())
}

#[tokio::test]
async fn cards_come_first_in_the_order_in_which_they_paid_and_then_cash_rounded_anew() -> Checked {
    let scene = Scene::new()?;
    let five = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash: five, ..Settings::default() }).await?;
    // 1.50 + 1.49 + 1.99 = 4.98, of which 2.97 are left for cash: 2.95.
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    scene.till.add_article("DAI-401", None).await?;
    let sale = scene.till.add_article("DAI-402", None).await?;
    let (first, second) = (scene.by_card(&sale, 101).await?, scene.by_card(&sale, 100).await?);
    let taken = scene.in_cash(&sale, 1_000).await?;
    assert_eq!((taken.drawer, taken.rounding), (295, -2));
    scene.settle(&second, State::Approved).await?;
    scene.settle(&first, State::Approved).await?;
    let amounts = |price: &PricedReturn| {
        (price.cards.iter().map(|card| card.amount).collect::<Vec<_>>(), price.cash, price.rounding)
    };
    let part = lines(&[(&sale, 0, None)]);
    assert_eq!(amounts(&scene.till.price_return(sale.id, part.clone()).await?), (vec![101, 49], 0, 0));
    scene.till.return_goods(new(&sale, part)).await?;
    // 51 are left on the second card, 0.98 go in cash: 1.00.
    let part = lines(&[(&sale, 1, None)]);
    assert_eq!(amounts(&scene.till.price_return(sale.id, part.clone()).await?), (vec![51], 100, 2));
    scene.till.return_goods(new(&sale, part)).await?;
    // And what is left of the 2.95 that were taken.
    assert_eq!(amounts(&scene.till.price_return(sale.id, ReturnedGoods::Whole).await?), (vec![], 195, -4));
    let last = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((last.total, last.rounding, last.legs[0].amount, last.state), (199, -4, 195, ReturnState::Done));
    Ok(())
}

#[tokio::test]
async fn it_waits_for_its_payment_and_is_nothing_where_that_does_not_pay() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let open = scene.by_card(&sale, 590).await?;
    let refused = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await;
    assert!(matches!(refused, Err(TillError::SaleChanged(_))), "a sale that is not paid: {refused:?}");
    let tender_id = scene.till.sale(sale.id).await?.tenders[0].id;
    scene.till.take_offline(crate::TakeOffline { tender_id, contact: None, over_limit: false }).await?;
    let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    let leg = made.legs[0].operation.clone().ok_or("no operation")?;
    assert_eq!((leg.state, made.legs[0].state), (State::Saved, LegState::Settling));
    scene.settle(&open, State::Declined).await?;
    let made = scene.till.return_by_id(made.id).await?;
    assert_eq!((made.legs[0].state, made.state), (LegState::Void, ReturnState::Done));
    assert_eq!(scene.till.owed_returns().await?, []);
    for refused in [
        scene.till.refund_again(made.legs[0].id, Uuid::now_v7()).await.map(drop),
        scene.till.refund_in_cash(made.legs[0].id, Uuid::now_v7()).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::NotRefundable(_))), "{refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_leg_that_the_bank_refuses_is_tried_again_or_paid_out_and_only_one_of_both() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let made = scene.till.return_goods(new(&sale, lines(&[(&sale, 0, None)]))).await?;
    let leg = made.legs[0].id;
    for refused in [
        scene.till.refund_again(leg, Uuid::now_v7()).await.map(drop),
        scene.till.refund_in_cash(leg, Uuid::now_v7()).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
    }
    let made = settle_legs(&scene, &made, State::Declined).await?;
    assert_eq!((made.state, made.legs[0].state), (ReturnState::Owed, LegState::Owed));
    assert_eq!(scene.till.owed_returns().await?, std::slice::from_ref(&made), "told, so that nobody is forgotten");
    // What is owed is nobody else's: the rest of the sale is all that can come back beside it.
    assert_eq!(scene.till.price_return(sale.id, ReturnedGoods::Whole).await?.cards[0].amount, 220);
    let payment = sale.tenders[0].operation.as_ref().ok_or("no operation")?.key;
    let money = Refund { intent_id: Uuid::now_v7(), payment, amount: Amount::new(221)? };
    let refused = scene.till.refund(money).await;
    assert!(matches!(refused, Err(TillError::OverRefund { amount: 221, left: 220, .. })), "{refused:?}");

    let second = Uuid::now_v7();
    let again = scene.till.refund_again(leg, second).await?;
    assert_eq!(scene.till.refund_again(leg, second).await?.key, again.key);
    assert_ne!(Some(again.key), made.legs[0].operation.as_ref().map(|operation| operation.key));
    for refused in [
        scene.till.refund_again(leg, Uuid::now_v7()).await.map(drop),
        scene.till.refund_in_cash(leg, Uuid::now_v7()).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::AlreadyFinal(_))), "{refused:?}");
    }
    assert_eq!(scene.till.owed_returns().await?, []);
    scene.settle(&again, State::Cancelled).await?;
    assert_eq!(scene.till.owed_returns().await?.len(), 1);
    let cash = Uuid::now_v7();
    let paid_out = scene.till.refund_in_cash(second, cash).await?;
    assert_eq!(scene.till.refund_in_cash(second, cash).await?, paid_out);
    let done = scene.till.return_by_id(made.id).await?;
    let legs: Vec<_> = done.legs.iter().map(|leg| (leg.kind, leg.state, leg.amount, leg.replaces)).collect();
    assert_eq!(
        legs,
        [
            (TenderKind::Card, LegState::Replaced, 370, None),
            (TenderKind::Card, LegState::Replaced, 370, Some(leg)),
            (TenderKind::Cash, LegState::HandedOver, 370, Some(second)),
        ]
    );
    assert_eq!((done.state, done.total), (ReturnState::Done, 370));
    assert_eq!((done.legs.last(), paid_out.sale_id), (Some(&paid_out.leg), sale.id));
    assert_eq!(scene.till.owed_returns().await?, []);
    assert!(matches!(scene.till.refund_in_cash(leg, cash).await, Err(TillError::IntentReused(_))));
    assert!(matches!(scene.till.refund_again(second, Uuid::now_v7()).await, Err(TillError::AlreadyFinal(_))));
    // The card's money for it was paid out, and is not there a second time.
    assert_eq!(scene.till.price_return(sale.id, ReturnedGoods::Whole).await?.cards[0].amount, 220);
    Ok(())
}

#[tokio::test]
async fn a_period_says_what_came_back_in_it() -> Checked {
    let scene = Scene::new()?;
    let from = Timestamp::now();
    let (card, cash) = (paid_by_card(&scene).await?, paid_in_cash(&scene).await?);
    scene.till.return_goods(new(&card, ReturnedGoods::Whole)).await?;
    scene.till.return_goods(new(&cash, lines(&[(&cash, 0, Some("1"))]))).await?;
    let before = Timestamp::now() + SignedDuration::from_secs(1);
    let figures = scene.till.return_figures(Currency::EUR, from, before).await?;
    assert_eq!((figures.returns, figures.total, figures.net + figures.tax), (2, 775, 775));
    assert_eq!(
        (figures.cash, figures.cards, figures.rounding),
        (Total { count: 1, amount: 185 }, Total { count: 1, amount: 590 }, 0)
    );
    assert_eq!(figures.taxes.iter().map(|tax| tax.rate.as_str()).collect::<Vec<_>>(), ["7", "19"]);
    assert_eq!(scene.till.return_figures(Currency::EUR, before, before).await?.returns, 0);
    Ok(())
}

/// In a file with very many of them: no return reads them all, neither in a query nor in a trigger.
#[tokio::test]
async fn no_return_reads_the_cash_refunds_of_others() -> Checked {
    let scene = Scene::new()?;
    paid_in_cash(&scene).await?;
    let file = scene.file()?;
    let explained = |sql: &str| -> rusqlite::Result<Vec<String>> {
        file.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?.query_map([], |row| row.get(3))?.collect()
    };
    let insert = explained("INSERT INTO returns SELECT id, id, 9, 1, 0, 0, 1, NULL, 0, 0 FROM sales")?;
    let look = explained(&crate::returns::legs::CASH_BACK.replace("?1", "''"))?;
    let waived: Vec<_> = insert.iter().filter(|step| step.contains("return_waived")).collect();
    assert!(!waived.is_empty() && waived.iter().all(|read| read.starts_with("SEARCH")), "{insert:#?}");
    let owed = explained(&crate::refunds::owed_sql("return_id").replace("?1", "1"))?;
    assert!(owed.iter().any(|step| step.contains("refunds_not_given")), "{owed:#?}");
    for plan in [insert, look] {
        let reads: Vec<_> = plan.iter().filter(|step| step.contains("cash_refunds")).collect();
        assert!(!reads.is_empty(), "{plan:#?}");
        for read in reads {
            assert!(read.contains("cash_refunds_by_return (return_id=?)"), "{read}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_database_takes_no_return_that_is_more_or_other_than_was_paid() -> Checked {
    let scene = Scene::new()?;
    let (sale, other) = (paid_in_cash(&scene).await?, paid_in_cash(&scene).await?);
    let file = scene.file()?;
    let id = "00000000-0000-4000-8000-000000000001";
    let (line, other_line) = (sale.lines[1].id, other.lines[1].id);
    // An espresso, in parts that would be right.
    let parts = |line: i64, quantity: i64, amount: i64, net: i64, cash: i64, rounding: i64| {
        format!(
            "INSERT INTO return_lines VALUES ('{id}', {line}, {quantity}, {amount});
             INSERT INTO return_taxes VALUES ('{id}', 19000, {net}, 35);
             INSERT INTO cash_refunds VALUES ('00000000-0000-4000-8000-000000000002', '{id}', NULL, {cash}, {rounding}, 1, 0, NULL);
             UPDATE counters SET last = last + 1 WHERE name = 'receipt';"
        )
    };
    let returned = |sale: &Sale, number: i64, net: i64, tip: i64| {
        format!(
            "INSERT INTO returns VALUES ('{id}', '{}', {number}, {net}, 35, {tip}, {}, NULL, 1, 0)",
            sale.id,
            net + 35 + tip
        )
    };
    let right = parts(line, 1_000, 220, 185, 220, 0);
    let other_taxes = right.replace("185, 35", "186, 34");
    for (before, last, reason) in [
        (&right, returned(&other, 3, 185, 0), "of one completed sale"),
        (&parts(other_line, 1_000, 220, 185, 220, 0), returned(&sale, 3, 185, 0), "of one completed sale"),
        (&right, returned(&sale, 4, 185, 0), "takes the next number"),
        (&right, returned(&sale, 2, 185, 0), "takes the next number"),
        (&right, returned(&sale, 3, 184, 0), "is whole"),
        (&right, returned(&sale, 3, 185, 1), "is whole"),
        (&parts(line, 1_000, 219, 185, 220, 0), returned(&sale, 3, 185, 0), "is whole"),
        (&parts(line, 1_000, 220, 185, 219, 0), returned(&sale, 3, 185, 0), "is whole"),
        (&parts(line, 1_000, 220, 185, 221, 1), returned(&sale, 3, 185, 0), "never more is given back"),
        (&other_taxes, returned(&sale, 3, 185, 0).replace("185, 35", "186, 34"), "never more is given back"),
        (&parts(line, 2_000, 220, 185, 220, 0), returned(&sale, 3, 185, 0), "no more of a line comes back"),
        (&parts(line, 500, 220, 185, 220, 0), returned(&sale, 3, 185, 0), "no more of a line comes back"),
        (&parts(line, 1_000, 221, 185, 220, 0), returned(&sale, 3, 185, 0), "no more of a line comes back"),
    ] {
        file.execute_batch("BEGIN")?;
        let refused = file.execute_batch(before).and_then(|()| file.execute_batch(&last)).expect_err(&last).to_string();
        file.execute_batch("ROLLBACK")?;
        assert!(refused.contains(reason), "{before} {last}: {refused}");
    }
    // Parts without a return are no commit.
    file.execute_batch(&format!("BEGIN; {right}"))?;
    assert!(file.execute_batch("COMMIT").is_err_and(|error| error.to_string().contains("FOREIGN KEY")));
    file.execute_batch("ROLLBACK")?;
    file.execute_batch(&format!("BEGIN; {right} {}; COMMIT", returned(&sale, 3, 185, 0)))?;
    for change in [
        "UPDATE returns SET reason = 'x'",
        "DELETE FROM returns",
        "UPDATE return_lines SET amount = 0",
        "DELETE FROM return_lines",
        "UPDATE return_taxes SET tax = 0",
        "DELETE FROM return_taxes",
        "UPDATE cash_refunds SET amount = 0",
        "DELETE FROM cash_refunds",
    ] {
        refuses(&file, change, "never changes");
    }
    refuses(&file, &format!("INSERT INTO return_taxes VALUES ('{id}', 7000, 0, 0)"), "never changes");
    let more = format!("INSERT INTO return_lines VALUES ('{id}', {}, 1000, 185)", sale.lines[0].id);
    refuses(&file, &more, "no more of a line comes back");
    let cash = format!(
        "INSERT INTO cash_refunds VALUES ('00000000-0000-4000-8000-000000000003', '{id}', NULL, 0, 0, 1, 0, NULL)"
    );
    refuses(&file, &cash, "a leg is paid out in cash once");
    Ok(())
}

#[tokio::test]
async fn the_database_gives_a_cards_money_back_once() -> Checked {
    let scene = Scene::new()?;
    let sale = paid_by_card(&scene).await?;
    let made = scene.till.return_goods(new(&sale, lines(&[(&sale, 0, None)]))).await?;
    let file = scene.file()?;
    let (leg, tender, id) = (made.legs[0].id, sale.tenders[0].id, "00000000-0000-4000-8000-000000000001");
    let refund = |amount: i64, return_id: &str, replaces: &str| {
        format!(
            "INSERT INTO refunds (id, tender_id, state, amount, return_id, replaces, created_at, updated_at)
             VALUES ('{id}', '{tender}', 'settling', {amount}, {return_id}, {replaces}, 1, 1)"
        )
    };
    let cash = |amount: i64| {
        format!("INSERT INTO cash_refunds VALUES ('{id}', '{}', '{leg}', {amount}, 0, 1, 0, NULL)", made.id)
    };
    let (return_id, replaces) = (format!("'{}'", made.id), format!("'{leg}'"));
    refuses(&file, &refund(370, &return_id, &replaces), "tried again once");
    refuses(&file, &cash(370), "paid out in cash once");
    settle_legs(&scene, &made, State::Declined).await?;
    for (change, reason) in [
        (refund(221, "NULL", "NULL"), "never over what is left"),
        (refund(220, &return_id, "NULL"), "tried again once"),
        (refund(369, &return_id, &replaces), "tried again once"),
        (refund(370, "NULL", &replaces), "tried again once"),
        (cash(369), "paid out in cash once"),
        ("UPDATE refunds SET return_id = NULL".to_owned(), "never changes but for its state"),
    ] {
        refuses(&file, &change, reason);
    }
    scene.till.refund_in_cash(leg, Uuid::now_v7()).await?;
    refuses(&file, &refund(370, &return_id, &replaces), "never after it was paid out");
    refuses(&file, &cash(370), "UNIQUE constraint failed");
    Ok(())
}
