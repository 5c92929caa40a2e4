//! The reports agree with what happened, to the cent: with themselves, and with the audit and the rows, told a second time by
//! `audited`.

use super::{
    Checked, Scene, audited,
    doctor::found,
    export_sums::assert_add_up,
    shifts::{assert_agrees, moved, opened},
};
use crate::{
    Asked, CashPayment, CollectAgain, CollectInCash, Count, DrawerOpening, Goods, LateQuery, LateState, LegState,
    NewReturn, NewVoid, Operation, OperationQuery, ReturnedGoods, Sale, SaleState, Settings, ShiftReport, State,
    TakeOffline, TenderKind, TenderState, TillError,
};
use checkout::{CashRounding, CashRule};
use protocol::Kind;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use uuid::Uuid;

/// What is refused is part of the day; a fault of the program or the file is not.
fn allowed<T>(done: Result<T, TillError>) -> Result<Option<T>, TillError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(fault @ (TillError::Internal(_) | TillError::Storage(_) | TillError::Unreadable(_))) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Closes the shift and gives its report.
async fn closed(scene: &Scene) -> Checked<ShiftReport> {
    let number = scene.till.shift().await?.ok_or("no shift is open")?.number;
    scene.till.count_drawer(Count::Total(0)).await?;
    let report = scene.till.close_shift(number).await?;
    assert_agrees(&report);
    let late = &report.late;
    assert_eq!(late.collected_in_cash.amount + late.rounding, report.drawer.cash_collected, "{report:?}");
    let back = &report.returns;
    assert_eq!(back.cash.amount + back.paid_out.amount + report.voids.cash, report.drawer.cash_refunds, "{report:?}");
    assert_stands(scene, &report)?;
    Ok(report)
}

/// What had no end when the report was made, of all shifts.
fn assert_stands(scene: &Scene, report: &ShiftReport) -> Checked {
    let one = |sql: &str| scene.count(sql);
    let open = "FROM operations WHERE state NOT IN ('approved', 'declined', 'cancelled')";
    assert_eq!(i64::try_from(report.unsettled.len())?, one(&format!("SELECT count(*) {open}"))?);
    let offline = report.unsettled.iter().filter(|one| one.accepted_offline).count();
    assert_eq!(i64::try_from(offline)?, one(&format!("SELECT count(*) {open} AND accepted_offline_at IS NOT NULL"))?);
    let late = "FROM late_declines WHERE ended_at IS NULL";
    assert_eq!(report.late.open.count, one(&format!("SELECT count(*) {late}"))?);
    assert_eq!(report.late.open.amount, one(&format!("SELECT coalesce(sum(amount), 0) {late}"))?);
    Ok(())
}

async fn approved(scene: &Scene, sale: &Sale, amount: i64) -> Checked {
    scene.settle(&scene.by_card(sale, amount).await?, State::Approved).await?;
    Ok(())
}

async fn give_back(scene: &Scene, sale: &Sale, goods: ReturnedGoods) -> Checked<crate::Return> {
    Ok(scene.till.return_goods(NewReturn { id: Uuid::now_v7(), sale_id: sale.id, goods, reason: None }).await?)
}

/// A sale of 4.98, which cash rounds: 0.755 kg at 1.99, 1.49, 1.99.
async fn rounded(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    scene.till.add_article("DAI-401", None).await?;
    Ok(scene.till.add_article("DAI-402", None).await?)
}

async fn fresh(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    scene.sale().await
}

#[tokio::test]
async fn a_shift_of_every_kind_adds_up_to_the_cent_and_the_next_one_has_what_came_later() -> Checked {
    let scene = Scene::new()?;
    let cash = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash, ..Settings::default() }).await?;
    opened(&scene, 10_000).await?;

    // 5.90 by card; 4.98 of which 1.01 by card and 2.00 and the rest in cash: 3.95; 5.90 in cash less 10 % and 0.50, with a tip.
    let by_card = fresh(&scene).await?;
    approved(&scene, &by_card, 590).await?;
    let mixed = rounded(&scene).await?;
    approved(&scene, &mixed, 101).await?;
    scene.in_cash(&mixed, 200).await?;
    scene.in_cash(&mixed, 200).await?;
    let given = fresh(&scene).await?;
    scene.till.discount_line(given.lines[0].id, Some(Asked::percent("10")?)).await?;
    scene.till.discount_sale(given.id, Some(Asked::Amount(50))).await?;
    let given = scene.till.set_tip(given.id, Some(Asked::Amount(37))).await?;
    assert_eq!(given.total, 370 - 37 + 220 - 50 + 37);
    scene.in_cash(&given, 1_000).await?;
    // Three that were taken offline: one pays, one is declined, one is open at the end.
    let mut offline = Vec::new();
    for _ in 0..3 {
        let sale = fresh(&scene).await?;
        offline.push((scene.taken_offline(&sale, 590).await?, scene.till.sale(sale.id).await?));
    }
    scene.settle(&offline[0].0, State::Approved).await?;
    scene.settle(&offline[1].0, State::Declined).await?;
    // An espresso comes back to its card, and all of the mixed one: 1.01 to the card, 3.95 in cash.
    let goods = ReturnedGoods::Lines(vec![Goods { line_id: by_card.lines[1].id, quantity: None }]);
    let made = give_back(&scene, &by_card, goods).await?;
    scene.settle(made.legs[0].operation.as_ref().ok_or("no operation")?, State::Approved).await?;
    let back = give_back(&scene, &mixed, ReturnedGoods::Whole).await?;
    scene.settle(back.legs[0].operation.as_ref().ok_or("no operation")?, State::Declined).await?;
    moved(&scene, DrawerOpening::Out(1_000), "to the safe").await?;

    let z = closed(&scene).await?;
    assert_eq!((z.sales, z.total, z.rounding), (6, 4 * 590 + 498 + 540, -2));
    assert_eq!((z.offline_unsettled.count, z.offline_unsettled.amount), (1, 590));
    assert_eq!((z.returns.returns, z.returns.total, z.returns.rounding), (2, 220 + 498, -2));
    assert_eq!((z.returns.cards.amount, z.returns.cash.amount), (220 + 101, 395));
    assert_eq!((z.late.declined.amount, z.late.open.amount, z.late.collected.amount), (590, 590, 0));
    assert_eq!((z.line_discounts, z.sale_discounts, z.tips), (37, 50, 37));
    assert_eq!(z.drawer.expected, 10_000 + 395 + 540 - 395 - 1_000);
    let text = z.text();
    for told in [
        "    accepted offline, open (1)        5.90",
        "RETURNED EUR                         -7.18",
        "SALES LESS RETURNS                   26.80",
        "DECLINED AFTER THE SALE",
        "Still open, of all shifts (1)         5.90",
        &offline[2].0.short_code,
        "  accepted offline: its goods are gone",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }

    // While none is open: the bank's word, and goods that go back to a card.
    scene.settle(&offline[2].0, State::Declined).await?;
    let back_at_night = give_back(&scene, &offline[0].1, ReturnedGoods::Whole).await?;
    opened(&scene, 0).await?;
    moved(&scene, DrawerOpening::In(1_000), "change").await?;
    scene.till.refund_in_cash(back.legs[0].id, Uuid::now_v7()).await?;
    let collect = |at: usize| CollectAgain {
        tender_id: Uuid::now_v7(),
        late_tender_id: offline[at].1.tenders[0].id,
        card: "tok_visa".into(),
    };
    scene.settle(&scene.till.collect_again(collect(1)).await?, State::Approved).await?;
    scene.till.write_off(offline[2].1.tenders[0].id, "gone").await?;
    let next = closed(&scene).await?;
    assert_eq!((next.sales, next.total, next.tenders.len()), (0, 0, 0));
    assert_eq!((next.returns.total, next.returns.cards.amount, next.returns.paid_out.amount), (590, 590, 100));
    assert_eq!((next.late.declined.amount, next.late.collected.amount), (590, 590));
    assert_eq!((next.late.written_off.amount, next.late.open.count), (590, 0));
    assert_eq!(next.drawer.expected, 1_000 - 100);
    assert_eq!(next.unsettled.len(), back_at_night.legs.len(), "the refund at night is open still");
    assert_told(&scene, &[z, next])
}

#[tokio::test]
async fn what_is_declined_late_and_collected_in_the_same_shift_paid_its_sale_once() -> Checked {
    let scene = Scene::new()?;
    opened(&scene, 0).await?;
    let mut late = Vec::new();
    for _ in 0..2 {
        let sale = fresh(&scene).await?;
        scene.settle(&scene.taken_offline(&sale, 590).await?, State::Declined).await?;
        late.push(scene.till.sale(sale.id).await?.tenders[0].id);
    }
    let (card, cash) = (Uuid::now_v7(), Uuid::now_v7());
    let by_card = CollectAgain { tender_id: card, late_tender_id: late[0], card: "tok_visa".into() };
    scene.settle(&scene.till.collect_again(by_card).await?, State::Approved).await?;
    let in_cash = CollectInCash { tender_id: cash, late_tender_id: late[1], tendered: 600 };
    assert_eq!(scene.till.collect_in_cash(in_cash).await?.change, 10);
    let z = closed(&scene).await?;
    let tenders: Vec<_> = z.tenders.iter().map(|sum| (sum.kind, sum.count, sum.amount)).collect();
    assert_eq!((tenders, z.total), (vec![(TenderKind::Card, 2, 1_180)], 1_180));
    assert_eq!((z.late.declined.amount, z.late.collected.amount, z.late.collected_in_cash.amount), (1_180, 1_180, 590));
    assert_eq!((z.drawer.cash_of_sales, z.drawer.cash_collected, z.drawer.expected), (0, 590, 590));
    assert_told(&scene, &[z])
}

/// Every report is what the audit and the rows say of its shift.
fn assert_told(scene: &Scene, reports: &[ShiftReport]) -> Checked {
    let told = audited::tallies(scene)?;
    for report in reports {
        assert_eq!(audited::tally(report), told.get(&report.number).cloned().unwrap_or_default(), "{}", report.number);
    }
    Ok(())
}

/// A cashier, a bank and customers, by chance.
struct Day {
    scene: Scene,
    rng: StdRng,
}

impl Day {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn any<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.choose(&mut self.rng).cloned()
    }

    async fn ring_up(&mut self) -> Checked<Sale> {
        let till = self.scene.till.clone();
        let mut sale = till.new_sale().await?;
        for _ in 0..self.rng.random_range(1..4) {
            let (sku, quantity) = match self.rng.random_range(0..5) {
                0 => ("PRO-301", format!("0.{:03}", self.rng.random_range(100..999))),
                1 => ("BAK-201", self.rng.random_range(1..5).to_string()),
                2 => ("CAF-101", "1".to_owned()),
                3 => ("DAI-401", self.rng.random_range(1..3).to_string()),
                _ => ("DAI-402", "1".to_owned()),
            };
            sale = till.add_article(sku, Some(&quantity)).await?;
        }
        if self.chance(20) {
            let percent = self.rng.random_range(1..50).to_string();
            till.discount_line(sale.lines[0].id, Some(Asked::percent(&percent)?)).await?;
        }
        if self.chance(20) {
            let amount = self.rng.random_range(1..120);
            till.discount_sale(sale.id, Some(Asked::Amount(amount))).await?;
        }
        if self.chance(20) {
            let amount = self.rng.random_range(1..99);
            till.set_tip(sale.id, Some(Asked::Amount(amount))).await?;
        }
        Ok(till.sale(sale.id).await?)
    }

    /// A part of what is due by card, and what the bank says of it.
    async fn card(&mut self, sale: &Sale, amount: i64) -> Checked {
        let tender_id = self.scene.by_card_tender(sale, amount).await?;
        match self.rng.random_range(0..10) {
            0..=4 => drop(self.settle(tender_id, State::Approved).await?),
            5 => drop(self.settle(tender_id, State::Declined).await?),
            6 => {}
            _ => {
                let take = TakeOffline { tender_id, contact: None, over_limit: false };
                allowed(self.scene.till.take_offline(take).await)?;
            }
        }
        Ok(())
    }

    async fn settle(&self, intent_id: Uuid, state: State) -> Checked<Operation> {
        let operation = self.scene.operation_of(intent_id).await?;
        self.scene.settle(&operation, state).await
    }

    async fn sell(&mut self) -> Checked {
        let till = self.scene.till.clone();
        let sale = self.ring_up().await?;
        if sale.total == 0 || self.chance(8) {
            till.drop_sale(sale.id).await?;
            return Ok(());
        }
        for _ in 0..self.rng.random_range(0..3) {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)?.filter(|dialog| dialog.due > 1) else {
                break;
            };
            let amount = if self.chance(40) { dialog.due } else { self.rng.random_range(1..dialog.due) };
            self.card(&sale, amount).await?;
        }
        for _ in 0..2 {
            let Some(dialog) = allowed(till.begin_tender(sale.id).await)?.filter(|dialog| dialog.due > 0) else {
                break;
            };
            let steps = dialog.cash_due / 5;
            let tendered = if self.chance(30) && steps > 1 {
                self.rng.random_range(1..steps) * 5
            } else {
                dialog.cash_due + self.rng.random_range(0..40) * 5
            };
            let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered };
            allowed(till.pay_cash(payment).await)?;
        }
        if till.sale(sale.id).await?.state == SaleState::Paying {
            till.hold_sale(sale.id).await?;
        }
        Ok(())
    }

    /// The bank's word on one of what is open.
    async fn answer(&mut self) -> Checked {
        let mut open = Vec::new();
        for state in [State::Saved, State::Unknown, State::NeedsAttention] {
            let query = OperationQuery { state: Some(state), ..OperationQuery::default() };
            open.extend(self.scene.till.operations(query).await?.operations);
        }
        let Some(operation) = self.any(&open) else { return Ok(()) };
        let waits = self.scene.file()?.query_row(
            "SELECT count(*) FROM refunds JOIN tenders ON tenders.id = tender_id JOIN operations ON refunds.id = ?1
             WHERE tenders.state <> 'approved' AND operations.key = ?2 AND operations.kind = 'refund'",
            rusqlite::params![self.intent_of(&operation)?, operation.key.as_bytes()],
            |row| row.get::<_, i64>(0),
        )? > 0;
        if operation.kind == Kind::Refund && waits {
            return Ok(());
        }
        let states = [State::Approved, State::Approved, State::Declined, State::Cancelled, State::NeedsAttention];
        let state = self.any(&states).unwrap_or(State::Unknown);
        self.scene.settle(&operation, state).await?;
        Ok(())
    }

    fn intent_of(&self, operation: &Operation) -> Checked<String> {
        let sql = "SELECT intent_id FROM operations WHERE key = ?1";
        let id: Vec<u8> = self.scene.file()?.query_row(sql, [operation.key.as_bytes()], |row| row.get(0))?;
        Ok(Uuid::from_slice(&id)?.to_string())
    }

    async fn take_back(&mut self) -> Checked {
        let last = self.scene.count("SELECT last FROM counters WHERE name = 'receipt'")?;
        let number = self.rng.random_range((last - 30).max(1)..=last.max(1));
        self.take_back_of(number).await
    }

    async fn take_back_of(&mut self, number: i64) -> Checked {
        let till = self.scene.till.clone();
        let Some(begun) = allowed(till.begin_return_of_receipt(number).await)? else { return Ok(()) };
        let goods = match self.any(&begun.lines) {
            Some(line) if self.chance(60) => {
                ReturnedGoods::Lines(vec![Goods { line_id: line.line_id, quantity: None }])
            }
            _ => ReturnedGoods::Whole,
        };
        let new = NewReturn { id: begun.return_id, sale_id: begun.sale.id, goods, reason: None };
        if let Some(made) = allowed(till.return_goods(new).await)? {
            for leg in made.legs.iter().filter(|leg| leg.state == LegState::Settling) {
                let pays = begun.sale.tenders.iter().find(|tender| Some(tender.id) == leg.tender_id);
                if pays.is_some_and(|tender| tender.state == TenderState::Approved) && self.chance(60) {
                    let state = if self.chance(50) { State::Declined } else { State::Approved };
                    self.settle(leg.id, state).await?;
                }
            }
        }
        for made in till.returns(begun.sale.id).await? {
            for leg in made.legs.iter().filter(|leg| leg.state == LegState::Owed) {
                if self.chance(50) {
                    allowed(till.refund_again(leg.id, Uuid::now_v7()).await)?;
                } else {
                    allowed(till.refund_in_cash(leg.id, Uuid::now_v7()).await)?;
                }
            }
        }
        Ok(())
    }

    async fn go_after_late(&mut self) -> Checked {
        let till = self.scene.till.clone();
        let late = till.late_declines(LateQuery::default()).await?.late;
        let Some(late) = self.any(&late) else { return Ok(()) };
        if self.chance(30) {
            allowed(till.write_off(late.tender_id, "gone").await)?;
        } else if self.chance(40) && late.state == LateState::Open {
            let dialog = till.begin_collecting(late.tender_id).await?;
            let tendered = dialog.cash_due + self.rng.random_range(0..10) * 5;
            let (tender_id, late_tender_id) = (dialog.tender_id, late.tender_id);
            allowed(till.collect_in_cash(CollectInCash { tender_id, late_tender_id, tendered }).await)?;
        } else if late.state == LateState::Open {
            let collect =
                CollectAgain { tender_id: Uuid::now_v7(), late_tender_id: late.tender_id, card: "tok_visa".into() };
            allowed(till.collect_again(collect).await)?;
        }
        // And the customer comes with the goods after all.
        if self.chance(60) { self.take_back_of(late.receipt_number.ok_or("it has no receipt")?).await } else { Ok(()) }
    }

    async fn give_up(&mut self) -> Checked {
        let till = self.scene.till.clone();
        for sale in till.held_sales().await? {
            let new = NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: None };
            let Some(void) = allowed(till.void_sale(new).await)? else { continue };
            for leg in void.legs.iter().filter(|leg| leg.state == LegState::Settling) {
                let pays = sale.tenders.iter().find(|tender| Some(tender.id) == leg.tender_id);
                if pays.is_some_and(|tender| tender.state == TenderState::Approved) && self.chance(30) {
                    self.settle(leg.id, State::Declined).await?;
                    allowed(till.refund_in_cash(leg.id, Uuid::now_v7()).await)?;
                }
            }
        }
        Ok(())
    }

    async fn step(&mut self) -> Checked {
        match self.rng.random_range(0..22) {
            0..=9 => self.sell().await,
            10..=12 => self.answer().await,
            13..=15 => self.take_back().await,
            16..=18 => self.go_after_late().await,
            19 => self.give_up().await,
            20 => {
                let amount = self.rng.random_range(1..200) * 5;
                let opening = if self.chance(50) { DrawerOpening::In(amount) } else { DrawerOpening::Out(amount) };
                allowed(moved(&self.scene, opening, "a move").await)?;
                Ok(())
            }
            _ => {
                allowed(moved(&self.scene, DrawerOpening::NoSale, "change for a note").await)?;
                Ok(())
            }
        }
    }
}

#[tokio::test]
async fn two_hundred_shifts_of_chance_are_reported_as_they_were() -> Checked {
    let seed = std::env::var("SHIFTS_SEED").ok().map_or_else(|| Ok(rand::random()), |seed| seed.parse())?;
    println!("SHIFTS_SEED={seed}");
    let mut day = Day { scene: Scene::new()?, rng: StdRng::seed_from_u64(seed) };
    let mut reports = Vec::new();
    for number in 0..200 {
        let rounding = [CashRounding::Nearest, CashRounding::Up, CashRounding::Down][number % 3];
        let cash = CashRule::new(5, rounding).ok_or("no rule")?;
        day.scene
            .till
            .save_settings(Settings { cash, prices_include_tax: number % 2 == 0, ..Settings::default() })
            .await?;
        let float_amount = day.rng.random_range(0..4_000) * 5;
        opened(&day.scene, float_amount).await?;
        for _ in 0..day.rng.random_range(1..6) {
            day.step().await?;
        }
        reports.push(closed(&day.scene).await?);
        // At night the bank answers, and a customer comes back to whom no cash can be given.
        for _ in 0..3 {
            day.answer().await?;
        }
        day.take_back().await?;
    }
    let met = |figure: fn(&ShiftReport) -> i64| reports.iter().map(figure).sum::<i64>() > 0;
    assert!(met(|report| report.returns.cash.amount) && met(|report| report.returns.cards.amount));
    assert!(met(|report| report.late.collected.count) && met(|report| report.late.written_off.count));
    assert!(met(|report| report.voids.cards) && met(|report| report.voids.cash), "nothing was given up");
    assert!(met(|report| report.late.rounding.abs()), "nothing was collected in coins");
    assert!(met(|report| report.offline_unsettled.count), "nothing was open at the end of any shift");
    assert!(met(|report| report.returns.paid_out.count), "no refund was paid out in cash");
    assert!(met(|report| report.late.returned.amount), "nothing came back of what was owed");
    assert!(met(|report| report.late.lost_returned.amount), "nothing came back of what was written off");
    assert_add_up(&day.scene, &reports).await?;
    let (examined, found) = found(&day.scene).await?;
    assert!(examined.sales > 200 && found.is_empty(), "{examined:?} {found:#?}");
    assert_told(&day.scene, &reports)
}
