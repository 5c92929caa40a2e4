//! The engine as JSON in and JSON out: what is taken, what is refused and with which path, and what comes out.

use checkout::json::{INPUT_BYTES_MAX, read, run, run_bytes};
use serde_json::{Value, json};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// The code and path of the error document that this input gets; what comes out instead when it is priced.
fn refusal(input: &str) -> Result<(String, String), Box<dyn std::error::Error>> {
    let document: Value = match run(input) {
        Ok(priced) => return Err(format!("priced: {input} gave {priced}").into()),
        Err(document) => serde_json::from_str(&document)?,
    };
    let error = &document["error"];
    assert_eq!(document.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(
        error.as_object().map(|members| members.keys().map(String::as_str).collect::<Vec<_>>()),
        Some(vec!["code", "message", "path"])
    );
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{document}");
    Ok((error["code"].as_str().unwrap_or_default().to_owned(), error["path"].as_str().unwrap_or_default().to_owned()))
}

fn assert_refused(cases: &[(&str, &str, &str)]) -> TestResult {
    for &(input, code, path) in cases {
        assert_eq!(refusal(input)?, (code.to_owned(), path.to_owned()), "{input}");
    }
    Ok(())
}

/// A sale of one line with these further members at the line.
fn with_line(members: &str) -> String {
    format!(r#"{{"currency":"EUR","lines":[{{"unit_price":100{members}}}]}}"#)
}

/// A sale of 1.00 with these further members.
fn with_sale(members: &str) -> String {
    format!(r#"{{"currency":"EUR","lines":[{{"unit_price":100}}]{members}}}"#)
}

#[test]
fn every_member_is_read_and_every_figure_written() -> TestResult {
    let input = json!({
        "currency": "EUR", "prices_include_tax": false, "cash_step": 10, "cash_rounding": "down",
        "lines": [
            {"name": "Bread", "unit_price": 320, "quantity": "1.5", "tax_rate": "7.5", "discount": {"amount": 30}},
            {"unit_price": 199, "quantity": 2, "tax_rate": 19, "discount": {"percent": "10"}},
        ],
        "discount": {"percent": 5},
        "tip": {"amount": 40},
        "tenders": [{"kind": "cash", "tendered": 500}, {"kind": "voucher", "amount": 100}, {"kind": "card", "amount": 250}],
    });
    let output: Value = serde_json::from_str(&run(&input.to_string())?)?;
    // 480 - 30 = 450 and 398 - 40 = 358; 5 % of 808 is 40: 22.28 and 17.72 of it. Tax: 428 × 7.5 %, 340 × 19 %.
    // The others leave 555, in cash 550: 500 is too little, so it is a part and not rounded.
    assert_eq!(
        output,
        json!({
            "lines": [
                {"gross": 480, "discount": 30, "sale_discount": 22, "total": 428},
                {"gross": 398, "discount": 40, "sale_discount": 18, "total": 340},
            ],
            "discount": 40,
            "taxes": [{"rate": "7.5", "net": 428, "tax": 32}, {"rate": "19", "net": 340, "tax": 65}],
            "net": 768, "tax": 97, "tip": 40, "total": 905,
            "tenders": [
                {"kind": "cash", "tendered": 500, "amount": 500},
                {"kind": "voucher", "amount": 100},
                {"kind": "card", "amount": 250},
            ],
            "rounding": 0, "change": 0, "drawer": 500, "rest": 55,
        })
    );
    Ok(())
}

#[test]
fn members_come_out_in_a_fixed_order() -> TestResult {
    let output = run(&with_sale(r#","tenders":[{"tendered":105,"kind":"cash"}],"cash_step":5"#))?;
    assert_eq!(
        output,
        concat!(
            r#"{"lines":[{"gross":100,"discount":0,"sale_discount":0,"total":100}],"discount":0,"#,
            r#""taxes":[{"rate":"0","net":100,"tax":0}],"net":100,"tax":0,"tip":0,"total":100,"#,
            r#""tenders":[{"kind":"cash","tendered":105,"amount":100}],"rounding":0,"change":5,"drawer":100,"rest":0}"#,
        )
    );
    Ok(())
}

#[test]
fn optional_members_may_be_missing() -> TestResult {
    let short = read(r#"{"currency":"EUR","lines":[{"unit_price":100}]}"#)?;
    let long = read(
        r#" { "tenders" : [ ] , "prices_include_tax":true, "cash_step":1, "cash_rounding":"nearest",
            "lines":[{"quantity":"1","tax_rate":"0","unit_price":100,"name":""}],"currency":"EUR" } "#,
    )?;
    assert_eq!(short, long);
    Ok(())
}

#[test]
fn what_is_no_document_is_malformed() -> TestResult {
    assert_refused(&[
        ("", "malformed", ""),
        ("{", "malformed", ""),
        (r#"{"currency":"EUR","lines":[]} x"#, "malformed", ""),
        (r#"{"currency":"EUR","lines":[],}"#, "malformed", ""),
        (r#"{"currency":"EUR","lines":[{"unit_price":01}]}"#, "malformed", ""),
        (r#"{"currency":"EUR","lines":[{"unit_price":NaN}]}"#, "malformed", ""),
        ("\u{feff}{}", "malformed", ""),
        ("null", "wrong-type", ""),
        ("[]", "wrong-type", ""),
        (r#""EUR""#, "wrong-type", ""),
    ])?;
    assert!(run_bytes(b"\xff{}").is_err_and(|document| document.contains(r#""code":"malformed""#)));
    assert!(run_bytes(br#"{"currency":"EUR","lines":[]}"#).is_ok());
    Ok(())
}

#[test]
fn an_unknown_member_is_refused_wherever_it_is() -> TestResult {
    assert_refused(&[
        (&with_sale(r#","note":"x""#), "unknown-member", "note"),
        (&with_sale(r#","Discount":{"amount":1}"#), "unknown-member", "Discount"),
        (&with_line(r#","price":1"#), "unknown-member", "lines[0].price"),
        (&with_line(r#","discount":{"amount":1,"reason":"x"}"#), "unknown-member", "lines[0].discount.reason"),
        (&with_sale(r#","discount":{"percents":"1"}"#), "unknown-member", "discount.percents"),
        (&with_sale(r#","tip":{"rate":"1"}"#), "unknown-member", "tip.rate"),
        (&with_sale(r#","tenders":[{"kind":"card","amount":1,"card":"x"}]"#), "unknown-member", "tenders[0].card"),
        (
            &with_sale(r#","tenders":[{"kind":"card","amount":1,"tendered":1}]"#),
            "unknown-member",
            "tenders[0].tendered",
        ),
        (&with_sale(r#","tenders":[{"kind":"cash","amount":1,"tendered":1}]"#), "unknown-member", "tenders[0].amount"),
    ])
}

#[test]
fn a_member_twice_is_refused_however_it_is_spelt() -> TestResult {
    assert_refused(&[
        (&with_sale(r#","currency":"EUR""#), "duplicate-member", "currency"),
        (&with_line(r#","unit_price":100"#), "duplicate-member", "lines[0].unit_price"),
        (&with_line(r#","unit\u005fprice":100"#), "duplicate-member", "lines[0].unit_price"),
        (&with_sale(r#","tip":{"amount":1,"amount":1}"#), "duplicate-member", "tip.amount"),
        (&with_sale(r#","tenders":[{"kind":"cash","kind":"card","amount":1}]"#), "duplicate-member", "tenders[0].kind"),
    ])
}

#[test]
fn what_must_be_there_is_named() -> TestResult {
    assert_refused(&[
        ("{}", "missing-member", "currency"),
        (r#"{"currency":"EUR"}"#, "missing-member", "lines"),
        (r#"{"currency":"EUR","lines":[{"unit_price":1},{}]}"#, "missing-member", "lines[1].unit_price"),
        (&with_sale(r#","discount":{}"#), "missing-member", "discount"),
        (&with_sale(r#","tip":{}"#), "missing-member", "tip"),
        (&with_sale(r#","tenders":[{}]"#), "missing-member", "tenders[0].kind"),
        (&with_sale(r#","tenders":[{"kind":"voucher"}]"#), "missing-member", "tenders[0].amount"),
        (&with_sale(r#","tenders":[{"kind":"cash"}]"#), "missing-member", "tenders[0].tendered"),
    ])
}

#[test]
fn the_type_must_be_right_and_null_is_not_missing() -> TestResult {
    assert_refused(&[
        (r#"{"currency":978,"lines":[]}"#, "wrong-type", "currency"),
        (r#"{"currency":"EUR","lines":{}}"#, "wrong-type", "lines"),
        (r#"{"currency":"EUR","lines":[7]}"#, "wrong-type", "lines[0]"),
        (r#"{"currency":"EUR","lines":[{"unit_price":"100"}]}"#, "wrong-type", "lines[0].unit_price"),
        (&with_line(r#","name":5"#), "wrong-type", "lines[0].name"),
        (&with_line(r#","quantity":null"#), "wrong-type", "lines[0].quantity"),
        (&with_line(r#","quantity":true"#), "wrong-type", "lines[0].quantity"),
        (&with_line(r#","discount":null"#), "wrong-type", "lines[0].discount"),
        (&with_line(r#","discount":"10""#), "wrong-type", "lines[0].discount"),
        (&with_sale(r#","prices_include_tax":1"#), "wrong-type", "prices_include_tax"),
        (&with_sale(r#","prices_include_tax":"true""#), "wrong-type", "prices_include_tax"),
        (&with_sale(r#","cash_step":"5""#), "wrong-type", "cash_step"),
        (&with_sale(r#","cash_rounding":5"#), "wrong-type", "cash_rounding"),
        (&with_sale(r#","tenders":null"#), "wrong-type", "tenders"),
        (&with_sale(r#","tenders":[[]]"#), "wrong-type", "tenders[0]"),
        (&with_sale(r#","tip":{"amount":"1"}"#), "wrong-type", "tip.amount"),
    ])
}

#[test]
fn amounts_are_whole_and_not_negative() -> TestResult {
    for amount in ["-1", "-0", "1.0", "1.5", "1e2", "1E2", "-9223372036854775809"] {
        let input = format!(r#"{{"currency":"EUR","lines":[{{"unit_price":{amount}}}]}}"#);
        assert_refused(&[(&input, "invalid-value", "lines[0].unit_price")])?;
        let input = with_sale(&format!(r#","tenders":[{{"kind":"cash","tendered":{amount}}}]"#));
        assert_refused(&[(&input, "invalid-value", "tenders[0].tendered")])?;
    }
    Ok(())
}

#[test]
fn a_negative_amount_is_told_as_negative() -> TestResult {
    for input in [with_line(r#","discount":{"amount":-5}"#), with_line(r#","quantity":-5"#)] {
        assert!(run(&input).is_err_and(|document| document.contains("must not be negative")), "{input}");
    }
    Ok(())
}

#[test]
fn amounts_fit_64_bits() -> TestResult {
    let of = |amount: &str| format!(r#"{{"currency":"EUR","lines":[{{"unit_price":{amount}}}]}}"#);
    assert!(run(&of("9223372036854775807"))?.contains(r#""total":9223372036854775807"#));
    for amount in ["9223372036854775808", "18446744073709551616", &"9".repeat(400)] {
        assert_refused(&[(&of(amount), "out-of-range", "lines[0].unit_price")])?;
    }
    assert_refused(&[
        (&with_line(r#","quantity":"9223372036854775.808""#), "out-of-range", "lines[0].quantity"),
        (&with_line(r#","quantity":9223372036854776"#), "out-of-range", "lines[0].quantity"),
        (&with_line(r#","tax_rate":"99999999999999999999""#), "out-of-range", "lines[0].tax_rate"),
        (&with_line(r#","quantity":"92233720368547758.07""#), "out-of-range", "lines[0].quantity"),
        (&of("1001").replace("1001", r#"1001,"quantity":"9223372036854775.807""#), "out-of-range", "lines[0]"),
    ])
}

#[test]
fn decimals_are_strings_or_whole_numbers() -> TestResult {
    for text in [
        "\"\"",
        "\"abc\"",
        "\"1e3\"",
        "\"-1\"",
        "\"+1\"",
        "\" 1\"",
        "\"1,5\"",
        "\".5\"",
        "\"1.\"",
        "\"1.2345\"",
        "1.5",
        "2.0",
        "1e3",
        "-1",
    ] {
        assert_refused(&[
            (&with_line(&format!(r#","quantity":{text}"#)), "invalid-value", "lines[0].quantity"),
            (&with_line(&format!(r#","tax_rate":{text}"#)), "invalid-value", "lines[0].tax_rate"),
            (&with_line(&format!(r#","discount":{{"percent":{text}}}"#)), "invalid-value", "lines[0].discount.percent"),
            (&with_sale(&format!(r#","tip":{{"percent":{text}}}"#)), "invalid-value", "tip.percent"),
        ])?;
    }
    assert!(run(&with_line(r#","quantity":"\u0032.5","tax_rate":20"#))?.contains(r#""gross":250"#));
    Ok(())
}

#[test]
fn values_outside_what_a_member_takes_are_refused() -> TestResult {
    assert_refused(&[
        (r#"{"currency":"eur","lines":[]}"#, "invalid-value", "currency"),
        (r#"{"currency":"ZZZ","lines":[]}"#, "invalid-value", "currency"),
        (&with_line(r#","name":"\ud800""#), "invalid-value", "lines[0].name"),
        (&with_line(r#","\ud800":1"#), "invalid-value", "lines[0]"),
        (&with_line(r#","discount":{"percent":"100.001"}"#), "invalid-value", "lines[0].discount.percent"),
        (&with_sale(r#","discount":{"percent":101}"#), "invalid-value", "discount.percent"),
        (&with_sale(r#","discount":{"percent":"1","amount":1}"#), "invalid-value", "discount"),
        (&with_sale(r#","cash_step":0"#), "invalid-value", "cash_step"),
        (&with_sale(r#","cash_rounding":"half""#), "invalid-value", "cash_rounding"),
        (&with_sale(r#","tenders":[{"kind":"Cash","tendered":1}]"#), "invalid-value", "tenders[0].kind"),
        (&with_sale(r#","tenders":[{"kind":"card","amount":101}]"#), "over-due", "tenders[0].amount"),
        (
            &with_sale(r#","cash_step":5,"tenders":[{"kind":"cash","tendered":101}]"#),
            "cash-step",
            "tenders[0].tendered",
        ),
    ])
}

#[test]
fn limits_hold_before_anything_is_read() -> TestResult {
    let lines = |count| format!(r#"{{"currency":"EUR","lines":[{}]}}"#, vec![r#"{"unit_price":1}"#; count].join(","));
    assert!(run(&lines(checkout::LINES_MAX))?.contains(r#""total":10000"#));
    assert_eq!(refusal(&lines(checkout::LINES_MAX + 1))?, ("too-many".to_owned(), "lines".to_owned()));
    let tenders = vec!["0"; checkout::TENDERS_MAX + 1].join(",");
    assert_eq!(
        refusal(&with_sale(&format!(r#","tenders":[{tenders}]"#)))?,
        ("too-many".to_owned(), "tenders".to_owned())
    );
    assert_eq!(refusal(&" ".repeat(INPUT_BYTES_MAX + 1))?, ("too-many".to_owned(), String::new()));
    Ok(())
}

#[test]
fn deep_nesting_ends_in_a_refusal() -> TestResult {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(refusal(&with_sale(&format!(r#","x":{deep}"#)))?, ("unknown-member".to_owned(), "x".to_owned()));
    assert_eq!(
        refusal(&with_line(&format!(r#","quantity":{deep}"#)))?,
        ("wrong-type".to_owned(), "lines[0].quantity".to_owned())
    );
    Ok(())
}
