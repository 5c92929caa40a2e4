//! Pay: one commit, one operation for a tender, whatever is clicked and whenever.

use super::{Checked, Scene};
use crate::{CardPayment, CashPayment, SaleState, Settings, State, TenderState, Till, TillError, settling::came_late};
use checkout::{CashRounding, CashRule};
use protocol::Key;
use std::collections::HashSet;
use uuid::Uuid;

#[tokio::test]
async fn pay_saves_everything_or_nothing() -> Checked {
    let scene = Scene::new()?;
    let before = scene.sale().await?;
    let numbers = "SELECT sum(last) FROM counters";
    // Each place where Pay writes is refused once, as a full disk could refuse it.
    for (name, place) in [
        ("freezing a line", "UPDATE ON lines"),
        ("a tax", "INSERT ON sale_taxes"),
        ("the sale's number", "UPDATE ON counters"),
        ("freezing the sale", "UPDATE ON sales"),
        ("the tender", "INSERT ON tenders"),
        ("the operation", "INSERT ON operations"),
        ("the log of attempts", "INSERT ON attempts"),
        ("the audit", "INSERT ON audit"),
    ] {
        let fault = format!("CREATE TRIGGER fault BEFORE {place} BEGIN SELECT RAISE(ABORT, 'a fault'); END");
        scene.file()?.execute_batch(&fault)?;
        let refused = scene.by_card(&before, 590).await;
        scene.file()?.execute_batch("DROP TRIGGER fault")?;
        assert!(refused.is_err(), "{name}");
        let after = scene.till.sale(before.id).await?;
        assert_eq!(after, before, "{name}");
        let left = "SELECT (SELECT count(*) FROM tenders) + (SELECT count(*) FROM operations)
            + (SELECT count(*) FROM attempts) + (SELECT count(*) FROM sale_taxes)
            + (SELECT count(*) FROM audit WHERE what = 'payment-begun')";
        assert_eq!((scene.count(left)?, scene.count(numbers)?), (0, 0), "{name}");
    }
    let operation = scene.by_card(&before, 590).await?;
    assert_eq!((operation.state, operation.amount, operation.sale_number), (State::Saved, 590, Some(1)));
    assert_eq!(operation.reference.as_deref(), Some("till-1/1"));
    let sale = scene.till.sale(before.id).await?;
    assert_eq!((sale.state, sale.due, sale.paid), (SaleState::Paying, 0, 0));
    assert_eq!(sale.tenders[0].operation.as_ref().map(|operation| operation.key), Some(operation.key));
    let entries = scene.till.audit(Some(sale.id), 0, 10).await?;
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].what.as_str(), entries[0].who.as_str()), ("payment-begun", "cashier"));
    assert_eq!(entries[0].details["key"], operation.key.to_string());
    assert!(!entries[0].details.to_string().contains("tok_visa"));
    Ok(())
}

#[tokio::test]
async fn a_commit_that_fails_is_looked_up_before_anybody_is_told() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    // COMMIT itself fails, after every statement of it succeeded.
    scene.file()?.execute_batch(
        "CREATE TABLE fault (sale_id TEXT REFERENCES sales (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER fault_at_commit AFTER INSERT ON audit BEGIN INSERT INTO fault VALUES ('none'); END",
    )?;
    let refused = scene.by_card(&sale, 590).await;
    let error = refused.err().ok_or("was saved")?.downcast::<TillError>()?;
    assert!(matches!(*error, TillError::Storage(_)) && error.retryable(), "{error:?}");
    scene.file()?.execute_batch("DROP TRIGGER fault_at_commit")?;
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 0);
    assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Open);
    scene.by_card(&sale, 590).await?;
    Ok(())
}

#[tokio::test]
async fn a_file_that_cannot_be_written_refuses_in_the_open() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let other = scene.file()?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    let refused = scene.by_card(&sale, 590).await.err().ok_or("was saved")?.downcast::<TillError>()?;
    assert!(matches!(*refused, TillError::Storage(_)) && refused.retryable(), "{refused:?}");
    other.execute_batch("ROLLBACK")?;
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 0);
    scene.by_card(&sale, 590).await?;
    // One that was opened to look changes nothing, and sees what is there.
    let looking = Till::open_read_only(scene.till.data_dir())?;
    assert_eq!(looking.sale(sale.id).await?.state, SaleState::Paying);
    assert!(matches!(looking.add_article("BAK-201", None).await, Err(TillError::Storage(_))));
    Ok(())
}

#[tokio::test]
async fn a_probe_reaches_the_disk_where_nothing_else_does() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 590).await?;
    let log_bytes = || std::fs::metadata(scene.dir.path().join("data/till.db-wal")).map(|wal| wal.len());
    let before = (log_bytes()?, scene.till.sale(sale.id).await?);
    // What the window can ask for while a frozen sale is in front: it succeeds, and nothing of it is written.
    scene.till.resume_sale(sale.id).await?;
    scene.till.open_sale().await?;
    assert_eq!(log_bytes()?, before.0);
    scene.till.probe().await?;
    assert!(log_bytes()? > before.0, "the probe wrote nothing");
    assert_eq!(scene.till.sale(sale.id).await?, before.1);
    let other = scene.file()?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    let refused = scene.till.probe().await;
    assert!(matches!(refused, Err(TillError::Storage(_))), "{refused:?}");
    assert!(matches!(Till::open_read_only(scene.till.data_dir())?.probe().await, Err(TillError::Storage(_))));
    Ok(())
}

#[tokio::test]
async fn twenty_clicks_make_one_operation() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let payment = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "tok_visa".into() };
    let clicks: Vec<_> = (0..20)
        .map(|_| {
            let (till, payment) = (scene.till.clone(), payment.clone());
            tokio::spawn(async move { till.pay_card(payment).await.map(|operation| operation.key) })
        })
        .collect();
    let mut keys = HashSet::<Key>::new();
    for click in clicks {
        keys.insert(click.await??);
    }
    assert_eq!(keys.len(), 1);
    assert_eq!(scene.count("SELECT count(*) FROM operations")?, 1);
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'payment-begun'")?, 1);
    Ok(())
}

#[tokio::test]
async fn twenty_dialogs_on_one_sale_pay_it_once() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let clicks: Vec<_> = (0..20)
        .map(|_| {
            let (till, sale_id) = (scene.till.clone(), sale.id);
            tokio::spawn(async move {
                let tender_id = Uuid::now_v7();
                till.pay_card(CardPayment { tender_id, sale_id, amount: 590, card: "tok_visa".into() }).await
            })
        })
        .collect();
    let mut paid = 0;
    for click in clicks {
        match click.await? {
            Ok(_) => paid += 1,
            Err(refused) => assert!(matches!(refused, TillError::SaleFrozen(_)), "{refused:?}"),
        }
    }
    assert_eq!((paid, scene.count("SELECT count(*) FROM operations")?), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_late_click_finds_its_own_operation_in_every_state() -> Checked {
    for state in State::ALL {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
        let payment = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "tok_visa".into() };
        let operation = scene.till.pay_card(payment.clone()).await?;
        scene.settle(&operation, state).await?;
        let late = scene.till.pay_card(payment.clone()).await?;
        assert_eq!((late.key, late.state), (operation.key, state));
        // Also once the next customer is served, and under another name of the till.
        if state == State::Approved {
            scene.till.new_sale().await?;
            scene.till.save_settings(Settings { till_name: "till-2".into(), ..scene.till.settings().await? }).await?;
            assert_eq!(scene.till.pay_card(payment.clone()).await?.key, operation.key);
        }
        for other in [
            CardPayment { amount: 589, ..payment.clone() },
            CardPayment { card: "tok_mir".into(), ..payment.clone() },
            CardPayment { sale_id: scene.till.new_sale().await.map_or(Uuid::now_v7(), |sale| sale.id), ..payment },
        ] {
            let refused = scene.till.pay_card(other).await;
            assert!(matches!(refused, Err(TillError::IntentReused(_) | TillError::NotFound("sale"))), "{refused:?}");
        }
        assert_eq!(scene.count("SELECT count(*) FROM operations")?, 1, "{state}");
    }
    Ok(())
}

#[tokio::test]
async fn a_card_number_is_kept_nowhere() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let payment = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "4111 1111 1111 1111".into() };
    let refused = scene.till.pay_card(payment).await.err().ok_or("it was taken")?;
    assert!(matches!(&refused, TillError::InvalidCard(why) if !why.contains("1111")), "{refused:?}");
    let settings = scene.till.settings().await?;
    for named in [
        Settings { shop_name: "Visa 4111 1111 1111 1111".into(), ..settings.clone() },
        Settings { till_name: "4111-1111-1111-1111".into(), ..settings.clone() },
    ] {
        assert!(matches!(scene.till.save_settings(named).await, Err(TillError::InvalidSetting(_))));
    }
    assert_eq!((scene.count("SELECT count(*) FROM operations")?, scene.till.settings().await?), (0, settings));
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE details LIKE '%1111%'")?, 0);
    Ok(())
}

#[tokio::test]
async fn nothing_is_paid_twice_or_over_what_is_due() -> Checked {
    let scene = Scene::new()?;
    let empty = scene.till.open_sale().await?;
    assert!(matches!(scene.till.begin_tender(empty.id).await, Err(TillError::InvalidAmount(_))));
    let sale = scene.sale().await?;
    let dialog = scene.till.begin_tender(sale.id).await?;
    let with = |amount| CardPayment { tender_id: dialog.tender_id, sale_id: sale.id, amount, card: "tok_visa".into() };
    for wrong in [0, -590, i64::MIN, 100_000_000] {
        assert!(matches!(scene.till.pay_card(with(wrong)).await, Err(TillError::InvalidAmount(_))), "{wrong}");
    }
    let over = scene.till.pay_card(with(591)).await;
    assert!(matches!(&over, Err(TillError::OverDue { amount: 591, due: 590, .. })), "{over:?}");
    assert_eq!(over.map_err(|error| error.to_string()).err().as_deref(), Some("5.91 is more than the 5.90 still due"));
    let no_card = scene.till.pay_card(CardPayment { card: String::new(), ..with(590) }).await;
    assert!(matches!(no_card, Err(TillError::InvalidCard(_))), "{no_card:?}");
    assert_eq!(scene.till.sale(sale.id).await?.state, SaleState::Open);

    let operation = scene.by_card(&sale, 590).await?;
    assert!(matches!(scene.till.begin_tender(sale.id).await, Err(TillError::SaleFrozen(_))));
    assert!(matches!(scene.till.pay_card(with(590)).await, Err(TillError::SaleFrozen(_))));
    let cash = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: 1_000 };
    assert!(matches!(scene.till.pay_cash(cash.clone()).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::NeedsAttention).await?;
    assert!(matches!(scene.till.pay_cash(cash.clone()).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::Approved).await?;
    assert!(matches!(scene.till.pay_card(with(590)).await, Err(TillError::SaleChanged(_))));
    assert!(matches!(scene.till.pay_cash(cash).await, Err(TillError::SaleChanged(_))));
    assert_eq!(scene.count("SELECT count(*) FROM tenders")?, 1);
    Ok(())
}

#[tokio::test]
async fn after_a_decline_the_sale_is_paid_another_way() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let first = scene.by_card(&sale, 590).await?;
    let declined = scene.settle(&first, State::Declined).await?;
    assert_eq!(declined.state, State::Declined);
    assert_eq!(scene.till.sale(sale.id).await?.due, 590);
    let second = scene.by_card(&sale, 590).await?;
    assert_ne!(second.key, first.key);
    scene.settle(&second, State::Cancelled).await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let taken = scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 1_000 }).await?;
    assert_eq!((taken.change, taken.drawer, taken.rounding), (410, 590, 0));
    let tenders = &taken.sale.tenders;
    assert_eq!(
        tenders.iter().map(|tender| tender.state).collect::<Vec<_>>(),
        [TenderState::Declined, TenderState::Cancelled, TenderState::Taken]
    );
    assert_eq!(
        tenders.iter().map(|tender| tender.replaces).collect::<Vec<_>>(),
        [None, Some(tenders[0].id), Some(tenders[1].id)]
    );
    assert_eq!((taken.sale.state, taken.sale.receipt_number), (SaleState::Completed, Some(1)));
    Ok(())
}

#[tokio::test]
async fn a_declined_sale_goes_back_to_the_cart_and_keeps_its_number() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    assert!(matches!(scene.till.back_to_cart(sale.id).await, Err(TillError::SaleFrozen(_))));
    scene.settle(&operation, State::Declined).await?;
    let open = scene.till.back_to_cart(sale.id).await?;
    assert_eq!((open.state, open.number, open.total), (SaleState::Open, Some(1), 590));
    assert_eq!(scene.till.back_to_cart(sale.id).await?.state, SaleState::Open);
    let changed = scene.till.add_article("BAK-201", None).await?;
    assert_eq!((changed.id, changed.total), (sale.id, 775));
    let again = scene.by_card(&changed, 775).await?;
    assert_eq!((again.sale_number, again.reference.as_deref()), (Some(1), Some("till-1/1")));
    scene.settle(&again, State::Approved).await?;
    assert!(matches!(scene.till.back_to_cart(sale.id).await, Err(TillError::SaleChanged(_))));
    Ok(())
}

#[tokio::test]
async fn a_sale_completes_in_the_commit_that_makes_its_last_tender_paid() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    // The receipt's number is refused: then the approval is not stored either, and settles anew.
    let operation = scene.by_card(&sale, 590).await?;
    scene.file()?.execute_batch(
        "CREATE TRIGGER fault BEFORE UPDATE ON counters WHEN NEW.name = 'receipt' BEGIN SELECT RAISE(ABORT, 'a fault'); END",
    )?;
    assert!(scene.settle(&operation, State::Approved).await.is_err());
    scene.file()?.execute_batch("DROP TRIGGER fault")?;
    assert_eq!(scene.till.operation(operation.key).await?.state, State::Saved);
    assert_eq!(scene.till.sale(sale.id).await?.tenders[0].state, TenderState::Settling);
    let approved = scene.settle(&operation, State::Approved).await?;
    assert_eq!(approved.receipt_number, Some(1));
    let sale = scene.till.sale(sale.id).await?;
    assert_eq!((sale.state, sale.paid, sale.due, sale.rounding), (SaleState::Completed, 590, 0, 0));
    let entries = scene.till.audit(Some(sale.id), 0, 10).await?;
    assert_eq!(
        entries.iter().map(|entry| (entry.what.as_str(), entry.who.as_str())).collect::<Vec<_>>(),
        [("payment-begun", "cashier"), ("payment-settled", "bank"), ("sale-completed", "bank")]
    );
    Ok(())
}

#[tokio::test]
async fn card_and_cash_together_pay_a_sale_in_any_order_of_settling() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 300).await?;
    let dialog = scene.till.begin_tender(sale.id).await?;
    assert_eq!((dialog.due, dialog.cash_due, &dialog.cash_notes[..2]), (290, 290, &[290, 300][..]));
    let cash = CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: 500 };
    let taken = scene.till.pay_cash(cash.clone()).await?;
    assert_eq!((taken.change, taken.sale.state, taken.sale.paid), (210, SaleState::Paying, 290));
    // The card is declined: its part is due again, the cash stays.
    scene.settle(&card, State::Declined).await?;
    assert!(matches!(scene.till.back_to_cart(sale.id).await, Err(TillError::SaleFrozen(_))));
    assert_eq!(scene.till.sale(sale.id).await?.due, 300);
    let other = scene.by_card(&sale, 300).await?;
    scene.settle(&other, State::Approved).await?;
    let sale = scene.till.sale(sale.id).await?;
    assert_eq!((sale.state, sale.paid, sale.receipt_number), (SaleState::Completed, 590, Some(1)));
    // The cash click that comes late finds its own answer.
    let late = scene.till.pay_cash(cash).await?;
    assert_eq!((late.change, late.drawer, late.sale.receipt_number), (210, 290, Some(1)));
    Ok(())
}

#[tokio::test]
async fn cash_is_rounded_to_the_coins_that_there_are() -> Checked {
    let scene = Scene::new()?;
    let five = CashRule::new(5, CashRounding::Nearest).ok_or("no rule")?;
    scene.till.save_settings(Settings { cash: five, ..Settings::default() }).await?;
    // 0.755 × 1.99 = 1.50, and 1.49 + 1.99 = 3.48: 4.98 together, 5.00 in coins.
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    scene.till.add_article("DAI-401", None).await?;
    let sale = scene.till.add_article("DAI-402", None).await?;
    assert_eq!(sale.total, 498);
    let dialog = scene.till.begin_tender(sale.id).await?;
    assert_eq!((dialog.due, dialog.cash_due, dialog.rounding), (498, 500, 2));
    let with = |tendered| CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered };
    for wrong in [0, 499, 1_001, -500] {
        assert!(matches!(scene.till.pay_cash(with(wrong)).await, Err(TillError::InvalidAmount(_))), "{wrong}");
    }
    let taken = scene.till.pay_cash(with(1_000)).await?;
    assert_eq!((taken.change, taken.rounding, taken.drawer), (500, 2, 500));
    assert_eq!((taken.sale.state, taken.sale.rounding, taken.sale.total), (SaleState::Completed, 2, 498));
    assert_eq!(scene.till.pay_cash(with(1_000)).await?.change, 500);
    assert!(matches!(scene.till.pay_cash(with(2_000)).await, Err(TillError::IntentReused(_))));
    // By card the same is exact.
    scene.till.new_sale().await?;
    let sale = scene.till.add_article("DAI-401", Some("2")).await?;
    let operation = scene.by_card(&sale, 298).await?;
    scene.settle(&operation, State::Approved).await?;
    assert_eq!(scene.till.sale(sale.id).await?.rounding, 0);
    Ok(())
}

#[tokio::test]
async fn a_sale_of_nothing_is_completed_without_money() -> Checked {
    let scene = Scene::new()?;
    scene.file()?.execute("UPDATE articles SET price = 0 WHERE sku = 'PAN-608'", [])?;
    let sale = scene.till.add_article("PAN-608", None).await?;
    let dialog = scene.till.begin_tender(sale.id).await?;
    assert_eq!((dialog.due, dialog.cash_due), (0, 0));
    let taken = scene.till.pay_cash(CashPayment { tender_id: dialog.tender_id, sale_id: sale.id, tendered: 0 }).await?;
    assert_eq!((taken.sale.state, taken.change), (SaleState::Completed, 0));
    Ok(())
}

#[tokio::test]
async fn another_end_that_comes_late_is_in_the_audit_and_changes_nothing() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.settle(&scene.by_card(&sale, 590).await?, State::Declined).await?;
    let before = scene.till.sale(sale.id).await?;
    let key = operation.key;
    let told = scene.till.inner.store.write(store::Priority::Background, move |tx| {
        let row = outbox::by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let late = outbox::LateAnswer { state: State::Approved, result: Some(r#"{"id":"pay_2"}"#.to_owned()) };
        came_late(tx, &row, &late)
    });
    told.await?;
    // The alarm is the reason to look at it, and all that is to be seen.
    let mut after = scene.till.sale(sale.id).await?;
    let shown = after.tenders.iter_mut().find_map(|tender| tender.operation.as_mut()).ok_or("no operation")?;
    assert_eq!(shown.reason.take().as_deref(), Some("late-answer: the bank says approved"));
    assert_eq!(after, before);
    let alarms = scene.till.alarms_since(0).await?;
    assert_eq!(
        alarms.iter().map(|alarm| (alarm.operation.key, alarm.came)).collect::<Vec<_>>(),
        [(key, State::Approved)]
    );
    assert_eq!(scene.till.alarms_since(scene.till.audit_end().await?).await?, []);
    let entries = scene.till.audit(Some(sale.id), 0, 10).await?;
    let alarm = entries.last().ok_or("no entry")?;
    assert_eq!((alarm.what.as_str(), alarm.who.as_str()), ("late-answer", "bank"));
    let details = &alarm.details;
    assert_eq!((&details["key"], &details["holds"]), (&key.to_string().into(), &"declined".into()));
    assert_eq!((&details["came"], &details["result"]["id"]), (&"approved".into(), &"pay_2".into()));
    Ok(())
}

#[tokio::test]
async fn receipt_numbers_have_no_gaps() -> Checked {
    let scene = Scene::new()?;
    let mut numbers = Vec::new();
    for round in 0..6 {
        let sale = scene.sale().await?;
        let operation = scene.by_card(&sale, 590).await?;
        // Every second sale is declined first, and takes no number for it.
        if round % 2 == 0 {
            scene.settle(&operation, State::Approved).await?;
        } else {
            scene.settle(&operation, State::Declined).await?;
            let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
            scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 590 }).await?;
        }
        numbers.push(scene.till.sale(sale.id).await?.receipt_number);
        scene.till.new_sale().await?;
    }
    assert_eq!(numbers, (1..=6).map(Some).collect::<Vec<_>>());
    let Scene { till, dir } = scene;
    drop(till);
    let till = Till::open(&dir.path().join("data"))?;
    let sale = till.add_article("CAF-101", None).await?;
    let tender_id = till.begin_tender(sale.id).await?.tender_id;
    let taken = till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 220 }).await?;
    assert_eq!(taken.sale.receipt_number, Some(7));
    Ok(())
}
