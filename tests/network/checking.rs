//! The checker itself: what it must not let pass.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::checker::{Books, Verdict, judge};

/// Two payments of 24.90, one approved and one declined, and nothing wrong.
fn books() -> Books {
    let result =
        |key: &str, status: &str| json!({"status": status, "amount": 2_490, "currency": "EUR", "operation": key});
    let at_till = |key: &str, state: &str| {
        json!({
            "key": key, "kind": "payment", "state": state, "amount": 2_490, "currency": "EUR", "result": result(key, state),
        })
    };
    let at_bank = |key: &str, state: &str| Some(json!({"key": key, "state": state, "result": result(key, state)}));
    Books {
        clicked: vec!["a".to_owned(), "b".to_owned()],
        till: vec![at_till("a", "approved"), at_till("b", "declined")],
        bank: BTreeMap::from([("a".to_owned(), at_bank("a", "approved")), ("b".to_owned(), at_bank("b", "declined"))]),
        bank_ledger: moved(1, &json!({"balanced": true})),
        gateway: BTreeMap::from([
            ("a".to_owned(), Some(moved(1, &json!({})))),
            ("b".to_owned(), Some(moved(0, &json!({})))),
        ]),
        gateway_ledger: moved(1, &json!({})),
    }
}

/// A ledger of so many charges of 24.90.
fn moved(charges: i64, more: &Value) -> Value {
    let charged = if charges == 0 { json!({}) } else { json!({"EUR": charges * 2_490}) };
    let mut ledger = json!({"charges": charges, "refunds": 0, "charged": charged, "refunded": {}});
    for (name, value) in more.as_object().into_iter().flatten() {
        ledger[name] = value.clone();
    }
    ledger
}

#[test]
fn what_is_right_passes_with_its_counts() {
    let verdict = judge(&books()).unwrap();
    assert_eq!(verdict, Verdict { clicked: 2, approved: 1, declined: 1, ..Verdict::default() });
}

#[test]
fn each_broken_promise_is_found() {
    type Break = fn(&mut Books);
    let breaks: [(&str, &str, Break); 15] = [
        ("dropped", "clicked and not kept", |books| drop(books.till.pop())),
        ("of nobody's click", "kept and not clicked", |books| drop(books.clicked.pop())),
        ("kept twice", "have one key", |books| books.till.push(books.till[0].clone())),
        ("charged twice", "approved, and at the gateway is", |books| {
            books.gateway.insert("a".to_owned(), Some(moved(2, &json!({}))));
            books.gateway_ledger = moved(2, &json!({}));
        }),
        ("approved and not charged", "approved, and at the gateway is", |books| {
            books.gateway.insert("a".to_owned(), Some(moved(0, &json!({}))));
            books.gateway_ledger = moved(0, &json!({}));
        }),
        ("declined and charged", "declined, and at the gateway is", |books| {
            books.gateway.insert("b".to_owned(), Some(moved(1, &json!({}))));
            books.gateway_ledger = moved(2, &json!({}));
        }),
        ("charged under a key of no operation", "the gateway moved", |books| {
            books.gateway_ledger = moved(2, &json!({}))
        }),
        ("charged another amount", "approved, and at the gateway is", |books| {
            let other = moved(1, &json!({"charged": {"EUR": 2_491}}));
            books.gateway.insert("a".to_owned(), Some(other.clone()));
            books.gateway_ledger = other;
        }),
        ("the bank says otherwise", "the bank says", |books| {
            books.bank.insert("a".to_owned(), Some(json!({"key": "a", "state": "processing", "result": null})));
        }),
        ("the bank does not know it", "does not know it", |books| drop(books.bank.insert("a".to_owned(), None))),
        ("another result than the bank's", "the bank's result is", |books| {
            books.till[0]["result"]["approval_code"] = json!("8F21K0")
        }),
        ("the result of another key", "about another operation", |books| {
            books.till[0]["result"]["operation"] = json!("b");
            books.bank.insert(
                "a".to_owned(),
                Some(json!({"key": "a", "state": "approved", "result": books.till[0]["result"]})),
            );
        }),
        ("a ledger that does not balance", "does not balance", |books| books.bank_ledger["balanced"] = json!(false)),
        ("ledgers that differ", "the bank's ledger says", |books| {
            books.bank_ledger = moved(0, &json!({"balanced": true}))
        }),
        ("what could not be read", "no charges in", |books| books.gateway_ledger = json!({})),
    ];
    for (what, complaint, break_it) in breaks {
        let mut broken = books();
        break_it(&mut broken);
        let found = judge(&broken).map_err(|error| format!("{error:#}"));
        assert!(found.as_ref().is_err_and(|said| said.contains(complaint)), "{what}: {found:?}");
    }
}
