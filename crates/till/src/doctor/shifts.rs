//! The drawer of each shift: what went through it added up anew, and compared with what was counted, reported and written into the audit.

use super::{Notes, money::Money};
use crate::{
    TillError,
    shifts::written::{self, Written},
};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

/// Rows of one kind that are named.
const NAMED_MAX: i64 = 100;

/// The figures of a Z report that are no amounts.
const COUNTS: [&str; 3] = ["/sales", "/number", "/voids/voids"];

/// A shift as its row has it.
struct Facts {
    number: i64,
    currency: String,
    float_amount: i64,
    /// Expected, counted and the report, once it is closed.
    closed: Option<(i64, i64, String)>,
}

pub(super) fn check(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut written = written::read(conn)?;
    let mut statement =
        conn.prepare("SELECT number, currency, float_amount, expected, counted, report FROM shifts ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let closed: (Option<i64>, Option<i64>, Option<String>) = (row.get(3)?, row.get(4)?, row.get(5)?);
        let closed = match closed {
            (Some(expected), Some(counted), Some(report)) => Some((expected, counted, report)),
            _ => None,
        };
        let shift = Facts { number: row.get(0)?, currency: row.get(1)?, float_amount: row.get(2)?, closed };
        check_one(conn, &shift, &written, notes)?;
    }
    check_moves(conn, &mut written.moves, notes)?;
    check_cash_refunds(conn, notes)?;
    check_belonging(conn, notes)
}

fn check_one(conn: &Connection, shift: &Facts, written: &Written, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let subject = format!("shift {}", shift.number);
    let money = Money(&shift.currency);
    let told = |figure: Option<&i64>| figure.map_or_else(|| "nothing".to_owned(), |figure| money.of(*figure));
    let all = |counts: &[[i64; 2]]| match counts {
        [] => "none".to_owned(),
        counts => {
            counts.iter().map(|count| money.named(["counted", "expected"], *count)).collect::<Vec<_>>().join("; ")
        }
    };
    let mut wrong = |code: &'static str, what: String| notes.found(code, &subject, what);
    if written.floats.get(&shift.number) != Some(&shift.float_amount) {
        let says = told(written.floats.get(&shift.number));
        wrong("shift-drawer", format!("its float is {}, and the audit says {says}", money.of(shift.float_amount)));
    }
    let counts = counts(conn, shift.number)?;
    let said = written.counts.get(&shift.number).map_or(&[][..], Vec::as_slice);
    if counts != said {
        wrong("shift-count", format!("its counts are {}, and the audit says {}", all(&counts), all(said)));
    }
    let Some((expected, counted, report)) = &shift.closed else { return Ok(()) };
    let held = i128::from(shift.float_amount) + went_through(conn, shift.number)?;
    if held != i128::from(*expected) {
        wrong(
            "shift-drawer",
            format!(
                "it was closed with {} in the drawer, and what went through it comes to {}",
                money.of(*expected),
                money.of(held)
            ),
        );
    }
    if counts.last() != Some(&[*counted, *expected]) {
        let (closed, last) = (all(&[[*counted, *expected]]), all(counts.last().map_or(&[], std::slice::from_ref)));
        wrong("shift-count", format!("it was closed as {closed}, and its last count is {last}"));
    }
    let hash: String = Sha256::digest(report.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    if written.reports.get(&shift.number) != Some(&hash) {
        wrong("shift-report", "its Z report is not the one that the audit names".to_owned());
    }
    for what in reported(conn, shift, report, [*expected, *counted])? {
        wrong("shift-report", what);
    }
    Ok(())
}

/// Counted and expected of each count of a shift.
fn counts(conn: &Connection, shift: i64) -> Result<Vec<[i64; 2]>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT counted, expected FROM drawer_counts WHERE shift = ?1 ORDER BY id")?;
    let rows = statement.query_map([shift], |row| Ok([row.get(0)?, row.get(1)?]))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What stayed in the drawer of a shift, beside its float.
fn went_through(conn: &Connection, shift: i64) -> Result<i128, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT amount, 1 FROM tenders WHERE shift = ?1 AND shift > 0 AND kind = 'cash'
         UNION ALL SELECT amount, kind = 'in' FROM drawer_moves WHERE shift = ?1",
    )?;
    let rows = statement.query_map([shift], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)))?;
    let signed =
        rows.map(|row| row.map(|(amount, is_in)| if is_in { i128::from(amount) } else { -i128::from(amount) }));
    Ok(signed.sum::<Result<i128, _>>()?)
}

/// What of a Z report differs from the file, in words.
fn reported(
    conn: &Connection,
    shift: &Facts,
    report: &str,
    [expected, counted]: [i64; 2],
) -> Result<Vec<String>, TillError> {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let sums = conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(net), 0), coalesce(sum(tax), 0), coalesce(sum(tip), 0), coalesce(sum(total), 0),
                 coalesce(sum(rounding), 0)
             FROM sales WHERE shift = ?1 AND shift > 0 AND currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency], |row| {
            (0..6).map(|at| row.get::<_, i64>(at)).collect::<Result<Vec<_>, _>>()
        })?;
    let voids = conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(voids.cards), 0), coalesce(sum(voids.cash), 0)
             FROM voids JOIN sales ON sales.id = voids.sale_id WHERE voids.shift = ?1 AND voids.shift > 0 AND sales.currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency], |row| {
            Ok(vec![("/voids/voids", row.get(0)?), ("/voids/cards", row.get(1)?), ("/voids/cash", row.get(2)?)])
        })?;
    let names = ["/sales", "/net", "/tax", "/tips", "/total", "/rounding"];
    let figures = names.into_iter().zip(sums).chain([
        ("/number", shift.number),
        ("/drawer/floatAmount", shift.float_amount),
        ("/drawer/expected", expected),
        ("/drawer/counted", counted),
    ]);
    // Older programs knew no voids, and made none.
    let figures = figures.chain(report.get("voids").map_or_else(Vec::new, |_| voids));
    let told = |name: &str, figure: Option<i64>| match figure {
        None => "nothing".to_owned(),
        Some(figure) if COUNTS.contains(&name) => figure.to_string(),
        Some(figure) => Money(&shift.currency).of(figure),
    };
    let mut differ: Vec<_> = figures
        .map(|(name, should)| (name, report.pointer(name).and_then(Value::as_i64), should))
        .filter(|(_, is, should)| *is != Some(*should))
        .map(|(name, is, should)| {
            let (is, should) = (told(name, is), told(name, Some(should)));
            format!("its Z report has {is} as {}, and the file {should}", name.trim_start_matches('/'))
        })
        .collect();
    let returns = conn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(returns.total), 0),
                 coalesce(sum((SELECT sum(amount) FROM return_waived WHERE return_id = returns.id)), 0)
             FROM returns JOIN sales ON sales.id = returns.sale_id
             WHERE returns.shift = ?1 AND returns.shift > 0 AND sales.currency = ?2",
        )?
        .query_row(params![shift.number, shift.currency], |row| {
            (0..3).map(|at| row.get::<_, i64>(at)).collect::<Result<Vec<_>, _>>()
        })?;
    // An older report tells nothing of what there was not yet.
    for (name, should) in ["/returns/returns", "/returns/total", "/returns/waived/amount"].into_iter().zip(returns) {
        let is = report.pointer(name).and_then(Value::as_i64).unwrap_or_default();
        if is != should {
            differ.push(format!("its Z report has {is} as {}, and the file {should}", name.trim_start_matches('/')));
        }
    }
    // The hash on paper shows an audit that was made anew, chain and head and all.
    let seq = report.pointer("/auditSeq").and_then(Value::as_i64);
    let hash: Option<String> = conn
        .prepare_cached("SELECT lower(hex(hash)) FROM audit WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    if hash.is_none() || hash.as_deref() != report.pointer("/auditHash").and_then(Value::as_str) {
        differ.push(format!(
            "its Z report was made on another audit than this one: at entry {} the hash differs",
            seq.map_or_else(|| "nothing".to_owned(), |seq| seq.to_string())
        ));
    }
    Ok(differ)
}

/// Each move of a drawer is the audit's, and none is gone.
fn check_moves(
    conn: &Connection,
    said: &mut HashMap<String, (i64, String)>,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let told = |said: Option<&(i64, String)>| {
        said.map_or_else(|| "nothing".to_owned(), |(amount, currency)| Money(currency).of(*amount))
    };
    let mut statement = conn.prepare(
        "SELECT moves.id, moves.shift, moves.amount, coalesce(shifts.currency, '')
         FROM drawer_moves AS moves LEFT JOIN shifts ON shifts.number = moves.shift WHERE moves.kind <> 'refund'",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, shift, amount): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (ours, said) = ((amount, row.get(3)?), said.remove(&id));
        if said.as_ref().map(|(amount, _)| *amount) != Some(amount) {
            let what = format!("its amount is {}, and the audit says {}", told(Some(&ours)), told(said.as_ref()));
            notes.found("drawer-move", format!("move {id} of shift {shift}"), what);
        }
    }
    let mut gone: Vec<_> = said.iter().collect();
    gone.sort();
    for (id, was) in gone {
        notes.found("drawer-move", format!("move {id}"), format!("is gone: the audit has it over {}", told(Some(was))));
    }
    Ok(())
}

/// Cash that was given back came out of a drawer, once there were drawers, and nothing else came out as that.
fn check_cash_refunds(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut found = |sql: &str, what: &str| -> Result<(), TillError> {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([NAMED_MAX])?;
        while let Some(row) = rows.next()? {
            let (id, amount, currency): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let what = format!("{} {what}", Money(&currency).of(amount));
            notes.found("drawer-refund", format!("cash refund {id}"), what);
        }
        Ok(())
    };
    found(
        "SELECT moves.id, moves.amount, coalesce(shifts.currency, '') FROM drawer_moves AS moves
             LEFT JOIN cash_refunds ON cash_refunds.id = moves.id LEFT JOIN shifts ON shifts.number = moves.shift
         WHERE moves.kind = 'refund' AND cash_refunds.amount IS NOT moves.amount LIMIT ?1",
        "left the drawer, and was given back to nobody",
    )?;
    found(
        "SELECT cash.id, cash.amount, coalesce(shifts.currency, '') FROM cash_refunds AS cash
             JOIN drawer_moves AS moves ON moves.id = cash.id LEFT JOIN shifts ON shifts.number = moves.shift
         WHERE cash.shift <> moves.shift LIMIT ?1",
        "was given back in another shift than it left the drawer in",
    )?;
    // When it was given back is told by its place in the audit, which no clock can turn back.
    found(
        "SELECT cash.id, cash.amount, coalesce(sales.currency, '') FROM cash_refunds AS cash
             LEFT JOIN returns ON returns.id = cash.return_id LEFT JOIN voids ON voids.id = cash.void_id
             LEFT JOIN sales ON sales.id = coalesce(returns.sale_id, voids.sale_id)
         WHERE cash.amount > 0 AND NOT EXISTS (SELECT 1 FROM drawer_moves WHERE id = cash.id AND kind = 'refund')
             AND EXISTS (SELECT 1 FROM audit WHERE sale_id = coalesce(returns.sale_id, voids.sale_id) AND instr(details, cash.id) > 0
                 AND seq > (SELECT opened_seq FROM shifts WHERE number = 1))
         LIMIT ?1",
        "was given back, and left no drawer",
    )
}

/// What happened belongs to a shift that there was, or will be next.
fn check_belonging(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    for (what, rows) in [
        ("sale", "SELECT number AS which, shift FROM sales WHERE state = 'completed'"),
        ("cash tender", "SELECT id AS which, shift FROM tenders WHERE kind = 'cash'"),
        ("refund", "SELECT id AS which, shift FROM refunds WHERE state = 'approved'"),
        ("return", "SELECT receipt_number AS which, shift FROM returns"),
        ("cash refund", "SELECT id AS which, shift FROM cash_refunds"),
        (
            "late decline",
            "SELECT tender_id AS which, declined_shift AS shift FROM late_declines WHERE declined_at IS NOT NULL",
        ),
        (
            "ended late decline",
            "SELECT tender_id AS which, ended_shift AS shift FROM late_declines WHERE ended_at IS NOT NULL",
        ),
        ("void of sale", "SELECT sales.number AS which, voids.shift FROM voids JOIN sales ON sales.id = voids.sale_id"),
    ] {
        let mut statement = conn.prepare(&format!(
            "WITH last (number) AS (SELECT CASE WHEN EXISTS (SELECT 1 FROM shifts WHERE closed_at IS NULL) THEN max(number)
                 WHEN count(*) = 0 THEN 0 ELSE max(number) + 1 END FROM shifts)
             SELECT CAST(which AS TEXT), shift FROM ({rows}), last
             WHERE shift IS NULL OR shift < 0 OR shift > last.number LIMIT ?1"
        ))?;
        let mut rows = statement.query([NAMED_MAX])?;
        while let Some(row) = rows.next()? {
            let (which, shift): (Option<String>, Option<i64>) = (row.get(0)?, row.get(1)?);
            let subject = format!("{what} {}", which.unwrap_or_default());
            notes.found(
                "shift-unknown",
                subject,
                format!(
                    "it belongs to shift {}, and there is none",
                    shift.map_or_else(|| "nothing".to_owned(), |shift| shift.to_string())
                ),
            );
        }
    }
    Ok(())
}
