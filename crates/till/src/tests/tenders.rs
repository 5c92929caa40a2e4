//! Every way of paying a sale, mixed and repeated: what is paid, what is rounded and what is still due add up at each moment.

use super::{Checked, Scene, frozen::refuses};
use crate::{
    CardPayment, CashPayment, Sale, SaleState, Settings, State, TakeOffline, TenderKind, TenderState, TillError,
    pay::PARTS_MAX,
};
use checkout::{CashRounding, CashRule};
use proptest::prelude::*;

async fn with_step(step: i64, rounding: CashRounding) -> Checked<Scene> {
    let scene = Scene::new()?;
    let cash = CashRule::new(step, rounding).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    Ok(scene)
}

/// 1.50 + 1.49 + 1.99 = 4.98.
async fn sale_of_498(scene: &Scene) -> Checked<Sale> {
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    scene.till.add_article("DAI-401", None).await?;
    Ok(scene.till.add_article("DAI-402", None).await?)
}

#[tokio::test]
async fn too_little_cash_pays_a_part_and_leaves_the_rest_unrounded() -> Checked {
    let scene = with_step(5, CashRounding::Nearest).await?;
    let sale = sale_of_498(&scene).await?;
    let part = scene.in_cash(&sale, 300).await?;
    assert_eq!((part.change, part.rounding, part.drawer, part.sale.due), (0, 0, 300, 198));
    assert_eq!((part.sale.state, part.sale.paid), (SaleState::Paying, 300));
    // Several count as one: 4.98 is rounded, and not what is left of it.
    let dialog = scene.till.begin_tender(sale.id).await?;
    assert_eq!((dialog.due, dialog.cash_due, dialog.rounding), (198, 200, 2));
    let rest = scene.in_cash(&sale, 500).await?;
    assert_eq!((rest.change, rest.rounding, rest.drawer), (300, 2, 200));
    assert_eq!((rest.sale.state, rest.sale.due, rest.sale.rounding), (SaleState::Completed, 0, 2));
    Ok(())
}

#[tokio::test]
async fn a_card_pays_exactly_what_cash_left_and_nothing_is_rounded() -> Checked {
    let scene = with_step(5, CashRounding::Nearest).await?;
    let sale = sale_of_498(&scene).await?;
    scene.in_cash(&sale, 300).await?;
    let card = scene.by_card(&sale, 198).await?;
    let paid = scene.settle(&card, State::Approved).await?;
    let sale = scene.till.sale(sale.id).await?;
    assert_eq!((sale.rounding, sale.paid, sale.due, paid.receipt_number), (0, 498, 0, Some(1)));
    Ok(())
}

#[tokio::test]
async fn of_several_cards_the_declined_one_leaves_the_others_paid_and_its_part_due() -> Checked {
    let scene = with_step(5, CashRounding::Nearest).await?;
    let sale = sale_of_498(&scene).await?;
    let [first, second, third] =
        [scene.by_card(&sale, 100).await?, scene.by_card(&sale, 150).await?, scene.by_card(&sale, 248).await?];
    scene.settle(&third, State::Approved).await?;
    scene.settle(&second, State::Declined).await?;
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.due, now.paid, now.state), (150, 248, SaleState::Paying));
    assert!(matches!(scene.till.back_to_cart(sale.id).await, Err(TillError::SaleFrozen(_))));
    // Paid in cash while the first is still with the bank.
    let taken = scene.in_cash(&sale, 200).await?;
    assert_eq!((taken.change, taken.rounding, taken.sale.state), (50, 0, SaleState::Paying));
    scene.settle(&first, State::Declined).await?;
    assert_eq!(scene.till.sale(sale.id).await?.due, 100);
    let last = scene.by_card(&sale, 100).await?;
    scene.settle(&last, State::Approved).await?;
    let done = scene.till.sale(sale.id).await?;
    assert_eq!((done.state, done.paid, done.rounding), (SaleState::Completed, 498, 0));
    let replaces: Vec<_> = done.tenders.iter().map(|tender| tender.replaces).collect();
    assert_eq!(replaces, [None, None, None, Some(done.tenders[1].id), Some(done.tenders[0].id)]);
    Ok(())
}

#[tokio::test]
async fn cash_of_nothing_pays_nothing_but_what_is_less_than_a_coin() -> Checked {
    let scene = with_step(5, CashRounding::Nearest).await?;
    let sale = sale_of_498(&scene).await?;
    let nothing = scene.in_cash(&sale, 0).await;
    assert!(nothing.is_err_and(|error| error.to_string().contains("nothing was handed over: 5.00 is due")));
    assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Open);
    let card = scene.by_card(&sale, 496).await?;
    let dialog = scene.till.begin_tender(sale.id).await?;
    assert_eq!((dialog.due, dialog.cash_due, dialog.rounding), (2, 0, -2));
    let taken = scene.in_cash(&sale, 0).await?;
    assert_eq!((taken.rounding, taken.drawer), (-2, 0));
    scene.settle(&card, State::Approved).await?;
    assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn a_sale_has_no_more_parts_than_can_be_added_up_at_each_look() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    for _ in 0..PARTS_MAX {
        scene.in_cash(&sale, 1).await?;
    }
    let refused = scene.in_cash(&sale, 1).await.map(drop);
    assert!(refused.is_err_and(|error| error.to_string().contains("at most 200 parts")));
    assert!(scene.by_card(&sale, 1).await.is_err());
    assert_eq!(scene.till.sale(sale.id).await?.due, 390);
    Ok(())
}

#[tokio::test]
async fn the_database_takes_cash_in_coins_alone() -> Checked {
    let scene = with_step(5, CashRounding::Nearest).await?;
    let sale = sale_of_498(&scene).await?;
    scene.by_card(&sale, 100).await?;
    let file = scene.file()?;
    for (amount, tendered, change) in [(101, 101, 0), (100, 101, 1)] {
        let sql = format!(
            "INSERT INTO tenders (id, sale_id, position, kind, state, amount, tendered, change, created_at, updated_at)
             SELECT '00000000-0000-4000-8000-000000000000', sale_id, 2, 'cash', 'taken', {amount}, {tendered}, {change}, 1, 1
             FROM tenders"
        );
        refuses(&file, &sql, "cash comes in multiples of the step");
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Step {
    /// A part of what is due, in percent.
    Card(u8),
    /// So many coins, also more or fewer than are due.
    Cash(u8),
    /// All that is due, and so many coins more.
    AllCash(u8),
    /// Cash in the place of one of the cards.
    Instead(u8, u8),
    Offline(u8),
    Settle(u8, State),
    BackToCart,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop::sample::select(vec![
        State::Approved,
        State::Approved,
        State::Declined,
        State::Declined,
        State::Cancelled,
        State::Unknown,
        State::NeedsAttention,
    ]);
    prop_oneof![
        5 => (1..=100_u8).prop_map(Step::Card),
        3 => any::<u8>().prop_map(Step::Cash),
        1 => (0..20_u8).prop_map(Step::AllCash),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(which, coins)| Step::Instead(which, coins)),
        1 => any::<u8>().prop_map(Step::Offline),
        6 => (any::<u8>(), state).prop_map(|(which, state)| Step::Settle(which, state)),
        1 => Just(Step::BackToCart),
        2 => Just(Step::Kill),
    ]
}

/// Refused is fine; a fault of the program or the file is not.
fn allowed<T>(done: Result<T, TillError>) -> Checked<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(fault @ (TillError::Internal(_) | TillError::Storage(_) | TillError::Unreadable(_))) => Err(fault.into()),
        Err(_) => Ok(None),
    }
}

async fn take(scene: Scene, sale: &Sale, step: &Step, coin: i64) -> Checked<Scene> {
    let till = &scene.till;
    let cards: Vec<_> =
        till.sale(sale.id).await?.tenders.into_iter().filter(|one| one.kind == TenderKind::Card).collect();
    let card = |which: &u8| cards.get(usize::from(*which) % cards.len().max(1));
    match step {
        Step::Card(percent) => {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)? else { return Ok(scene) };
            let amount = (dialog.due * i64::from(*percent) / 100).max(1);
            let payment =
                CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount, card: "tok_visa".into() };
            allowed(till.pay_card(payment).await)?;
        }
        Step::Cash(coins) => {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)? else { return Ok(scene) };
            let tendered = i64::from(*coins) * coin;
            let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered };
            let taken = allowed(till.pay_cash(payment).await)?;
            let Some(taken) = taken else { return if tendered == 0 { Ok(scene) } else { Err("refused".into()) } };
            assert_eq!(
                (taken.drawer, taken.change),
                (tendered.min(dialog.cash_due), (tendered - dialog.cash_due).max(0))
            );
            assert_eq!(taken.rounding != 0, tendered >= dialog.cash_due && dialog.rounding != 0);
        }
        Step::AllCash(more) => {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)? else { return Ok(scene) };
            let tendered = dialog.cash_due + i64::from(*more) * coin;
            let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered };
            let taken = till.pay_cash(payment).await?;
            assert_eq!((taken.sale.due, taken.rounding), (0, dialog.rounding));
        }
        Step::Instead(which, coins) => {
            let Some(card) = card(which) else { return Ok(scene) };
            let tendered = i64::from(*coins) * coin;
            let payment = CashPayment { tender_id: uuid::Uuid::now_v7(), sale_id: sale.id, tendered };
            allowed(till.pay_cash_instead(payment, card.id).await)?;
        }
        Step::Offline(which) => {
            let Some(card) = card(which) else { return Ok(scene) };
            allowed(till.take_offline(TakeOffline { tender_id: card.id, contact: None, over_limit: false }).await)?;
        }
        Step::Settle(which, state) => {
            let open = cards.iter().filter_map(|card| card.operation.as_ref()).filter(|one| !one.state.is_final());
            let open: Vec<_> = open.collect();
            if let Some(operation) = open.get(usize::from(*which) % open.len().max(1)) {
                scene.settle(operation, *state).await?;
            }
        }
        Step::BackToCart => drop(allowed(till.back_to_cart(sale.id).await)?),
        Step::Kill => return scene.killed(),
    }
    Ok(scene)
}

/// What is shown adds up, and what is in the file is what is shown.
async fn assert_adds_up(scene: &Scene, sale: &Sale, coin: i64) -> Checked {
    let now = scene.till.sale(sale.id).await?;
    assert_eq!(now.total, sale.total);
    let counting: Vec<_> = now.tenders.iter().filter(|tender| tender.state.counts()).collect();
    let covered: i64 = counting.iter().map(|tender| tender.amount).sum();
    assert_eq!(now.total + now.rounding, covered + now.due + now.waived, "{now:?}");
    assert!(now.due >= 0 && now.rounding.abs() < coin, "{now:?}");
    let in_cash = now.tenders.iter().filter(|tender| tender.state == TenderState::Taken);
    assert!(in_cash.clone().all(|tender| tender.amount % coin == 0));
    assert!(now.rounding == 0 || in_cash.count() > 0, "{now:?}");
    let waits = counting.iter().any(|tender| !tender.state.paid() && tender.taken_offline_at.is_none());
    match now.state {
        SaleState::Open => assert_eq!(covered, 0),
        SaleState::Paying => assert!(now.due > 0 || waits, "paid, and not completed: {now:?}"),
        SaleState::Completed => assert!(!waits && now.receipt_number.is_some(), "{now:?}"),
        SaleState::Dropped | SaleState::Voided => return Err("nobody gave it up".into()),
    }
    let states = "SELECT count(*) FROM tenders LEFT JOIN operations
        ON replace(tenders.id, '-', '') = lower(hex(operations.intent_id))
        WHERE tenders.kind = 'card' AND tenders.state IS NOT CASE WHEN operations.state IN ('saved', 'sending', 'unknown') THEN 'settling'
            ELSE operations.state END";
    assert_eq!(scene.count(states)?, 0, "a tender and its operation differ");
    let sums = "SELECT count(*) FROM sales WHERE state = 'completed' AND total + rounding <> (SELECT sum(amount) FROM tenders
        WHERE sale_id = sales.id AND (state IN ('approved', 'taken')
            OR (state IN ('settling', 'needs_attention') AND EXISTS (SELECT 1 FROM taken_offline WHERE tender_id = tenders.id))
            OR EXISTS (SELECT 1 FROM late_declines WHERE tender_id = tenders.id)))";
    assert_eq!(scene.count(sums)?, 0);
    Ok(())
}

async fn play(steps: Vec<Step>, coin: i64, rounding: CashRounding) -> Checked {
    let mut scene = with_step(coin, rounding).await?;
    let sale = sale_of_498(&scene).await?;
    for step in &steps {
        scene = take(scene, &sale, step, coin).await?;
        assert_adds_up(&scene, &sale, coin).await?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_paid_answered_and_killed_the_sale_adds_up_at_each_moment(
        steps in prop::collection::vec(step(), 1..25),
        coin in prop::sample::select(vec![1_i64, 5, 10, 50]),
        rounding in prop::sample::select(vec![CashRounding::Nearest, CashRounding::Up, CashRounding::Down]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(steps, coin, rounding)).unwrap();
    }
}
