//! Discounts and tips as they are asked for: a part or an amount. What comes of them is the engine's to say.

use crate::{TillError, amounts::format_amount, columns};
use checkout::{Discount, Rate, Tip};
use protocol::Currency;
use rusqlite::Row;
use serde::{Deserialize, Serialize};

/// The most that is asked for as an amount, in minor units: as much as one payment can be.
const AMOUNT_MAX: i64 = 99_999_999;

/// A part, or an amount in minor units of the sale's currency. In JSON `{"percent":"12.5"}` or `{"amount":250}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Percent, with up to three decimals.
    Percent(Rate),
    /// Minor units.
    Amount(i64),
}

impl Asked {
    /// So many percent, as somebody typed it.
    ///
    /// # Errors
    /// [`TillError::InvalidDiscount`] where it is no number with up to three decimals.
    pub fn percent(text: &str) -> Result<Self, TillError> {
        let rate = text.trim().parse().map_err(|error| TillError::InvalidDiscount(format!("the percentage {error}")));
        rate.map(Self::Percent)
    }

    /// None for nothing at all, which is not kept.
    pub(crate) fn checked(self, currency: Currency) -> Result<Option<Self>, TillError> {
        match self {
            Self::Percent(rate) if rate > Rate::HUNDRED => {
                Err(TillError::InvalidDiscount("it is at most 100 percent".to_owned()))
            }
            Self::Amount(amount) if !(0..=AMOUNT_MAX).contains(&amount) => {
                let [least, most] = [0, AMOUNT_MAX].map(|amount| format_amount(amount, currency));
                Err(TillError::InvalidDiscount(format!("the amount must be from {least} to {most}")))
            }
            Self::Percent(Rate::ZERO) | Self::Amount(0) => Ok(None),
            Self::Percent(_) | Self::Amount(_) => Ok(Some(self)),
        }
    }

    pub(crate) fn discount(self) -> Discount {
        match self {
            Self::Percent(rate) => Discount::Percent(rate),
            Self::Amount(amount) => Discount::Amount(amount),
        }
    }

    pub(crate) fn tip(self) -> Tip {
        match self {
            Self::Percent(rate) => Tip::Percent(rate),
            Self::Amount(amount) => Tip::Amount(amount),
        }
    }

    /// The two columns that keep it: percent in thousandths, and amount.
    pub(crate) fn columns(asked: Option<Self>) -> (Option<i64>, Option<i64>) {
        match asked {
            None => (None, None),
            Some(Self::Percent(rate)) => (Some(rate.thousandths()), None),
            Some(Self::Amount(amount)) => (None, Some(amount)),
        }
    }

    /// What two columns beside each other keep.
    pub(crate) fn read(row: &Row<'_>, percent: usize) -> rusqlite::Result<Option<Self>> {
        if row.get::<_, Option<i64>>(percent)?.is_some() {
            return Ok(Some(Self::Percent(columns::rate(row, percent)?)));
        }
        Ok(row.get::<_, Option<i64>>(percent + 1)?.map(Self::Amount))
    }
}

/// What a sale as a whole is given and gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) discount: Option<Asked>,
    pub(crate) tip: Option<Asked>,
}
