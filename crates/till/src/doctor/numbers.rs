//! The series without gaps: sales, receipts, the audit.

use super::Notes;
use crate::TillError;
use rusqlite::{Connection, OptionalExtension as _};

/// Gaps of one series that are named.
const GAPS_MAX: i64 = 100;

pub(super) fn check(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    for (series, column) in [("sale", "number"), ("receipt", "receipt_number")] {
        let code = if series == "sale" { "sale-number-gap" } else { "receipt-number-gap" };
        check_gaps(conn, notes, code, &format!("{series} number"), "sales", column)?;
        check_counter(conn, notes, series, column)?;
    }
    check_gaps(conn, notes, "audit-gap", "audit entry", "audit", "seq")
}

/// Names the numbers that were skipped. Goes along the index of the column.
fn check_gaps(
    conn: &Connection,
    notes: &mut Notes<'_>,
    code: &'static str,
    what: &str,
    table: &str,
    column: &str,
) -> Result<(), TillError> {
    let mut statement = conn.prepare(&format!(
        "SELECT before, at FROM (SELECT lag({column}, 1, 0) OVER (ORDER BY {column}) AS before, {column} AS at
                                 FROM {table} WHERE {column} IS NOT NULL)
         WHERE at <> before + 1 LIMIT {GAPS_MAX}"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (before, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (first, last) = (before.saturating_add(1), at.saturating_sub(1));
        let missing = if first == last { first.to_string() } else { format!("{first} to {last}") };
        notes.found(code, format!("{what} {missing}"), format!("is missing before {at}"));
    }
    Ok(())
}

fn check_counter(conn: &Connection, notes: &mut Notes<'_>, series: &str, column: &str) -> Result<(), TillError> {
    let last: Option<i64> =
        conn.query_row("SELECT last FROM counters WHERE name = ?1", [series], |row| row.get(0)).optional()?;
    let highest: i64 =
        conn.query_row(&format!("SELECT coalesce(max({column}), 0) FROM sales"), [], |row| row.get(0))?;
    if last != Some(highest) {
        let last = last.map_or_else(|| "no number".to_owned(), |last| last.to_string());
        notes.found(
            "counter-wrong",
            format!("{series} numbers"),
            format!("{last} stands as the last one given, and {highest} is the highest in use"),
        );
    }
    Ok(())
}
