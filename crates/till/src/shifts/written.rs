//! What the audit says of drawers: the second book, which the doctor holds the first against.

use crate::TillError;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::HashMap;

/// What the audit says of drawers.
#[derive(Default)]
pub(crate) struct Written {
    /// The float of each shift.
    pub(crate) floats: HashMap<i64, i64>,
    /// Counted and expected, in the order of the counts.
    pub(crate) counts: HashMap<i64, Vec<[i64; 2]>>,
    /// The amount of each move and its currency, by its id.
    pub(crate) moves: HashMap<String, (i64, String)>,
    /// The hash of each Z report.
    pub(crate) reports: HashMap<i64, String>,
}

/// Reads all of it, in one walk.
pub(crate) fn read(conn: &Connection) -> Result<Written, TillError> {
    let mut written = Written::default();
    let mut statement = conn.prepare(
        "SELECT what, details FROM audit
         WHERE what IN ('shift-opened', 'drawer-counted', 'cash-in', 'cash-out', 'drawer-opened', 'shift-closed') ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (what, details): (String, String) = (row.get(0)?, row.get(1)?);
        // What is no JSON breaks the chain, which is looked at elsewhere.
        let Ok(details) = serde_json::from_str::<Value>(&details) else { continue };
        let number = |member: &str| details.get(member).and_then(Value::as_i64);
        let text = |member: &str| details.get(member).and_then(Value::as_str).map(str::to_owned);
        match (what.as_str(), number("shift")) {
            ("shift-opened", Some(shift)) => written.floats.extend(number("float").map(|float| (shift, float))),
            ("shift-closed", Some(shift)) => written.reports.extend(text("report_sha256").map(|hash| (shift, hash))),
            ("drawer-counted", Some(shift)) => {
                let count = number("counted").zip(number("expected")).map(|(counted, expected)| [counted, expected]);
                written.counts.entry(shift).or_default().extend(count);
            }
            _ => {
                let currency = text("currency").unwrap_or_default();
                written.moves.extend(text("move").zip(number("amount").map(|amount| (amount, currency))));
            }
        }
    }
    Ok(written)
}
