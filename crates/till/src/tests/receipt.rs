//! The receipt says what is in the file, as far as the payment is; the printed ones are counted there.

use super::{
    Checked, Scene,
    returns::{new, settle_legs},
};
use crate::{
    CardPayment, CashPayment, CodePages, Language, NewVoid, Paper, PrintFault, Printer, ReceiptForm, Refund,
    ReturnedGoods, Sale, Settings, State, TillError,
};
use protocol::Amount;
use uuid::Uuid;

async fn printing_to(scene: &Scene, printer: Printer) -> Checked {
    let mut settings = scene.till.printer_settings().await?;
    settings.printer = printer;
    Ok(scene.till.save_printer_settings(settings).await?)
}

async fn in_cash(scene: &Scene, sale: &Sale) -> Checked {
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 1_000 }).await?;
    Ok(())
}

#[tokio::test]
async fn the_receipt_shows_what_was_paid_and_how() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.till.add_article("PRO-301", Some("0.755")).await?;
    scene.till.set_note(sale.lines[0].id, "ripe ones").await?;
    let sale = scene.sale().await?;
    assert!(matches!(scene.till.receipt(sale.id).await, Err(TillError::SaleChanged(_))));
    let operation = scene.by_card(&sale, 740).await?;
    let waiting = scene.till.receipt(sale.id).await?;
    assert!(waiting.text.contains("NOT PAID YET") && waiting.text.contains("Waiting for the bank"), "{}", waiting.text);
    scene.settle(&operation, State::Approved).await?;
    let receipt = scene.till.receipt(sale.id).await?;
    assert!(receipt.lines.iter().all(|line| line.chars().count() <= 42), "{}", receipt.text);
    let payment = format!("  Payment {}", operation.short_code);
    for part in [
        "Kassa Demo Shop",
        "Receipt 1",
        "\n  ripe ones\n  0.755 kg × 1.99                     1.50",
        "  2 × 1.85                            3.70",
        "TOTAL EUR                             7.40",
        "Card visa ··4242                      7.40",
        "  Approved 8F21K0",
        &payment,
        "till-1/1",
        "  Bank pay_1",
        "7 %          4.86        0.34         5.20",
        "19 %         1.85        0.35         2.20",
    ] {
        assert!(receipt.text.contains(part), "{part:?} in\n{}", receipt.text);
    }
    assert_eq!(receipt.receipt_number, Some(1));
    let russian = ReceiptForm { paper: Paper::Columns32, language: Language::Russian };
    let other = scene.till.receipt_in(sale.id, russian).await?;
    assert!(other.text.contains("ИТОГО EUR                   7.40"), "{}", other.text);
    assert!(other.html.contains("<html lang=\"ru\">"));
    Ok(())
}

#[tokio::test]
async fn what_was_accepted_offline_is_marked_until_the_bank_has_said_its_word() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.taken_offline(&sale, 590).await?;
    let receipt = scene.till.receipt(sale.id).await?;
    assert!(receipt.text.contains("Saved. Not yet approved by the bank.\n  Waiting for the bank"), "{}", receipt.text);
    scene.settle(&operation, State::Approved).await?;
    let receipt = scene.till.receipt(sale.id).await?;
    assert!(!receipt.text.contains("OFFLINE") && receipt.text.contains("  Approved 8F21K0"), "{}", receipt.text);
    Ok(())
}

#[tokio::test]
async fn the_first_print_is_the_original_and_each_other_a_counted_copy() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let folder = scene.dir.path().join("printed");
    std::fs::create_dir(&folder)?;
    let none = scene.till.print_receipt(sale.id).await;
    assert!(matches!(none, Err(TillError::Print(PrintFault::NoPrinter))), "{none:?}");
    printing_to(&scene, Printer::File { path: folder.clone() }).await?;
    assert!(matches!(scene.till.print_receipt(sale.id).await, Err(TillError::SaleChanged(_))));
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    let card = CardPayment { tender_id, sale_id: sale.id, amount: 590, card: "tok_visa".into() };
    let operation = scene.till.pay_card(card).await?;
    // A slip of what is not paid yet is none of the receipt's prints.
    assert_eq!(scene.till.print_receipt(sale.id).await?.copy, 0);
    assert_eq!(scene.till.print_receipt(sale.id).await?.copy, 1);
    scene.settle(&operation, State::Approved).await?;
    let before = scene.till.sale(sale.id).await?;
    for copy in 0..3 {
        let printed = scene.till.print_receipt(sale.id).await?;
        assert_eq!((printed.print, printed.copy), (copy + 3, copy));
        let text = std::fs::read_to_string(folder.join(format!("till-1-receipt-1-{}.txt", printed.print)))?;
        assert!(text.contains("Receipt 1"), "{text}");
        assert_eq!(text.matches(&format!("*** COPY {copy} ***")).count(), if copy == 0 { 0 } else { 2 }, "{text}");
    }
    assert_eq!(scene.till.sale(sale.id).await?, before, "printing changes nothing of the sale");
    assert_eq!(scene.till.receipt(sale.id).await?.printed, 3);
    let entries = scene.till.audit(Some(sale.id), 0, 100).await?;
    let printed: Vec<_> = entries.iter().filter(|entry| entry.what == "receipt-printed").collect();
    assert_eq!(printed.len(), 3);
    assert_eq!((&printed[2].details["copy"], &printed[2].details["print"]), (&2.into(), &5.into()));
    Ok(())
}

#[tokio::test]
async fn a_print_that_never_began_leaves_the_original_to_be_printed() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    in_cash(&scene, &sale).await?;
    let folder = scene.dir.path().join("gone");
    printing_to(&scene, Printer::File { path: folder.clone() }).await?;
    let failed = scene.till.print_receipt(sale.id).await.err().ok_or("printed into nothing")?;
    assert_eq!((failed.code(), failed.retryable()), ("printer-not-found", true), "{failed}");
    assert_eq!(scene.till.receipt(sale.id).await?.printed, 0);
    std::fs::create_dir(&folder)?;
    assert_eq!(scene.till.print_receipt(sale.id).await?.copy, 0);
    let outcomes = scene
        .count("SELECT count(*) FROM receipt_prints WHERE outcome = 'not_printed' AND fault = 'printer-not-found'")?;
    assert_eq!(outcomes, 1);
    // A till that died while it printed: nobody knows.
    scene.file()?.execute_batch(
        "INSERT INTO receipt_prints (sale_id, print, of_receipt, copy, at) SELECT sale_id, 3, 1, 1, 0 FROM receipt_prints WHERE print = 1",
    )?;
    assert_eq!(scene.till.print_receipt(sale.id).await?.copy, 2);
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_and_a_plain_file_are_named() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    in_cash(&scene, &sale).await?;
    printing_to(&scene, Printer::File { path: "/dev/full".into() }).await?;
    let failed = scene.till.print_receipt(sale.id).await.err().ok_or("printed to a full device")?;
    assert_eq!(failed.code(), "printer-disconnected", "{failed}");
    let file = scene.dir.path().join("a file");
    std::fs::write(&file, "kept")?;
    printing_to(&scene, Printer::File { path: file.clone() }).await?;
    let failed = scene.till.print_receipt(sale.id).await.err().ok_or("printed over a file")?;
    assert_eq!(failed.code(), "printer-fault", "{failed}");
    assert_eq!(std::fs::read_to_string(file)?, "kept");
    Ok(())
}

#[tokio::test]
async fn the_settings_of_the_printer_are_checked_and_signed() -> Checked {
    let scene = Scene::new()?;
    for (typed, kept) in [
        ("printer", Some("printer:9100")),
        (" printer.shop:9101 ", Some("printer.shop:9101")),
        ("10.0.0.7", Some("10.0.0.7:9100")),
        ("::1", Some("[::1]:9100")),
        ("[::1]:9", Some("[::1]:9")),
        ("", None),
        ("printer:0", None),
        ("printer:99999", None),
        ("http://printer", None),
        ("a b", None),
    ] {
        let printer = Printer::tcp(typed).ok();
        assert_eq!(printer, kept.map(|kept| Printer::Tcp { address: kept.to_owned() }), "{typed:?}");
    }
    let refused = printing_to(&scene, Printer::File { path: "somewhere".into() }).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("whole path")));
    let mut settings = scene.till.printer_settings().await?;
    settings.printer = Printer::tcp("printer")?;
    settings.form = ReceiptForm { paper: Paper::Columns48, language: Language::Russian };
    settings.code_pages = CodePages::Cyrillic;
    scene.till.save_printer_settings(settings.clone()).await?;
    assert_eq!(scene.till.printer_settings().await?, settings);
    let entries = scene.till.audit(None, 0, 100).await?;
    let last = entries.last().ok_or("no entry")?;
    assert_eq!(
        (last.what.as_str(), &last.details["after"]["printer"]["address"]),
        ("printer-changed", &"printer:9100".into())
    );
    Ok(())
}

#[tokio::test]
async fn the_database_refuses_prints_that_were_not_counted() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let file = scene.file()?;
    let print = |print: u32, of_receipt: u32, copy: u32| {
        format!(
            "INSERT INTO receipt_prints (sale_id, print, of_receipt, copy, at) VALUES ('{}', {print}, {of_receipt}, {copy}, 0)",
            sale.id
        )
    };
    let refuses = |change: &str, reason: &str| match file.execute(change, []) {
        Ok(_) => Err(format!("{change} went through")),
        Err(error) if error.to_string().contains(reason) => Ok(()),
        Err(error) => Err(format!("{change}: {error}")),
    };
    refuses(&print(1, 1, 0), "only what is under payment or paid is printed")?;
    in_cash(&scene, &sale).await?;
    for (change, reason) in
        [(print(1, 0, 0), "as what it is"), (print(2, 1, 0), "one by one"), (print(1, 1, 1), "one original")]
    {
        refuses(&change, reason)?;
    }
    file.execute(&print(1, 1, 0), [])?;
    refuses(&print(2, 1, 0), "one original")?;
    for (change, reason) in [
        ("UPDATE receipt_prints SET copy = 5", "but for its outcome"),
        ("UPDATE receipt_prints SET outcome = 'lost'", "CHECK constraint failed"),
        ("UPDATE receipt_prints SET outcome = 'unsure'", "CHECK constraint failed"),
        ("DELETE FROM receipt_prints", "never dropped"),
        ("UPDATE receipt_printer SET kind = 'tcp'", "CHECK constraint failed"),
        ("UPDATE receipt_printer SET columns = 40", "CHECK constraint failed"),
        ("INSERT INTO receipt_printer VALUES (2, 'none', '', 42, 'en', 'both')", "CHECK constraint failed"),
        ("DELETE FROM receipt_printer", "not dropped"),
    ] {
        refuses(change, reason)?;
    }
    file.execute("UPDATE receipt_prints SET outcome = 'printed'", [])?;
    refuses("UPDATE receipt_prints SET outcome = 'not_printed', fault = 'x'", "but for its outcome, once")?;
    Ok(())
}

#[tokio::test]
async fn the_slip_of_a_return_says_what_is_given_back_and_its_prints_are_counted_too() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let card = scene.by_card(&sale, 300).await?;
    scene.settle(&card, State::Approved).await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 290 }).await?;
    let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    let waiting = scene.till.return_slip(made.id, None).await?;
    assert_eq!((waiting.receipt_number, waiting.return_id, waiting.printed), (Some(2), Some(made.id), 0));
    let operation = made.legs[0].operation.as_ref().ok_or("no operation")?;
    for part in [
        "Refund 2",
        "Of receipt 1",
        "Butter Croissant\n  2 ×                                 3.70",
        "GIVEN BACK EUR                        5.90",
        "Card visa ··4242                      3.00\n  Waiting for the bank",
        &format!("  Refund {}", operation.short_code),
        "Cash                                  2.90",
        "19 %         1.85        0.35         2.20",
    ] {
        assert!(waiting.text.contains(part), "{part:?} in\n{}", waiting.text);
    }
    settle_legs(&scene, &made, State::Approved).await?;
    let done = scene.till.return_slip(made.id, None).await?;
    assert!(done.text.contains("  Approved\n") && done.text.contains("  Bank pay_1"), "{}", done.text);
    let russian = ReceiptForm { paper: Paper::Columns32, language: Language::Russian };
    let other = scene.till.return_slip(made.id, Some(russian)).await?;
    assert!(other.text.contains("К чеку 1") && other.html.contains("<title>Возврат 2</title>"), "{}", other.text);

    let folder = scene.dir.path().join("printed");
    std::fs::create_dir(&folder)?;
    printing_to(&scene, Printer::File { path: folder.clone() }).await?;
    for copy in 0..3 {
        let printed = scene.till.print_return_slip(made.id).await?;
        assert_eq!((printed.return_id, printed.print, printed.copy), (Some(made.id), copy + 1, copy));
        let text = std::fs::read_to_string(folder.join(format!("till-1-refund-2-{}.txt", printed.print)))?;
        assert_eq!(text.matches(&format!("*** COPY {copy} ***")).count(), if copy == 0 { 0 } else { 2 }, "{text}");
    }
    assert_eq!(scene.till.return_slip(made.id, None).await?.printed, 3);
    assert_eq!(scene.till.receipt(sale.id).await?.printed, 0, "a slip is no print of the receipt");
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'return-printed'")?, 3);
    printing_to(&scene, Printer::File { path: scene.dir.path().join("gone") }).await?;
    let failed = scene.till.print_return_slip(made.id).await.err().ok_or("printed into nothing")?;
    assert_eq!(failed.code(), "printer-not-found");
    assert_eq!(scene.count("SELECT count(*) FROM return_prints WHERE fault = 'printer-not-found'")?, 1);
    let nothing = scene.till.print_return_slip(sale.id).await;
    assert!(matches!(nothing, Err(TillError::NotFound("return"))), "{nothing:?}");
    let file = scene.file()?;
    for (change, reason) in [
        ("INSERT INTO return_prints (return_id, print, copy, at) SELECT id, 9, 3, 0 FROM returns", "one by one"),
        ("INSERT INTO return_prints (return_id, print, copy, at) SELECT id, 5, 0, 0 FROM returns", "one original"),
        ("UPDATE return_prints SET copy = 5", "but for its outcome"),
        ("DELETE FROM return_prints", "never dropped"),
    ] {
        let refused = file.execute(change, []).err().ok_or(change)?;
        assert!(refused.to_string().contains(reason), "{change}: {refused}");
    }
    Ok(())
}

/// The paper of a sale that is not paid yet is another one: the first slip of the void is the original.
#[tokio::test]
async fn a_voided_sale_has_a_slip_with_what_was_paid_and_how_it_goes_back() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let payment = scene.by_card(&sale, 300).await?;
    scene.settle(&payment, State::Approved).await?;
    let before = Refund { intent_id: Uuid::now_v7(), payment: payment.key, amount: Amount::new(110)? };
    let before = scene.money_back(before).await?;
    scene.in_cash(&sale, 100).await?;
    let folder = scene.dir.path().join("printed");
    std::fs::create_dir(&folder)?;
    printing_to(&scene, Printer::File { path: folder.clone() }).await?;
    assert!(matches!(scene.till.print_void_slip(sale.id).await, Err(TillError::NotFound("void"))));
    assert_eq!(scene.till.print_receipt(sale.id).await?.copy, 0);
    let void = NewVoid { id: Uuid::now_v7(), sale_id: sale.id, reason: Some("went away".into()) };
    let void = scene.till.void_sale(void).await?;
    for refused in [scene.till.receipt(sale.id).await.map(drop), scene.till.print_receipt(sale.id).await.map(drop)] {
        assert!(matches!(&refused, Err(TillError::SaleChanged(why)) if why.contains("slip")), "{refused:?}");
    }
    let waiting = scene.till.void_slip(sale.id, None).await?;
    assert_eq!((waiting.sale_id, waiting.receipt_number, waiting.printed), (sale.id, None, 0));
    let refund = void.legs[0].operation.as_ref().ok_or("no operation")?;
    for part in [
        "SALE VOIDED",
        "till-1                              Sale 1",
        "Card visa ··4242                      3.00\n  Approved 8F21K0",
        "PAID EUR                              4.00",
        &format!("Card visa ··4242                      1.10\n  Waiting for the bank\n  Refund {}", before.short_code),
        &format!("Card visa ··4242                      1.90\n  Waiting for the bank\n  Refund {}", refund.short_code),
        "Cash                                  1.00",
        "GIVEN BACK EUR                        4.00",
    ] {
        assert!(waiting.text.contains(part), "{part:?} in\n{}", waiting.text);
    }
    assert!(!waiting.text.contains("went away"), "a reason is the shop's own");
    scene.settle(refund, State::Approved).await?;
    let done = scene.till.void_slip(sale.id, None).await?;
    assert!(done.text.contains("1.90\n  Approved\n"), "{}", done.text);
    let russian = ReceiptForm { paper: Paper::Columns32, language: Language::Russian };
    let other = scene.till.void_slip(sale.id, Some(russian)).await?;
    assert!(other.html.contains("<title>ПРОДАЖА АННУЛИРОВАНА</title>"), "{}", other.text);

    for copy in 0..3 {
        let printed = scene.till.print_void_slip(sale.id).await?;
        assert_eq!((printed.return_id, printed.print, printed.copy), (None, copy + 2, copy));
        let text = std::fs::read_to_string(folder.join(format!("till-1-void-1-{}.txt", printed.print)))?;
        assert_eq!(text.matches(&format!("*** COPY {copy} ***")).count(), if copy == 0 { 0 } else { 2 }, "{text}");
    }
    assert_eq!(scene.till.void_slip(sale.id, None).await?.printed, 3);
    // What was not printed is no copy; what may have been is one.
    printing_to(&scene, Printer::File { path: scene.dir.path().join("gone") }).await?;
    let failed = scene.till.print_void_slip(sale.id).await.err().ok_or("printed into nothing")?;
    assert_eq!(failed.code(), "printer-not-found");
    printing_to(&scene, Printer::File { path: folder }).await?;
    assert_eq!(scene.till.print_void_slip(sale.id).await?.copy, 3);
    assert_eq!(scene.count("SELECT count(*) FROM audit WHERE what = 'void-printed'")?, 5);
    Ok(())
}

/// However late it is shown again: under another name and in another zone it would seem to be of another shop and day.
#[tokio::test]
async fn what_was_printed_once_says_the_same_shop_and_hour_for_ever() -> Checked {
    let scene = Scene::new()?;
    let zone = |name: &str, shop: &str| Settings {
        time_zone: Some(name.into()),
        shop_name: shop.into(),
        ..Settings::default()
    };
    scene.till.save_settings(zone("Europe/Berlin", "Corner")).await?;
    let sale = scene.sale().await?;
    let sale = scene.in_cash(&sale, 1_000).await?.sale;
    let made = scene.till.return_goods(new(&sale, ReturnedGoods::Whole)).await?;
    scene.till.new_sale().await?;
    let given_up = scene.sale().await?;
    scene.settle(&scene.by_card(&given_up, 300).await?, State::Approved).await?;
    scene.till.void_sale(NewVoid { id: Uuid::now_v7(), sale_id: given_up.id, reason: None }).await?;
    let all = async || -> Checked<[String; 3]> {
        Ok([
            scene.till.receipt(sale.id).await?.text,
            scene.till.return_slip(made.id, None).await?.text,
            scene.till.void_slip(given_up.id, None).await?.text,
        ])
    };
    let before = all().await?;
    assert!(before.iter().all(|text| text.contains("Corner")), "{before:?}");
    scene.till.save_settings(zone("Pacific/Kiritimati", "Another")).await?;
    assert_eq!(all().await?, before);
    scene.till.new_sale().await?;
    let next = scene.sale().await?;
    let next = scene.in_cash(&next, 1_000).await?.sale;
    assert!(scene.till.receipt(next.id).await?.text.contains("Another"));
    // What an older program completed has the shop's name of today.
    super::migrating::write(&scene.file()?, "DELETE FROM receipt_heads")?;
    assert!(all().await?.iter().all(|text| text.contains("Another")));
    let refused = scene.file()?.execute("INSERT INTO receipt_heads VALUES ('x', 'Another', NULL)", []);
    assert!(refused.is_err());
    Ok(())
}
