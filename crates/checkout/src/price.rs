//! From a cart to its price, step by step.

use crate::cart::{Cart, Line, Tip};
use crate::discount::share;
use crate::error::PriceError;
use crate::money::{Overflow, add, scale, sub, sum};
use crate::tax::{TaxGroup, groups};
use crate::tenders::{Balance, balance};

/// A sale with its price, in minor units: frozen at Pay and never computed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priced {
    /// The lines, in the cart's order.
    pub lines: Vec<PricedLine>,
    /// The discount on the sale; the lines' shares of it make exactly this.
    pub discount: i64,
    /// The tax table: one group for each rate on the lines, ascending.
    pub taxes: Vec<TaxGroup>,
    /// The goods without tax.
    pub net: i64,
    /// All tax.
    pub tax: i64,
    /// The tip.
    pub tip: i64,
    /// What is to pay: net, tax and tip.
    pub total: i64,
    /// The tenders against it.
    pub balance: Balance,
}

/// The price of one line, in minor units: gross - discount - sale discount = total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedLine {
    /// Quantity × unit price.
    pub gross: i64,
    /// The line's own discount.
    pub discount: i64,
    /// Its share of the sale's discount.
    pub sale_discount: i64,
    /// What is left, with or without tax as its unit price is.
    pub total: i64,
}

/// Prices a cart.
///
/// The steps are the till's rules of money, in this order, each rounded once: line gross, line discount, sale discount,
/// tax by rate group, tip, tenders.
///
/// # Errors
/// A [`PriceError`] naming the place, when an amount is negative or does not fit, a discount is over 100 %, there are
/// more lines or tenders than [`LINES_MAX`](crate::LINES_MAX) and [`TENDERS_MAX`](crate::TENDERS_MAX), a tender other
/// than cash is over what is due, or cash is not in multiples of the smallest coin.
pub fn price(cart: &Cart) -> Result<Priced, PriceError> {
    cart.check()?;
    let mut lines = Vec::with_capacity(cart.lines.len());
    for (index, line) in cart.lines.iter().enumerate() {
        lines.push(PricedLine::of(line).map_err(PriceError::overflow(format!("lines[{index}]")))?);
    }
    let discount = discount_sale(cart, &mut lines).map_err(PriceError::overflow("lines"))?;
    let rated = cart.lines.iter().zip(&lines).map(|(line, priced)| (line.tax_rate, priced.total));
    let taxes = groups(rated, cart.prices_include_tax).map_err(PriceError::overflow("lines"))?;
    let net = sum(taxes.iter().map(|group| group.net)).map_err(PriceError::overflow("lines"))?;
    let tax = sum(taxes.iter().map(|group| group.tax)).map_err(PriceError::overflow("lines"))?;
    let goods = add(net, tax).map_err(PriceError::overflow("lines"))?;
    let tip = match cart.tip {
        None => 0,
        Some(Tip::Amount(amount)) => amount,
        Some(Tip::Percent(rate)) => rate.of(goods).map_err(PriceError::overflow("tip"))?,
    };
    let total = add(goods, tip).map_err(PriceError::overflow("tip"))?;
    let balance = balance(total, &cart.tenders, cart.cash)?;
    Ok(Priced { lines, discount, taxes, net, tax, tip, total, balance })
}

impl PricedLine {
    /// The line before the sale's discount.
    fn of(line: &Line) -> Result<Self, Overflow> {
        let gross = scale(line.unit_price, line.quantity.thousandths(), 1_000)?;
        let discount = line.discount.map_or(Ok(0), |discount| discount.off_line(gross))?;
        Ok(Self { gross, discount, sale_discount: 0, total: sub(gross, discount)? })
    }
}

/// Takes the sale's discount off the lines, each its share, and returns the whole of it.
fn discount_sale(cart: &Cart, lines: &mut [PricedLine]) -> Result<i64, Overflow> {
    let totals: Vec<i64> = lines.iter().map(|line| line.total).collect();
    let all = sum(totals.iter().copied())?;
    let discount = cart.discount.map_or(Ok(0), |discount| discount.off_sale(all))?;
    for (line, share) in lines.iter_mut().zip(share(discount, &totals)?) {
        line.sale_discount = share;
        line.total = sub(line.total, share)?;
    }
    Ok(discount)
}
