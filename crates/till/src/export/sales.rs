//! The table of sales: a row for each sale, and one for each thing that became of it, so that the sums of a shift's rows are the figures of
//! its Z report.

use super::{Cell, PAGE};
use crate::{
    LateDecline, LegState, Return, ReturnLeg, ReturnState, Sale, SaleState, SaleVoid, TenderKind, TillError,
    amounts::format_amount, columns, late, refunds, returns, sale, voids,
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use std::io;
use uuid::Uuid;

/// A sale with all that became of it, as a JSON document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SaleDocument {
    #[serde(flatten)]
    pub(super) sale: Sale,
    /// The shift in which it completed.
    pub(super) shift: Option<i64>,
    /// Goods that came back.
    pub(super) returns: Vec<InShift<Return>>,
    /// How it was given up after a part was paid.
    pub(super) void: Option<InShift<SaleVoid>>,
    /// Money alone that goes back to a card.
    pub(super) refunds: Vec<InShift<ReturnLeg>>,
    /// What was taken offline and did not pay.
    pub(super) late_declines: Vec<LateDecline>,
    #[serde(skip)]
    rows: Vec<Entry>,
}

/// Something with the shift that it belongs to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InShift<T> {
    #[serde(flatten)]
    what: T,
    shift: Option<i64>,
}

/// Columns of the table.
pub(crate) const SALES: [&str; 23] = [
    "kind",
    "shift",
    "number",
    "receipt_number",
    "state",
    "created_at",
    "completed_at",
    "currency",
    "lines",
    "net",
    "tax",
    "tip",
    "line_discounts",
    "discount",
    "total",
    "rounding",
    "paid_by_card",
    "paid_in_cash",
    "change",
    "due",
    "reason",
    "sale_id",
    "id",
];

/// What was sold or came back, below zero then. Minor units.
#[derive(Debug, Clone, Copy)]
struct Goods {
    lines: usize,
    net: i64,
    tax: i64,
    tip: i64,
    line_discounts: i64,
    discount: i64,
    total: i64,
}

/// A row of the table. Minor units; what goes back is below zero.
#[derive(Debug)]
struct Entry {
    kind: &'static str,
    id: String,
    shift: Option<i64>,
    receipt_number: Option<i64>,
    state: &'static str,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
    goods: Option<Goods>,
    rounding: i64,
    by_card: i64,
    in_cash: i64,
    change: i64,
    due: i64,
    reason: Option<String>,
}

impl Entry {
    /// Of money that moved, or was to, when something happened.
    fn of(kind: &'static str, id: String, shift: Option<i64>, at: Timestamp) -> Self {
        Self {
            kind,
            id,
            shift,
            receipt_number: None,
            state: "done",
            created_at: at,
            completed_at: Some(at),
            goods: None,
            rounding: 0,
            by_card: 0,
            in_cash: 0,
            change: 0,
            due: 0,
            reason: None,
        }
    }

    fn cells(&self, sale: &Sale) -> [Cell<'_>; SALES.len()] {
        let amount = |minor_units| Cell::Plain(format_amount(minor_units, sale.currency));
        let of_goods =
            |figure: fn(&Goods) -> i64| self.goods.as_ref().map_or(Cell::Nothing, |goods| amount(figure(goods)));
        [
            Cell::Plain(self.kind.to_owned()),
            Cell::number(self.shift),
            Cell::number(sale.number),
            Cell::number(self.receipt_number),
            Cell::Plain(self.state.to_owned()),
            Cell::time(Some(self.created_at)),
            Cell::time(self.completed_at),
            Cell::Plain(sale.currency.code().to_owned()),
            self.goods.as_ref().map_or(Cell::Nothing, |goods| Cell::Plain(goods.lines.to_string())),
            of_goods(|goods| goods.net),
            of_goods(|goods| goods.tax),
            of_goods(|goods| goods.tip),
            of_goods(|goods| goods.line_discounts),
            of_goods(|goods| goods.discount),
            of_goods(|goods| goods.total),
            amount(self.rounding),
            amount(self.by_card),
            amount(self.in_cash),
            amount(self.change),
            amount(self.due),
            Cell::text(self.reason.as_deref()),
            Cell::Plain(sale.id.to_string()),
            Cell::Plain(self.id.clone()),
        ]
    }
}

impl SaleDocument {
    /// Its rows: the sale, and what became of it.
    pub(super) fn table(&self) -> impl Iterator<Item = [Cell<'_>; SALES.len()]> {
        self.rows.iter().map(|row| row.cells(&self.sale))
    }
}

/// Hands each sale that was under payment to `write`, by its number.
pub(super) fn each(
    conn: &Connection,
    mut write: impl FnMut(&SaleDocument) -> io::Result<()>,
) -> Result<u64, TillError> {
    let (mut after, mut written) = (0_i64, 0);
    loop {
        let page: Vec<(i64, String)> = conn
            .prepare_cached(
                "SELECT number, id FROM sales WHERE number > ?1 AND state <> 'open' ORDER BY number LIMIT ?2",
            )?
            .query_map(params![after, PAGE], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let Some((last, _)) = page.last() else { return Ok(written) };
        after = *last;
        for (_, id) in &page {
            let id = Uuid::try_parse(id).map_err(|_| TillError::Internal(format!("{id} is no id of a sale")))?;
            write(&document(conn, id)?).map_err(TillError::Export)?;
            written += 1;
        }
    }
}

fn document(conn: &Connection, id: Uuid) -> Result<SaleDocument, TillError> {
    let sale = sale::read(conn, id)?;
    let shift = shift_of(conn, "sales", id)?;
    let returned: Vec<_> = in_shift(conn, "returns", returns::of_sale(conn, id)?, |made| made.id)?;
    let void = in_shift(conn, "voids", voids::of_sale(conn, id)?, |void| void.id)?.pop();
    let (mut alone, mut late_declines) = (Vec::new(), Vec::new());
    for tender in &sale.tenders {
        alone.extend(refunds::beside_legs(conn, tender.id)?);
        if tender.taken_offline_at.is_some() {
            // How a customer can be reached is for who collects it, and in no export.
            late_declines.extend(late::by_tender(conn, tender.id)?.map(|late| LateDecline { contact: None, ..late }));
        }
    }
    let alone: Vec<_> = in_shift(conn, "refunds", alone, |refund| refund.id)?;
    let mut rows = vec![sold(conn, &sale, shift)?];
    rows.extend(returned.iter().map(|made| came_back(&made.what, made.shift)));
    rows.extend(void.iter().map(|void| given_up(&void.what, void.shift)));
    for refund in &alone {
        rows.push(money_alone(conn, &refund.what, refund.shift)?);
    }
    rows.extend(paid_out(conn, id)?);
    rows.extend(declined_late(conn, id)?);
    Ok(SaleDocument { sale, shift, returns: returned, void, refunds: alone, late_declines, rows })
}

fn in_shift<T>(
    conn: &Connection,
    table: &str,
    all: impl IntoIterator<Item = T>,
    id: impl Fn(&T) -> Uuid,
) -> Result<Vec<InShift<T>>, TillError> {
    let one = |what: T| Ok(InShift { shift: shift_of(conn, table, id(&what))?, what });
    all.into_iter().map(one).collect()
}

/// The shift that a row belongs to; none of what was before the first one, or is not over.
fn shift_of(conn: &Connection, table: &str, id: Uuid) -> Result<Option<i64>, TillError> {
    let shift: Option<i64> = conn
        .prepare_cached(&format!("SELECT shift FROM {table} WHERE id = ?1"))?
        .query_row([id.to_string()], |row| row.get(0))?;
    Ok(numbered(shift))
}

pub(super) fn numbered(shift: Option<i64>) -> Option<i64> {
    shift.filter(|shift| *shift > 0)
}

/// A sale: what was sold once it is completed, and what paid. What was accepted offline is among that, whatever the bank says of it later, and
/// what is collected in its place is not, as on the report of the shift.
fn sold(conn: &Connection, sale: &Sale, shift: Option<i64>) -> Result<Entry, TillError> {
    let is_completed = sale.state == SaleState::Completed;
    let counted = match sale.state {
        SaleState::Completed => {
            "(state NOT IN ('declined', 'cancelled') OR EXISTS (SELECT 1 FROM late_declines WHERE late_declines.tender_id = tenders.id))"
        }
        // All of that goes back by the void.
        SaleState::Voided => {
            "(state NOT IN ('declined', 'cancelled')
                 OR EXISTS (SELECT 1 FROM refunds WHERE refunds.tender_id = tenders.id AND refunds.void_id IS NOT NULL))"
        }
        _ => "state IN ('approved', 'taken')",
    };
    let (by_card, in_cash, change) = conn
        .prepare_cached(&format!(
            "SELECT coalesce(sum(amount) FILTER (WHERE kind = 'card'), 0), coalesce(sum(amount) FILTER (WHERE kind = 'cash'), 0),
                 coalesce(sum(change), 0)
             FROM tenders WHERE sale_id = ?1 AND collects IS NULL AND {counted}"
        ))?
        .query_row([sale.id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    // That of a late decline which was collected in cash is in its own row.
    let rounding: Option<i64> = conn
        .prepare_cached("SELECT rounding FROM sales WHERE id = ?1")?
        .query_row([sale.id.to_string()], |row| row.get(0))?;
    let goods = Goods {
        lines: sale.lines.len(),
        net: sale.net,
        tax: sale.tax,
        tip: sale.tip,
        line_discounts: sale.lines.iter().map(|line| line.discount - line.sale_discount).sum(),
        discount: sale.discount,
        total: sale.total,
    };
    Ok(Entry {
        receipt_number: sale.receipt_number,
        state: sale.state.as_str(),
        completed_at: sale.completed_at,
        goods: is_completed.then_some(goods),
        rounding: rounding.unwrap_or_default(),
        by_card,
        in_cash,
        change,
        // What is owed of it later has a row of its own.
        due: if is_completed { 0 } else { sale.due },
        ..Entry::of("sale", sale.id.to_string(), shift, sale.created_at)
    })
}

const fn word(state: ReturnState) -> &'static str {
    match state {
        ReturnState::Done => "done",
        ReturnState::Settling => "settling",
        ReturnState::Owed => "owed",
        ReturnState::NeedsAttention => "needs_attention",
    }
}

/// What the first legs give back, whatever the bank says of them: what takes the place of one has a row of its own.
fn first_legs(legs: &[ReturnLeg], kind: TenderKind) -> i64 {
    legs.iter().filter(|leg| leg.kind == kind && leg.replaces.is_none()).map(|leg| leg.amount).sum()
}

fn came_back(made: &Return, shift: Option<i64>) -> Entry {
    let goods = Goods {
        lines: made.lines.len(),
        net: -made.net,
        tax: -made.tax,
        tip: -made.tip,
        line_discounts: 0,
        discount: 0,
        total: -made.total,
    };
    Entry {
        receipt_number: Some(made.receipt_number),
        state: word(made.state),
        goods: Some(goods),
        rounding: -made.rounding,
        by_card: -first_legs(&made.legs, TenderKind::Card),
        in_cash: -first_legs(&made.legs, TenderKind::Cash),
        reason: made.reason.clone(),
        ..Entry::of("return", made.id.to_string(), shift, made.created_at)
    }
}

fn given_up(void: &SaleVoid, shift: Option<i64>) -> Entry {
    Entry {
        state: word(void.state),
        by_card: -void.cards,
        in_cash: -void.cash,
        reason: void.reason.clone(),
        ..Entry::of("void", void.id.to_string(), shift, void.created_at)
    }
}

/// Money alone, which belongs to the shift in which the bank approves it.
fn money_alone(conn: &Connection, refund: &ReturnLeg, shift: Option<i64>) -> Result<Entry, TillError> {
    let (created_at, updated_at) = conn
        .prepare_cached("SELECT created_at, updated_at FROM refunds WHERE id = ?1")?
        .query_row([refund.id.to_string()], |row| Ok((columns::timestamp(row, 0)?, columns::timestamp(row, 1)?)))?;
    let state = match refund.state {
        LegState::Approved => "done",
        LegState::NeedsAttention => "needs_attention",
        _ => "settling",
    };
    Ok(Entry {
        state,
        completed_at: (state == "done").then_some(updated_at),
        by_card: -refund.amount,
        ..Entry::of("refund", refund.id.to_string(), shift, created_at)
    })
}

/// Cash in the place of a card's refund that did not go through.
fn paid_out(conn: &Connection, sale_id: Uuid) -> Result<Vec<Entry>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT cash.id, cash.shift, cash.created_at, cash.amount, cash.rounding
         FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
         CROSS JOIN cash_refunds AS cash ON cash.instead_of = refunds.id
         WHERE tenders.sale_id = ?1 ORDER BY cash.created_at, cash.id",
    )?;
    let rows = statement.query_map([sale_id.to_string()], |row| {
        let (amount, rounding): (i64, i64) = (row.get(3)?, row.get(4)?);
        Ok(Entry {
            rounding: -rounding,
            by_card: amount - rounding,
            in_cash: -amount,
            ..Entry::of("paid_out", row.get(0)?, numbered(row.get(1)?), columns::timestamp(row, 2)?)
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What was declined after its goods were gone, and how it ended.
fn declined_late(conn: &Connection, sale_id: Uuid) -> Result<Vec<Entry>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT late.tender_id, late.state, late.amount, late.returned, late.rounding, late.declined_at, late.declined_shift,
             late.ended_at, late.ended_shift, last.kind, coalesce(last.change, 0), late.reason
         FROM tenders CROSS JOIN late_declines AS late ON late.tender_id = tenders.id
         JOIN tenders AS last ON last.id = late.last_tender_id
         WHERE tenders.sale_id = ?1 ORDER BY late.seq",
    )?;
    let rows = statement.query_map([sale_id.to_string()], late_rows)?;
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn late_rows(row: &Row<'_>) -> rusqlite::Result<Vec<Entry>> {
    let (id, state): (String, String) = (row.get(0)?, row.get(1)?);
    let (amount, returned, rounding): (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let Some(declined_at) = columns::optional_timestamp(row, 5)? else { return Ok(Vec::new()) };
    let is_ended = matches!(state.as_str(), "settled" | "written_off");
    let declined = Entry {
        state: if is_ended { "done" } else { "open" },
        by_card: -(amount + returned),
        due: amount,
        ..Entry::of("late_decline", id.clone(), numbered(row.get(6)?), declined_at)
    };
    let mut entries = vec![declined];
    let (Some(ended_at), shift) = (columns::optional_timestamp(row, 7)?, numbered(row.get(8)?)) else {
        return Ok(entries);
    };
    let in_cash = row.get::<_, String>(9)? == "cash";
    match state.as_str() {
        "written_off" => {
            entries.push(Entry { due: -amount, reason: row.get(11)?, ..Entry::of("written_off", id, shift, ended_at) });
        }
        // What settled because its goods came back was collected by nobody.
        "settled" if amount > 0 => entries.push(Entry {
            rounding,
            by_card: if in_cash { 0 } else { amount },
            in_cash: if in_cash { amount + rounding } else { 0 },
            change: if in_cash { row.get(10)? } else { 0 },
            due: -amount,
            ..Entry::of("collected", id, shift, ended_at)
        }),
        _ => {}
    }
    Ok(entries)
}
