//! The lines and the tax table of a sale, as the file keeps them.

use crate::{Asked, TillError, Unit, catalogue::Offer, columns};
use checkout::{PricedLine, Quantity, Rate, TaxGroup};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How the price of a line came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// From the catalogue.
    Article,
    /// It was asked for when the article was rung up.
    OpenPrice,
    /// From the label of a scale.
    Label,
}

impl Origin {
    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::OpenPrice => "open_price",
            Self::Label => "label",
        }
    }

    fn read(word: &str) -> Option<Self> {
        [Self::Article, Self::OpenPrice, Self::Label].into_iter().find(|origin| origin.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LineRow {
    pub(crate) id: i64,
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) unit_price: i64,
    pub(crate) quantity: Quantity,
    pub(crate) tax_rate: Rate,
    pub(crate) origin: Origin,
    /// The price before somebody set another.
    pub(crate) list_price: Option<i64>,
    pub(crate) note: Option<String>,
    pub(crate) discount: Option<Asked>,
    /// There from Pay on.
    #[serde(skip)]
    pub(crate) frozen: Option<PricedLine>,
}

const COLUMNS: &str =
    "id, sku, name, unit, unit_price, quantity, tax_rate, gross, discount, sale_discount, total, origin,
    list_price, note, discount_percent, discount_amount";

fn line(row: &Row<'_>) -> rusqlite::Result<LineRow> {
    let frozen = match row.get::<_, Option<i64>>(7)? {
        Some(gross) => {
            Some(PricedLine { gross, discount: row.get(8)?, sale_discount: row.get(9)?, total: row.get(10)? })
        }
        None => None,
    };
    Ok(LineRow {
        id: row.get(0)?,
        sku: row.get(1)?,
        name: row.get(2)?,
        unit: columns::word(row, 3, Unit::read)?,
        unit_price: row.get(4)?,
        quantity: columns::quantity(row, 5)?,
        tax_rate: columns::rate(row, 6)?,
        origin: columns::word(row, 11, Origin::read)?,
        list_price: row.get(12)?,
        note: row.get(13)?,
        discount: Asked::read(row, 14)?,
        frozen,
    })
}

/// The lines of a sale, in the order in which they were rung up.
pub(crate) fn of_sale(conn: &Connection, sale: Uuid) -> Result<Vec<LineRow>, TillError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM lines WHERE sale_id = ?1 ORDER BY id"))?;
    let rows = statement.query_map([sale.to_string()], line)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A line and the sale that it belongs to.
pub(crate) fn by_id(conn: &Connection, id: i64) -> Result<Option<(LineRow, Uuid)>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS}, sale_id FROM lines WHERE id = ?1"))?
        .query_row([id], |row| Ok((line(row)?, columns::uuid(row, 16)?)))
        .optional()?;
    Ok(found)
}

/// The line of a sale to which more of this offer belongs: the same article at the same price, with nothing special about it.
pub(crate) fn same_article(conn: &Connection, sale: Uuid, offer: &Offer) -> Result<Option<LineRow>, TillError> {
    let found = conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM lines WHERE sale_id = ?1 AND sku = ?2 AND name = ?3 AND unit = ?4
               AND unit_price = ?5 AND tax_rate = ?6 AND origin = 'article' AND list_price IS NULL AND note IS NULL
               AND discount_percent IS NULL AND discount_amount IS NULL
             ORDER BY id LIMIT 1"
        ))?
        .query_row(
            params![sale.to_string(), offer.sku, offer.name, offer.unit.as_str(), offer.price, offer.tax_rate],
            line,
        )
        .optional()?;
    Ok(found)
}

/// Adds a line of this offer and gives its id.
pub(crate) fn insert(
    tx: &Connection,
    sale: Uuid,
    offer: &Offer,
    quantity: Quantity,
    origin: Origin,
) -> Result<i64, TillError> {
    tx.prepare_cached(
        "INSERT INTO lines (sale_id, sku, name, unit, unit_price, quantity, tax_rate, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        sale.to_string(),
        offer.sku,
        offer.name,
        offer.unit.as_str(),
        offer.price,
        quantity.thousandths(),
        offer.tax_rate,
        origin.as_str()
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Writes a line of an open sale as it is to be, also one that was removed.
pub(crate) fn write(tx: &Connection, sale: Uuid, line: &LineRow) -> Result<(), TillError> {
    let (percent, amount) = Asked::columns(line.discount);
    tx.prepare_cached(
        "INSERT INTO lines (id, sale_id, sku, name, unit, unit_price, quantity, tax_rate, origin, list_price, note,
             discount_percent, discount_amount)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (id) DO UPDATE SET unit_price = excluded.unit_price, quantity = excluded.quantity,
             list_price = excluded.list_price, note = excluded.note, discount_percent = excluded.discount_percent,
             discount_amount = excluded.discount_amount",
    )?
    .execute(params![
        line.id,
        sale.to_string(),
        line.sku,
        line.name,
        line.unit.as_str(),
        line.unit_price,
        line.quantity.thousandths(),
        line.tax_rate.thousandths(),
        line.origin.as_str(),
        line.list_price,
        line.note,
        percent,
        amount
    ])?;
    Ok(())
}

pub(crate) fn remove(tx: &Connection, id: i64) -> Result<(), TillError> {
    tx.prepare_cached("DELETE FROM lines WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Removes all lines of a sale and says how many there were.
pub(crate) fn remove_all(tx: &Connection, sale: Uuid) -> Result<usize, TillError> {
    Ok(tx.prepare_cached("DELETE FROM lines WHERE sale_id = ?1")?.execute([sale.to_string()])?)
}

/// Writes the figures of Pay into the rows.
pub(crate) fn freeze(
    tx: &Connection,
    sale: Uuid,
    lines: &[LineRow],
    priced: &checkout::Priced,
) -> Result<(), TillError> {
    let mut update =
        tx.prepare_cached("UPDATE lines SET gross = ?2, discount = ?3, sale_discount = ?4, total = ?5 WHERE id = ?1")?;
    for (line, figures) in lines.iter().zip(&priced.lines) {
        update.execute(params![line.id, figures.gross, figures.discount, figures.sale_discount, figures.total])?;
    }
    let mut insert = tx.prepare_cached("INSERT INTO sale_taxes (sale_id, rate, net, tax) VALUES (?1, ?2, ?3, ?4)")?;
    for group in &priced.taxes {
        insert.execute(params![sale.to_string(), group.rate.thousandths(), group.net, group.tax])?;
    }
    Ok(())
}

/// Takes the figures of Pay out of the rows of a sale that is open again.
pub(crate) fn thaw(tx: &Connection, sale: Uuid) -> Result<(), TillError> {
    tx.prepare_cached(
        "UPDATE lines SET gross = NULL, discount = NULL, sale_discount = NULL, total = NULL WHERE sale_id = ?1",
    )?
    .execute([sale.to_string()])?;
    tx.prepare_cached("DELETE FROM sale_taxes WHERE sale_id = ?1")?.execute([sale.to_string()])?;
    Ok(())
}

/// The frozen tax table, lowest rate first.
pub(crate) fn taxes(conn: &Connection, sale: Uuid) -> Result<Vec<TaxGroup>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT rate, net, tax FROM sale_taxes WHERE sale_id = ?1 ORDER BY rate")?;
    let rows = statement.query_map([sale.to_string()], |row| {
        Ok(TaxGroup { rate: columns::rate(row, 0)?, net: row.get(1)?, tax: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
