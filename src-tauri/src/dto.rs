//! What crosses between the till and its window, as the window reads it, by subject: the till's own figures and words, none
//! of them computed here. Times are RFC 3339 in UTC; ids are opaque.

mod app;
mod catalogue;
mod lab;
mod late;
mod operation;
mod payment;
mod people;
mod receipt;
mod sale;
mod shift;
mod void;

pub(crate) use app::*;
pub(crate) use catalogue::*;
pub(crate) use lab::*;
pub(crate) use late::*;
pub(crate) use operation::*;
pub(crate) use payment::*;
pub(crate) use people::*;
pub(crate) use receipt::*;
pub(crate) use sale::*;
pub(crate) use shift::*;
pub(crate) use void::*;

use serde::{Deserialize, Serialize};
use specta::Type;

/// An amount in minor units of the currency beside it. The window shows it and never computes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Minor(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// A place in an order, or a number that was given out: of the queue, of a sale, of a receipt, of a shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Seq(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// How many there are of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(transparent)]
pub(crate) struct Count(#[specta(type = specta_typescript::Number)] pub(crate) i64);

/// An amount with its currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrencyAmount {
    pub(crate) currency: String,
    pub(crate) amount: Minor,
}

impl From<till::AmountOf> for CurrencyAmount {
    fn from(sum: till::AmountOf) -> Self {
        Self { currency: sum.currency.to_string(), amount: Minor(sum.amount) }
    }
}

/// Each of a list.
pub(crate) fn all<A, B: From<A>>(list: Vec<A>) -> Vec<B> {
    list.into_iter().map(B::from).collect()
}
