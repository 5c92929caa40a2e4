//! What the till does not take: texts that read as another than they are, amounts that nobody hands over, the figures of another currency.

use super::{
    Checked, Scene,
    people::{by_boris, pin, staffed},
};
use crate::{
    Asked, CardPayment, CashPayment, CategoryDetails, Charge, CollectAgain, NewPerson, Printer, Refund, Role, Settings,
    State, TillError, clock,
};
use protocol::{Amount, CardToken, Currency};
use uuid::Uuid;

/// Turned round, not seen, a tag, ends of a line, and what a printer obeys.
const UNSEEN: [&str; 7] =
    ["A\u{202e}abc", "\u{200b}", "A\u{e0041}b", "A\u{2028}b", "A\nTOTAL EUR 0.01", "A\u{1b}@", "A\0b"];

fn charge(reference: &str) -> Checked<Charge> {
    Ok(Charge {
        intent_id: clock::new_id(),
        amount: Amount::new(500)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa".to_owned())?,
        reference: Some(reference.to_owned()),
        accepted_offline: false,
    })
}

#[tokio::test]
async fn no_text_reads_as_another_than_it_is() -> Checked {
    let scene = Scene::new()?;
    let till = &scene.till;
    let sale = scene.sale().await?;
    let line_id = sale.lines[0].id;
    for text in UNSEEN {
        let reference = till.charge(charge(text)?).await.err();
        assert!(matches!(reference, Some(TillError::InvalidReference(_))), "{text:?}: {reference:?}");
        let note = till.set_note(line_id, text).await.err();
        assert!(matches!(note, Some(TillError::InvalidText(_))), "{text:?}: {note:?}");
        let shop = till.save_settings(Settings { shop_name: text.into(), ..Settings::default() }).await.err();
        assert!(matches!(shop, Some(TillError::InvalidSetting(_))), "{text:?}: {shop:?}");
        let person = NewPerson { name: text.into(), role: Role::Manager, pin: "2847".into() };
        let person = till.add_person(person).await.err();
        assert!(matches!(person, Some(TillError::InvalidPerson(_))), "{text:?}: {person:?}");
        let mut article = till.article("CAF-101").await?;
        article.name = text.into();
        let article = till.save_article(Some("CAF-101"), article).await.err();
        assert!(matches!(article, Some(TillError::InvalidArticle(_))), "{text:?}: {article:?}");
        for (id, name) in [("new", text), (text, "New")] {
            let category = CategoryDetails { id: id.into(), name: name.into(), colour: "#204060".into() };
            let category = till.save_category(category).await.err();
            assert!(matches!(category, Some(TillError::InvalidArticle(_))), "{text:?}: {category:?}");
        }
        let printer = Printer::tcp(&format!("{text}printer")).err();
        assert!(matches!(printer, Some(TillError::InvalidSetting(_))), "{text:?}: {printer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn names_hold_no_card_number_and_none_of_the_audits_own_words() -> Checked {
    let scene = Scene::new()?;
    let number = "4242 4242 4242 4242";
    let category = CategoryDetails { id: "new".into(), name: number.into(), colour: "#204060".into() };
    let category = scene.till.save_category(category).await.err();
    assert!(matches!(category, Some(TillError::InvalidArticle(_))), "{category:?}");
    let mut article = scene.till.article("CAF-101").await?;
    article.name = number.into();
    let article = scene.till.save_article(Some("CAF-101"), article).await.err();
    assert!(matches!(article, Some(TillError::InvalidArticle(_))), "{article:?}");
    let person = NewPerson { name: "Restore".into(), role: Role::Manager, pin: "2847".into() };
    let person = scene.till.add_person(person).await.err();
    assert!(matches!(person, Some(TillError::InvalidPerson(_))), "{person:?}");
    Ok(())
}

#[test]
fn a_printer_has_an_address_that_can_be_one() -> Checked {
    for address in ["10.0.0.7", "printer.shop.example", "[fe80::1]:9100", "printer:9100"] {
        assert!(Printer::tcp(address).is_ok(), "{address}");
    }
    for address in [&"a".repeat(100_000), &format!("{}:9100", "a".repeat(254))] {
        let refused = Printer::tcp(address).err();
        assert!(matches!(refused, Some(TillError::InvalidSetting(_))), "{refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn nobody_hands_so_much_cash_over() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    for tendered in [100_000_000_001, i64::MAX, -1, i64::MIN] {
        let payment = CashPayment { tender_id: clock::new_id(), sale_id: sale.id, tendered };
        let refused = scene.till.pay_cash(payment).await.err();
        assert!(matches!(refused, Some(TillError::InvalidAmount(_))), "{tendered}: {refused:?}");
    }
    assert_eq!(scene.count("SELECT count(*) FROM tenders")?, 0);
    let payment = CashPayment { tender_id: clock::new_id(), sale_id: sale.id, tendered: 100_000_000_000 };
    assert_eq!(scene.till.pay_cash(payment).await?.change, 100_000_000_000 - 590);
    Ok(())
}

#[test]
fn no_secret_is_written_out_for_a_fault() {
    let (tender_id, sale_id) = (Uuid::nil(), Uuid::nil());
    let card = || "tok_secret".to_owned();
    let person = NewPerson { name: "Boris".into(), role: Role::Manager, pin: "2847".into() };
    let payment = CardPayment { tender_id, sale_id, amount: 1, card: card() };
    let collect = CollectAgain { tender_id, late_tender_id: sale_id, card: card() };
    for shown in [format!("{person:?}"), format!("{payment:?}"), format!("{collect:?}")] {
        assert!(!shown.contains("2847") && !shown.contains("tok_secret"), "{shown}");
    }
}

/// The shop has gone over to dollars.
fn in_dollars() -> Checked<Settings> {
    Ok(Settings { currency: Currency::parse("USD")?, ..Settings::default() })
}

#[tokio::test]
async fn a_sale_takes_no_figures_of_another_currency_or_tax_rule() -> Checked {
    for changed in [in_dollars()?, Settings { prices_include_tax: false, ..Settings::default() }] {
        let scene = Scene::new()?;
        let sale = scene.sale().await?;
        scene.till.save_settings(changed.clone()).await?;
        let refused = scene.till.add_article("CAF-101", None).await;
        assert!(matches!(&refused, Err(error) if error.code() == "other-terms"), "{refused:?}");
        assert_eq!(scene.till.sale(sale.id).await?.total, 590);
        // What is in it can be paid, and the next sale is of the new ones.
        scene.in_cash(&sale, 590).await?;
        scene.till.new_sale().await?;
        let next = scene.till.add_article("CAF-101", None).await?;
        // Tax within 2.20, or on top of it.
        let total = if changed.prices_include_tax { 220 } else { 262 };
        assert_eq!((next.currency, next.total), (changed.currency, total));
    }
    Ok(())
}

#[tokio::test]
async fn a_sale_with_nothing_in_it_goes_over_to_another_currency() -> Checked {
    let scene = Scene::new()?;
    scene.till.new_sale().await?;
    scene.till.save_settings(in_dollars()?).await?;
    let sale = scene.till.add_article("CAF-101", None).await?;
    assert_eq!(sale.currency.code(), "USD");
    Ok(())
}

#[tokio::test]
async fn a_limit_in_one_currency_lets_nothing_of_another_pass() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let sale = scene.sale().await?;
    let paid = scene.by_card(&sale, 590).await?;
    scene.settle(&paid, State::Approved).await?;
    scene.till.new_sale().await?;
    let open = scene.sale().await?;
    let yen = Settings { currency: Currency::parse("JPY")?, ..Settings::default() };
    by_boris(&scene, &boris).await?.save_settings(yen).await?;
    // 1.00 in euros is no 100 yen.
    let refund = Refund { intent_id: clock::new_id(), payment: paid.key, amount: Amount::new(100)? };
    let refused = scene.till.refund(refund).await;
    let why = refused.as_ref().err().map(ToString::to_string).unwrap_or_default();
    assert!(matches!(refused, Err(TillError::NotAllowed(_))), "{refused:?}");
    assert!(why.contains("1.00 EUR") && why.contains("JPY") && why.contains("Boris"), "{why}");
    let off = Some(Asked::Amount(1));
    assert!(matches!(scene.till.discount_line(open.lines[0].id, off).await, Err(TillError::NotAllowed(_))));
    // A part is a part in each.
    scene.till.discount_line(open.lines[0].id, Some(Asked::percent("5")?)).await?;
    by_boris(&scene, &boris).await?.refund(refund).await?;
    Ok(())
}

#[tokio::test]
async fn what_the_banks_people_must_look_at_is_cancelled_by_who_may() -> Checked {
    let (scene, boris, anna) = staffed().await?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    scene.settle(&operation, State::NeedsAttention).await?;
    let refused = scene.till.cancel(operation.key).await;
    assert!(matches!(&refused, Err(TillError::NotAllowed(why)) if why.contains("Boris")), "{refused:?}");
    assert_eq!(scene.count("SELECT count(*) FROM operations WHERE cancel_wished_at IS NOT NULL")?, 0);
    by_boris(&scene, &boris).await?.cancel(operation.key).await?;
    let by: String = scene.file()?.query_row(
        "SELECT json_array(person_id, approver_id) FROM audit WHERE what = 'cancel-wished'",
        [],
        |row| row.get(0),
    )?;
    assert_eq!(by, format!("[{},{}]", anna.id, boris.id));
    // The same wish again changes nothing, and asks nobody.
    scene.till.cancel(operation.key).await?;
    scene.till.log_in(pin(&anna, "9031")).await?;
    Ok(())
}

#[tokio::test]
async fn a_copy_of_all_is_made_by_who_may_see_all() -> Checked {
    let (scene, boris, _) = staffed().await?;
    let (till, to) = (&scene.till, |name: &str| scene.dir.path().join(name));
    assert!(matches!(till.backup(&to("a.db"), |_| {}).await, Err(TillError::NotAllowed(_))));
    by_boris(&scene, &boris).await?.backup(&to("b.db"), |_| {}).await?;
    till.lock().await?;
    assert!(matches!(till.backup(&to("c.db"), |_| {}).await, Err(TillError::Locked)));
    till.as_program("command line").backup(&to("d.db"), |_| {}).await?;
    let made = |name: &str| to(name).exists();
    assert_eq!(["a.db", "b.db", "c.db", "d.db"].map(made), [false, true, false, true]);
    Ok(())
}

#[test]
fn what_may_be_saved_is_not_for_a_second_try_by_itself() {
    assert!(!TillError::Unreadable("no answer".to_owned()).retryable());
    assert!(TillError::Storage("full".to_owned()).retryable());
}
