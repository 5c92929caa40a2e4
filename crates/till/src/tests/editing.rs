//! What a cashier changes of the sale in front: prices, discounts, notes, tip.

use super::{Checked, Scene, frozen::refuses};
use crate::{Asked, SaleState, State, Till, TillError};

#[tokio::test]
async fn an_overridden_price_keeps_the_one_before() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let line = sale.lines[0].id;
    let sale = scene.till.set_price(line, 150).await?;
    assert_eq!((sale.lines[0].unit_price, sale.lines[0].list_price, sale.total), (150, Some(185), 520));
    // Once more: what the list says is still what the list says.
    let sale = scene.till.set_price(line, 200).await?;
    assert_eq!((sale.lines[0].unit_price, sale.lines[0].list_price), (200, Some(185)));
    assert_eq!(scene.till.set_price(line, 200).await?, sale);
    // The same article again is at the list's price, and no part of that line.
    assert_eq!(scene.till.add_article("BAK-201", None).await?.lines.len(), 3);
    // Nor is it where the list's price has become just that.
    scene.file()?.execute("UPDATE articles SET price = 200 WHERE sku = 'BAK-201'", [])?;
    assert_eq!(scene.till.add_article("BAK-201", None).await?.lines.len(), 4);
    let sale = scene.till.set_price(line, 185).await?;
    assert_eq!((sale.lines[0].unit_price, sale.lines[0].list_price), (185, None));
    for price in [-1, 100_000_000, i64::MAX] {
        let refused = scene.till.set_price(line, price).await;
        assert!(matches!(refused, Err(TillError::InvalidPrice(_))), "{refused:?}");
    }
    let entries = scene.till.audit(Some(sale.id), 0, 100).await?;
    let changes: Vec<_> = entries.iter().map(|entry| (entry.what.as_str(), &entry.details)).collect();
    assert_eq!(changes.len(), 3);
    assert!(changes.iter().all(|(what, _)| *what == "price-changed"));
    assert_eq!((&changes[1].1["before"], &changes[1].1["after"]), (&150.into(), &200.into()));
    // By the list two would be 3.70; 3.00 was left.
    assert_eq!((&changes[0].1["list"], &changes[0].1["left"]), (&370.into(), &300.into()));
    Ok(())
}

#[tokio::test]
async fn discounts_and_tip_are_what_the_engine_makes_of_them() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let (first, id) = (sale.lines[0].id, sale.id);
    // 3.70 less 10 % is 3.33; with 2.20 that is 5.53, less 1.00 shared as 0.60 and 0.40; 5 % of tip on 4.53 is 0.23.
    let sale = scene.till.discount_line(first, Some(Asked::percent("10")?)).await?;
    assert_eq!((sale.lines[0].discount, sale.lines[0].total, sale.total), (37, 333, 553));
    let sale = scene.till.discount_sale(id, Some(Asked::Amount(100))).await?;
    assert_eq!((sale.discount, sale.total), (100, 453));
    assert_eq!(
        sale.lines.iter().map(|line| (line.sale_discount, line.total)).collect::<Vec<_>>(),
        [(60, 273), (40, 180)]
    );
    let sale = scene.till.set_tip(id, Some(Asked::percent("5")?)).await?;
    assert_eq!((sale.tip, sale.total, sale.due), (23, 476, 476));
    assert_eq!(
        (sale.discount_asked, sale.lines[0].discount_asked),
        (Some(Asked::Amount(100)), Some(Asked::percent("10.000")?))
    );
    // The same once more changes nothing, and is not in the audit.
    assert_eq!(scene.till.set_tip(id, Some(Asked::percent("5.0")?)).await?, sale);
    assert_eq!(scene.till.discount_sale(id, Some(Asked::Amount(100))).await?, sale);
    assert_eq!(scene.till.discount_line(first, Some(Asked::percent("10")?)).await?, sale);
    let entries = scene.till.audit(Some(id), 0, 100).await?;
    let whats: Vec<_> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(whats, ["line-discounted", "sale-discounted", "tip-changed"]);
    assert_eq!((&entries[1].details["list"], &entries[1].details["left"]), (&553.into(), &453.into()));
    assert_eq!(entries[0].details["after"], serde_json::json!({"percent": "10"}));
    // A kill in between: the same sale. And what Pay freezes is what was shown.
    let Scene { till, dir } = scene;
    drop(till);
    let scene = Scene { till: Till::open(&dir.path().join("data"))?, dir };
    assert_eq!(scene.till.open_sale().await?, sale);
    let operation = scene.by_card(&sale, 476).await?;
    let paying = scene.till.sale(id).await?;
    assert_eq!((&paying.lines, &paying.taxes, paying.tip, paying.discount), (&sale.lines, &sale.taxes, 23, 100));
    for refused in [
        scene.till.discount_line(first, None).await,
        scene.till.discount_sale(id, None).await,
        scene.till.set_tip(id, None).await,
        scene.till.set_price(first, 1).await,
        scene.till.set_note(first, "late").await,
        scene.till.undo(id).await,
    ] {
        assert!(matches!(refused, Err(TillError::SaleFrozen(_))), "{refused:?}");
    }
    // Declined and back: what was asked for still holds, and can be taken away.
    scene.settle(&operation, State::Declined).await?;
    let open = scene.till.back_to_cart(id).await?;
    assert_eq!((open.total, open.undo.as_deref()), (476, None));
    scene.till.set_tip(id, None).await?;
    scene.till.discount_sale(id, Some(Asked::Amount(0))).await?;
    let plain = scene.till.discount_line(first, Some(Asked::percent("0")?)).await?;
    assert_eq!((plain.total, plain.discount_asked, plain.lines[0].discount_asked), (590, None, None));
    Ok(())
}

#[tokio::test]
async fn more_off_than_there_is_takes_all_and_no_more() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let sale = scene.till.discount_sale(sale.id, Some(Asked::Amount(99_999_999))).await?;
    assert_eq!((sale.discount, sale.total), (590, 0));
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let taken = scene.till.pay_cash(crate::CashPayment { tender_id, sale_id: sale.id, tendered: 0 }).await?;
    assert_eq!((taken.sale.state, taken.sale.total), (SaleState::Completed, 0));
    Ok(())
}

#[tokio::test]
async fn what_is_no_discount_is_refused() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    for text in ["", "ten", "-1", "1.2345", "1e1", "1,5"] {
        assert_eq!(Asked::percent(text).map_err(|error| error.code()), Err("invalid-discount"), "{text:?}");
    }
    for wrong in [Asked::percent("100.001")?, Asked::Amount(-1), Asked::Amount(100_000_000)] {
        for refused in [
            scene.till.discount_line(sale.lines[0].id, Some(wrong)).await,
            scene.till.discount_sale(sale.id, Some(wrong)).await,
            scene.till.set_tip(sale.id, Some(wrong)).await,
        ] {
            assert!(matches!(refused, Err(TillError::InvalidDiscount(_))), "{wrong:?}: {refused:?}");
        }
    }
    assert_eq!(scene.till.open_sale().await?, sale);
    Ok(())
}

#[tokio::test]
async fn a_note_is_one_line_of_text_that_may_be_kept() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let line = sale.lines[1].id;
    let noted = scene.till.set_note(line, "  no sugar ").await?;
    assert_eq!(noted.lines[1].note.as_deref(), Some("no sugar"));
    assert_eq!(scene.till.add_article("CAF-101", None).await?.lines.len(), 3, "another one may want sugar");
    for wrong in ["two\nlines", "a\u{0}b", &"x".repeat(201), "card 4111 1111 1111 1111"] {
        let refused = scene.till.set_note(line, wrong).await;
        assert!(matches!(refused, Err(TillError::InvalidText(_))), "{wrong:?}: {refused:?}");
    }
    assert_eq!(scene.till.set_note(line, " ").await?.lines[1].note, None);
    Ok(())
}

#[tokio::test]
async fn the_database_refuses_terms_that_are_none() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let file = scene.file()?;
    for change in [
        "UPDATE lines SET origin = 'guess'",
        "UPDATE lines SET list_price = -1",
        "UPDATE lines SET list_price = unit_price",
        "UPDATE lines SET note = ''",
        "UPDATE lines SET discount_percent = 0",
        "UPDATE lines SET discount_percent = 100001",
        "UPDATE lines SET discount_amount = 0",
        "UPDATE lines SET discount_percent = 1000, discount_amount = 1",
        "UPDATE sales SET name = ''",
        "UPDATE sales SET discount_percent = 100001",
        "UPDATE sales SET discount_amount = -1",
        "UPDATE sales SET discount_percent = 1000, discount_amount = 1",
        "UPDATE sales SET tip_percent = 0",
        "UPDATE sales SET tip_percent = 1000, tip_amount = 1",
        "UPDATE sales SET dropped_at = 0",
        "UPDATE articles SET colour = 'red'",
        "UPDATE articles SET open_price = 1",
        "UPDATE articles SET open_price = 2, price = 0",
    ] {
        refuses(&file, change, "CHECK constraint failed");
    }
    // Nothing was asked for: nothing is taken off at Pay.
    refuses(
        &file,
        "UPDATE lines SET gross = 370, discount = 1, sale_discount = 0, total = 369 WHERE sku = 'BAK-201'",
        "that was asked for",
    );
    scene.till.discount_line(sale.lines[0].id, Some(Asked::Amount(50))).await?;
    refuses(
        &file,
        "UPDATE lines SET gross = 370, discount = 51, sale_discount = 0, total = 319 WHERE sku = 'BAK-201'",
        "that was asked for",
    );
    scene.till.discount_sale(sale.id, Some(Asked::Amount(40))).await?;
    scene.till.set_tip(sale.id, Some(Asked::Amount(30))).await?;
    file.execute_batch(
        "UPDATE lines SET gross = 370, discount = 50, sale_discount = 40, total = 280 WHERE sku = 'BAK-201';
         UPDATE lines SET gross = 220, discount = 0, sale_discount = 0, total = 220 WHERE sku = 'CAF-101';
         INSERT INTO sale_taxes SELECT id, 7000, 500, 0 FROM sales",
    )?;
    let freeze = |tip: i64, discount: i64| {
        format!(
            "UPDATE sales SET state = 'paying', number = 1, net = 500, tax = 0, tip = {tip}, discount = {discount},
                 total = 500 + {tip}"
        )
    };
    for (tip, discount) in [(29, 40), (0, 40)] {
        refuses(&file, &freeze(tip, discount), "the discount and the tip that were asked for");
    }
    file.execute("UPDATE sales SET discount_amount = 41", [])?;
    refuses(&file, &freeze(30, 40), "the discount and the tip that were asked for");
    file.execute("UPDATE sales SET discount_amount = NULL", [])?;
    refuses(&file, &freeze(30, 40), "the discount and the tip that were asked for");
    file.execute("UPDATE sales SET discount_amount = 40", [])?;
    assert_eq!(file.execute(&freeze(30, 40), [])?, 1);
    for change in [
        "UPDATE sales SET discount_amount = 41",
        "UPDATE sales SET discount_amount = NULL, discount_percent = 1000",
        "UPDATE sales SET tip_amount = NULL",
        "UPDATE sales SET tip_amount = NULL, tip_percent = 1000",
        "UPDATE sales SET state = 'open', net = NULL, tax = NULL, tip = NULL, discount = NULL, total = NULL, tip_amount = 1",
    ] {
        refuses(&file, change, "its discount and tip do not change");
    }
    Ok(())
}
