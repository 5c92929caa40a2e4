//! Each return of a sale: given back anew by the engine, with its legs against what had paid.

use super::{
    Notes,
    sale::{Facts, LineFacts, TenderFacts},
};
use crate::TillError;
use checkout::{CashRounding, CashRule, GivenBack, Quantity, Rate, Returned, Sold, SoldLine, TaxGroup};
use rusqlite::Connection;

/// What paid the sale.
pub(super) struct Paid<'a> {
    pub(super) tenders: &'a [TenderFacts],
    /// What all its cash is more than it came to, for the coins.
    pub(super) rounding: i128,
}

impl Paid<'_> {
    fn in_cash(&self) -> i128 {
        self.tenders.iter().filter(|tender| tender.kind == "cash").map(|tender| i128::from(tender.amount)).sum()
    }
}

/// A return as its row has it.
struct ReturnFacts {
    id: String,
    subject: String,
    /// Net, tax, tip, total.
    sums: [i64; 4],
}

/// What went back in cash so far: handed over, and without what the coins made of it.
#[derive(Default)]
struct Cash {
    handed: i128,
    exact: i128,
}

/// A leg, to a card or in cash, as its row has it.
struct Leg {
    id: String,
    /// None of cash.
    tender_id: Option<String>,
    /// None of cash, which is handed over.
    state: Option<String>,
    amount: i64,
    rounding: i64,
    replaces: Option<String>,
}

/// Looks at the returns of a sale.
pub(super) fn check(
    conn: &Connection,
    sale: &Facts,
    lines: &[LineFacts],
    taxes: &[[i64; 3]],
    paid: &Paid<'_>,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let returns = of_sale(conn, sale)?;
    if returns.is_empty() {
        return Ok(());
    }
    let mut sold = match sold(sale, lines, taxes) {
        Ok(sold) => sold,
        Err(why) => {
            notes.found("return-figures", &sale.subject, format!("what came back of it can't be priced: {why}"));
            return Ok(());
        }
    };
    let mut cash = Cash::default();
    for one in &returns {
        if sale.state != "completed" {
            notes.found("return-legs", &one.subject, format!("its sale is {}", sale.state));
        }
        let goods = goods(conn, &one.id)?;
        check_figures(conn, one, &goods, lines, &mut sold, notes)?;
        check_legs(conn, sale, one, paid, &mut cash, notes)?;
    }
    Ok(())
}

fn of_sale(conn: &Connection, sale: &Facts) -> Result<Vec<ReturnFacts>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, receipt_number, net, tax, tip, total FROM returns WHERE sale_id = ?1 ORDER BY receipt_number",
    )?;
    let rows = statement.query_map([&sale.id], |row| {
        let number: i64 = row.get(1)?;
        Ok(ReturnFacts {
            id: row.get(0)?,
            subject: format!("return {number} of {}", sale.subject),
            sums: [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?],
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn sold(sale: &Facts, lines: &[LineFacts], taxes: &[[i64; 3]]) -> Result<Sold, String> {
    let said = |error: checkout::DecimalError| error.to_string();
    let lines = lines.iter().map(|line| {
        Ok(SoldLine {
            quantity: Quantity::from_thousandths(line.quantity).map_err(said)?,
            total: line.frozen.map(|[_, _, _, total]| total).ok_or("a line of it is not frozen")?,
            tax_rate: Rate::from_thousandths(line.tax_rate).map_err(said)?,
            returned: Quantity::NONE,
        })
    });
    let taxes = taxes
        .iter()
        .map(|&[rate, net, tax]| Ok(TaxGroup { rate: Rate::from_thousandths(rate).map_err(said)?, net, tax }));
    Ok(Sold {
        prices_include_tax: sale.prices_include_tax,
        lines: lines.collect::<Result<_, String>>()?,
        taxes: taxes.collect::<Result<_, String>>()?,
        tip: sale.frozen.map(|[_, _, tip, _, _]| tip).ok_or("it is not frozen")?,
    })
}

/// Line, thousandths and amount of what came back.
fn goods(conn: &Connection, return_id: &str) -> Result<Vec<[i64; 3]>, TillError> {
    let mut statement = conn
        .prepare_cached("SELECT line_id, quantity, amount FROM return_lines WHERE return_id = ?1 ORDER BY line_id")?;
    let rows = statement.query_map([return_id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Gives back anew, out of what was sold and what came back before, and compares each figure.
fn check_figures(
    conn: &Connection,
    one: &ReturnFacts,
    goods: &[[i64; 3]],
    lines: &[LineFacts],
    sold: &mut Sold,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let mut statement =
        conn.prepare_cached("SELECT rate, net, tax FROM return_taxes WHERE return_id = ?1 ORDER BY rate")?;
    let taxes: Vec<[i64; 3]> =
        statement.query_map([&one.id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?.collect::<Result<_, _>>()?;
    let back = match given_back(sold, goods, lines) {
        Ok(back) => back,
        Err(why) => {
            notes.found("return-figures", &one.subject, format!("it can't be given back: {why}"));
            return Ok(());
        }
    };
    let amounts: Vec<i64> = goods.iter().map(|[_, _, amount]| *amount).collect();
    if amounts != back.lines {
        let what = format!("its lines give back {amounts:?}, and should give back {:?}", back.lines);
        notes.found("return-figures", &one.subject, what);
    }
    let table: Vec<_> = back.taxes.iter().map(|group| [group.rate.thousandths(), group.net, group.tax]).collect();
    if taxes != table {
        let what = format!("its tax table is {taxes:?} as rate, net and tax, and should be {table:?}");
        notes.found("return-figures", &one.subject, what);
    }
    let sums = [back.net, back.tax, back.tip, back.total];
    if one.sums != sums {
        let what = format!("its net, tax, tip and total are {:?}, and should be {sums:?}", one.sums);
        notes.found("return-figures", &one.subject, what);
    }
    Ok(())
}

fn given_back(sold: &mut Sold, goods: &[[i64; 3]], lines: &[LineFacts]) -> Result<GivenBack, String> {
    let parts = goods.iter().map(|[line_id, quantity, _]| {
        let line = lines.iter().position(|line| line.id == *line_id).ok_or("a line of it is of another sale")?;
        let quantity = Quantity::from_thousandths(*quantity).map_err(|error| error.to_string())?;
        Ok(Returned { line, quantity })
    });
    let parts: Vec<Returned> = parts.collect::<Result<_, String>>()?;
    let back = checkout::give_back(sold, &parts).map_err(|error| error.to_string())?;
    for part in parts {
        if let Some(line) = sold.lines.get_mut(part.line) {
            line.returned = line.returned.checked_add(part.quantity).ok_or("its quantities are too large")?;
        }
    }
    Ok(back)
}

fn check_legs(
    conn: &Connection,
    sale: &Facts,
    one: &ReturnFacts,
    paid: &Paid<'_>,
    cash: &mut Cash,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let legs = legs(conn, &one.id)?;
    let mut wrong = |what: String| notes.found("return-legs", &one.subject, what);
    let first = || legs.iter().filter(|leg| leg.replaces.is_none());
    let exact: i128 = first().map(|leg| i128::from(leg.amount) - i128::from(leg.rounding)).sum();
    let waived = waived(conn, &one.id)?;
    let never_paid: i128 = waived.iter().map(|[amount, _]| i128::from(*amount)).sum();
    let [.., total] = one.sums;
    let before = i128::from(went_back_before(conn, &one.id)?);
    if exact + never_paid + before != i128::from(total) {
        let parts = exact + never_paid + before;
        wrong(format!(
            "its legs, what was never paid and what went back before come to {parts}, and it gives back {total}"
        ));
    }
    if !legs.is_empty() && waived.iter().any(|[_, rest]| *rest != 0) {
        wrong("money goes back by it while something of its sale was never paid".to_owned());
    }
    for leg in first().filter(|leg| leg.tender_id.is_none()) {
        cash.handed += i128::from(leg.amount);
        cash.exact += i128::from(leg.amount) - i128::from(leg.rounding);
        // What was collected late was rounded by itself: the last part gives what is left of all the cash, and no part gives more.
        let taken = paid.in_cash();
        let due = if cash.exact == taken - paid.rounding {
            Some(taken)
        } else {
            in_coins(cash.exact, sale).map(|due| due.min(taken))
        };
        if due != Some(cash.handed) {
            wrong(format!("{} was handed over so far, and in coins {} is {due:?}", cash.handed, cash.exact));
        }
    }
    for leg in &legs {
        let is_of_sale = |id: &String| paid.tenders.iter().any(|tender| tender.id == *id);
        if !leg.tender_id.as_ref().is_none_or(is_of_sale) {
            wrong(format!("its leg {} goes to a card that did not pay this sale", leg.id));
        }
        let Some(replaces) = &leg.replaces else { continue };
        let before = legs.iter().find(|other| other.id == *replaces);
        let is_right = before.is_some_and(|before| {
            matches!(before.state.as_deref(), Some("declined" | "cancelled"))
                && before.amount == leg.amount.saturating_sub(leg.rounding)
                && (leg.tender_id.is_none() || leg.tender_id == before.tender_id)
        });
        if !is_right || legs.iter().filter(|other| other.replaces == leg.replaces).count() != 1 {
            wrong(format!("its leg {} does not take the place of one that did not go through", leg.id));
        }
    }
    Ok(())
}

/// What of a return goes back to nobody: each part, and what of its late decline was left unpaid after it.
fn waived(conn: &Connection, return_id: &str) -> Result<Vec<[i64; 2]>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT amount, rest FROM return_waived WHERE return_id = ?1 ORDER BY tender_id")?;
    let rows = statement.query_map([return_id], |row| Ok([row.get(0)?, row.get(1)?]))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What of a return went back before it, as money alone.
fn went_back_before(conn: &Connection, return_id: &str) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached("SELECT coalesce(sum(amount), 0) FROM return_refunded WHERE return_id = ?1")?
        .query_row([return_id], |row| row.get(0))?)
}

fn in_coins(exact: i128, sale: &Facts) -> Option<i128> {
    let rule = CashRule::new(sale.cash_step, CashRounding::parse(&sale.cash_rounding)?)?;
    checkout::cash_due(i64::try_from(exact).ok()?, rule).ok().map(|due| i128::from(due.due))
}

fn legs(conn: &Connection, return_id: &str) -> Result<Vec<Leg>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, tender_id, state, amount, 0, replaces FROM refunds WHERE return_id = ?1
         UNION ALL
         SELECT id, NULL, NULL, amount, rounding, instead_of FROM cash_refunds WHERE return_id = ?1",
    )?;
    let rows = statement.query_map([return_id], |row| {
        Ok(Leg {
            id: row.get(0)?,
            tender_id: row.get(1)?,
            state: row.get(2)?,
            amount: row.get(3)?,
            rounding: row.get(4)?,
            replaces: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
