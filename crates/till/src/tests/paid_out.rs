//! Cash in the place of refunds to cards, in however many pieces: together it is what the card paid, rounded once.

use super::{
    Checked, Scene,
    doctor::found,
    returns::{new, settle_legs},
};
use crate::{ArticleDetails, Goods, LegState, NewVoid, ReturnedGoods, Sale, Settings, State, TenderKind, Unit};
use checkout::{CashRounding, CashRule, Rate};
use uuid::Uuid;

/// A till whose coins are of 0.10, with an article of `price`, sold ten times and paid by one card.
async fn paid(rounding: CashRounding, price: i64) -> Checked<(Scene, Sale)> {
    let scene = Scene::new()?;
    let cash = CashRule::new(10, rounding).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    scene.till.save_article(None, article(price)?).await?;
    let sale = scene.till.add_article("SWEET", Some("10")).await?;
    scene.settle(&scene.by_card(&sale, 10 * price).await?, State::Approved).await?;
    Ok((scene, sale))
}

fn article(price: i64) -> Checked<ArticleDetails> {
    Ok(ArticleDetails {
        sku: "SWEET".into(),
        name: "Sweet".into(),
        category: "bakery".into(),
        unit: Unit::Piece,
        price: Some(price),
        tax_rate: Rate::from_thousandths(7_000)?,
        colour: None,
        favourite: false,
        barcodes: Vec::new(),
    })
}

/// Brings one piece back, whose card refuses the refund, and pays that out.
async fn one_piece(scene: &Scene, sale: &Sale) -> Checked<i64> {
    let goods = Goods { line_id: sale.lines[0].id, quantity: Some("1".to_owned()) };
    let made = scene.till.return_goods(new(sale, ReturnedGoods::Lines(vec![goods]))).await?;
    let made = settle_legs(scene, &made, State::Declined).await?;
    let paid_out = scene.till.refund_in_cash(made.legs[0].id, Uuid::now_v7()).await?;
    assert_eq!(paid_out.leg.amount - paid_out.leg.rounding, made.total);
    assert_eq!(scene.till.return_by_id(made.id).await?.legs.last().map(|leg| leg.state), Some(LegState::HandedOver));
    Ok(paid_out.leg.amount)
}

#[tokio::test]
async fn what_is_paid_out_in_pieces_is_together_what_the_card_paid_rounded_once() -> Checked {
    for (rounding, price, pieces) in [
        (CashRounding::Up, 1, [10, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (CashRounding::Down, 9, [0, 10, 10, 10, 10, 10, 10, 10, 10, 10]),
        (CashRounding::Nearest, 3, [0, 10, 0, 0, 10, 0, 0, 0, 10, 0]),
        (CashRounding::Up, 11, [20, 10, 10, 10, 10, 10, 10, 10, 10, 10]),
    ] {
        let (scene, sale) = paid(rounding, price).await?;
        let mut handed = Vec::new();
        for _ in 0..10 {
            handed.push(one_piece(&scene, &sale).await?);
        }
        assert_eq!(handed, pieces, "{rounding:?} {price}");
        assert_eq!(found(&scene).await?.1, [], "{rounding:?} {price}");
    }
    Ok(())
}

/// Before they were rounded together, each was by itself: what was handed over too much is not handed over again.
#[tokio::test]
async fn what_an_older_file_paid_out_too_much_is_counted() -> Checked {
    let (scene, sale) = paid(CashRounding::Up, 11).await?;
    for _ in 0..3 {
        one_piece(&scene, &sale).await?;
    }
    let file = scene.file()?;
    super::migrating::write(&file, "UPDATE cash_refunds SET amount = 20, rounding = 9")?;
    let mut handed = Vec::new();
    for _ in 0..7 {
        handed.push(one_piece(&scene, &sale).await?);
    }
    assert_eq!(handed, [10, 10, 10, 10, 10, 10, 10]);
    Ok(())
}

/// The cards of a sale that was given up are of one sale too.
#[tokio::test]
async fn the_cards_of_a_void_are_paid_out_together() -> Checked {
    let (scene, _) = paid(CashRounding::Up, 1).await?;
    scene.till.new_sale().await?;
    let sale = scene.till.add_article("SWEET", Some("10")).await?;
    for _ in 0..4 {
        scene.settle(&scene.by_card(&sale, 2).await?, State::Approved).await?;
    }
    let void = scene.till.void_sale(NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: None }).await?;
    let mut handed = 0;
    for leg in void.legs.iter().filter(|leg| leg.kind == TenderKind::Card) {
        scene.settle(leg.operation.as_ref().ok_or("no operation")?, State::Declined).await?;
        handed += scene.till.refund_in_cash(leg.id, Uuid::now_v7()).await?.leg.amount;
    }
    assert_eq!((void.legs.len(), handed), (4, 10));
    Ok(())
}
