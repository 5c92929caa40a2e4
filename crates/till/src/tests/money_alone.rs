//! Money that goes back without goods, by the key of its payment: what a sale, its receipt and its returns say of it.

use super::{Checked, Scene, doctor::found, returns::new as new_return};
use crate::{
    Charge, Goods, LegState, Operation, Refund, ReturnLeg, ReturnedGoods, Sale, SaleState, SalesQuery, State,
    TillError, Total, clock,
};
use protocol::{Amount, CardToken, Currency};
use uuid::Uuid;

fn money(payment: &Operation, amount: i64) -> Checked<Refund> {
    Ok(Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(amount)? })
}

/// A sale of 5.90, of which a card paid 4.20.
async fn partly_paid(scene: &Scene) -> Checked<(Sale, Operation)> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    let payment = scene.settle(&scene.by_card(&sale, 420).await?, State::Approved).await?;
    Ok((scene.till.sale(sale.id).await?, payment))
}

#[tokio::test]
async fn a_sale_under_payment_is_completed_or_given_up_before_money_goes_back() -> Checked {
    let scene = Scene::new()?;
    let (sale, payment) = partly_paid(&scene).await?;
    let wanted = money(&payment, 100)?;
    let refused = scene.till.refund(wanted).await.err().ok_or("it was taken")?;
    assert_eq!(refused.code(), "sale-not-completed");
    assert!(refused.to_string().contains("complete it") && refused.to_string().contains("give it up"), "{refused}");
    assert_eq!(scene.till.sale(sale.id).await?, sale);
    assert_eq!(scene.count("SELECT (SELECT count(*) FROM refunds) + (SELECT count(*) FROM operations)")?, 1);
    // The same click goes through once it is paid, and once.
    assert_eq!(scene.in_cash(&sale, 170).await?.sale.state, SaleState::Completed);
    let refund = scene.till.refund(wanted).await?;
    assert_eq!(scene.till.refund(wanted).await?.key, refund.key);
    Ok(())
}

#[tokio::test]
async fn what_was_charged_with_no_cart_is_given_back_while_it_is_open() -> Checked {
    let scene = Scene::new()?;
    let charge = Charge {
        intent_id: clock::new_id(),
        amount: Amount::new(2_490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa".to_owned())?,
        reference: None,
        accepted_offline: false,
    };
    let payment = scene.till.charge(charge).await?;
    assert_eq!(payment.state, State::Saved);
    let refund = scene.till.refund(money(&payment, 100)?).await?;
    assert_eq!(refund.amount, 100);
    let over = scene.till.refund(money(&payment, 2_400)?).await;
    assert!(matches!(over, Err(TillError::OverRefund { left: 2_390, .. })), "{over:?}");
    Ok(())
}

/// 5.90, of which a card paid 4.20 and got 1.00 of it back, and 1.70 were paid in cash.
async fn with_money_back(scene: &Scene) -> Checked<(Sale, Operation, Operation)> {
    let (sale, payment) = partly_paid(scene).await?;
    scene.in_cash(&sale, 170).await?;
    let refund = scene.till.refund(money(&payment, 100)?).await?;
    Ok((scene.till.sale(sale.id).await?, payment, refund))
}

#[tokio::test]
async fn goods_come_back_after_money_did_and_give_back_what_is_left() -> Checked {
    let scene = Scene::new()?;
    super::shifts::opened(&scene, 1_000).await?;
    let (sale, _, refund) = with_money_back(&scene).await?;
    scene.settle(&refund, State::Approved).await?;
    let priced = scene.till.price_return(sale.id, ReturnedGoods::Whole).await?;
    assert_eq!((priced.total, priced.refunded_before, priced.cash), (590, 100, 170));
    assert_eq!(priced.cards.iter().map(|card| card.amount).collect::<Vec<_>>(), [320]);
    let made = scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((made.total, made.refunded_before), (590, 100));
    let slip = scene.till.return_slip(made.id, None).await?.text;
    for part in [
        "TOTAL                                 5.90",
        "Given back before                    -1.00",
        "GIVEN BACK EUR                        4.90",
    ] {
        assert!(slip.contains(part), "{part} in\n{slip}");
    }
    assert_eq!(scene.till.sales(SalesQuery::default()).await?.sales[0].given_back, 590);
    let x = scene.till.x_report().await?;
    super::shifts::assert_agrees(&x);
    assert_eq!((x.returns.refunded_before, x.returns.total), (Total { count: 1, amount: 100 }, 590));
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

#[tokio::test]
async fn each_piece_comes_back_also_when_the_money_is_gone() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let payment = scene.settle(&scene.by_card(&sale, 590).await?, State::Approved).await?;
    let refund = scene.till.refund(money(&payment, 590)?).await?;
    let pieces = |quantity: &str| {
        ReturnedGoods::Lines(vec![Goods { line_id: sale.lines[0].id, quantity: Some(quantity.to_owned()) }])
    };
    let first = scene.till.return_goods(new_return(&sale, pieces("1"))).await?;
    assert_eq!((first.total, first.refunded_before, first.legs.len()), (185, 185, 0));
    // The bank refuses the money after all: what was not counted yet goes back with the goods.
    scene.settle(&refund, State::Declined).await?;
    let rest = scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await?;
    assert_eq!((rest.total, rest.refunded_before, rest.legs[0].amount), (405, 0, 405));
    let owed = scene.till.owed_refunds().await?;
    assert_eq!(owed.iter().map(|owed| owed.amount).collect::<Vec<_>>(), [185], "of the goods that came back first");
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

#[tokio::test]
async fn a_sale_and_its_receipt_say_what_money_went_back() -> Checked {
    let scene = Scene::new()?;
    let (sale, _, refund) = with_money_back(&scene).await?;
    let key = |leg: &ReturnLeg| leg.operation.as_ref().map(|operation| operation.key);
    let shown: Vec<_> = sale.money_back.iter().map(|leg| (key(leg), leg.amount, leg.state)).collect();
    assert_eq!(shown, [(Some(refund.key), 100, LegState::Settling)]);
    let text = scene.till.receipt(sale.id).await?.text;
    assert!(
        text.contains("GIVEN BACK\nCard visa ··4242                     -1.00\n  Waiting for the bank\n"),
        "{text}"
    );
    scene.settle(&refund, State::Declined).await?;
    assert_eq!(scene.till.sale(sale.id).await?.money_back, []);
    assert!(!scene.till.receipt(sale.id).await?.text.contains("GIVEN BACK"));
    Ok(())
}

#[tokio::test]
async fn the_database_counts_money_that_went_back_once() -> Checked {
    let scene = Scene::new()?;
    let (sale, ..) = with_money_back(&scene).await?;
    let file = scene.file()?;
    file.execute_batch("BEGIN")?;
    file.execute("INSERT INTO return_refunded VALUES ('00000000-0000-4000-8000-000000000001', 101)", [])?;
    let refused = file.execute(
        &format!(
            "INSERT INTO returns SELECT '00000000-0000-4000-8000-000000000001', '{}', 9, 1, 0, 0, 101, NULL, 0, 0",
            sale.id
        ),
        [],
    );
    file.execute_batch("ROLLBACK")?;
    assert!(refused.is_err_and(|error| error.to_string().contains("as money alone")));
    scene.till.return_goods(new_return(&sale, ReturnedGoods::Whole)).await?;
    let file = scene.file()?;
    for change in ["UPDATE return_refunded SET amount = 1", "DELETE FROM return_refunded"] {
        let refused = file.execute(change, []);
        assert!(refused.is_err_and(|error| error.to_string().contains("never changes")), "{change}");
    }
    Ok(())
}

/// Nobody would know of it else: it is in no return and no void.
#[tokio::test]
async fn money_that_the_bank_refused_to_give_back_is_owed_until_it_is_tried_again() -> Checked {
    let scene = Scene::new()?;
    let (sale, payment, refund) = with_money_back(&scene).await?;
    assert_eq!(scene.till.owed_refunds().await?, [], "it waits for the bank");
    scene.settle(&refund, State::Declined).await?;
    let owed = scene.till.owed_refunds().await?;
    let shown: Vec<_> =
        owed.iter().map(|owed| (owed.sale_id, owed.sale_number, owed.amount, owed.operation.key)).collect();
    assert_eq!(shown, [(sale.id, Some(1), 100, refund.key)]);
    let again = scene.till.refund(money(&payment, 100)?).await?;
    assert_eq!(scene.till.owed_refunds().await?, []);
    scene.settle(&again, State::Declined).await?;
    let owed = scene.till.owed_refunds().await?;
    assert_eq!(owed.iter().map(|owed| owed.operation.key).collect::<Vec<_>>(), [again.key], "once, by the last try");
    let plan: Vec<String> = scene
        .file()?
        .prepare("EXPLAIN QUERY PLAN SELECT 1 FROM refunds WHERE return_id IS NULL AND void_id IS NULL AND state = 'declined'")?
        .query_map([], |row| row.get(3))?
        .collect::<Result<_, _>>()?;
    assert!(plan.iter().all(|step| step.contains("refunds_alone_not_given")), "{plan:?}");
    Ok(())
}
