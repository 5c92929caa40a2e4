//! EAN-13: the check digit, and the codes that a scale prints for what it weighed, with the price or the weight in them.

use crate::TillError;
use checkout::Quantity;
use std::{fmt, str::FromStr};

/// Digits of a code, the check digit included.
const DIGITS: usize = 13;
/// The first two digits of codes that a shop gives by itself: 20 to 29.
const IN_STORE: std::ops::RangeInclusive<u8> = 20..=29;

/// The digits of a text that is a whole EAN-13, right or not.
fn digits(code: &str) -> Option<[u8; DIGITS]> {
    let digits: [u8; DIGITS] = code.as_bytes().try_into().ok()?;
    digits.iter().all(u8::is_ascii_digit).then(|| digits.map(|digit| digit - b'0'))
}

/// The last digit of a code, by the twelve before it: they and it, weighted with 1 and 3 in turn, make a multiple of ten.
#[must_use]
pub fn check_digit(body: &[u8; DIGITS - 1]) -> u8 {
    let weighted: u32 =
        body.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| u32::from(digit % 10) * weight).sum();
    // At most nine.
    u8::try_from((10 - weighted % 10) % 10).unwrap_or_default()
}

/// What the codes of one prefix carry. The prefix is two digits, then five of the article's number; what follows is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Its price, in minor units.
    Price(ValueDigits),
    /// Its weight, in grams.
    Weight(ValueDigits),
}

/// How many digits a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueDigits {
    /// Four, behind a digit by which the scale guards the value. That one is not looked at: the code's own check digit is.
    Four,
    /// Five.
    Five,
}

impl Carries {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Price(ValueDigits::Five), "price5"),
        (Self::Price(ValueDigits::Four), "price4"),
        (Self::Weight(ValueDigits::Five), "weight5"),
        (Self::Weight(ValueDigits::Four), "weight4"),
    ];
}

/// What the codes from 20 to 29 carry in this shop; a prefix that is not named carries nothing, and its codes are articles' own.
///
/// As text, as the setting is kept: `21=price5 22=weight5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScaleBarcodes([Option<Carries>; 10]);

impl ScaleBarcodes {
    /// What codes of a prefix carry.
    #[must_use]
    pub fn of(&self, prefix: u8) -> Option<Carries> {
        let place = prefix.checked_sub(*IN_STORE.start())?;
        self.0.get(usize::from(place)).copied().flatten()
    }

    /// The same, with one prefix carrying this.
    ///
    /// # Errors
    /// [`TillError::InvalidSetting`] for a prefix that is not from 20 to 29.
    pub fn with(mut self, prefix: u8, carries: Option<Carries>) -> Result<Self, TillError> {
        if !IN_STORE.contains(&prefix) {
            return Err(WRONG);
        }
        self.0[usize::from(prefix - IN_STORE.start())] = carries;
        Ok(self)
    }
}

const WRONG: TillError = TillError::InvalidSetting(
    "a code from a scale has a prefix from 20 to 29 and carries price5, price4, weight5 or weight4, as in “21=price5 22=weight5”",
);

impl fmt::Display for ScaleBarcodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = IN_STORE.zip(self.0).filter_map(|(prefix, carries)| Some((prefix, carries?)));
        for (at, (prefix, carries)) in named.enumerate() {
            let word = Carries::ALL.iter().find(|(known, _)| *known == carries).map_or("", |(_, word)| word);
            write!(f, "{}{prefix}={word}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl FromStr for ScaleBarcodes {
    type Err = TillError;

    fn from_str(text: &str) -> Result<Self, TillError> {
        let mut all = Self::default();
        for part in text.split_whitespace() {
            let (prefix, word) = part.split_once('=').ok_or(WRONG)?;
            let prefix: u8 = prefix.parse().map_err(|_| WRONG)?;
            let (carries, _) = Carries::ALL.into_iter().find(|(_, known)| *known == word).ok_or(WRONG)?;
            if all.of(prefix).is_some() {
                return Err(WRONG);
            }
            all = all.with(prefix, Some(carries))?;
        }
        Ok(all)
    }
}

/// What a scale printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// The article's number, five digits: an SKU or barcode of the catalogue.
    pub(crate) item: String,
    /// What it says of this one.
    pub(crate) value: LabelValue,
}

/// What a label says of what it is stuck on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelValue {
    /// It costs so much, in minor units.
    Price(i64),
    /// It weighs so much, in kilograms.
    Weight(Quantity),
}

/// Whether a code is of those that a shop gives by itself.
pub(crate) fn is_in_store(code: &str) -> bool {
    code.len() == DIGITS && code.starts_with('2')
}

/// Reads a code as the label of a scale; none where its prefix carries nothing here, or where it is no EAN-13 at all.
///
/// # Errors
/// [`TillError::InvalidBarcode`] where its check digit is wrong, or where it carries nothing: no wrong price, and no guess.
pub(crate) fn read_label(code: &str, scale: &ScaleBarcodes) -> Result<Option<Label>, TillError> {
    let Some(digits) = digits(code) else { return Ok(None) };
    let [body @ .., check] = digits;
    let Some(carries) = scale.of(digits[0] * 10 + digits[1]) else { return Ok(None) };
    if check_digit(&body) != check {
        let message = format!("{code} was misread: its check digit is wrong. Scan it again");
        return Err(TillError::InvalidBarcode(message));
    }
    let number = |digits: &[u8]| digits.iter().fold(0_i64, |number, digit| number * 10 + i64::from(*digit));
    let (Carries::Price(count) | Carries::Weight(count)) = carries;
    let value = number(&body[if count == ValueDigits::Four { 8.. } else { 7.. }]);
    if value == 0 {
        return Err(TillError::InvalidBarcode(format!("{code} carries a value of zero: weigh it again")));
    }
    let value = match carries {
        Carries::Price(_) => LabelValue::Price(value),
        Carries::Weight(_) => LabelValue::Weight(
            Quantity::from_thousandths(value).map_err(|error| TillError::InvalidBarcode(error.to_string()))?,
        ),
    };
    Ok(Some(Label { item: code[2..7].to_owned(), value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price5() -> ScaleBarcodes {
        "21=price5 22=weight5 23=price4 24=weight4".parse().unwrap()
    }

    fn label(code: &str) -> Result<Option<(String, LabelValue)>, String> {
        let read = read_label(code, &price5()).map_err(|error| error.code().to_owned())?;
        Ok(read.map(|label| (label.item, label.value)))
    }

    fn weight(thousandths: i64) -> LabelValue {
        LabelValue::Weight(Quantity::from_thousandths(thousandths).unwrap())
    }

    #[test]
    fn the_check_digit_makes_a_multiple_of_ten() {
        // Codes of articles that are in every shop.
        for code in ["4006381333931", "5901234123457", "4012345678901", "2000000000015", "2000000000480"] {
            let [body @ .., check] = digits(code).unwrap();
            assert_eq!(check_digit(&body), check, "{code}");
        }
    }

    #[test]
    fn a_label_says_what_it_costs_or_weighs() {
        // 2·1+1·3+1·1+2·3+3·1+4·3+5·1+0·3+0·1+4·3+9·1+9·3 = 80.
        assert_eq!(label("2112345004990"), Ok(Some(("12345".to_owned(), LabelValue::Price(499)))));
        assert_eq!(label("2212345012343"), Ok(Some(("12345".to_owned(), weight(1_234)))));
        assert_eq!(label("2312345712349"), Ok(Some(("12345".to_owned(), LabelValue::Price(1_234)))));
        assert_eq!(label("2400007012347"), Ok(Some(("00007".to_owned(), weight(1_234)))));
    }

    #[test]
    fn a_digit_that_was_misread_is_an_error_and_no_other_price() {
        let right = "2112345004990";
        for place in 2..DIGITS {
            for digit in '0'..='9' {
                let mut misread = right.to_owned();
                misread.replace_range(place..=place, &digit.to_string());
                if misread != right {
                    assert_eq!(label(&misread), Err("invalid-barcode".to_owned()), "{misread}");
                }
            }
        }
        assert_eq!(label("2112345000008"), Err("invalid-barcode".to_owned()), "it costs nothing");
    }

    #[test]
    fn what_is_no_label_is_an_articles_own_code() {
        for code in
            ["2000000000015", "4006381333931", "211234500499", "21123450049900", "2112345OO4990", "", "２１１２３"]
        {
            assert_eq!(label(code), Ok(None), "{code:?}");
        }
        assert_eq!(read_label("2112345004990", &ScaleBarcodes::default()).unwrap(), None);
    }

    #[test]
    fn the_setting_is_written_as_it_is_read() {
        for text in ["", "21=price5", "20=weight4 21=price5 22=weight5 29=price4"] {
            assert_eq!(text.parse::<ScaleBarcodes>().unwrap().to_string(), text);
        }
        assert_eq!(" 22=weight5\t21=price5 ".parse::<ScaleBarcodes>().unwrap().to_string(), "21=price5 22=weight5");
        for wrong in [
            "21",
            "21=",
            "21=price",
            "19=price5",
            "30=price5",
            "x=price5",
            "21=price5 21=weight5",
            "21=price5,22=weight5",
        ] {
            assert_eq!(
                wrong.parse::<ScaleBarcodes>().map_err(|error| error.code()),
                Err("invalid-setting"),
                "{wrong:?}"
            );
        }
        assert!(ScaleBarcodes::default().with(30, None).is_err());
    }
}
