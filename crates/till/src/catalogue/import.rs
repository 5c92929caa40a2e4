//! The catalogue brought in from a table, in one commit or not at all.

use super::{
    keeping::{self, ArticleDetails, CategoryDetails, Kept},
    table::{self, ArticleRow, Table},
};
use crate::{TillError, Unit, amounts::format_amount, audit, audit::Signature, settings};
use checkout::Rate;
use protocol::Currency;
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Rows of a table at most.
const ROWS_MAX: usize = 100_000;
/// Bytes of a table at most.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Errors that are told at most; the others are counted.
const ERRORS_MAX: usize = 100;
/// After how many articles progress is told.
const TELL_EVERY: usize = 500;
/// Changed prices that the audit names one by one; of more it holds how many, and a digest.
const PRICES_NAMED_MAX: usize = 200;

/// What becomes of articles that are not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// They stay. What has no column in the table stays as it was too.
    Merge,
    /// They go, and so do categories: the catalogue is then what the table says, in its order.
    Replace,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportProgress {
    /// Articles that are written, and not yet saved.
    pub done: usize,
    /// Of so many.
    pub of: usize,
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Articles that were not there.
    pub added: usize,
    /// Articles that were other than the table says.
    pub changed: usize,
    /// Articles that were as the table says.
    pub unchanged: usize,
    /// Articles that are gone.
    pub removed: usize,
}

/// What is wrong with a table, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportError {
    /// The line of the file where the row begins, from 1.
    pub line: u64,
    /// The column, where it is one cell.
    pub column: Option<String>,
    /// What is wrong with it, for people.
    pub message: String,
}

impl ImportError {
    pub(super) fn new(line: u64, column: Option<&str>, message: String) -> Self {
        Self { line, column: column.map(str::to_owned), message }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            Some(column) => write!(f, "line {}: {column} {}", self.line, self.message),
            None => write!(f, "line {}: {}", self.line, self.message),
        }
    }
}

/// Why a table was not imported: the first errors, by line, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportErrors {
    /// At most 100.
    pub errors: Vec<ImportError>,
    /// How many are not told.
    pub more: usize,
}

impl fmt::Display for ImportErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.errors.first().map(ImportError::to_string).unwrap_or_default();
        match (self.errors.len() + self.more).saturating_sub(1) {
            0 => f.write_str(&first),
            others => write!(f, "{first}, and {others} more"),
        }
    }
}

fn refused(mut errors: Vec<ImportError>) -> TillError {
    errors.sort_by_key(|error| error.line);
    let more = errors.len().saturating_sub(ERRORS_MAX);
    errors.truncate(ERRORS_MAX);
    TillError::Import(ImportErrors { errors, more })
}

/// A table that was read, and may be wrong.
pub(crate) struct Draft(Table, Currency);

/// Reads a table. Prices are in the till's currency.
pub(crate) fn draft(conn: &Connection, bytes: &[u8]) -> Result<Draft, TillError> {
    if bytes.len() > BYTES_MAX {
        let message = format!("the file has {} bytes, and at most {BYTES_MAX} are read", bytes.len());
        return Err(refused(vec![ImportError::new(1, None, message)]));
    }
    let currency = settings::read(conn)?.currency;
    Ok(Draft(table::read(bytes, currency, ROWS_MAX), currency))
}

/// Brings a table in. Called inside a transaction, which an error must end.
pub(crate) fn import(
    tx: &Connection,
    signature: &Signature,
    Draft(mut table, currency): Draft,
    mode: ImportMode,
    tell: &dyn Fn(ImportProgress),
) -> Result<Imported, TillError> {
    let kept = keeping::all(tx)?;
    let by_sku: HashMap<&str, &Kept> = kept.iter().map(|kept| (kept.details.sku.as_str(), kept)).collect();
    let categories = keeping::categories(tx)?;
    let mut errors = std::mem::take(&mut table.errors);
    check_categories(&table, &mut errors);
    let mut known: HashSet<&str> = table.categories.iter().map(|(_, category)| category.id.as_str()).collect();
    if mode == ImportMode::Merge {
        known.extend(categories.iter().map(|(_, category)| category.id.as_str()));
    }
    let price = |price| table::written(&format_amount(price, currency), table.decimal_comma);
    let articles = wanted(&table.articles, &by_sku, &known, price, &mut errors);
    let in_table: HashSet<&str> = table.articles.iter().map(|row| row.sku.as_str()).collect();
    let others: Vec<&Kept> = kept.iter().filter(|kept| !in_table.contains(kept.details.sku.as_str())).collect();
    check_barcodes(&articles, if mode == ImportMode::Merge { &others } else { &[] }, &mut errors);
    if !errors.is_empty() {
        return Err(refused(errors));
    }
    let mut done = Imported::default();
    if mode == ImportMode::Replace {
        for kept in &others {
            keeping::delete(tx, kept.id)?;
        }
        done.removed = others.len();
    }
    write_categories(tx, &table, &categories, mode)?;
    write_articles(tx, &articles, &by_sku, &kept, mode, &mut done, tell)?;
    if mode == ImportMode::Replace {
        let named: HashSet<&str> = table.categories.iter().map(|(_, category)| category.id.as_str()).collect();
        for (_, category) in categories.iter().filter(|(_, category)| !named.contains(category.id.as_str())) {
            keeping::delete_category(tx, &category.id)?;
        }
    }
    let prices = changed_prices(&articles, &by_sku);
    let mut details = json!({
        "replaced": mode == ImportMode::Replace, "added": done.added, "changed": done.changed,
        "unchanged": done.unchanged, "removed": done.removed, "prices_changed": prices.len(),
    });
    if prices.len() <= PRICES_NAMED_MAX {
        details["prices"] = prices.into();
    } else {
        details["prices_sha256"] = crate::shifts::hex(&Sha256::digest(Value::from(prices).to_string())).into();
    }
    audit::append(tx, signature, "catalogue-imported", None, &details)?;
    Ok(done)
}

/// The prices that are other ones after it, before and after; none where the price is asked for.
fn changed_prices(articles: &[(u64, ArticleDetails)], by_sku: &HashMap<&str, &Kept>) -> Vec<Value> {
    let changed = articles.iter().filter_map(|(_, article)| {
        let before = by_sku.get(article.sku.as_str())?.details.price;
        (before != article.price).then(|| json!({"sku": article.sku, "before": before, "after": article.price}))
    });
    changed.collect()
}

fn check_categories(table: &Table, errors: &mut Vec<ImportError>) {
    let mut seen = HashMap::new();
    for (line, category) in &table.categories {
        if let Some(first) = seen.insert(category.id.as_str(), *line) {
            let message = format!("“{}” is on line {first} already", category.id);
            errors.push(ImportError::new(*line, Some("category"), message));
        }
    }
}

/// Each article as it is to be, with the line that says so.
fn wanted(
    rows: &[ArticleRow],
    kept: &HashMap<&str, &Kept>,
    categories: &HashSet<&str>,
    price: impl Fn(i64) -> String,
    errors: &mut Vec<ImportError>,
) -> Vec<(u64, ArticleDetails)> {
    let mut seen = HashMap::new();
    let mut articles = Vec::with_capacity(rows.len());
    // What could not be read is told already, and not once more as missing.
    let is_told: HashSet<u64> = errors.iter().map(|error| error.line).collect();
    for row in rows {
        let mut wrong = |column: &str, message: String| {
            errors.push(ImportError::new(row.line, Some(column), message));
        };
        if let Some(first) = seen.insert(row.sku.as_str(), row.line) {
            wrong("sku", format!("“{}” is on line {first} already", row.sku));
            continue;
        }
        if is_told.contains(&row.line) {
            continue;
        }
        match details(row, kept.get(row.sku.as_str()).map(|kept| &kept.details), &price) {
            Err((column, message)) => wrong(column, message),
            Ok(article) if !categories.contains(article.category.as_str()) => {
                let message = format!("“{}” is none: add a row for it that has no sku", article.category);
                wrong("category", message);
            }
            Ok(article) => articles.push((row.line, article)),
        }
    }
    articles
}

/// A row, with what it leaves open as it was, or as it is for a new article.
fn details(
    row: &ArticleRow,
    was: Option<&ArticleDetails>,
    price: impl Fn(i64) -> String,
) -> Result<ArticleDetails, keeping::Fault> {
    let missing = |column| (column, "must have a column: the article is new".to_owned());
    let or_was = |given: &Option<String>, column, was: Option<&String>| {
        given.as_ref().or(was).cloned().ok_or_else(|| missing(column))
    };
    let article = ArticleDetails {
        sku: row.sku.clone(),
        name: or_was(&row.name, "name", was.map(|was| &was.name))?,
        category: or_was(&row.category, "category", was.map(|was| &was.category))?,
        unit: row.unit.or(was.map(|was| was.unit)).unwrap_or(Unit::Piece),
        price: row.price.or(was.map(|was| was.price)).ok_or_else(|| missing("price"))?,
        tax_rate: row.tax_rate.or(was.map(|was| was.tax_rate)).ok_or_else(|| missing("tax_rate"))?,
        colour: row.colour.clone().or_else(|| was.map(|was| was.colour.clone())).unwrap_or_default(),
        favourite: row.favourite.or(was.map(|was| was.favourite)).unwrap_or_default(),
        barcodes: row.barcodes.clone().or_else(|| was.map(|was| was.barcodes.clone())).unwrap_or_default(),
    };
    article.check(price)?;
    debug_assert!(article.tax_rate <= Rate::HUNDRED);
    Ok(article)
}

/// Refuses a barcode that two articles would have.
fn check_barcodes(articles: &[(u64, ArticleDetails)], others: &[&Kept], errors: &mut Vec<ImportError>) {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for kept in others {
        owners.extend(kept.details.barcodes.iter().map(|barcode| (barcode.as_str(), kept.details.sku.as_str())));
    }
    for (line, article) in articles {
        for barcode in &article.barcodes {
            if let Some(owner) = owners.insert(barcode, &article.sku) {
                let message = format!("“{barcode}” is the one of {owner} already");
                errors.push(ImportError::new(*line, Some("barcodes"), message));
            }
        }
    }
}

fn write_categories(
    tx: &Connection,
    table: &Table,
    was: &[(i64, CategoryDetails)],
    mode: ImportMode,
) -> Result<(), TillError> {
    let mut next = was.iter().map(|(position, _)| *position).max().unwrap_or(0);
    for (place, (_, category)) in (1..).zip(&table.categories) {
        let before = was.iter().find(|(_, before)| before.id == category.id);
        let position = match (mode, before) {
            (ImportMode::Replace, _) => place,
            (ImportMode::Merge, Some((position, _))) => *position,
            (ImportMode::Merge, None) => {
                next += 1;
                next
            }
        };
        if before.is_none_or(|before| *before != (position, category.clone())) {
            keeping::write_category(tx, position, category)?;
        }
    }
    Ok(())
}

fn write_articles(
    tx: &Connection,
    articles: &[(u64, ArticleDetails)],
    by_sku: &HashMap<&str, &Kept>,
    kept: &[Kept],
    mode: ImportMode,
    done: &mut Imported,
    tell: &dyn Fn(ImportProgress),
) -> Result<(), TillError> {
    // A barcode may go from one article to another: first all are taken, then all are given.
    for (_, article) in articles {
        if let Some(was) = by_sku.get(article.sku.as_str()) {
            keeping::take_barcodes(tx, &was.details.barcodes, &article.barcodes)?;
        }
    }
    let mut next = kept.iter().map(|kept| kept.position).max().unwrap_or(0);
    for (place, (_, article)) in (1..).zip(articles) {
        let was = by_sku.get(article.sku.as_str());
        let position = match (mode, was) {
            (ImportMode::Replace, _) => place,
            (ImportMode::Merge, Some(was)) => was.position,
            (ImportMode::Merge, None) => {
                next += 1;
                next
            }
        };
        match was {
            None => {
                let id = keeping::insert(tx, position, article)?;
                keeping::give_barcodes(tx, id, &[], &article.barcodes)?;
                done.added += 1;
            }
            Some(was) => {
                if was.position != position {
                    tx.prepare_cached("UPDATE articles SET position = ?2 WHERE id = ?1")?
                        .execute(params![was.id, position])?;
                }
                if was.details == *article {
                    done.unchanged += 1;
                } else {
                    keeping::update(tx, was.id, &was.details, article)?;
                    keeping::give_barcodes(tx, was.id, &was.details.barcodes, &article.barcodes)?;
                    done.changed += 1;
                }
            }
        }
        let written = done.added + done.changed + done.unchanged;
        if written.is_multiple_of(TELL_EVERY) || written == articles.len() {
            tell(ImportProgress { done: written, of: articles.len() });
        }
    }
    Ok(())
}

/// The whole catalogue as a table, which brings the same catalogue back.
pub(crate) fn export(conn: &Connection) -> Result<Vec<u8>, TillError> {
    let categories: Vec<CategoryDetails> =
        keeping::categories(conn)?.into_iter().map(|(_, category)| category).collect();
    let articles: Vec<ArticleDetails> = keeping::all(conn)?.into_iter().map(|kept| kept.details).collect();
    table::write(&categories, &articles, settings::read(conn)?.currency)
}
