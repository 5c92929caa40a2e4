//! The rows of sales: what they are, and their way from open to paying to completed.

pub(crate) mod listing;

use crate::{Asked, Right, Settings, TillError, asked::Terms, audit::Signature, clock, columns, receipt};
use checkout::{CashRounding, CashRule, Priced};
use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use uuid::Uuid;

/// How far a sale is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleState {
    /// Can be changed.
    Open,
    /// Pay was clicked: frozen until its tenders are declined or cancelled, or it is paid.
    Paying,
    /// Paid in full, with its receipt number.
    Completed,
    /// Given up, and never paid.
    Dropped,
    /// Given up after a part was paid, and all of that given back.
    Voided,
}

impl SaleState {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paying => "paying",
            Self::Completed => "completed",
            Self::Dropped => "dropped",
            Self::Voided => "voided",
        }
    }

    /// The state of a row. One that was dropped is open there, which means that it was never paid, and one that was voided under payment.
    fn read(word: &str) -> Option<Self> {
        [Self::Open, Self::Paying, Self::Completed].into_iter().find(|state| state.as_str() == word)
    }
}

/// The sums of a sale, in minor units, as they were frozen at Pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) net: i64,
    pub(crate) tax: i64,
    pub(crate) tip: i64,
    pub(crate) discount: i64,
    pub(crate) total: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct SaleRow {
    pub(crate) id: Uuid,
    pub(crate) state: SaleState,
    pub(crate) held: bool,
    /// Rung up in front of a cashier; else an amount that was charged with no cart before it.
    pub(crate) has_cart: bool,
    pub(crate) currency: Currency,
    pub(crate) prices_include_tax: bool,
    pub(crate) cash: CashRule,
    pub(crate) number: Option<i64>,
    pub(crate) frozen: Option<Frozen>,
    pub(crate) rounding: Option<i64>,
    pub(crate) receipt_number: Option<i64>,
    pub(crate) created_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
    /// Under which it was parked.
    pub(crate) name: Option<String>,
    pub(crate) terms: Terms,
}

const COLUMNS: &str = "id, state, held, currency, prices_include_tax, cash_step, cash_rounding, number,
    net, tax, tip, discount, total, rounding, receipt_number, created_at, completed_at, has_cart, name,
    discount_percent, discount_amount, tip_percent, tip_amount, dropped_at, voided_at";

fn sale(row: &Row<'_>) -> rusqlite::Result<SaleRow> {
    let frozen = match row.get::<_, Option<i64>>(8)? {
        Some(net) => {
            Some(Frozen { net, tax: row.get(9)?, tip: row.get(10)?, discount: row.get(11)?, total: row.get(12)? })
        }
        None => None,
    };
    let rounding = columns::word(row, 6, CashRounding::parse)?;
    let (dropped_at, voided_at): (Option<i64>, Option<i64>) = (row.get(23)?, row.get(24)?);
    let state = match (dropped_at, voided_at) {
        (None, None) => columns::word(row, 1, SaleState::read)?,
        (None, Some(_)) => SaleState::Voided,
        (Some(_), _) => SaleState::Dropped,
    };
    Ok(SaleRow {
        id: columns::uuid(row, 0)?,
        state,
        held: row.get(2)?,
        currency: columns::currency(row, 3)?,
        prices_include_tax: row.get(4)?,
        // The table refuses a step below one.
        cash: CashRule::new(row.get(5)?, rounding).unwrap_or(CashRule::EXACT),
        number: row.get(7)?,
        frozen,
        rounding: row.get(13)?,
        receipt_number: row.get(14)?,
        created_at: columns::timestamp(row, 15)?,
        completed_at: columns::optional_timestamp(row, 16)?,
        has_cart: row.get(17)?,
        name: row.get(18)?,
        terms: Terms { discount: Asked::read(row, 19)?, tip: Asked::read(row, 21)? },
    })
}

/// One sale.
pub(crate) fn by_id(conn: &Connection, id: Uuid) -> Result<SaleRow, TillError> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sales WHERE id = ?1"))?
        .query_row([id.to_string()], sale)
        .optional()?
        .ok_or(TillError::NotFound("sale"))
}

/// The completed sale of a receipt's number.
pub(crate) fn by_receipt(conn: &Connection, receipt_number: i64) -> Result<SaleRow, TillError> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sales WHERE receipt_number = ?1"))?
        .query_row([receipt_number], sale)
        .optional()?
        .ok_or(TillError::NotFound("sale with this receipt number"))
}

/// The sale in front of the cashier. A completed one stays there until the cashier goes on, so that a till that is started again
/// says that the customer has paid.
pub(crate) fn in_front(conn: &Connection) -> Result<Option<SaleRow>, TillError> {
    let found =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sales WHERE held = 0"))?.query_row([], sale).optional()?;
    Ok(found)
}

/// The sales that a cashier put aside, not completed, oldest first; after one, or from the first on.
pub(crate) fn held(conn: &Connection, after: Option<Uuid>, limit: u32) -> Result<Vec<SaleRow>, TillError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sales INDEXED BY sales_put_aside
         WHERE held = 1 AND has_cart = 1 AND state <> 'completed' AND dropped_at IS NULL AND voided_at IS NULL
             AND (?2 IS NULL OR (created_at, id) > (SELECT created_at, id FROM sales WHERE id = ?2))
         ORDER BY created_at, id LIMIT ?1"
    ))?;
    let rows = statement.query_map(params![limit, after.map(|id| id.to_string())], sale)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Makes an open sale with the settings of this moment, which it keeps. One with no cart is never in front of a cashier.
pub(crate) fn insert(
    tx: &Connection,
    signature: &Signature,
    settings: &Settings,
    has_cart: bool,
) -> Result<Uuid, TillError> {
    let id = clock::id_at(signature.at);
    tx.prepare_cached(
        "INSERT INTO sales (id, state, held, currency, prices_include_tax, cash_step, cash_rounding, created_at, updated_at,
             has_cart)
         VALUES (?1, 'open', NOT ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?2)",
    )?
    .execute(params![
        id.to_string(),
        has_cart,
        settings.currency.code(),
        settings.prices_include_tax,
        settings.cash.step(),
        settings.cash.rounding().as_str(),
        signature.at.as_millisecond()
    ])?;
    Ok(id)
}

pub(crate) fn touch(tx: &Connection, signature: &Signature, id: Uuid) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE sales SET updated_at = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), signature.at.as_millisecond()])?;
    Ok(())
}

pub(crate) fn set_held(tx: &Connection, signature: &Signature, id: Uuid, held: bool) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE sales SET held = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        id.to_string(),
        held,
        signature.at.as_millisecond()
    ])?;
    Ok(())
}

/// Puts an open sale aside under a name.
pub(crate) fn park(tx: &Connection, signature: &Signature, id: Uuid, name: &str) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE sales SET held = 1, name = ?2, updated_at = ?3 WHERE id = ?1")?.execute(params![
        id.to_string(),
        name,
        signature.at.as_millisecond()
    ])?;
    Ok(())
}

/// Gives an open sale up. Its row and its lines stay.
pub(crate) fn mark_dropped(tx: &Connection, signature: &Signature, id: Uuid) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE sales SET held = 1, dropped_at = ?2, updated_at = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), signature.at.as_millisecond()])?;
    Ok(())
}

pub(crate) fn set_terms(tx: &Connection, id: Uuid, terms: Terms) -> Result<(), TillError> {
    let (discount, tip) = (Asked::columns(terms.discount), Asked::columns(terms.tip));
    tx.prepare_cached(
        "UPDATE sales SET discount_percent = ?2, discount_amount = ?3, tip_percent = ?4, tip_amount = ?5 WHERE id = ?1",
    )?
    .execute(params![id.to_string(), discount.0, discount.1, tip.0, tip.1])?;
    Ok(())
}

/// What somebody let pass who may more than a cashier: how much is given away on the sale by discounts, or by other prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// In minor units.
    pub(crate) off: i64,
    /// By whom.
    pub(crate) person_id: i64,
}

/// The columns of what was let pass by a right.
fn allowed_columns(right: Right) -> Result<[&'static str; 2], TillError> {
    match right {
        Right::Discount => Ok(["discount_allowed", "discount_allowed_by"]),
        Right::PriceOverride => Ok(["price_allowed", "price_allowed_by"]),
        _ => Err(TillError::Internal(format!("nothing is given away by the right {}", right.as_str()))),
    }
}

/// What was let pass last.
pub(crate) fn allowed(conn: &Connection, id: Uuid, right: Right) -> Result<Option<Allowed>, TillError> {
    let [off, by] = allowed_columns(right)?;
    let found = conn
        .prepare_cached(&format!("SELECT {off}, {by} FROM sales WHERE id = ?1 AND {off} IS NOT NULL"))?
        .query_row([id.to_string()], |row| Ok(Allowed { off: row.get(0)?, person_id: row.get(1)? }))
        .optional()?;
    Ok(found)
}

/// Keeps what was let pass.
pub(crate) fn allow(tx: &Connection, id: Uuid, right: Right, allowed: Allowed) -> Result<(), TillError> {
    let [off, by] = allowed_columns(right)?;
    tx.prepare_cached(&format!("UPDATE sales SET {off} = ?2, {by} = ?3 WHERE id = ?1"))?.execute(params![
        id.to_string(),
        allowed.off,
        allowed.person_id
    ])?;
    Ok(())
}

/// Deletes a sale that was begun and never used; its lines must be gone.
pub(crate) fn delete(tx: &Connection, id: Uuid) -> Result<(), TillError> {
    tx.prepare_cached("DELETE FROM sales WHERE id = ?1")?.execute([id.to_string()])?;
    Ok(())
}

/// Moves an open sale under payment, with the figures that hold from now on, and its number where it has none yet.
pub(crate) fn freeze(
    tx: &Connection,
    signature: &Signature,
    sale: &SaleRow,
    priced: &Priced,
) -> Result<SaleRow, TillError> {
    let number = match sale.number {
        Some(number) => number,
        None => next_number(tx, "sale")?,
    };
    tx.prepare_cached(
        "UPDATE sales SET state = 'paying', number = ?2, net = ?3, tax = ?4, tip = ?5, discount = ?6, total = ?7,
             updated_at = ?8
         WHERE id = ?1",
    )?
    .execute(params![
        sale.id.to_string(),
        number,
        priced.net,
        priced.tax,
        priced.tip,
        priced.discount,
        priced.total,
        signature.at.as_millisecond()
    ])?;
    by_id(tx, sale.id)
}

/// Opens a sale again whose tenders have all been declined or cancelled; the database checks that.
pub(crate) fn thaw(tx: &Connection, signature: &Signature, id: Uuid) -> Result<(), TillError> {
    tx.prepare_cached(
        "UPDATE sales SET state = 'open', net = NULL, tax = NULL, tip = NULL, discount = NULL, total = NULL, updated_at = ?2
         WHERE id = ?1",
    )?
    .execute(params![id.to_string(), signature.at.as_millisecond()])?;
    Ok(())
}

/// Completes a sale that is paid in full, and gives it the next receipt number.
pub(crate) fn complete(tx: &Connection, signature: &Signature, id: Uuid, rounding: i64) -> Result<i64, TillError> {
    let receipt_number = next_number(tx, "receipt")?;
    tx.prepare_cached(
        "UPDATE sales SET state = 'completed', receipt_number = ?2, rounding = ?3, completed_at = ?4, updated_at = ?4
         WHERE id = ?1",
    )?
    .execute(params![id.to_string(), receipt_number, rounding, signature.at.as_millisecond()])?;
    receipt::keep_head(tx, id)?;
    Ok(receipt_number)
}

/// Takes the next number of a series, in the commit that uses it: a number that is not used is not taken.
pub(crate) fn next_number(tx: &Connection, series: &str) -> Result<i64, TillError> {
    Ok(tx
        .prepare_cached("UPDATE counters SET last = last + 1 WHERE name = ?1 RETURNING last")?
        .query_row([series], |row| row.get(0))?)
}
