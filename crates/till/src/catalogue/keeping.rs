//! What a shop keeps of its articles and categories, made, changed and removed one by one. Lines that were sold keep their own copy.

use crate::{TillError, Unit, amounts::format_amount, audit, audit::Signature, columns, editing::PRICE_MAX, settings};
use checkout::Rate;
use protocol::{holds_card_number, is_unseen};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Characters of an SKU, a barcode or a category's id at most.
const CODE_CHARS_MAX: usize = 64;
/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 128;
/// Barcodes of one article at most.
const BARCODES_MAX: usize = 64;

/// An article with all that the shop keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArticleDetails {
    /// The shop's own number of it, with no space in it.
    pub sku: String,
    /// Its name.
    pub name: String,
    /// The id of its category.
    pub category: String,
    /// How it is sold.
    pub unit: Unit,
    /// For one piece or one kilogram, in minor units of the till's currency; none where it is asked for.
    pub price: Option<i64>,
    /// Its tax rate, at most 100 %.
    pub tax_rate: Rate,
    /// Its own colour as `#rrggbb`; none for that of its category.
    pub colour: Option<String>,
    /// Whether it is shown first.
    pub favourite: bool,
    /// What its scanner codes are.
    pub barcodes: Vec<String>,
}

/// A category with all that the shop keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryDetails {
    /// Its id, such as `bakery`, with no space in it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `#rrggbb`, dark enough for white text.
    pub colour: String,
}

/// A fault of an article or category, and what of it is at fault: the name of its column where catalogues are written out.
pub(super) type Fault = (&'static str, String);

impl ArticleDetails {
    /// The first thing about it that can't be kept, whatever else is in the catalogue. `written` writes a price as whoever gave it reads it.
    pub(super) fn check(&self, written: impl Fn(i64) -> String) -> Result<(), Fault> {
        check_code("sku", &self.sku)?;
        check_name(&self.name)?;
        check_code("category", &self.category)?;
        if self.price.is_some_and(|price| !(0..=PRICE_MAX).contains(&price)) {
            return Err(("price", price_range(written)));
        }
        if self.tax_rate > Rate::HUNDRED {
            return Err(("tax_rate", "must be at most 100".to_owned()));
        }
        self.colour.as_deref().map_or(Ok(()), check_colour)?;
        if self.barcodes.len() > BARCODES_MAX {
            return Err(("barcodes", format!("must be at most {BARCODES_MAX}")));
        }
        for (index, barcode) in self.barcodes.iter().enumerate() {
            check_code("barcodes", barcode)?;
            if self.barcodes[..index].contains(barcode) {
                return Err(("barcodes", format!("“{barcode}” is there twice")));
            }
        }
        Ok(())
    }
}

impl CategoryDetails {
    pub(super) fn check(&self) -> Result<(), Fault> {
        check_code("category", &self.id)?;
        check_name(&self.name)?;
        check_colour(&self.colour)
    }
}

/// What a price must be.
pub(super) fn price_range(written: impl Fn(i64) -> String) -> String {
    format!("must be from {} to {}", written(0), written(PRICE_MAX))
}

fn check_code(what: &'static str, code: &str) -> Result<(), Fault> {
    let fits = (1..=CODE_CHARS_MAX).contains(&code.chars().count());
    if !fits || code.contains(|c: char| c.is_whitespace() || is_unseen(c)) {
        return Err((what, format!("must have 1 to {CODE_CHARS_MAX} characters, and no space among them")));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Fault> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if !fits || name.trim() != name || name.contains(is_unseen) {
        return Err((
            "name",
            format!("must have 1 to {NAME_CHARS_MAX} characters on one line, and no space around them"),
        ));
    }
    if holds_card_number(name) {
        return Err(("name", "must not hold the number of a card".to_owned()));
    }
    Ok(())
}

fn check_colour(colour: &str) -> Result<(), Fault> {
    let is_hex = |digits: &str| digits.len() == 6 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if colour.strip_prefix('#').is_some_and(is_hex) {
        return Ok(());
    }
    Err(("colour", "must be written as #rrggbb, in small letters".to_owned()))
}

fn invalid((what, must): Fault) -> TillError {
    TillError::InvalidArticle(format!("{}: {must}", what.replace('_', " ")))
}

/// The row of an article, with its place in the catalogue's order.
pub(super) struct Kept {
    pub(super) id: i64,
    pub(super) position: i64,
    pub(super) details: ArticleDetails,
}

const COLUMNS: &str = "id, position, sku, name, category, unit, price, tax_rate, colour, favourite, open_price,
    (SELECT group_concat(barcode, ' ' ORDER BY barcode) FROM barcodes WHERE article_id = articles.id)";

fn kept(row: &rusqlite::Row<'_>) -> rusqlite::Result<Kept> {
    let barcodes: Option<String> = row.get(11)?;
    let is_open = row.get::<_, bool>(10)?;
    Ok(Kept {
        id: row.get(0)?,
        position: row.get(1)?,
        details: ArticleDetails {
            sku: row.get(2)?,
            name: row.get(3)?,
            category: row.get(4)?,
            unit: columns::word(row, 5, Unit::read)?,
            price: if is_open { None } else { Some(row.get(6)?) },
            tax_rate: columns::rate(row, 7)?,
            colour: row.get(8)?,
            favourite: row.get(9)?,
            barcodes: barcodes.map_or_else(Vec::new, |all| all.split(' ').map(str::to_owned).collect()),
        },
    })
}

/// Every article, in the catalogue's order.
pub(super) fn all(conn: &Connection) -> Result<Vec<Kept>, TillError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM articles ORDER BY position, id"))?;
    let rows = statement.query_map([], kept)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn by_sku(conn: &Connection, sku: &str) -> Result<Kept, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM articles WHERE sku = ?1"))?
        .query_row([sku], kept)
        .optional()?;
    found.ok_or(TillError::NotFound("article"))
}

pub(crate) fn article(conn: &Connection, sku: &str) -> Result<ArticleDetails, TillError> {
    Ok(by_sku(conn, sku)?.details)
}

/// Makes an article, or with `before` changes the one that has this SKU. Of barcodes the order does not count.
pub(crate) fn save_article(
    tx: &Connection,
    signature: &Signature,
    before: Option<&str>,
    mut after: ArticleDetails,
) -> Result<ArticleDetails, TillError> {
    after.barcodes.sort_unstable();
    let currency = settings::read(tx)?.currency;
    after.check(|price| format_amount(price, currency)).map_err(invalid)?;
    if !has_category(tx, &after.category)? {
        return Err(TillError::NotFound("category"));
    }
    let before = before.map(|sku| by_sku(tx, sku)).transpose()?;
    if before.as_ref().is_some_and(|before| before.details == after) {
        return Ok(after);
    }
    let id = before.as_ref().map(|before| before.id);
    check_unused(tx, id, &after)?;
    let id = match &before {
        Some(before) => {
            update(tx, before.id, &before.details, &after)?;
            before.id
        }
        None => {
            let position = tx.query_row("SELECT coalesce(max(position), 0) + 1 FROM articles", [], |row| row.get(0))?;
            insert(tx, position, &after)?
        }
    };
    let had = before.as_ref().map_or(&[][..], |before| &before.details.barcodes);
    take_barcodes(tx, had, &after.barcodes)?;
    give_barcodes(tx, id, had, &after.barcodes)?;
    let what = if before.is_some() { "article-changed" } else { "article-created" };
    let details = json!({"before": before.map(|before| before.details), "after": after});
    audit::append(tx, signature, what, None, &details)?;
    Ok(after)
}

/// Refuses an SKU or barcode that another article has.
fn check_unused(conn: &Connection, id: Option<i64>, article: &ArticleDetails) -> Result<(), TillError> {
    let taken = |what: &str, code: &str, owner: Option<i64>| match owner {
        Some(owner) if Some(owner) != id => {
            Err(TillError::InvalidArticle(format!("another article has the {what} “{code}”")))
        }
        _ => Ok(()),
    };
    let owner: Option<i64> = conn
        .prepare_cached("SELECT id FROM articles WHERE sku = ?1")?
        .query_row([&article.sku], |row| row.get(0))
        .optional()?;
    taken("SKU", &article.sku, owner)?;
    for barcode in &article.barcodes {
        let owner = conn
            .prepare_cached("SELECT article_id FROM barcodes WHERE barcode = ?1")?
            .query_row([barcode], |row| row.get(0))
            .optional()?;
        taken("barcode", barcode, owner)?;
    }
    Ok(())
}

pub(super) fn insert(tx: &Connection, position: i64, article: &ArticleDetails) -> Result<i64, TillError> {
    tx.prepare_cached(
        "INSERT INTO articles (sku, name, category, unit, price, tax_rate, colour, favourite, open_price, position)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        article.sku,
        article.name,
        article.category,
        article.unit.as_str(),
        article.price.unwrap_or(0),
        article.tax_rate.thousandths(),
        article.colour,
        article.favourite,
        article.price.is_none(),
        position
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Writes what changed. Name and SKU are left out where they stay: with them the search is written anew.
pub(super) fn update(
    tx: &Connection,
    id: i64,
    before: &ArticleDetails,
    after: &ArticleDetails,
) -> Result<(), TillError> {
    if (&before.sku, &before.name) != (&after.sku, &after.name) {
        tx.prepare_cached("UPDATE articles SET sku = ?2, name = ?3 WHERE id = ?1")?
            .execute(params![id, after.sku, after.name])?;
    }
    tx.prepare_cached(
        "UPDATE articles SET category = ?2, unit = ?3, price = ?4, tax_rate = ?5, colour = ?6, favourite = ?7,
             open_price = ?8
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        after.category,
        after.unit.as_str(),
        after.price.unwrap_or(0),
        after.tax_rate.thousandths(),
        after.colour,
        after.favourite,
        after.price.is_none()
    ])?;
    Ok(())
}

/// Takes the barcodes away that an article has no more. To be done for all articles of a change before any is given one.
pub(super) fn take_barcodes(tx: &Connection, before: &[String], after: &[String]) -> Result<(), TillError> {
    let mut delete = tx.prepare_cached("DELETE FROM barcodes WHERE barcode = ?1")?;
    for gone in before.iter().filter(|barcode| !after.contains(barcode)) {
        delete.execute([gone])?;
    }
    Ok(())
}

pub(super) fn give_barcodes(tx: &Connection, id: i64, before: &[String], after: &[String]) -> Result<(), TillError> {
    let mut insert = tx.prepare_cached("INSERT INTO barcodes (barcode, article_id) VALUES (?1, ?2)")?;
    for new in after.iter().filter(|barcode| !before.contains(barcode)) {
        insert.execute(params![new, id])?;
    }
    Ok(())
}

pub(super) fn delete(tx: &Connection, id: i64) -> Result<(), TillError> {
    tx.prepare_cached("DELETE FROM articles WHERE id = ?1")?.execute([id])?;
    Ok(())
}

pub(crate) fn remove_article(tx: &Connection, signature: &Signature, sku: &str) -> Result<(), TillError> {
    let before = by_sku(tx, sku)?;
    delete(tx, before.id)?;
    audit::append(tx, signature, "article-removed", None, &json!({"before": before.details}))
}

/// Every category, in its order, with its position.
pub(super) fn categories(conn: &Connection) -> Result<Vec<(i64, CategoryDetails)>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT position, id, name, colour FROM categories ORDER BY position, id")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, CategoryDetails { id: row.get(1)?, name: row.get(2)?, colour: row.get(3)? }))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn has_category(conn: &Connection, id: &str) -> Result<bool, TillError> {
    let found = conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM categories WHERE id = ?1)")?;
    let mut found = found;
    Ok(found.query_row([id], |row| row.get(0))?)
}

/// Makes a category, at the end of them, or changes the one of this id.
pub(crate) fn save_category(tx: &Connection, signature: &Signature, after: &CategoryDetails) -> Result<(), TillError> {
    after.check().map_err(invalid)?;
    let all = categories(tx)?;
    let before = all.iter().find(|(_, category)| category.id == after.id);
    if before.is_some_and(|(_, before)| before == after) {
        return Ok(());
    }
    let next = all.iter().map(|(position, _)| position).max().map_or(1, |last| last + 1);
    write_category(tx, before.map_or(next, |(position, _)| *position), after)?;
    let what = if before.is_some() { "category-changed" } else { "category-created" };
    audit::append(tx, signature, what, None, &json!({"before": before.map(|(_, before)| before), "after": after}))
}

pub(super) fn write_category(tx: &Connection, position: i64, category: &CategoryDetails) -> Result<(), TillError> {
    tx.prepare_cached(
        "INSERT INTO categories (id, name, colour, position) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, colour = excluded.colour, position = excluded.position",
    )?
    .execute(params![category.id, category.name, category.colour, position])?;
    Ok(())
}

pub(super) fn delete_category(tx: &Connection, id: &str) -> Result<(), TillError> {
    tx.prepare_cached("DELETE FROM categories WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Removes a category that no article is in.
pub(crate) fn remove_category(tx: &Connection, signature: &Signature, id: &str) -> Result<(), TillError> {
    let (_, before) =
        categories(tx)?.into_iter().find(|(_, category)| category.id == id).ok_or(TillError::NotFound("category"))?;
    let used: i64 = tx.query_row("SELECT count(*) FROM articles WHERE category = ?1", [id], |row| row.get(0))?;
    if used > 0 {
        return Err(TillError::CategoryInUse { name: before.name, articles: used });
    }
    delete_category(tx, id)?;
    audit::append(tx, signature, "category-removed", None, &json!({"before": before}))
}
