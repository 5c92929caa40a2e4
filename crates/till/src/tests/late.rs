//! What was taken offline and then did not pay: seen, collected again or written off, and each of it once.

use super::{Checked, Scene, frozen::refuses, shifts::opened};
use crate::{
    CollectAgain, CollectInCash, Count, Event, Goods, LateQuery, LateState, LateTotal, NewReturn, Place, ReturnState,
    ReturnedGoods, Sale, SaleState, Settings, State, TillError, settling::Teller,
};
use checkout::{CashRounding, CashRule};
use jiff::Timestamp;
use protocol::Currency;
use std::collections::HashSet;
use uuid::Uuid;

/// A sale of 5.90 whose card was taken offline and then declined.
async fn declined_late(scene: &Scene) -> Checked<(Sale, Uuid)> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    scene.settle(&card, State::Declined).await?;
    let sale = scene.till.sale(sale.id).await?;
    let tender_id = sale.tenders[0].id;
    Ok((sale, tender_id))
}

fn collect(late_tender_id: Uuid) -> CollectAgain {
    CollectAgain { tender_id: Uuid::now_v7(), late_tender_id, card: "tok_visa".into() }
}

async fn states(scene: &Scene) -> Checked<Vec<LateState>> {
    let query = LateQuery { with_ended: true, ..LateQuery::default() };
    Ok(scene.till.late_declines(query).await?.late.iter().map(|late| late.state).collect())
}

#[tokio::test]
async fn it_is_listed_and_told_and_the_sale_stays_completed_with_what_is_owed() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    let from = scene.till.last_change().await?;
    scene.settle(&card, State::Declined).await?;
    let mut events = scene.till.subscribe();
    Teller { till: scene.till.clone(), place: Place::at(from), alarms_from: 0 }.catch_up().await;
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let told: Vec<_> =
        told.filter_map(|event| if let Event::LateDecline(late) = event { Some(late) } else { None }).collect();
    let listed = scene.till.late_declines(LateQuery::default()).await?;
    assert_eq!((told.len(), listed.late.len(), listed.more), (1, 1, false));
    let late = &listed.late[0];
    assert_eq!(*told[0], *late);
    assert_eq!((late.state, late.amount, late.sale_id, late.receipt_number), (LateState::Open, 590, sale.id, Some(1)));
    assert_eq!((late.operation.key, late.declined_at.is_some()), (card.key, true));
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.state, now.due, now.paid, now.waived), (SaleState::Completed, 590, 0, 0));
    assert!(matches!(scene.till.begin_tender(sale.id).await, Err(TillError::SaleChanged(_))));
    Ok(())
}

#[tokio::test]
async fn the_list_is_read_page_by_page_and_what_has_ended_only_where_it_is_asked_for() -> Checked {
    let scene = Scene::new()?;
    for _ in 0..5 {
        declined_late(&scene).await?;
    }
    let first = scene.till.late_declines(LateQuery { limit: Some(2), ..LateQuery::default() }).await?;
    assert_eq!((first.late.len(), first.more), (2, true));
    let before = first.late.last().map(|late| late.seq);
    let rest = scene.till.late_declines(LateQuery { before, ..LateQuery::default() }).await?;
    let numbers: Vec<_> = first.late.iter().chain(&rest.late).map(|late| late.sale_number).collect();
    assert_eq!((numbers, rest.more), (vec![Some(5), Some(4), Some(3), Some(2), Some(1)], false));
    scene.till.write_off(first.late[0].tender_id, "never came back").await?;
    assert_eq!(scene.till.late_declines(LateQuery::default()).await?.late.len(), 4);
    assert_eq!(states(&scene).await?.len(), 5);
    Ok(())
}

#[tokio::test]
async fn twenty_clicks_and_twenty_dialogs_collect_it_once() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene).await?;
    let click = collect(late);
    let mut clicks = Vec::new();
    for at in 0..40 {
        let click = if at % 2 == 0 { click.clone() } else { collect(late) };
        let till = scene.till.clone();
        clicks.push(tokio::spawn(async move { till.collect_again(click).await }));
    }
    let (mut keys, mut refused) = (HashSet::new(), 0);
    for click in clicks {
        match click.await? {
            Ok(operation) => drop(keys.insert(operation.key)),
            Err(TillError::SaleFrozen(_)) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    assert_eq!((keys.len(), refused), (1, 20), "of twenty clicks on one dialog, and twenty dialogs");
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 2);
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.tenders[1].replaces, states(&scene).await?), (0, Some(late), vec![LateState::Collecting]));
    assert!(matches!(scene.till.write_off(late, "too soon").await, Err(TillError::SaleFrozen(_))));
    Ok(())
}

#[tokio::test]
async fn it_is_collected_until_a_card_pays_and_then_never_again() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene).await?;
    let mut click = collect(late);
    for end in [State::Declined, State::Cancelled, State::Approved] {
        click = collect(late);
        let operation = scene.till.collect_again(click.clone()).await?;
        assert_eq!((operation.amount, operation.sale_id, operation.receipt_number), (590, sale.id, Some(1)));
        scene.settle(&operation, State::NeedsAttention).await?;
        assert_eq!(states(&scene).await?, [LateState::Collecting]);
        scene.settle(&operation, end).await?;
    }
    assert_eq!(states(&scene).await?, [LateState::Settled]);
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.paid, now.receipt_number), (0, 590, Some(1)));
    // The last click finds its own, another dialog finds nothing to collect.
    assert_eq!(scene.till.collect_again(click.clone()).await?.state, State::Approved);
    assert!(matches!(scene.till.collect_again(collect(late)).await, Err(TillError::AlreadyFinal(_))));
    assert!(matches!(scene.till.write_off(late, "paid").await, Err(TillError::AlreadyFinal(_))));
    let (other_sale, other) = declined_late(&scene).await?;
    let reused = scene.till.collect_again(CollectAgain { late_tender_id: other, ..click }).await;
    assert!(matches!(reused, Err(TillError::IntentReused(_))), "{reused:?}");
    assert_eq!(other_sale.due, 590);
    Ok(())
}

#[tokio::test]
async fn it_is_written_off_for_a_reason_and_nothing_is_owed_then() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene).await?;
    assert!(matches!(scene.till.write_off(late, "  ").await, Err(TillError::InvalidReason(_))));
    let written_off = scene.till.write_off(late, "the customer is gone").await?;
    assert_eq!((written_off.state, written_off.written_off_by.as_deref()), (LateState::WrittenOff, Some("cashier")));
    assert_eq!(scene.till.write_off(late, "again").await?, written_off);
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.waived, now.paid), (0, 590, 0));
    assert!(matches!(scene.till.collect_again(collect(late)).await, Err(TillError::AlreadyFinal(_))));
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE details ->> 'reason' = 'the customer is gone'")?, 1);
    assert!(matches!(scene.till.write_off(Uuid::now_v7(), "x").await, Err(TillError::NotFound(_))));
    Ok(())
}

#[tokio::test]
async fn given_up_before_the_banks_word_it_is_a_loss_only_once_that_says_so() -> Checked {
    for (before, end, after) in [
        (State::Saved, State::Cancelled, LateState::WrittenOff),
        (State::Unknown, State::Cancelled, LateState::WrittenOff),
        (State::Unknown, State::Declined, LateState::WrittenOff),
        (State::Unknown, State::Approved, LateState::Settled),
        (State::NeedsAttention, State::Cancelled, LateState::WrittenOff),
        (State::NeedsAttention, State::Approved, LateState::Settled),
    ] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.taken_offline(&sale, 590).await?;
        let late = scene.till.sale(sale.id).await?.tenders[0].id;
        assert!(matches!(scene.till.cancel(card.key).await, Err(TillError::AcceptedOffline(_))));
        if before != State::Saved {
            scene.settle(&card, before).await?;
        }
        if before == State::NeedsAttention {
            assert_eq!(states(&scene).await?, [LateState::Attention]);
            let refused = scene.till.collect_again(collect(late)).await;
            assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
        }
        let given_up = scene.till.write_off(late, "lost").await?;
        if before == State::Saved {
            // Never sent: it ends here and now.
            assert_eq!((given_up.state, given_up.operation.state), (after, end));
        } else {
            assert_eq!((given_up.state, given_up.operation.cancel_wished), (LateState::WritingOff, true));
            scene.settle(&card, end).await?;
        }
        assert_eq!(states(&scene).await?, [after], "{before} {end}");
        let now = scene.till.sale(sale.id).await?;
        let lost = if after == LateState::WrittenOff { 590 } else { 0 };
        assert_eq!((now.due, now.waived, now.paid), (0, lost, 590 - lost), "{before} {end}");
    }
    Ok(())
}

#[tokio::test]
async fn what_needs_a_look_before_its_sale_completes_is_listed_once_it_does() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 300).await?;
    scene.settle(&card, State::NeedsAttention).await?;
    assert_eq!(states(&scene).await?, []);
    assert_eq!(scene.in_cash(&sale, 290).await?.sale.state, SaleState::Completed);
    assert_eq!(states(&scene).await?, [LateState::Attention]);
    Ok(())
}

#[tokio::test]
async fn what_needs_a_look_is_listed_and_goes_its_way() -> Checked {
    for (end, after) in [(State::Approved, LateState::Settled), (State::Declined, LateState::Open)] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.taken_offline(&sale, 590).await?;
        scene.settle(&card, State::NeedsAttention).await?;
        assert_eq!(states(&scene).await?, [LateState::Attention]);
        scene.settle(&card, end).await?;
        assert_eq!(states(&scene).await?, [after]);
    }
    Ok(())
}

/// Goods that came back while their payment was open are owed by nobody, once that turns out not to pay.
#[tokio::test]
async fn what_came_back_before_is_not_collected() -> Checked {
    for (whole, state, owed) in [(true, LateState::Settled, 0), (false, LateState::Open, 220)] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.taken_offline(&sale, 590).await?;
        let goods = if whole {
            ReturnedGoods::Whole
        } else {
            ReturnedGoods::Lines(vec![Goods { line_id: sale.lines[0].id, quantity: None }])
        };
        let new = NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods, reason: None };
        let made = scene.till.return_goods(new).await?;
        assert_eq!(made.state, ReturnState::Settling);
        scene.settle(&card, State::Declined).await?;
        assert_eq!(states(&scene).await?, [state]);
        let now = scene.till.sale(sale.id).await?;
        assert_eq!((now.due, now.waived), (owed, 590 - owed));
        assert_eq!(scene.till.return_by_id(made.id).await?.state, ReturnState::Done, "there is nothing to give back");
        if owed > 0 {
            let operation = scene.till.collect_again(collect(now.tenders[0].id)).await?;
            assert_eq!(operation.amount, owed);
            scene.settle(&operation, State::Approved).await?;
            // And what was collected can come back.
            let new = NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods: ReturnedGoods::Whole, reason: None };
            let made = scene.till.return_goods(new).await?;
            assert_eq!((made.total, made.legs[0].amount), (owed, owed));
        }
    }
    Ok(())
}

/// Nor does it where somebody cancelled that refund before the bank said how the payment ended: the goods are back all the same.
#[tokio::test]
async fn what_came_back_is_not_collected_either_where_its_refund_was_cancelled() -> Checked {
    for writes_off in [false, true] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.taken_offline(&sale, 590).await?;
        let goods = ReturnedGoods::Lines(vec![Goods { line_id: sale.lines[0].id, quantity: None }]);
        let new = NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods, reason: None };
        let made = scene.till.return_goods(new).await?;
        let leg = made.legs[0].operation.clone().ok_or("no operation")?;
        scene.till.cancel(leg.key).await?;
        // Whether that money is to go back hangs on the payment.
        for refused in [
            scene.till.refund_again(made.legs[0].id, Uuid::now_v7()).await.map(drop),
            scene.till.refund_in_cash(made.legs[0].id, Uuid::now_v7()).await.map(drop),
        ] {
            assert!(matches!(refused, Err(TillError::CardMayBeCharged(_))), "{refused:?}");
        }
        scene.settle(&card, State::Declined).await?;
        let now = scene.till.sale(sale.id).await?;
        assert_eq!((states(&scene).await?, now.due, now.waived), (vec![LateState::Open], 220, 370));
        let late_tender_id = now.tenders[0].id;
        if writes_off {
            scene.till.write_off(late_tender_id, "never came back").await?;
            let late = scene.till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late;
            assert_eq!((late[0].state, late[0].amount, late[0].returned), (LateState::WrittenOff, 220, 370));
        } else {
            assert_eq!(scene.till.collect_again(collect(late_tender_id)).await?.amount, 220);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_customer_who_comes_back_pays_it_in_cash_into_the_drawer_of_that_day() -> Checked {
    let scene = Scene::new()?;
    let cash = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    opened(&scene, 1_000).await?;
    // 0.755 kg at 1.99: 1.50, and 1.49 twice: 4.48, of which 2.46 were taken offline and 2.02 paid in cash, as 2.00.
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    let sale = scene.till.add_article("DAI-401", Some("2")).await?;
    assert_eq!(sale.total, 448);
    let card = scene.taken_offline(&sale, 246).await?;
    assert_eq!(scene.in_cash(&sale, 500).await?.drawer, 200);
    scene.settle(&card, State::Declined).await?;
    scene.till.count_drawer(Count::Total(1_200)).await?;
    let first = scene.till.close_shift(1).await?;
    let late = scene.till.sale(sale.id).await?.tenders[0].id;
    let dialog = scene.till.begin_collecting(late).await?;
    assert_eq!((dialog.due, dialog.cash_due, dialog.rounding), (246, 245, -1));
    let click = CollectInCash { tender_id: dialog.tender_id, late_tender_id: late, tendered: 300 };
    let refused = scene.till.collect_in_cash(click.clone()).await;
    assert!(matches!(refused, Err(TillError::NoShift(_))), "{refused:?}");
    opened(&scene, 0).await?;
    for tendered in [240, 0, -5, 246] {
        let refused = scene.till.collect_in_cash(CollectInCash { tendered, ..click.clone() }).await;
        assert!(matches!(refused, Err(TillError::InvalidAmount(_))), "{tendered}: {refused:?}");
    }
    let clicks: Vec<_> = (0..20)
        .map(|at| {
            let till = scene.till.clone();
            let other = CollectInCash { tender_id: Uuid::now_v7(), ..click.clone() };
            let click = if at % 2 == 0 { click.clone() } else { other };
            tokio::spawn(async move { till.collect_in_cash(click).await })
        })
        .collect();
    let mut refused = 0;
    for click in clicks {
        match click.await? {
            Ok(taken) => assert_eq!((taken.change, taken.drawer), (55, 245)),
            Err(TillError::AlreadyFinal(_)) => refused += 1,
            Err(error) => return Err(error.into()),
        }
    }
    assert!(refused == 10 || refused == 19, "{refused}");
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.paid, now.rounding, now.waived, now.state), (0, 445, -3, 0, SaleState::Completed));
    let listed = scene.till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late.remove(0);
    assert_eq!((listed.state, listed.cash, listed.operation.key), (LateState::Settled, Some(245), card.key));
    let collected = now.tenders[2].id;
    assert!(matches!(scene.till.write_off(late, "x").await, Err(TillError::AlreadyFinal(_))));
    assert!(matches!(scene.till.collect_again(collect(late)).await, Err(TillError::AlreadyFinal(_))));
    let reused = scene.till.collect_again(CollectAgain { tender_id: collected, ..collect(late) }).await;
    assert!(reused.is_err(), "a card can't be what was cash: {reused:?}");

    let x = scene.till.x_report().await?;
    assert_eq!((x.sales, x.drawer.cash_collected, x.drawer.cash_of_open_sales, x.drawer.expected), (0, 245, 0, 245));
    assert_eq!((x.late.collected.amount, x.late.collected_in_cash.amount, x.late.rounding), (246, 246, -1));
    assert_eq!((first.total + first.rounding, first.late.declined.amount), (446, 246));
    // All of it comes back: 2.00 and 2.45, whatever 4.48 is in coins.
    scene
        .till
        .move_drawer(crate::NewDrawerMove {
            id: Uuid::now_v7(),
            opening: crate::DrawerOpening::In(1_000),
            reason: "change".into(),
        })
        .await?;
    let part = ReturnedGoods::Lines(vec![Goods { line_id: sale.lines[1].id, quantity: Some("1".into()) }]);
    let new = |goods| NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods, reason: None };
    let one = scene.till.return_goods(new(part)).await?;
    let rest = scene.till.return_goods(new(ReturnedGoods::Whole)).await?;
    assert_eq!((one.total + rest.total, one.legs[0].amount + rest.legs[0].amount), (448, 445));
    assert_eq!(scene.till.x_report().await?.drawer.expected, 1_000 + 245 - 445);
    Ok(())
}

#[tokio::test]
async fn the_database_takes_cash_for_a_late_decline_whole_and_once() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene).await?;
    let file = scene.file()?;
    let id = "00000000-0000-4000-8000-000000000000";
    let cash = |amount: i64, collects: &str| {
        format!(
            "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, replaces, collects, created_at, updated_at)
             VALUES ('{id}', '{}', 2, 'cash', 'taken', {amount}, {amount}, 0, '{late}', {collects}, 1, 1)",
            sale.id
        )
    };
    let settled = |tender: &str, rounding: i64| {
        format!(
            "UPDATE late_declines SET state = 'settled', last_tender_id = '{tender}', rounding = {rounding}, ended_at = 1, ended_shift = 0"
        )
    };
    let quoted = format!("'{late}'");
    for (amount, collects) in [(590, "NULL"), (589, &*quoted), (591, &quoted)] {
        refuses(&file, &cash(amount, collects), "a tender is for a sale under payment");
    }
    refuses(&file, &settled(&late.to_string(), 0), "once");
    file.execute_batch("BEGIN")?;
    file.execute_batch(&cash(590, &quoted))?;
    refuses(&file, &settled(id, 1), "once");
    file.execute_batch(&settled(id, 0))?;
    refuses(&file, "UPDATE late_declines SET rounding = 1", "once");
    file.execute_batch("COMMIT")?;
    assert_eq!(states(&scene).await?, [LateState::Settled]);
    Ok(())
}

#[tokio::test]
async fn a_period_says_what_was_declined_collected_and_written_off_in_it() -> Checked {
    let scene = Scene::new()?;
    let from = Timestamp::now();
    let (_, collected) = declined_late(&scene).await?;
    let (_, written_off) = declined_late(&scene).await?;
    declined_late(&scene).await?;
    let operation = scene.till.collect_again(collect(collected)).await?;
    scene.settle(&operation, State::Approved).await?;
    scene.till.write_off(written_off, "gone").await?;
    let before = Timestamp::now() + jiff::SignedDuration::from_secs(1);
    let figures = scene.till.late_figures(Currency::EUR, from, before).await?;
    let total = |count, amount| LateTotal { count, amount };
    assert_eq!((figures.declined, figures.collected), (total(3, 1_770), total(1, 590)));
    assert_eq!((figures.written_off, figures.open), (total(1, 590), total(1, 590)));
    let later = scene.till.late_figures(Currency::EUR, before, before + jiff::SignedDuration::from_secs(1)).await?;
    assert_eq!((later.declined, later.collected, later.open), (total(0, 0), total(0, 0), total(1, 590)));
    let other = scene.till.late_figures(Currency::parse("USD")?, from, before).await?;
    assert_eq!((other.declined, other.open), (total(0, 0), total(0, 0)));
    Ok(())
}

#[tokio::test]
async fn the_database_lets_a_late_decline_go_only_its_way() -> Checked {
    let scene = Scene::new()?;
    let (sale, late) = declined_late(&scene).await?;
    let file = scene.file()?;
    let tender = |amount: i64, replaces: &str, collects: &str| {
        format!(
            "INSERT INTO tenders (id, sale_id, position, kind, state, amount, reference, replaces, collects, created_at, updated_at)
             SELECT '00000000-0000-4000-8000-000000000000', sale_id, 2, kind, 'settling', {amount}, reference, {replaces}, {collects}, 1, 1
             FROM tenders"
        )
    };
    refuses(&file, &tender(590, "NULL", "id"), "a tender is for a sale under payment");
    refuses(&file, &tender(589, "id", "id"), "a tender is for a sale under payment");
    refuses(&file, &tender(591, "id", "id"), "a tender is for a sale under payment");
    refuses(&file, &tender(590, "id", "NULL"), "a tender is for a sale under payment");
    for (change, reason) in [
        ("UPDATE late_declines SET amount = 1", "once"),
        ("UPDATE late_declines SET state = 'settled', ended_at = 1, ended_shift = 0", "once"),
        ("UPDATE late_declines SET state = 'collecting'", "once"),
        ("UPDATE late_declines SET state = 'attention'", "once"),
        ("UPDATE late_declines SET state = 'written_off', ended_at = 1, ended_shift = 0", "CHECK constraint failed"),
        (
            "UPDATE late_declines SET state = 'written_off', reason = 'x', written_off_by = 'x', ended_at = 1, ended_shift = 7",
            "belongs to the shift",
        ),
        ("UPDATE late_declines SET ended_shift = 0", "once"),
        ("UPDATE tenders SET collects = id", "never changes but for its state"),
        ("UPDATE late_declines SET declined_at = 1", "once"),
        ("DELETE FROM late_declines", "never dropped"),
        (
            "INSERT INTO late_declines (tender_id, last_tender_id, state, amount, returned, declined_at, declined_shift)
             SELECT id, id, 'open', amount - 1, 0, 1, 0 FROM tenders",
            "a late decline is of a completed sale",
        ),
    ] {
        refuses(&file, change, reason);
    }
    scene.till.write_off(late, "gone").await?;
    for change in [
        "UPDATE late_declines SET state = 'open', ended_at = NULL, ended_shift = NULL",
        "UPDATE late_declines SET reason = 'another'",
    ] {
        refuses(&file, change, "once");
    }
    refuses(&file, &tender(590, "id", "id"), "a tender is for a sale under payment");
    assert_eq!(sale.state, SaleState::Completed);
    Ok(())
}
