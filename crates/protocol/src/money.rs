//! Amounts and currencies as they stand on the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};
use thiserror::Error;

/// An amount of money in minor units (cents), from 1 to 99,999,999: what one operation may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Amount(i64);

/// The amount is not one that an operation may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the amount must be a whole number of minor units from {} to {}", Amount::MIN.get(), Amount::MAX.get())]
pub struct AmountError;

impl Amount {
    /// The smallest amount, one minor unit.
    pub const MIN: Self = Self(1);
    /// The largest amount, 99,999,999 minor units.
    pub const MAX: Self = Self(99_999_999);

    /// Takes a number of minor units as an amount.
    ///
    /// # Errors
    /// [`AmountError`] outside of [`Amount::MIN`] to [`Amount::MAX`].
    pub const fn new(minor_units: i64) -> Result<Self, AmountError> {
        if minor_units < Self::MIN.0 || minor_units > Self::MAX.0 { Err(AmountError) } else { Ok(Self(minor_units)) }
    }

    /// The number of minor units.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(i64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// An ISO 4217 currency that the bank takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency(iso_currency::Currency);

/// The code is not one of a currency that the bank takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the currency must be one of the codes listed by the bank's policy, such as EUR")]
pub struct CurrencyError;

/// The currencies of the policy, of 0, 2 and 3 decimals.
const SUPPORTED: [iso_currency::Currency; 20] = {
    use iso_currency::Currency as C;
    [
        C::EUR,
        C::USD,
        C::GBP,
        C::RUB,
        C::JPY,
        C::CHF,
        C::SEK,
        C::NOK,
        C::DKK,
        C::PLN,
        C::CZK,
        C::HUF,
        C::RON,
        C::RSD,
        C::TRY,
        C::KZT,
        C::GEL,
        C::AMD,
        C::KWD,
        C::BHD,
    ]
};

impl Currency {
    /// The euro, in which the demo shop sells.
    pub const EUR: Self = Self(iso_currency::Currency::EUR);

    /// Every currency that the bank takes, in the order of its policy.
    pub fn supported() -> impl Iterator<Item = Self> {
        SUPPORTED.into_iter().map(Self)
    }

    /// Reads a code of three upper-case letters.
    ///
    /// # Errors
    /// [`CurrencyError`] for anything but the code of a supported currency.
    pub fn parse(code: &str) -> Result<Self, CurrencyError> {
        Self::supported().find(|currency| currency.code() == code).ok_or(CurrencyError)
    }

    /// The code: three upper-case letters.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.code()
    }

    /// How many decimals an amount of it is written with: 0, 2 or 3.
    #[must_use]
    pub fn minor_digits(&self) -> u8 {
        self.0.exponent().and_then(|digits| u8::try_from(digits).ok()).unwrap_or(0)
    }

    /// The same currency for the price engine.
    #[must_use]
    pub fn iso(&self) -> iso_currency::Currency {
        self.0
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    fn from_str(code: &str) -> Result<Self, CurrencyError> {
        Self::parse(code)
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::parse(&code).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_keeps_its_limits() {
        for outside in [i64::MIN, -1, 0, 100_000_000, i64::MAX] {
            assert_eq!(Amount::new(outside), Err(AmountError), "{outside}");
        }
        assert_eq!(Amount::new(1), Ok(Amount::MIN));
        assert_eq!(Amount::new(99_999_999), Ok(Amount::MAX));
        assert!(serde_json::from_str::<Amount>("0").is_err());
    }

    #[test]
    fn a_currency_is_a_code_of_the_policy() {
        for wrong in ["", "eur", "EURO", "EUR ", "XXX", "XAU", "ZZZ"] {
            assert_eq!(Currency::parse(wrong), Err(CurrencyError), "{wrong:?}");
        }
        let digits = |code| Currency::parse(code).unwrap().minor_digits();
        assert_eq!([digits("EUR"), digits("JPY"), digits("KWD")], [2, 0, 3]);
        for needed in ["EUR", "USD", "GBP", "RUB", "JPY"] {
            assert!(Currency::parse(needed).is_ok(), "{needed}");
        }
    }
}
