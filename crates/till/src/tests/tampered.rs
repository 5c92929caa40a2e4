//! A day with everything in it: the doctor finds nothing wrong with it, and names whatever is changed past the till, a figure at a time.

use super::{
    Checked, Scene,
    doctor::{found, tamper},
    returns::{new, settle_legs},
    shifts::{in_cash, moved, opened},
};
use crate::{
    CollectAgain, Count, DrawerOpening, Goods, LateQuery, NewPerson, NewVoid, Operation, Refund, ReturnedGoods, Role,
    Sale, Settings, State,
};
use checkout::{CashRounding, CashRule};
use protocol::Amount;
use rusqlite::Connection;
use uuid::Uuid;

async fn offline(scene: &Scene) -> Checked<(Sale, Operation)> {
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    Ok((sale, card))
}

async fn declined_late(scene: &Scene) -> Checked<Uuid> {
    let (sale, card) = offline(scene).await?;
    scene.settle(&card, State::Declined).await?;
    Ok(scene.till.sale(sale.id).await?.tenders[0].id)
}

async fn collect(scene: &Scene, late_tender_id: Uuid) -> Checked<Operation> {
    let collect = CollectAgain { tender_id: Uuid::now_v7(), late_tender_id, card: "tok_visa".into() };
    Ok(scene.till.collect_again(collect).await?)
}

fn one_of(sale: &Sale) -> ReturnedGoods {
    ReturnedGoods::Lines(vec![Goods { line_id: sale.lines[0].id, quantity: Some("1".to_owned()) }])
}

/// Sales 1 to 9, and two shifts: the first closed, the second open and counted. Nothing of it needs what version 9 brought.
pub(super) async fn plain_day() -> Checked<Scene> {
    let scene = Scene::new()?;
    let till = &scene.till;
    let cash = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    till.save_settings(Settings { cash, ..Settings::default() }).await?;
    till.add_person(NewPerson { name: "Boris".into(), role: Role::Manager, pin: "2847".into() }).await?;
    opened(&scene, 10_000).await?;

    // 1: 1.99 in coins is 2.00, and goes back so.
    let sale = till.add_article("PRO-301", Some("1")).await?;
    in_cash(&scene, &sale, 1_000).await?;
    till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;

    // 2: a card and cash; one of its croissants comes back, then all. A leg is tried again, the other is paid out.
    let sale = scene.sale().await?;
    let declined = scene.by_card(&sale, 300).await?;
    scene.settle(&declined, State::Declined).await?;
    let card = scene.by_card(&sale, 300).await?;
    scene.settle(&card, State::Approved).await?;
    in_cash(&scene, &sale, 1_000).await?;
    let made = till.return_goods(new(&sale, one_of(&sale))).await?;
    let made = settle_legs(&scene, &made, State::Declined).await?;
    till.refund_again(made.legs[0].id, Uuid::now_v7()).await?;
    let made = settle_legs(&scene, &till.return_by_id(made.id).await?, State::Approved).await?;
    assert_eq!(made.legs.len(), 2);
    let made = till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    let made = settle_legs(&scene, &made, State::Declined).await?;
    till.refund_in_cash(made.legs[0].id, Uuid::now_v7()).await?;

    // 3 to 8: taken offline, and then approved, collected, being collected, written off, open, declined after goods came back.
    let (_, card) = offline(&scene).await?;
    scene.settle(&card, State::Approved).await?;
    let late = declined_late(&scene).await?;
    scene.settle(&collect(&scene, late).await?, State::Declined).await?;
    scene.settle(&collect(&scene, late).await?, State::Approved).await?;
    let late = declined_late(&scene).await?;
    collect(&scene, late).await?;
    let late = declined_late(&scene).await?;
    till.write_off(late, "never came back").await?;
    offline(&scene).await?;
    let (sale, card) = offline(&scene).await?;
    till.return_goods(new(&sale, one_of(&sale))).await?;
    scene.settle(&card, State::Declined).await?;

    till.new_sale().await?;
    moved(&scene, DrawerOpening::In(2_000), "change from the bank").await?;
    moved(&scene, DrawerOpening::Out(500), "to the safe").await?;
    moved(&scene, DrawerOpening::NoSale, "change for a note").await?;
    let counted = till.count_drawer(Count::Total(11_500)).await?;
    till.count_drawer(Count::Total(counted.expected)).await?;
    till.close_shift(1).await?;
    opened(&scene, 5_000).await?;
    till.count_drawer(Count::Total(5_000)).await?;

    // 9: under payment, by two cards of which one is not settled.
    let sale = scene.sale().await?;
    let part = scene.by_card(&sale, 190).await?;
    scene.settle(&part, State::Approved).await?;
    scene.by_card(&sale, 400).await?;
    till.hold_sale(sale.id).await?;
    Ok(scene)
}

/// The same, and sales 10 to 12 of which goods came back that nobody had paid.
pub(super) async fn day() -> Checked<Scene> {
    let scene = plain_day().await?;
    let till = &scene.till;

    // Declined late, and then goods come back: of what is owed, of what was written off, of what is owed beside what a card paid.
    let late = declined_late(&scene).await?;
    let sale = till.sale(till.late_declines(LateQuery::default()).await?.late[0].sale_id).await?;
    till.return_goods(new(&sale, one_of(&sale))).await?;
    assert_eq!(till.begin_collecting(late).await?.due, 405);
    let late = declined_late(&scene).await?;
    let sale = till.sale(till.late_declines(LateQuery::default()).await?.late[0].sale_id).await?;
    till.write_off(late, "gone").await?;
    till.return_goods(new(&sale, one_of(&sale))).await?;
    till.new_sale().await?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 300).await?;
    scene.settle(&card, State::Approved).await?;
    let card = scene.taken_offline(&sale, 290).await?;
    scene.settle(&card, State::Declined).await?;
    till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    Ok(scene)
}

#[tokio::test]
async fn a_day_with_everything_in_it_is_right() -> Checked {
    let scene = day().await?;
    let (examined, found) = found(&scene).await?;
    assert_eq!(found, []);
    assert_eq!((examined.sales, examined.operations), (12, 22));
    Ok(())
}

/// What somebody changed, the word that the doctor has for it, and what it is about.
const CHANGES: &[(&str, &str, &str)] = &[
    // Sales, lines, taxes.
    ("UPDATE sales SET total = total + 1 WHERE number = 2", "sale-total", "sale 2"),
    ("UPDATE sales SET total = total - 5, tip = 0, net = net - 5 WHERE number = 2", "sale-paid", "sale 2"),
    ("UPDATE sales SET rounding = rounding - 1 WHERE number = 1", "sale-paid", "sale 1"),
    ("UPDATE lines SET quantity = 3000 WHERE id = 2", "line-figures", "sale 2"),
    ("UPDATE lines SET total = total - 1, discount = discount + 1 WHERE id = 2", "sale-lines", "sale 2"),
    ("UPDATE sale_taxes SET tax = tax - 1 WHERE rate = 19000", "sale-taxes", "sale 2"),
    ("UPDATE sale_taxes SET rate = 18000 WHERE rate = 19000", "tax-table", "sale 2"),
    // Tenders, with what was taken offline.
    ("UPDATE tenders SET amount = 299 WHERE state = 'approved' AND amount = 300", "tender-amount", "of sale 2"),
    ("UPDATE tenders SET amount = 285, tendered = 995 WHERE kind = 'cash' AND amount = 290", "sale-paid", "sale 2"),
    ("UPDATE tenders SET state = 'approved' WHERE state = 'declined' AND amount = 300", "tender-state", "of sale 2"),
    ("DELETE FROM tenders WHERE kind = 'cash' AND amount = 200", "sale-paid", "sale 1"),
    ("DELETE FROM taken_offline WHERE settled_at IS NULL", "taken-offline", "of sale 7"),
    ("DELETE FROM taken_offline WHERE settled_at IS NULL", "sale-paid", "sale 7"),
    ("UPDATE taken_offline SET settled_at = 1 WHERE settled_at IS NULL", "taken-offline", "of sale 7"),
    ("UPDATE late_declines SET state = 'open', reason = NULL WHERE state = 'settled'", "late-decline", "of sale 4"),
    ("UPDATE late_declines SET state = 'settled' WHERE state = 'written_off'", "late-decline", "of sale 6"),
    ("UPDATE late_declines SET amount = 1 WHERE state = 'written_off'", "late-decline", "of sale 6"),
    ("UPDATE late_declines SET amount = 1, returned = 589 WHERE state = 'collecting'", "late-decline", "of sale 5"),
    ("DELETE FROM late_declines WHERE state = 'written_off'", "sale-paid", "sale 6"),
    ("DELETE FROM late_declines WHERE state = 'collecting'", "sale-paid", "sale 5"),
    // Refunds and returns.
    ("UPDATE refunds SET amount = 184 WHERE state = 'approved'", "refund-amount", "of sale 2"),
    ("UPDATE refunds SET state = 'approved' WHERE amount = 115", "refund-state", "of sale 2"),
    ("UPDATE refunds SET replaces = NULL WHERE replaces IS NOT NULL", "return-legs", "of sale 2"),
    ("UPDATE refunds SET return_id = NULL WHERE amount = 115", "return-legs", "of sale 2"),
    ("UPDATE returns SET total = total - 1 WHERE receipt_number = 2", "return-figures", "return 2 of sale 1"),
    (
        "UPDATE returns SET net = net - 1, tax = tax + 1 WHERE receipt_number = 4",
        "return-figures",
        "return 4 of sale 2",
    ),
    ("UPDATE return_lines SET amount = 184 WHERE amount = 185", "return-figures", "of sale 2"),
    ("UPDATE return_lines SET quantity = 2000 WHERE amount = 185", "return-figures", "of sale 2"),
    ("UPDATE return_lines SET line_id = 1 WHERE amount = 220", "return-figures", "of sale 2"),
    ("UPDATE return_taxes SET tax = tax + 1", "return-figures", "of sale 2"),
    ("DELETE FROM return_taxes WHERE rate = 19000", "return-figures", "of sale 2"),
    ("UPDATE cash_refunds SET amount = 205, rounding = 6 WHERE amount = 200", "return-legs", "return 2 of sale 1"),
    ("UPDATE cash_refunds SET amount = 205 WHERE amount = 200", "return-legs", "return 2 of sale 1"),
    ("UPDATE cash_refunds SET amount = 205 WHERE amount = 200", "drawer-refund", "cash refund"),
    ("UPDATE cash_refunds SET amount = 110, rounding = 0 WHERE amount = 115", "return-legs", "of sale 2"),
    ("DELETE FROM cash_refunds WHERE amount = 290", "return-legs", "of sale 2"),
    ("DELETE FROM cash_refunds WHERE amount = 290", "drawer-refund", "cash refund"),
    ("UPDATE cash_refunds SET shift = 2 WHERE amount = 200", "drawer-refund", "cash refund"),
    ("UPDATE return_waived SET amount = amount - 1 WHERE was_lost = 0", "return-legs", "of sale 10"),
    ("UPDATE return_waived SET rest = rest + 1 WHERE rest = 405 AND was_lost = 0", "late-decline", "of sale 10"),
    ("UPDATE return_waived SET rest = rest - 1 WHERE rest = 405 AND was_lost = 0", "late-decline", "of sale 10"),
    ("UPDATE return_waived SET was_lost = 1 WHERE rest = 405", "late-decline", "of sale 10"),
    (
        "UPDATE late_declines SET amount = 415, returned = 175 WHERE state = 'open' AND returned = 185 AND amount = 405",
        "late-decline",
        "of sale 10",
    ),
    ("DELETE FROM return_waived WHERE was_lost = 1", "return-legs", "of sale 11"),
    ("UPDATE return_waived SET rest = rest + 1 WHERE was_lost = 1", "late-decline", "of sale 11"),
    (
        "UPDATE return_waived SET return_id = (SELECT id FROM returns WHERE receipt_number = 2) WHERE was_lost = 1",
        "late-decline",
        "of sale 11",
    ),
    ("UPDATE return_waived SET rest = 1 WHERE rest = 0", "return-legs", "of sale 12"),
    ("DELETE FROM return_waived WHERE rest = 0", "return-legs", "of sale 12"),
    ("UPDATE late_declines SET amount = 589, returned = 1 WHERE state = 'written_off'", "late-decline", "of sale 6"),
    // Operations.
    ("UPDATE operations SET amount = 299 WHERE amount = 300 AND state = 'approved'", "tender-amount", "of sale 2"),
    ("UPDATE operations SET amount = 399 WHERE amount = 400", "operation-request", "operation"),
    ("UPDATE operations SET state = 'approved', settled_at = 1 WHERE amount = 400", "tender-state", "of sale 9"),
    ("DELETE FROM operations WHERE amount = 185 AND state = 'approved'", "operation-missing", "of sale 2"),
    // Shifts.
    ("UPDATE shifts SET float_amount = 9995 WHERE number = 1", "shift-drawer", "shift 1"),
    ("UPDATE shifts SET float_amount = 4995 WHERE number = 2", "shift-drawer", "shift 2"),
    ("UPDATE shifts SET counted = counted - 5 WHERE number = 1", "shift-count", "shift 1"),
    ("UPDATE shifts SET expected = expected - 5, counted = counted - 5 WHERE number = 1", "shift-drawer", "shift 1"),
    ("UPDATE shifts SET report = json_set(report, '$.total', 1) WHERE number = 1", "shift-report", "shift 1"),
    ("UPDATE shifts SET report = json_set(report, '$.shopName', 'x') WHERE number = 1", "shift-report", "shift 1"),
    ("UPDATE shifts SET number = 7 WHERE number = 2", "shift-number-gap", "shift 2 to 6"),
    ("UPDATE drawer_counts SET counted = counted - 5 WHERE shift = 1 AND counted <> 11500", "shift-count", "shift 1"),
    ("UPDATE drawer_counts SET counted = 5005 WHERE shift = 2", "shift-count", "shift 2"),
    ("DELETE FROM drawer_counts WHERE shift = 2", "shift-count", "shift 2"),
    ("UPDATE drawer_moves SET amount = 495 WHERE kind = 'out'", "drawer-move", "of shift 1"),
    ("DELETE FROM drawer_moves WHERE kind = 'in'", "drawer-move", "move"),
    ("DELETE FROM drawer_moves WHERE kind = 'refund' AND amount = 200", "drawer-refund", "cash refund"),
    ("UPDATE sales SET shift = 2 WHERE number = 1", "shift-report", "shift 1"),
    ("UPDATE sales SET shift = NULL WHERE number = 1", "shift-unknown", "sale 1"),
    ("UPDATE tenders SET shift = 3 WHERE kind = 'cash'", "shift-unknown", "cash tender"),
    ("UPDATE refunds SET shift = NULL", "shift-unknown", "refund"),
    ("UPDATE returns SET shift = 9", "shift-unknown", "return 2"),
    ("UPDATE returns SET shift = 2 WHERE receipt_number = 2", "shift-report", "shift 1"),
    ("UPDATE cash_refunds SET shift = 9", "shift-unknown", "cash refund"),
    ("UPDATE late_declines SET declined_shift = 9", "shift-unknown", "late decline"),
    ("UPDATE late_declines SET ended_shift = 9 WHERE ended_at IS NOT NULL", "shift-unknown", "ended late decline"),
    // Numbers, the audit, people.
    ("UPDATE returns SET receipt_number = 99 WHERE receipt_number = 5", "receipt-number-gap", "receipt number 5"),
    ("UPDATE returns SET receipt_number = 1 WHERE receipt_number = 2", "number-twice", "receipt number 1"),
    ("UPDATE sales SET number = 16 WHERE number = 12", "sale-number-gap", "sale number 12 to 15"),
    ("UPDATE audit SET details = replace(details, '590', '591') WHERE seq = 9", "audit-chain", "audit entry 9"),
    ("UPDATE audit SET who = 'Anna' WHERE seq = 12", "audit-chain", "audit entry 12"),
    ("DELETE FROM audit WHERE seq = 5", "audit-gap", "audit entry 5"),
    ("DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)", "audit-chain", "audit entry"),
    ("UPDATE people SET role = 'cashier'", "people-manager", "people"),
    ("UPDATE people SET pin = '$argon2id$v=19$x'", "person-pin", "person 1 (Boris)"),
    ("DELETE FROM rights WHERE name = 'refund' AND role = 'cashier'", "rights-missing", "right refund of a cashier"),
    ("UPDATE rights SET allowed = 0 WHERE name = 'people'", "rights-missing", "right people of a manager"),
];

#[tokio::test]
async fn each_figure_that_was_changed_past_the_till_is_named() -> Checked {
    each_is_named(day().await?, CHANGES).await
}

/// A till over a file with a change.
fn changed(whole: &[u8], change: &str) -> Checked<Scene> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir(dir.path().join("data"))?;
    std::fs::write(dir.path().join("data/till.db"), whole)?;
    tamper(dir.path(), change)?;
    Ok(Scene { till: crate::Till::open(&dir.path().join("data"))?, dir })
}

/// Makes each change on a copy of the scene's file, and asks the doctor.
async fn each_is_named(scene: Scene, changes: &[(&str, &str, &str)]) -> Checked {
    drop(scene.till);
    let whole = std::fs::read(scene.dir.path().join("data/till.db"))?;
    for (change, code, named) in changes {
        let (_, found) = found(&changed(&whole, change)?).await?;
        let is_named = found.iter().any(|finding| finding.code == *code && finding.subject.contains(named));
        assert!(is_named, "{code} of {named} after {change} in {found:#?}");
    }
    Ok(())
}

/// Sales 1 to 3 that were voided in a closed shift, and 4 that was paid. Of 1 the card's refund was tried again; of 2 money went back before
/// the void, which the bank refused after it; 3 was taken offline and declined.
pub(super) async fn day_of_voids() -> Checked<Scene> {
    let scene = Scene::new()?;
    let till = &scene.till;
    opened(&scene, 10_000).await?;
    let void = |sale: &Sale| NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: None };

    let sale = scene.sale().await?;
    scene.settle(&scene.by_card(&sale, 300).await?, State::Approved).await?;
    scene.settle(&scene.by_card(&sale, 290).await?, State::Declined).await?;
    scene.in_cash(&sale, 100).await?;
    let made = till.void_sale(void(&sale)).await?;
    scene.settle(made.legs[0].operation.as_ref().ok_or("no operation")?, State::Declined).await?;
    let again = till.refund_again(made.legs[0].id, Uuid::now_v7()).await?;
    scene.settle(&again, State::Approved).await?;

    till.new_sale().await?;
    let sale = scene.sale().await?;
    let payment = scene.by_card(&sale, 350).await?;
    scene.settle(&payment, State::Approved).await?;
    let before = Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(110)? };
    let before = scene.money_back(before).await?;
    till.void_sale(void(&sale)).await?;
    scene.settle(&before, State::Declined).await?;

    till.new_sale().await?;
    let sale = scene.sale().await?;
    let payment = scene.taken_offline(&sale, 250).await?;
    till.void_sale(void(&sale)).await?;
    scene.settle(&payment, State::Declined).await?;

    till.new_sale().await?;
    let sale = scene.sale().await?;
    in_cash(&scene, &sale, 1_000).await?;
    let counted = till.count_drawer(Count::Total(10_590)).await?;
    assert_eq!(counted.difference, 0);
    till.close_shift(1).await?;
    Ok(scene)
}

/// What was changed of a void, or of what a sale is found by.
const VOIDED: &[(&str, &str, &str)] = &[
    ("UPDATE voids SET cards = 299 WHERE cards = 300", "void-legs", "sale 1"),
    ("UPDATE voids SET cash = 105 WHERE cash = 100", "void-legs", "sale 1"),
    ("UPDATE voids SET created_at = created_at + 1 WHERE cards = 300", "sale-void", "sale 1"),
    ("UPDATE sales SET voided_at = NULL WHERE number = 1", "sale-void", "sale 1"),
    ("UPDATE sales SET voided_at = 5 WHERE number = 4", "sale-void", "sale 4"),
    ("UPDATE voids SET sale_id = (SELECT id FROM sales WHERE number = 4) WHERE cards = 300", "sale-void", "sale 4"),
    ("UPDATE voids SET sale_id = (SELECT id FROM sales WHERE number = 4) WHERE cards = 300", "sale-void", "sale 1"),
    ("DELETE FROM voids WHERE cards = 300", "sale-void", "sale 1"),
    ("UPDATE sales SET state = 'open' WHERE number = 3", "sale-void", "sale 3"),
    ("UPDATE cash_refunds SET amount = 95", "void-legs", "sale 1"),
    ("UPDATE cash_refunds SET rounding = 1", "void-legs", "sale 1"),
    ("DELETE FROM cash_refunds", "void-legs", "sale 1"),
    ("DELETE FROM refunds WHERE amount = 240", "void-legs", "sale 2"),
    ("UPDATE refunds SET void_id = NULL WHERE amount = 240", "void-legs", "sale 2"),
    ("UPDATE refunds SET amount = 119 WHERE amount = 110", "refund-amount", "of sale 2"),
    ("UPDATE refunds SET state = 'approved' WHERE amount = 110 AND state = 'declined'", "refund-state", "of sale 2"),
    ("DELETE FROM refunds WHERE amount = 110", "void-legs", "sale 2"),
    ("UPDATE refunds SET replaces = NULL WHERE replaces IS NOT NULL", "refund-over", "of sale 1"),
    ("UPDATE refunds SET amount = 299 WHERE replaces IS NOT NULL", "void-legs", "sale 1"),
    (
        "UPDATE refunds SET tender_id = (SELECT id FROM tenders WHERE amount = 290) WHERE amount = 300",
        "void-legs",
        "sale 1",
    ),
    (
        "UPDATE refunds SET tender_id = (SELECT id FROM tenders WHERE amount = 350) WHERE amount = 250",
        "void-legs",
        "sale 3",
    ),
    ("DELETE FROM taken_offline", "void-legs", "sale 3"),
    ("UPDATE voids SET shift = 5 WHERE cards = 240", "shift-unknown", "void of sale 2"),
    ("UPDATE voids SET shift = 2 WHERE cards = 240", "shift-report", "shift 1"),
    ("UPDATE voids SET cards = 241 WHERE cards = 240", "shift-report", "shift 1"),
    ("UPDATE tenders SET amount = 105, tendered = 105 WHERE amount = 100", "void-legs", "sale 1"),
    // What a sale is found by.
    ("DELETE FROM sale_marks WHERE number = 1 AND value = 590", "sale-mark", "sale 1"),
    ("DELETE FROM sale_marks WHERE number = 2 AND value = 350", "sale-mark", "sale 2"),
    ("DELETE FROM sale_marks WHERE number = 3 AND kind = 'last_four'", "sale-mark", "sale 3"),
    ("UPDATE sale_marks SET number = 4 WHERE number = 2 AND value = 350", "sale-mark", "sale 4"),
    ("UPDATE sale_marks SET number = 4 WHERE number = 2 AND kind = 'last_four'", "sale-mark", "sale 4"),
    ("UPDATE sale_marks SET value = 591 WHERE number = 4", "sale-mark", "sale 4"),
    ("INSERT INTO sale_marks VALUES ('last_four', 7, 1)", "sale-mark", "sale 1"),
];

#[tokio::test]
async fn a_void_and_a_mark_that_were_changed_past_the_till_are_named() -> Checked {
    let scene = day_of_voids().await?;
    let (examined, found) = found(&scene).await?;
    // With the one that was begun after them.
    assert_eq!((examined.sales, found), (5, vec![]));
    each_is_named(scene, VOIDED).await
}

/// Nobody reads minor units.
#[tokio::test]
async fn figures_are_told_as_people_read_them() -> Checked {
    let scene = day_of_voids().await?;
    drop(scene.till);
    let whole = std::fs::read(scene.dir.path().join("data/till.db"))?;
    for (change, told) in [
        ("UPDATE sales SET total = total + 1 WHERE number = 4", "its total is 5.91 EUR, and should be 5.90 EUR"),
        (
            "UPDATE lines SET total = 219 WHERE total = 220",
            "gross 2.20, discount 0.00, share of the sale's 0.00, total 2.19 EUR",
        ),
        ("UPDATE sale_taxes SET tax = tax + 1 WHERE rate = 19000", "19 %: net 1.85, tax 0.36 EUR"),
        (
            "UPDATE sales SET rounding = 1 WHERE number = 4",
            "its tenders come to 5.90 EUR, and total and rounding to 5.91 EUR",
        ),
        ("UPDATE tenders SET amount = 599 WHERE amount = 590", "less the change, is 5.90 EUR, and its amount 5.99 EUR"),
        ("UPDATE refunds SET amount = 900 WHERE amount = 110", "it is of 9.00 EUR, and its operation"),
        (
            "UPDATE refunds SET amount = 900, state = 'settling' WHERE amount = 110",
            "11.40 EUR is given back of 3.50 EUR",
        ),
        (
            "UPDATE operations SET amount = 351, result = json_set(result, '$.amount', 350) WHERE amount = 350",
            "another amount than 3.51 EUR",
        ),
        ("UPDATE voids SET cards = 299 WHERE cards = 300", "comes to 3.00 EUR, and should be 2.99 EUR"),
        ("UPDATE shifts SET float_amount = 9995", "its float is 99.95 EUR, and the audit says 100.00 EUR"),
        (
            "UPDATE drawer_counts SET counted = 10000",
            "counted 100.00, expected 105.90 EUR, and the audit says counted 105.90, expected 105.90 EUR",
        ),
        (
            "UPDATE shifts SET expected = 10000, counted = 10000",
            "closed with 100.00 EUR in the drawer, and what went through it comes to 105.90 EUR",
        ),
        ("UPDATE shifts SET report = json_set(report, '$.total', 1)", "has 0.01 EUR as total, and the file 5.90 EUR"),
        ("UPDATE shifts SET report = json_set(report, '$.sales', 7)", "has 7 as sales, and the file 1"),
        ("DELETE FROM drawer_moves WHERE amount = 100", "1.00 EUR was given back, and left no drawer"),
        ("UPDATE sale_marks SET value = 591 WHERE number = 4", "it is not found by 5.90 EUR"),
    ] {
        let (_, found) = found(&changed(&whole, change)?).await?;
        assert!(found.iter().any(|finding| finding.what.contains(told)), "{told} after {change} in {found:#?}");
    }
    Ok(())
}

/// Somebody who knows how the audit is chained makes it anew, head and all: the hash on the Z report shows it.
#[tokio::test]
async fn an_audit_that_was_made_anew_differs_from_the_z_report() -> Checked {
    let scene = day().await?;
    drop(scene.till);
    let file = scene.dir.path().join("data/till.db");
    tamper(scene.dir.path(), "UPDATE audit SET who = 'Anna' WHERE seq = 12")?;
    let conn = Connection::open(&file)?;
    crate::prepare(&conn)?;
    let triggers: Vec<(String, String)> = conn
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    let last: i64 = conn.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
    for seq in 12..=last {
        conn.execute("UPDATE audit SET previous = (SELECT hash FROM audit WHERE seq = ?1 - 1) WHERE seq = ?1", [seq])?;
        conn.execute(
            "UPDATE audit SET hash = audit_hash(previous, seq, at, offset_s, app_version, who, person_id, approved_by, approver_id, what,
                 sale_id, details) WHERE seq = ?1",
            [seq],
        )?;
    }
    conn.execute("UPDATE audit_head SET hash = (SELECT hash FROM audit WHERE seq = ?1)", [last])?;
    for (_, sql) in &triggers {
        conn.execute_batch(sql)?;
    }
    drop(conn);
    let scene = Scene { till: crate::Till::open(&scene.dir.path().join("data"))?, dir: scene.dir };
    let (_, found) = found(&scene).await?;
    let [finding] = &found[..] else { return Err(format!("one thing differs: {found:#?}").into()) };
    assert_eq!((finding.code, finding.subject.as_str()), ("shift-report", "shift 1"));
    assert!(finding.what.contains("another audit"), "{}", finding.what);
    Ok(())
}
