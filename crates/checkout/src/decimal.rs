//! Decimal text with up to three decimals, read and written exactly.

use std::fmt;

/// How many thousandths make one.
const ONE: i64 = 1_000;

/// Why a text is not a quantity or a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Not digits with at most one point between them. Signs, spaces, exponents and leading zeros are not taken: `05`
    /// is more often a slip for `0.5` than a five, and asking again is cheaper than a tenfold price.
    #[error("must be a decimal such as 2 or 0.755, without sign or exponent")]
    Malformed,
    /// More than three decimals. Cutting them off would change what was asked for.
    #[error("must have at most 3 decimals")]
    TooManyDecimals,
    /// Below zero.
    #[error("must not be negative")]
    Negative,
    /// More thousandths than fit `i64`.
    #[error("is too large")]
    TooLarge,
}

/// Thousandths from text such as `2` or `0.755`.
pub(crate) fn parse(text: &str) -> Result<i64, DecimalError> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    if !is_digits(whole) || fraction.is_some_and(|digits| !is_digits(digits)) {
        return Err(DecimalError::Malformed);
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Err(DecimalError::Malformed);
    }
    let fraction = fraction.unwrap_or("");
    if fraction.len() > 3 {
        return Err(DecimalError::TooManyDecimals);
    }
    let whole: i64 = whole.parse().map_err(|_| DecimalError::TooLarge)?;
    let thousandths: i64 = format!("{fraction:0<3}").parse().map_err(|_| DecimalError::Malformed)?;
    whole.checked_mul(ONE).and_then(|value| value.checked_add(thousandths)).ok_or(DecimalError::TooLarge)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The shortest text that [`parse`] reads as `thousandths`, which must not be negative.
pub(crate) fn write(thousandths: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (whole, fraction) = (thousandths / ONE, thousandths % ONE);
    if fraction == 0 {
        return f.pad(&whole.to_string());
    }
    let text = format!("{whole}.{fraction:03}");
    f.pad(text.trim_end_matches('0'))
}

/// The conversions that quantities and rates have in common: each is a count of thousandths with decimal text.
macro_rules! decimal_type {
    ($name:ident) => {
        impl std::str::FromStr for $name {
            type Err = $crate::DecimalError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::decimal::parse(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::decimal::write(self.0, f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use decimal_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_numbers_and_up_to_three_decimals() {
        for (text, thousandths) in
            [("0", 0), ("2", 2_000), ("0.755", 755), ("1.5", 1_500), ("1.50", 1_500), ("0.001", 1), ("10.020", 10_020)]
        {
            assert_eq!(parse(text), Ok(thousandths), "{text}");
        }
        assert_eq!(parse("9223372036854775.807"), Ok(i64::MAX));
    }

    #[test]
    fn takes_no_other_spelling() {
        for text in [
            "", " ", ".", "1.", ".5", "-1", "-0", "+1", " 1", "1 ", "1e3", "1E3", "1,5", "1.2.3", "0x10", "01", "00",
            "00.5", "NaN", "inf", "1_000", "½", "١", "1\0", "1.-5", "1.+5",
        ] {
            assert_eq!(parse(text), Err(DecimalError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_fourth_decimal_is_refused_even_when_it_is_zero() {
        assert_eq!(parse("0.7554"), Err(DecimalError::TooManyDecimals));
        assert_eq!(parse("1.0000"), Err(DecimalError::TooManyDecimals));
    }

    #[test]
    fn one_thousandth_too_many_is_too_large() {
        assert_eq!(parse("9223372036854775.808"), Err(DecimalError::TooLarge));
        assert_eq!(parse(&"9".repeat(400)), Err(DecimalError::TooLarge));
    }
}
