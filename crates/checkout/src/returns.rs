//! Goods that come back: what each part of a sale gives back, at the price and tax frozen when it was sold.

use crate::cart::at_most;
use crate::error::{Code, PriceError};
use crate::money::{Overflow, add, scale, sub, sum};
use crate::price::Priced;
use crate::{Cart, LINES_MAX, Quantity, Rate, TaxGroup};

/// A sale as it was frozen, with what of it came back so far. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sold {
    /// Whether the lines' totals have their tax in them.
    pub prices_include_tax: bool,
    /// The lines, in the sale's order.
    pub lines: Vec<SoldLine>,
    /// The tax table, a group for each rate on the lines.
    pub taxes: Vec<TaxGroup>,
    /// The tip, which comes back with the last of the goods.
    pub tip: i64,
}

/// One line of a sale that was sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoldLine {
    /// How much of it was sold.
    pub quantity: Quantity,
    /// What it cost, after its discount and its share of the sale's.
    pub total: i64,
    /// Its tax rate.
    pub tax_rate: Rate,
    /// How much of it came back before.
    pub returned: Quantity,
}

/// Goods that come back now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// The line they were sold on, by its place, from 0.
    pub line: usize,
    /// How much of it.
    pub quantity: Quantity,
}

/// What a part of a sale gives back, in minor units: net, tax and tip make the total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenBack {
    /// What each of the goods returned gives back, in the order given; with or without tax as the sale's prices are.
    pub lines: Vec<i64>,
    /// The tax table of what comes back: a group for each rate on it, ascending.
    pub taxes: Vec<TaxGroup>,
    /// The goods without tax.
    pub net: i64,
    /// All tax.
    pub tax: i64,
    /// The tip: all of it with the last of the goods, and nothing before.
    pub tip: i64,
    /// What the customer gets.
    pub total: i64,
    /// Whether nothing of the sale is left to come back.
    pub is_last: bool,
}

impl Sold {
    /// A sale of which nothing came back yet, as it was priced.
    pub fn of(cart: &Cart, priced: &Priced) -> Self {
        let lines = cart.lines.iter().zip(&priced.lines).map(|(line, priced)| SoldLine {
            quantity: line.quantity,
            total: priced.total,
            tax_rate: line.tax_rate,
            returned: Quantity::NONE,
        });
        Self {
            prices_include_tax: cart.prices_include_tax,
            lines: lines.collect(),
            taxes: priced.taxes.clone(),
            tip: priced.tip,
        }
    }

    /// All that is left to come back.
    pub fn rest(&self) -> Vec<Returned> {
        let left = self.lines.iter().enumerate().filter_map(|(line, sold)| {
            let quantity = sold.left().filter(|left| *left > Quantity::NONE)?;
            Some(Returned { line, quantity })
        });
        left.collect()
    }

    /// The same sale once these goods are back.
    ///
    /// # Errors
    /// As [`give_back`], for the goods.
    pub fn after(&self, goods: &[Returned]) -> Result<Self, PriceError> {
        let mut after = self.clone();
        for (index, goods) in goods.iter().enumerate() {
            after.take_back(index, goods)?;
        }
        Ok(after)
    }

    /// Takes goods back and says what of their line's total comes with them.
    fn take_back(&mut self, index: usize, goods: &Returned) -> Result<i64, PriceError> {
        let path = |member: &str| format!("goods[{index}].{member}");
        let line = self
            .lines
            .get_mut(goods.line)
            .ok_or_else(|| PriceError::new(Code::InvalidValue, path("line"), "is not a line of this sale"))?;
        if goods.quantity == Quantity::NONE {
            return Err(PriceError::new(Code::InvalidValue, path("quantity"), "must be above zero"));
        }
        let left = line.left().unwrap_or(Quantity::NONE);
        let returned = line.returned.checked_add(goods.quantity).filter(|_| goods.quantity <= left);
        let Some(returned) = returned else {
            let message = format!("only {left} of this line is left to come back");
            return Err(PriceError::new(Code::OverReturn, path("quantity"), message));
        };
        let before = line.given_back().map_err(PriceError::overflow(path("quantity")))?;
        line.returned = returned;
        let after = line.given_back().map_err(PriceError::overflow(path("quantity")))?;
        sub(after, before).map_err(PriceError::overflow(path("quantity")))
    }

    /// What no type here can rule out: that these figures are those of one sale. What was damaged must not pay out.
    fn check(&self) -> Result<(), PriceError> {
        at_most("lines", self.lines.len(), LINES_MAX)?;
        let wrong = |path: String, message: &str| Err(PriceError::new(Code::InvalidValue, path, message));
        for (index, line) in self.lines.iter().enumerate() {
            if line.total < 0 {
                return wrong(format!("lines[{index}].total"), "must not be negative");
            }
            if line.left().is_none() {
                return wrong(format!("lines[{index}].returned"), "is more than was sold");
            }
            if line.quantity == Quantity::NONE && line.total != 0 {
                return wrong(format!("lines[{index}].quantity"), "is nothing, and cost something");
            }
            if self.taxes.iter().filter(|group| group.rate == line.tax_rate).count() != 1 {
                return wrong("taxes".to_owned(), "must have one group for each rate on the lines");
            }
        }
        for (index, group) in self.taxes.iter().enumerate() {
            let path = format!("taxes[{index}]");
            let lines = self.of_rate(group.rate, |line| Ok(line.total)).map_err(PriceError::overflow("lines"))?;
            let goods = self.in_prices(group.net, group.tax).map_err(PriceError::overflow(&path))?;
            if group.net < 0 || group.tax < 0 || goods != lines {
                return wrong(path, "does not fit the lines of its rate");
            }
        }
        if self.tip < 0 { wrong("tip".to_owned(), "must not be negative") } else { Ok(()) }
    }

    /// What the prices of goods say that have this net and tax.
    fn in_prices(&self, net: i64, tax: i64) -> Result<i64, Overflow> {
        if self.prices_include_tax { add(net, tax) } else { Ok(net) }
    }

    fn of_rate(&self, rate: Rate, amount: impl Fn(&SoldLine) -> Result<i64, Overflow>) -> Result<i64, Overflow> {
        let lines = self.lines.iter().filter(|line| line.tax_rate == rate);
        lines.map(amount).try_fold(0, |sum, amount| add(sum, amount?))
    }

    /// What of a tax group came back so far: its share of the group's tax by the money of its lines, the rest of that money net.
    fn given_back_of(&self, group: &TaxGroup) -> Result<TaxGroup, Overflow> {
        let lines = self.of_rate(group.rate, |line| Ok(line.total))?;
        let back = self.of_rate(group.rate, SoldLine::given_back)?;
        let tax = if lines == 0 { 0 } else { scale(group.tax, back, lines.into())? };
        let net = if self.prices_include_tax { sub(back, tax)? } else { back };
        Ok(TaxGroup { rate: group.rate, net, tax })
    }

    fn is_all_back(&self) -> bool {
        self.lines.iter().all(|line| line.returned == line.quantity)
    }
}

impl SoldLine {
    /// How much is left to come back; none where more came back than was sold.
    fn left(&self) -> Option<Quantity> {
        let left = self.quantity.thousandths().checked_sub(self.returned.thousandths())?;
        Quantity::from_thousandths(left).ok()
    }

    /// What of the total goes with all that came back so far.
    fn given_back(&self) -> Result<i64, Overflow> {
        if self.quantity == Quantity::NONE {
            return Ok(0);
        }
        scale(self.total, self.returned.thousandths(), self.quantity.thousandths().into())
    }
}

/// What `goods` give back of a sale.
///
/// Rounding is cumulative: what is given back of a line after a part is the line's total by how much of it is back, rounded
/// once, and the part gives the difference to what was given back before it. So three for 10.00 give 3.33, 3.34 and 3.33, and
/// whatever the parts and their order, together they give exactly what was paid. The tax of a rate group comes back in the
/// same way, by the money of the group's lines, and a tip with the last of the goods.
///
/// Nothing is computed anew from a price or a rate: only frozen totals are shared out.
///
/// # Errors
/// A [`PriceError`] at `goods`: of a line that is not there or a quantity of zero ([`Code::InvalidValue`]), more than is left
/// of its line ([`Code::OverReturn`]), nothing at all ([`Code::MissingMember`]) or more parts than [`LINES_MAX`]; and at
/// `lines`, `taxes` or `tip`, where these are not the figures of one sale.
pub fn give_back(sold: &Sold, goods: &[Returned]) -> Result<GivenBack, PriceError> {
    if goods.is_empty() {
        return Err(PriceError::new(Code::MissingMember, "goods", "must name what comes back"));
    }
    at_most("goods", goods.len(), LINES_MAX)?;
    sold.check()?;
    let mut after = sold.clone();
    let mut lines = Vec::with_capacity(goods.len());
    let mut rates = Vec::with_capacity(goods.len());
    for (index, goods) in goods.iter().enumerate() {
        lines.push(after.take_back(index, goods)?);
        rates.extend(after.lines.get(goods.line).map(|line| line.tax_rate));
    }
    let is_last = after.is_all_back();
    let tip = if is_last { sold.tip } else { 0 };
    let taxes = taxes(sold, &after, &rates).map_err(PriceError::overflow("taxes"))?;
    let sums = || {
        let net = sum(taxes.iter().map(|group| group.net))?;
        let tax = sum(taxes.iter().map(|group| group.tax))?;
        Ok((net, tax, add(add(net, tax)?, tip)?))
    };
    let (net, tax, total) = sums().map_err(PriceError::overflow("goods"))?;
    Ok(GivenBack { lines, taxes, net, tax, tip, total, is_last })
}

/// The groups of `rates`, each with what came back between `before` and `after`, by ascending rate.
fn taxes(before: &Sold, after: &Sold, rates: &[Rate]) -> Result<Vec<TaxGroup>, Overflow> {
    let mut groups = Vec::new();
    for group in before.taxes.iter().filter(|group| rates.contains(&group.rate)) {
        let (was, is) = (before.given_back_of(group)?, after.given_back_of(group)?);
        groups.push(TaxGroup { rate: group.rate, net: sub(is.net, was.net)?, tax: sub(is.tax, was.tax)? });
    }
    groups.sort_by_key(|group| group.rate);
    Ok(groups)
}
