//! Goods that come back: what they cost goes back the way it was paid, and what was never paid to nobody: that is first. Then cards, in the
//! order in which they paid, each up to what it has left; what is more than that in cash. Figures are shares of what was frozen when the sale was paid, so that in however many parts
//! a sale comes back, together they are what was paid: by line, by tax rate and by tender.

mod figures;
pub(crate) mod legs;
mod listing;

pub use figures::ReturnFigures;
pub(crate) use figures::of_span;
pub use legs::PaidOut;
pub(crate) use legs::{CashOut, hand_over, paid_out, pay_out, try_again};
pub use listing::{LegState, Return, ReturnLeg, ReturnLine, ReturnState};
pub(crate) use listing::{by_id, legs, of_sale, owed, state};

use crate::{
    Sale, SaleState, SaleTax, TillError, Unit, audit, audit::Signature, cart, clock, editing, late, lines,
    lines::LineRow, receipt, refunds, sale, sales, sales::SaleRow,
};
use checkout::{Code, GivenBack, PriceError, Quantity, Returned, Sold, SoldLine};
use legs::Legs;
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

/// What comes back of a sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnedGoods {
    /// All that has not come back yet, with the tip.
    Whole,
    /// These.
    Lines(Vec<Goods>),
}

/// What comes back of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goods {
    /// The line.
    pub line_id: i64,
    /// A decimal above zero with up to three places; none for all that is left of it.
    pub quantity: Option<String>,
}

/// Goods to be taken back, and their money to be given back.
#[derive(Debug, Clone)]
pub struct NewReturn {
    /// The id given when the dialog opened: however often it is clicked, it is one return.
    pub id: Uuid,
    /// The sale in which they were sold.
    pub sale_id: Uuid,
    /// What comes back.
    pub goods: ReturnedGoods,
    /// Why, in at most 200 characters.
    pub reason: Option<String>,
}

/// What the dialog of a return begins with. Nothing of it is saved.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnBegun {
    /// The return's id: whatever is clicked in this dialog, and how often, is this one return.
    pub return_id: Uuid,
    /// The sale.
    pub sale: Sale,
    /// Its lines, with what is left of each to come back.
    pub lines: Vec<ReturnLineBegun>,
    /// What came back before, oldest first.
    pub returns: Vec<Return>,
}

/// A line of a sale, with what of it is left to come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnLineBegun {
    /// The line.
    pub line_id: i64,
    /// The article's name.
    pub name: String,
    /// How it is sold.
    pub unit: Unit,
    /// How much was sold, as the shortest decimal.
    pub sold: String,
    /// How much is left to come back.
    pub left: String,
}

/// What a return would give back, and how. Amounts in minor units of the sale's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PricedReturn {
    /// What each of the goods gives back, with or without tax as the sale's prices are.
    pub lines: Vec<PricedGoods>,
    /// The tax table, lowest rate first.
    pub taxes: Vec<SaleTax>,
    /// The goods without tax.
    pub net: i64,
    /// All tax.
    pub tax: i64,
    /// The tip: all of it with the last of the goods.
    pub tip: i64,
    /// What the goods and the tip come to, before cash is rounded.
    pub total: i64,
    /// Of it, to nobody, as it was never paid: it is owed since a late decline, and is owed no more, or was written off.
    pub waived: i64,
    /// Of it, what went back before, as money alone.
    pub refunded_before: i64,
    /// Of it, to cards: the tender and the amount, in the order in which they paid.
    pub cards: Vec<CardPart>,
    /// What is handed over in cash.
    pub cash: i64,
    /// What of that is there because of the coins that there are.
    pub rounding: i64,
    /// Nothing of the sale is left after it.
    pub is_last: bool,
}

/// What goods of one line give back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PricedGoods {
    /// The line.
    pub line_id: i64,
    /// How much comes back, as the shortest decimal.
    pub quantity: String,
    /// What it gives back.
    pub amount: i64,
}

/// What one card gets back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CardPart {
    /// The tender that it paid.
    pub tender_id: Uuid,
    /// How much.
    pub amount: i64,
}

/// All that a return comes to.
struct Plan {
    goods: Vec<(i64, Quantity)>,
    back: GivenBack,
    legs: Legs,
}

/// The sale as it was frozen, with what of it came back so far.
fn sold(conn: &Connection, sale: &SaleRow, lines: &[LineRow]) -> Result<Sold, TillError> {
    let frozen = sale.frozen.ok_or_else(|| TillError::Internal("a completed sale is not frozen".to_owned()))?;
    let returned = returned(conn, sale.id)?;
    let sold_line = |line: &LineRow| {
        let total = line.frozen.map(|figures| figures.total);
        let total = total.ok_or_else(|| TillError::Internal("a line of a completed sale is not frozen".to_owned()))?;
        let returned = returned.get(&line.id).copied().unwrap_or(Quantity::NONE);
        Ok(SoldLine { quantity: line.quantity, total, tax_rate: line.tax_rate, returned })
    };
    Ok(Sold {
        prices_include_tax: sale.prices_include_tax,
        lines: lines.iter().map(sold_line).collect::<Result<_, TillError>>()?,
        taxes: lines::taxes(conn, sale.id)?,
        tip: frozen.tip,
    })
}

/// How much of each line came back.
fn returned(conn: &Connection, sale_id: Uuid) -> Result<HashMap<i64, Quantity>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT line_id, sum(return_lines.quantity) FROM lines JOIN return_lines ON return_lines.line_id = lines.id
         WHERE lines.sale_id = ?1 GROUP BY line_id",
    )?;
    let rows =
        statement.query_map([sale_id.to_string()], |row| Ok((row.get(0)?, crate::columns::quantity(row, 1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn plan(conn: &Connection, sale: &SaleRow, goods: &ReturnedGoods) -> Result<Plan, TillError> {
    if sale.state != SaleState::Completed {
        return Err(TillError::SaleChanged("only a completed sale is given back: this one is not paid".to_owned()));
    }
    let line_rows = lines::of_sale(conn, sale.id)?;
    let sold = sold(conn, sale, &line_rows)?;
    let parts = parts(&line_rows, &sold, goods)?;
    if parts.is_empty() {
        return Err(TillError::InvalidReturn("nothing of this sale is left to come back".to_owned()));
    }
    let back = checkout::give_back(&sold, &parts).map_err(refusal)?;
    let legs = legs::share(conn, sale, back.total)?;
    let goods = parts.iter().filter_map(|part| Some((line_rows.get(part.line)?.id, part.quantity)));
    Ok(Plan { goods: goods.collect(), back, legs })
}

/// What is asked for, by the places of the lines.
fn parts(lines: &[LineRow], sold: &Sold, goods: &ReturnedGoods) -> Result<Vec<Returned>, TillError> {
    let goods = match goods {
        ReturnedGoods::Whole => return Ok(sold.rest()),
        ReturnedGoods::Lines(goods) => goods,
    };
    let mut parts: Vec<Returned> = Vec::with_capacity(goods.len());
    for Goods { line_id, quantity } in goods {
        let found = lines.iter().enumerate().find(|(_, line)| line.id == *line_id);
        let (at, line) = found.ok_or(TillError::NotFound("line"))?;
        if parts.iter().any(|part| part.line == at) {
            return Err(TillError::InvalidReturn(format!("“{}” is named twice", line.name)));
        }
        let quantity = match quantity {
            Some(text) => cart::typed_quantity(text, line.unit, "leave the line out instead")?,
            None => {
                let left = sold.rest().into_iter().find(|left| left.line == at).map(|left| left.quantity);
                left.ok_or_else(|| {
                    TillError::InvalidReturn(format!("nothing of “{}” is left to come back", line.name))
                })?
            }
        };
        parts.push(Returned { line: at, quantity });
    }
    Ok(parts)
}

/// What the engine refuses of what was asked is the asker's; else the figures of the sale are at fault.
fn refusal(error: PriceError) -> TillError {
    match error.code {
        Code::OverReturn => TillError::InvalidReturn(error.message),
        _ => TillError::Internal(format!("the sale cannot be given back: {error}")),
    }
}

/// What the dialog of a return begins with.
pub(crate) fn begin(conn: &Connection, sale_id: Uuid) -> Result<ReturnBegun, TillError> {
    let row = sales::by_id(conn, sale_id)?;
    if row.state != SaleState::Completed {
        return Err(TillError::SaleChanged("only a completed sale is given back: this one is not paid".to_owned()));
    }
    let line_rows = lines::of_sale(conn, sale_id)?;
    let sold = sold(conn, &row, &line_rows)?;
    let rest = sold.rest();
    let lines = line_rows.iter().enumerate().map(|(at, line)| {
        let left = rest.iter().find(|left| left.line == at).map_or(Quantity::NONE, |left| left.quantity);
        let (line_id, name) = (line.id, line.name.clone());
        ReturnLineBegun { line_id, name, unit: line.unit, sold: line.quantity.to_string(), left: left.to_string() }
    });
    Ok(ReturnBegun {
        return_id: clock::new_id(),
        sale: sale::show(conn, &row)?,
        lines: lines.collect(),
        returns: of_sale(conn, sale_id)?,
    })
}

/// What a return would give back, and how. Nothing is saved.
pub(crate) fn price(conn: &Connection, sale_id: Uuid, goods: &ReturnedGoods) -> Result<PricedReturn, TillError> {
    let Plan { goods, back, legs } = plan(conn, &sales::by_id(conn, sale_id)?, goods)?;
    let lines = goods.iter().zip(&back.lines).map(|((line_id, quantity), amount)| PricedGoods {
        line_id: *line_id,
        quantity: quantity.to_string(),
        amount: *amount,
    });
    let taxes = back.taxes.iter().map(|group| SaleTax { rate: group.rate.to_string(), net: group.net, tax: group.tax });
    let (cash, rounding) = legs.cash.map_or((0, 0), |cash| (cash.amount, cash.rounding));
    let cards = legs.cards.iter().map(|card| CardPart { tender_id: card.tender.id, amount: card.amount });
    Ok(PricedReturn {
        lines: lines.collect(),
        taxes: taxes.collect(),
        net: back.net,
        tax: back.tax,
        tip: back.tip,
        total: back.total,
        waived: legs.waived(),
        refunded_before: legs.refunded_before,
        cards: cards.collect(),
        cash,
        rounding,
        is_last: back.is_last,
    })
}

/// Takes goods back: the return with its number, its lines and taxes, an operation for each card, the cash, and what was never paid, in
/// one commit or not at all. The same id gives the same return back.
pub(crate) fn make(tx: &Connection, signature: &Signature, new: &NewReturn) -> Result<Return, TillError> {
    if let Some(done) = by_id(tx, new.id)? {
        return if is_same(tx, &done, new)? { Ok(done) } else { Err(reused()) };
    }
    let reason = new.reason.as_deref().map(|reason| editing::checked_text(reason, "reason", editing::REASON_CHARS_MAX));
    let reason = reason.transpose()?.flatten();
    let sale = sales::by_id(tx, new.sale_id)?;
    let plan = plan(tx, &sale, &new.goods)?;
    let refunded_before = plan.legs.refunded_before;
    let signature = &refunds::allow(tx, signature, sale.id, plan.back.total - refunded_before)?;
    insert_parts(tx, new.id, &plan)?;
    let legs = legs::begin(tx, signature, &sale, new.id, &plan.legs)?;
    let waived = late::begin_waiving(tx, new.id, &plan.legs.waived)?;
    let receipt_number = sales::next_number(tx, "receipt")?;
    let Plan { back, .. } = &plan;
    // Last: it closes what was saved before it, and the file checks that all of it adds up.
    tx.prepare_cached(
        "INSERT INTO returns (id, sale_id, receipt_number, net, tax, tip, total, reason, created_at, shift)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (SELECT number FROM shift_now))",
    )?
    .execute(params![
        new.id.to_string(),
        sale.id.to_string(),
        receipt_number,
        back.net,
        back.tax,
        back.tip,
        back.total,
        reason,
        signature.at.as_millisecond()
    ])?;
    let goods = plan.goods.iter().map(|(line, quantity)| json!({"line": line, "quantity": quantity.to_string()}));
    let details = json!({
        "return": new.id, "sale": sale.number, "receipt": receipt_number, "of_receipt": sale.receipt_number,
        "goods": goods.collect::<Vec<_>>(), "total": back.total, "tip": back.tip, "currency": sale.currency, "legs": legs,
        "waived": waived, "refunded_before": refunded_before, "reason": reason,
    });
    receipt::keep_head(tx, new.id)?;
    audit::append(tx, signature, "goods-returned", Some(sale.id), &details)?;
    late::lowered(tx, signature, new.id, &plan.legs.waived)?;
    by_id(tx, new.id)?.ok_or_else(|| TillError::Internal("a return was not saved".to_owned()))
}

fn reused() -> TillError {
    TillError::IntentReused("this return was already made with other goods or of another sale".to_owned())
}

/// Whether a click that comes again asks for what was saved.
fn is_same(conn: &Connection, done: &Return, new: &NewReturn) -> Result<bool, TillError> {
    let same_goods = match &new.goods {
        ReturnedGoods::Whole => was_last(conn, done, None)?,
        ReturnedGoods::Lines(goods) => {
            goods.len() == done.lines.len()
                && goods.iter().all(|asked| {
                    done.lines.iter().any(|line| {
                        let quantity = asked.quantity.as_deref().map(str::trim).map(str::parse::<Quantity>);
                        let is_that_much = quantity.is_none_or(|quantity| {
                            quantity.is_ok_and(|quantity| quantity.to_string() == line.quantity)
                        });
                        line.line_id == asked.line_id && is_that_much
                    })
                })
                // None asks for all that is left of the line.
                && goods.iter().filter(|asked| asked.quantity.is_none()).try_fold(true, |so_far, asked| {
                    Ok::<_, TillError>(so_far && was_last(conn, done, Some(asked.line_id))?)
                })?
        }
    };
    Ok(done.sale_id == new.sale_id && same_goods)
}

/// Whether all that was left of a sale, or of one of its lines, came back with this return: with those before it, it makes what was sold.
fn was_last(conn: &Connection, done: &Return, line_id: Option<i64>) -> Result<bool, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT NOT EXISTS (SELECT 1 FROM lines WHERE sale_id = ?1 AND (?3 IS NULL OR id = ?3) AND quantity > (
                 SELECT coalesce(sum(return_lines.quantity), 0)
                 FROM return_lines JOIN returns ON returns.id = return_lines.return_id
                 WHERE return_lines.line_id = lines.id AND returns.receipt_number <= ?2))",
        )?
        .query_row(params![done.sale_id.to_string(), done.receipt_number, line_id], |row| row.get(0))?)
}

fn insert_parts(tx: &Connection, return_id: Uuid, plan: &Plan) -> Result<(), TillError> {
    let id = return_id.to_string();
    let mut insert =
        tx.prepare_cached("INSERT INTO return_lines (return_id, line_id, quantity, amount) VALUES (?1, ?2, ?3, ?4)")?;
    for ((line_id, quantity), amount) in plan.goods.iter().zip(&plan.back.lines) {
        insert.execute(params![id, line_id, quantity.thousandths(), amount])?;
    }
    let mut insert =
        tx.prepare_cached("INSERT INTO return_taxes (return_id, rate, net, tax) VALUES (?1, ?2, ?3, ?4)")?;
    for group in &plan.back.taxes {
        insert.execute(params![id, group.rate.thousandths(), group.net, group.tax])?;
    }
    Ok(())
}
