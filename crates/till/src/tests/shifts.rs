//! Shifts: what the drawer should hold, what was counted, and reports that agree with the sales.

use super::{Checked, Scene, export_sums::assert_add_up};
use crate::{
    Asked, CardPayment, CashPayment, Count, DrawerMoveKind, DrawerOpening, ExportFormat, Exported, NewDrawerMove,
    NewPerson, Pieces, PinEntry, Refund, RemovedFigures, ReportKind, Role, Sale, Settings, Shift, ShiftOpening,
    ShiftReport, State, TaxTotal, TenderKind, TenderTotal, Till, TillError, Total,
};
use checkout::{CashRounding, CashRule};
use protocol::{Amount, Currency};
use uuid::Uuid;

pub(super) async fn opened(scene: &Scene, float_amount: i64) -> Result<Shift, TillError> {
    scene.till.open_shift(ShiftOpening { intent_id: Uuid::now_v7(), float_amount }).await
}

pub(super) async fn moved(scene: &Scene, opening: DrawerOpening, reason: &str) -> Result<crate::DrawerMove, TillError> {
    let new = NewDrawerMove { id: Uuid::now_v7(), opening, reason: reason.to_owned() };
    scene.till.move_drawer(new).await
}

/// Pays the sale in front in cash, and goes on.
pub(super) async fn in_cash(scene: &Scene, sale: &Sale, tendered: i64) -> Result<(), TillError> {
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered }).await?;
    scene.till.new_sale().await?;
    Ok(())
}

fn totals(report: &ShiftReport) -> Vec<(TenderKind, i64, i64)> {
    report.tenders.iter().map(|TenderTotal { kind, count, amount }| (*kind, *count, *amount)).collect()
}

/// What each report says of itself must agree.
pub(super) fn assert_agrees(report: &ShiftReport) {
    let drawer = &report.drawer;
    let paid: i64 = report.tenders.iter().map(|tender| tender.amount).sum();
    assert_eq!(report.total + report.rounding, paid, "{report:?}");
    assert_eq!(report.net + report.tax + report.tips, report.total, "{report:?}");
    assert_eq!(report.taxes.iter().map(|tax| tax.net).sum::<i64>(), report.net, "{report:?}");
    assert_eq!(report.taxes.iter().map(|tax| tax.tax).sum::<i64>(), report.tax, "{report:?}");
    let cash = report.tenders.iter().find(|tender| tender.kind == TenderKind::Cash).map_or(0, |tender| tender.amount);
    assert_eq!(drawer.cash_of_sales, cash, "{report:?}");
    let back = &report.returns;
    assert_eq!(back.net + back.tax + back.tips, back.total, "{report:?}");
    let given = back.waived.amount + back.refunded_before.amount + back.cards.amount + back.cash.amount;
    assert_eq!(back.total + back.rounding, given, "{report:?}");
    let cards = &report.cards;
    let of_sales = cards.of_sales - cards.of_earlier_shifts - cards.not_approved;
    let others = cards.of_open_sales + cards.of_voided_sales + cards.offline_of_earlier_shifts + cards.collected;
    assert_eq!(cards.approved.amount, of_sales + others, "{report:?}");
    super::reports::assert_adds_up(report);
    assert_eq!(back.taxes.iter().map(|tax| tax.net).sum::<i64>(), back.net, "{report:?}");
    assert_eq!(back.taxes.iter().map(|tax| tax.tax).sum::<i64>(), back.tax, "{report:?}");
    let expected = drawer.float_amount + drawer.cash_of_sales + drawer.cash_of_open_sales
        - drawer.cash_of_earlier_shifts
        + drawer.cash_collected
        + drawer.cash_in
        - drawer.cash_out
        - drawer.cash_refunds;
    assert_eq!(drawer.expected, expected, "{report:?}");
    assert_eq!(drawer.difference, drawer.counted.map(|counted| counted - expected), "{report:?}");
}

#[tokio::test]
async fn a_shift_from_its_float_to_its_z_report() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    let before = scene.sale().await?;
    in_cash(&scene, &before, 1_000).await?;
    let shift = opened(&scene, 10_000).await?;
    assert_eq!((shift.number, shift.float_amount, shift.currency.code()), (1, 10_000, "EUR"));

    // 5.90 in cash, 5.90 by card, 3.00 by card and the rest of 5.90 in cash.
    let sale = scene.sale().await?;
    in_cash(&scene, &sale, 1_000).await?;
    let sale = scene.sale().await?;
    let paid = scene.by_card(&sale, 590).await?;
    scene.settle(&paid, State::Approved).await?;
    till.new_sale().await?;
    let sale = scene.sale().await?;
    let part = scene.by_card(&sale, 300).await?;
    scene.settle(&part, State::Approved).await?;
    in_cash(&scene, &sale, 290).await?;

    moved(&scene, DrawerOpening::In(2_000), "change from the bank").await?;
    moved(&scene, DrawerOpening::Out(5_000), "to the safe").await?;
    moved(&scene, DrawerOpening::NoSale, "change for a note").await?;
    let refund = Refund { intent_id: Uuid::now_v7(), payment: paid.key, amount: Amount::new(185)? };
    let refund = till.refund(refund).await?;
    scene.settle(&refund, State::Approved).await?;
    scene.sale().await?;
    till.clear_sale().await?;

    let x = till.x_report().await?;
    assert_agrees(&x);
    assert_eq!((x.kind, x.number, x.sales, x.total, x.net, x.tax), (ReportKind::X, 1, 3, 1_770, 1_593, 177));
    assert_eq!(totals(&x), [(TenderKind::Card, 2, 890), (TenderKind::Cash, 2, 880)]);
    let tax = |rate: &str, net, tax| TaxTotal { rate: rate.to_owned(), net, tax };
    assert_eq!(x.taxes, [tax("7", 1_038, 72), tax("19", 555, 105)]);
    assert_eq!((x.card_refunds, x.cash_refunds), (Total { count: 1, amount: 185 }, Total::default()));
    assert_eq!((x.drops, x.no_sales, x.overrides), (1, 1, 0));
    assert_eq!((x.drawer.expected, x.drawer.counted), (10_000 + 880 + 2_000 - 5_000, None));

    let early = till.close_shift(1).await;
    assert!(matches!(early, Err(TillError::CountNeeded(_))), "{early:?}");
    let pieces =
        vec![Pieces { value: 5_000, pieces: 1 }, Pieces { value: 1_000, pieces: 2 }, Pieces { value: 20, pieces: 43 }];
    let counted = till.count_drawer(Count::Pieces(pieces)).await?;
    assert_eq!((counted.counted, counted.expected, counted.difference), (7_860, 7_880, -20));
    // Cash came since: what was counted is not what lies there.
    let sale = scene.sale().await?;
    in_cash(&scene, &sale, 590).await?;
    let stale = till.close_shift(1).await;
    assert!(matches!(&stale, Err(TillError::CountNeeded(why)) if why.contains("count again")), "{stale:?}");
    till.count_drawer(Count::Total(8_470)).await?;
    let z = till.close_shift(1).await?;
    assert_agrees(&z);
    assert_add_up(&scene, std::slice::from_ref(&z)).await?;
    assert_eq!(
        (z.kind, z.sales, z.drawer.counted, z.drawer.difference, z.drawer.counts),
        (ReportKind::Z, 4, Some(8_470), Some(0), 2)
    );
    // Of the first count there is not only that it was.
    let each: Vec<_> = z.drawer.each_count.iter().map(|one| (one.who.as_str(), one.counted, one.difference)).collect();
    assert_eq!(each, [("cashier", 7_860, -20), ("cashier", 8_470, 0)]);
    let text = z.text();
    assert!(text.contains("  by cashier                         -0.20"), "{text}");

    // The same again is the same, also later, and under other settings.
    till.save_settings(Settings { shop_name: "Another".into(), ..till.settings().await? }).await?;
    assert_eq!((till.close_shift(1).await?, till.z_report(1).await?), (z.clone(), z));
    assert_eq!(till.shift().await?, None);
    let end = till.closed_shifts(None, 10).await?.remove(0).closed.ok_or("it is open")?;
    assert_eq!((end.expected, end.counted, end.difference), (Some(8_470), 8_470, Some(0)));
    let entries = till.audit(None, 0, 200).await?;
    let told = entries.iter().map(|entry| entry.what.as_str()).filter(|what| {
        ["shift-opened", "cash-in", "cash-out", "drawer-opened", "drawer-counted", "shift-closed"].contains(what)
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        ["shift-opened", "cash-in", "cash-out", "drawer-opened", "drawer-counted", "drawer-counted", "shift-closed"]
    );
    assert_eq!(till.check_audit(|_| ()).await?.broken, None);
    Ok(())
}

#[tokio::test]
async fn clicks_come_twice_and_make_one() -> Checked {
    let scene = Scene::new()?;
    let opening = ShiftOpening { intent_id: Uuid::now_v7(), float_amount: 100 };
    let shift = scene.till.open_shift(opening).await?;
    assert_eq!(scene.till.open_shift(opening).await?, shift);
    let other = scene.till.open_shift(ShiftOpening { float_amount: 200, ..opening }).await;
    assert!(matches!(other, Err(TillError::IntentReused(_))), "{other:?}");
    assert!(matches!(opened(&scene, 100).await, Err(TillError::ShiftOpen(_))));
    let new = NewDrawerMove { id: Uuid::now_v7(), opening: DrawerOpening::In(500), reason: " coins ".into() };
    let first = scene.till.move_drawer(new.clone()).await?;
    assert_eq!((first.kind, first.amount, first.reason.as_str()), (DrawerMoveKind::In, 500, "coins"));
    assert_eq!(scene.till.move_drawer(new.clone()).await?, first);
    let other = scene.till.move_drawer(NewDrawerMove { opening: DrawerOpening::Out(500), ..new }).await;
    assert!(matches!(other, Err(TillError::IntentReused(_))), "{other:?}");
    assert_eq!(scene.till.drawer_moves(1).await?, [first]);
    Ok(())
}

#[tokio::test]
async fn what_a_drawer_cannot_do_is_refused() -> Checked {
    let scene = Scene::new()?;
    let five = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash: five, ..Settings::default() }).await?;
    assert!(matches!(scene.till.x_report().await, Err(TillError::NoShift(_))));
    assert!(matches!(scene.till.count_drawer(Count::Total(0)).await, Err(TillError::NoShift(_))));
    assert!(matches!(moved(&scene, DrawerOpening::NoSale, "a look").await, Err(TillError::NoShift(_))));
    assert!(matches!(scene.till.close_shift(1).await, Err(TillError::NoShift(_))));
    for wrong in [-5, 3, i64::MAX] {
        assert!(matches!(opened(&scene, wrong).await, Err(TillError::InvalidAmount(_))), "{wrong}");
    }
    opened(&scene, 0).await?;
    for wrong in [0, -5, 3, i64::MAX, i64::MIN] {
        assert!(
            matches!(moved(&scene, DrawerOpening::In(wrong), "x").await, Err(TillError::InvalidAmount(_))),
            "{wrong}"
        );
    }
    moved(&scene, DrawerOpening::In(500), "x").await?;
    let over = moved(&scene, DrawerOpening::Out(505), "x").await;
    assert!(matches!(&over, Err(TillError::InvalidAmount(why)) if why.contains("more than the drawer")), "{over:?}");
    for wrong in ["", "  ", "a\nb", "4111 1111 1111 1111", &"x".repeat(201)] {
        let refused = moved(&scene, DrawerOpening::NoSale, wrong).await.err().ok_or("it was taken")?;
        let code = if wrong.trim().is_empty() { "invalid-reason" } else { "invalid-text" };
        assert_eq!(refused.code(), code, "{wrong}: {refused}");
    }
    let piece = |value, pieces| Count::Pieces(vec![Pieces { value, pieces }]);
    for wrong in [Count::Total(-1), Count::Total(i64::MAX), piece(0, 1), piece(-5, 1), piece(i64::MAX, 2)] {
        assert!(matches!(scene.till.count_drawer(wrong.clone()).await, Err(TillError::InvalidAmount(_))), "{wrong:?}");
    }
    let dollars = Settings { currency: Currency::parse("USD")?, ..scene.till.settings().await? };
    assert!(matches!(scene.till.save_settings(dollars).await, Err(TillError::InvalidSetting(_))));
    Ok(())
}

#[tokio::test]
async fn once_there_are_shifts_cash_is_taken_only_in_one_and_a_card_at_any_time() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 0).await?;
    let held = scene.sale().await?;
    let late = scene.by_card(&held, 590).await?;
    scene.till.hold_sale(held.id).await?;
    scene.till.count_drawer(Count::Total(0)).await?;
    let z = scene.till.close_shift(1).await?;
    assert_eq!((z.sales, z.unsettled.len()), (0, 1));
    assert_eq!(
        (&z.unsettled[0].short_code, z.unsettled[0].amount, z.unsettled[0].key),
        (&late.short_code, 590, late.key)
    );

    let sale = scene.sale().await?;
    let refused = in_cash(&scene, &sale, 1_000).await;
    assert!(matches!(&refused, Err(TillError::NoShift(why)) if why.contains("open one")), "{refused:?}");
    let card = scene.by_card(&sale, 590).await?;
    scene.settle(&card, State::Approved).await?;
    scene.till.new_sale().await?;
    // The bank's word at night, with no shift open.
    scene.settle(&late, State::Approved).await?;
    opened(&scene, 0).await?;
    let x = scene.till.x_report().await?;
    assert_eq!((x.number, x.sales, totals(&x)), (2, 2, vec![(TenderKind::Card, 2, 1_180)]));
    assert!(x.unsettled.is_empty());
    assert_agrees(&x);
    // The Z of the first is what it was.
    assert_eq!(scene.till.z_report(1).await?, z);
    Ok(())
}

#[tokio::test]
async fn cash_of_a_sale_that_completes_later_is_in_the_drawer_it_was_put_into() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 1_000).await?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 300).await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 290 }).await?;
    let counted = scene.till.count_drawer(Count::Total(1_290)).await?;
    assert_eq!(counted.difference, 0);
    let first = scene.till.close_shift(1).await?;
    assert_agrees(&first);
    assert_eq!((first.sales, first.drawer.cash_of_open_sales), (0, 290));
    opened(&scene, 1_000).await?;
    scene.settle(&card, State::Approved).await?;
    let second = scene.till.x_report().await?;
    assert_agrees(&second);
    assert_eq!((second.sales, second.drawer.cash_of_sales, second.drawer.cash_of_earlier_shifts), (1, 290, 290));
    assert_eq!(second.drawer.expected, 1_000);
    Ok(())
}

#[tokio::test]
async fn a_sale_in_another_currency_is_in_no_sum_of_the_shift() -> Checked {
    let scene = Scene::new()?;
    let dollars = Settings { currency: Currency::parse("USD")?, ..scene.till.settings().await? };
    let euros = scene.till.settings().await?;
    scene.till.save_settings(dollars).await?;
    let sale = scene.sale().await?;
    scene.till.save_settings(euros).await?;
    opened(&scene, 1_000).await?;
    let refused = in_cash(&scene, &sale, 590).await;
    assert!(matches!(&refused, Err(TillError::NoShift(why)) if why.contains("holds EUR")), "{refused:?}");
    let card = scene.by_card(&sale, 590).await?;
    scene.settle(&card, State::Approved).await?;
    let x = scene.till.x_report().await?;
    assert_agrees(&x);
    assert_eq!((x.sales, x.total, x.other_currencies.len()), (0, 0, 1));
    assert_eq!((x.other_currencies[0].sales, x.other_currencies[0].total), (1, 590));
    Ok(())
}

#[tokio::test]
async fn who_counts_does_not_know_what_should_be_there() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    let pin = |person_id, pin: &str| PinEntry { person_id, pin: pin.to_owned() };
    let boris = till.add_person(NewPerson { name: "Boris".into(), role: Role::Manager, pin: "2847".into() }).await?;
    let anna = till.add_person(NewPerson { name: "Anna".into(), role: Role::Cashier, pin: "9031".into() }).await?;
    till.log_in(pin(anna.id, "9031")).await?;
    let intent_id = Uuid::now_v7();
    let shift = till.open_shift(ShiftOpening { intent_id, float_amount: 1_000 }).await?;
    assert_eq!(shift.opened_by, "Anna");
    assert!(matches!(till.x_report().await, Err(TillError::NotAllowed(_))));
    assert!(matches!(moved(&scene, DrawerOpening::Out(500), "safe").await, Err(TillError::NotAllowed(_))));
    let approved = till.approved_by(pin(boris.id, "2847")).await?;
    let new = NewDrawerMove { id: Uuid::now_v7(), opening: DrawerOpening::Out(500), reason: "safe".into() };
    let out = approved.move_drawer(new).await?;
    let approved = till.approved_by(pin(boris.id, "2847")).await?;
    assert_eq!((out.who.as_str(), out.approved_by.as_deref()), ("Anna", Some("Boris")));
    assert_eq!(approved.x_report().await?.drawer.expected, 500);
    till.count_drawer(Count::Total(510)).await?;
    let z = till.close_shift(1).await?;
    // Nor afterwards, when the next count may be hers.
    let end =
        async |till: &Till| till.closed_shifts(None, 10).await?.remove(0).closed.ok_or(TillError::NotFound("end"));
    let (seen, unseen) = (end(&till.approved_by(pin(boris.id, "2847")).await?).await?, end(till).await?);
    assert_eq!((unseen.counted, unseen.expected, unseen.difference), (510, None, None));
    assert_eq!((seen.counted, seen.expected, seen.difference), (510, Some(500), Some(10)));
    let again = till.open_shift(ShiftOpening { intent_id, float_amount: 1_000 }).await?;
    assert_eq!(again.closed, Some(unseen.clone()), "the first click once more");
    for refused in [
        till.audit(None, 0, 10).await.map(drop),
        till.export(Exported::Audit, ExportFormat::Json, Box::new(std::io::sink())).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::NotAllowed(_))), "the audit holds it too: {refused:?}");
    }
    let approved = till.approved_by(pin(boris.id, "2847")).await?;
    let entries = approved.audit(None, 0, 100).await?;
    let seen: Vec<_> = entries.iter().filter(|entry| entry.what.ends_with("-seen")).collect();
    let named = |entry: &&crate::AuditEntry| (entry.who.clone(), entry.approved_by.clone(), entry.what.clone());
    let by_boris = |what: &str| ("Anna".to_owned(), Some("Boris".to_owned()), what.to_owned());
    assert_eq!(seen.iter().map(named).collect::<Vec<_>>(), ["report-seen", "shifts-seen", "audit-seen"].map(by_boris));
    till.as_program("command line").audit(None, 0, 10).await?;
    assert_eq!((z.opened_by.as_str(), z.made_by.as_str()), ("Anna", "Anna"));
    till.lock().await?;
    assert!(matches!(opened(&scene, 1_000).await, Err(TillError::Locked)));
    assert_eq!(end(till).await?, unseen);
    till.log_in(pin(boris.id, "2847")).await?;
    assert_eq!(end(till).await?.difference, Some(10));
    Ok(())
}

#[test]
fn a_day_is_the_shops_and_begins_at_its_hour() {
    let settings = |zone: Option<&str>, day_start_hour| Settings {
        time_zone: zone.map(str::to_owned),
        day_start_hour,
        ..Settings::default()
    };
    for (zone, hour, at, day) in [
        ("UTC", 0, "2026-11-30T00:00:00Z", "2026-11-30"),
        ("UTC", 0, "2026-11-29T23:59:59Z", "2026-11-29"),
        // 23:30 in the evening, which is tomorrow in UTC.
        ("America/Mexico_City", 0, "2026-11-30T05:30:00Z", "2026-11-29"),
        ("Pacific/Auckland", 0, "2026-11-29T11:30:00Z", "2026-11-30"),
        // A bar: three in the morning is still the evening before, four is not.
        ("Europe/Berlin", 4, "2026-11-30T02:59:00Z", "2026-11-29"),
        ("Europe/Berlin", 4, "2026-11-30T03:00:00Z", "2026-11-30"),
        // The hour is the clock's on the wall, also in the night in which it is set: 02:30 comes twice, 03:30 is over it.
        ("Europe/Berlin", 3, "2026-10-25T00:30:00Z", "2026-10-24"),
        ("Europe/Berlin", 3, "2026-10-25T01:30:00Z", "2026-10-24"),
        ("Europe/Berlin", 3, "2026-10-25T02:30:00Z", "2026-10-25"),
        ("Europe/Berlin", 3, "2026-03-29T01:00:00Z", "2026-03-29"),
    ] {
        let found = settings(Some(zone), hour).business_day(at.parse().unwrap());
        assert_eq!(found.to_string(), day, "{zone} {hour} {at}");
    }
}

#[tokio::test]
async fn a_zone_or_an_hour_that_is_none_is_refused() -> Checked {
    let scene = Scene::new()?;
    let settings = scene.till.settings().await?;
    for wrong in [
        Settings { time_zone: Some("Europe/Nowhere".into()), ..settings.clone() },
        Settings { time_zone: Some("../etc/passwd".into()), ..settings.clone() },
        Settings { day_start_hour: 24, ..settings.clone() },
    ] {
        assert!(matches!(scene.till.save_settings(wrong).await, Err(TillError::InvalidSetting(_))));
    }
    let right = Settings { time_zone: Some("Asia/Yekaterinburg".into()), day_start_hour: 4, ..settings };
    scene.till.save_settings(right.clone()).await?;
    assert_eq!(scene.till.settings().await?, right);
    Ok(())
}

#[tokio::test]
async fn the_file_refuses_what_no_shift_may_become() -> Checked {
    let scene = Scene::new()?;
    let before = scene.sale().await?;
    in_cash(&scene, &before, 590).await?;
    opened(&scene, 1_000).await?;
    let sale = scene.sale().await?;
    in_cash(&scene, &sale, 590).await?;
    moved(&scene, DrawerOpening::In(100), "coins").await?;
    scene.till.count_drawer(Count::Total(1_690)).await?;
    let refuses = |changes: &[(&str, &str)]| -> Checked {
        let file = scene.file()?;
        for (change, reason) in changes {
            let refused = file.execute(change, []).expect_err(change).to_string();
            assert!(refused.contains(reason), "{change}: {refused}");
        }
        Ok(())
    };
    let shift =
        "'00000000-0000-4000-8000-000000000000', 'EUR', 0, '2026-11-30', 0, 'a', 0, NULL, NULL, NULL, NULL, NULL)";
    let close = |expected: i64, counted: i64| {
        format!(
            "UPDATE shifts SET expected = {expected}, counted = {counted}, closed_at = 1, closed_by = 'a', report = '{{}}'"
        )
    };
    let into = "INSERT INTO drawer_moves VALUES ('00000000-0000-4000-8000-000000000000',";
    refuses(&[
        (&format!("INSERT INTO shifts VALUES (2, {shift}"), "after the one before it was closed"),
        (&format!("INSERT INTO shifts VALUES (3, {shift}"), "numbered without gaps"),
        ("UPDATE shifts SET float_amount = 0", "never changes, but to be closed"),
        ("UPDATE shifts SET number = 2", "never changes, but to be closed"),
        ("DELETE FROM shifts", "never dropped"),
        (&close(1_600, 1_690), "closes with what its drawer should hold"),
        (&close(1_690, 1_700), "closes with what its drawer should hold"),
        ("UPDATE shifts SET closed_at = 1", "closes with what its drawer should hold"),
        ("UPDATE drawer_moves SET amount = 1", "never changes"),
        ("DELETE FROM drawer_moves", "never changes"),
        (&format!("{into} 2, 'in', 1, 'x', 'a', NULL, 0)"), "moves in the open shift"),
        (&format!("{into} 1, 'out', 1691, 'x', 'a', NULL, 0)"), "no more than it holds"),
        (&format!("{into} 1, 'refund', 1691, 'x', 'a', NULL, 0)"), "no more than it holds"),
        (&format!("{into} 1, 'no_sale', 1, 'x', 'a', NULL, 0)"), "CHECK constraint failed"),
        ("UPDATE drawer_counts SET counted = 1", "never changes"),
        ("DELETE FROM drawer_counts", "never changes"),
        ("INSERT INTO drawer_counts VALUES (9, 1, 1, 1, NULL, 'a', 0)", "against what it should hold"),
        ("UPDATE sales SET shift = 1 WHERE shift = 0", "in which it completed"),
        ("UPDATE sales SET shift = NULL WHERE shift = 1", "in which it completed"),
        ("UPDATE tenders SET shift = NULL", "in which it was taken"),
        ("UPDATE tenders SET shift = 1 WHERE shift = 0", "in which it was taken"),
        ("UPDATE settings SET value = 'USD' WHERE name = 'currency'", "stays while a shift is open"),
    ])?;
    scene.till.close_shift(1).await?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 300).await?;
    refuses(&[
        ("UPDATE shifts SET report = '{\"total\":1}'", "never changes"),
        ("UPDATE shifts SET closed_at = NULL, expected = NULL, counted = NULL, closed_by = NULL, report = NULL", "never changes"),
        (&format!("{into} 1, 'in', 1, 'x', 'a', NULL, 0)"), "moves in the open shift"),
        (
            "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, created_at, updated_at)
             SELECT '00000000-0000-4000-8000-000000000000', id, 9, 'cash', 'taken', 1, 1, 0, 0, 0 FROM sales WHERE state = 'paying'",
            "cash is taken in an open shift",
        ),
    ])?;
    opened(&scene, 1_000).await?;
    let refunded = format!("{into} 2, 'refund', 300, 'goods back', 'a', NULL, 0)");
    refuses(&[(&refunded, "FOREIGN KEY")])?;
    let x = scene.till.x_report().await?;
    assert_agrees(&x);
    assert_eq!((x.cash_refunds.count, x.drawer.expected), (0, 1_000));
    Ok(())
}

#[tokio::test]
async fn a_payment_that_was_clicked_before_the_count_stays_what_it_is() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 0).await?;
    let sale = scene.sale().await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let payment = CashPayment { tender_id, sale_id: sale.id, tendered: 590 };
    scene.till.pay_cash(payment.clone()).await?;
    scene.till.count_drawer(Count::Total(590)).await?;
    scene.till.close_shift(1).await?;
    // Clicked again after the shift: the same answer, and no word of a shift.
    assert_eq!(scene.till.pay_cash(payment).await?.sale.id, sale.id);
    let card = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "tok_visa".into() };
    assert!(matches!(scene.till.pay_card(card).await, Err(TillError::IntentReused(_))));
    Ok(())
}

#[tokio::test]
async fn what_was_given_away_stands_on_the_report() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 0).await?;
    let sale = scene.sale().await?;
    // Two croissants for 1.50 each instead of 1.85, 10 % off them, and 1.00 off all: 2.70 + 2.20 - 1.00, and a tip of 0.50.
    scene.till.set_price(sale.lines[0].id, 150).await?;
    scene.till.discount_line(sale.lines[0].id, Some(Asked::percent("10")?)).await?;
    scene.till.discount_sale(sale.id, Some(Asked::Amount(100))).await?;
    let sale = scene.till.set_tip(sale.id, Some(Asked::Amount(50))).await?;
    assert_eq!(sale.total, 440);
    in_cash(&scene, &sale, 440).await?;
    let dropped = scene.sale().await?;
    scene.till.drop_sale(dropped.id).await?;
    let x = scene.till.x_report().await?;
    assert_agrees(&x);
    assert_eq!((x.line_discounts, x.sale_discounts, x.tips, x.total), (30, 100, 50, 440));
    assert_eq!((x.overrides, x.drops, x.drawer.expected), (1, 1, 440));
    Ok(())
}

/// Boris, a manager, and Anna and Clara, cashiers; Anna is logged in.
async fn staffed() -> Checked<(Scene, impl Fn(&str) -> PinEntry)> {
    let scene = Scene::new()?;
    let mut pins = Vec::new();
    for (name, role, pin) in
        [("Boris", Role::Manager, "2847"), ("Anna", Role::Cashier, "9031"), ("Clara", Role::Cashier, "5172")]
    {
        let person = scene.till.add_person(NewPerson { name: name.into(), role, pin: pin.into() }).await?;
        pins.push((name, PinEntry { person_id: person.id, pin: pin.to_owned() }));
    }
    let entry = move |name: &str| pins.iter().find(|(of, _)| *of == name).expect(name).1.clone();
    scene.till.log_in(entry("Anna")).await?;
    Ok((scene, entry))
}

#[tokio::test]
async fn a_closed_shift_is_shown_again_to_who_closed_it_or_may_see_it() -> Checked {
    let (scene, entry) = staffed().await?;
    let till = &scene.till;
    opened(&scene, 1_000).await?;
    till.count_drawer(Count::Total(1_000)).await?;
    let z = till.close_shift(1).await?;
    assert_eq!(till.close_shift(1).await?, z, "a click that comes again");
    till.log_in(entry("Clara")).await?;
    let refused = till.close_shift(1).await;
    assert!(matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("Boris")), "{refused:?}");
    till.log_in(entry("Boris")).await?;
    assert_eq!(till.close_shift(1).await?, z);
    // Who may not close at all gets none of it, be it Anna's own.
    let limit = crate::Limit { allowed: false, amount_max: None, percent_max: None };
    till.set_right(crate::RoleRight { role: Role::Cashier, right: crate::Right::CloseShift, limit }).await?;
    till.log_in(entry("Anna")).await?;
    assert!(matches!(till.close_shift(1).await, Err(TillError::NotAllowed(_))));
    Ok(())
}

#[tokio::test]
async fn a_report_seen_by_a_managers_pin_names_the_manager() -> Checked {
    let (scene, entry) = staffed().await?;
    let till = &scene.till;
    opened(&scene, 1_000).await?;
    till.approved_by(entry("Boris")).await?.x_report().await?;
    till.count_drawer(Count::Total(1_000)).await?;
    let z = till.close_shift(1).await?;
    let boss = till.approved_by(entry("Boris")).await?;
    assert!(matches!(boss.z_report(2).await, Err(TillError::NotFound(_))));
    assert_eq!(boss.z_report(1).await?, z);
    assert!(matches!(boss.z_report(1).await, Err(TillError::NotAllowed(_))), "it was for one look");
    // Who may see it leaves no trace of it.
    till.log_in(entry("Boris")).await?;
    till.approved_by(entry("Boris")).await?.z_report(1).await?;
    let entries = till.audit(None, 0, 100).await?;
    let seen: Vec<_> = entries.iter().filter(|entry| entry.what == "report-seen").collect();
    let told: Vec<_> = seen.iter().map(|entry| (entry.who.as_str(), entry.approved_by.as_deref())).collect();
    assert_eq!(told, [("Anna", Some("Boris")), ("Anna", Some("Boris"))]);
    assert_eq!((&seen[0].details["report"], &seen[1].details["report"]), (&"X".into(), &"Z".into()));
    Ok(())
}

#[tokio::test]
async fn a_sale_emptied_by_any_way_needs_the_right_and_counts_and_so_does_one_dropped_between_shifts() -> Checked {
    let (scene, entry) = staffed().await?;
    let till = &scene.till;
    opened(&scene, 0).await?;
    // Line by line, and by undo: each empties a sale once.
    let sale = scene.sale().await?;
    till.remove_line(sale.lines[0].id).await?;
    assert_eq!(till.approved_by(entry("Boris")).await?.x_report().await?.drops, 0);
    till.remove_line(sale.lines[1].id).await?;
    assert_eq!(till.approved_by(entry("Boris")).await?.x_report().await?.drops, 1);
    scene.sale().await?;
    till.undo(sale.id).await?;
    till.undo(sale.id).await?;
    assert_eq!(till.approved_by(entry("Boris")).await?.x_report().await?.drops, 2);

    let limit = crate::Limit { allowed: false, amount_max: None, percent_max: None };
    let right = crate::RoleRight { role: Role::Cashier, right: crate::Right::DropSale, limit };
    till.approved_by(entry("Boris")).await?.set_right(right).await?;
    let sale = scene.sale().await?;
    let left = till.undo(sale.id).await?;
    for refused in [till.undo(sale.id).await, till.remove_line(left.lines[0].id).await] {
        assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    }
    assert_eq!(till.open_sale().await?, left);
    till.approved_by(entry("Boris")).await?.undo(sale.id).await?;
    let parked = scene.sale().await?;
    till.park_sale(parked.id, "Table 4").await?;

    till.count_drawer(Count::Total(0)).await?;
    assert_eq!(till.close_shift(1).await?.drops, 3);
    till.approved_by(entry("Boris")).await?.drop_sale(parked.id).await?;
    opened(&scene, 0).await?;
    assert_eq!(till.approved_by(entry("Boris")).await?.x_report().await?.drops, 1);
    Ok(())
}

#[tokio::test]
async fn what_went_out_of_carts_unpaid_stands_on_the_report_with_what_it_was_worth() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    // Before the shift: on no report.
    let sale = till.add_article("BAK-201", Some("2")).await?;
    till.remove_line(sale.lines[0].id).await?;
    opened(&scene, 0).await?;
    assert_eq!(till.x_report().await?.removed, RemovedFigures::default());
    // Two croissants are removed, and brought back; 0.755 kg of 1.99 are undone.
    let sale = scene.sale().await?;
    till.discount_line(sale.lines[0].id, Some(Asked::percent("50")?)).await?;
    till.remove_line(sale.lines[0].id).await?;
    till.undo(sale.id).await?;
    till.add_article("PRO-301", Some("0.755")).await?;
    till.undo(sale.id).await?;
    // An undone price takes no line away.
    till.set_price(sale.lines[1].id, 100).await?;
    till.undo(sale.id).await?;
    // 5.90 less half of 3.70 are cleared, and 2.20 dropped.
    till.clear_sale().await?;
    let sale = till.add_article("CAF-101", None).await?;
    till.drop_sale(sale.id).await?;
    // The last line, which empties the sale, is a line.
    let sale = till.add_article("CAF-101", None).await?;
    till.remove_line(sale.lines[0].id).await?;
    let x = till.x_report().await?;
    assert_eq!(x.removed.lines, Total { count: 3, amount: 370 + 150 + 220 });
    assert_eq!(x.removed.sales, Total { count: 2, amount: 405 + 220 });
    assert_eq!(x.drops, 3);
    let text = x.text();
    assert!(text.contains("Lines removed (3)                     7.40\n"), "{text}");
    assert!(text.contains("  They came to                        6.25\n"), "{text}");
    Ok(())
}
