//! Pay: what a tender's dialog begins with, what is clicked in it, and what came of it.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Count, Minor, Sale};

/// A tender that a dialog has opened for. Nothing is saved yet.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BegunTender {
    pub(crate) tender_id: String,
    pub(crate) due: Minor,
    /// What is due in cash, rounded to the smallest coin.
    pub(crate) cash_due: Minor,
    /// Exact, and the next sensible notes.
    pub(crate) cash_notes: Vec<Minor>,
    pub(crate) rounding: Minor,
}

/// What Pay by card was clicked for. No `Debug`: the card's token is for the bank alone.
#[derive(Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CardPayment {
    pub(crate) tender_id: String,
    pub(crate) sale_id: String,
    pub(crate) amount: Minor,
    /// The token of a card.
    pub(crate) card: String,
}

/// What was handed over in cash. Less than is due pays a part.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CashPayment {
    pub(crate) tender_id: String,
    pub(crate) sale_id: String,
    pub(crate) tendered: Minor,
}

/// What became of cash handed over.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CashTaken {
    pub(crate) sale: Sale,
    pub(crate) change: Minor,
    pub(crate) rounding: Minor,
    /// What stays in the drawer.
    pub(crate) drawer: Minor,
}

/// What somebody must know before a payment is taken offline. Nothing is saved yet.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfflineAsk {
    pub(crate) tender_id: String,
    /// What would be at risk with it.
    pub(crate) amount: Minor,
    pub(crate) currency: String,
    /// What is at risk already, in the shop's currency.
    pub(crate) stored: Minor,
    /// How much may be, together.
    pub(crate) sum_max: Minor,
    /// How much may be, with one payment.
    pub(crate) payment_max: Minor,
    /// How many payments are at risk already.
    pub(crate) payments: Count,
    /// How many may be.
    pub(crate) count_max: u32,
    /// When the oldest of them was clicked.
    pub(crate) oldest_at: Option<String>,
    /// From which age of it on nothing more is taken, in hours.
    pub(crate) age_max_h: u32,
    /// The limits it is over; none: it may be taken.
    pub(crate) over: Vec<OverLimit>,
    /// It was taken offline already.
    pub(crate) is_taken: bool,
    /// Cash may be taken in its place: it was never sent.
    pub(crate) cash_instead: bool,
}

/// A limit that a payment is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OverLimit {
    /// It is in another currency than the limits.
    Currency,
    /// For one payment.
    Payment,
    /// For all together.
    Sum,
    /// Of their number.
    Count,
    /// Of the age of the oldest.
    Age,
}

/// An open card payment whose goods are handed over.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TakeOffline {
    pub(crate) tender_id: String,
    /// How the customer can be reached, if the card turns out not to pay. No card numbers.
    pub(crate) contact: Option<String>,
    /// It was seen that it is over the limit: who may take it all the same does.
    pub(crate) over_limit: bool,
}

impl From<till::TenderBegun> for BegunTender {
    fn from(begun: till::TenderBegun) -> Self {
        Self {
            tender_id: begun.tender_id.to_string(),
            due: Minor(begun.due),
            cash_due: Minor(begun.cash_due),
            cash_notes: begun.cash_notes.into_iter().map(Minor).collect(),
            rounding: Minor(begun.rounding),
        }
    }
}

impl From<till::CashTaken> for CashTaken {
    fn from(taken: till::CashTaken) -> Self {
        Self {
            sale: taken.sale.into(),
            change: Minor(taken.change),
            rounding: Minor(taken.rounding),
            drawer: Minor(taken.drawer),
        }
    }
}

impl From<till::OfflineAsk> for OfflineAsk {
    fn from(ask: till::OfflineAsk) -> Self {
        Self {
            tender_id: ask.tender_id.to_string(),
            amount: Minor(ask.amount),
            currency: ask.currency.to_string(),
            stored: Minor(ask.stored),
            sum_max: Minor(ask.sum_max),
            payment_max: Minor(ask.payment_max),
            payments: Count(ask.payments),
            count_max: ask.count_max,
            oldest_at: ask.oldest_at.map(|at| at.to_string()),
            age_max_h: ask.age_max_h,
            over: super::all(ask.over),
            is_taken: ask.is_taken,
            cash_instead: ask.cash_instead,
        }
    }
}

impl From<till::OverLimit> for OverLimit {
    fn from(limit: till::OverLimit) -> Self {
        match limit {
            till::OverLimit::Currency => Self::Currency,
            till::OverLimit::Payment => Self::Payment,
            till::OverLimit::Sum => Self::Sum,
            till::OverLimit::Count => Self::Count,
            till::OverLimit::Age => Self::Age,
        }
    }
}
