//! Discounts: off one line, and off the sale shared over its lines.

use std::cmp::Reverse;

use crate::cart::Discount;
use crate::money::{Overflow, add, sub, sum};

impl Discount {
    /// What is taken off a line of this gross. A percentage rounds what is left to pay, not what is taken off.
    pub(crate) fn off_line(self, gross: i64) -> Result<i64, Overflow> {
        match self {
            Self::Percent(rate) => sub(gross, rate.off(gross)?),
            Self::Amount(amount) => Ok(amount.min(gross)),
        }
    }

    /// What is taken off a sale whose line totals make `total`.
    pub(crate) fn off_sale(self, total: i64) -> Result<i64, Overflow> {
        match self {
            Self::Percent(rate) => rate.of(total),
            Self::Amount(amount) => Ok(amount.min(total)),
        }
    }
}

/// Shares `discount` over lines in proportion to their totals, by largest remainder; of equal remainders the earlier
/// line comes first. `discount` must not be over the sum of `totals`, and none may be negative.
///
/// The shares make exactly `discount`, and none is over its line: a share is its exact part cut down, or one more where
/// that part was not whole, and the exact part is at most the line.
pub(crate) fn share(discount: i64, totals: &[i64]) -> Result<Vec<i64>, Overflow> {
    let all = i128::from(sum(totals.iter().copied())?);
    if all == 0 {
        return Ok(vec![0; totals.len()]);
    }
    let mut shares = Vec::with_capacity(totals.len());
    let mut remainders = Vec::with_capacity(totals.len());
    for &total in totals {
        let exact = i128::from(discount).checked_mul(total.into()).ok_or(Overflow)?;
        let cut = exact.checked_div(all).ok_or(Overflow)?;
        shares.push(i64::try_from(cut).map_err(|_| Overflow)?);
        remainders.push(exact.checked_rem(all).ok_or(Overflow)?);
    }
    let left_over = sub(discount, sum(shares.iter().copied())?)?;
    let mut by_remainder: Vec<usize> = (0..totals.len()).collect();
    // A stable sort: lines with equal remainders keep their order.
    by_remainder.sort_by_key(|&index| remainders.get(index).copied().map(Reverse));
    for index in by_remainder.into_iter().take(usize::try_from(left_over).map_err(|_| Overflow)?) {
        if let Some(share) = shares.get_mut(index) {
            *share = add(*share, 1)?;
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecimalError, Rate};

    fn percent(text: &str) -> Result<Discount, DecimalError> {
        Ok(Discount::Percent(text.parse::<Rate>()?))
    }

    #[test]
    fn a_percentage_rounds_the_line_and_the_sale_on_opposite_sides() -> Result<(), DecimalError> {
        // 5 % of 1.50 is 7.5 cents: the line is left with 142.5, so 143; the sale gives 8.
        assert_eq!(percent("5")?.off_line(150), Ok(7));
        assert_eq!(percent("5")?.off_sale(150), Ok(8));
        assert_eq!(percent("100")?.off_line(777), Ok(777));
        assert_eq!(percent("33.333")?.off_line(1_000), Ok(333));
        Ok(())
    }

    #[test]
    fn an_amount_takes_no_more_than_there_is() {
        assert_eq!(Discount::Amount(500).off_line(499), Ok(499));
        assert_eq!(Discount::Amount(i64::MAX).off_sale(1), Ok(1));
        assert_eq!(Discount::Amount(500).off_sale(501), Ok(500));
    }

    #[test]
    fn the_largest_remainder_gets_the_odd_cent() {
        // Exact parts 3.57, 2.86 and 3.57 of 10: cut to 3, 2, 3; two cents over go to .86 and then to the earlier .57.
        assert_eq!(share(10, &[125, 100, 125]), Ok(vec![4, 3, 3]));
    }

    #[test]
    fn of_equal_remainders_the_earlier_line_comes_first() {
        assert_eq!(share(2, &[100, 100, 100]), Ok(vec![1, 1, 0]));
        assert_eq!(share(1, &[100, 100, 100]), Ok(vec![1, 0, 0]));
    }

    #[test]
    fn a_free_line_gets_no_share() {
        assert_eq!(share(5, &[0, 7, 0]), Ok(vec![0, 5, 0]));
        assert_eq!(share(0, &[0, 0]), Ok(vec![0, 0]));
        assert_eq!(share(0, &[]), Ok(vec![]));
    }

    #[test]
    fn the_whole_sale_can_be_taken_off() {
        assert_eq!(share(600, &[100, 200, 300]), Ok(vec![100, 200, 300]));
        assert_eq!(share(i64::MAX, &[i64::MAX - 1, 1]), Ok(vec![i64::MAX - 1, 1]));
    }

    #[test]
    fn totals_that_do_not_fit_are_an_error() {
        assert_eq!(share(1, &[i64::MAX, 1]), Err(Overflow));
    }
}
