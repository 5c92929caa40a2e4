//! Prices of whole sales, worked out by hand.

use checkout::{Cart, Code, Currency, Discount, Line, PriceError, Priced, Quantity, Rate, Tip, price};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A cart in euros of lines `(unit price, quantity, tax rate)`.
fn cart(lines: &[(i64, &str, &str)]) -> Result<Cart, Box<dyn std::error::Error>> {
    let mut cart = Cart::new(Currency::parse("EUR")?);
    for &(unit_price, quantity, tax_rate) in lines {
        cart.lines.push(Line { unit_price, quantity: quantity.parse()?, tax_rate: tax_rate.parse()?, discount: None });
    }
    Ok(cart)
}

fn percent(text: &str) -> Result<Discount, Box<dyn std::error::Error>> {
    Ok(Discount::Percent(text.parse()?))
}

fn of_thousandths(thousandths: i64) -> Option<Discount> {
    Rate::from_thousandths(thousandths).ok().map(Discount::Percent)
}

fn totals(priced: &Priced) -> Vec<i64> {
    priced.lines.iter().map(|line| line.total).collect()
}

fn taxes(priced: &Priced) -> Vec<(String, i64, i64)> {
    priced.taxes.iter().map(|group| (group.rate.to_string(), group.net, group.tax)).collect()
}

fn fault(result: Result<Priced, PriceError>) -> Option<(Code, String)> {
    result.err().map(|error| (error.code, error.path))
}

#[test]
fn an_empty_cart_costs_nothing() -> TestResult {
    let priced = price(&cart(&[])?)?;
    assert_eq!((priced.total, priced.net, priced.tax, priced.balance.rest), (0, 0, 0, 0));
    assert!(priced.lines.is_empty() && priced.taxes.is_empty());
    Ok(())
}

#[test]
fn a_gross_is_rounded_once_from_the_exact_product() -> TestResult {
    // 0.455 × 10.90 = 4.9595; 0.125 × 0.44 = 0.055, a half; 0.333 × 0.01 rounds to nothing.
    let priced = price(&cart(&[(1_090, "0.455", "0"), (44, "0.125", "0"), (1, "0.333", "0"), (199, "0", "0")])?)?;
    assert_eq!(totals(&priced), [496, 6, 0, 0]);
    assert_eq!(priced.total, 502);
    Ok(())
}

#[test]
fn a_line_discount_with_a_half_is_rounded_in_the_lines_favour_as_shown() -> TestResult {
    let mut cart = cart(&[(670, "1", "0"), (1_234, "1", "0"), (90, "1", "0")])?;
    // 6.70 less 7.5 % is 6.1975; 12.34 less 12.5 % is 10.7975; 0.90 less 5 % is 0.855, a half.
    for (line, off) in cart.lines.iter_mut().zip(["7.5", "12.5", "5"]) {
        line.discount = Some(percent(off)?);
    }
    let priced = price(&cart)?;
    assert_eq!(totals(&priced), [620, 1_080, 86]);
    assert_eq!(priced.lines.iter().map(|line| line.discount).collect::<Vec<_>>(), [50, 154, 4]);
    Ok(())
}

#[test]
fn a_line_amount_is_capped_at_its_gross() -> TestResult {
    let mut cart = cart(&[(250, "2", "10")])?;
    cart.lines[0].discount = Some(Discount::Amount(700));
    let priced = price(&cart)?;
    assert_eq!((priced.lines[0].gross, priced.lines[0].discount, priced.total), (500, 500, 0));
    Ok(())
}

#[test]
fn a_third_of_a_percent_is_not_cut_from_a_discount() -> TestResult {
    let mut cart = cart(&[(20_000, "1", "0")])?;
    cart.discount = Some(percent("5.125")?);
    assert_eq!(price(&cart)?.discount, 1_025);
    Ok(())
}

#[test]
fn the_sale_discount_comes_off_what_line_discounts_leave() -> TestResult {
    let mut cart = cart(&[(1_000, "1", "0"), (1_000, "1", "0")])?;
    cart.lines[0].discount = Some(percent("50")?);
    cart.discount = Some(percent("10")?);
    let priced = price(&cart)?;
    assert_eq!(priced.discount, 150);
    assert_eq!(priced.lines.iter().map(|line| line.sale_discount).collect::<Vec<_>>(), [50, 100]);
    assert_eq!(totals(&priced), [450, 900]);
    Ok(())
}

#[test]
fn equal_lines_share_odd_cents_from_the_first_on() -> TestResult {
    let mut cart = cart(&[(333, "1", "0"), (333, "1", "0"), (333, "1", "0"), (333, "1", "0")])?;
    cart.discount = Some(Discount::Amount(102));
    assert_eq!(totals(&price(&cart)?), [307, 307, 308, 308]);
    Ok(())
}

#[test]
fn a_discounted_line_brings_its_own_rate_down() -> TestResult {
    let mut cart = cart(&[(1_210, "1", "21"), (1_090, "1", "9")])?;
    cart.discount = Some(percent("50")?);
    let priced = price(&cart)?;
    assert_eq!(taxes(&priced), [("9".to_owned(), 500, 45), ("21".to_owned(), 500, 105)]);
    assert_eq!((priced.net, priced.tax, priced.total), (1_000, 150, 1_150));
    Ok(())
}

#[test]
fn many_small_lines_are_taxed_as_one() -> TestResult {
    let mut cart = cart(&[(9, "1", "5"); 40])?;
    cart.prices_include_tax = false;
    // 5 % of 0.09 is nothing, of 3.60 it is 0.18.
    let priced = price(&cart)?;
    assert_eq!((priced.net, priced.tax, priced.total), (360, 18, 378));
    cart.prices_include_tax = true;
    let priced = price(&cart)?;
    assert_eq!((priced.net, priced.tax, priced.total), (343, 17, 360));
    Ok(())
}

#[test]
fn tax_on_top_goes_up_from_the_half() -> TestResult {
    let mut cart = cart(&[(30, "1", "5")])?;
    cart.prices_include_tax = false;
    assert_eq!(price(&cart)?.tax, 2);
    cart.lines[0].unit_price = 29;
    assert_eq!(price(&cart)?.tax, 1);
    Ok(())
}

#[test]
fn a_tax_rate_may_be_over_a_hundred() -> TestResult {
    let mut cart = cart(&[(300, "1", "200")])?;
    assert_eq!(taxes(&price(&cart)?), [("200".to_owned(), 100, 200)]);
    cart.prices_include_tax = false;
    assert_eq!(taxes(&price(&cart)?), [("200".to_owned(), 300, 600)]);
    Ok(())
}

#[test]
fn a_tip_is_of_the_total_with_tax_and_untaxed() -> TestResult {
    let mut cart = cart(&[(1_050, "1", "10")])?;
    cart.prices_include_tax = false;
    cart.discount = Some(Discount::Amount(50));
    // 1000 + 100 tax; 12.5 % of 1100 is 137.5.
    cart.tip = Some(Tip::Percent("12.5".parse()?));
    let priced = price(&cart)?;
    assert_eq!((priced.tax, priced.tip, priced.total, priced.balance.rest), (100, 138, 1_238, 1_238));
    cart.tip = Some(Tip::Amount(7));
    assert_eq!(price(&cart)?.total, 1_107);
    Ok(())
}

#[test]
fn the_same_input_in_three_decimals_and_in_none() -> TestResult {
    let mut cart = cart(&[(12_345, "0.333", "10")])?;
    // 4110.885: the minor unit is the unit of rounding, whatever it is worth.
    for code in ["BHD", "JPY", "EUR"] {
        cart.currency = Currency::parse(code)?;
        assert_eq!(price(&cart)?.total, 4_111, "{code}");
    }
    Ok(())
}

#[test]
fn what_does_not_fit_names_its_place() -> TestResult {
    assert_eq!(
        fault(price(&cart(&[(1, "1", "0"), (i64::MAX, "1.001", "0")])?)),
        Some((Code::OutOfRange, "lines[1]".to_owned()))
    );
    assert_eq!(
        fault(price(&cart(&[(i64::MAX, "1", "0"), (1, "1", "0")])?)),
        Some((Code::OutOfRange, "lines".to_owned()))
    );
    let mut on_top = cart(&[(i64::MAX, "1", "0.001")])?;
    on_top.prices_include_tax = false;
    assert_eq!(fault(price(&on_top)), Some((Code::OutOfRange, "lines".to_owned())));
    let mut tipped = cart(&[(i64::MAX, "1", "0")])?;
    tipped.tip = Some(Tip::Amount(1));
    assert_eq!(fault(price(&tipped)), Some((Code::OutOfRange, "tip".to_owned())));
    tipped.tip = Some(Tip::Percent("100.001".parse()?));
    assert_eq!(fault(price(&tipped)), Some((Code::OutOfRange, "tip".to_owned())));
    tipped.tip = None;
    assert_eq!(price(&tipped)?.total, i64::MAX);
    Ok(())
}

#[test]
fn what_no_type_rules_out_is_refused_at_its_place() -> TestResult {
    let good = cart(&[(100, "1", "0"), (100, "1", "0")])?;
    let refused = |change: fn(&mut Cart)| {
        let mut cart = good.clone();
        change(&mut cart);
        fault(price(&cart)).map(|(code, path)| (code.as_str(), path))
    };
    for (change, code, path) in [
        ((|cart| cart.lines[1].unit_price = -1) as fn(&mut Cart), "invalid-value", "lines[1].unit_price"),
        (|cart| cart.lines[1].discount = Some(Discount::Amount(-1)), "invalid-value", "lines[1].discount.amount"),
        (|cart| cart.discount = Some(Discount::Amount(-1)), "invalid-value", "discount.amount"),
        (|cart| cart.lines[0].discount = of_thousandths(100_001), "invalid-value", "lines[0].discount.percent"),
        (|cart| cart.discount = of_thousandths(i64::MAX), "invalid-value", "discount.percent"),
        (|cart| cart.tip = Some(Tip::Amount(-1)), "invalid-value", "tip.amount"),
        (|cart| cart.lines = vec![cart.lines[0]; checkout::LINES_MAX + 1], "too-many", "lines"),
    ] {
        assert_eq!(refused(change), Some((code, path.to_owned())));
    }
    Ok(())
}

#[test]
fn as_many_lines_as_allowed_are_priced() -> TestResult {
    let mut cart = cart(&[(101, "1", "20")])?;
    cart.lines = vec![cart.lines[0]; checkout::LINES_MAX];
    cart.discount = Some(percent("33.333")?);
    let priced = price(&cart)?;
    assert_eq!(priced.discount, 336_663);
    assert_eq!(priced.total, 1_010_000 - 336_663);
    Ok(())
}

#[test]
fn a_quantity_rung_up_twice_costs_as_much_as_two() -> TestResult {
    let twice = Quantity::ONE.checked_add(Quantity::ONE).ok_or("does not fit")?;
    assert_eq!(price(&cart(&[(149, &twice.to_string(), "0")])?)?.total, 298);
    Ok(())
}
