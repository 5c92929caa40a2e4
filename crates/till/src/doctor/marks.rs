//! What a sale is found by in the list, against the sale itself: its amounts, and the last four digits of its cards.

use super::{Notes, money::Money};
use crate::TillError;
use rusqlite::Connection;

/// Marks of one kind that are named.
const NAMED_MAX: i64 = 100;

/// The last four digits of the card of an operation, as the bank told them; none where it did not.
const LAST_FOUR: &str =
    "CASE WHEN json_valid(operations.result) AND json_type(operations.result, '$.card.last4') = 'text'
         AND operations.result ->> '$.card.last4' GLOB '[0-9][0-9][0-9][0-9]'
     THEN CAST(operations.result ->> '$.card.last4' AS INTEGER) END";

/// Each amount and each card has its mark, and no mark is of another sale. Both ways go along an index, row by row.
pub(super) fn check(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let of_operation =
        "FROM tenders CROSS JOIN operations ON operations.intent_id = unhex(replace(tenders.id, '-', ''))";
    let missing = format!(
        "SELECT kind, value, number, currency FROM (
             SELECT 'amount' AS kind, total AS value, number, currency FROM sales WHERE total >= 0
             UNION ALL
             SELECT 'amount', tenders.amount, sales.number, sales.currency
             FROM tenders CROSS JOIN sales ON sales.id = tenders.sale_id
             UNION ALL
             SELECT 'last_four', {LAST_FOUR}, sales.number, sales.currency {of_operation}
             CROSS JOIN sales ON sales.id = tenders.sale_id
             WHERE tenders.state IN ('approved', 'declined') AND CASE WHEN json_valid(operations.result) THEN json_type(operations.result, '$.card.brand') END = 'text')
         AS wanted
         WHERE number IS NOT NULL AND value IS NOT NULL AND NOT EXISTS (
             SELECT 1 FROM sale_marks AS mark
             WHERE mark.kind = wanted.kind AND mark.value = wanted.value AND mark.number = wanted.number)
         LIMIT ?1"
    );
    let strange = format!(
        "SELECT kind, value, mark.number, sales.currency FROM sale_marks AS mark LEFT JOIN sales ON sales.number = mark.number
         WHERE NOT CASE mark.kind
             WHEN 'amount' THEN mark.value IS sales.total
                 OR EXISTS (SELECT 1 FROM tenders WHERE tenders.sale_id = sales.id AND tenders.amount = mark.value)
             ELSE EXISTS (SELECT 1 {of_operation} WHERE tenders.sale_id = sales.id AND {LAST_FOUR} = mark.value) END
         LIMIT ?1"
    );
    name(conn, &missing, "it is not found by", notes)?;
    name(conn, &strange, "it is found by what is not its own:", notes)
}

fn name(conn: &Connection, sql: &str, what: &str, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query([NAMED_MAX])?;
    while let Some(row) = rows.next()? {
        let (kind, value, number): (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let currency: Option<String> = row.get(3)?;
        let by = match kind.as_str() {
            "amount" => Money(&currency.unwrap_or_default()).of(value),
            _ => format!("a card that ends in {value:04}"),
        };
        notes.found("sale-mark", format!("sale {number}"), format!("{what} {by}"));
    }
    Ok(())
}
