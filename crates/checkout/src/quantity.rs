//! How much of an article a line has.

use crate::DecimalError;
use crate::decimal::decimal_type;

/// A quantity in thousandths: pieces, kilograms or whatever the article's unit is. Never negative: goods come back by
/// refund. Text has at most three decimals and is written as short as it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i64);

decimal_type!(Quantity);

impl Quantity {
    /// Nothing at all: what of a line came back before anything did.
    pub const NONE: Self = Self(0);
    /// One piece, what a line has when nothing is said.
    pub const ONE: Self = Self(1_000);

    /// The quantity of so many thousandths, as a database keeps it.
    ///
    /// # Errors
    /// [`DecimalError::Negative`] below zero.
    pub fn from_thousandths(thousandths: i64) -> Result<Self, DecimalError> {
        if thousandths < 0 { Err(DecimalError::Negative) } else { Ok(Self(thousandths)) }
    }

    /// The quantity in thousandths.
    pub fn thousandths(self) -> i64 {
        self.0
    }

    /// `self + other`, as when the same article is rung up again; none when it does not fit.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// True when it counts pieces only, with no decimals.
    pub fn is_whole(self) -> bool {
        self.0 % Self::ONE.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_short_as_it_can_be() {
        for (thousandths, text) in [
            (0, "0"),
            (1_000, "1"),
            (755, "0.755"),
            (1_500, "1.5"),
            (20, "0.02"),
            (100_000, "100"),
            (100_001, "100.001"),
        ] {
            assert_eq!(
                Quantity::from_thousandths(thousandths).map(|quantity| quantity.to_string()),
                Ok(text.to_owned())
            );
        }
        assert_eq!(Quantity(i64::MAX).to_string(), "9223372036854775.807");
        assert_eq!(format!("[{:>6}]", Quantity(1_500)), "[   1.5]");
    }

    #[test]
    fn is_never_negative() {
        assert_eq!(Quantity::from_thousandths(-1), Err(DecimalError::Negative));
    }

    #[test]
    fn adds_up_when_it_fits_and_knows_pieces() {
        assert_eq!(Quantity::ONE.checked_add(Quantity(500)), Some(Quantity(1_500)));
        assert_eq!(Quantity(i64::MAX).checked_add(Quantity(1)), None);
        assert!(Quantity(3_000).is_whole() && !Quantity(3_001).is_whole());
    }

    #[test]
    fn travels_as_text_in_json() -> Result<(), serde_json::Error> {
        assert_eq!(serde_json::to_string(&Quantity(1_500))?, r#""1.5""#);
        assert_eq!(serde_json::from_str::<Quantity>(r#""0.75\u0035""#)?, Quantity(755));
        assert!(serde_json::from_str::<Quantity>(r#""1e3""#).is_err());
        assert!(serde_json::from_str::<Quantity>("1.5").is_err());
        Ok(())
    }
}
