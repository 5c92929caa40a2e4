//! A sale that was paid in part, or not at all, and whose goods come back, in whatever order a bank, a cashier and a customer act: no money
//! goes back that never came in, and in the end all that came in is back.

use super::{
    Checked, Scene,
    chance::allowed,
    doctor::found,
    returns::new,
    shifts::{moved, opened},
};
use crate::{
    CashPayment, CollectAgain, CollectInCash, Count, DrawerOpening, Goods, LateQuery, LateState, LegState, Return,
    ReturnedGoods, Sale, Settings, State, TenderKind, TenderState, Till, Unit,
};
use checkout::{CashRounding, CashRule, Quantity};
use proptest::prelude::*;
use uuid::Uuid;

/// How a part of the sale is paid.
#[derive(Debug, Clone, Copy)]
enum Way {
    Card,
    Offline,
    /// By card, and then in cash in its place.
    CashInstead,
}

#[derive(Debug, Clone)]
enum Step {
    /// The bank's word on one of what is open.
    Bank(usize, State),
    Collect(usize),
    CollectInCash(usize, i64),
    WriteOff(usize),
    /// Of what is left of a line, so many percent.
    Return(usize, i64),
    /// Cancels one of what is open.
    Cancel(usize),
    Again(usize),
    PayOut(usize),
    NextShift,
}

#[derive(Debug, Clone)]
struct Story {
    articles: Vec<(&'static str, String)>,
    tip: i64,
    /// How much of what is due, in percent, and how; then cash pays the rest.
    parts: Vec<(i64, Way)>,
    in_full: bool,
    rounding: CashRounding,
    steps: Vec<Step>,
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        3 => Just(State::Approved),
        4 => Just(State::Declined),
        1 => Just(State::Cancelled),
        1 => Just(State::Unknown),
        1 => Just(State::NeedsAttention),
    ];
    prop_oneof![
        6 => (any::<usize>(), state).prop_map(|(which, state)| Step::Bank(which, state)),
        2 => any::<usize>().prop_map(Step::Collect),
        1 => (any::<usize>(), 0..10_i64).prop_map(|(which, more)| Step::CollectInCash(which, more)),
        2 => any::<usize>().prop_map(Step::WriteOff),
        5 => (any::<usize>(), 1..=100_i64).prop_map(|(line, percent)| Step::Return(line, percent)),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Again),
        1 => any::<usize>().prop_map(Step::PayOut),
        1 => Just(Step::NextShift),
    ]
}

fn story() -> impl Strategy<Value = Story> {
    let pieces = prop::sample::select(vec!["BAK-201", "CAF-101", "DAI-401", "DAI-402"]);
    let article = prop_oneof![
        3 => (pieces, 1..5_u32).prop_map(|(sku, pieces)| (sku, pieces.to_string())),
        1 => (100..2_000_u32).prop_map(|grams| ("PRO-301", format!("{}.{:03}", grams / 1_000, grams % 1_000))),
    ];
    let way = prop_oneof![1 => Just(Way::Card), 4 => Just(Way::Offline), 1 => Just(Way::CashInstead)];
    let sale = (prop::collection::vec(article, 1..4), 0..60_i64);
    let paid = (prop::collection::vec((10..=90_i64, way), 1..4), any::<bool>());
    let rounding = prop::sample::select(vec![CashRounding::Nearest, CashRounding::Up, CashRounding::Down]);
    (sale, paid, rounding, prop::collection::vec(step(), 1..24)).prop_map(
        |((articles, tip), (parts, in_full), rounding, steps)| Story { articles, tip, parts, in_full, rounding, steps },
    )
}

async fn sell(scene: &Scene, story: &Story) -> Checked<Sale> {
    let till = &scene.till;
    let mut sale = till.open_sale().await?;
    for (sku, quantity) in &story.articles {
        sale = till.add_article(sku, Some(quantity)).await?;
    }
    till.set_tip(sale.id, Some(crate::Asked::Amount(story.tip))).await?;
    for (percent, way) in &story.parts {
        let due = till.begin_tender(sale.id).await?.due;
        let amount = (due * percent / 100).max(1);
        match way {
            Way::Card => drop(scene.settle(&scene.by_card(&sale, amount).await?, State::Approved).await?),
            Way::Offline => drop(scene.taken_offline(&sale, amount).await?),
            Way::CashInstead => {
                let card = scene.by_card_tender(&sale, amount).await?;
                let tender_id = till.begin_cash_instead(card).await?.tender_id;
                let tendered = amount / 5 * 5;
                allowed(till.pay_cash_instead(CashPayment { tender_id, sale_id: sale.id, tendered }, card).await)?;
            }
        }
    }
    let mut left = till.sale(sale.id).await?;
    for tender in left.tenders.iter().filter(|tender| tender.state == TenderState::Settling) {
        if let Some(operation) = tender.operation.as_ref().filter(|operation| !operation.accepted_offline) {
            // Cash in its place was refused: it was too little to be a coin.
            scene.settle(operation, State::Cancelled).await?;
        }
    }
    left = till.sale(left.id).await?;
    if left.due > 0 {
        if story.in_full {
            scene.taken_offline(&left, left.due).await?;
        } else {
            let dialog = till.begin_tender(left.id).await?;
            scene.in_cash(&left, dialog.cash_due).await?;
        }
    }
    Ok(till.sale(sale.id).await?)
}

/// One of `of`, if there is any.
fn one<T: Clone>(of: &[T], which: usize) -> Option<T> {
    of.get(which.checked_rem(of.len())?).cloned()
}

/// What the bank may say its word on: payments, and refunds whose payment it approved.
fn open(scene: &Scene) -> Checked<Vec<Uuid>> {
    let file = scene.file()?;
    let mut statement = file.prepare(
        "SELECT id FROM tenders WHERE state IN ('settling', 'needs_attention')
         UNION ALL
         SELECT refunds.id FROM refunds JOIN tenders ON tenders.id = tender_id
         WHERE refunds.state IN ('settling', 'needs_attention') AND tenders.state = 'approved' ORDER BY id",
    )?;
    let ids: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(ids.iter().map(|id| id.parse()).collect::<Result<_, _>>()?)
}

/// The legs that somebody has still to get.
async fn owed(till: &Till) -> Checked<Vec<Uuid>> {
    let returns = till.owed_returns().await?;
    Ok(returns.iter().flat_map(|made| &made.legs).filter(|leg| leg.state == LegState::Owed).map(|leg| leg.id).collect())
}

async fn late(till: &Till, which: usize) -> Checked<Option<Uuid>> {
    let late = till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late;
    Ok(one(&late, which).map(|late| late.tender_id))
}

async fn part(till: &Till, sale: &Sale, line: usize, percent: i64) -> Checked<Option<ReturnedGoods>> {
    let left = till.begin_return(sale.id).await?.lines;
    let Some(line) = one(&left, line) else { return Ok(None) };
    let all: Quantity = line.left.parse()?;
    let step = if line.unit == Unit::Piece { 1_000 } else { 1 };
    let some = all.thousandths() * percent / 100 / step * step;
    let quantity = Quantity::from_thousandths(some)?.to_string();
    let goods = ReturnedGoods::Lines(vec![Goods { line_id: line.line_id, quantity: Some(quantity) }]);
    Ok((some > 0).then_some(goods))
}

async fn take(scene: &Scene, sale: &Sale, step: &Step) -> Checked {
    let till = &scene.till;
    match *step {
        Step::Bank(which, state) => {
            if let Some(id) = one(&open(scene)?, which) {
                scene.settle(&scene.operation_of(id).await?, state).await?;
            }
        }
        Step::Collect(which) => {
            if let Some(late_tender_id) = late(till, which).await? {
                let collect = CollectAgain { tender_id: Uuid::now_v7(), late_tender_id, card: "tok_visa".into() };
                allowed(till.collect_again(collect).await)?;
            }
        }
        Step::CollectInCash(which, more) => {
            let Some(late_tender_id) = late(till, which).await? else { return Ok(()) };
            let Some(dialog) = allowed(till.begin_collecting(late_tender_id).await)? else { return Ok(()) };
            let tendered = dialog.cash_due + more * 5;
            let collect = CollectInCash { tender_id: dialog.tender_id, late_tender_id, tendered };
            allowed(till.collect_in_cash(collect).await)?.ok_or("what is owed was not taken")?;
        }
        Step::WriteOff(which) => {
            if let Some(late_tender_id) = late(till, which).await? {
                allowed(till.write_off(late_tender_id, "gone").await)?;
            }
        }
        Step::Return(line, percent) => {
            if let Some(goods) = part(till, sale, line, percent).await? {
                let price = allowed(till.price_return(sale.id, goods.clone()).await)?;
                let made = allowed(till.return_goods(new(sale, goods)).await)?;
                assert_eq!(price.map(|price| (price.total, price.waived)), made.map(|made| (made.total, made.waived)));
            }
        }
        Step::Cancel(which) => {
            let made = till.returns(sale.id).await?;
            let legs: Vec<_> =
                made.iter().flat_map(|made| &made.legs).filter_map(|leg| leg.operation.clone()).collect();
            if let Some(operation) = one(&legs, which) {
                allowed(till.cancel(operation.key).await)?;
            }
        }
        Step::Again(which) => {
            if let Some(leg) = one(&owed(till).await?, which) {
                till.refund_again(leg, Uuid::now_v7()).await?;
            }
        }
        Step::PayOut(which) => {
            if let Some(leg) = one(&owed(till).await?, which) {
                till.refund_in_cash(leg, Uuid::now_v7()).await?;
            }
        }
        Step::NextShift => {
            let number = till.shift().await?.ok_or("no shift")?.number;
            till.count_drawer(Count::Total(0)).await?;
            till.close_shift(number).await?;
            opened(scene, 100_000).await?;
        }
    }
    Ok(())
}

/// What holds at each moment: what is owed is what nothing covers, and no more is given back than came in or may have.
async fn assert_holds(scene: &Scene, sale: &Sale) -> Checked {
    let now = scene.till.sale(sale.id).await?;
    let counting = now.tenders.iter().filter(|tender| tender.state.counts());
    let covered: i64 = counting.map(|tender| tender.amount).sum();
    assert_eq!(now.total + now.rounding, covered + now.due + now.waived, "{now:?}");
    let late = scene.till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late;
    let open: i64 = late.iter().filter(|late| late.state == LateState::Open).map(|late| late.amount).sum();
    assert_eq!(now.due, open);
    let returns = scene.till.returns(sale.id).await?;
    for tender in now.tenders.iter().filter(|tender| tender.kind == TenderKind::Card && tender.state.counts()) {
        let back: i64 = first_legs(&returns).filter(|leg| leg.tender_id == Some(tender.id)).map(|leg| leg.amount).sum();
        assert!(back <= tender.amount, "{tender:?} {returns:?}");
    }
    let handed: i64 = first_legs(&returns).filter(|leg| leg.kind == TenderKind::Cash).map(|leg| leg.amount).sum();
    assert!(handed <= in_cash(&now), "{returns:?}");
    for made in &returns {
        let legs: i64 =
            made.legs.iter().filter(|leg| leg.replaces.is_none()).map(|leg| leg.amount - leg.rounding).sum();
        assert_eq!(legs + made.waived, made.total);
    }
    Ok(())
}

fn first_legs(returns: &[Return]) -> impl Iterator<Item = &crate::ReturnLeg> {
    returns.iter().flat_map(|made| &made.legs).filter(|leg| leg.replaces.is_none())
}

fn in_cash(sale: &Sale) -> i64 {
    sale.tenders.iter().filter(|tender| tender.kind == TenderKind::Cash).map(|tender| tender.amount).sum()
}

/// The bank has its word on all, all that is left comes back, and whoever has something to get, gets it.
async fn end(scene: &Scene, sale: &Sale) -> Checked {
    let till = &scene.till;
    let settle_all = async |at: usize| -> Checked {
        for (place, id) in open(scene)?.into_iter().enumerate() {
            let state = if (place + at).is_multiple_of(2) { State::Declined } else { State::Approved };
            scene.settle(&scene.operation_of(id).await?, state).await?;
        }
        Ok(())
    };
    settle_all(sale.tenders.len()).await?;
    settle_all(0).await?;
    if till.begin_return(sale.id).await?.lines.iter().any(|line| line.left != "0") {
        till.return_goods(new(sale, ReturnedGoods::Whole)).await?;
    }
    settle_all(1).await?;
    for leg in owed(till).await? {
        till.refund_in_cash(leg, Uuid::now_v7()).await?;
    }
    Ok(())
}

/// All that came in is back, by the way it came, and nothing more.
async fn assert_all_is_back(scene: &Scene, sale: &Sale) -> Checked {
    let (now, returns) = (scene.till.sale(sale.id).await?, scene.till.returns(sale.id).await?);
    assert_eq!(now.due, 0, "{now:?}");
    assert_eq!(returns.iter().map(|made| made.total).sum::<i64>(), now.total);
    for tender in now.tenders.iter().filter(|tender| tender.kind == TenderKind::Card) {
        let legs: Vec<_> = first_legs(&returns).filter(|leg| leg.tender_id == Some(tender.id)).collect();
        if tender.state.paid() {
            assert_eq!(legs.iter().map(|leg| leg.amount).sum::<i64>(), tender.amount, "{tender:?} {returns:?}");
            assert!(legs.iter().all(|leg| matches!(leg.state, LegState::Approved | LegState::Replaced)), "{returns:?}");
        } else {
            assert!(legs.iter().all(|leg| leg.state == LegState::Void), "{tender:?} {returns:?}");
        }
    }
    let handed: i64 = first_legs(&returns).filter(|leg| leg.kind == TenderKind::Cash).map(|leg| leg.amount).sum();
    assert_eq!(handed, in_cash(&now), "{now:?} {returns:?}");
    let open = scene.till.late_declines(LateQuery::default()).await?.late;
    assert!(open.is_empty(), "{open:?}");
    Ok(())
}

async fn play(story: Story) -> Checked {
    let scene = Scene::new()?;
    let cash = CashRule::new(5, story.rounding).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    opened(&scene, 100_000).await?;
    moved(&scene, DrawerOpening::In(100_000), "change").await?;
    let sale = sell(&scene, &story).await?;
    assert_eq!(sale.state, crate::SaleState::Completed, "{sale:?}");
    for step in &story.steps {
        take(&scene, &sale, step).await?;
        assert_holds(&scene, &sale).await?;
    }
    assert_eq!(found(&scene).await?.1, []);
    end(&scene, &sale).await?;
    assert_holds(&scene, &sale).await?;
    assert_all_is_back(&scene, &sale).await?;
    assert_eq!(found(&scene).await?.1, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_money_goes_back_that_never_came_in_and_all_that_did_does(story in story()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(story)).unwrap();
    }
}
