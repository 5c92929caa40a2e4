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
        let currency = iso_currency::Currency::from_code(code).ok_or(UnknownCurrency)?;
        if currency.code() == code && matches!(currency.exponent(), Some(0 | 2 | 3)) {
            Ok(Self(currency))
        } else {
            Err(UnknownCurrency)
        }
    }

    /// The three-letter code.
    pub fn as_str(self) -> &'static str {
        self.0.code()
    }

    /// Decimals of an amount: 0, 2 or 3.
    pub fn decimals(self) -> u32 {
        self.0.exponent().unwrap_or(0).into()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_decimals() {
        for (code, decimals) in [("EUR", 2), ("JPY", 0), ("BHD", 3), ("KWD", 3), ("RUB", 2), ("KZT", 2), ("CLP", 0)] {
            assert_eq!(
                Currency::parse(code).map(|currency| (currency.as_str(), currency.decimals())),
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
