//! Goods that come back: worked out by hand, and for any sale in any parts in any order.

#[path = "properties/carts.rs"]
#[expect(dead_code, reason = "the other properties use all of it")]
mod carts;

use carts::{any_cart, cart as any_sale};
use checkout::{
    Cart, Code, Currency, Discount, GivenBack, LINES_MAX, Line, PriceError, Quantity, Rate, Returned, Sold, SoldLine,
    TaxGroup, Tip, give_back, price,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A sale in euros of lines `(unit price, quantity, tax rate)`.
fn cart(lines: &[(i64, &str, &str)]) -> Result<Cart, Box<dyn std::error::Error>> {
    let mut cart = Cart::new(Currency::parse("EUR")?);
    for &(unit_price, quantity, tax_rate) in lines {
        cart.lines.push(Line { unit_price, quantity: quantity.parse()?, tax_rate: tax_rate.parse()?, discount: None });
    }
    Ok(cart)
}

fn sold(cart: &Cart) -> Result<Sold, PriceError> {
    Ok(Sold::of(cart, &price(cart)?))
}

fn goods(line: usize, quantity: &str) -> Result<Returned, checkout::DecimalError> {
    Ok(Returned { line, quantity: quantity.parse()? })
}

/// Brings the goods back one after the other and says what each gives.
fn one_by_one(mut sold: Sold, parts: &[Returned]) -> Result<Vec<GivenBack>, PriceError> {
    let mut given = Vec::new();
    for part in parts {
        given.push(give_back(&sold, &[*part])?);
        sold = sold.after(&[*part])?;
    }
    Ok(given)
}

fn totals(given: &[GivenBack]) -> Vec<i64> {
    given.iter().map(|back| back.total).collect()
}

fn fault(result: Result<GivenBack, PriceError>) -> Option<(Code, String)> {
    result.err().map(|error| (error.code, error.path))
}

#[test]
fn three_for_ten_come_back_one_by_one() -> TestResult {
    let mut cart = cart(&[(400, "3", "0")])?;
    cart.lines[0].discount = Some(Discount::Amount(200));
    let one = goods(0, "1")?;
    let given = one_by_one(sold(&cart)?, &[one, one, one])?;
    assert_eq!(totals(&given), [333, 334, 333]);
    assert_eq!(given.iter().map(|back| back.is_last).collect::<Vec<_>>(), [false, false, true]);
    // Two and then one: the same in the end.
    assert_eq!(totals(&one_by_one(sold(&cart)?, &[goods(0, "2")?, one])?), [667, 333]);
    Ok(())
}

#[test]
fn a_line_comes_back_with_its_share_of_the_sales_discount_and_its_tax() -> TestResult {
    // 4.98, 1.15 and 2.97 less 10 %: 4.48, 1.04 and 2.67, with 0.75 of tax on the first.
    let mut cart = cart(&[(249, "2", "20"), (115, "1", "0"), (99, "3", "5")])?;
    cart.discount = Some(Discount::Percent("10".parse()?));
    let back = give_back(&sold(&cart)?, &[goods(0, "2")?])?;
    assert_eq!((back.total, back.net, back.tax, back.is_last), (448, 373, 75, false));
    assert_eq!(back.taxes, [TaxGroup { rate: "20".parse()?, net: 373, tax: 75 }]);
    // One piece at a time: 2.24 twice, of which 0.38 and 0.37 are tax.
    let one = goods(0, "1")?;
    let given = one_by_one(sold(&cart)?, &[one, one])?;
    assert_eq!(given.iter().map(|back| (back.total, back.tax)).collect::<Vec<_>>(), [(224, 38), (224, 37)]);
    Ok(())
}

#[test]
fn the_tax_of_a_group_comes_back_whole_from_lines_that_had_none_of_it_alone() -> TestResult {
    // 5 % of 0.09 is nothing, of 3.60 it is 0.18.
    let mut cart = cart(&[(9, "1", "5"); 40])?;
    cart.prices_include_tax = false;
    let parts = (0..40).map(|line| goods(line, "1")).collect::<Result<Vec<_>, _>>()?;
    let given = one_by_one(sold(&cart)?, &parts)?;
    assert_eq!(given.iter().map(|back| back.tax).sum::<i64>(), 18);
    assert!(given.iter().all(|back| back.net == 9 && back.total == 9 + back.tax && back.tax <= 1));
    Ok(())
}

#[test]
fn a_tax_set_anew_changes_nothing_that_was_sold() -> TestResult {
    // 30.00 and 15 % on top were paid; what the rate is today is no part of it.
    let mut cart = cart(&[(3_000, "1", "15")])?;
    cart.prices_include_tax = false;
    let sold = sold(&cart)?;
    assert_eq!(give_back(&sold, &sold.rest())?.total, 3_450);
    Ok(())
}

#[test]
fn a_tip_comes_back_with_the_last_of_the_goods() -> TestResult {
    let mut cart = cart(&[(1_000, "2", "10"), (500, "1", "0")])?;
    cart.tip = Some(Tip::Amount(123));
    let whole = sold(&cart)?;
    let back = give_back(&whole, &whole.rest())?;
    assert_eq!((back.tip, back.total), (123, 2_623));
    let given = one_by_one(whole, &[goods(1, "1")?, goods(0, "1")?, goods(0, "1")?])?;
    assert_eq!(given.iter().map(|back| back.tip).collect::<Vec<_>>(), [0, 0, 123]);
    assert_eq!(totals(&given), [500, 1_000, 1_123]);
    Ok(())
}

#[test]
fn several_parts_at_once_are_as_one_after_the_other() -> TestResult {
    let mut sold = sold(&cart(&[(1_090, "0.455", "7"), (333, "3", "19")])?)?;
    // In whatever order the table was kept.
    sold.taxes.reverse();
    let parts = [goods(1, "1")?, goods(0, "0.2")?, goods(1, "2")?];
    let at_once = give_back(&sold, &parts)?;
    let apart = one_by_one(sold, &parts)?;
    assert_eq!(at_once.lines, apart.iter().map(|back| back.lines[0]).collect::<Vec<_>>());
    assert_eq!(at_once.total, totals(&apart).iter().sum::<i64>());
    assert_eq!(at_once.taxes.iter().map(|group| group.rate.to_string()).collect::<Vec<_>>(), ["7", "19"]);
    Ok(())
}

#[test]
fn what_was_free_gives_nothing_and_still_comes_back() -> TestResult {
    let mut cart = cart(&[(1_000, "1", "18"), (200, "2", "18")])?;
    cart.discount = Some(Discount::Percent(Rate::HUNDRED));
    let sold = sold(&cart)?;
    let back = give_back(&sold, &sold.rest())?;
    assert_eq!((back.lines, back.total, back.is_last), (vec![0, 0], 0, true));
    Ok(())
}

#[test]
fn no_more_comes_back_than_was_sold() -> TestResult {
    let sold = sold(&cart(&[(400, "3", "0"), (100, "1.5", "0")])?)?;
    let over = |path: &str| Some((Code::OverReturn, path.to_owned()));
    assert_eq!(fault(give_back(&sold, &[goods(0, "3.001")?])), over("goods[0].quantity"));
    assert_eq!(fault(give_back(&sold, &[goods(0, "2")?, goods(0, "2")?])), over("goods[1].quantity"));
    let after = sold.after(&[goods(1, "1.5")?])?;
    assert_eq!(fault(give_back(&after, &[goods(1, "0.001")?])), over("goods[0].quantity"));
    assert_eq!(after.rest(), [goods(0, "3")?]);
    let most = Quantity::from_thousandths(i64::MAX)?;
    assert_eq!(fault(give_back(&after, &[Returned { line: 1, quantity: most }])), over("goods[0].quantity"));
    Ok(())
}

#[test]
fn what_is_no_part_of_the_sale_is_refused_at_its_place() -> TestResult {
    let sold = sold(&cart(&[(400, "3", "7")])?)?;
    let invalid = |path: &str| Some((Code::InvalidValue, path.to_owned()));
    assert_eq!(fault(give_back(&sold, &[goods(0, "1")?, goods(1, "1")?])), invalid("goods[1].line"));
    assert_eq!(fault(give_back(&sold, &[goods(0, "0")?])), invalid("goods[0].quantity"));
    assert_eq!(fault(give_back(&sold, &[])), Some((Code::MissingMember, "goods".to_owned())));
    let many = vec![goods(0, "0.001")?; LINES_MAX + 1];
    assert_eq!(fault(give_back(&sold, &many)), Some((Code::TooMany, "goods".to_owned())));
    Ok(())
}

#[test]
fn figures_that_are_not_of_one_sale_pay_nothing_out() -> TestResult {
    let good = sold(&cart(&[(400, "3", "7"), (119, "1", "19")])?)?;
    let refused = |change: fn(&mut Sold)| {
        let mut sold = good.clone();
        change(&mut sold);
        fault(give_back(&sold, &[Returned { line: 0, quantity: Quantity::ONE }]))
    };
    for (change, path) in [
        ((|sold| sold.lines[0].total += 1) as fn(&mut Sold), "taxes[0]"),
        (|sold| sold.lines[0].total = -1, "lines[0].total"),
        (|sold| sold.lines[1].returned = Quantity::from_thousandths(1_001).unwrap(), "lines[1].returned"),
        (|sold| sold.lines[1].quantity = Quantity::NONE, "lines[1].quantity"),
        (|sold| sold.lines[1].tax_rate = Rate::ZERO, "taxes"),
        (|sold| sold.taxes.truncate(1), "taxes"),
        (|sold| sold.taxes.push(sold.taxes[1]), "taxes"),
        (|sold| sold.taxes[1].tax += 1, "taxes[1]"),
        (|sold| (sold.taxes[1].net, sold.taxes[1].tax) = (120, -1), "taxes[1]"),
        (|sold| sold.tip = -1, "tip"),
    ] {
        assert_eq!(refused(change), Some((Code::InvalidValue, path.to_owned())));
    }
    Ok(())
}

#[test]
fn the_largest_figures_come_back_or_are_an_error() -> TestResult {
    let most = Quantity::from_thousandths(i64::MAX)?;
    let rate = Rate::ZERO;
    let line = SoldLine { quantity: most, total: i64::MAX, tax_rate: rate, returned: Quantity::NONE };
    let taxes = vec![TaxGroup { rate, net: i64::MAX, tax: 0 }];
    let sold = Sold { prices_include_tax: true, lines: vec![line], taxes, tip: 0 };
    assert_eq!(give_back(&sold, &sold.rest())?.total, i64::MAX);
    let part = Returned { line: 0, quantity: Quantity::from_thousandths(i64::MAX / 2)? };
    assert_eq!(give_back(&sold, &[part])?.total, i64::MAX / 2);
    let tipped = Sold { tip: 1, ..sold.clone() };
    assert_eq!(fault(give_back(&tipped, &tipped.rest())), Some((Code::OutOfRange, "goods".to_owned())));
    let two = Sold { lines: vec![line, line], ..sold };
    assert_eq!(fault(give_back(&two, &two.rest())), Some((Code::OutOfRange, "lines".to_owned())));
    Ok(())
}

/// What came back so far, by line, by rate and in all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SoFar {
    lines: Vec<i64>,
    taxes: Vec<(Rate, i64, i64)>,
    tip: i64,
    total: i64,
}

impl SoFar {
    fn nothing(sold: &Sold) -> Self {
        let taxes = sold.taxes.iter().map(|group| (group.rate, 0, 0)).collect();
        Self { lines: vec![0; sold.lines.len()], taxes, tip: 0, total: 0 }
    }

    fn add(&mut self, goods: &[Returned], back: &GivenBack) {
        for (goods, amount) in goods.iter().zip(&back.lines) {
            self.lines[goods.line] += amount;
        }
        for group in &back.taxes {
            for (_, net, tax) in self.taxes.iter_mut().filter(|(rate, ..)| *rate == group.rate) {
                (*net, *tax) = (*net + group.net, *tax + group.tax);
            }
        }
        self.tip += back.tip;
        self.total += back.total;
    }
}

/// `part` of `of`, in `total`, rounded with the half up, reckoned once more by another way.
fn rounded_share(total: i64, of: i64, part: i64) -> i64 {
    let (over, under) = (i128::from(total) * i128::from(part), i128::from(of));
    let near = (2 * over + under).div_euclid(2 * under);
    i64::try_from(near).unwrap_or(i64::MAX)
}

fn failed(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Brings everything back in parts that `draws` choose: `(line, part in per mille, how many at once)`.
fn bring_back(sold: &Sold, draws: &[(usize, i64, usize)]) -> Result<SoFar, TestCaseError> {
    let mut left = sold.clone();
    let mut so_far = SoFar::nothing(sold);
    let mut draws = draws.iter().copied().chain(std::iter::repeat((0, 1_000, 3)));
    while !left.rest().is_empty() {
        let Some((from, part, count)) = draws.next() else { break };
        let rest = left.rest();
        let goods: Vec<Returned> = (0..count.min(rest.len()))
            .map(|at| {
                let whole = rest[(from + at) % rest.len()];
                let thousandths = (i128::from(whole.quantity.thousandths()) * i128::from(part) / 1_000).max(1);
                let quantity =
                    Quantity::from_thousandths(i64::try_from(thousandths).map_err(failed)?).map_err(failed)?;
                Ok(Returned { quantity, ..whole })
            })
            .collect::<Result<_, TestCaseError>>()?;
        let back = give_back(&left, &goods).map_err(failed)?;
        prop_assert!(back.lines.iter().all(|amount| *amount >= 0), "{back:?}");
        prop_assert!(back.taxes.iter().all(|group| group.net >= 0 && group.tax >= 0), "{back:?}");
        prop_assert!(back.taxes.windows(2).all(|pair| pair[0].rate < pair[1].rate), "{back:?}");
        prop_assert_eq!(back.net + back.tax + back.tip, back.total);
        so_far.add(&goods, &back);
        left = left.after(&goods).map_err(failed)?;
        prop_assert_eq!(back.is_last, left.rest().is_empty());
        prop_assert!(back.is_last || so_far.tip == 0);
        for (line, back) in left.lines.iter().zip(&so_far.lines) {
            let share = rounded_share(line.total, line.quantity.thousandths().max(1), line.returned.thousandths());
            prop_assert_eq!(*back, share, "{:?}", line);
        }
    }
    Ok(so_far)
}

fn draws() -> impl Strategy<Value = Vec<(usize, i64, usize)>> {
    prop::collection::vec((0..8_usize, prop_oneof![1..=1_000_i64, Just(1_000)], 1..4_usize), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_parts_in_any_order_give_back_exactly_what_was_paid(cart in any_sale(), one in draws(), other in draws()) {
        let priced = price(&cart).map_err(failed)?;
        let sold = Sold::of(&cart, &priced);
        prop_assume!(!sold.rest().is_empty());
        let paid = SoFar {
            lines: priced.lines.iter().map(|line| line.total).collect(),
            taxes: priced.taxes.iter().map(|group| (group.rate, group.net, group.tax)).collect(),
            tip: priced.tip,
            total: priced.total,
        };
        prop_assert_eq!(bring_back(&sold, &one)?, paid.clone());
        prop_assert_eq!(bring_back(&sold, &other)?, paid);
    }

    #[test]
    fn what_is_back_of_a_sale_does_not_depend_on_how_it_came(
        cart in any_sale(), parts in prop::collection::vec((0..8_usize, 1..1_000_i64), 1..6).prop_flat_map(|parts| (Just(parts.clone()), Just(parts).prop_shuffle())),
    ) {
        let sold = Sold::of(&cart, &price(&cart).map_err(failed)?);
        prop_assume!(!sold.rest().is_empty());
        let came = |parts: &[(usize, i64)]| -> Result<SoFar, TestCaseError> {
            let (mut left, mut so_far) = (sold.clone(), SoFar::nothing(&sold));
            for (line, thousandths) in parts {
                let goods = [Returned { line: line % sold.lines.len(), quantity: Quantity::from_thousandths(*thousandths).map_err(failed)? }];
                // Some lines are smaller than that: of those nothing comes in either order.
                if sold.lines[goods[0].line].quantity.thousandths() < 8_000 { continue }
                so_far.add(&goods, &give_back(&left, &goods).map_err(failed)?);
                left = left.after(&goods).map_err(failed)?;
            }
            Ok(so_far)
        };
        prop_assert_eq!(came(&parts.0)?, came(&parts.1)?);
    }

    #[test]
    fn extremes_come_back_or_are_an_error(mut cart in any_cart()) {
        cart.tenders.clear();
        let Ok(priced) = price(&cart) else { return Ok(()) };
        let sold = Sold::of(&cart, &priced);
        if let Ok(back) = give_back(&sold, &sold.rest()) {
            prop_assert_eq!((back.net, back.tax, back.tip, back.total), (priced.net, priced.tax, priced.tip, priced.total));
        } else {
            prop_assert!(sold.rest().is_empty());
        }
    }
}
