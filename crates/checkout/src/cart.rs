//! What is bought and how it is paid, as given: the engine's input.

use crate::error::{Code, PriceError};
use crate::tenders::CashRule;
use crate::{Currency, Quantity, Rate};

/// Most lines of a sale. More is a fault of the caller: nobody rings up ten thousand articles for one customer.
pub const LINES_MAX: usize = 10_000;
/// Most tenders of a sale.
pub const TENDERS_MAX: usize = 1_000;

/// A sale to be priced. Amounts are in minor units of `currency`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cart {
    /// The currency of every amount here.
    pub currency: Currency,
    /// True when unit prices have their tax in them (shelf prices); false when tax comes on top.
    pub prices_include_tax: bool,
    /// How the part paid in cash is rounded.
    pub cash: CashRule,
    /// The articles.
    pub lines: Vec<Line>,
    /// A discount on the sum of the lines, after their own discounts.
    pub discount: Option<Discount>,
    /// A tip: on top, untaxed.
    pub tip: Option<Tip>,
    /// How it is paid, in the order given.
    pub tenders: Vec<Tender>,
}

impl Cart {
    /// An empty cart with what holds when nothing is said: prices with tax, cash exact to the minor unit.
    pub fn new(currency: Currency) -> Self {
        Self {
            currency,
            prices_include_tax: true,
            cash: CashRule::EXACT,
            lines: Vec::new(),
            discount: None,
            tip: None,
            tenders: Vec::new(),
        }
    }

    /// What no type here can rule out: negative amounts, discounts over 100 %, sizes over the limits.
    pub(crate) fn check(&self) -> Result<(), PriceError> {
        at_most("lines", self.lines.len(), LINES_MAX)?;
        for (index, line) in self.lines.iter().enumerate() {
            let path = |member: &str| format!("lines[{index}].{member}");
            if line.unit_price < 0 {
                return Err(negative(path("unit_price")));
            }
            line.discount.map_or(Ok(()), |discount| discount.check(|| path("discount")))?;
        }
        self.discount.map_or(Ok(()), |discount| discount.check(|| "discount".to_owned()))?;
        if matches!(self.tip, Some(Tip::Amount(amount)) if amount < 0) {
            return Err(negative("tip.amount"));
        }
        Ok(())
    }
}

/// One article of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Price of one (piece, kilogram), in minor units; not negative.
    pub unit_price: i64,
    /// How much of it.
    pub quantity: Quantity,
    /// Its tax rate.
    pub tax_rate: Rate,
    /// A discount on this line alone.
    pub discount: Option<Discount>,
}

/// What is taken off a line or off the sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discount {
    /// A part, up to 100 %.
    Percent(Rate),
    /// Minor units, not negative; more than there is takes all there is.
    Amount(i64),
}

impl Discount {
    fn check(self, path: impl FnOnce() -> String) -> Result<(), PriceError> {
        match self {
            Self::Percent(rate) if rate > Rate::HUNDRED => Err(PriceError::new(
                Code::InvalidValue,
                format!("{}.percent", path()),
                "a discount is at most 100 percent",
            )),
            Self::Amount(amount) if amount < 0 => Err(negative(format!("{}.amount", path()))),
            _ => Ok(()),
        }
    }
}

/// What the customer gives on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tip {
    /// A part of the total with tax, after discounts. May be over 100 %.
    Percent(Rate),
    /// Minor units, not negative.
    Amount(i64),
}

/// One way of paying a part of the sale, in minor units, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tender {
    /// By card, exact.
    Card {
        /// What the card pays.
        amount: i64,
    },
    /// By voucher, exact.
    Voucher {
        /// What the voucher pays.
        amount: i64,
    },
    /// In cash: may be more than is due, and then gives change.
    Cash {
        /// What the customer hands over. Nothing at all pays a sale that rounds to nothing.
        tendered: i64,
    },
}

pub(crate) fn negative(path: impl Into<String>) -> PriceError {
    PriceError::new(Code::InvalidValue, path, "must not be negative")
}

/// Refuses more than `most` of what `path` lists.
pub(crate) fn at_most(path: &str, count: usize, most: usize) -> Result<(), PriceError> {
    if count > most {
        return Err(PriceError::new(Code::TooMany, path, format!("there are {count}, at most {most} are taken")));
    }
    Ok(())
}
