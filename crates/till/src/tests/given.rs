//! What is given away on a whole sale: the limits of a cashier count all of it, and what was approved is approved for just that.

use super::{
    Checked, Scene,
    frozen::refuses,
    people::{BORIS, by_boris, pin, staffed},
    returns::new,
};
use crate::{Asked, Goods, Person, Refund, ReturnedGoods, Sale, SaleState, State, Till, TillError};
use protocol::Amount;
use uuid::Uuid;

/// 11.00 and 9.25, rung up by Anna.
async fn two_lines() -> Checked<(Scene, Person, Sale)> {
    let (scene, boris, _) = staffed().await?;
    scene.till.add_article("CAF-101", Some("5")).await?;
    let sale = scene.till.add_article("BAK-201", Some("5")).await?;
    assert_eq!(sale.total, 2_025);
    Ok((scene, boris, sale))
}

fn percent(text: &str) -> Result<Option<Asked>, TillError> {
    Asked::percent(text).map(Some)
}

/// What the till says where somebody may not.
fn not_allowed<T: std::fmt::Debug>(done: Result<T, TillError>) -> Checked<String> {
    match done {
        Err(TillError::NotAllowed(why)) => Ok(why),
        other => Err(format!("{other:?}").into()),
    }
}

#[tokio::test]
async fn discounts_of_many_clicks_are_held_against_the_limit_together() -> Checked {
    let (scene, boris, sale) = two_lines().await?;
    let (till, [first, second]) = (&scene.till, [sale.lines[0].id, sale.lines[1].id]);
    till.discount_line(first, Some(Asked::Amount(499))).await?;
    let why = not_allowed(till.discount_line(second, Some(Asked::Amount(499))).await)?;
    let said = "discounts of 9.98 on the whole sale are over Anna's limit of 10 % (here 2.03) or 5.00: it needs the PIN of Boris";
    assert_eq!(why, said);
    not_allowed(till.discount_sale(sale.id, Some(Asked::Amount(2))).await)?;
    not_allowed(till.discount_sale(sale.id, percent("10")?).await)?;
    // Up to the limit it goes, in as many clicks as there are.
    till.discount_sale(sale.id, Some(Asked::Amount(1))).await?;
    by_boris(&scene, &boris).await?.discount_line(second, Some(Asked::Amount(499))).await?;
    // Less than before is asked of nobody.
    till.discount_line(second, Some(Asked::Amount(400))).await?;
    let open = till.open_sale().await?;
    assert_eq!(open.total, 2_025 - 499 - 400 - 1);
    // And what Boris let pass is paid with no PIN.
    assert_eq!(scene.in_cash(&open, 5_000).await?.sale.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn a_part_of_everything_is_within_a_limit_in_percent_however_it_is_given() -> Checked {
    let (scene, _, anna) = staffed().await?;
    let till = &scene.till;
    for way in 0..3 {
        // 14.01 of 140.06, twice, each rounded up: by line it is a cent more than 28.01 of the sum, and more than 5.00 all the same.
        let line = till.add_article("DAI-401", Some("94")).await?.lines[0].id;
        till.set_note(line, "cold").await?;
        let mut sale = till.add_article("DAI-401", Some("94")).await?;
        assert_eq!((sale.lines.len(), sale.total), (2, 28_012));
        match way {
            0 => sale = till.discount_sale(sale.id, percent("10")?).await?,
            1 => {
                for line in sale.lines.clone() {
                    sale = till.discount_line(line.id, percent("10")?).await?;
                }
                // But not twice.
                not_allowed(till.discount_sale(sale.id, percent("10")?).await)?;
                not_allowed(till.discount_sale(sale.id, Some(Asked::Amount(500))).await)?;
            }
            _ => sale = till.discount_line(sale.lines[0].id, Some(Asked::Amount(500))).await?,
        }
        assert_eq!(scene.in_cash(&sale, 100_000).await?.sale.state, SaleState::Completed, "{way}");
        till.new_sale().await?;
    }
    assert!(
        till.as_program("test")
            .audit(None, 0, 500)
            .await?
            .iter()
            .all(|entry| entry.approver_id.is_none_or(|id| id != anna.id))
    );
    Ok(())
}

#[tokio::test]
async fn more_of_a_line_than_was_approved_asks_again() -> Checked {
    let (scene, boris, sale) = two_lines().await?;
    let (till, [first, second]) = (&scene.till, [sale.lines[0].id, sale.lines[1].id]);
    by_boris(&scene, &boris).await?.discount_line(first, percent("50")?).await?;
    not_allowed(till.set_quantity(first, "6").await)?;
    // Of less, and of as much again, nobody is asked; nor where nothing is given away.
    till.set_quantity(first, "1").await?;
    till.set_quantity(first, "5").await?;
    till.set_quantity(second, "6").await?;
    by_boris(&scene, &boris).await?.set_quantity(first, "100").await?;
    till.set_quantity(first, "99").await?;
    let entries = till.audit(Some(sale.id), 0, 100).await?;
    let raised: Vec<_> = entries
        .iter()
        .filter(|entry| entry.what == "quantity-changed")
        .map(|entry| entry.approved_by.clone())
        .collect();
    assert_eq!(raised, [None, None, None, Some("Boris".into()), None]);
    // The same of a price. One above the list's gives nothing away.
    by_boris(&scene, &boris).await?.set_price(second, 100).await?;
    let why = not_allowed(till.set_quantity(second, "7").await)?;
    assert_eq!(why, "another price is not allowed to Anna: it needs the PIN of Boris");
    by_boris(&scene, &boris).await?.set_quantity(second, "7").await?;
    by_boris(&scene, &boris).await?.set_price(second, 300).await?;
    till.set_quantity(second, "8").await?;
    let open = till.open_sale().await?;
    assert_eq!(scene.in_cash(&open, 100_000).await?.sale.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn pay_asks_again_where_more_goes_off_than_was_approved() -> Checked {
    let (scene, boris, sale) = two_lines().await?;
    let till = &scene.till;
    by_boris(&scene, &boris).await?.discount_sale(sale.id, percent("50")?).await?;
    let sale = till.add_article("CAF-101", Some("100")).await?;
    let why = not_allowed(scene.in_cash(&sale, 20_000).await.map_err(refused))?;
    assert!(why.contains("discounts of 120.13 on the whole sale are over Anna's limit of 10 % (here 24.03)"), "{why}");
    not_allowed(scene.by_card(&sale, sale.total).await.map_err(refused))?;
    assert_eq!(till.open_sale().await?, sale, "nothing of it is saved");
    let boss = Scene { till: by_boris(&scene, &boris).await?, dir: tempfile::tempdir()? };
    let card = boss.by_card(&sale, sale.total).await?;
    // Declined and back in the cart: it was let pass, and is asked for no more.
    scene.settle(&card, State::Declined).await?;
    till.back_to_cart(sale.id).await?;
    assert_eq!(scene.in_cash(&sale, 20_000).await?.sale.state, SaleState::Completed);
    let entries = till.audit(Some(sale.id), 0, 100).await?;
    let given: Vec<_> = entries.iter().filter(|entry| entry.what == "given-away").collect();
    assert_eq!((given.len(), given[0].who.as_str(), given[0].approved_by.as_deref()), (1, "Anna", Some("Boris")));
    assert_eq!((&given[0].details["discounts"], &given[0].details["prices"]), (&12_013.into(), &0.into()));
    Ok(())
}

/// The till's own error out of a test's.
fn refused(error: Box<dyn std::error::Error>) -> TillError {
    match error.downcast::<TillError>() {
        Ok(error) => *error,
        Err(other) => TillError::Internal(other.to_string()),
    }
}

#[tokio::test]
async fn what_a_discount_was_measured_by_cannot_go_before_pay() -> Checked {
    let (scene, _, sale) = two_lines().await?;
    let (till, [first, second]) = (&scene.till, [sale.lines[0].id, sale.lines[1].id]);
    // 10 % of a sale of 200.00 and more, and then those 200.00 go.
    let dear = till.add_article("CAF-101", Some("100")).await?;
    till.discount_line(second, Some(Asked::Amount(500))).await?;
    till.discount_sale(sale.id, Some(Asked::Amount(500))).await?;
    assert_eq!(dear.lines[0].id, first, "it is the same line");
    let sale = till.set_quantity(first, "1").await?;
    not_allowed(scene.in_cash(&sale, 20_000).await.map_err(refused))?;
    Ok(())
}

#[tokio::test]
async fn what_a_manager_gives_stays_given_for_the_cashier_who_takes_the_money() -> Checked {
    let (scene, boris, sale) = two_lines().await?;
    let till = &scene.till;
    till.log_in(pin(&boris, BORIS)).await?;
    till.discount_sale(sale.id, percent("50")?).await?;
    let sale = till.set_price(sale.lines[0].id, 100).await?;
    let anna = till.people().await?.into_iter().find(|person| person.name == "Anna").ok_or("no Anna")?;
    till.log_in(pin(&anna, "9031")).await?;
    assert_eq!(scene.in_cash(&sale, 5_000).await?.sale.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn the_file_keeps_what_was_let_pass_with_who_did_and_changes_it_no_more_after_pay() -> Checked {
    let (scene, boris, sale) = two_lines().await?;
    by_boris(&scene, &boris).await?.discount_sale(sale.id, percent("50")?).await?;
    let file = scene.file()?;
    let kept: (i64, i64) = file.query_row("SELECT discount_allowed, discount_allowed_by FROM sales", [], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    assert_eq!(kept, (1_013, boris.id));
    refuses(&file, "UPDATE sales SET discount_allowed_by = NULL", "CHECK constraint failed");
    refuses(&file, "UPDATE sales SET price_allowed = 1", "CHECK constraint failed");
    refuses(&file, "UPDATE sales SET discount_allowed = -1", "CHECK constraint failed");
    refuses(&file, "UPDATE sales SET discount_allowed_by = 99", "FOREIGN KEY constraint failed");
    let sale = scene.till.open_sale().await?;
    scene.by_card(&sale, sale.total).await?;
    refuses(&file, "UPDATE sales SET discount_allowed = 2000", "nobody lets more pass");
    refuses(&file, "UPDATE sales SET price_allowed = 1, price_allowed_by = 1", "nobody lets more pass");
    Ok(())
}

async fn returned(till: &Till, sale: &Sale, quantity: &str) -> Result<crate::Return, TillError> {
    let goods = vec![Goods { line_id: sale.lines[0].id, quantity: Some(quantity.to_owned()) }];
    till.return_goods(new(sale, ReturnedGoods::Lines(goods))).await
}

#[tokio::test]
async fn goods_returned_piece_by_piece_are_held_against_the_limit_together() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let till = &scene.till;
    let sale = till.add_article("CAF-101", Some("40")).await?;
    let sale = scene.in_cash(&sale, 8_800).await?.sale;
    returned(till, &sale, "5").await?;
    let why = not_allowed(returned(till, &sale, "5").await)?;
    let said =
        "a refund of 11.00 makes 22.00 of this sale, which is over Anna's limit of 20.00: it needs the PIN of Boris";
    assert_eq!(why, said);
    returned(till, &sale, "4").await?;
    // What Boris answered for is not Anna's, and gives her nothing more.
    returned(&by_boris(&scene, &boris).await?, &sale, "10").await?;
    not_allowed(returned(till, &sale, "1").await)?;
    // Another sale is another one.
    till.new_sale().await?;
    let other = till.add_article("CAF-101", Some("9")).await?;
    let other = scene.in_cash(&other, 1_980).await?.sale;
    returned(till, &other, "9").await?;
    Ok(())
}

#[tokio::test]
async fn money_given_back_by_key_is_held_against_the_limit_with_all_of_its_sale() -> Checked {
    let (scene, _, _) = staffed().await?;
    let till = &scene.till;
    let sale = till.add_article("CAF-101", Some("40")).await?;
    let payment = scene.by_card(&sale, 8_800).await?;
    scene.settle(&payment, State::Approved).await?;
    let refund = |amount: i64| async move {
        let amount = Amount::new(amount).map_err(|error| TillError::Internal(error.to_string()))?;
        till.refund(Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount }).await
    };
    let first = refund(2_000).await?;
    not_allowed(refund(1).await)?;
    not_allowed(returned(till, &sale, "1").await)?;
    // Of what the bank refused nothing went back.
    scene.settle(&first, State::Declined).await?;
    returned(till, &sale, "4").await?;
    not_allowed(refund(1_121).await)?;
    refund(1_120).await?;
    Ok(())
}
