//! Undo: the last changes of an open sale, taken back one by one from the last on. They are in the file, so that a kill loses none.
//!
//! It takes back what changed the lines, discounts, tip and notes of the sale: an article rung up, a quantity, a line removed, the
//! sale cleared, a price, a note, a discount, a tip. What was done to the sale as a whole (parked, resumed, dropped) is no part of
//! it. The last 50 changes are kept; at Pay they go, and a sale that comes back to the cart begins without any.

use crate::{
    Sale, SaleState, TillError, asked::Terms, audit, audit::Signature, cart, lines, lines::LineRow, sales,
    sales::SaleRow,
};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// What a change changed, as it was before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Before {
    /// Lines by id; none where there was no such line.
    lines: Vec<(i64, Option<LineRow>)>,
    /// Where the change was one of them.
    terms: Option<Terms>,
}

impl Before {
    pub(crate) fn no_line(id: i64) -> Self {
        Self { lines: vec![(id, None)], terms: None }
    }

    pub(crate) fn of_line(line: &LineRow) -> Self {
        Self { lines: vec![(line.id, Some(line.clone()))], terms: None }
    }

    pub(crate) fn of_terms(sale: &SaleRow) -> Self {
        Self { lines: Vec::new(), terms: Some(sale.terms) }
    }

    pub(crate) fn of_sale(sale: &SaleRow, lines: Vec<LineRow>) -> Self {
        let lines = lines.into_iter().map(|line| (line.id, Some(line))).collect();
        Self { lines, terms: Some(sale.terms) }
    }
}

/// Keeps what a change changes, in the commit that makes it. `what` is the word by which the window says what would be undone.
pub(crate) fn remember(tx: &Connection, sale: Uuid, what: &str, before: &Before) -> Result<(), TillError> {
    let before = serde_json::to_string(before)
        .map_err(|error| TillError::Internal(format!("what was before a change could not be written: {error}")))?;
    tx.prepare_cached(
        "INSERT INTO sale_changes (sale_id, step, what, before)
         VALUES (?1, (SELECT coalesce(max(step), 0) + 1 FROM sale_changes WHERE sale_id = ?1), ?2, ?3)",
    )?
    .execute(params![sale.to_string(), what, before])?;
    Ok(())
}

/// What the next undo of a sale takes back.
pub(crate) fn next(conn: &Connection, sale: &SaleRow) -> Result<Option<String>, TillError> {
    if sale.state != SaleState::Open {
        return Ok(None);
    }
    let what = conn
        .prepare_cached("SELECT what FROM sale_changes WHERE sale_id = ?1 ORDER BY step DESC LIMIT 1")?
        .query_row([sale.id.to_string()], |row| row.get(0))
        .optional()?;
    Ok(what)
}

/// Takes the last change of the sale in front back.
pub(crate) fn undo(tx: &Connection, signature: &Signature, sale_id: Uuid) -> Result<Sale, TillError> {
    let sale = cart::in_front_for_change(tx, sale_id)?;
    let last: Option<(i64, String, String)> = tx
        .prepare_cached("SELECT step, what, before FROM sale_changes WHERE sale_id = ?1 ORDER BY step DESC LIMIT 1")?
        .query_row([sale_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let (step, what, before) = last.ok_or(TillError::NothingToUndo)?;
    let before: Before = serde_json::from_str(&before)
        .map_err(|error| TillError::Internal(format!("what was before a change can't be read: {error}")))?;
    let mut lines_said = Vec::new();
    for (id, line) in &before.lines {
        let is = lines::by_id(tx, *id)?.map(|(line, _)| line);
        lines_said.push(json!({"before": is.as_ref().map(said), "after": line.as_ref().map(said)}));
        match line {
            Some(line) => lines::write(tx, sale_id, line)?,
            None => lines::remove(tx, *id)?,
        }
    }
    if let Some(terms) = before.terms {
        sales::set_terms(tx, sale_id, terms)?;
    }
    tx.prepare_cached("DELETE FROM sale_changes WHERE sale_id = ?1 AND step = ?2")?
        .execute(params![sale_id.to_string(), step])?;
    let took_lines = before.lines.iter().any(|(_, line)| line.is_none());
    let signature = &if took_lines { cart::emptied(tx, signature, &sale, "change-undone")? } else { signature.clone() };
    let mut details = json!({"what": what, "lines": lines_said});
    if let Some(terms) = before.terms {
        details["terms"] = json!({"before": sale.terms, "after": terms});
    }
    audit::append(tx, signature, "change-undone", Some(sale_id), &details)?;
    cart::changed(tx, signature, &sale)
}

/// A line as the audit names it: what went out of a cart by undo, at which price, must be seen there as well as what was removed.
fn said(line: &LineRow) -> Value {
    json!({
        "sku": line.sku, "quantity": line.quantity.to_string(), "unit_price": line.unit_price, "list_price": line.list_price,
        "discount": line.discount, "note": line.note,
    })
}
