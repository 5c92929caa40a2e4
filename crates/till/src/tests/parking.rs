//! Sales that are parked under a name, and sales that are given up.

use super::{Checked, Scene, frozen::refuses};
use crate::{CardPayment, SaleState, State, Till, TillError};

#[tokio::test]
async fn several_sales_are_parked_and_resumed_by_name() -> Checked {
    let scene = Scene::new()?;
    let first = scene.sale().await?;
    let next = scene.till.park_sale(first.id, " Table 4 ").await?;
    assert!(next.id != first.id && next.lines.is_empty() && next.name.is_none());
    let second = scene.till.add_article("DAI-401", None).await?;
    scene.till.park_sale(second.id, "Mrs Lang").await?;
    // Another start: they are all there.
    let Scene { till, dir } = scene;
    drop(till);
    let scene = Scene { till: Till::open(&dir.path().join("data"))?, dir };
    let held = scene.till.held_sales().await?;
    let names: Vec<_> = held.iter().map(|sale| (sale.name.as_deref(), sale.total, sale.state)).collect();
    assert_eq!(names, [(Some("Table 4"), 590, SaleState::Open), (Some("Mrs Lang"), 149, SaleState::Open)]);
    let resumed = scene.till.resume_sale(first.id).await?;
    assert_eq!((resumed.id, resumed.held, resumed.lines.len()), (first.id, false, 2));
    assert_eq!(scene.till.add_article("BAK-201", None).await?.total, 775);
    // The other one goes in front, and this one aside with its name.
    scene.till.resume_sale(second.id).await?;
    let held = scene.till.held_sales().await?;
    assert_eq!(
        held.iter().map(|sale| (sale.name.as_deref(), sale.total)).collect::<Vec<_>>(),
        [(Some("Table 4"), 775)]
    );
    let entries = scene.till.audit(Some(first.id), 0, 100).await?;
    let whats: Vec<_> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(whats, ["sale-parked", "sale-resumed"]);
    assert_eq!(entries[0].details["name"], "Table 4");
    Ok(())
}

#[tokio::test]
async fn only_an_open_sale_in_front_with_something_in_it_is_parked() -> Checked {
    let scene = Scene::new()?;
    let empty = scene.till.open_sale().await?;
    assert!(matches!(scene.till.park_sale(empty.id, "nobody").await, Err(TillError::SaleChanged(_))));
    let sale = scene.sale().await?;
    for name in ["", "  ", "two\nlines", &"x".repeat(65), "4111 1111 1111 1111"] {
        let refused = scene.till.park_sale(sale.id, name).await;
        assert!(matches!(refused, Err(TillError::InvalidText(_))), "{name:?}: {refused:?}");
    }
    scene.till.park_sale(sale.id, "Anna").await?;
    assert!(matches!(scene.till.park_sale(sale.id, "Anna").await, Err(TillError::SaleChanged(_))));
    scene.till.resume_sale(sale.id).await?;
    scene.by_card(&sale, 590).await?;
    assert!(matches!(scene.till.park_sale(sale.id, "Anna").await, Err(TillError::SaleFrozen(_))));
    Ok(())
}

#[tokio::test]
async fn a_dropped_sale_is_over_and_stays_as_it_was() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let next = scene.till.drop_sale(sale.id).await?;
    assert!(next.id != sale.id && next.lines.is_empty());
    // The second click.
    assert_eq!(scene.till.drop_sale(sale.id).await?.id, next.id);
    let dropped = scene.till.sale(sale.id).await?;
    assert_eq!(
        (dropped.state, dropped.total, dropped.lines, dropped.undo),
        (SaleState::Dropped, 590, sale.lines, None)
    );
    assert!(scene.till.held_sales().await?.is_empty());
    let line = scene.till.sale(sale.id).await?.lines[0].id;
    // A dialog that was open all the while.
    let payment =
        CardPayment { tender_id: crate::new_id(), sale_id: sale.id, amount: 590, card: "tok_visa".to_owned() };
    for refused in [
        scene.till.resume_sale(sale.id).await.map(drop),
        scene.till.back_to_cart(sale.id).await.map(drop),
        scene.till.hold_sale(sale.id).await.map(drop),
        scene.till.park_sale(sale.id, "x").await.map(drop),
        scene.till.set_quantity(line, "5").await.map(drop),
        scene.till.undo(sale.id).await.map(drop),
        scene.till.begin_tender(sale.id).await.map(drop),
        scene.till.receipt(sale.id).await.map(drop),
        scene.till.pay_card(payment).await.map(drop),
    ] {
        assert!(matches!(refused, Err(TillError::SaleChanged(_))), "{refused:?}");
    }
    let entries = scene.till.audit(Some(sale.id), 0, 100).await?;
    assert_eq!(
        (entries.len(), entries[0].what.as_str(), &entries[0].details["total"]),
        (1, "sale-dropped", &590.into())
    );
    Ok(())
}

#[tokio::test]
async fn a_parked_sale_is_dropped_and_an_unused_one_stays_in_front() -> Checked {
    let scene = Scene::new()?;
    let parked = scene.sale().await?;
    let next = scene.till.park_sale(parked.id, "Anna").await?;
    assert_eq!(scene.till.drop_sale(parked.id).await?.id, next.id);
    assert_eq!(scene.till.drop_sale(next.id).await?.id, next.id);
    assert_eq!(scene.till.sale(next.id).await?.state, SaleState::Open);
    Ok(())
}

#[tokio::test]
async fn a_sale_is_not_dropped_while_a_payment_of_it_counts() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    assert!(matches!(scene.till.drop_sale(sale.id).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::Unknown).await?;
    assert!(matches!(scene.till.drop_sale(sale.id).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::Declined).await?;
    let next = scene.till.drop_sale(sale.id).await?;
    let dropped = scene.till.sale(sale.id).await?;
    assert_eq!((dropped.state, dropped.number, dropped.tenders.len()), (SaleState::Dropped, Some(1), 1));
    // Its number is never another's.
    assert!(next.id != sale.id);
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    assert_eq!(operation.sale_number, Some(2));
    scene.settle(&operation, State::Approved).await?;
    assert!(matches!(scene.till.drop_sale(sale.id).await, Err(TillError::SaleChanged(_))), "it is completed");
    Ok(())
}

#[tokio::test]
async fn the_database_lets_nothing_happen_to_a_dropped_sale() -> Checked {
    let scene = Scene::new()?;
    let paying = scene.sale().await?;
    scene.by_card(&paying, 300).await?;
    scene.till.hold_sale(paying.id).await?;
    let file = scene.file()?;
    refuses(&file, "UPDATE sales SET dropped_at = 1, held = 1 WHERE state = 'paying'", "pays or may have paid");
    let sale = scene.till.add_article("DAI-401", None).await?;
    scene.till.drop_sale(sale.id).await?;
    let of_it = format!("id = '{}'", sale.id);
    for (change, reason) in [
        (format!("UPDATE sales SET dropped_at = NULL WHERE {of_it}"), "dropped never changes"),
        (format!("UPDATE sales SET held = 0 WHERE {of_it}"), "dropped never changes"),
        (format!("UPDATE sales SET name = 'x' WHERE {of_it}"), "dropped never changes"),
        (format!("DELETE FROM sales WHERE {of_it}"), "never goes"),
        (format!("DELETE FROM lines WHERE sale_{of_it}"), "no line is removed"),
        (format!("UPDATE lines SET quantity = 2000 WHERE sale_{of_it}"), "no line changes"),
        (
            format!(
                "INSERT INTO lines (sale_id, sku, name, unit, unit_price, quantity, tax_rate)
                 SELECT id, 'X', 'X', 'piece', 1, 1000, 0 FROM sales WHERE {of_it}"
            ),
            "no line is added",
        ),
        (format!("INSERT INTO sale_changes SELECT id, 1, 'x', '{{}}' FROM sales WHERE {of_it}"), "only an open sale"),
    ] {
        refuses(&file, &change, reason);
    }
    assert_eq!(scene.count("SELECT count(*) FROM sale_changes")?, 0);
    Ok(())
}

#[tokio::test]
async fn those_put_aside_come_in_pages_that_say_whether_there_are_more() -> Checked {
    let scene = Scene::new()?;
    for at in 0..203 {
        let sale = scene.till.add_article("CAF-101", None).await?;
        scene.till.park_sale(sale.id, &format!("table {at}")).await?;
    }
    let first = scene.till.held_page(None).await?;
    assert_eq!((first.sales.len(), first.more), (200, true));
    let rest = scene.till.held_page(first.sales.last().map(|sale| sale.id)).await?;
    let names: Vec<_> = rest.sales.iter().filter_map(|sale| sale.name.as_deref()).collect();
    assert_eq!((names, rest.more), (vec!["table 200", "table 201", "table 202"], false));
    assert_eq!(scene.till.held_sales().await?, first.sales);
    Ok(())
}
