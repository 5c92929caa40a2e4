//! What is given away on a sale in all, and who answers for it.
//!
//! A cashier's limits hold for the whole of a sale, and not for each click: else twelve clicks of 4.99 would be within a limit of 5.00.
//! They hold at each change that takes more off, and once more at Pay, for what was approved for one bottle is not approved for a
//! hundred. What a manager let pass is kept with the sale as an amount, so that nobody is asked for it twice.

use crate::{
    Asked, Measure, Right, TillError,
    amounts::format_amount,
    audit,
    audit::Signature,
    editing, lines,
    lines::LineRow,
    people,
    people::{Person, Role},
    rights,
    rights::{Asking, Deed, Limit},
    sale, sales,
    sales::{Allowed, SaleRow},
};
use checkout::Rate;
use protocol::Currency;
use rusqlite::Connection;
use serde_json::json;

/// What discounts take off a sale, those of its lines and its own.
pub(crate) struct OffSale<'a> {
    sale: &'a SaleRow,
    lines: &'a [LineRow],
    pub(crate) off: i64,
}

impl<'a> OffSale<'a> {
    pub(crate) fn of(sale: &'a SaleRow, lines: &'a [LineRow]) -> Result<Self, TillError> {
        let priced = sale::price(sale, lines).map_err(editing::too_much)?;
        Ok(Self { sale, lines, off: priced.lines.iter().map(|line| line.gross - line.total).sum() })
    }

    /// What a percentage would come to on this sale: on each line or on all of them, whichever the engine's rounding makes more of.
    fn part(&self, thousandths: i64) -> Result<i64, TillError> {
        let rate = Rate::from_thousandths(thousandths).map_err(|error| TillError::Internal(error.to_string()))?;
        let discounted = |of_lines: Option<Asked>, of_sale: Option<Asked>| {
            let lines: Vec<_> = self.lines.iter().map(|line| LineRow { discount: of_lines, ..line.clone() }).collect();
            let mut sale = self.sale.clone();
            sale.terms.discount = of_sale;
            OffSale::of(&sale, &lines).map(|all| all.off)
        };
        let asked = Some(Asked::Percent(rate));
        Ok(discounted(asked, None)?.max(discounted(None, asked)?))
    }
}

impl Asking for OffSale<'_> {
    fn money(&self) -> Option<(i64, Currency)> {
        Some((self.off, self.sale.currency))
    }

    fn is_within(&self, _: Role, limit: &Limit) -> Result<bool, TillError> {
        match (limit.amount_max, limit.percent_max) {
            (Some(amount), Some(percent)) => Ok(self.off <= amount || self.off <= self.part(percent)?),
            // Where one of them has no limit, any discount can be given by it.
            (None, _) | (_, None) => Ok(true),
        }
    }

    fn over(&self, person: &Person, limit: &Limit, currency: Currency) -> Result<Option<String>, TillError> {
        let (Some(most), Some(percent)) = (limit.amount_max, limit.percent_max) else { return Ok(None) };
        let amount = |minor_units| format_amount(minor_units, currency);
        let (off, part) = (amount(self.off), amount(self.part(percent)?));
        let (name, percent, most) = (&person.name, rights::percent(percent), amount(most));
        Ok(Some(format!(
            "discounts of {off} on the whole sale are over {name}'s limit of {percent} % (here {part}) or {most}"
        )))
    }
}

/// What other prices than the list's take off a sale. What they put on gives nothing away.
pub(crate) fn off_prices(sale: &SaleRow, lines: &[LineRow]) -> Result<i64, TillError> {
    lines.iter().try_fold(0, |sum, line| {
        let Some(list_price) = line.list_price.filter(|list_price| *list_price > line.unit_price) else {
            return Ok(sum);
        };
        let [list, left] = [list_price, line.unit_price].map(|price| editing::gross(sale, price, line.quantity));
        Ok(sum + list? - left?)
    })
}

/// Keeps what somebody let pass who may more than a cashier.
pub(crate) fn keep(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    right: Right,
    off: i64,
) -> Result<(), TillError> {
    let manager = signature.person.as_ref().filter(|person| person.role == Role::Manager);
    match signature.approver.as_ref().or(manager) {
        Some(person) => sales::allow(tx, sale.id, right, Allowed { off, person_id: person.id }),
        None => Ok(()),
    }
}

/// Whether somebody let so much pass who still may.
fn is_kept(
    conn: &Connection,
    sale: &SaleRow,
    right: Right,
    off: i64,
    asked: &[&dyn Asking],
) -> Result<bool, TillError> {
    match sales::allowed(conn, sale.id, right)? {
        Some(allowed) if off <= allowed.off => {
            rights::may(conn, &people::by_id(conn, allowed.person_id)?, right, asked)
        }
        _ => Ok(false),
    }
}

/// More of a line than there was: what is given away on it is asked for again, where it becomes more than what was let pass.
pub(crate) fn raised(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    (line, lines): (&LineRow, &[LineRow]),
) -> Result<Signature, TillError> {
    let mut signed = signature.clone();
    if let Some(needs) = editing::discount_needs(line.discount) {
        let all = OffSale::of(sale, lines)?;
        signed = let_pass(tx, signed, sale, Right::Discount, all.off, &[&Deed::of(needs, sale.currency), &all])?;
    }
    if line.list_price.is_some_and(|list_price| list_price > line.unit_price) {
        let off = off_prices(sale, lines)?;
        signed = let_pass(tx, signed, sale, Right::PriceOverride, off, &[&PRICE])?;
    }
    Ok(signed)
}

const PRICE: Deed = Deed { right: Right::PriceOverride, measure: Measure::Whole, currency: None };

fn let_pass(
    tx: &Connection,
    signature: Signature,
    sale: &SaleRow,
    right: Right,
    off: i64,
    asked: &[&dyn Asking],
) -> Result<Signature, TillError> {
    if off == 0 || is_kept(tx, sale, right, off, asked)? {
        return Ok(signature);
    }
    let signed = rights::allow_all(tx, &signature, right, asked)?;
    keep(tx, &signed, sale, right, off)?;
    Ok(signed)
}

/// The last look, at Pay: what is given away on the whole sale must be within the right of who takes the money, or have been let pass.
pub(crate) fn check_at_pay(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    lines: &[LineRow],
) -> Result<(), TillError> {
    if signature.person.is_none() {
        return Ok(());
    }
    let (all, off_prices) = (OffSale::of(sale, lines)?, off_prices(sale, lines)?);
    let mut signed = let_pass(tx, signature.clone(), sale, Right::Discount, all.off, &[&all])?;
    signed = let_pass(tx, signed, sale, Right::PriceOverride, off_prices, &[&PRICE])?;
    if signed.approver.is_none() {
        return Ok(());
    }
    let details = json!({"discounts": all.off, "prices": off_prices, "currency": sale.currency});
    audit::append(tx, &signed, "given-away", Some(sale.id), &details)
}

/// The lines of a sale with one of them as it is to be.
pub(crate) fn with(conn: &Connection, sale: &SaleRow, after: &LineRow) -> Result<Vec<LineRow>, TillError> {
    let mut all = lines::of_sale(conn, sale.id)?;
    all.iter_mut().filter(|line| line.id == after.id).for_each(|line| *line = after.clone());
    Ok(all)
}
