//! The doctor finds nothing in a file that the till wrote, and names what was changed past it.

use super::{Checked, Scene};
use crate::{ArticleQuery, CashPayment, Charge, Examined, Finding, Refund, State, Told, clock};
use protocol::{Amount, CardToken, Currency};
use rusqlite::Connection;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

pub(super) async fn found(scene: &Scene) -> Checked<(Examined, Vec<Finding>)> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = told.clone();
    let examined = scene
        .till
        .examine(move |told| {
            if let Told::Found(finding) = told {
                list.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
            }
        })
        .await?;
    let found = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(examined.findings, found.len() as u64);
    Ok((examined, found))
}

/// A file with sales of many kinds: in cash, by card, mixed with a declined leg, open, under payment, charged with no cart, given back.
async fn shop() -> Checked<Scene> {
    let scene = Scene::new()?;
    let sale = scene.sale().await?;
    let tender_id = scene.till.begin_tender(sale.id).await?.tender_id;
    scene.till.pay_cash(CashPayment { tender_id, sale_id: sale.id, tendered: 1_000 }).await?;
    scene.till.new_sale().await?;
    let sale = scene.sale().await?;
    let declined = scene.by_card(&sale, 300).await?;
    settle(&scene, &declined, State::Declined).await?;
    let approved = scene.by_card(&sale, 590).await?;
    settle(&scene, &approved, State::Approved).await?;
    let refund = Refund { intent_id: clock::new_id(), payment: approved.key, amount: Amount::new(200)? };
    scene.till.refund(refund).await?;
    let charge = Charge {
        intent_id: clock::new_id(),
        amount: Amount::new(2_490)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa".to_owned())?,
        reference: None,
        accepted_offline: false,
    };
    scene.till.charge(charge).await?;
    scene.till.new_sale().await?;
    scene.till.add_article("PRO-301", Some("0.755")).await?;
    Ok(scene)
}

/// The bank's word, as the bank would give it for this operation.
async fn settle(scene: &Scene, operation: &crate::Operation, state: State) -> Checked {
    scene.settle(operation, state).await?;
    Ok(())
}

#[tokio::test]
async fn a_file_that_the_till_wrote_is_right() -> Checked {
    let scene = shop().await?;
    let (examined, found) = found(&scene).await?;
    assert_eq!(found, []);
    assert_eq!((examined.sales, examined.operations), (4, 4));
    Ok(())
}

#[tokio::test]
async fn what_a_connection_remembers_of_the_search_is_no_damage() -> Checked {
    // More often than there are connections, so that each has looked.
    const LOOKS: usize = 12;
    let scene = shop().await?;
    let till = &scene.till;
    for name in ["Espresso doppio", "Ristretto", "Lungo"] {
        for _ in 0..LOOKS {
            assert_eq!(found(&scene).await?.1, []);
        }
        let mut article = till.article("CAF-101").await?;
        article.name = name.to_owned();
        till.save_article(Some("CAF-101"), article).await?;
        for _ in 0..LOOKS {
            assert_eq!(found(&scene).await?.1, [], "after {name}");
            let query = ArticleQuery { text: name.to_owned(), category: None };
            assert_eq!(till.articles(query).await?.articles.len(), 1, "{name}");
        }
    }
    Ok(())
}

/// What is no word of its column, in each table that the doctor reads: each row is named, and the others are looked at all the same.
#[tokio::test]
async fn a_word_that_there_is_not_is_named_and_the_rest_is_looked_at() -> Checked {
    for change in [
        "UPDATE operations SET state = 'approveZ' WHERE state = 'approved'",
        "UPDATE operations SET kind = 'gift' WHERE state = 'approved'",
        "UPDATE operations SET currency = 'euro' WHERE state = 'approved'",
        "UPDATE operations SET result = '{\"id\":' WHERE state = 'approved'",
        "UPDATE operations SET intent_id = x'00' WHERE state = 'approved'",
        "UPDATE operations SET key = x'0102' WHERE state = 'declined'",
        "UPDATE sales SET currency = 'euro' WHERE number = 2",
        "UPDATE sales SET cash_rounding = 'never' WHERE number = 2",
        "UPDATE tenders SET kind = 'shell' WHERE state = 'approved'",
        "UPDATE tenders SET state = 'maybe' WHERE state = 'approved'",
        "UPDATE refunds SET state = 'maybe'",
        "UPDATE lines SET quantity = -1 WHERE sale_id = (SELECT id FROM sales WHERE number = 2)",
        "UPDATE lines SET tax_rate = -7 WHERE sale_id = (SELECT id FROM sales WHERE number = 2)",
        "UPDATE rights SET name = 'fly' WHERE name = 'refund' AND role = 'cashier'",
        "UPDATE audit SET who = '' WHERE seq = 2",
        "UPDATE settings SET value = 'euro' WHERE name = 'currency'",
    ] {
        let scene = shop().await?;
        tamper(scene.dir.path(), change)?;
        tamper(scene.dir.path(), "UPDATE counters SET last = 7 WHERE name = 'receipt'")?;
        tamper(scene.dir.path(), "UPDATE operations SET amount = 1 WHERE state = 'saved' AND kind = 'payment'")?;
        let (_, found) = found(&scene).await?;
        let codes: Vec<_> = found.iter().map(|finding| finding.code).collect();
        assert!(codes.contains(&"counter-wrong") && codes.contains(&"operation-request"), "{change}: {found:#?}");
        let others = ["counter-wrong", "operation-request", "tender-amount", "file-damaged"];
        assert!(codes.iter().any(|code| !others.contains(code)), "{change}: {found:#?}");
    }
    Ok(())
}

/// Changes the file as somebody who knows SQLite and stops at nothing: triggers dropped, checks and references off, and all put back.
pub(super) fn tamper(folder: &Path, change: &str) -> Checked {
    let file = Connection::open(folder.join("data/till.db"))?;
    file.pragma_update(None, "foreign_keys", false)?;
    file.pragma_update(None, "ignore_check_constraints", true)?;
    file.execute_batch("BEGIN")?;
    let triggers: Vec<(String, String)> = file
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &triggers {
        file.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    let changed = file.execute(change, [])?;
    assert!(changed > 0, "{change} changed nothing");
    for (_, sql) in &triggers {
        file.execute_batch(sql)?;
    }
    file.execute_batch("COMMIT")?;
    Ok(())
}

#[tokio::test]
async fn what_was_changed_past_the_till_is_found_and_named() -> Checked {
    for (change, code, named) in [
        ("UPDATE sales SET total = total + 1 WHERE number = 2", "sale-total", "sale 2"),
        ("UPDATE sales SET total = total + 1, net = net + 1 WHERE number = 1", "sale-lines", "sale 1"),
        ("UPDATE sales SET net = net + 1, tax = tax - 1 WHERE number = 1", "sale-taxes", "sale 1"),
        ("DELETE FROM lines WHERE id = (SELECT min(id) FROM lines)", "sale-lines", "sale 1"),
        ("DELETE FROM lines WHERE sale_id = (SELECT id FROM sales WHERE number = 1)", "sale-lines", "sale 1"),
        ("UPDATE lines SET unit_price = 1 WHERE id = (SELECT min(id) FROM lines)", "line-figures", "sale 1"),
        ("UPDATE lines SET tax_rate = 0 WHERE id = (SELECT min(id) FROM lines)", "tax-table", "sale 1"),
        ("UPDATE lines SET gross = NULL WHERE id = (SELECT min(id) FROM lines)", "sale-lines", "sale 1"),
        ("UPDATE sale_taxes SET tax = tax + 1", "sale-taxes", "sale 1"),
        ("UPDATE sales SET discount = 5 WHERE number = 1", "sale-discount", "sale 1"),
        ("UPDATE sales SET rounding = 2, cash_step = 5 WHERE number = 2", "sale-rounding", "sale 2"),
        ("UPDATE sales SET state = 'open' WHERE number = 1", "sale-state", "sale 1"),
        (
            "UPDATE sales SET state = 'completed', receipt_number = 3, rounding = 0, completed_at = 0 WHERE number = 3",
            "sale-paid",
            "sale 3",
        ),
        ("UPDATE sales SET state = 'free' WHERE number = 1", "sale-state", "sale 1"),
        ("UPDATE tenders SET state = 'approved' WHERE state = 'declined'", "tender-state", "of sale 2"),
        ("UPDATE tenders SET amount = 589 WHERE state = 'approved'", "tender-amount", "of sale 2"),
        ("UPDATE tenders SET amount = 589 WHERE kind = 'cash'", "tender-amount", "of sale 1"),
        ("UPDATE tenders SET state = 'declined' WHERE kind = 'cash'", "tender-state", "of sale 1"),
        ("DELETE FROM operations WHERE state = 'declined'", "operation-missing", "of sale 2"),
        ("DELETE FROM operations WHERE kind = 'refund'", "operation-missing", "refund"),
        ("DELETE FROM refunds", "operation-strange", "operation"),
        ("UPDATE refunds SET amount = 600", "refund-over", "of sale 2"),
        ("UPDATE refunds SET amount = 100", "refund-amount", "refund"),
        ("UPDATE refunds SET state = 'approved'", "refund-state", "refund"),
        (
            "UPDATE operations SET amount = 1 WHERE state = 'saved' AND kind = 'payment'",
            "operation-request",
            "operation",
        ),
        ("UPDATE operations SET settled_at = NULL WHERE state = 'approved'", "operation-state", "operation"),
        ("UPDATE operations SET result = NULL WHERE state = 'approved'", "operation-result", "operation"),
        (
            "UPDATE operations SET result = '{\"id\":\"pay_1\",\"amount\":1}' WHERE state = 'approved'",
            "operation-result",
            "operation",
        ),
        ("UPDATE sales SET number = 9 WHERE number = 3", "sale-number-gap", "sale number 3 to 8"),
        ("UPDATE sales SET receipt_number = 3 WHERE receipt_number = 2", "receipt-number-gap", "receipt number 2"),
        ("UPDATE counters SET last = 7 WHERE name = 'receipt'", "counter-wrong", "receipt numbers"),
        ("DELETE FROM audit WHERE seq = 2", "audit-gap", "audit entry 2"),
        ("DELETE FROM tenders WHERE kind = 'cash'", "sale-paid", "sale 1"),
        ("UPDATE lines SET sale_id = 'x' WHERE id = (SELECT min(id) FROM lines)", "reference-broken", "of lines"),
    ] {
        let scene = shop().await?;
        tamper(scene.dir.path(), change)?;
        let (_, found) = found(&scene).await?;
        let is_named = found.iter().any(|finding| finding.code == code && finding.subject.contains(named));
        assert!(is_named, "{code} of {named} after {change} in {found:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_guard_that_was_taken_away_or_weakened_is_named() -> Checked {
    for (change, named) in [
        ("DROP TRIGGER tenders_stay", "trigger tenders_stay"),
        ("DROP INDEX sales_one_in_front", "index sales_one_in_front"),
        (
            "DROP TRIGGER audit_never_shrinks; CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit WHEN 0 BEGIN SELECT 1; END",
            "trigger audit_never_shrinks",
        ),
        ("CREATE TRIGGER of_mine AFTER INSERT ON tenders BEGIN SELECT 1; END", "trigger of_mine"),
    ] {
        let scene = shop().await?;
        scene.file()?.execute_batch(change)?;
        let (_, found) = found(&scene).await?;
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].code, found[0].subject.as_str()), ("schema-changed", named));
    }
    Ok(())
}
