//! The sums of a shift's report, each over what the file holds of the shift. SQLite's `sum` of integers fails where it does not fit.

use super::{
    Shift,
    drawer::counts,
    expected,
    report::{Cards, Drawer, OtherCurrency, PartlyPaid, TaxTotal, TenderTotal, Total, Unsettled},
};
use crate::{OperationQuery, State, TenderKind, TillError, columns, operations};
use checkout::Rate;
use rusqlite::{Connection, params};

pub(super) struct Sums {
    pub(super) sales: i64,
    pub(super) net: i64,
    pub(super) tax: i64,
    pub(super) tips: i64,
    pub(super) total: i64,
    pub(super) rounding: i64,
}

/// The sales of the shift, in its currency.
pub(super) fn sums(conn: &Connection, shift: &Shift) -> Result<Sums, TillError> {
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

/// What paid the sales when they completed: what was accepted offline is among it, whatever the bank says of it later, and what is
/// collected in its place is not. So it is what the sales came to, with the rounding.
pub(super) fn tenders(conn: &Connection, shift: &Shift) -> Result<Vec<TenderTotal>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT tenders.kind, count(*), sum(tenders.amount) FROM sales JOIN tenders ON tenders.sale_id = sales.id
         WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2 AND tenders.collects IS NULL
             AND (tenders.state NOT IN ('declined', 'cancelled')
                 OR EXISTS (SELECT 1 FROM late_declines WHERE late_declines.tender_id = tenders.id))
         GROUP BY tenders.kind ORDER BY tenders.kind",
    )?;
    let rows = statement.query_map(params![shift.number, shift.currency.code()], |row| {
        Ok(TenderTotal { kind: columns::word(row, 0, TenderKind::read)?, count: row.get(1)?, amount: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What of that the bank has not said its last word on.
pub(super) fn offline_unsettled(conn: &Connection, shift: &Shift) -> Result<Total, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(tenders.amount), 0) FROM sales JOIN tenders ON tenders.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2 AND tenders.collects IS NULL
                 AND tenders.state IN ('settling', 'needs_attention')",
        )?
        .query_row(params![shift.number, shift.currency.code()], |row| {
            Ok(Total { count: row.get(0)?, amount: row.get(1)? })
        })?)
}

pub(super) fn taxes(conn: &Connection, shift: &Shift) -> Result<Vec<TaxTotal>, TillError> {
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

pub(super) fn discounts(conn: &Connection, shift: &Shift) -> Result<(i64, i64), TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT coalesce(sum(lines.discount), 0), coalesce(sum(lines.sale_discount), 0)
             FROM sales JOIN lines ON lines.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency.code()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

pub(super) fn overrides(conn: &Connection, shift: &Shift) -> Result<i64, TillError> {
    Ok(conn
        .prepare_cached(
            "SELECT count(*) FROM sales JOIN lines ON lines.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND lines.list_price IS NOT NULL",
        )?
        .query_row([shift.number], |row| row.get(0))?)
}

pub(super) fn card_refunds(conn: &Connection, shift: &Shift) -> Result<Total, TillError> {
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
pub(super) fn moved(conn: &Connection, shift: &Shift, kind: &str) -> Result<Total, TillError> {
    Ok(conn
        .prepare_cached("SELECT count(*), coalesce(sum(amount), 0) FROM drawer_moves WHERE shift = ?1 AND kind = ?2")?
        .query_row(params![shift.number, kind], |row| Ok(Total { count: row.get(0)?, amount: row.get(1)? }))?)
}

pub(super) fn drawer(conn: &Connection, shift: &Shift, cash_of_sales: i64) -> Result<Drawer, TillError> {
    let sum = |sql: &str| -> Result<i64, TillError> {
        Ok(conn.prepare_cached(sql)?.query_row([shift.number], |row| row.get(0))?)
    };
    Ok(Drawer {
        float_amount: shift.float_amount,
        cash_of_sales,
        cash_of_open_sales: sum(
            "SELECT coalesce(sum(tenders.amount), 0) FROM tenders JOIN sales ON sales.id = tenders.sale_id
             WHERE tenders.shift = ?1 AND tenders.shift > 0 AND tenders.collects IS NULL AND sales.shift IS NOT tenders.shift",
        )?,
        cash_of_earlier_shifts: sum(
            "SELECT coalesce(sum(tenders.amount), 0) FROM sales JOIN tenders ON tenders.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND tenders.kind = 'cash' AND tenders.collects IS NULL
                 AND tenders.shift IS NOT sales.shift AND sales.currency = (SELECT currency FROM shifts WHERE number = ?1)",
        )?,
        cash_collected: sum(
            "SELECT coalesce(sum(amount), 0) FROM tenders WHERE shift = ?1 AND shift > 0 AND collects IS NOT NULL",
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

/// The cards of the shift: those of its sales, and those that the bank approved in it.
pub(super) fn cards(conn: &Connection, shift: &Shift) -> Result<Cards, TillError> {
    let of_shift = params![shift.number, shift.currency.code()];
    let of_sales = conn
        .prepare_cached(
            "SELECT coalesce(sum(tenders.amount), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.state = 'approved' AND tenders.approved_shift IS NOT sales.shift), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.state <> 'approved'), 0)
             FROM sales JOIN tenders ON tenders.sale_id = sales.id
             WHERE sales.shift = ?1 AND sales.shift > 0 AND sales.currency = ?2 AND tenders.kind = 'card' AND tenders.collects IS NULL
                 AND (tenders.state NOT IN ('declined', 'cancelled')
                     OR EXISTS (SELECT 1 FROM late_declines WHERE late_declines.tender_id = tenders.id))",
        )?
        .query_row(of_shift, |row| {
            let (of_sales, of_earlier_shifts, not_approved) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Cards { of_sales, of_earlier_shifts, not_approved, ..Cards::default() })
        })?;
    Ok(conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(tenders.amount), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.collects IS NOT NULL), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.collects IS NULL AND sales.voided_at IS NOT NULL), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.collects IS NULL AND sales.voided_at IS NULL
                     AND sales.shift IS NULL), 0),
                 coalesce(sum(tenders.amount) FILTER (WHERE tenders.collects IS NULL AND sales.shift <> tenders.approved_shift), 0)
             FROM tenders JOIN sales ON sales.id = tenders.sale_id
             WHERE tenders.approved_shift = ?1 AND tenders.approved_shift > 0 AND sales.currency = ?2",
        )?
        .query_row(of_shift, |row| {
            Ok(Cards {
                approved: Total { count: row.get(0)?, amount: row.get(1)? },
                collected: row.get(2)?,
                of_voided_sales: row.get(3)?,
                of_open_sales: row.get(4)?,
                offline_of_earlier_shifts: row.get(5)?,
                ..of_sales
            })
        })?)
}

/// Sales of which a part is paid, by their numbers.
pub(super) fn partly_paid(conn: &Connection) -> Result<Vec<PartlyPaid>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT sales.number, sum(tenders.amount), sales.total, sales.currency
         FROM sales CROSS JOIN tenders ON tenders.sale_id = sales.id
         WHERE sales.state = 'paying' AND sales.number IS NOT NULL AND sales.voided_at IS NULL
             AND tenders.state IN ('approved', 'taken')
         GROUP BY sales.id ORDER BY sales.number",
    )?;
    let rows = statement.query_map([], |row| {
        let currency = columns::currency(row, 3)?;
        Ok(PartlyPaid { sale_number: row.get(0)?, paid: row.get(1)?, total: row.get(2)?, currency })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many entries of these kinds the audit has since the shift was opened.
pub(super) fn entries(conn: &Connection, shift: &Shift, what: &[&str]) -> Result<i64, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT count(*) FROM audit WHERE seq > (SELECT opened_seq FROM shifts WHERE number = ?1) AND what = ?2",
    )?;
    what.iter().try_fold(0, |sum, what| {
        let found: i64 = statement.query_row(params![shift.number, what], |row| row.get(0))?;
        Ok(sum + found)
    })
}

pub(super) fn other_currencies(conn: &Connection, shift: &Shift) -> Result<Vec<OtherCurrency>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT sales.currency, sum(completed), sum(sold), sum(back), sum(voided) FROM (
             SELECT currency, 1 AS completed, total AS sold, 0 AS back, 0 AS voided FROM sales WHERE shift = ?1 AND shift > 0
             UNION ALL
             SELECT sales.currency, 0, 0, returns.total, 0 FROM returns JOIN sales ON sales.id = returns.sale_id
             WHERE returns.shift = ?1 AND returns.shift > 0
             UNION ALL
             SELECT sales.currency, 0, 0, 0, voids.cards + voids.cash FROM voids JOIN sales ON sales.id = voids.sale_id
             WHERE voids.shift = ?1 AND voids.shift > 0) AS sales
         WHERE sales.currency <> ?2 GROUP BY sales.currency ORDER BY sales.currency",
    )?;
    let rows = statement.query_map(params![shift.number, shift.currency.code()], |row| {
        let currency = columns::currency(row, 0)?;
        let (sales, total, returned, voided) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        Ok(OtherCurrency { currency, sales, total, returned, voided })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Everything without a final result, the oldest first.
pub(super) fn unsettled(conn: &Connection) -> Result<Vec<Unsettled>, TillError> {
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
            accepted_offline: operation.accepted_offline,
            sale_number: operation.sale_number,
            created_at: operation.created_at,
        })
        .collect())
}
