//! The script's own books: what it sold by its own prices, and beside that what each answer said.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    plan::{Goods, Pay},
    prices::{Cart, Priced, decimal},
};

/// A member of an answer that is a whole number.
pub(crate) fn int(value: &Value, name: &str) -> Result<i64> {
    value[name].as_i64().with_context(|| format!("no number {name} in {value}"))
}

/// A member that is a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name].as_str().with_context(|| format!("no text {name} in {value}"))
}

/// A member that is a list.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value]> {
    value[name].as_array().map(Vec::as_slice).with_context(|| format!("no list {name} in {value}"))
}

/// A member that is yes or no.
pub(crate) fn flag(value: &Value, name: &str) -> Result<bool> {
    value[name].as_bool().with_context(|| format!("no yes or no {name} in {value}"))
}

/// A member that is an id.
pub(crate) fn id(value: &Value, name: &str) -> Result<Uuid> {
    Ok(text(value, name)?.parse()?)
}

/// A card that pays a part of a sale in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    pub(crate) tender_id: Uuid,
    pub(crate) amount: i64,
    /// What it has not got back.
    pub(crate) left: i64,
}

/// A sale, and what the script knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Sold {
    pub(crate) sale_id: Uuid,
    pub(crate) goods: Goods,
    pub(crate) pay: Pay,
    pub(crate) cart: Cart,
    pub(crate) priced: Priced,
    pub(crate) line_ids: Vec<i64>,
    pub(crate) cards: Vec<Card>,
    /// What of the cash stayed in the drawer.
    pub(crate) cash: i64,
    pub(crate) rounding: i64,
    /// Written off.
    pub(crate) waived: i64,
    /// What a cashier gave back of it with nobody's word.
    pub(crate) back_by_cashier: i64,
    /// What of each line came back, in thousandths.
    pub(crate) returned: Vec<i64>,
    /// What went back in cash: by the goods, and in coins.
    pub(crate) cash_back: (i64, i64),
}

/// Sums over sales, in minor units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) sales: i64,
    pub(crate) net: i64,
    pub(crate) tax: i64,
    pub(crate) tips: i64,
    pub(crate) total: i64,
    pub(crate) rounding: i64,
    /// What was taken off lines, and off sales.
    pub(crate) off: (i64, i64),
    /// Net and tax by the rate, as the shortest decimal.
    pub(crate) taxes: BTreeMap<String, (i64, i64)>,
    /// Number and sum.
    pub(crate) cards: (i64, i64),
    pub(crate) cash: (i64, i64),
}

impl Sums {
    /// A sale as the script knows it.
    pub(crate) fn add(&mut self, sold: &Sold) {
        let priced = &sold.priced;
        self.sales += 1;
        self.tips += priced.tip;
        self.total += priced.total;
        self.rounding += sold.rounding;
        self.off.0 += priced.off_lines;
        self.off.1 += priced.off_sale;
        for (rate, (net, tax)) in &priced.taxes {
            self.add_tax(decimal(*rate), *net, *tax);
        }
        for card in &sold.cards {
            self.cards.0 += 1;
            self.cards.1 += card.amount;
        }
        self.cash.0 += i64::from(sold.cash > 0);
        self.cash.1 += sold.cash;
    }

    /// A completed sale as the till tells it.
    pub(crate) fn add_told(&mut self, sale: &Value) -> Result<()> {
        self.sales += 1;
        self.tips += int(sale, "tip")?;
        self.total += int(sale, "total")?;
        self.rounding += int(sale, "rounding")?;
        for line in list(sale, "lines")? {
            let of_sale = int(line, "saleDiscount")?;
            self.off.0 += int(line, "discount")? - of_sale;
            self.off.1 += of_sale;
        }
        for tax in list(sale, "taxes")? {
            self.add_tax(text(tax, "rate")?.to_owned(), int(tax, "net")?, int(tax, "tax")?);
        }
        for tender in list(sale, "tenders")? {
            let sum = match text(tender, "state")? {
                "approved" => &mut self.cards,
                "taken" => &mut self.cash,
                _ => continue,
            };
            sum.0 += 1;
            sum.1 += int(tender, "amount")?;
        }
        Ok(())
    }

    /// What a report of a shift says of its sales.
    pub(crate) fn of_report(report: &Value) -> Result<Self> {
        let mut sums = Self {
            sales: int(report, "sales")?,
            tips: int(report, "tips")?,
            total: int(report, "total")?,
            rounding: int(report, "rounding")?,
            off: (int(report, "lineDiscounts")?, int(report, "saleDiscounts")?),
            ..Self::default()
        };
        for tax in list(report, "taxes")? {
            sums.add_tax(text(tax, "rate")?.to_owned(), int(tax, "net")?, int(tax, "tax")?);
        }
        for tender in list(report, "tenders")? {
            let sum = (int(tender, "count")?, int(tender, "amount")?);
            match text(tender, "kind")? {
                "card" => sums.cards = sum,
                _ => sums.cash = sum,
            }
        }
        ensure!(
            (sums.net, sums.tax) == (int(report, "net")?, int(report, "tax")?),
            "its taxes do not add up: {report}"
        );
        Ok(sums)
    }

    fn add_tax(&mut self, rate: String, net: i64, tax: i64) {
        let of_rate = self.taxes.entry(rate).or_default();
        *of_rate = (of_rate.0 + net, of_rate.1 + tax);
        self.net += net;
        self.tax += tax;
    }
}

/// What went through the drawer and back to cards beside the sales, by the script's own count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawer {
    pub(crate) float_amount: i64,
    pub(crate) cash_in: i64,
    pub(crate) cash_out: i64,
    /// What came back: number and sum.
    pub(crate) returns: (i64, i64),
    pub(crate) cash_refunds: (i64, i64),
    pub(crate) card_refunds: (i64, i64),
    pub(crate) no_sales: i64,
    pub(crate) drops: i64,
    pub(crate) overrides: i64,
}

/// How often something really happened.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, u32>);

impl Tally {
    pub(crate) fn met(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn of(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "{count:6}  {what}"))
    }
}
