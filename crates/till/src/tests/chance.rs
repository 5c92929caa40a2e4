//! Whatever a cashier and a bank do in whatever order, the file adds up.

use super::{Checked, Scene};
use crate::{Asked, CardPayment, CashPayment, Operation, Sale, SaleState, Settings, State, TillError};
use checkout::{CashRounding, CashRule, Rate};
use proptest::prelude::*;
use rusqlite::Connection;

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    /// A part of what is due, in percent.
    Card(u8),
    /// What is due in coins, and so many steps more.
    Cash(u8),
    Settle(u8, State),
    BackToCart,
    Hold,
    Resume,
    New,
    Park,
    Drop,
    Undo,
    Override(i64),
    DiscountLine(Asked),
    DiscountSale(Asked),
    Tip(Asked),
}

fn asked() -> impl Strategy<Value = Asked> {
    let percent = (0..=100_000_i64).prop_filter_map("a rate", |rate| Rate::from_thousandths(rate).ok());
    prop_oneof![percent.prop_map(Asked::Percent), (0..600_i64).prop_map(Asked::Amount)]
}

fn step() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        3 => Just(State::Approved),
        3 => Just(State::Declined),
        1 => Just(State::Cancelled),
        1 => Just(State::Unknown),
        1 => Just(State::NeedsAttention),
    ];
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Add),
        4 => (1..=100u8).prop_map(Step::Card),
        2 => (0..20u8).prop_map(Step::Cash),
        6 => (any::<u8>(), state).prop_map(|(which, state)| Step::Settle(which, state)),
        1 => Just(Step::BackToCart),
        1 => Just(Step::Hold),
        1 => Just(Step::Resume),
        1 => Just(Step::New),
        1 => Just(Step::Park),
        1 => Just(Step::Drop),
        1 => Just(Step::Undo),
        1 => (0..500_i64).prop_map(Step::Override),
        1 => asked().prop_map(Step::DiscountLine),
        1 => asked().prop_map(Step::DiscountSale),
        1 => asked().prop_map(Step::Tip),
    ]
}

/// Refused is fine; a fault of the program or the file is not.
pub(super) fn allowed<T>(done: Result<T, TillError>) -> Result<Option<T>, TillError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(fault @ (TillError::Internal(_) | TillError::Storage(_) | TillError::Unreadable(_))) => Err(fault),
        Err(_) => Ok(None),
    }
}

async fn take(scene: &Scene, step: Step, begun: &mut Vec<Operation>) -> Checked {
    let till = &scene.till;
    let sale = till.open_sale().await?;
    match step {
        Step::Add(which) => {
            let (sku, quantity) = [("PRO-301", "0.755"), ("BAK-201", "2"), ("PAN-608", "1")][usize::from(which) % 3];
            allowed(till.add_article(sku, Some(quantity)).await)?;
        }
        Step::Card(percent) => {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)? else { return Ok(()) };
            let amount = (dialog.due * i64::from(percent) / 100).max(1);
            let payment =
                CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount, card: "tok_visa".to_owned() };
            begun.extend(allowed(till.pay_card(payment).await)?);
        }
        Step::Cash(more) => {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)? else { return Ok(()) };
            let tendered = dialog.cash_due + i64::from(more) * 5;
            let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered };
            let taken = allowed(till.pay_cash(payment).await)?.ok_or("cash for what is due was refused")?;
            assert_eq!(taken.change + taken.drawer, tendered);
        }
        Step::Settle(which, state) => {
            let open: Vec<_> = begun.iter().filter(|operation| !operation.state.is_final()).cloned().collect();
            if let Some(operation) = open.get(usize::from(which) % open.len().max(1)) {
                let settled = scene.settle(operation, state).await?;
                begun.retain(|other| other.key != settled.key);
                begun.push(settled);
            }
        }
        Step::BackToCart => {
            allowed(till.back_to_cart(sale.id).await)?;
        }
        Step::Hold => {
            allowed(till.hold_sale(sale.id).await)?;
        }
        Step::Resume => {
            if let Some(held) = till.held_sales().await?.first() {
                allowed(till.resume_sale(held.id).await)?;
            }
        }
        Step::New => {
            allowed(till.new_sale().await)?;
        }
        Step::Park => {
            allowed(till.park_sale(sale.id, "a name").await)?;
        }
        Step::Drop => {
            allowed(till.drop_sale(sale.id).await)?;
        }
        Step::Undo => {
            allowed(till.undo(sale.id).await)?;
        }
        Step::Override(price) => {
            allowed(till.set_price(sale.lines.first().map_or(0, |line| line.id), price).await)?;
        }
        Step::DiscountLine(asked) => {
            allowed(till.discount_line(sale.lines.last().map_or(0, |line| line.id), Some(asked)).await)?;
        }
        Step::DiscountSale(asked) => {
            allowed(till.discount_sale(sale.id, Some(asked)).await)?;
        }
        Step::Tip(asked) => {
            allowed(till.set_tip(sale.id, Some(asked)).await)?;
        }
    }
    Ok(())
}

fn assert_adds_up(sale: &Sale) {
    assert_eq!(sale.lines.iter().map(|line| line.total).sum::<i64>(), sale.total - sale.tip);
    assert_eq!(sale.lines.iter().map(|line| line.sale_discount).sum::<i64>(), sale.discount);
    assert_eq!(sale.taxes.iter().map(|tax| tax.net + tax.tax).sum::<i64>(), sale.total - sale.tip);
    assert!(sale.lines.iter().all(|line| line.gross - line.discount == line.total && line.total >= 0));
    assert!(sale.due >= 0 && sale.paid >= 0);
    let covered: i64 = sale.tenders.iter().filter(|tender| tender.state.counts()).map(|tender| tender.amount).sum();
    assert_eq!(sale.total + sale.rounding, covered + sale.due, "{sale:?}");
    match sale.state {
        SaleState::Open | SaleState::Dropped => assert_eq!(covered, 0),
        SaleState::Paying | SaleState::Voided => {}
        SaleState::Completed => assert_eq!((sale.due, sale.paid), (0, covered)),
    }
}

fn count(file: &Connection, sql: &str) -> rusqlite::Result<i64> {
    file.query_row(sql, [], |row| row.get(0))
}

async fn play(steps: Vec<Step>, rounding: CashRounding) -> Checked {
    let scene = Scene::new()?;
    let cash = CashRule::new(5, rounding).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    let mut begun = Vec::new();
    for step in steps {
        take(&scene, step, &mut begun).await?;
    }
    let file = scene.file()?;
    let ids: Vec<String> =
        file.prepare("SELECT id FROM sales")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        assert_adds_up(&scene.till.sale(id.parse()?).await?);
    }
    let completed = count(&file, "SELECT count(*) FROM sales WHERE state = 'completed'")?;
    assert_eq!(count(&file, "SELECT coalesce(max(receipt_number), 0) FROM sales")?, completed);
    assert_eq!(count(&file, "SELECT count(*) FROM audit WHERE what = 'sale-completed'")?, completed);
    let cards = count(&file, "SELECT count(*) FROM tenders WHERE kind = 'card'")?;
    assert_eq!(count(&file, "SELECT count(*) FROM operations")?, cards);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_file_adds_up_whatever_happens(
        steps in prop::collection::vec(step(), 1..40),
        rounding in prop::sample::select(vec![CashRounding::Nearest, CashRounding::Up, CashRounding::Down]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(steps, rounding)).unwrap();
    }
}
