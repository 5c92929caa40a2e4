//! Each sale: priced anew, its parts added up, its tenders against what they paid and against their operations.

use super::{Notes, late, money::Money, operations, returns, voids};
use crate::{TenderState, TillError};
use checkout::{Cart, CashRounding, CashRule, Discount, Line, Quantity, Rate, Tip};
use rusqlite::{CachedStatement, Connection, Row};

/// A sale as its rows have it.
pub(super) struct Facts {
    pub(super) id: String,
    pub(super) subject: String,
    pub(super) state: String,
    pub(super) currency: String,
    pub(super) prices_include_tax: bool,
    pub(super) cash_step: i64,
    pub(super) cash_rounding: String,
    number: Option<i64>,
    /// Net, tax, tip, discount, total.
    pub(super) frozen: Option<[i64; 5]>,
    rounding: Option<i64>,
    receipt_number: Option<i64>,
    completed_at: Option<i64>,
    pub(super) voided_at: Option<i64>,
}

fn facts(row: &Row<'_>) -> rusqlite::Result<Facts> {
    let id: String = row.get(0)?;
    let number: Option<i64> = row.get(5)?;
    let sums: [Option<i64>; 5] = [row.get(6)?, row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?];
    Ok(Facts {
        subject: number.map_or_else(|| format!("sale {id}"), |number| format!("sale {number}")),
        id,
        state: row.get(1)?,
        currency: row.get(2)?,
        prices_include_tax: row.get(3)?,
        cash_step: row.get(4)?,
        number,
        frozen: match sums {
            [Some(net), Some(tax), Some(tip), Some(discount), Some(total)] => Some([net, tax, tip, discount, total]),
            _ => None,
        },
        rounding: row.get(11)?,
        receipt_number: row.get(12)?,
        completed_at: row.get(13)?,
        cash_rounding: row.get(14)?,
        voided_at: row.get(15)?,
    })
}

/// A line as its row has it: price, quantity, rate, and gross, discount, its share of the sale's, total.
pub(super) struct LineFacts {
    pub(super) id: i64,
    unit_price: i64,
    pub(super) quantity: i64,
    pub(super) tax_rate: i64,
    pub(super) frozen: Option<[i64; 4]>,
}

/// A tender as its row has it.
pub(super) struct TenderFacts {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) amount: i64,
    tendered: Option<i64>,
    change: Option<i64>,
    /// Whether it is settled since, where it was taken offline.
    pub(super) taken_offline: Option<bool>,
}

/// Looks at each sale, and gives their number.
pub(super) fn check_all(conn: &Connection, notes: &mut Notes<'_>) -> Result<u64, TillError> {
    let of = conn.query_row("SELECT count(*) FROM sales", [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    let mut statement = conn.prepare(
        "SELECT id, state, currency, prices_include_tax, cash_step, number, net, tax, tip, discount, total, rounding,
             receipt_number, completed_at, cash_rounding, voided_at
         FROM sales ORDER BY rowid",
    )?;
    let mut parts = Parts::prepare(conn)?;
    let mut rows = statement.query([])?;
    let mut done = 0;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        if let Some(facts) = notes.legible(&format!("sale {id}"), facts(row))? {
            let looked = check(conn, &facts, &mut parts, notes);
            notes.part(&facts.subject, looked)?;
        }
        done += 1;
        notes.progress(done, of);
    }
    Ok(done)
}

struct Parts<'c> {
    lines: CachedStatement<'c>,
    taxes: CachedStatement<'c>,
    tenders: CachedStatement<'c>,
    late: CachedStatement<'c>,
}

impl<'c> Parts<'c> {
    fn prepare(conn: &'c Connection) -> Result<Self, TillError> {
        Ok(Self {
            lines: conn.prepare_cached(
                "SELECT unit_price, quantity, tax_rate, gross, discount, sale_discount, total, id
                 FROM lines WHERE sale_id = ?1 ORDER BY id",
            )?,
            taxes: conn.prepare_cached("SELECT rate, net, tax FROM sale_taxes WHERE sale_id = ?1 ORDER BY rate")?,
            tenders: conn.prepare_cached(
                "SELECT tenders.id, kind, state, amount, tendered, change,
                     CASE WHEN taken_offline.at IS NOT NULL THEN taken_offline.settled_at IS NOT NULL END
                 FROM tenders LEFT JOIN taken_offline ON taken_offline.tender_id = tenders.id
                 WHERE sale_id = ?1 ORDER BY position",
            )?,
            late: late::prepare(conn)?,
        })
    }

    fn lines(&mut self, sale: &str) -> Result<Vec<LineFacts>, TillError> {
        let rows = self.lines.query_map([sale], |row| {
            let sums: [Option<i64>; 4] = [row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
            Ok(LineFacts {
                id: row.get(7)?,
                unit_price: row.get(0)?,
                quantity: row.get(1)?,
                tax_rate: row.get(2)?,
                frozen: match sums {
                    [Some(gross), Some(discount), Some(sale_discount), Some(total)] => {
                        Some([gross, discount, sale_discount, total])
                    }
                    _ => None,
                },
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn taxes(&mut self, sale: &str) -> Result<Vec<[i64; 3]>, TillError> {
        let rows = self.taxes.query_map([sale], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn tenders(&mut self, sale: &str) -> Result<Vec<TenderFacts>, TillError> {
        let rows = self.tenders.query_map([sale], |row| {
            Ok(TenderFacts {
                id: row.get(0)?,
                kind: row.get(1)?,
                state: row.get(2)?,
                amount: row.get(3)?,
                tendered: row.get(4)?,
                change: row.get(5)?,
                taken_offline: row.get(6)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn check(conn: &Connection, sale: &Facts, parts: &mut Parts<'_>, notes: &mut Notes<'_>) -> Result<(), TillError> {
    check_state(sale, notes);
    let tenders = parts.tenders(&sale.id)?;
    let late = late::of_sale(&mut parts.late, &sale.id)?;
    let mut covered = late::check(conn, &late, &tenders, sale, notes)?;
    for tender in &tenders {
        let subject = format!("tender {} of {}", tender.id, sale.subject);
        match tender.kind.as_str() {
            "card" => operations::check_tender(conn, tender, &sale.currency, &subject, notes)?,
            _ => check_cash(tender, Money(&sale.currency), &subject, notes),
        }
        let state = TenderState::read(&tender.state);
        if state.is_some_and(TenderState::counts) {
            covered += i128::from(tender.amount);
            let has_paid = state.is_some_and(TenderState::paid);
            if sale.state == "completed" && !has_paid && !late::may_be_open(tender, &late) {
                let what =
                    format!("its tender {} is {}, and its goods were not taken offline", tender.id, tender.state);
                notes.found("sale-paid", &sale.subject, what);
            }
        }
    }
    voids::check(conn, sale, &tenders, notes)?;
    let Some(frozen) = sale.frozen else {
        let waits = tenders.iter().filter_map(|tender| TenderState::read(&tender.state)).any(TenderState::counts);
        if waits {
            notes.found("sale-state", &sale.subject, "it is open, and a tender of it pays or may have paid");
        }
        return Ok(());
    };
    let (lines, taxes) = (parts.lines(&sale.id)?, parts.taxes(&sale.id)?);
    check_figures(sale, frozen, &lines, &taxes, notes);
    if sale.state == "completed" {
        check_paid(sale, frozen[4], covered, &tenders, notes);
    }
    let rounding = late.iter().map(|late| i128::from(late.rounding)).sum::<i128>();
    let paid = returns::Paid { tenders: &tenders, rounding: rounding + i128::from(sale.rounding.unwrap_or_default()) };
    returns::check(conn, sale, &lines, &taxes, &paid, notes)
}

fn check_state(sale: &Facts, notes: &mut Notes<'_>) {
    let mut wrong = |what: &str| notes.found("sale-state", &sale.subject, what);
    if CashRounding::parse(&sale.cash_rounding).is_none() || protocol::Currency::parse(&sale.currency).is_err() {
        wrong("its currency, or how its cash is rounded, is none that there is");
    }
    let is_completed = sale.state == "completed";
    match sale.state.as_str() {
        "open" if sale.frozen.is_some() => wrong("it is open, and its figures are frozen"),
        "paying" | "completed" if sale.frozen.is_none() => {
            wrong("it is under payment or paid, and its figures are not frozen")
        }
        "paying" | "completed" if sale.number.is_none() => wrong("it is under payment or paid, and has no number"),
        "open" | "paying" | "completed" => {}
        _ => wrong("its state is none that there is"),
    }
    if [sale.receipt_number.is_some(), sale.rounding.is_some(), sale.completed_at.is_some()] != [is_completed; 3] {
        wrong("receipt number, rounding and time of completion belong to a completed sale, and to no other");
    }
}

/// Prices the sale anew, out of what was rung up and what was taken off, and compares each figure.
fn check_figures(
    sale: &Facts,
    [net, tax, tip, discount, total]: [i64; 5],
    lines: &[LineFacts],
    taxes: &[[i64; 3]],
    notes: &mut Notes<'_>,
) {
    if lines.is_empty() {
        notes.found("sale-lines", &sale.subject, "it has no lines");
        return;
    }
    let Some(frozen) = lines.iter().map(|line| line.frozen).collect::<Option<Vec<_>>>() else {
        notes.found("sale-lines", &sale.subject, "a line of it is not frozen");
        return;
    };
    let sum = |at: usize| frozen.iter().map(|line| i128::from(line[at])).sum::<i128>();
    let goods = i128::from(net) + if sale.prices_include_tax { i128::from(tax) } else { 0 };
    let money = Money(&sale.currency);
    let mut differs = |code: &'static str, what: &str, is: i128, should: i128| {
        if is != should {
            notes.found(code, &sale.subject, format!("{what} {}, and should be {}", money.of(is), money.of(should)));
        }
    };
    differs("sale-lines", "its lines come to", sum(3), goods);
    differs("sale-discount", "the shares of its discount come to", sum(2), discount.into());
    differs("sale-total", "its total is", total.into(), i128::from(net) + i128::from(tax) + i128::from(tip));
    differs("sale-taxes", "the net of its tax table is", taxes.iter().map(|row| i128::from(row[1])).sum(), net.into());
    differs("sale-taxes", "the tax of its tax table is", taxes.iter().map(|row| i128::from(row[2])).sum(), tax.into());
    match priced(sale, lines, &frozen, tip, discount) {
        Err(why) => notes.found("sale-price", &sale.subject, format!("it can't be priced: {why}")),
        Ok(priced) => {
            for (at, (is, should)) in frozen.iter().zip(&priced.lines).enumerate() {
                let should = [should.gross, should.discount, should.sale_discount, should.total];
                if *is != should {
                    let told = |figures| money.named(["gross", "discount", "share of the sale's", "total"], figures);
                    let what = format!("line {} has {}, and should have {}", at + 1, told(*is), told(should));
                    notes.found("line-figures", &sale.subject, what);
                }
            }
            let table: Vec<_> =
                priced.taxes.iter().map(|group| [group.rate.thousandths(), group.net, group.tax]).collect();
            if table != taxes {
                let what = format!("its tax table is {}, and should be {}", money.taxes(taxes), money.taxes(&table));
                notes.found("tax-table", &sale.subject, what);
            }
            if priced.total != total {
                let what = format!("its total is {}, and the engine says {}", money.of(total), money.of(priced.total));
                notes.found("sale-price", &sale.subject, what);
            }
        }
    }
}

fn priced(
    sale: &Facts,
    lines: &[LineFacts],
    frozen: &[[i64; 4]],
    tip: i64,
    discount: i64,
) -> Result<checkout::Priced, String> {
    let off = |amount: i64| (amount != 0).then_some(Discount::Amount(amount));
    let lines = lines.iter().zip(frozen).map(|(line, frozen)| {
        Ok(Line {
            unit_price: line.unit_price,
            quantity: Quantity::from_thousandths(line.quantity).map_err(|error| error.to_string())?,
            tax_rate: Rate::from_thousandths(line.tax_rate).map_err(|error| error.to_string())?,
            discount: off(frozen[1]),
        })
    });
    let currency = protocol::Currency::parse(&sale.currency).map_err(|error| error.to_string())?;
    let cart = Cart {
        prices_include_tax: sale.prices_include_tax,
        // Of no weight: there are no tenders in it.
        cash: CashRule::new(sale.cash_step, CashRounding::Nearest).unwrap_or(CashRule::EXACT),
        lines: lines.collect::<Result<_, String>>()?,
        discount: off(discount),
        tip: (tip != 0).then_some(Tip::Amount(tip)),
        ..Cart::new(crate::sale::engine_currency(currency).map_err(|error| error.to_string())?)
    };
    checkout::price(&cart).map_err(|error| error.to_string())
}

fn check_paid(sale: &Facts, total: i64, paid: i128, tenders: &[TenderFacts], notes: &mut Notes<'_>) {
    let (rounding, money) = (sale.rounding.unwrap_or_default(), Money(&sale.currency));
    let due = i128::from(total) + i128::from(rounding);
    if paid != due {
        let what = format!("its tenders come to {}, and total and rounding to {}", money.of(paid), money.of(due));
        notes.found("sale-paid", &sale.subject, what);
    }
    let in_cash = tenders.iter().any(|tender| tender.kind == "cash");
    if rounding != 0 && (!in_cash || i128::from(rounding).abs() >= i128::from(sale.cash_step)) {
        let (rounding, step) = (money.of(rounding), money.of(sale.cash_step));
        let what = format!("its rounding is {rounding}: only cash is rounded, and by less than a step of {step}");
        notes.found("sale-rounding", &sale.subject, what);
    }
}

fn check_cash(tender: &TenderFacts, money: Money<'_>, subject: &str, notes: &mut Notes<'_>) {
    let back = tender.tendered.zip(tender.change).map(|(tendered, change)| i128::from(tendered) - i128::from(change));
    if tender.kind != "cash" || tender.state != "taken" {
        notes.found("tender-state", subject, format!("it is {} and {}", tender.kind, tender.state));
    } else if back != Some(tender.amount.into()) {
        let handed = back.map_or_else(|| "nothing".to_owned(), |back| money.of(back));
        let what =
            format!("what was handed over, less the change, is {handed}, and its amount {}", money.of(tender.amount));
        notes.found("tender-amount", subject, what);
    }
}
