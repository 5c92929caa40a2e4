//! The currency of a sale: its code and how many decimals its amounts have.

use std::fmt;

/// A currency by its ISO 4217 code, in use and with 0, 2 or 3 decimals. A sale has one; its amounts are in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

/// The text is not the code of a currency that amounts can be kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the ISO 4217 code of a currency, such as EUR")]
pub struct UnknownCurrency;

impl Currency {
    /// The currency of a three-letter code in capitals.
    ///
    /// # Errors
    /// [`UnknownCurrency`] for any other text, and for codes of no minor unit (gold, tests) or of four decimals.
    pub fn parse(code: &str) -> Result<Self, UnknownCurrency> {
        iso_currency::Currency::from_code(code).ok_or(UnknownCurrency)?.try_into()
    }

    /// The three-letter code.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// How many decimals an amount of it is written with: 0, 2 or 3.
    pub fn minor_digits(self) -> u8 {
        self.0.exponent().and_then(|digits| u8::try_from(digits).ok()).unwrap_or(0)
    }
}

impl TryFrom<iso_currency::Currency> for Currency {
    type Error = UnknownCurrency;

    fn try_from(currency: iso_currency::Currency) -> Result<Self, UnknownCurrency> {
        if matches!(currency.exponent(), Some(0 | 2 | 3)) { Ok(Self(currency)) } else { Err(UnknownCurrency) }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_decimals() {
        for (code, decimals) in [("EUR", 2), ("JPY", 0), ("BHD", 3), ("KWD", 3), ("RUB", 2), ("KZT", 2), ("CLP", 0)] {
            assert_eq!(
                Currency::parse(code).map(|currency| (currency.code(), currency.minor_digits())),
                Ok((code, decimals))
            );
        }
    }

    #[test]
    fn takes_no_other_text() {
        for code in ["", "eur", "Eur", "EU", "EURO", "EUR ", "AAA", "978", "XAU", "XXX", "XTS", "CLF"] {
            assert_eq!(Currency::parse(code), Err(UnknownCurrency), "{code:?}");
        }
    }
}
