//! Goods handed over before the bank has answered: within limits, marked, and never in the way of the payment.

use super::{Checked, Scene, frozen::refuses};
use crate::{
    CashPayment, Charge, LateQuery, LateState, NewReturn, OfflineLimits, Operation, OverLimit, ReturnedGoods, Sale,
    SaleState, Settings, State, TakeOffline, TenderState, Till, TillError, audit::Signature, offline, schema,
};
use jiff::{SignedDuration, Timestamp};
use protocol::{Amount, CardToken, Currency};
use rusqlite::Connection;
use std::sync::{Arc, Mutex};
use store::Priority;
use uuid::Uuid;

/// What an older program left: a payment that it took offline, with no limits and with its sale still waiting.
const TAKEN_BY_6: &str = "
    INSERT INTO settings (name, value) VALUES ('shop_name', 'Corner'), ('till_name', 'till-1'), ('currency', 'EUR'),
        ('prices_include_tax', '1'), ('cash_step', '1'), ('cash_rounding', 'nearest'), ('scale_barcodes', ''), ('time_zone', ''), ('day_start_hour', '0');
    INSERT INTO sales (id, state, held, has_cart, currency, prices_include_tax, cash_step, cash_rounding, created_at, updated_at)
    VALUES ('01a229da-0000-7151-ba32-889de2389db9', 'open', 1, 0, 'EUR', 1, 1, 'nearest', 1, 1);
    INSERT INTO lines (sale_id, sku, name, unit, unit_price, quantity, tax_rate, gross, discount, sale_discount, total)
    SELECT id, 'AMOUNT', 'Amount', 'piece', 9000, 1000, 0, 9000, 0, 0, 9000 FROM sales;
    INSERT INTO sale_taxes SELECT id, 0, 9000, 0 FROM sales;
    UPDATE counters SET last = last + 1 WHERE name = 'sale';
    UPDATE sales SET state = 'paying', number = 1, net = 9000, tax = 0, tip = 0, discount = 0, total = 9000;
    INSERT INTO tenders (id, sale_id, position, kind, state, amount, reference, created_at, updated_at)
    SELECT '01a229da-ffff-7151-ba32-889de2389dba', id, 1, 'card', 'settling', 9000, 'till-1/1', 7, 7 FROM sales;
    INSERT INTO operations (key, intent_id, lane, kind, method, path, body, body_version, amount, currency, state, due_at, created_at,
        updated_at, accepted_offline_at)
    SELECT X'01A229DAFFFF7151BA32889DE2389DBB', X'01A229DAFFFF7151BA32889DE2389DBA', id, 'payment', 'POST', '/v1/payments', X'7B7D', 1,
        9000, 'EUR', 'saved', 7, 7, 7, 9 FROM sales;";

/// The file of a program of version 6, with more of it, at the next start.
fn started_after_6(more: &str) -> Checked<Scene> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    std::fs::create_dir(&data)?;
    let file = Connection::open(data.join("till.db"))?;
    schema::prepare(&file)?;
    let schema = schema::schema();
    for step in schema.migrations.iter().filter(|step| step.version < 7) {
        file.execute_batch(step.sql)?;
    }
    file.execute_batch(TAKEN_BY_6)?;
    file.execute_batch(more)?;
    file.pragma_update(None, "application_id", schema.application_id)?;
    file.pragma_update(None, "user_version", 6)?;
    drop(file);
    Ok(Scene { till: Till::open(&data)?, dir })
}

#[tokio::test]
async fn what_an_older_program_took_offline_is_marked_and_counted_and_its_sale_completes() -> Checked {
    let scene = started_after_6("")?;
    let tender_id = Uuid::parse_str("01a229da-ffff-7151-ba32-889de2389dba")?;
    let ask = scene.till.offline_ask(tender_id).await?;
    assert_eq!((ask.stored, ask.payments, ask.is_taken), (9_000, 1, true));
    assert_eq!(ask.oldest_at, Some(Timestamp::from_millisecond(7)?));
    assert_eq!(scene.till.settings().await?.offline, OfflineLimits::default());
    // It is the oldest, and so old that nothing more is taken.
    words(scene.till.charge(charge(100, Currency::EUR)?).await)?;
    let taken = scene.till.take_offline(plain(tender_id)).await?;
    assert_eq!((taken.receipt_number, taken.accepted_offline), (Some(1), true));
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'sale-completed'")?, 1);
    // The next start has nothing more to complete.
    let scene = scene.killed()?;
    assert_eq!(scene.till.begin_return_of_receipt(1).await?.sale.state, SaleState::Completed);
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'sale-completed'")?, 1);
    Ok(())
}

/// A second card that nobody took the risk of.
const AND_ANOTHER_CARD: &str = "
    DROP TRIGGER tenders_keep_what_they_are; UPDATE tenders SET amount = 8000;
    INSERT INTO tenders (id, sale_id, position, kind, state, amount, reference, created_at, updated_at)
    SELECT '01a229da-ffff-7151-ba32-889de2389dbb', sale_id, 2, kind, state, 1000, reference, 8, 8 FROM tenders;";

#[tokio::test]
async fn a_sale_of_an_older_program_waits_for_what_was_not_taken_offline() -> Checked {
    let scene = started_after_6(AND_ANOTHER_CARD)?;
    assert_eq!(scene.count("SELECT count(*) FROM sales WHERE state = 'paying'")?, 1);
    Ok(())
}

#[tokio::test]
async fn what_an_older_program_took_offline_pays_is_declined_late_and_comes_back_as_all_does() -> Checked {
    let whole = |sale_id| NewReturn { id: Uuid::now_v7(), sale_id, goods: ReturnedGoods::Whole, reason: None };
    for (end, comes_back_first, legs, late) in [
        (State::Approved, true, 1, None),
        (State::Declined, true, 1, Some(LateState::Settled)),
        (State::Declined, false, 0, Some(LateState::Settled)),
    ] {
        let scene = started_after_6("")?;
        let sale = scene.till.begin_return_of_receipt(1).await?.sale;
        assert_eq!((sale.state, sale.due), (SaleState::Completed, 0));
        let card = sale.tenders[0].operation.clone().ok_or("no operation")?;
        let back = whole(sale.id);
        if comes_back_first {
            scene.till.return_goods(back.clone()).await?;
        }
        scene.settle(&card, end).await?;
        if !comes_back_first {
            let open = scene.till.late_declines(LateQuery::default()).await?.late;
            assert_eq!((open[0].state, open[0].amount), (LateState::Open, 9_000));
        }
        let made = scene.till.return_goods(back).await?;
        assert_eq!((made.total, made.waived, made.legs.len()), (9_000, if legs == 0 { 9_000 } else { 0 }, legs));
        let listed = scene.till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late;
        assert_eq!(listed.first().map(|late| late.state), late, "{end} {comes_back_first}");
        assert_eq!(scene.till.sale(sale.id).await?.due, 0);
    }
    Ok(())
}

/// The start could not write, and the bank's word came first.
#[tokio::test]
async fn a_sale_of_an_older_program_is_over_before_the_bank_says_anything_of_it() -> Checked {
    let fault = "CREATE TRIGGER fault BEFORE UPDATE OF receipt_number ON sales WHEN NEW.receipt_number IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'a fault'); END";
    let scene = started_after_6(fault)?;
    let id = Uuid::parse_str("01a229da-0000-7151-ba32-889de2389db9")?;
    let sale = scene.till.sale(id).await?;
    assert_eq!(sale.state, SaleState::Paying);
    scene.file()?.execute_batch("DROP TRIGGER fault")?;
    scene.settle(sale.tenders[0].operation.as_ref().ok_or("no operation")?, State::Declined).await?;
    assert_eq!(scene.till.sale(id).await?.state, SaleState::Completed);
    assert_eq!(scene.till.late_declines(LateQuery::default()).await?.late[0].amount, 9_000);
    Ok(())
}

/// Limits that the sale of 5.90 reaches to the cent, two of them, three together and four in number.
const LIMITS: OfflineLimits = OfflineLimits { payment_max: 590, sum_max: 1_180, count_max: 4, age_max_h: 24 };

async fn limited(offline: OfflineLimits) -> Checked<Scene> {
    let scene = Scene::new()?;
    scene.till.save_settings(Settings { offline, ..Settings::default() }).await?;
    Ok(scene)
}

fn plain(tender_id: Uuid) -> TakeOffline {
    TakeOffline { tender_id, contact: None, over_limit: false }
}

fn charge(amount: i64, currency: Currency) -> Checked<Charge> {
    Ok(Charge {
        intent_id: Uuid::now_v7(),
        amount: Amount::new(amount)?,
        currency,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline: true,
    })
}

/// The next customer, with two croissants and an espresso.
async fn next_sale(scene: &Scene) -> Checked<Sale> {
    scene.till.new_sale().await?;
    scene.sale().await
}

fn words(refused: Result<Operation, TillError>) -> Checked<String> {
    match refused {
        Err(TillError::OfflineLimit(words)) => Ok(words),
        other => Err(format!("it was not over a limit: {other:?}").into()),
    }
}

#[tokio::test]
async fn the_sale_completes_its_receipt_says_so_and_the_bank_is_asked_on() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 590).await?;
    scene.settle(&card, State::Unknown).await?;
    let tender_id = scene.till.sale(sale.id).await?.tenders[0].id;
    let take = TakeOffline { contact: Some(" Anna, +49 170 1234 ".into()), ..plain(tender_id) };
    let taken = scene.till.take_offline(take.clone()).await?;
    assert_eq!((taken.key, taken.state, taken.accepted_offline), (card.key, State::Unknown, true));
    let done = scene.till.sale(sale.id).await?;
    assert_eq!((done.state, done.paid, done.due, done.receipt_number), (SaleState::Completed, 0, 0, Some(1)));
    assert!(done.tenders[0].taken_offline_at.is_some());
    let text = scene.till.receipt(sale.id).await?.text;
    assert!(text.contains("Receipt 1") && text.contains("Saved. Not yet approved by the bank."), "{text}");
    // Clicked again, also by somebody who noted nothing, it is what it was.
    assert_eq!(scene.till.take_offline(plain(tender_id)).await?, taken);
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'payment-taken-offline'")?, 1);
    assert_eq!(scene.count("SELECT contact = 'Anna, +49 170 1234' FROM taken_offline")?, 1);
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE details LIKE '%Anna%'")?, 0);
    scene.till.note_contact(tender_id, None).await?;
    assert_eq!(scene.count("SELECT count(*) FROM taken_offline WHERE contact IS NULL")?, 1);
    let number = scene.till.note_contact(tender_id, Some("4111 1111 1111 1111".into())).await;
    assert!(matches!(number, Err(TillError::InvalidText(_))), "{number:?}");

    scene.settle(&card, State::Approved).await?;
    let after = scene.till.sale(sale.id).await?;
    assert_eq!(
        (after.state, after.paid, after.due, after.completed_at),
        (SaleState::Completed, 590, 0, done.completed_at)
    );
    assert!(!scene.till.receipt(sale.id).await?.text.contains("not yet approved"));
    assert_eq!(scene.count("SELECT count(*) FROM taken_offline WHERE settled_at IS NULL")?, 0);
    assert_eq!(scene.count("SELECT count(*) FROM late_declines")?, 0);
    Ok(())
}

#[tokio::test]
async fn only_what_is_open_is_taken() -> Checked {
    for state in State::ALL {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let tender_id = scene.by_card_tender(&sale, 300).await?;
        scene.settle(&scene.operation_of(tender_id).await?, state).await?;
        let taken = scene.till.take_offline(plain(tender_id)).await;
        match state {
            State::Saved | State::Sending | State::Unknown => assert!(taken?.accepted_offline, "{state}"),
            State::NeedsAttention => assert!(matches!(taken, Err(TillError::NeedsLook(_))), "{taken:?}"),
            _ => assert!(matches!(taken, Err(TillError::AlreadyFinal(_))), "{state}: {taken:?}"),
        }
        // The rest is still due.
        if !state.is_final() {
            assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Paying, "{state}");
        }
    }
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let tender_id = scene.by_card_tender(&sale, 590).await?;
    let operation = scene.settle(&scene.operation_of(tender_id).await?, State::Unknown).await?;
    scene.till.cancel(operation.key).await?;
    let taken = scene.till.take_offline(plain(tender_id)).await;
    assert!(matches!(taken, Err(TillError::AlreadyFinal(_))), "it is being cancelled: {taken:?}");
    let nobody = scene.till.take_offline(plain(Uuid::now_v7())).await;
    assert!(matches!(nobody, Err(TillError::NotFound(_))), "{nobody:?}");
    Ok(())
}

#[tokio::test]
async fn one_cent_over_each_limit_is_refused_with_the_figures() -> Checked {
    let scene = limited(OfflineLimits { payment_max: 589, ..LIMITS }).await?;
    let sale = scene.sale().await?;
    let tender_id = scene.by_card_tender(&sale, 590).await?;
    let said = words(scene.till.take_offline(plain(tender_id)).await)?;
    assert!(said.contains("5.90 is over the limit of 5.89 for one payment"), "{said}");
    assert_eq!(scene.till.offline_ask(tender_id).await?.over, [OverLimit::Payment]);
    // A manager's word is a person's: where people are not told apart, there is none.
    words(scene.till.take_offline(TakeOffline { over_limit: true, ..plain(tender_id) }).await)?;
    assert!(!scene.operation_of(tender_id).await?.accepted_offline);
    scene.till.save_settings(Settings { offline: LIMITS, ..Settings::default() }).await?;
    scene.till.take_offline(plain(tender_id)).await?;

    scene.taken_offline(&next_sale(&scene).await?, 590).await?;
    let third = scene.by_card_tender(&next_sale(&scene).await?, 1).await?;
    let said = words(scene.till.take_offline(plain(third)).await)?;
    assert!(said.contains("with the 11.80 stored it comes to 11.81, over the limit of 11.80 together"), "{said}");
    let ask = scene.till.offline_ask(third).await?;
    assert_eq!((ask.amount, ask.stored, ask.sum_max, ask.payments), (1, 1_180, 1_180, 2));
    assert_eq!((ask.over, ask.is_taken, ask.cash_instead), (vec![OverLimit::Sum], false, true));
    // What is settled is no risk any more.
    scene.settle(&scene.operation_of(tender_id).await?, State::Approved).await?;
    scene.till.take_offline(plain(third)).await?;
    Ok(())
}

#[tokio::test]
async fn the_number_and_the_age_are_limited_too() -> Checked {
    let scene = limited(OfflineLimits { count_max: 2, ..OfflineLimits::default() }).await?;
    for _ in 0..2 {
        scene.taken_offline(&next_sale(&scene).await?, 590).await?;
    }
    let tender_id = scene.by_card_tender(&next_sale(&scene).await?, 590).await?;
    let said = words(scene.till.take_offline(plain(tender_id)).await)?;
    assert!(said.contains("2 payments are stored, of 2 that may be"), "{said}");

    scene.till.save_settings(Settings::default()).await?;
    let oldest_at = scene.till.offline_ask(tender_id).await?.oldest_at.ok_or("none is stored")?;
    let (old, behind) = (
        "the oldest that is stored has waited for 24 h or more",
        "nobody can tell how long the oldest that is stored has waited",
    );
    for (age, reason) in [
        (SignedDuration::from_hours(24) - SignedDuration::from_millis(1), None),
        (SignedDuration::from_hours(24), Some(old)),
        (-SignedDuration::from_mins(5), None),
        (-SignedDuration::from_mins(5) - SignedDuration::from_millis(1), Some(behind)),
    ] {
        let at = oldest_at + age;
        let ask = scene.till.read(move |conn| offline::ask(conn, tender_id, at)).await?;
        assert_eq!(ask.over.contains(&OverLimit::Age), reason.is_some());
        let taken = scene.till.inner.store.write(Priority::Click, move |tx| {
            let taken = offline::take(tx, &Signature::of_program("cashier", at), &plain(tender_id))?;
            // Nothing of it is kept.
            Err::<(), _>(TillError::NotRead(taken.short_code))
        });
        let refused = taken.await.err().ok_or("it was kept")?.to_string();
        assert_eq!([old, behind].into_iter().find(|reason| refused.contains(reason)), reason, "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn a_charge_from_the_outset_obeys_the_same_limits_and_completes_its_sale() -> Checked {
    let scene = Scene::new()?;
    let whole = scene.till.charge(charge(5_000, Currency::EUR)?).await?;
    assert_eq!((whole.state, whole.accepted_offline, whole.receipt_number), (State::Saved, true, Some(1)));
    words(scene.till.charge(charge(5_001, Currency::EUR)?).await)?;
    let said = words(scene.till.charge(charge(100, Currency::parse("USD")?)?).await)?;
    assert!(said.contains("it is in USD, and the limits are in EUR"), "{said}");
    for _ in 0..19 {
        scene.till.charge(charge(5_000, Currency::EUR)?).await?;
    }
    let said = words(scene.till.charge(charge(1, Currency::EUR)?).await)?;
    assert!(said.contains("over the limit of 1000.00 together"), "{said}");
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 20);
    // A second click of one that was saved is no second risk.
    let again = charge(5_000, Currency::EUR)?;
    let scene = Scene::new()?;
    let first = scene.till.charge(again.clone()).await?;
    scene
        .till
        .save_settings(Settings { offline: OfflineLimits { count_max: 0, ..LIMITS }, ..Settings::default() })
        .await?;
    assert_eq!(scene.till.charge(again).await?.key, first.key);
    Ok(())
}

#[tokio::test]
async fn a_leg_taken_offline_and_declined_before_the_sale_is_paid_is_due_again() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 300).await?;
    scene.settle(&card, State::Declined).await?;
    let now = scene.till.sale(sale.id).await?;
    assert_eq!((now.state, now.due), (SaleState::Paying, 590));
    assert_eq!(scene.count("SELECT count(*) FROM late_declines")?, 0);
    assert_eq!(scene.in_cash(&sale, 590).await?.sale.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn cash_takes_the_place_of_a_card_that_was_never_sent_in_one_commit() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card_tender(&sale, 590).await?;
    let dialog = scene.till.begin_cash_instead(card).await?;
    assert_eq!((dialog.due, dialog.cash_due), (590, 590));
    let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: 1_000 };
    // What goes wrong with the cash leaves the card as it was.
    scene.file()?.execute_batch(
        "CREATE TRIGGER fault BEFORE INSERT ON tenders WHEN NEW.kind = 'cash' BEGIN SELECT RAISE(ABORT, 'a fault'); END",
    )?;
    assert!(scene.till.pay_cash_instead(payment.clone(), card).await.is_err());
    assert_eq!(scene.operation_of(card).await?.state, State::Saved);
    scene.file()?.execute_batch("DROP TRIGGER fault")?;
    let taken = scene.till.pay_cash_instead(payment.clone(), card).await?;
    assert_eq!((taken.change, taken.sale.state), (410, SaleState::Completed));
    assert_eq!(scene.operation_of(card).await?.state, State::Cancelled);
    let states: Vec<_> = taken.sale.tenders.iter().map(|tender| tender.state).collect();
    assert_eq!(
        (states, taken.sale.tenders[1].replaces),
        (vec![TenderState::Cancelled, TenderState::Taken], Some(card))
    );
    assert_eq!(scene.till.pay_cash_instead(payment, card).await?, taken);
    assert_eq!(scene.count("SELECT count(*) FROM tenders")?, 2);
    Ok(())
}

#[tokio::test]
async fn no_cash_while_the_card_may_be_charged() -> Checked {
    for state in State::ALL {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.by_card_tender(&sale, 590).await?;
        scene.settle(&scene.operation_of(card).await?, state).await?;
        let payment = CashPayment { tender_id: Uuid::now_v7(), sale_id: sale.id, tendered: 590 };
        let taken = scene.till.pay_cash_instead(payment, card).await;
        match state {
            State::Saved | State::Declined | State::Cancelled => {
                assert_eq!(taken?.sale.state, SaleState::Completed, "{state}");
            }
            State::Approved => assert!(matches!(taken, Err(TillError::AlreadyFinal(_))), "{taken:?}"),
            State::Sending | State::Unknown | State::NeedsAttention => {
                let refused = taken.err().ok_or("it was taken")?;
                assert!(
                    matches!(&refused, TillError::CardMayBeCharged(why) if why.contains("may be charged")),
                    "{refused:?}"
                );
                assert!(matches!(scene.till.begin_cash_instead(card).await, Err(TillError::CardMayBeCharged(_))));
                assert_eq!(scene.count("SELECT count(*) FROM tenders WHERE kind = 'cash'")?, 0);
            }
        }
    }
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card_tender(&sale, 300).await?;
    scene.till.take_offline(plain(card)).await?;
    let payment = CashPayment { tender_id: Uuid::now_v7(), sale_id: sale.id, tendered: 590 };
    let taken = scene.till.pay_cash_instead(payment, card).await;
    assert!(matches!(taken, Err(TillError::AcceptedOffline(_))), "{taken:?}");
    Ok(())
}

#[tokio::test]
async fn the_database_refuses_what_the_limits_do_and_keeps_the_mark() -> Checked {
    let scene = limited(OfflineLimits { payment_max: 589, ..OfflineLimits::default() }).await?;
    let sale = scene.sale().await?;
    let tender_id = scene.by_card_tender(&sale, 590).await?;
    let file = scene.file()?;
    let now = Timestamp::now().as_millisecond();
    let insert = |over: u8, settled_at: &str| {
        format!("INSERT INTO taken_offline VALUES ('{tender_id}', {now}, {over}, NULL, {settled_at})")
    };
    refuses(&file, &insert(0, "NULL"), "within the limits");
    refuses(&file, &insert(1, "1"), "only an open card payment");
    for (name, value) in
        [("offline_payment_max", 590), ("offline_sum_max", 589), ("offline_count_max", 0), ("offline_age_max_h", 24)]
    {
        file.execute("UPDATE settings SET value = ?2 WHERE name = ?1", (name, value.to_string()))?;
        if name == "offline_sum_max" || name == "offline_count_max" {
            refuses(&file, &insert(0, "NULL"), "within the limits");
            file.execute("UPDATE settings SET value = '9999999' WHERE name = ?1", [name])?;
        }
    }
    file.execute("UPDATE settings SET value = 'USD' WHERE name = 'currency'", [])?;
    refuses(&file, &insert(0, "NULL"), "within the limits");
    file.execute("UPDATE settings SET value = 'EUR' WHERE name = 'currency'", [])?;
    scene.till.take_offline(plain(tender_id)).await?;
    let second = scene.by_card_tender(&next_sale(&scene).await?, 590).await?;
    let day_later = insert(0, "NULL").replace(&tender_id.to_string(), &second.to_string());
    let day_later = day_later.replace(&now.to_string(), &(now + 24 * 3_600_000 + 60_000).to_string());
    refuses(&file, &day_later, "within the limits");
    let set_back = insert(0, "NULL").replace(&tender_id.to_string(), &second.to_string());
    let set_back = set_back.replace(&now.to_string(), &(now - 24 * 3_600_000).to_string());
    refuses(&file, &set_back, "within the limits");
    for (change, reason) in [
        ("UPDATE taken_offline SET at = 1", "stays so"),
        ("UPDATE taken_offline SET over_limit = 1", "stays so"),
        ("UPDATE taken_offline SET settled_at = 1", "stays so"),
        ("DELETE FROM taken_offline", "stays so"),
        ("UPDATE taken_offline SET contact = ''", "CHECK constraint failed"),
        ("INSERT INTO taken_offline SELECT id, 1, 1, NULL, NULL FROM tenders LIMIT 1", "only an open card payment"),
    ] {
        refuses(&file, change, reason);
    }
    // Open and not taken, it holds its sale up.
    let complete = format!(
        "UPDATE sales SET state = 'completed', receipt_number = 9, rounding = 0, completed_at = 0
         WHERE id = (SELECT sale_id FROM tenders WHERE id = '{second}')"
    );
    refuses(&file, &complete, "completes when it is paid in full");
    Ok(())
}

#[tokio::test]
async fn limits_that_make_no_sense_are_refused() -> Checked {
    let scene = Scene::new()?;
    for offline in [
        OfflineLimits { payment_max: -1, ..LIMITS },
        OfflineLimits { sum_max: -1, ..LIMITS },
        OfflineLimits { age_max_h: 0, ..LIMITS },
        OfflineLimits { count_max: 10_001, ..LIMITS },
    ] {
        let saved = scene.till.save_settings(Settings { offline, ..Settings::default() }).await;
        assert!(matches!(saved, Err(TillError::InvalidSetting(_))), "{saved:?}");
    }
    assert_eq!(scene.till.settings().await?.offline, OfflineLimits::default());
    Ok(())
}

#[tokio::test]
async fn what_is_saved_is_answered_also_where_it_cannot_be_looked_at() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card_tender(&sale, 590).await?;
    let dialog = scene.till.begin_cash_instead(card).await?;
    // More looks than the file takes at once, none of which ends before the sender is gone.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let looks: Vec<_> = (0..1_100)
        .map(|_| {
            let (till, held) = (scene.till.clone(), Arc::clone(&held));
            let look = move |_: &Connection| {
                drop(held.lock().map(|held| held.recv()));
                Ok(())
            };
            tokio::spawn(async move { till.read(look).await })
        })
        .collect();
    while !looks.iter().any(tokio::task::JoinHandle::is_finished) {
        tokio::task::yield_now().await;
    }
    let refused = scene.till.read(|_| Ok(())).await;
    let payment = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: 1_000 };
    let taken = scene.till.pay_cash_instead(payment, card).await;
    drop(hold);
    assert!(matches!(refused, Err(TillError::NotRead(_))), "{refused:?}");
    assert_eq!(taken?.change, 410);
    Ok(())
}
