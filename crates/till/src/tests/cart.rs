//! The sale in front: saved at each change, figures from the engine.

use super::{Checked, Scene};
use crate::{SaleState, State, Till, TillError};
use uuid::Uuid;

#[tokio::test]
async fn every_change_is_there_after_a_kill() -> Checked {
    let Scene { till, dir } = Scene::new()?;
    till.add_article("BAK-201", Some("2")).await?;
    let sale = till.add_article("PRO-301", Some("0.755")).await?;
    drop(till);
    let again = Till::open(&dir.path().join("data"))?.open_sale().await?;
    assert_eq!(again, sale);
    assert_eq!(again.lines.iter().map(|line| line.quantity.as_str()).collect::<Vec<_>>(), ["2", "0.755"]);
    // 2 × 1.85 and 0.755 × 1.99 = 1.50245.
    assert_eq!((again.lines[0].total, again.lines[1].total, again.total, again.due), (370, 150, 520, 520));
    Ok(())
}

#[tokio::test]
async fn the_same_article_again_raises_the_quantity() -> Checked {
    let scene = Scene::new()?;
    scene.till.add_article("BAK-201", None).await?;
    scene.till.add_article("CAF-101", None).await?;
    // A scanner gives the barcode of the croissant, the ninth article of the catalogue.
    let sale = scene.till.add_article("2000000000091", Some("3")).await?;
    assert_eq!(sale.lines.len(), 2);
    assert_eq!((sale.lines[0].sku.as_str(), sale.lines[0].quantity.as_str()), ("BAK-201", "4"));
    // A price that changed meanwhile is another line: what was rung up stays as it was.
    scene.file()?.execute("UPDATE articles SET price = 195 WHERE sku = 'BAK-201'", [])?;
    let sale = scene.till.add_article("BAK-201", None).await?;
    assert_eq!(sale.lines.iter().map(|line| line.unit_price).collect::<Vec<_>>(), [185, 220, 195]);
    assert_eq!(sale.lines.iter().map(|line| line.position).collect::<Vec<_>>(), [1, 2, 3]);
    Ok(())
}

#[tokio::test]
async fn a_quantity_is_a_decimal_that_the_article_can_have() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.till.add_article("PRO-301", Some("0.5")).await?;
    let weighed = sale.lines[0].id;
    assert_eq!(scene.till.set_quantity(weighed, "1.234").await?.lines[0].quantity, "1.234");
    let piece = scene.till.add_article("BAK-201", None).await?.lines[1].id;
    for (line, wrong) in [
        (weighed, "0"),
        (weighed, "-1"),
        (weighed, "1.2345"),
        (weighed, "1e3"),
        (weighed, "many"),
        (weighed, ""),
        (weighed, "100000"),
        (piece, "1.5"),
    ] {
        let refused = scene.till.set_quantity(line, wrong).await;
        assert!(matches!(refused, Err(TillError::InvalidQuantity(_))), "{wrong:?}: {refused:?}");
    }
    assert!(matches!(scene.till.add_article("BAK-201", Some("99999")).await, Err(TillError::InvalidQuantity(_))));
    let sale = scene.till.open_sale().await?;
    assert_eq!(sale.lines.iter().map(|line| line.quantity.as_str()).collect::<Vec<_>>(), ["1.234", "1"]);
    Ok(())
}

#[tokio::test]
async fn what_changes_nothing_is_not_in_the_audit() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.till.add_article("PRO-301", Some("0.5")).await?;
    let line = sale.lines[0].id;
    for same in ["0.5", "0.500", " 0.5 "] {
        assert_eq!(scene.till.set_quantity(line, same).await?, sale);
    }
    scene.till.save_settings(scene.till.settings().await?).await?;
    scene.till.remove_line(line).await?;
    scene.till.clear_sale().await?;
    scene.till.back_to_cart(sale.id).await?;
    scene.till.resume_sale(sale.id).await?;
    let entries = scene.till.audit(None, 0, 100).await?;
    let whats: Vec<_> = entries.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(whats, ["till-set-up", "sale-emptied", "line-removed"]);
    Ok(())
}

#[tokio::test]
async fn lines_are_removed_and_never_mistaken_for_later_ones() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let gone = sale.lines[1].id;
    assert_eq!(scene.till.remove_line(gone).await?.lines.len(), 1);
    let sale = scene.till.add_article("CAF-101", None).await?;
    assert!(sale.lines.iter().all(|line| line.id != gone));
    assert!(matches!(scene.till.remove_line(gone).await, Err(TillError::NotFound("line"))));
    let cleared = scene.till.clear_sale().await?;
    assert_eq!((cleared.id, cleared.lines.len(), cleared.total), (sale.id, 0, 0));
    let entries = scene.till.audit(Some(sale.id), 0, 100).await?;
    assert_eq!(entries.iter().map(|entry| entry.what.as_str()).collect::<Vec<_>>(), ["line-removed", "sale-cleared"]);
    assert_eq!(entries[1].details["total"], 590);
    Ok(())
}

#[tokio::test]
async fn an_unknown_code_leaves_the_sale_as_it_was() -> Checked {
    let scene = Scene::new()?;
    let before = scene.sale().await?;
    for code in ["", "NO-999", "4006381333931", "' OR 1=1 --", "🥐"] {
        assert!(matches!(scene.till.add_article(code, None).await, Err(TillError::UnknownArticle(_))), "{code:?}");
    }
    assert_eq!(scene.till.open_sale().await?.lines, before.lines);
    Ok(())
}

#[tokio::test]
async fn there_is_one_sale_in_front() -> Checked {
    let scene = Scene::new()?;
    let first = scene.till.open_sale().await?;
    assert_eq!(scene.till.open_sale().await?.id, first.id);
    assert_eq!(scene.till.new_sale().await?.id, first.id);
    assert_eq!((first.state, first.total, first.receipt_number), (SaleState::Open, 0, None));
    let second = scene.file()?.execute(
        "INSERT INTO sales (id, state, held, has_cart, currency, prices_include_tax, cash_step, cash_rounding, created_at,
             updated_at)
         SELECT ?1, 'open', 0, 1, currency, prices_include_tax, cash_step, cash_rounding, created_at, updated_at FROM sales",
        [Uuid::now_v7().to_string()],
    );
    let refused = second.expect_err("a second sale in front").to_string();
    assert!(refused.contains("sales_one_in_front"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_completed_sale_stays_in_front_until_the_cashier_goes_on() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    scene.settle(&operation, State::Approved).await?;
    let Scene { till, dir } = scene;
    drop(till);
    // Started again: the customer has paid, and the first thing to see is that.
    let scene = Scene { till: Till::open(&dir.path().join("data"))?, dir };
    let front = scene.till.open_sale().await?;
    assert_eq!((front.id, front.state, front.receipt_number), (sale.id, SaleState::Completed, Some(1)));
    assert!(matches!(scene.till.add_article("CAF-101", None).await, Err(TillError::SaleChanged(_))));
    let next = scene.till.new_sale().await?;
    assert_eq!((next.state, next.lines.len()), (SaleState::Open, 0));
    assert_eq!(scene.till.open_sale().await?.id, next.id);
    assert!(scene.till.held_sales().await?.is_empty(), "what is completed is not put aside");
    Ok(())
}

#[tokio::test]
async fn looking_at_the_sale_in_front_writes_and_tells_nothing() -> Checked {
    let scene = Scene::new()?;
    scene.till.open_sale().await?;
    let mut told = scene.till.subscribe();
    let commits = scene.till.inner.store.work().commits;
    scene.till.open_sale().await?;
    assert_eq!(scene.till.inner.store.work().commits, commits);
    assert!(told.try_recv().is_err(), "a listener that looks again at each word would never stop");
    Ok(())
}

#[tokio::test]
async fn a_sale_under_payment_is_held_and_taken_up_again() -> Checked {
    let scene = Scene::new()?;
    let paying = scene.sale().await?;
    assert!(matches!(scene.till.hold_sale(paying.id).await, Err(TillError::SaleChanged(_))));
    scene.by_card(&paying, 590).await?;
    assert!(matches!(scene.till.new_sale().await, Err(TillError::SaleFrozen(_))));
    let next = scene.till.hold_sale(paying.id).await?;
    assert!(next.id != paying.id && next.lines.is_empty());
    // The second click finds it held already.
    assert_eq!(scene.till.hold_sale(paying.id).await?.id, next.id);
    assert_eq!(scene.till.held_sales().await?.iter().map(|sale| sale.id).collect::<Vec<_>>(), [paying.id]);
    // What the next customer has is put aside for it, and not lost.
    scene.till.add_article("DAI-401", None).await?;
    let taken_up = scene.till.resume_sale(paying.id).await?;
    assert_eq!((taken_up.id, taken_up.state), (paying.id, SaleState::Paying));
    assert_eq!(scene.till.open_sale().await?.id, paying.id);
    assert_eq!(scene.till.held_sales().await?.iter().map(|sale| sale.id).collect::<Vec<_>>(), [next.id]);
    assert_eq!(scene.till.resume_sale(next.id).await?.lines.len(), 1);
    Ok(())
}

#[tokio::test]
async fn an_unused_sale_goes_when_another_is_taken_up() -> Checked {
    let scene = Scene::new()?;
    let paying = scene.sale().await?;
    scene.by_card(&paying, 590).await?;
    let unused = scene.till.hold_sale(paying.id).await?;
    scene.till.resume_sale(paying.id).await?;
    assert!(matches!(scene.till.sale(unused.id).await, Err(TillError::NotFound("sale"))));
    Ok(())
}
