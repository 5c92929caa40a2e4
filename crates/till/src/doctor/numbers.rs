//! The series without gaps: sales, receipts, the audit.

use super::Notes;
use crate::TillError;
use rusqlite::{Connection, OptionalExtension as _};

/// Gaps of one series that are named.
const GAPS_MAX: i64 = 100;

/// The table of the receipts' numbers, which sales and returns share.
const RECEIPTS: &str = "(SELECT receipt_number AS number FROM sales UNION ALL SELECT receipt_number FROM returns)";

pub(super) fn check(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    check_gaps(conn, notes, "sale-number-gap", "sale number", "sales", "number")?;
    check_counter(conn, notes, "sale", "sales")?;
    check_gaps(conn, notes, "receipt-number-gap", "receipt number", RECEIPTS, "number")?;
    check_counter(conn, notes, "receipt", RECEIPTS)?;
    check_gaps(conn, notes, "shift-number-gap", "shift", "shifts", "number")?;
    check_gaps(conn, notes, "audit-gap", "audit entry", "audit", "seq")
}

/// Names the numbers that were skipped, or given twice. Goes along the index of the column, where there is one.
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
        if at == before {
            notes.found("number-twice", format!("{what} {at}"), "was given twice");
            continue;
        }
        let (first, last) = (before.saturating_add(1), at.saturating_sub(1));
        let missing = if first == last { first.to_string() } else { format!("{first} to {last}") };
        notes.found(code, format!("{what} {missing}"), format!("is missing before {at}"));
    }
    Ok(())
}

fn check_counter(conn: &Connection, notes: &mut Notes<'_>, series: &str, table: &str) -> Result<(), TillError> {
    let last: Option<i64> =
        conn.query_row("SELECT last FROM counters WHERE name = ?1", [series], |row| row.get(0)).optional()?;
    let highest: i64 =
        conn.query_row(&format!("SELECT coalesce(max(number), 0) FROM {table}"), [], |row| row.get(0))?;
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
