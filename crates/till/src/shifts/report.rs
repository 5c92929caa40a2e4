//! The report of a shift: X while it runs, Z at its end. Made of what is in the file and of nothing else, so that it agrees with the sum over
//! the sales of the shift.

use super::{
    Shift,
    drawer::{CountMade, counts},
    expected,
};
use crate::{
    OperationQuery, State, TenderKind, TillError, audit, audit::Signature, columns, operations, settings,
    tenders::TenderState,
};
use checkout::Rate;
use jiff::{Timestamp, civil::Date};
use protocol::{Currency, Key, Kind};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

/// Entries of the audit that tell of a sale that was dropped, or emptied.
const DROPS: [&str; 3] = ["sale-cleared", "sale-dropped", "sale-emptied"];
/// Of a drawer that was opened without a sale.
const NO_SALES: [&str; 1] = ["drawer-opened"];

/// Which report it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReportKind {
    /// Of a shift that runs.
    X,
    /// Of a shift that was closed: kept whole, and never changed.
    Z,
}

/// The report of a shift. Amounts are minor units of its currency, sums are over the sales that completed in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShiftReport {
    /// X or Z.
    pub kind: ReportKind,
    /// The number of the shift, and so of its Z report.
    pub number: i64,
    /// The shop's name at that time.
    pub shop_name: String,
    /// The till's name at that time.
    pub till_name: String,
    /// The currency of every amount, but where another is named.
    pub currency: Currency,
    /// The day that the shift counts for.
    pub business_day: Date,
    /// The IANA name of the shop's zone; none for the machine's.
    pub time_zone: Option<String>,
    /// When the shift was opened.
    pub opened_at: Timestamp,
    /// Who opened it.
    pub opened_by: String,
    /// When this report was made: for a Z report, when the shift was closed.
    pub made_at: Timestamp,
    /// Who made it.
    pub made_by: String,
    /// Sales that completed.
    pub sales: i64,
    /// Their goods without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
    /// Their tips.
    pub tips: i64,
    /// What they came to.
    pub total: i64,
    /// What cash rounding added, or with a minus took away. Total and rounding are what the tenders paid.
    pub rounding: i64,
    /// What paid, by its kind.
    pub tenders: Vec<TenderTotal>,
    /// The tax, lowest rate first.
    pub taxes: Vec<TaxTotal>,
    /// What was taken off lines.
    pub line_discounts: i64,
    /// What was taken off whole sales.
    pub sale_discounts: i64,
    /// Refunds to cards that the bank approved in this shift.
    pub card_refunds: Total,
    /// Refunds in cash.
    pub cash_refunds: Total,
    /// The drawer.
    pub drawer: Drawer,
    /// Sales that were dropped or emptied.
    pub drops: i64,
    /// Lines sold at another price than the catalogue's.
    pub overrides: i64,
    /// How often the drawer was opened without a sale.
    pub no_sales: i64,
    /// Sales in other currencies, which are in no sum above.
    pub other_currencies: Vec<OtherCurrency>,
    /// What had no final result when the report was made, of this shift and of earlier ones. It goes on by itself.
    pub unsettled: Vec<Unsettled>,
    /// The last entry of the audit before the report.
    pub audit_seq: i64,
    /// Its hash: on paper, it shows an audit that was made anew.
    pub audit_hash: String,
}

/// How many, and what together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// How many.
    pub count: i64,
    /// In minor units.
    pub amount: i64,
}

/// What one kind of tender paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenderTotal {
    /// Its kind.
    pub kind: TenderKind,
    /// How many there were.
    pub count: i64,
    /// What stayed of them.
    pub amount: i64,
}

/// One rate of the tax table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaxTotal {
    /// Percent, as the shortest decimal.
    pub rate: String,
    /// Goods of this rate without tax.
    pub net: i64,
    /// Their tax.
    pub tax: i64,
}

/// The drawer of a shift, in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drawer {
    /// What it began with.
    pub float_amount: i64,
    /// Cash of the sales that completed in this shift.
    pub cash_of_sales: i64,
    /// Cash that was taken in this shift for sales that did not complete in it: their card was still open.
    pub cash_of_open_sales: i64,
    /// Of the cash of this shift's sales, what was taken in earlier shifts and lies in their drawers.
    pub cash_of_earlier_shifts: i64,
    /// What was put in.
    pub cash_in: i64,
    /// What was taken out.
    pub cash_out: i64,
    /// What was given back.
    pub cash_refunds: i64,
    /// What it should hold: float, cash of sales and of open ones, less that of earlier shifts, with what was put in, taken out and given back.
    pub expected: i64,
    /// What was counted last; none while the shift runs.
    pub counted: Option<i64>,
    /// What was too much, or with a minus missing.
    pub difference: Option<i64>,
    /// How often it was counted.
    pub counts: i64,
    /// Each of these counts, the first one first: who counts again once the difference was told makes it go away, and it shows here.
    #[serde(default)]
    pub each_count: Vec<CountMade>,
}

/// Sales in another currency than the shift's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherCurrency {
    /// The currency.
    pub currency: Currency,
    /// How many.
    pub sales: i64,
    /// What they came to, in its minor units.
    pub total: i64,
}

/// An operation without a final result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsettled {
    /// Its key.
    pub key: Key,
    /// The key's short form.
    pub short_code: String,
    /// Payment or refund.
    pub kind: Kind,
    /// How far it is.
    pub state: State,
    /// In minor units of its currency.
    pub amount: i64,
    /// Its currency.
    pub currency: Currency,
    /// The number of its sale.
    pub sale_number: Option<i64>,
    /// When it was clicked.
    pub created_at: Timestamp,
}

/// Makes the report of a shift as it stands.
pub(super) fn make(
    conn: &Connection,
    shift: &Shift,
    signature: &Signature,
    kind: ReportKind,
) -> Result<ShiftReport, TillError> {
    let settings = settings::read(conn)?;
    let sums = sums(conn, shift)?;
    let tenders = tenders(conn, shift)?;
    let cash_of_sales = tenders.iter().filter(|sum| sum.kind == TenderKind::Cash).map(|sum| sum.amount).sum();
    let (line_discounts, sale_discounts) = discounts(conn, shift)?;
    let drawer = drawer(conn, shift, cash_of_sales)?;
    let entries = |what: &[&str]| entries(conn, shift, what);
    let (audit_seq, audit_hash) = audit::head(conn)?;
    Ok(ShiftReport {
        kind,
        number: shift.number,
        shop_name: settings.shop_name.clone(),
        till_name: settings.till_name.clone(),
        currency: shift.currency,
        business_day: shift.business_day,
        time_zone: settings.time_zone,
        opened_at: shift.opened_at,
        opened_by: shift.opened_by.clone(),
        made_at: signature.at,
        made_by: signature.who().to_owned(),
        sales: sums.sales,
        net: sums.net,
        tax: sums.tax,
        tips: sums.tips,
        total: sums.total,
        rounding: sums.rounding,
        tenders,
        taxes: taxes(conn, shift)?,
        line_discounts,
        sale_discounts,
        card_refunds: card_refunds(conn, shift)?,
        cash_refunds: moved(conn, shift, "refund")?,
        drawer,
        drops: entries(&DROPS)?,
        overrides: overrides(conn, shift)?,
        no_sales: entries(&NO_SALES)?,
        other_currencies: other_currencies(conn, shift)?,
        unsettled: unsettled(conn)?,
        audit_seq,
        audit_hash: super::hex(&audit_hash),
    })
}

struct Sums {
    sales: i64,
    net: i64,
    tax: i64,
    tips: i64,
    total: i64,
    rounding: i64,
}

/// The sales of the shift, in its currency. SQLite's `sum` of integers fails where it does not fit.
fn sums(conn: &Connection, shift: &Shift) -> Result<Sums, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(net), 0), coalesce(sum(tax), 0), coalesce(sum(tip), 0), coalesce(sum(total), 0),
                 coalesce(sum(rounding), 0)
             FROM sales WHERE shift = ?1 AND shift > 0 AND currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency.code()], |row| {
            Ok(Sums {
                sales: row.get(0)?,
                net: row.get(1)?,
                tax: row.get(2)?,
                tips: row.get(3)?,
                total: row.get(4)?,
                rounding: row.get(5)?,
            })
        })?)
}

fn tenders(conn: &Connection, shift: &Shift) -> Result<Vec<TenderTotal>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT tenders.kind, count(*), sum(tenders.amount) FROM sales JOIN tenders ON tenders.sale_id = sales.id
         WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2 AND tenders.state IN (?3, ?4)
         GROUP BY tenders.kind ORDER BY tenders.kind",
    )?;
    let paid = [TenderState::Approved.as_str(), TenderState::Taken.as_str()];
    let rows = statement.query_map(params![shift.number, shift.currency.code(), paid[0], paid[1]], |row| {
        Ok(TenderTotal { kind: columns::word(row, 0, TenderKind::read)?, count: row.get(1)?, amount: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn taxes(conn: &Connection, shift: &Shift) -> Result<Vec<TaxTotal>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT sale_taxes.rate, sum(sale_taxes.net), sum(sale_taxes.tax)
         FROM sales JOIN sale_taxes ON sale_taxes.sale_id = sales.id
         WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2 GROUP BY sale_taxes.rate ORDER BY sale_taxes.rate",
    )?;
    let rows = statement.query_map(params![shift.number, shift.currency.code()], |row| {
        let rate: Rate = columns::rate(row, 0)?;
        Ok(TaxTotal { rate: rate.to_string(), net: row.get(1)?, tax: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn discounts(conn: &Connection, shift: &Shift) -> Result<(i64, i64), TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT coalesce(sum(lines.discount), 0), coalesce(sum(lines.sale_discount), 0)
             FROM sales JOIN lines ON lines.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency.code()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn overrides(conn: &Connection, shift: &Shift) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT count(*) FROM sales JOIN lines ON lines.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND lines.list_price IS NOT NULL",
        )?
        .query_row([shift.number], |row| row.get(0))?)
}

fn card_refunds(conn: &Connection, shift: &Shift) -> Result<Total, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(refunds.amount), 0)
             FROM refunds JOIN tenders ON tenders.id = refunds.tender_id JOIN sales ON sales.id = tenders.sale_id
             WHERE refunds.shift = ?1 AND refunds.shift > 0 AND sales.currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency.code()], |row| {
            Ok(Total { count: row.get(0)?, amount: row.get(1)? })
        })?)
}

/// What went through the drawer beside the sales, of one kind.
fn moved(conn: &Connection, shift: &Shift, kind: &str) -> Result<Total, TillError> {
    Ok(conn
        .prepare_cached("SELECT count(*), coalesce(sum(amount), 0) FROM drawer_moves WHERE shift = ?1 AND kind = ?2")?
        .query_row(params![shift.number, kind], |row| Ok(Total { count: row.get(0)?, amount: row.get(1)? }))?)
}

fn drawer(conn: &Connection, shift: &Shift, cash_of_sales: i64) -> Result<Drawer, TillError> {
    let sum = |sql: &str| -> Result<i64, TillError> {
        Ok(conn.prepare_cached(sql)?.query_row([shift.number], |row| row.get(0))?)
    };
    Ok(Drawer {
        float_amount: shift.float_amount,
        cash_of_sales,
        cash_of_open_sales: sum(
            "SELECT coalesce(sum(tenders.amount), 0) FROM tenders JOIN sales ON sales.id = tenders.sale_id
             WHERE tenders.shift = ?1 AND tenders.shift > 0 AND sales.shift IS NOT tenders.shift",
        )?,
        cash_of_earlier_shifts: sum(
            "SELECT coalesce(sum(tenders.amount), 0) FROM sales JOIN tenders ON tenders.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND tenders.kind = 'cash' AND tenders.shift IS NOT sales.shift",
        )?,
        cash_in: moved(conn, shift, "in")?.amount,
        cash_out: moved(conn, shift, "out")?.amount,
        cash_refunds: moved(conn, shift, "refund")?.amount,
        expected: expected(conn, shift.number)?,
        counted: None,
        difference: None,
        counts: sum("SELECT count(*) FROM drawer_counts WHERE shift = ?1")?,
        each_count: counts(conn, shift.number)?,
    })
}

/// How many entries of these kinds the audit has since the shift was opened.
fn entries(conn: &Connection, shift: &Shift, what: &[&str]) -> Result<i64, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT count(*) FROM audit WHERE seq > (SELECT opened_seq FROM shifts WHERE number = ?1) AND what = ?2",
    )?;
    what.iter().try_fold(0, |sum, what| {
        let found: i64 = statement.query_row(params![shift.number, what], |row| row.get(0))?;
        Ok(sum + found)
    })
}

fn other_currencies(conn: &Connection, shift: &Shift) -> Result<Vec<OtherCurrency>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT currency, count(*), sum(total) FROM sales WHERE shift = ?1 AND shift > 0 AND currency <> ?2
         GROUP BY currency ORDER BY currency",
    )?;
    let rows = statement.query_map(params![shift.number, shift.currency.code()], |row| {
        Ok(OtherCurrency { currency: columns::currency(row, 0)?, sales: row.get(1)?, total: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Everything without a final result, the oldest first.
fn unsettled(conn: &Connection) -> Result<Vec<Unsettled>, TillError> {
    let mut found = Vec::new();
    for state in [State::Saved, State::Sending, State::Unknown, State::NeedsAttention] {
        let mut query = OperationQuery { state: Some(state), oldest_first: true, ..OperationQuery::default() };
        loop {
            let page = operations::list(conn, &query)?;
            query.after = page.operations.last().map(|operation| operation.seq);
            found.extend(page.operations);
            if !page.more {
                break;
            }
        }
    }
    found.sort_by_key(|operation| operation.seq);
    Ok(found
        .into_iter()
        .map(|operation| Unsettled {
            key: operation.key,
            short_code: operation.short_code,
            kind: operation.kind,
            state: operation.state,
            amount: operation.amount,
            currency: operation.currency,
            sale_number: operation.sale_number,
            created_at: operation.created_at,
        })
        .collect())
}
