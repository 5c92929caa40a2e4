//! What went out of carts without being paid: lines that were removed after they were rung up, and sales that were cleared or dropped. Told by
//! the audit, whose entries since the shift was opened lie together.

use super::{Shift, report::Total};
use crate::{TillError, editing};
use checkout::Quantity;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What went out of carts in a shift. Amounts in minor units of its currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemovedFigures {
    /// Lines that were removed one by one, or by undo what had been rung up: at their price, before anything was taken off. Also those that
    /// another undo brought back.
    pub lines: Total,
    /// Sales that were cleared at once or dropped, at what they came to. A sale that went line by line is among the lines.
    pub sales: Total,
}

impl Total {
    fn add(&mut self, amount: i64) -> Result<(), TillError> {
        self.count += 1;
        let too_large = || TillError::Internal("what was removed is more than there can be".to_owned());
        self.amount = self.amount.checked_add(amount).ok_or_else(too_large)?;
        Ok(())
    }
}

/// What went out of the carts of a shift, of sales in its currency.
pub(super) fn of_shift(conn: &Connection, shift: &Shift) -> Result<RemovedFigures, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT audit.what, audit.details FROM audit CROSS JOIN sales ON sales.id = audit.sale_id
         WHERE audit.seq > (SELECT opened_seq FROM shifts WHERE number = ?1) AND sales.currency = ?2
             AND audit.what IN ('line-removed', 'change-undone', 'sale-cleared', 'sale-dropped')",
    )?;
    let mut rows = statement.query(params![shift.number, shift.currency.code()])?;
    let mut removed = RemovedFigures::default();
    while let Some(row) = rows.next()? {
        let (what, details): (String, Value) = (row.get(0)?, crate::columns::json(row, 1)?);
        match what.as_str() {
            "line-removed" => removed.lines.add(worth(shift, &details)?)?,
            // Older programs did not say which lines an undo took.
            "change-undone" => {
                let lines = details.get("lines").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for line in lines.iter().filter(|line| line.get("after").is_some_and(Value::is_null)) {
                    removed.lines.add(worth(shift, line.get("before").unwrap_or(&Value::Null))?)?;
                }
            }
            _ => removed.sales.add(details.get("total").and_then(Value::as_i64).unwrap_or_default())?,
        }
    }
    Ok(removed)
}

/// A line at its price, as the audit names it; 0 of what has no price there.
fn worth(shift: &Shift, line: &Value) -> Result<i64, TillError> {
    let price = line.get("unit_price").and_then(Value::as_i64);
    let quantity = line.get("quantity").and_then(Value::as_str).and_then(|text| text.parse::<Quantity>().ok());
    match price.zip(quantity) {
        Some((price, quantity)) => editing::gross_in(shift.currency, price, quantity),
        None => Ok(0),
    }
}
