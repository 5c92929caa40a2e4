//! A copy brought back, and what the lost file had the bank charge after it was made: no sale is paid twice, and nothing is sent, paid,
//! given back or given up before that is known.

use super::{Checked, Scene};
use crate::{
    CollectAgain, LateQuery, LateState, NewReturn, NewVoid, Refund, ReturnedGoods, Sale, SaleState, Settings, State,
    Till, TillError, acknowledging,
    audit::Signature,
    doctor::BankPayment,
    restore,
    restore::{Matched, Taken},
};
use jiff::{SignedDuration, Timestamp};
use outbox::BankIdentity;
use protocol::{Amount, Key};
use rusqlite::Connection;
use serde_json::json;
use store::Priority;
use uuid::Uuid;

fn bank() -> BankIdentity {
    BankIdentity { bank_id: Uuid::from_bytes([0x0b; 16]), merchant: "demo".to_owned() }
}

/// A payment in the bank's list that this file has not.
fn listed(id: &str, reference: &str, amount: i64) -> Checked<BankPayment> {
    Ok(BankPayment::read(json!({
        "id": id, "status": "approved", "amount": amount, "currency": "EUR", "reference": reference,
        "operation": Key::v7(Timestamp::now(), rand::random()).to_string(), "short_code": "0000", "approval_code": "8F21K0",
        "card": {"brand": "visa", "last4": "4242"}, "created_at": Timestamp::now().to_string(),
    }))?)
}

/// The till of a copy of this one, brought back into a folder of its own.
async fn restored(scene: Scene) -> Checked<Scene> {
    changed_copy(scene, "").await
}

/// The same, where the copy was made at a moment that `sql` brings about.
async fn changed_copy(scene: Scene, sql: &str) -> Checked<Scene> {
    let dir = tempfile::tempdir()?;
    let copy = dir.path().join("copy.db");
    scene.till.backup(&copy, |_| {}).await?;
    Connection::open(&copy)?.execute_batch(sql)?;
    let data = dir.path().join("data");
    Till::restore(&data, &copy, None)?;
    Ok(Scene { till: Till::open(&data)?, dir })
}

async fn take(scene: &Scene, payment: &BankPayment) -> Checked<Taken> {
    let payment = payment.clone();
    let change = move |tx: &Connection| {
        restore::take_over(tx, &Signature::of_program("restore", Timestamp::now()), &payment, &bank())
    };
    Ok(scene.till.inner.store.write(Priority::Click, change).await?)
}

/// The end of a look at the bank's list that began this long ago from now.
async fn matched(scene: &Scene, later: SignedDuration) -> Checked {
    let now = Timestamp::now().checked_add(later)?;
    let change = move |tx: &Connection| {
        restore::set_matched(tx, &Signature::of_program("restore", Timestamp::now()), now, &Matched::default())
    };
    Ok(scene.till.inner.store.write(Priority::Click, change).await?)
}

/// Both looks.
async fn all_matched(scene: &Scene) -> Checked {
    matched(scene, SignedDuration::ZERO).await?;
    matched(scene, restore::MATCH_AGAIN_AFTER).await
}

async fn cash_code(scene: &Scene, sale: &Sale) -> Checked<&'static str> {
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let payment = crate::CashPayment { tender_id, sale_id: sale.id, tendered: 590 };
    Ok(scene.till.pay_cash(payment).await.map_or_else(|error| error.code(), |_| "paid"))
}

/// The moment of the copy: the first card of the sale may have been charged.
const UNKNOWN: &str = "UPDATE operations SET state = 'unknown', ask = 'look_up', attempts = 1, first_sent_at = 1,
    bank_id = x'0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b', merchant = 'demo' WHERE state = 'saved'";

#[tokio::test]
async fn a_sale_whose_open_payment_was_made_good_by_another_is_not_charged_again() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let first = scene.by_card(&sale, 590).await?;
    let scene = changed_copy(scene, UNKNOWN).await?;
    let second = listed("pay_2", "till-1/1", 590)?;
    let taken = take(&scene, &second).await?;
    assert!(matches!(&taken, Taken::Kept(why) if why.contains("more than is due")), "{taken:?}");
    assert!(matches!(take(&scene, &second).await?, Taken::Nothing), "it is kept once");
    all_matched(&scene).await?;
    // Its request never goes out again; the bank says what became of it.
    let wished = scene.till.operation(first.key).await?;
    assert_eq!((wished.state, wished.cancel_wished), (State::Unknown, true));
    scene.settle(&first, State::Declined).await?;
    let sale = scene.till.sale(sale.id).await?;
    assert_eq!((sale.state, sale.due, sale.paid), (SaleState::Completed, 0, 590));
    assert_eq!(scene.count("SELECT count(*) FROM unmatched_payments WHERE ended = 'matched'")?, 1);
    Ok(())
}

#[tokio::test]
async fn a_payment_that_was_never_sent_gives_way_to_the_one_that_the_bank_has() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let first = scene.by_card(&sale, 590).await?;
    let scene = restored(scene).await?;
    assert!(matches!(take(&scene, &listed("pay_2", "till-1/1", 590)?).await?, Taken::Paid(1)));
    assert_eq!(scene.till.operation(first.key).await?.state, State::Cancelled);
    assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Completed);
    Ok(())
}

#[tokio::test]
async fn a_sale_with_a_payment_that_has_no_place_takes_no_money_until_somebody_looked() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 590).await?;
    scene.settle(&card, State::Declined).await?;
    let scene = restored(scene).await?;
    let second = listed("pay_2", "till-1/1", 600)?;
    assert!(matches!(take(&scene, &second).await?, Taken::Kept(_)));
    all_matched(&scene).await?;
    assert_eq!(cash_code(&scene, &sale).await?, "payment-unmatched");
    let person = Signature::of_program("command line", Timestamp::now());
    let known = second.clone();
    let read = scene.till.read(acknowledging::read).await?;
    let look = move |tx: &Connection| acknowledging::acknowledge(tx, &person, &known, "given back at the bank", &read);
    scene.till.inner.store.write(Priority::Click, look).await?;
    assert_eq!(cash_code(&scene, &sale).await?, "paid");
    Ok(())
}

#[tokio::test]
async fn what_was_collected_again_on_the_lost_file_is_collected() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    scene.settle(&card, State::Declined).await?;
    let scene = restored(scene).await?;
    assert!(matches!(take(&scene, &listed("pay_2", "till-1/1", 590)?).await?, Taken::Paid(1)));
    let query = LateQuery { with_ended: true, ..LateQuery::default() };
    let late = scene.till.late_declines(query).await?.late;
    assert_eq!((late.len(), late[0].state), (1, LateState::Settled));
    all_matched(&scene).await?;
    let again = CollectAgain { tender_id: Uuid::now_v7(), late_tender_id: late[0].tender_id, card: "tok_visa".into() };
    assert!(matches!(scene.till.collect_again(again).await, Err(TillError::AlreadyFinal(_))));
    assert_eq!(scene.till.sale(sale.id).await?.due, 0);
    Ok(())
}

#[tokio::test]
async fn what_was_taken_offline_and_is_open_still_gives_way_too() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.taken_offline(&sale, 590).await?;
    let scene = changed_copy(scene, UNKNOWN).await?;
    assert!(matches!(take(&scene, &listed("pay_2", "till-1/1", 590)?).await?, Taken::Kept(_)));
    scene.settle(&card, State::Declined).await?;
    let late = scene.till.late_declines(LateQuery { with_ended: true, ..LateQuery::default() }).await?.late;
    assert_eq!((late.len(), late[0].state), (1, LateState::Settled));
    Ok(())
}

#[tokio::test]
async fn a_sale_that_went_back_to_the_cart_is_closed_as_paid_where_it_comes_to_that() -> Checked {
    for (amount, state) in [(590, SaleState::Completed), (400, SaleState::Open)] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let card = scene.by_card(&sale, 590).await?;
        scene.settle(&card, State::Declined).await?;
        scene.till.back_to_cart(sale.id).await?;
        let scene = restored(scene).await?;
        let taken = take(&scene, &listed("pay_2", "till-1/1", amount)?).await?;
        assert_eq!(matches!(taken, Taken::Paid(1)), state == SaleState::Completed, "{taken:?}");
        assert_eq!(scene.till.sale(sale.id).await?.state, state);
        all_matched(&scene).await?;
        if state == SaleState::Open {
            assert_eq!(cash_code(&scene, &sale).await?, "payment-unmatched");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_number_that_the_lost_file_gave_after_the_copy_is_none_of_this_files() -> Checked {
    let scene = restored(Scene::new()?).await?;
    all_matched(&scene).await?;
    let sale = scene.sale().await?;
    let lost = listed("pay_1", "till-1/1", 590)?;
    scene.by_card(&sale, 590).await?;
    let taken = take(&scene, &lost).await?;
    assert!(matches!(&taken, Taken::Kept(why) if why.contains("no sale of that number")), "{taken:?}");
    assert_eq!(scene.count("SELECT count(*) FROM unmatched_payments WHERE sale_number IS NULL")?, 1);
    assert_eq!(scene.count("SELECT count(*) FROM operations WHERE cancel_wished_at IS NOT NULL")?, 0);
    Ok(())
}

#[tokio::test]
async fn before_the_match_nothing_is_paid_given_back_or_given_up() -> Checked {
    let scene = Scene::new()?;
    let paid = scene.sale().await?;
    let card = scene.by_card(&paid, 590).await?;
    scene.settle(&card, State::Approved).await?;
    scene.till.new_sale().await?;
    let part = scene.sale().await?;
    scene.in_cash(&part, 100).await?;
    scene.till.hold_sale(part.id).await?;
    let cart = scene.sale().await?;
    let declined = scene.by_card(&cart, 590).await?;
    scene.settle(&declined, State::Declined).await?;
    let scene = restored(scene).await?;
    let till = &scene.till;
    let refused = |scene: &Scene, round: &str| {
        let (till, round) = (scene.till.clone(), round.to_owned());
        let (paid, part, cart, card) = (paid.id, part.id, cart.id, card.key);
        async move {
            let goods = NewReturn { id: Uuid::now_v7(), sale_id: paid, goods: ReturnedGoods::Whole, reason: None };
            let refund = Refund { intent_id: Uuid::now_v7(), payment: card, amount: Amount::new(10)? };
            let codes = [
                till.refund(refund).await.err(),
                till.return_goods(goods).await.err(),
                till.void_sale(NewVoid { id: Uuid::now_v7(), sale_id: part, reason: None }).await.err(),
                till.back_to_cart(cart).await.err(),
            ];
            Checked::Ok((round, codes.map(|error| error.map(|error| error.code()))))
        }
    };
    let (_, codes) = refused(&scene, "before").await?;
    assert_eq!(codes, [Some("restored"); 4]);
    assert_eq!(cash_code(&scene, &cart).await?, "restored");
    assert_eq!(till.summary().await?.paused.as_deref(), Some("restored"));
    matched(&scene, SignedDuration::ZERO).await?;
    assert_eq!(till.summary().await?.paused, None);
    // What the bank was still at then would be missed: the sales of the copy wait for the second look, new ones do not.
    assert_eq!(cash_code(&scene, &cart).await?, "restored-sale");
    till.hold_sale(cart.id).await?;
    let new = scene.sale().await?;
    assert_eq!(cash_code(&scene, &new).await?, "paid");
    matched(&scene, SignedDuration::from_secs(1)).await?;
    assert_eq!(cash_code(&scene, &cart).await?, "restored-sale", "too soon");
    matched(&scene, restore::MATCH_AGAIN_AFTER).await?;
    assert_eq!(cash_code(&scene, &cart).await?, "paid");
    let (round, codes) = refused(&scene, "after").await?;
    assert_eq!((round.as_str(), codes[2]), ("after", None), "{codes:?}");
    Ok(())
}

#[tokio::test]
async fn no_two_receipts_have_one_name_and_number() -> Checked {
    let scene = Scene::new()?;
    let waiting = scene.sale().await?;
    let card = scene.by_card(&waiting, 590).await?;
    scene.settle(&card, State::Declined).await?;
    scene.till.hold_sale(waiting.id).await?;
    let sold = scene.sale().await?;
    scene.in_cash(&sold, 590).await?;
    let scene = restored(scene).await?;
    let name = scene.till.settings().await?.till_name;
    all_matched(&scene).await?;
    // Receipt 2 of the lost file was another sale's.
    scene.in_cash(&waiting, 590).await?;
    let (old, new) = (scene.till.receipt(sold.id).await?, scene.till.receipt(waiting.id).await?);
    assert_eq!((old.receipt_number, new.receipt_number), (Some(1), Some(2)));
    assert!(old.text.contains("till-1  ") && !old.text.contains(&name), "{}", old.text);
    assert!(new.text.contains(&name), "{}", new.text);
    Ok(())
}

#[tokio::test]
async fn a_name_that_the_till_had_never_comes_back() -> Checked {
    let scene = Scene::new()?;
    let rename = async |scene: &Scene, name: &str| {
        let before = scene.till.settings().await.map_err(|error| error.code())?;
        let after = Settings { till_name: name.into(), ..before };
        scene.till.save_settings(after).await.map_err(|error| error.code())
    };
    scene.in_cash(&scene.sale().await?, 590).await?;
    assert_eq!(rename(&scene, "till-2").await, Ok(()));
    assert_eq!(rename(&scene, "till-2").await, Ok(()), "its own name is no new one");
    assert_eq!(rename(&scene, "till-1").await, Err("invalid-setting"));
    let names =
        "SELECT group_concat(name || ' ' || from_sale || ' ' || from_receipt, ', ' ORDER BY position) FROM till_names";
    let said: String = scene.file()?.query_row(names, [], |row| row.get(0))?;
    assert_eq!(said, "till-1 1 1, till-2 2 2");
    let copy = scene.dir.path().join("copy.db");
    scene.till.backup(&copy, |_| {}).await?;
    let new = scene.dir.path().join("new");
    for name in ["till-1", "till-2"] {
        let refused = Till::restore(&new, &copy, Some(name)).err().map(|error| error.code());
        assert_eq!(refused, Some("invalid-setting"), "{name}");
    }
    Till::restore(&new, &copy, Some("till-3"))?;
    for (sql, why) in [
        ("DELETE FROM till_names", "never forgotten"),
        ("UPDATE till_names SET name = 'x'", "never forgotten"),
        ("UPDATE settings SET value = 'till-1' WHERE name = 'till_name'", "each name once"),
        ("INSERT INTO till_names VALUES (3, 'x', 2, 2)", "each name once"),
    ] {
        let refused = scene.file()?.execute(sql, []).err().ok_or(sql)?;
        assert!(refused.to_string().contains(why), "{sql}: {refused}");
    }
    Ok(())
}

#[tokio::test]
async fn the_banks_list_is_read_back_by_the_banks_own_clock() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 590).await?;
    let approved = "UPDATE operations SET state = 'approved', settled_at = 1, due_at = NULL, bank_id = zeroblob(16), merchant = 'demo',
        result = '{\"created_at\":\"2026-11-30T09:00:00Z\"}'";
    for (sql, from) in [(approved, Some("2026-11-28T09:00:00Z".parse::<Timestamp>()?)), ("", None)] {
        let dir = tempfile::tempdir()?;
        let copy = dir.path().join("copy.db");
        scene.till.backup(&copy, |_| {}).await?;
        Connection::open(&copy)?.execute_batch(sql)?;
        Till::restore(&dir.path().join("data"), &copy, None)?;
        let till = Till::open(&dir.path().join("data"))?;
        let open = till.read(restore::open).await?;
        assert_eq!(restore::list_from(&open), from);
    }
    Ok(())
}

#[tokio::test]
async fn what_an_older_file_knows_of_its_names_and_restores_is_kept() -> Checked {
    let dir = super::migrating::old_file(9)?;
    let file = Connection::open(dir.path().join("data/till.db"))?;
    super::migrating::write(
        &file,
        "INSERT INTO audit (seq, at, offset_s, who, what, details, previous, hash)
             VALUES (900, 1, 0, 'x', 'till-restored', '{\"before\":\"till-0\",\"after\":\"till-1\"}', zeroblob(32), zeroblob(32));
         INSERT INTO restores VALUES (1, 1, 1, 'till-0', 'till-1', 13, 7), (2, 1, 1, 'till-1', 'till-x', 13, NULL);",
    )?;
    drop(file);
    let till = Till::open(&dir.path().join("data"))?;
    let names = till.read(restore::names).await?;
    assert_eq!(names, ["till-0", "till-1"]);
    let file = Connection::open(dir.path().join("data/till.db"))?;
    let from: i64 = file.query_row("SELECT from_sale FROM till_names WHERE name = 'till-1'", [], |row| row.get(0))?;
    assert_eq!(from, 14);
    let closed: Vec<Option<i64>> = file
        .prepare("SELECT closed_at FROM restores ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    assert_eq!(closed, [Some(7), None]);
    Ok(())
}
