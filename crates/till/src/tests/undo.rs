//! Undo of the last changes of the open sale.

use super::{Checked, Scene, frozen::refuses};
use crate::{Asked, Sale, State, Till, TillError};
use proptest::prelude::*;
use serde_json::json;

/// What is to be the same again; when it was last changed is not.
fn shown(sale: &Sale) -> Sale {
    Sale { undo: None, ..sale.clone() }
}

#[tokio::test]
async fn each_change_is_taken_back_to_what_was_before_it() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    let empty = till.open_sale().await?;
    let id = empty.id;
    let mut before = vec![empty];
    before.push(till.add_article("BAK-201", None).await?);
    before.push(till.add_article("BAK-201", Some("2")).await?);
    before.push(till.add_article("PRO-301", Some("0.5")).await?);
    let [first, second] = [before[3].lines[0].id, before[3].lines[1].id];
    before.push(till.set_quantity(second, "0.75").await?);
    before.push(till.set_price(first, 99).await?);
    before.push(till.set_note(first, "warm").await?);
    before.push(till.discount_line(first, Some(Asked::percent("10")?)).await?);
    before.push(till.discount_sale(id, Some(Asked::Amount(50))).await?);
    before.push(till.set_tip(id, Some(Asked::Amount(20))).await?);
    before.push(till.remove_line(first).await?);
    before.push(till.add_article("CAF-101", None).await?);
    before.push(till.clear_sale().await?);
    // A kill loses none of it.
    let Scene { till, dir } = scene;
    drop(till);
    let scene = Scene { till: Till::open(&dir.path().join("data"))?, dir };
    let mut now = before.pop().ok_or("a sale")?;
    let mut words = Vec::new();
    while let Some(was) = before.pop() {
        words.extend(now.undo.clone());
        now = scene.till.undo(id).await?;
        assert_eq!(shown(&now), shown(&was), "after {words:?}");
        assert_eq!(now.undo, was.undo);
    }
    assert_eq!(
        words,
        [
            "sale-cleared",
            "article-added",
            "line-removed",
            "tip-changed",
            "sale-discounted",
            "line-discounted",
            "note-changed",
            "price-changed",
            "quantity-changed",
            "article-added",
            "article-added",
            "article-added",
        ]
    );
    assert!(matches!(scene.till.undo(id).await, Err(TillError::NothingToUndo)));
    let entries = scene.till.audit(Some(id), 0, 100).await?;
    let undone: Vec<_> = entries.iter().filter(|entry| entry.what == "change-undone").collect();
    assert_eq!((undone.len(), &undone[2].details["what"]), (12, &"line-removed".into()));
    let line = |sku: &str, quantity: &str, unit_price: i64| {
        json!({
            "sku": sku, "quantity": quantity, "unit_price": unit_price, "list_price": null, "discount": null, "note": null,
        })
    };
    // The first article rung up goes out last, and the audit names what it was.
    let out = json!([{"before": line("BAK-201", "1", 185), "after": null}]);
    assert_eq!(undone[11].details, json!({"what": "article-added", "lines": out}));
    let less = json!([{"before": line("BAK-201", "3", 185), "after": line("BAK-201", "1", 185)}]);
    assert_eq!(undone[10].details["lines"], less);
    let mut dear = line("BAK-201", "3", 99);
    dear["list_price"] = 185.into();
    assert_eq!(undone[7].details["lines"], json!([{"before": dear, "after": line("BAK-201", "3", 185)}]));
    let terms = &undone[4].details;
    assert_eq!(
        (&terms["lines"], &terms["terms"]["before"]["discount"], &terms["terms"]["after"]["discount"]),
        (&json!([]), &json!({"amount": 50}), &json!(null))
    );
    // What was cleared comes back with all its lines.
    assert_eq!(undone[0].details["lines"].as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test]
async fn the_last_fifty_changes_can_be_taken_back() -> Checked {
    let scene = Scene::new()?;
    for _ in 0..60 {
        scene.till.add_article("BAK-201", None).await?;
    }
    let id = scene.till.open_sale().await?.id;
    for left in (10..60).rev() {
        assert_eq!(scene.till.undo(id).await?.lines[0].quantity, left.to_string());
    }
    assert!(matches!(scene.till.undo(id).await, Err(TillError::NothingToUndo)));
    Ok(())
}

#[tokio::test]
async fn what_changes_nothing_cannot_be_taken_back() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let line = sale.lines[0].id;
    scene.till.set_quantity(line, "2").await?;
    scene.till.set_price(line, 185).await?;
    scene.till.set_note(line, "").await?;
    scene.till.discount_line(line, None).await?;
    scene.till.set_tip(sale.id, None).await?;
    assert!(scene.till.add_article("NO-999", None).await.is_err());
    assert_eq!(scene.till.undo(sale.id).await?.lines.len(), 1, "the espresso went, which came last");
    Ok(())
}

#[tokio::test]
async fn pay_ends_it_and_another_sale_has_its_own() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    assert_eq!(scene.count("SELECT count(*) FROM sale_changes")?, 0);
    assert!(matches!(scene.till.undo(sale.id).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::Declined).await?;
    scene.till.back_to_cart(sale.id).await?;
    assert!(matches!(scene.till.undo(sale.id).await, Err(TillError::NothingToUndo)));
    scene.till.add_article("DAI-401", None).await?;
    let next = scene.till.park_sale(sale.id, "Anna").await?;
    assert!(matches!(scene.till.undo(next.id).await, Err(TillError::NothingToUndo)));
    assert!(matches!(scene.till.undo(sale.id).await, Err(TillError::SaleChanged(_))), "it is parked");
    // Parked and resumed it has what it had.
    scene.till.resume_sale(sale.id).await?;
    assert_eq!(scene.till.undo(sale.id).await?.lines.len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_database_keeps_changes_of_open_sales_alone() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let file = scene.file()?;
    refuses(&file, "UPDATE sale_changes SET before = '{}'", "never changes");
    for (row, reason) in [
        ("0, 'x', '{}'", "CHECK constraint failed"),
        ("9, '', '{}'", "CHECK constraint failed"),
        ("9, 'x', '{'", "CHECK constraint failed"),
        ("1, 'x', '{}'", "UNIQUE constraint failed"),
    ] {
        refuses(&file, &format!("INSERT INTO sale_changes SELECT id, {row} FROM sales"), reason);
    }
    scene.by_card(&sale, 590).await?;
    refuses(&file, "INSERT INTO sale_changes SELECT id, 1, 'x', '{}' FROM sales", "only an open sale has changes");
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    Add(usize),
    Quantity(usize, u8),
    Remove(usize),
    Price(usize, i64),
    Discount(usize, i64),
    Note(usize),
    SaleDiscount(i64),
    Tip(i64),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Step::Add),
        2 => (0..4_usize, 1..9_u8).prop_map(|(line, quantity)| Step::Quantity(line, quantity)),
        2 => (0..4_usize).prop_map(Step::Remove),
        1 => (0..4_usize, 0..500_i64).prop_map(|(line, price)| Step::Price(line, price)),
        1 => (0..4_usize, 0..500_i64).prop_map(|(line, amount)| Step::Discount(line, amount)),
        1 => (0..4_usize).prop_map(Step::Note),
        1 => (0..500_i64).prop_map(Step::SaleDiscount),
        1 => (0..500_i64).prop_map(Step::Tip),
        1 => Just(Step::Clear),
    ]
}

async fn take(till: &Till, sale: &Sale, step: &Step) -> Result<Sale, TillError> {
    let line = |at: &usize| sale.lines.get(at % sale.lines.len().max(1)).map_or(0, |line| line.id);
    match step {
        Step::Add(which) => till.add_article(["BAK-201", "CAF-101", "PRO-301", "DAI-401"][*which], None).await,
        Step::Quantity(at, quantity) => till.set_quantity(line(at), &quantity.to_string()).await,
        Step::Remove(at) => till.remove_line(line(at)).await,
        Step::Price(at, price) => till.set_price(line(at), *price).await,
        Step::Discount(at, amount) => till.discount_line(line(at), Some(Asked::Amount(*amount))).await,
        Step::Note(at) => till.set_note(line(at), "a note").await,
        Step::SaleDiscount(amount) => till.discount_sale(sale.id, Some(Asked::Amount(*amount))).await,
        Step::Tip(amount) => till.set_tip(sale.id, Some(Asked::Amount(*amount))).await,
        Step::Clear => till.clear_sale().await,
    }
}

/// Takes the steps, and then takes back all that changed something.
async fn there_and_back(steps: Vec<Step>) -> Checked {
    let scene = Scene::new()?;
    let mut sale = scene.till.open_sale().await?;
    let mut before = Vec::new();
    for step in &steps {
        match take(&scene.till, &sale, step).await {
            Ok(after) => {
                if shown(&after) != shown(&sale) {
                    before.push(sale);
                }
                sale = after;
            }
            Err(TillError::NotFound("line")) => {}
            Err(error) => return Err(error.into()),
        }
    }
    while let Some(was) = before.pop() {
        sale = scene.till.undo(sale.id).await?;
        assert_eq!(shown(&sale), shown(&was));
    }
    assert!(matches!(scene.till.undo(sale.id).await, Err(TillError::NothingToUndo)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_done_is_taken_back_step_by_step(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(there_and_back(steps)).unwrap();
    }
}
