//! A hundred thousand carts: each sum agrees in each place where it appears, and what comes back in parts is what was paid.

use checkout::{
    Cart, CashRounding, CashRule, Currency, Discount, Line, Priced, Quantity, Rate, Returned, Sold, Tender, Tip,
    give_back, price,
};
use rand::{Rng, SeedableRng, rngs::StdRng};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

const CARTS: u64 = 100_000;
/// Few, so that lines share groups.
const RATES: [i64; 6] = [0, 5_500, 7_000, 8_875, 19_000, 120_000];
const STEPS: [i64; 5] = [1, 5, 7, 10, 100];

fn discount(rng: &mut StdRng) -> Checked<Option<Discount>> {
    Ok(match rng.random_range(0..6) {
        0 => Some(Discount::Percent(Rate::from_thousandths(rng.random_range(0..=100_000))?)),
        1 => Some(Discount::Amount(rng.random_range(0..5_000))),
        _ => None,
    })
}

fn line(rng: &mut StdRng) -> Checked<Line> {
    let quantity = if rng.random_bool(0.6) { 1_000 * rng.random_range(1..12) } else { rng.random_range(1..6_000) };
    // Now and then a price that takes the sums near the edge of what 64 bits hold.
    let unit_price = match rng.random_range(0..200) {
        0 => rng.random_range(0..i64::MAX / 4_000),
        1..20 => rng.random_range(0..1_000_000),
        _ => rng.random_range(0..3_000),
    };
    Ok(Line {
        unit_price,
        quantity: Quantity::from_thousandths(quantity)?,
        tax_rate: Rate::from_thousandths(RATES[rng.random_range(0..RATES.len())])?,
        discount: discount(rng)?,
    })
}

/// Tenders that a total takes: parts of it by card, voucher and cash, the last one perhaps with change.
fn tenders(rng: &mut StdRng, total: i64, cash: CashRule) -> Vec<Tender> {
    let mut due = total;
    let mut tenders = Vec::new();
    for _ in 0..rng.random_range(0..4) {
        let amount = rng.random_range(0..=due);
        tenders.push(match rng.random_range(0..3) {
            0 => Tender::Cash { tendered: amount / cash.step() * cash.step() },
            1 => Tender::Card { amount },
            _ => Tender::Voucher { amount },
        });
        due -= if matches!(tenders.last(), Some(Tender::Cash { .. })) { 0 } else { amount };
    }
    if rng.random_bool(0.5) && due < i64::MAX / 2 {
        tenders.push(Tender::Cash { tendered: (due / cash.step() + rng.random_range(0..20)) * cash.step() });
    }
    tenders
}

fn cart(rng: &mut StdRng) -> Checked<Cart> {
    let rounding = [CashRounding::Nearest, CashRounding::Up, CashRounding::Down][rng.random_range(0..3)];
    let mut cart = Cart::new(Currency::parse(["EUR", "JPY", "BHD"][rng.random_range(0..3)])?);
    cart.prices_include_tax = rng.random();
    cart.cash = CashRule::new(STEPS[rng.random_range(0..STEPS.len())], rounding).ok_or("a step")?;
    for _ in 0..rng.random_range(1..9) {
        cart.lines.push(line(rng)?);
    }
    cart.discount = discount(rng)?;
    cart.tip = match rng.random_range(0..8) {
        0 => Some(Tip::Percent(Rate::from_thousandths(rng.random_range(0..=150_000))?)),
        1 => Some(Tip::Amount(rng.random_range(0..3_000))),
        _ => None,
    };
    cart.tenders = tenders(rng, price(&cart)?.total, cart.cash);
    Ok(cart)
}

fn sum(amounts: impl Iterator<Item = i64>) -> i128 {
    amounts.map(i128::from).sum()
}

fn assert_agrees(cart: &Cart, priced: &Priced) {
    let lines = sum(priced.lines.iter().map(|line| line.total));
    let gross = sum(priced.lines.iter().map(|line| line.gross));
    let off = sum(priced.lines.iter().map(|line| line.discount + line.sale_discount));
    assert_eq!(gross - off, lines);
    assert_eq!(sum(priced.lines.iter().map(|line| line.sale_discount)), i128::from(priced.discount));
    let (net, tax) = (sum(priced.taxes.iter().map(|tax| tax.net)), sum(priced.taxes.iter().map(|tax| tax.tax)));
    assert_eq!((net, tax), (priced.net.into(), priced.tax.into()));
    assert_eq!(if cart.prices_include_tax { net + tax } else { net }, lines);
    for group in &priced.taxes {
        let of_rate = cart.lines.iter().zip(&priced.lines).filter(|(line, _)| line.tax_rate == group.rate);
        let goods = if cart.prices_include_tax { group.net + group.tax } else { group.net };
        assert_eq!(sum(of_rate.map(|(_, priced)| priced.total)), i128::from(goods), "{group:?}");
    }
    assert_eq!(net + tax + i128::from(priced.tip), i128::from(priced.total));
    let balance = &priced.balance;
    let paid = sum(balance.tenders.iter().map(|tender| tender.amount));
    assert_eq!(paid + i128::from(balance.rest), i128::from(priced.total) + i128::from(balance.rounding));
    let cash = |tender: &Tender| matches!(tender, Tender::Cash { .. });
    let drawer = balance.tenders.iter().filter(|tender| cash(&tender.tender)).map(|tender| tender.amount);
    assert_eq!(sum(drawer), i128::from(balance.drawer));
}

/// Everything comes back, in parts drawn by chance.
fn assert_comes_back(rng: &mut StdRng, cart: &Cart, priced: &Priced) -> Checked {
    let mut sold = Sold::of(cart, priced);
    let mut lines = vec![0_i128; priced.lines.len()];
    let (mut net, mut tax, mut tip, mut total) = (0_i128, 0_i128, 0_i128, 0_i128);
    while let rest @ [_, ..] = sold.rest().as_slice() {
        let whole = rest[rng.random_range(0..rest.len())];
        let left = whole.quantity.thousandths();
        let part = if rng.random_bool(0.5) { left } else { rng.random_range(1..=left) };
        let goods = [Returned { quantity: Quantity::from_thousandths(part)?, ..whole }];
        let back = give_back(&sold, &goods)?;
        assert!(back.net >= 0 && back.tax >= 0 && back.lines[0] >= 0);
        lines[whole.line] += i128::from(back.lines[0]);
        (net, tax) = (net + i128::from(back.net), tax + i128::from(back.tax));
        (tip, total) = (tip + i128::from(back.tip), total + i128::from(back.total));
        sold = sold.after(&goods)?;
        assert_eq!(back.is_last, sold.rest().is_empty());
        assert!(back.is_last || tip == 0);
    }
    assert!(lines.iter().zip(&priced.lines).all(|(back, line)| *back == i128::from(line.total)));
    assert_eq!([net, tax, tip, total], [priced.net, priced.tax, priced.tip, priced.total].map(i128::from));
    Ok(())
}

#[test]
fn every_sum_agrees_in_each_place_and_comes_back_in_parts() -> Checked {
    let given = std::env::var("CARTS_SEED").ok();
    let seed: u64 = given.map_or_else(|| Ok(rand::random()), |seed| seed.parse())?;
    println!("CARTS_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for number in 0..CARTS {
        let cart = cart(&mut rng).map_err(|error| format!("cart {number}: {error}"))?;
        let priced = price(&cart)?;
        assert_agrees(&cart, &priced);
        // Takes as long as three carts.
        if number % 4 == 0 {
            assert_comes_back(&mut rng, &cart, &priced).map_err(|error| format!("cart {number}, {cart:?}: {error}"))?;
        }
    }
    Ok(())
}
