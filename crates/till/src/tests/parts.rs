//! Any sale, brought back in any parts in any order: together they are what was paid.

use super::{
    Checked, Scene,
    returns::{new, settle_legs},
};
use crate::{
    Asked, Goods, LegState, Return, ReturnState, ReturnedGoods, Sale, Settings, State, TenderKind, TenderState, Till,
    Unit,
};
use checkout::{CashRounding, CashRule, Quantity};
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What is rung up: an article, and how much of it.
fn article() -> impl Strategy<Value = (&'static str, String)> {
    let pieces = prop::sample::select(vec!["BAK-201", "CAF-101", "DAI-401", "DAI-402"]);
    prop_oneof![
        3 => (pieces, 1..6_u32).prop_map(|(sku, pieces)| (sku, pieces.to_string())),
        1 => (1..3_000_u32).prop_map(|grams| ("PRO-301", format!("{}.{:03}", grams / 1_000, grams % 1_000))),
    ]
}

#[derive(Debug, Clone)]
struct Bought {
    articles: Vec<(&'static str, String)>,
    discount: i64,
    tip: i64,
    /// What each card pays of what is due, in percent; cash pays the rest.
    cards: Vec<i64>,
    in_full: bool,
    with_tax: bool,
    coin: i64,
    rounding: CashRounding,
    /// Which lines come back next, and which part of what is left, in percent; what the bank says of the cards.
    parts: Vec<(usize, i64, bool)>,
}

fn bought() -> impl Strategy<Value = Bought> {
    let rule = (
        prop::sample::select(vec![1_i64, 5, 10]),
        prop::sample::select(vec![CashRounding::Nearest, CashRounding::Up, CashRounding::Down]),
    );
    let sale = (prop::collection::vec(article(), 1..5), 0..300_i64, 0..100_i64, any::<bool>());
    let paid = (prop::collection::vec(10..90_i64, 0..3), any::<bool>());
    let parts = prop::collection::vec((0..5_usize, 1..=100_i64, any::<bool>()), 0..8);
    (sale, paid, rule, parts).prop_map(
        |((articles, discount, tip, with_tax), (cards, in_full), (coin, rounding), parts)| Bought {
            articles,
            discount,
            tip,
            cards,
            in_full,
            with_tax,
            coin,
            rounding,
            parts,
        },
    )
}

async fn buy(scene: &Scene, bought: &Bought) -> Checked<Sale> {
    let cash = CashRule::new(bought.coin, bought.rounding).ok_or("no rule")?;
    let settings = Settings { cash, prices_include_tax: bought.with_tax, ..Settings::default() };
    scene.till.save_settings(settings).await?;
    let mut sale = scene.till.open_sale().await?;
    for (sku, quantity) in &bought.articles {
        sale = scene.till.add_article(sku, Some(quantity)).await?;
    }
    scene.till.discount_sale(sale.id, Some(Asked::Amount(bought.discount))).await?;
    scene.till.set_tip(sale.id, Some(Asked::Amount(bought.tip))).await?;
    for percent in &bought.cards {
        let due = scene.till.begin_tender(sale.id).await?.due;
        if due * percent / 100 > 0 {
            scene.settle(&scene.by_card(&sale, due * percent / 100).await?, State::Approved).await?;
        }
    }
    let dialog = scene.till.begin_tender(sale.id).await?;
    if bought.in_full && dialog.due > 0 {
        scene.settle(&scene.by_card(&sale, dialog.due).await?, State::Approved).await?;
    } else {
        scene.in_cash(&sale, dialog.cash_due).await?;
    }
    Ok(scene.till.sale(sale.id).await?)
}

/// The goods of one part: of what is left of a line, so many percent, in whole pieces where it is sold so.
async fn part(till: &Till, sale: &Sale, line: usize, percent: i64) -> Checked<Option<ReturnedGoods>> {
    let left = till.begin_return(sale.id).await?.lines;
    let line = &left[line % left.len()];
    let all: Quantity = line.left.parse()?;
    let step = if line.unit == Unit::Piece { 1_000 } else { 1 };
    let some = all.thousandths() * percent / 100 / step * step;
    let quantity = Quantity::from_thousandths(some)?.to_string();
    let goods = ReturnedGoods::Lines(vec![Goods { line_id: line.line_id, quantity: Some(quantity) }]);
    Ok((some > 0).then_some(goods))
}

async fn there_and_back(bought: Bought) -> Checked {
    let scene = Scene::new()?;
    let sale = buy(&scene, &bought).await?;
    for (line, percent, approved) in &bought.parts {
        let Some(goods) = part(&scene.till, &sale, *line, *percent).await? else { continue };
        let made = scene.till.return_goods(new(&sale, goods)).await?;
        let said = settle_legs(&scene, &made, if *approved { State::Approved } else { State::Declined }).await?;
        for leg in said.legs.iter().filter(|leg| leg.state == LegState::Owed) {
            scene.till.refund_again(leg.id, Uuid::now_v7()).await?;
        }
        settle_legs(&scene, &scene.till.return_by_id(made.id).await?, State::Approved).await?;
    }
    if scene.till.begin_return(sale.id).await?.lines.iter().any(|line| line.left != "0") {
        let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
        settle_legs(&scene, &made, State::Approved).await?;
    }
    let returns = scene.till.returns(sale.id).await?;
    assert!(returns.iter().all(|made| made.state == ReturnState::Done));
    assert_given_back(&sale, &returns);
    let numbers: Vec<_> = returns.iter().map(|made| made.receipt_number).collect();
    assert_eq!(numbers, (2..2 + i64::try_from(returns.len())?).collect::<Vec<_>>());
    Ok(())
}

/// What was paid went back: of each line, of each rate, of each tender, and the tip.
fn assert_given_back(sale: &Sale, returns: &[Return]) {
    for line in &sale.lines {
        let back = returns.iter().flat_map(|made| &made.lines).filter(|back| back.line_id == line.id);
        assert_eq!(back.map(|back| back.amount).sum::<i64>(), line.total, "{}", line.name);
    }
    for tax in &sale.taxes {
        let back: Vec<_> = returns.iter().flat_map(|made| &made.taxes).filter(|back| back.rate == tax.rate).collect();
        let (net, of) = (back.iter().map(|back| back.net).sum::<i64>(), back.iter().map(|back| back.tax).sum::<i64>());
        assert_eq!((net, of), (tax.net, tax.tax), "{} %", tax.rate);
    }
    assert_eq!(returns.iter().map(|made| made.tip).sum::<i64>(), sale.tip);
    assert_eq!(returns.iter().map(|made| made.total).sum::<i64>(), sale.total);
    let mut paid = BTreeMap::<Option<Uuid>, i64>::new();
    for tender in sale.tenders.iter().filter(|tender| tender.state.paid()) {
        *paid.entry((tender.kind == TenderKind::Card).then_some(tender.id)).or_default() += tender.amount;
    }
    let mut back = BTreeMap::<Option<Uuid>, i64>::new();
    let legs = returns.iter().flat_map(|made| &made.legs);
    for leg in legs.filter(|leg| matches!(leg.state, LegState::Approved | LegState::HandedOver)) {
        *back.entry(leg.tender_id).or_default() += leg.amount;
    }
    paid.retain(|_, amount| *amount != 0);
    back.retain(|_, amount| *amount != 0);
    assert_eq!(back, paid, "by tender; no id is cash");
    assert_eq!(returns.iter().map(|made| made.rounding).sum::<i64>(), sale.rounding);
    assert!(sale.tenders.iter().all(|tender| tender.state != TenderState::Settling));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_sale_that_comes_back_in_any_parts_gives_back_exactly_what_was_paid(bought in bought()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(there_and_back(bought)).unwrap();
    }
}
