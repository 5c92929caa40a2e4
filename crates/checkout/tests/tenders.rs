//! Tenders against a total: who pays what, what cash is rounded to, what comes back and what is left.

use checkout::{Balance, CashDue, CashRounding, CashRule, Code, PriceError, Tender, balance, cash_due};

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn card(amount: i64) -> Tender {
    Tender::Card { amount }
}

fn voucher(amount: i64) -> Tender {
    Tender::Voucher { amount }
}

fn cash(tendered: i64) -> Tender {
    Tender::Cash { tendered }
}

fn to_five(rounding: CashRounding) -> Result<CashRule, &'static str> {
    CashRule::new(5, rounding).ok_or("5 is a step")
}

fn amounts(balance: &Balance) -> Vec<i64> {
    balance.tenders.iter().map(|priced| priced.amount).collect()
}

/// Rounding, change, drawer and rest.
fn figures(balance: &Balance) -> (i64, i64, i64, i64) {
    (balance.rounding, balance.change, balance.drawer, balance.rest)
}

fn fault(result: Result<Balance, PriceError>) -> Option<(Code, String)> {
    result.err().map(|error| (error.code, error.path))
}

#[test]
fn cash_rounds_to_the_nearest_step_with_the_half_up() -> TestResult {
    let even = CashRule::new(10, CashRounding::Nearest).ok_or("10 is a step")?;
    for (rest, nearest_five, nearest_ten) in [
        (1_000, 1_000, 1_000),
        (1_001, 1_000, 1_000),
        (1_002, 1_000, 1_000),
        (1_003, 1_005, 1_000),
        (1_004, 1_005, 1_000),
        (1_005, 1_005, 1_010),
        (1_007, 1_005, 1_010),
        (1_008, 1_010, 1_010),
        (2, 0, 0),
    ] {
        assert_eq!(cash_due(rest, to_five(CashRounding::Nearest)?)?.due, nearest_five, "{rest} to 5");
        assert_eq!(cash_due(rest, even)?.due, nearest_ten, "{rest} to 10");
    }
    Ok(())
}

#[test]
fn cash_rounds_up_or_down_where_so_set() -> TestResult {
    for (rest, up, down) in [(1_000, 1_000, 1_000), (1_001, 1_005, 1_000), (1_004, 1_005, 1_000), (0, 0, 0)] {
        assert_eq!(cash_due(rest, to_five(CashRounding::Up)?)?, CashDue { due: up, rounding: up - rest });
        assert_eq!(cash_due(rest, to_five(CashRounding::Down)?)?, CashDue { due: down, rounding: down - rest });
    }
    Ok(())
}

#[test]
fn only_the_part_paid_in_cash_is_rounded() -> TestResult {
    let paid = balance(2_498, &[card(1_300), cash(1_200)], to_five(CashRounding::Nearest)?)?;
    assert_eq!(figures(&paid), (2, 0, 1_200, 0));
    let exact = balance(2_498, &[card(1_298), voucher(1_200)], to_five(CashRounding::Nearest)?)?;
    assert_eq!(figures(&exact), (0, 0, 0, 0));
    Ok(())
}

#[test]
fn cash_comes_last_wherever_it_stands() -> TestResult {
    let paid = balance(1_000, &[cash(1_000), card(700), voucher(100)], CashRule::EXACT)?;
    assert_eq!(amounts(&paid), [200, 700, 100]);
    assert_eq!(figures(&paid), (0, 800, 200, 0));
    assert_eq!(paid.tenders[0].tender, cash(1_000));
    Ok(())
}

#[test]
fn several_cards_pay_up_to_what_is_due_and_not_one_unit_more() -> TestResult {
    assert_eq!(figures(&balance(900, &[card(500), card(400)], CashRule::EXACT)?), (0, 0, 0, 0));
    assert_eq!(
        fault(balance(900, &[card(500), cash(2_000), card(401)], CashRule::EXACT)),
        Some((Code::OverDue, "tenders[2].amount".to_owned()))
    );
    assert_eq!(
        fault(balance(900, &[voucher(901)], CashRule::EXACT)),
        Some((Code::OverDue, "tenders[0].amount".to_owned()))
    );
    Ok(())
}

#[test]
fn cash_rounding_gives_a_card_no_more_room() -> TestResult {
    // 9.98 would be 10.00 in cash, but a card is exact.
    assert_eq!(
        fault(balance(998, &[card(1_000)], to_five(CashRounding::Nearest)?)),
        Some((Code::OverDue, "tenders[0].amount".to_owned()))
    );
    Ok(())
}

#[test]
fn too_little_cash_is_not_rounded() -> TestResult {
    let part = balance(1_003, &[cash(1_000)], to_five(CashRounding::Nearest)?)?;
    assert_eq!(figures(&part), (0, 0, 1_000, 3));
    let up = balance(1_001, &[cash(500), cash(500)], to_five(CashRounding::Up)?)?;
    assert_eq!(figures(&up), (0, 0, 1_000, 1));
    assert_eq!(amounts(&up), [500, 500]);
    Ok(())
}

#[test]
fn cash_that_meets_the_rounded_due_pays_it() -> TestResult {
    let down = balance(1_004, &[cash(1_000)], to_five(CashRounding::Down)?)?;
    assert_eq!(figures(&down), (-4, 0, 1_000, 0));
    let nearest = balance(1_002, &[cash(1_000)], to_five(CashRounding::Nearest)?)?;
    assert_eq!(figures(&nearest), (-2, 0, 1_000, 0));
    Ok(())
}

#[test]
fn cash_of_nothing_pays_what_rounds_to_nothing_and_no_cash_does_not() -> TestResult {
    let rule = to_five(CashRounding::Nearest)?;
    assert_eq!(figures(&balance(2, &[cash(0)], rule)?), (-2, 0, 0, 0));
    assert_eq!(figures(&balance(2, &[], rule)?), (0, 0, 0, 2));
    assert_eq!(figures(&balance(3, &[cash(0)], rule)?), (0, 0, 0, 3));
    Ok(())
}

#[test]
fn change_comes_out_of_the_last_cash() -> TestResult {
    let paid = balance(1_234, &[cash(1_000), cash(1_000), cash(500)], to_five(CashRounding::Nearest)?)?;
    assert_eq!(amounts(&paid), [1_000, 235, 0]);
    assert_eq!(figures(&paid), (1, 1_265, 1_235, 0));
    Ok(())
}

#[test]
fn cash_when_all_is_paid_comes_back_whole() -> TestResult {
    let paid = balance(700, &[card(700), cash(50)], CashRule::EXACT)?;
    assert_eq!(figures(&paid), (0, 50, 0, 0));
    Ok(())
}

#[test]
fn cash_comes_in_whole_steps() -> TestResult {
    let rule = to_five(CashRounding::Nearest)?;
    for (tenders, path) in
        [(vec![cash(1_003)], "tenders[0].tendered"), (vec![card(1), cash(3), cash(2)], "tenders[1].tendered")]
    {
        assert_eq!(fault(balance(1_003, &tenders, rule)), Some((Code::CashStep, path.to_owned())));
    }
    assert!(rule.takes(1_005) && !rule.takes(1_004) && !rule.takes(-5));
    assert_eq!(CashRule::new(0, CashRounding::Up), None);
    assert_eq!(CashRule::new(-5, CashRounding::Up), None);
    Ok(())
}

#[test]
fn negative_amounts_and_too_many_tenders_are_refused() {
    let refused = |total, tenders: &[Tender]| {
        fault(balance(total, tenders, CashRule::EXACT)).map(|(code, path)| (code.as_str(), path))
    };
    let at = |path: &str| Some(("invalid-value", path.to_owned()));
    assert_eq!(refused(-1, &[]), at("total"));
    assert_eq!(refused(10, &[card(-1)]), at("tenders[0].amount"));
    assert_eq!(refused(10, &[card(1), voucher(-1)]), at("tenders[1].amount"));
    assert_eq!(refused(10, &[cash(-10)]), at("tenders[0].tendered"));
    assert_eq!(refused(10, &vec![card(0); checkout::TENDERS_MAX + 1]), Some(("too-many", "tenders".to_owned())));
    assert_eq!(refused(10, &vec![card(0); checkout::TENDERS_MAX]), None);
    assert_eq!(
        cash_due(-1, CashRule::EXACT).map_err(|error| (error.code, error.path)),
        Err((Code::InvalidValue, "rest".to_owned()))
    );
}

#[test]
fn cash_that_does_not_fit_is_refused() -> TestResult {
    assert_eq!(
        fault(balance(5, &[cash(i64::MAX), cash(1)], CashRule::EXACT)),
        Some((Code::OutOfRange, "tenders[1].tendered".to_owned()))
    );
    assert_eq!(
        fault(balance(i64::MAX, &[cash(5)], to_five(CashRounding::Up)?)),
        Some((Code::OutOfRange, "cash_step".to_owned()))
    );
    assert_eq!(figures(&balance(i64::MAX, &[cash(5)], to_five(CashRounding::Down)?)?).3, i64::MAX - 5);
    let wide = CashRule::new(i64::MAX, CashRounding::Nearest).ok_or("a step")?;
    assert_eq!(cash_due(i64::MAX / 2, wide)?.due, 0);
    assert_eq!(cash_due(i64::MAX / 2 + 1, wide)?.due, i64::MAX);
    Ok(())
}
