//! Money, cart, tax and tenders: the price of a sale, computed once.
//!
//! The engine is pure: the same [`Cart`] always gives the same [`Priced`], with no clock, no file and no floating
//! point. Screen, receipt, database and bank all show its figures, so none of them has a reason to compute its own.
//!
//! **The invariant**: parts add up. Line totals make the sale, net and tax make the total, and always
//! *total + rounding = tenders + rest*, to the last minor unit.
//!
//! - Amounts are `i64` minor units of the sale's currency and never negative, but for the cash rounding.
//! - [`Quantity`] counts thousandths, [`Rate`] thousandths of a percent.
//! - Rounding is half away from zero on exact values, once at the end of each step.
//! - Goods come back at the figures frozen then, in whatever parts: together these give back exactly what was paid.
//! - What does not fit is a [`PriceError`], never a wrap and never a panic.
//!
//! ```
//! use checkout::{Cart, Currency, Line, Quantity, Rate, price};
//!
//! let mut cart = Cart::new(Currency::parse("EUR")?);
//! cart.lines.push(Line {
//!     unit_price: 1_090,
//!     quantity: "0.455".parse::<Quantity>()?,
//!     tax_rate: "20".parse::<Rate>()?,
//!     discount: None,
//! });
//! let priced = price(&cart)?;
//! assert_eq!((priced.net, priced.tax, priced.total), (413, 83, 496));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// A wrapped or panicking sum is a wrong charge: every operation on an amount must say what happens when it does not fit.
#![warn(clippy::arithmetic_side_effects)]
// Rounding happens on exact integers; a float anywhere near an amount is a mistake, whatever it is for.
#![warn(clippy::float_arithmetic)]

mod cart;
mod currency;
mod decimal;
mod discount;
mod error;
pub mod json;
mod money;
mod notes;
mod price;
mod quantity;
mod rate;
mod returns;
mod tax;
mod tenders;

pub use cart::{Cart, Discount, LINES_MAX, Line, TENDERS_MAX, Tender, Tip};
pub use currency::{Currency, UnknownCurrency};
pub use decimal::DecimalError;
pub use error::{Code, PriceError};
pub use notes::cash_notes;
pub use price::{Priced, PricedLine, price};
pub use quantity::Quantity;
pub use rate::Rate;
pub use returns::{GivenBack, Returned, Sold, SoldLine, give_back};
pub use tax::TaxGroup;
pub use tenders::{Balance, CashDue, CashRounding, CashRule, PricedTender, balance, cash_due};
