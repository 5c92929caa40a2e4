//! Carts by chance: sensible ones that always have a price, and wild ones that mostly have none.

use checkout::{Cart, CashRounding, CashRule, Currency, Discount, Line, Quantity, Rate, Tender, Tip, price};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn quantity(thousandths: impl Strategy<Value = i64>) -> impl Strategy<Value = Quantity> {
    thousandths.prop_filter_map("negative", |thousandths| Quantity::from_thousandths(thousandths).ok())
}

fn rate(thousandths: impl Strategy<Value = i64>) -> impl Strategy<Value = Rate> {
    thousandths.prop_filter_map("negative", |thousandths| Rate::from_thousandths(thousandths).ok())
}

/// Few rates, so that lines share groups, some of three decimals.
fn tax_rate() -> impl Strategy<Value = Rate> {
    rate(prop::sample::select(vec![0, 5_000, 5_500, 8_875, 10_000, 19_000, 20_000, 120_000]))
}

fn discount() -> impl Strategy<Value = Discount> {
    prop_oneof![
        rate(0..=100_000_i64).prop_map(Discount::Percent),
        rate(prop::sample::select(vec![5_000, 10_000, 50_000, 100_000])).prop_map(Discount::Percent),
        (0..20_000_i64).prop_map(Discount::Amount),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let unit_price = prop_oneof![0..3_000_i64, 0..1_000_000_i64];
    let quantity = quantity(prop_oneof![(0..20_i64).prop_map(|pieces| pieces * 1_000), 0..5_000_i64]);
    (unit_price, quantity, tax_rate(), prop::option::weighted(0.3, discount()))
        .prop_map(|(unit_price, quantity, tax_rate, discount)| Line { unit_price, quantity, tax_rate, discount })
}

fn tip() -> impl Strategy<Value = Tip> {
    prop_oneof![rate(0..150_000_i64).prop_map(Tip::Percent), (0..5_000_i64).prop_map(Tip::Amount)]
}

pub(crate) fn cash_rule() -> impl Strategy<Value = CashRule> {
    let rounding = prop::sample::select(vec![CashRounding::Nearest, CashRounding::Up, CashRounding::Down]);
    (prop::sample::select(vec![1_i64, 5, 10, 25, 30, 100, 7]), rounding)
        .prop_filter_map("a step", |(step, rounding)| CashRule::new(step, rounding))
}

fn currency() -> impl Strategy<Value = Currency> {
    prop::sample::select(vec!["EUR", "JPY", "BHD"]).prop_filter_map("a code", |code| Currency::parse(code).ok())
}

/// Tenders that a total takes: each of `wanted` in turn by cash, card or voucher as the bits of `kinds` say, the others
/// cut to what is due and cash made up of whole steps.
pub(crate) fn tenders_of(total: i64, wanted: &[i64], kinds: u32, cash: CashRule) -> Vec<Tender> {
    let mut due = total;
    let mut kinds = kinds;
    wanted
        .iter()
        .map(|&wanted| {
            let kind = kinds % 3;
            kinds /= 3;
            let amount = wanted.min(due);
            match kind {
                0 => return Tender::Cash { tendered: wanted - wanted % cash.step() },
                1 => due -= amount,
                _ => {
                    due -= amount;
                    return Tender::Voucher { amount };
                }
            }
            Tender::Card { amount }
        })
        .collect()
}

/// A cart of everyday figures: it always has a price, so that no property is spared by an error.
pub(crate) fn cart() -> impl Strategy<Value = Cart> {
    let sale = (
        currency(),
        any::<bool>(),
        cash_rule(),
        prop::collection::vec(line(), 0..8),
        prop::option::of(discount()),
        prop::option::weighted(0.3, tip()),
    );
    // A tender's wish: a part of what is due in per mille, 0 to twice of it.
    let wishes = prop::collection::vec(prop_oneof![0..=2_000_i64, Just(1_000)], 0..5);
    (sale, wishes, any::<u32>()).prop_map(
        |((currency, prices_include_tax, cash, lines, discount, tip), wishes, kinds)| {
            let mut cart = Cart { currency, prices_include_tax, cash, lines, discount, tip, tenders: Vec::new() };
            let total = price(&cart).map_or(0, |priced| priced.total);
            let wanted: Vec<i64> = wishes.into_iter().map(|wish| total * wish / 1_000).collect();
            cart.tenders = tenders_of(total, &wanted, kinds, cash);
            cart
        },
    )
}

/// Any amount that the types let through, with the edges most of the time.
fn any_amount() -> impl Strategy<Value = i64> {
    prop_oneof![
        2 => any::<i64>(),
        2 => prop::sample::select(vec![0, 1, -1, i64::MAX, i64::MAX - 1, i64::MIN, i64::MAX / 2 + 1]),
        4 => 0..10_000_i64,
    ]
}

fn any_count() -> impl Strategy<Value = i64> {
    prop_oneof![0..=i64::MAX, Just(i64::MAX), 0..100_000_i64, Just(1_000)]
}

fn any_discount() -> impl Strategy<Value = Discount> {
    prop_oneof![rate(any_count()).prop_map(Discount::Percent), any_amount().prop_map(Discount::Amount)]
}

fn any_line() -> impl Strategy<Value = Line> {
    (any_amount(), quantity(any_count()), rate(any_count()), prop::option::of(any_discount()))
        .prop_map(|(unit_price, quantity, tax_rate, discount)| Line { unit_price, quantity, tax_rate, discount })
}

fn any_tender() -> impl Strategy<Value = Tender> {
    (0..3, any_amount()).prop_map(|(kind, amount)| match kind {
        0 => Tender::Card { amount },
        1 => Tender::Voucher { amount },
        _ => Tender::Cash { tendered: amount },
    })
}

/// A cart of any figures at all.
pub(crate) fn any_cart() -> impl Strategy<Value = Cart> {
    let any_rule = prop_oneof![
        cash_rule(),
        (1..=i64::MAX).prop_filter_map("a step", |step| CashRule::new(step, CashRounding::Nearest)),
        Just(i64::MAX).prop_filter_map("a step", |step| CashRule::new(step, CashRounding::Up)),
    ];
    let any_tip = prop_oneof![rate(any_count()).prop_map(Tip::Percent), any_amount().prop_map(Tip::Amount)];
    (
        currency(),
        any::<bool>(),
        any_rule,
        prop::collection::vec(any_line(), 0..4),
        prop::option::of(any_discount()),
        prop::option::of(any_tip),
        prop::collection::vec(any_tender(), 0..4),
    )
        .prop_map(|(currency, prices_include_tax, cash, lines, discount, tip, tenders)| Cart {
            currency,
            prices_include_tax,
            cash,
            lines,
            discount,
            tip,
            tenders,
        })
}

/// The cart as the engine's input, with what may be missing left out now and then: where it is what holds anyway.
pub(crate) fn input_document(cart: &Cart) -> Value {
    let mut root = Map::new();
    root.insert("currency".to_owned(), cart.currency.code().into());
    if !cart.prices_include_tax {
        root.insert("prices_include_tax".to_owned(), false.into());
    }
    if cart.cash != CashRule::EXACT {
        root.insert("cash_step".to_owned(), cart.cash.step().into());
        root.insert("cash_rounding".to_owned(), cart.cash.rounding().as_str().into());
    }
    root.insert("lines".to_owned(), cart.lines.iter().map(line_document).collect());
    if let Some(discount) = cart.discount {
        root.insert("discount".to_owned(), discount_document(discount));
    }
    match cart.tip {
        Some(Tip::Percent(rate)) => root.insert("tip".to_owned(), json!({ "percent": rate.to_string() })),
        Some(Tip::Amount(amount)) => root.insert("tip".to_owned(), json!({ "amount": amount })),
        None => None,
    };
    if !cart.tenders.is_empty() {
        root.insert("tenders".to_owned(), cart.tenders.iter().map(tender_document).collect());
    }
    root.into()
}

fn line_document(line: &Line) -> Value {
    let mut object = Map::new();
    object.insert("unit_price".to_owned(), line.unit_price.into());
    if line.quantity != Quantity::ONE {
        // Whole quantities as numbers, others as text.
        let thousandths = line.quantity.thousandths();
        let whole = line.quantity.is_whole().then(|| Value::from(thousandths / 1_000));
        object.insert("quantity".to_owned(), whole.unwrap_or_else(|| line.quantity.to_string().into()));
    }
    if line.tax_rate != Rate::ZERO {
        object.insert("tax_rate".to_owned(), line.tax_rate.to_string().into());
    }
    if let Some(discount) = line.discount {
        object.insert("discount".to_owned(), discount_document(discount));
    }
    object.into()
}

fn discount_document(discount: Discount) -> Value {
    match discount {
        Discount::Percent(rate) => json!({ "percent": rate.to_string() }),
        Discount::Amount(amount) => json!({ "amount": amount }),
    }
}

fn tender_document(tender: &Tender) -> Value {
    match *tender {
        Tender::Card { amount } => json!({ "kind": "card", "amount": amount }),
        Tender::Voucher { amount } => json!({ "kind": "voucher", "amount": amount }),
        Tender::Cash { tendered } => json!({ "kind": "cash", "tendered": tendered }),
    }
}
