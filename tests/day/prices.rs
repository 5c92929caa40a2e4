//! What things cost, by the contract's words and by nothing of the till's: the script's own arithmetic, with which the till has to agree.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What is taken off, or added as a tip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Thousandths of a percent.
    Percent(i64),
    /// Minor units.
    Amount(i64),
}

impl Part {
    fn of(self, sum: i64) -> i64 {
        match self {
            Self::Percent(thousandths) => rounded(i128::from(sum) * i128::from(thousandths), 100_000),
            Self::Amount(amount) => amount,
        }
    }

    /// As it is asked of the till.
    pub(crate) fn asked(self) -> Value {
        match self {
            Self::Percent(thousandths) => json!({"percent": decimal(thousandths)}),
            Self::Amount(amount) => json!({"amount": amount}),
        }
    }
}

/// One line of a sale.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) price: i64,
    pub(crate) thousandths: i64,
    /// Thousandths of a percent.
    pub(crate) rate: i64,
    pub(crate) off: Option<Part>,
}

/// A sale before it is priced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cart {
    pub(crate) lines: Vec<Line>,
    pub(crate) off: Option<Part>,
    pub(crate) tip: Option<Part>,
}

/// What it comes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Priced {
    /// What is to pay for each line, after all that was taken off.
    pub(crate) lines: Vec<i64>,
    pub(crate) off_lines: i64,
    pub(crate) off_sale: i64,
    /// Net and tax by the rate, in thousandths of a percent.
    pub(crate) taxes: BTreeMap<i64, (i64, i64)>,
    pub(crate) tip: i64,
    pub(crate) total: i64,
}

/// Half away from zero; of what is not negative.
fn rounded(numerator: i128, denominator: i128) -> i64 {
    let whole = (2 * numerator + denominator) / (2 * denominator);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

/// A number of thousandths as the shortest decimal.
pub(crate) fn decimal(thousandths: i64) -> String {
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What so much is in coins of five.
pub(crate) fn in_coins(amount: i64) -> i64 {
    (amount + 2) / 5 * 5
}

/// What of a line comes back in all with so much of it returned.
pub(crate) fn given_back(total: i64, returned: i64, sold: i64) -> i64 {
    rounded(i128::from(total) * i128::from(returned), i128::from(sold))
}

impl Cart {
    pub(crate) fn priced(&self) -> Priced {
        let mut priced = Priced::default();
        for line in &self.lines {
            let gross = rounded(i128::from(line.price) * i128::from(line.thousandths), 1_000);
            // What is left of a line is rounded, and not what is taken off it.
            let left = match line.off {
                Some(Part::Percent(off)) => rounded(i128::from(gross) * i128::from(100_000 - off), 100_000),
                Some(Part::Amount(off)) => gross - off.min(gross),
                None => gross,
            };
            priced.off_lines += gross - left;
            priced.lines.push(left);
        }
        let sum: i64 = priced.lines.iter().sum();
        priced.off_sale = self.off.map_or(0, |off| off.of(sum).min(sum));
        share(priced.off_sale, sum, &mut priced.lines);
        let mut groups: BTreeMap<i64, i64> = BTreeMap::new();
        for (line, total) in self.lines.iter().zip(&priced.lines) {
            *groups.entry(line.rate).or_default() += total;
        }
        for (rate, gross) in groups {
            let tax = rounded(i128::from(gross) * i128::from(rate), 100_000 + i128::from(rate));
            priced.taxes.insert(rate, (gross - tax, tax));
        }
        let goods: i64 = priced.lines.iter().sum();
        priced.tip = self.tip.map_or(0, |tip| tip.of(goods));
        priced.total = goods + priced.tip;
        priced
    }
}

/// Takes an amount off in proportion, the largest remainders first, the earlier line where they are alike.
fn share(off: i64, sum: i64, lines: &mut [i64]) {
    if off == 0 || sum == 0 {
        return;
    }
    let exact: Vec<i128> = lines.iter().map(|line| i128::from(off) * i128::from(*line)).collect();
    let mut left = off;
    for (line, exact) in lines.iter_mut().zip(&exact) {
        let part = i64::try_from(exact / i128::from(sum)).unwrap_or(i64::MAX);
        *line -= part;
        left -= part;
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(exact[at] % i128::from(sum)));
    for &at in order.iter().take(usize::try_from(left).unwrap_or(0)) {
        lines[at] -= 1;
    }
}

#[test]
fn the_script_reckons_as_by_hand() {
    // Of the contract: 2 × 2.49 less 10 % is 4.48; less 1.00 is 3.48; a fifth of it and more is tax: 0.58; 5 % of tip is 0.17.
    let tea = Line { price: 249, thousandths: 2_000, rate: 20_000, off: Some(Part::Percent(10_000)) };
    let cart = Cart { lines: vec![tea], off: Some(Part::Amount(100)), tip: Some(Part::Percent(5_000)) };
    let priced = cart.priced();
    assert_eq!((priced.lines, priced.off_lines, priced.off_sale), (vec![348], 50, 100));
    assert_eq!((priced.taxes[&20_000], priced.tip, priced.total), ((290, 58), 17, 365));
    let cola = Line { price: 660, thousandths: 1_000, rate: 19_000, off: Some(Part::Percent(7_500)) };
    assert_eq!(Cart { lines: vec![cola], off: None, tip: None }.priced().lines, [611]);
    // One cent over three equal lines, and two: the earlier ones give.
    let line = Line { price: 333, thousandths: 1_000, rate: 7_000, off: None };
    let thrice = |off| Cart { lines: vec![line.clone(), line.clone(), line.clone()], off, tip: None }.priced().lines;
    assert_eq!(thrice(Some(Part::Amount(1))), [332, 333, 333]);
    assert_eq!(thrice(Some(Part::Amount(5))), [331, 331, 332]);
    assert_eq!([0, 1, 2, 3, 4, 5, 7, 8].map(in_coins), [0, 0, 0, 5, 5, 5, 5, 10]);
    assert_eq!([1, 2, 3].map(|back| given_back(1_000, back, 3)), [333, 667, 1_000]);
    assert_eq!([2_000, 755, 1_250, 19_000].map(decimal), ["2", "0.755", "1.25", "19"]);
}
