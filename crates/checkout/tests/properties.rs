//! What holds for every cart: parts add up, another reckoning gives the same, order does not matter where it should not,
//! extremes are errors, and the JSON says what the library says.

#[path = "properties/carts.rs"]
mod carts;
#[path = "properties/reference.rs"]
mod reference;

use carts::{any_cart, cart, cash_rule, input_document, tenders_of};
use checkout::{
    Cart, CashRule, Code, Currency, Discount, Priced, Quantity, Rate, Tender, balance, cash_due, cash_notes, json,
    price,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Every sum that a sale promises, in `i128` so that the check itself cannot wrap.
fn assert_adds_up(cart: &Cart, priced: &Priced) -> Result<(), TestCaseError> {
    let sum = |values: &mut dyn Iterator<Item = i64>| values.map(i128::from).sum::<i128>();
    prop_assert_eq!(priced.lines.len(), cart.lines.len());
    for line in &priced.lines {
        prop_assert!(line.discount >= 0 && line.sale_discount >= 0 && line.total >= 0, "{line:?}");
        prop_assert_eq!(
            i128::from(line.gross),
            sum(&mut [line.discount, line.sale_discount, line.total].into_iter()),
            "{:?}",
            line
        );
    }
    prop_assert_eq!(sum(&mut priced.lines.iter().map(|line| line.sale_discount)), priced.discount.into());
    prop_assert!(priced.taxes.windows(2).all(|pair| pair[0].rate < pair[1].rate));
    for group in &priced.taxes {
        prop_assert!(group.net >= 0 && group.tax >= 0, "{group:?}");
        let of_rate = cart.lines.iter().zip(&priced.lines).filter(|(line, _)| line.tax_rate == group.rate);
        let shelf = sum(&mut of_rate.map(|(_, priced)| priced.total));
        let tax_in_prices = if cart.prices_include_tax { group.tax } else { 0 };
        prop_assert_eq!(sum(&mut [group.net, tax_in_prices].into_iter()), shelf, "{:?}", group);
    }
    for line in &cart.lines {
        prop_assert!(priced.taxes.iter().any(|group| group.rate == line.tax_rate));
    }
    prop_assert_eq!(sum(&mut priced.taxes.iter().map(|group| group.net)), priced.net.into());
    prop_assert_eq!(sum(&mut priced.taxes.iter().map(|group| group.tax)), priced.tax.into());
    prop_assert_eq!(sum(&mut [priced.net, priced.tax, priced.tip].into_iter()), priced.total.into());
    prop_assert!(priced.tip >= 0 && priced.total >= 0);
    assert_balances(priced.total, cart, priced)
}

/// The tenders' side: total + rounding = tenders + rest, and who may be rounded and given change.
fn assert_balances(total: i64, cart: &Cart, priced: &Priced) -> Result<(), TestCaseError> {
    let balance = &priced.balance;
    let [mut paid, mut in_cash, mut handed] = [0_i128; 3];
    prop_assert_eq!(balance.tenders.len(), cart.tenders.len());
    for (priced, given) in balance.tenders.iter().zip(&cart.tenders) {
        prop_assert_eq!(&priced.tender, given);
        prop_assert!(priced.amount >= 0);
        paid += i128::from(priced.amount);
        match *given {
            Tender::Card { amount } | Tender::Voucher { amount } => prop_assert_eq!(priced.amount, amount),
            Tender::Cash { tendered } => {
                prop_assert!(priced.amount <= tendered);
                in_cash += i128::from(priced.amount);
                handed += i128::from(tendered);
            }
        }
    }
    prop_assert_eq!(i128::from(total) + i128::from(balance.rounding), paid + i128::from(balance.rest));
    prop_assert_eq!(in_cash, i128::from(balance.drawer));
    prop_assert_eq!(handed, in_cash + i128::from(balance.change));
    prop_assert!(balance.rest >= 0 && balance.change >= 0 && balance.drawer >= 0);
    prop_assert!(balance.rounding.unsigned_abs() < cart.cash.step().unsigned_abs());
    prop_assert!(balance.rest == 0 || (balance.rounding == 0 && balance.change == 0), "{balance:?}");
    prop_assert!(cart.cash.takes(balance.drawer) && cart.cash.takes(balance.change), "{balance:?}");
    Ok(())
}

fn euro() -> Result<Currency, TestCaseError> {
    Currency::parse("EUR").map_err(|error| TestCaseError::fail(error.to_string()))
}

fn priced(cart: &Cart) -> Result<Priced, TestCaseError> {
    price(cart).map_err(|error| TestCaseError::fail(error.to_string()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_add_up(cart in cart()) {
        assert_adds_up(&cart, &priced(&cart)?)?;
    }

    #[test]
    fn another_reckoning_gives_the_same(cart in cart()) {
        let priced = priced(&cart)?;
        prop_assert_eq!(reference::Figures::of(&priced), reference::reckon(&cart));
    }

    #[test]
    fn extremes_are_an_error_or_add_up(cart in any_cart()) {
        match price(&cart) {
            Ok(priced) => assert_adds_up(&cart, &priced)?,
            Err(error) => {
                let known = [Code::InvalidValue, Code::OutOfRange, Code::OverDue, Code::CashStep];
                prop_assert!(known.contains(&error.code), "{error}");
                prop_assert!(!error.path.is_empty(), "{error}");
            }
        }
    }

    #[test]
    fn a_sale_discount_is_shared_in_proportion(mut cart in cart(), amount in 0_i64..100_000) {
        cart.discount = Some(Discount::Amount(amount));
        cart.tenders.clear();
        let lines = priced(&cart)?.lines;
        let before = |index: usize| i128::from(lines[index].sale_discount) + i128::from(lines[index].total);
        let all: i128 = (0..lines.len()).map(before).sum();
        let discount = i128::from(amount).min(all);
        for index in 0..lines.len() {
            // Within one unit of the exact share, and never more than the line.
            let (share, exact) = (i128::from(lines[index].sale_discount) * all, discount * before(index));
            prop_assert!((share - exact).abs() < all.max(1), "{lines:?}");
            for other in 0..index {
                // A dearer line never gets less; of equal ones the earlier never less than the later.
                let (dearer, cheaper) = if before(other) >= before(index) { (other, index) } else { (index, other) };
                prop_assert!(lines[dearer].sale_discount >= lines[cheaper].sale_discount, "{lines:?}");
            }
        }
    }

    #[test]
    fn the_order_of_lines_changes_no_sum((cart, turned) in cart().prop_flat_map(|cart| {
        let turned = Just(cart.lines.clone()).prop_shuffle();
        (Just(cart), turned)
    })) {
        let mut turned = Cart { lines: turned, ..cart.clone() };
        let (one, other) = (priced(&Cart { tenders: Vec::new(), ..cart.clone() })?, priced(&Cart { tenders: Vec::new(), ..turned.clone() })?);
        prop_assert_eq!(one.discount, other.discount);
        if cart.prices_include_tax {
            // Odd cents of a sale discount may move to another rate, but shelf prices make the total.
            prop_assert_eq!(one.total, other.total);
        }
        turned.discount = None;
        let (one, other) = (priced(&Cart { discount: None, tenders: Vec::new(), ..cart })?, priced(&Cart { tenders: Vec::new(), ..turned })?);
        prop_assert_eq!((one.taxes, one.total), (other.taxes, other.total));
    }

    #[test]
    fn the_order_of_tenders_changes_what_no_one_pays((cart, turned) in cart().prop_flat_map(|cart| {
        let turned = Just(cart.tenders.clone()).prop_shuffle();
        (Just(cart), turned)
    })) {
        let (one, other) = (priced(&cart)?.balance, priced(&Cart { tenders: turned, ..cart })?.balance);
        prop_assert_eq!(
            (one.rounding, one.change, one.drawer, one.rest),
            (other.rounding, other.change, other.drawer, other.rest)
        );
    }

    #[test]
    fn cash_in_pieces_is_as_cash_at_once(total in 0_i64..100_000, rule in cash_rule(), pieces in prop::collection::vec(0_i64..5_000, 1..6)) {
        let pieces: Vec<i64> = pieces.into_iter().map(|piece| piece * rule.step()).collect();
        let cash = |tendered| Tender::Cash { tendered };
        let apart = balance(total, &pieces.iter().copied().map(cash).collect::<Vec<_>>(), rule);
        let at_once = balance(total, &[cash(pieces.iter().sum())], rule);
        let figures = |balance: checkout::Balance| (balance.rounding, balance.change, balance.drawer, balance.rest);
        prop_assert_eq!(apart.map(figures), at_once.map(figures));
    }

    #[test]
    fn cash_due_after_a_part_in_cash_is_what_is_left_of_it(total in 0_i64..1_000_000, part in 0_i64..100_000, rule in cash_rule()) {
        let whole = cash_due(total, rule)?;
        let part = part * rule.step();
        prop_assume!(part < whole.due);
        let rest = balance(total, &[Tender::Cash { tendered: part }], rule)?.rest;
        prop_assert_eq!(cash_due(rest, rule)?, checkout::CashDue { due: whole.due - part, rounding: whole.rounding });
    }

    #[test]
    fn cash_taken_before_counts_with_what_stayed(cart in cart(), handed in 0_i64..1_000) {
        let Priced { total, balance: first, .. } = priced(&cart)?;
        let stayed = first.tenders.iter().map(|priced| match priced.tender {
            Tender::Cash { .. } => Tender::Cash { tendered: priced.amount },
            other => other,
        });
        let mut stayed: Vec<Tender> = stayed.collect();
        let again = balance(total, &stayed, cart.cash)?;
        prop_assert_eq!((again.change, again.rounding, again.drawer, again.rest), (0, first.rounding, first.drawer, first.rest));
        // All cards are declined after all: what cash stayed is kept, and more cash pays exactly what is then due.
        stayed.retain(|tender| matches!(tender, Tender::Cash { .. }));
        let rest = balance(total, &stayed, cart.cash)?.rest;
        let due = cash_due(rest, cart.cash)?.due;
        let change = handed * cart.cash.step();
        stayed.push(Tender::Cash { tendered: due + change });
        let paid = balance(total, &stayed, cart.cash)?;
        prop_assert_eq!((paid.rest, paid.change, paid.tenders.last().map(|priced| priced.amount)), (0, change, Some(due)));
    }

    #[test]
    fn the_cash_due_pays_the_sale_and_one_step_less_does_not(mut cart in cart(), rule in cash_rule()) {
        cart.cash = rule;
        cart.tenders.retain(|tender| !matches!(tender, Tender::Cash { .. }));
        let due = cash_due(priced(&cart)?.balance.rest, rule)?;
        cart.tenders.push(Tender::Cash { tendered: due.due });
        let paid = priced(&cart)?.balance;
        prop_assert_eq!((paid.rest, paid.change, paid.rounding), (0, 0, due.rounding));
        if due.due > 0 {
            cart.tenders.pop();
            cart.tenders.push(Tender::Cash { tendered: due.due - rule.step() });
            prop_assert!(priced(&cart)?.balance.rest > 0);
        }
    }

    #[test]
    fn json_says_what_the_library_says(cart in cart(), pretty in any::<bool>()) {
        let input = input_document(&cart);
        let input = if pretty { format!("{input:#}") } else { input.to_string() };
        prop_assert_eq!(json::read(&input), Ok(cart.clone()));
        let output = json::document(&priced(&cart)?);
        prop_assert_eq!(json::run(&input), Ok(output.to_string()));
        // What came out is a sale of the same figures when it goes through text.
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&output.to_string()).ok(), Some(output));
    }

    #[test]
    fn json_refuses_what_the_library_refuses(cart in any_cart()) {
        let input = input_document(&cart).to_string();
        match (json::run(&input), price(&cart)) {
            (Ok(output), Ok(priced)) => prop_assert_eq!(output, json::document(&priced).to_string()),
            (Err(_), Err(_)) => {}
            (by_json, by_library) => prop_assert!(false, "{by_json:?} but {by_library:?}"),
        }
    }

    #[test]
    fn any_text_gets_a_document(text in ".{0,40}", members in r#"[\[\]{}:,"0-9a-z_.\\-]{0,60}"#) {
        for input in [text, members.clone(), format!(r#"{{"currency":"EUR","lines":[{members}]}}"#)] {
            let (Ok(document) | Err(document)) = json::run(&input);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&document).is_ok());
        }
    }

    #[test]
    fn decimals_come_back_as_short_as_they_can_be(thousandths in prop_oneof![0..=i64::MAX, 0_i64..3_000_000]) {
        let quantity = Quantity::from_thousandths(thousandths)?;
        let text = quantity.to_string();
        prop_assert_eq!(text.parse::<Quantity>(), Ok(quantity));
        prop_assert_eq!(text.parse::<Rate>().map(|rate| (rate.thousandths(), rate.to_string())), Ok((thousandths, text.clone())));
        // No shorter text of the same value: no zero at the end of decimals, none of a whole number.
        prop_assert_eq!(text.contains('.'), thousandths % 1_000 != 0);
        prop_assert!(!text.contains('.') || !text.ends_with(['0', '.']));
    }

    #[test]
    fn quick_cash_is_the_exact_amount_and_three_more(due in prop_oneof![1_i64..100_000, 1..i64::MAX / 2], step in prop::sample::select(vec![1_i64, 5, 10, 50, 100])) {
        let rule = CashRule::new(step, checkout::CashRounding::Nearest).ok_or_else(|| TestCaseError::fail("a step"))?;
        let due = cash_due(due, rule)?.due;
        prop_assume!(due > 0);
        let notes = cash_notes(due, euro()?);
        prop_assert_eq!((notes.len(), notes[0]), (4, due));
        prop_assert!(notes.windows(2).all(|pair| pair[0] < pair[1]), "{notes:?}");
        prop_assert!(notes.iter().all(|amount| rule.takes(*amount)), "{notes:?}");
    }

    #[test]
    fn tenders_over_what_is_due_are_refused_but_for_cash(mut cart in cart(), over in 1_i64..1_000) {
        cart.tenders.clear();
        let total = priced(&cart)?.total;
        for tender in [Tender::Card { amount: total + over }, Tender::Voucher { amount: total + over }] {
            cart.tenders = vec![tender];
            prop_assert_eq!(price(&cart).map_err(|error| error.code), Err(Code::OverDue));
        }
        cart.tenders = tenders_of(total, &[total + over], 0, cart.cash);
        prop_assert!(price(&cart).is_ok());
    }
}
