//! Figures as a finding tells them: as people read them, with their currency.

use crate::amounts::format_amount;
use checkout::Rate;
use protocol::Currency;

/// How the figures of one currency are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Money<'a>(pub(super) &'a str);

impl Money<'_> {
    /// An amount: `24.90 EUR`.
    pub(super) fn of(self, amount: impl Into<i128>) -> String {
        format!("{} {}", self.bare(amount.into()), self.unit())
    }

    /// Amounts with the name of each: `net 24.90, tax 0.10 EUR`.
    pub(super) fn named<const N: usize>(self, names: [&str; N], amounts: [i64; N]) -> String {
        let parts: Vec<_> = names
            .into_iter()
            .zip(amounts)
            .map(|(name, amount)| format!("{name} {}", self.bare(amount.into())))
            .collect();
        format!("{} {}", parts.join(", "), self.unit())
    }

    /// A tax table, each rate in thousandths with its net and tax: `20 %: net 4.00, tax 0.80 EUR; 7 %: …`.
    pub(super) fn taxes(self, table: &[[i64; 3]]) -> String {
        let rows = table.iter().map(|&[rate, net, tax]| {
            let rate =
                Rate::from_thousandths(rate).map_or_else(|_| format!("{rate} thousandths"), |rate| rate.to_string());
            format!("{rate} %: {}", self.named(["net", "tax"], [net, tax]))
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() { "empty".to_owned() } else { rows.join("; ") }
    }

    /// Of a currency that there is not, nobody knows how its amounts are read: then as they stand in the file. So is a sum that no amount
    /// can be.
    fn bare(self, amount: i128) -> String {
        match (self.0.parse::<Currency>(), i64::try_from(amount)) {
            (Ok(currency), Ok(amount)) => format_amount(amount, currency),
            _ => amount.to_string(),
        }
    }

    fn unit(self) -> String {
        match self.0.parse::<Currency>() {
            Ok(currency) => currency.code().to_owned(),
            Err(_) => format!("minor units of {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_as_people_read_them() {
        assert_eq!(Money("EUR").of(2_490), "24.90 EUR");
        assert_eq!(Money("JPY").of(333_i64), "333 JPY");
        assert_eq!(Money("BHD").named(["net", "tax"], [1, 2_000]), "net 0.001, tax 2.000 BHD");
        assert_eq!(
            Money("EUR").taxes(&[[7_000, 173, 12], [8_875, 0, 1]]),
            "7 %: net 1.73, tax 0.12 EUR; 8.875 %: net 0.00, tax 0.01 EUR"
        );
        assert_eq!(Money("???").of(2_490), "2490 minor units of ???");
    }
}
