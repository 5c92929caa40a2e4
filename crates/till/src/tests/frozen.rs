//! What the file itself refuses, whoever asks.

use super::{Checked, Scene};
use crate::{CashPayment, Settings, State, TillError};

#[tokio::test]
async fn the_figures_of_pay_never_change() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let operation = scene.by_card(&sale, 590).await?;
    let before = scene.till.sale(sale.id).await?;
    // Prices, taxes and settings move on; this sale does not.
    scene.file()?.execute_batch("UPDATE articles SET price = price * 2, tax_rate = 20000, name = name || '!'")?;
    scene.till.save_settings(Settings { prices_include_tax: false, ..Settings::default() }).await?;
    assert_eq!(scene.till.sale(sale.id).await?, before);
    scene.settle(&operation, State::Approved).await?;
    let after = scene.till.sale(sale.id).await?;
    assert_eq!(
        (&after.lines, &after.taxes, after.net, after.tax, after.total),
        (&before.lines, &before.taxes, 531, 59, 590)
    );
    assert_eq!(
        after.taxes.iter().map(|tax| (tax.rate.as_str(), tax.net, tax.tax)).collect::<Vec<_>>(),
        [("7", 346, 24), ("19", 185, 35)]
    );
    Ok(())
}

#[tokio::test]
async fn a_sale_under_payment_cannot_be_edited() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 590).await?;
    let line = sale.lines[0].id;
    let till = &scene.till;
    for refused in [
        till.add_article("BAK-201", None).await,
        till.set_quantity(line, "3").await,
        till.remove_line(line).await,
        till.clear_sale().await,
        till.new_sale().await,
        till.back_to_cart(sale.id).await,
    ] {
        assert!(matches!(refused, Err(TillError::SaleFrozen(_))), "{refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_database_refuses_to_touch_what_is_frozen() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 300).await?;
    let file = scene.file()?;
    for (change, reason) in [
        ("UPDATE lines SET quantity = 3000", "no line changes"),
        ("UPDATE lines SET total = 0, discount = gross", "no line changes"),
        ("DELETE FROM lines", "no line is removed"),
        (
            "INSERT INTO lines (sale_id, sku, name, unit, unit_price, quantity, tax_rate)
             SELECT id, 'X', 'X', 'piece', 1, 1000, 0 FROM sales",
            "no line is added",
        ),
        ("INSERT INTO sale_taxes SELECT id, 99, 0, 0 FROM sales", "no tax is added"),
        ("UPDATE sale_taxes SET tax = 0", "never changes"),
        ("DELETE FROM sale_taxes", "no tax is removed"),
        ("UPDATE sales SET total = 1, net = 1, tax = 0", "a frozen figure never changes"),
        ("UPDATE sales SET number = 99", "a frozen figure never changes"),
        ("UPDATE sales SET currency = 'USD'", "a frozen figure never changes"),
        (
            "UPDATE sales SET state = 'open', net = NULL, tax = NULL, tip = NULL, discount = NULL, total = NULL",
            "stays frozen until its tenders are declined or cancelled",
        ),
        (
            "UPDATE sales SET state = 'completed', receipt_number = 1, rounding = 0, completed_at = 0",
            "completes when it is paid in full",
        ),
        ("DELETE FROM sales", "never dropped"),
        ("UPDATE tenders SET amount = 1", "never changes but for its state"),
        ("UPDATE tenders SET kind = 'cash'", "never changes but for its state"),
        ("DELETE FROM tenders", "never dropped"),
        (
            "INSERT INTO tenders SELECT '00000000-0000-4000-8000-000000000000', sale_id, 2, kind, state, 291, NULL, NULL,
                 reference, NULL, created_at, updated_at, NULL, NULL, NULL FROM tenders",
            "never over what is due",
        ),
        (
            "INSERT INTO tenders SELECT '00000000-0000-4000-8000-000000000000', sale_id, 2, kind, 'approved', 290, NULL,
                 NULL, reference, NULL, created_at, updated_at, NULL, NULL, NULL FROM tenders",
            "never over what is due",
        ),
        (
            "INSERT INTO tenders SELECT '00000000-0000-4000-8000-000000000000', sale_id, 2, kind, state, 290, NULL, NULL,
                 reference, id, created_at, updated_at, NULL, NULL, NULL FROM tenders",
            "replaces one that was declined or cancelled",
        ),
        (
            "INSERT INTO tenders SELECT id, sale_id, 2, kind, state, 290, NULL, NULL, reference, NULL, created_at,
                 updated_at, NULL, NULL, NULL FROM tenders",
            "UNIQUE constraint failed: tenders.id",
        ),
        ("UPDATE counters SET last = 7", "only goes up by one"),
        ("DELETE FROM counters", "never dropped"),
    ] {
        refuses(&file, change, reason);
    }
    Ok(())
}

#[tokio::test]
async fn a_sale_is_frozen_whole_or_not_at_all() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let file = scene.file()?;
    let born = |state: &str, figures: &str, dropped_at: &str| {
        format!(
            "INSERT INTO sales (id, state, held, has_cart, currency, prices_include_tax, cash_step, cash_rounding, created_at,
                 updated_at, number, net, tax, tip, discount, total, dropped_at)
             SELECT '00000000-0000-4000-8000-000000000000', '{state}', 1, 1, currency, prices_include_tax, cash_step,
                 cash_rounding, created_at, updated_at, {figures}, {dropped_at} FROM sales"
        )
    };
    refuses(&file, &born("paying", "1, 1, 0, 0, 0, 1", "NULL"), "a sale begins open");
    refuses(&file, &born("open", "NULL, NULL, NULL, NULL, NULL, NULL", "0"), "a sale begins open");
    let freeze = |net: i64, tax: i64, discount: i64| {
        format!(
            "UPDATE sales SET state = 'paying', number = 1, net = {net}, tax = {tax}, tip = 0, discount = {discount},
                 total = {}",
            net + tax
        )
    };
    refuses(&file, &freeze(531, 59, 0), "a sale is frozen whole");
    file.execute_batch(
        "UPDATE lines SET gross = quantity * unit_price / 1000, discount = 0, sale_discount = 0,
             total = quantity * unit_price / 1000;
         INSERT INTO sale_taxes SELECT id, 7000, 346, 24 FROM sales;
         INSERT INTO sale_taxes SELECT id, 19000, 185, 35 FROM sales",
    )?;
    for (net, tax, discount) in [(530, 59, 0), (531, 58, 0), (530, 60, 0), (531, 59, 1)] {
        refuses(&file, &freeze(net, tax, discount), "a sale is frozen whole");
    }
    assert_eq!(file.execute(&freeze(531, 59, 0), [])?, 1);
    assert_eq!(scene.till.sale(sale.id).await?.due, 590);
    let empty = scene.till.hold_sale(sale.id).await?;
    let empty_freeze = format!("{} WHERE id = '{}'", freeze(0, 0, 0).replace("number = 1", "number = 2"), empty.id);
    refuses(&file, &empty_freeze, "a sale is frozen whole");
    Ok(())
}

#[tokio::test]
async fn a_final_result_and_a_completed_sale_stay() -> Checked {
    let scene = Scene::new()?;
    let declined = scene.sale().await?;
    let operation = scene.by_card(&declined, 590).await?;
    scene.settle(&operation, State::Declined).await?;
    let file = scene.file()?;
    refuses(&file, "UPDATE tenders SET state = 'approved'", "a final result never changes");
    let tender_id = scene.till.begin_tender(declined.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: declined.id, tendered: 590 }).await?;
    for (change, reason) in [
        ("UPDATE sales SET receipt_number = 9", "a completed sale never changes"),
        (
            "UPDATE sales SET state = 'paying', receipt_number = NULL, rounding = NULL, completed_at = NULL",
            "a completed sale never changes",
        ),
        ("UPDATE sales SET state = 'paying'", "a sale goes from open to paying to completed"),
        ("DELETE FROM sales", "never dropped"),
        ("UPDATE tenders SET state = 'declined' WHERE kind = 'cash'", "a final result never changes"),
    ] {
        refuses(&file, change, reason);
    }
    Ok(())
}

#[tokio::test]
async fn the_audit_only_grows() -> Checked {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    scene.by_card(&sale, 590).await?;
    let file = scene.file()?;
    let again =
        "at, offset_s, app_version, who, person_id, approved_by, approver_id, what, sale_id, details, previous, hash";
    let copy = |verb: &str, seq: i64| format!("{verb} INTO audit SELECT {seq}, {again} FROM audit WHERE seq = 1");
    for (change, reason) in [
        ("UPDATE audit SET who = 'nobody'".to_owned(), "append-only"),
        ("DELETE FROM audit WHERE seq = 2".to_owned(), "append-only"),
        ("DELETE FROM audit".to_owned(), "append-only"),
        (copy("INSERT OR REPLACE", 1), "without gaps"),
        (copy("INSERT OR REPLACE", 2), "without gaps"),
        (copy("INSERT", 9), "without gaps"),
        // In its place, and not chained to the entry before it.
        (copy("INSERT", 3), "an entry follows its head"),
        ("UPDATE audit_head SET seq = 1".to_owned(), "follows its last entry"),
        ("UPDATE audit_head SET seq = 3".to_owned(), "follows its last entry"),
        ("UPDATE audit_head SET hash = zeroblob(32)".to_owned(), "follows its last entry"),
        ("DELETE FROM audit_head".to_owned(), "has one head"),
        ("INSERT INTO audit_head VALUES (2, 2, zeroblob(32))".to_owned(), "has one head"),
        ("INSERT OR REPLACE INTO audit_head VALUES (1, 0, zeroblob(32))".to_owned(), "has one head"),
    ] {
        refuses(&file, &change, reason);
    }
    let entries = scene.till.audit(None, 0, 100).await?;
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(entries[0].what, "till-set-up");
    Ok(())
}

pub(super) fn refuses(file: &rusqlite::Connection, change: &str, reason: &str) {
    let refused = file.execute(change, []).expect_err(change).to_string();
    assert!(refused.contains(reason), "{change}: {refused}");
}
