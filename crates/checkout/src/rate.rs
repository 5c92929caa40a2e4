//! Percentages: tax rates, discounts and tips.

use crate::DecimalError;
use crate::decimal::decimal_type;
use crate::money::{Overflow, scale};

/// A percentage in thousandths of a percent, so that 8.875 % is exact. Never negative. Text is the number of percent
/// (`8.875`), has at most three decimals and is written as short as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(i64);

decimal_type!(Rate);

/// How many thousandths of a percent make a whole.
const WHOLE: i64 = 100_000;

impl Rate {
    /// Nothing: the rate of exempt goods.
    pub const ZERO: Self = Self(0);
    /// All of it, the most a discount can take.
    pub const HUNDRED: Self = Self(WHOLE);

    /// The rate of so many thousandths of a percent, as a database keeps it.
    ///
    /// # Errors
    /// [`DecimalError::Negative`] below zero.
    pub fn from_thousandths(thousandths: i64) -> Result<Self, DecimalError> {
        if thousandths < 0 { Err(DecimalError::Negative) } else { Ok(Self(thousandths)) }
    }

    /// The rate in thousandths of a percent.
    pub fn thousandths(self) -> i64 {
        self.0
    }

    /// This part of `amount`, rounded: what tax on a price without tax, a sale discount and a tip are.
    pub(crate) fn of(self, amount: i64) -> Result<i64, Overflow> {
        scale(amount, self.0, WHOLE.into())
    }

    /// What this rate leaves of `amount`, rounded. Not the same as taking [`Rate::of`] away: half a cent of discount
    /// stays with the shop here and goes to the customer there.
    pub(crate) fn off(self, amount: i64) -> Result<i64, Overflow> {
        scale(amount, WHOLE.checked_sub(self.0).ok_or(Overflow)?, WHOLE.into())
    }

    /// The part of `amount` that this rate, put on top before, makes up: the tax inside a price with tax.
    pub(crate) fn within(self, amount: i64) -> Result<i64, Overflow> {
        let with_rate = i128::from(WHOLE).checked_add(self.0.into()).ok_or(Overflow)?;
        scale(amount, self.0, with_rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_third_decimal() -> Result<(), DecimalError> {
        assert_eq!("8.875".parse::<Rate>()?.thousandths(), 8_875);
        assert_eq!("5.5".parse::<Rate>()?.of(20_000), Ok(1_100));
        for text in ["0", "5.5", "7.25", "8.875", "20", "100", "0.001"] {
            assert_eq!(text.parse::<Rate>()?.to_string(), text);
        }
        assert_eq!("7.250".parse::<Rate>()?.to_string(), "7.25");
        Ok(())
    }

    #[test]
    fn half_a_cent_of_discount_stays_in_the_price() -> Result<(), DecimalError> {
        let five: Rate = "5".parse()?;
        assert_eq!((five.off(130), five.of(130)), (Ok(124), Ok(7)));
        Ok(())
    }

    #[test]
    fn the_tax_inside_a_price_is_of_the_net() -> Result<(), DecimalError> {
        let rate: Rate = "25".parse()?;
        assert_eq!((rate.within(1_000), rate.of(800)), (Ok(200), Ok(200)));
        assert_eq!(Rate::ZERO.within(1_000), Ok(0));
        Ok(())
    }

    #[test]
    fn extreme_rates_are_answered_not_wrapped() {
        let most = Rate(i64::MAX);
        assert_eq!(most.of(i64::MAX), Err(Overflow));
        assert_eq!(most.within(i64::MAX), Ok(i64::MAX - 100_000));
        assert_eq!(Rate::from_thousandths(-1), Err(DecimalError::Negative));
    }
}
