//! Tax by rate group of the sale.

use std::collections::BTreeMap;

use crate::Rate;
use crate::money::{Overflow, add, sub};

/// What the sale has at one tax rate, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaxGroup {
    /// The rate.
    pub rate: Rate,
    /// The goods without tax.
    pub net: i64,
    /// The tax on them.
    pub tax: i64,
}

/// One group for each rate on the lines, also where nothing is left to tax, by ascending rate.
///
/// Tax is rounded once for the group, not for each line: rounding errors of many small lines would add up. With tax in
/// the prices the group's total is the sum of its shelf prices, and only its split into net and tax is computed.
pub(crate) fn groups(
    lines: impl IntoIterator<Item = (Rate, i64)>,
    prices_include_tax: bool,
) -> Result<Vec<TaxGroup>, Overflow> {
    let mut sums = BTreeMap::<Rate, i64>::new();
    for (rate, total) in lines {
        let group = sums.entry(rate).or_insert(0);
        *group = add(*group, total)?;
    }
    sums.into_iter()
        .map(|(rate, sum)| {
            if prices_include_tax {
                let tax = rate.within(sum)?;
                Ok(TaxGroup { rate, net: sub(sum, tax)?, tax })
            } else {
                Ok(TaxGroup { rate, net: sum, tax: rate.of(sum)? })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecimalError;

    #[test]
    fn lines_of_one_rate_are_taxed_together() -> Result<(), DecimalError> {
        let seven: Rate = "7".parse()?;
        // Each line alone would have 0.49 rounded to 0; together it is 1.47.
        assert_eq!(groups([(seven, 7); 3], false), Ok(vec![TaxGroup { rate: seven, net: 21, tax: 1 }]));
        Ok(())
    }

    #[test]
    fn equal_rates_in_other_spelling_are_one_group_and_rates_ascend() -> Result<(), DecimalError> {
        let lines = [("19", 119), ("5.5", 211), ("19.00", 119), ("0", 3)];
        let lines: Vec<_> =
            lines.into_iter().map(|(rate, total)| Ok((rate.parse()?, total))).collect::<Result<_, DecimalError>>()?;
        let groups = groups(lines, true).unwrap_or_default();
        let shown: Vec<_> = groups.iter().map(|group| (group.rate.to_string(), group.net, group.tax)).collect();
        assert_eq!(shown, [("0".to_owned(), 3, 0), ("5.5".to_owned(), 200, 11), ("19".to_owned(), 200, 38)]);
        Ok(())
    }

    #[test]
    fn the_halves_of_tax_go_up_and_net_takes_what_is_left() -> Result<(), DecimalError> {
        let twenty: Rate = "20".parse()?;
        // The tax in 0.15 is 2.5 cents.
        assert_eq!(groups([(twenty, 15)], true), Ok(vec![TaxGroup { rate: twenty, net: 12, tax: 3 }]));
        Ok(())
    }
}
