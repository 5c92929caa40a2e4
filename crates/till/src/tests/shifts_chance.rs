//! Whatever is sold, moved, refunded and closed in whatever order: every sale and every coin is in one report.

use super::{
    Checked, Scene,
    export_sums::assert_add_up,
    shifts::{assert_agrees, in_cash, moved, opened},
};
use crate::{
    CashPayment, Count, DrawerOpening, OperationQuery, Refund, Sale, Settings, ShiftReport, State, Till, TillError,
};
use checkout::{CashRounding, CashRule};
use proptest::prelude::*;
use protocol::Amount;
use uuid::Uuid;

#[derive(Debug, Clone)]
enum Step {
    Cash(u8),
    Card(State),
    Mixed(State),
    Move(bool, u16),
    Refund(u8),
    NextShift(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let state = || prop::sample::select(vec![State::Approved, State::Declined, State::Unknown]);
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Cash),
        3 => state().prop_map(Step::Card),
        3 => state().prop_map(Step::Mixed),
        2 => (any::<bool>(), any::<u16>()).prop_map(|(is_in, amount)| Step::Move(is_in, amount)),
        1 => any::<u8>().prop_map(Step::Refund),
        1 => any::<u16>().prop_map(Step::NextShift),
    ]
}

/// Rings up something and gives the sale in front.
async fn rung_up(till: &Till, which: u8) -> Checked<Sale> {
    let (sku, quantity) = [("PRO-301", "0.755"), ("BAK-201", "2"), ("CAF-101", "1")][usize::from(which) % 3];
    till.new_sale().await?;
    Ok(till.add_article(sku, Some(quantity)).await?)
}

async fn take(scene: &Scene, step: Step) -> Checked {
    let till = &scene.till;
    match step {
        Step::Cash(which) => {
            let sale = rung_up(till, which).await?;
            let due = till.begin_tender(sale.id).await?.cash_due;
            in_cash(scene, &sale, due).await?;
        }
        Step::Card(state) => {
            let sale = rung_up(till, 1).await?;
            let operation = scene.by_card(&sale, sale.total).await?;
            scene.settle(&operation, state).await?;
            if state != State::Approved {
                till.hold_sale(sale.id).await?;
            }
        }
        Step::Mixed(state) => {
            let sale = rung_up(till, 0).await?;
            let operation = scene.by_card(&sale, 100).await?;
            let dialog = till.begin_tender(sale.id).await?;
            till.pay_cash(CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: dialog.cash_due })
                .await?;
            till.hold_sale(sale.id).await?;
            scene.settle(&operation, state).await?;
        }
        Step::Move(is_in, amount) => {
            let amount = (i64::from(amount) / 5 + 1) * 5;
            let opening = if is_in { DrawerOpening::In(amount) } else { DrawerOpening::Out(amount) };
            match moved(scene, opening, "a move").await {
                Ok(_) | Err(TillError::InvalidAmount(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Step::Refund(amount) => {
            let paid = OperationQuery { state: Some(State::Approved), ..OperationQuery::default() };
            let page = till.operations(paid).await?;
            let Some(payment) = page.operations.iter().find(|one| one.kind == protocol::Kind::Payment) else {
                return Ok(());
            };
            let amount = Amount::new(i64::from(amount).max(1))?;
            match till.refund(Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount }).await {
                Ok(refund) => drop(scene.settle(&refund, State::Approved).await?),
                Err(TillError::OverRefund { .. } | TillError::SaleNotCompleted) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Step::NextShift(counted) => {
            let Some(open) = till.shift().await? else { return Err("no shift".into()) };
            till.count_drawer(Count::Total(counted.into())).await?;
            till.close_shift(open.number).await?;
            // The bank's word on everything that was left open, with no shift open.
            for unknown in
                till.operations(OperationQuery { state: Some(State::Unknown), ..Default::default() }).await?.operations
            {
                scene.settle(&unknown, State::Approved).await?;
            }
            opened(scene, 1_000).await?;
        }
    }
    Ok(())
}

async fn play(steps: Vec<Step>) -> Checked {
    let scene = Scene::new()?;
    let cash = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    opened(&scene, 1_000).await?;
    for step in steps {
        take(&scene, step).await?;
    }
    let Some(open) = scene.till.shift().await? else { return Err("no shift".into()) };
    scene.till.count_drawer(Count::Total(0)).await?;
    scene.till.close_shift(open.number).await?;
    let mut reports = Vec::new();
    for number in 1..=open.number {
        let report = scene.till.z_report(number).await?;
        assert_agrees(&report);
        reports.push(report);
    }
    assert_add_up(&scene, &reports).await?;
    // Together they are all that there is in the file, each sale and each coin once.
    let all = |sum: fn(&ShiftReport) -> i64| reports.iter().map(sum).sum::<i64>();
    let completed = "FROM sales WHERE state = 'completed'";
    assert_eq!(all(|report| report.sales), scene.count(&format!("SELECT count(*) {completed}"))?);
    assert_eq!(all(|report| report.total), scene.count(&format!("SELECT coalesce(sum(total), 0) {completed}"))?);
    assert_eq!(all(|report| report.rounding), scene.count(&format!("SELECT coalesce(sum(rounding), 0) {completed}"))?);
    assert_eq!(
        all(|report| report.card_refunds.amount),
        scene.count("SELECT coalesce(sum(amount), 0) FROM refunds WHERE state = 'approved'")?
    );
    assert_eq!(
        all(|report| report.drawer.expected - report.drawer.float_amount),
        scene.count(
            "SELECT (SELECT coalesce(sum(amount), 0) FROM tenders WHERE kind = 'cash')
                + (SELECT coalesce(sum(CASE kind WHEN 'in' THEN amount ELSE -amount END), 0) FROM drawer_moves)"
        )?
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_sale_and_every_coin_is_in_one_report(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(steps)).unwrap();
    }
}
