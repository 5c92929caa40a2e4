//! The catalogue: categories, articles, and the search by any word of name, SKU or barcode.

mod import;
mod keeping;
mod table;

pub use import::{ImportError, ImportErrors, ImportMode, ImportProgress, Imported};
pub(crate) use import::{draft, export, import};
pub use keeping::{ArticleDetails, CategoryDetails};
pub(crate) use keeping::{article, remove_article, remove_category, save_article, save_category};

use crate::{TillError, columns, ean13, ean13::Label, settings};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::{Deserialize, Serialize};

/// How many articles one answer holds at most.
pub(crate) const ARTICLES_MAX: u32 = 200;
/// How many words of a search are looked at. More would only slow it down.
const WORDS_MAX: usize = 16;

/// How an article is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// By the piece: whole quantities.
    Piece,
    /// By weight: kilograms, with up to three decimals.
    Weight,
}

impl Unit {
    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Piece => "piece",
            Self::Weight => "weight",
        }
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        [Self::Piece, Self::Weight].into_iter().find(|unit| unit.as_str() == word)
    }
}

/// A group of articles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Category {
    /// Its id, such as `bakery`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `#rrggbb`, dark enough for white text.
    pub colour: String,
    /// How many articles it holds.
    pub count: u32,
}

/// What is sold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Article {
    /// The shop's own number of it.
    pub sku: String,
    /// Its name.
    pub name: String,
    /// For one piece or one kilogram, in minor units of the till's currency; 0 where it is asked for.
    pub price: i64,
    /// Whether the price is asked for when it is rung up.
    pub open_price: bool,
    /// The id of its category.
    pub category: String,
    /// Its own colour, or else that of its category.
    pub colour: String,
    /// How it is sold.
    pub unit: Unit,
    /// Whether it is shown first.
    pub favourite: bool,
    /// Percent, as the shortest decimal: `7`, `8.875`.
    pub tax_rate: String,
}

/// What articles are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArticleQuery {
    /// Words, or beginnings of words, of name, SKU or barcode; all must be found. Empty: every article.
    pub text: String,
    /// Only those of this category.
    pub category: Option<String>,
}

/// The articles found, favourites first, then in the order of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Articles {
    /// At most 200.
    pub articles: Vec<Article>,
    /// Whether there are more.
    pub more: bool,
}

/// An article as the engine needs it: the rate in thousandths of a percent.
pub(crate) struct Offer {
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) price: i64,
    pub(crate) tax_rate: i64,
    /// The price must be asked for.
    pub(crate) open_price: bool,
}

pub(crate) fn categories(conn: &Connection) -> Result<Vec<Category>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, name, colour, (SELECT count(*) FROM articles WHERE category = categories.id)
         FROM categories ORDER BY position, id",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Category { id: row.get(0)?, name: row.get(1)?, colour: row.get(2)?, count: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// From how many articles on that hold the words it is quicker to go through the catalogue in its order, up to as many as are shown,
/// than to look up and sort all of them.
const FEW: usize = 1_000;

/// The articles in the order in which they are shown: of the catalogue, of a category, or those of the ids.
fn select(what: &str, in_category: bool, by_ids: bool) -> String {
    let order = if in_category { "articles_in_order_by_category" } else { "articles_in_order" };
    let index = if by_ids { String::new() } else { format!("INDEXED BY {order}") };
    let category = if in_category { "category = :category" } else { "TRUE" };
    let ids = if by_ids { "id IN (SELECT value FROM json_each(:ids))" } else { "TRUE" };
    format!(
        "SELECT {what} FROM articles {index} WHERE {category} AND {ids}
         ORDER BY favourite DESC, position, id LIMIT :limit"
    )
}

const SHOWN: &str = "sku, name, price, category,
    coalesce(colour, (SELECT c.colour FROM categories c WHERE c.id = category)), unit, favourite, tax_rate, open_price";

pub(crate) fn articles(conn: &Connection, query: &ArticleQuery) -> Result<Articles, TillError> {
    let words = match_expression(&query.text);
    if words.is_none() && !query.text.trim().is_empty() {
        return Ok(Articles { articles: Vec::new(), more: false });
    }
    let category = query.category.as_deref();
    let ids = match words {
        None => None,
        Some(words) => {
            let all = holding(conn, &words)?;
            Some(if all.len() > FEW { first_in_order(conn, category, &all)? } else { all })
        }
    };
    let mut found = in_order(conn, category, ids.as_deref())?;
    let more = found.len() > ARTICLES_MAX as usize;
    found.truncate(ARTICLES_MAX as usize);
    Ok(Articles { articles: found, more })
}

/// As many as are shown and one more, of a category and of these ids where they are given.
fn in_order(conn: &Connection, category: Option<&str>, ids: Option<&[i64]>) -> Result<Vec<Article>, TillError> {
    let limit = ARTICLES_MAX + 1;
    let ids = ids.map(|ids| format!("[{}]", ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")));
    let mut params: Vec<(&str, &dyn ToSql)> = vec![(":limit", &limit)];
    if let Some(category) = &category {
        params.push((":category", category));
    }
    if let Some(ids) = &ids {
        params.push((":ids", ids));
    }
    let mut statement = conn.prepare_cached(&select(SHOWN, category.is_some(), ids.is_some()))?;
    let rows = statement.query_map(params.as_slice(), shown)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The ids of all articles that hold the words, ascending.
fn holding(conn: &Connection, words: &str) -> Result<Vec<i64>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT rowid FROM article_words WHERE article_words MATCH ?1 ORDER BY rowid")?;
    let rows = statement.query_map([words], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The first of `ids`, which ascend, that the catalogue or category has in its order: as many as are shown and one more.
fn first_in_order(conn: &Connection, category: Option<&str>, ids: &[i64]) -> Result<Vec<i64>, TillError> {
    let all = -1;
    let mut params: Vec<(&str, &dyn ToSql)> = vec![(":limit", &all)];
    if let Some(category) = &category {
        params.push((":category", category));
    }
    let mut statement = conn.prepare_cached(&select("id", category.is_some(), false))?;
    let mut rows = statement.query(params.as_slice())?;
    let mut first = Vec::new();
    while first.len() <= ARTICLES_MAX as usize
        && let Some(row) = rows.next()?
    {
        let id = row.get(0)?;
        if ids.binary_search(&id).is_ok() {
            first.push(id);
        }
    }
    Ok(first)
}

fn shown(row: &Row<'_>) -> rusqlite::Result<Article> {
    Ok(Article {
        sku: row.get(0)?,
        name: row.get(1)?,
        price: row.get(2)?,
        category: row.get(3)?,
        colour: row.get(4)?,
        unit: columns::word(row, 5, Unit::read)?,
        favourite: row.get(6)?,
        tax_rate: columns::rate(row, 7)?.to_string(),
        open_price: row.get(8)?,
    })
}

/// The one article with this SKU or, as a scanner gives it, this barcode.
pub(crate) fn offer(conn: &Connection, code: &str) -> Result<Option<Offer>, TillError> {
    let offer = conn
        .prepare_cached(
            "SELECT sku, name, unit, price, tax_rate, open_price FROM articles
             WHERE id = coalesce((SELECT id FROM articles WHERE sku = ?1),
                                 (SELECT article_id FROM barcodes WHERE barcode = ?1))",
        )?
        .query_row(params![code.trim()], |row| {
            Ok(Offer {
                sku: row.get(0)?,
                name: row.get(1)?,
                unit: columns::word(row, 2, Unit::read)?,
                price: row.get(3)?,
                tax_rate: row.get(4)?,
                open_price: row.get(5)?,
            })
        })
        .optional()?;
    Ok(offer)
}

/// What the code says where it is a label of one of this shop's scales.
pub(crate) fn label(conn: &Connection, code: &str) -> Result<Option<Label>, TillError> {
    // Every other code is spared the look at the settings.
    if !ean13::is_in_store(code.trim()) {
        return Ok(None);
    }
    ean13::read_label(code.trim(), &settings::read(conn)?.scale_barcodes)
}

/// What a person typed, as an expression of the full-text index: every word quoted, so that nothing in it is an operator, and
/// taken as a beginning. `None` where there is no word in it that could be found.
fn match_expression(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(WORDS_MAX)
        .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    /// The demo catalogue and 50,000 articles more. Of ten of those one is a favourite.
    fn large() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        crate::schema::prepare(&conn).unwrap();
        for migration in crate::schema::schema().migrations {
            conn.execute_batch(migration.sql).unwrap();
        }
        crate::demo::seed(&conn).unwrap();
        conn.execute_batch(
            "INSERT INTO articles (sku, name, category, unit, price, tax_rate, position, favourite)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
             SELECT 'SKU-' || i, 'Article ' || i || ' of shelf ' || (i % 97), 'pantry', 'piece', i, 7000, 1000 + i, i % 10 = 0
             FROM n;
             INSERT INTO barcodes (barcode, article_id) SELECT '40' || id, id FROM articles WHERE sku LIKE 'SKU-%'",
        )
        .unwrap();
        conn
    }

    /// Steps and sorts of a statement since it was asked last.
    fn work(statement: &rusqlite::Statement<'_>) -> (i32, i32) {
        (statement.reset_status(StatementStatus::VmStep), statement.reset_status(StatementStatus::Sort))
    }

    fn holding(conn: &Connection, text: &str) -> Vec<i64> {
        super::holding(conn, &match_expression(text).unwrap()).unwrap()
    }

    /// How many articles the search may read are as many as hold the words: with 50,000 in the catalogue, that is what keeps
    /// it under 50 ms. How long it takes here says more of the machine than of the search.
    #[test]
    fn a_search_reads_what_it_finds_and_not_the_catalogue() {
        let conn = large();
        for (text, count) in [("SKU-31415", 1), ("croissant", 1), ("article 4919", 11), ("article 49 shelf 12", 23)] {
            let ids = holding(&conn, text);
            assert_eq!(in_order(&conn, None, Some(&ids)).unwrap().len(), count, "{text:?}");
            let search = conn.prepare_cached(&select(SHOWN, false, true)).unwrap();
            // Some dozens of steps for each article found; to look at each of the catalogue takes some hundred thousand.
            let (steps, sorts) = work(&search);
            assert!(steps < 2_000 && sorts == 1, "{text:?} took {steps} steps and {sorts} sorts");
        }
    }

    #[test]
    fn the_first_of_very_many_are_neither_sorted_nor_are_the_others_read() {
        let conn = large();
        for text in ["article", "a", "sku"] {
            let ids = holding(&conn, text);
            assert!(ids.len() > FEW, "{text:?}");
            assert_eq!(first_in_order(&conn, None, &ids).unwrap().len(), 201, "{text:?}");
            let (steps, sorts) = work(&conn.prepare_cached(&select("id", false, false)).unwrap());
            assert!(steps < 5_000 && sorts == 0, "{text:?} took {steps} steps and {sorts} sorts");
        }
        for category in [None, Some("pantry")] {
            assert_eq!(in_order(&conn, category, None).unwrap().len(), 201);
            let (steps, sorts) = work(&conn.prepare_cached(&select(SHOWN, category.is_some(), false)).unwrap());
            assert!(
                steps < 10_000 && sorts == 0,
                "the first page of {category:?} took {steps} steps and {sorts} sorts"
            );
        }
    }

    #[test]
    fn either_way_the_same_is_found_in_the_same_order() {
        let conn = large();
        for text in ["article", "article 12", "shelf 96", "sku 4", "croissant", "nowhere"] {
            for category in [None, Some("pantry"), Some("bakery"), Some("none")] {
                let ids = holding(&conn, text);
                let sorted = in_order(&conn, category, Some(&ids)).unwrap();
                let first = first_in_order(&conn, category, &ids).unwrap();
                assert_eq!(in_order(&conn, category, Some(&first)).unwrap(), sorted, "{text:?} in {category:?}");
            }
        }
        assert!(holding(&conn, "article").len() > FEW && holding(&conn, "shelf 96").len() < FEW);
    }

    #[test]
    fn nothing_typed_is_an_operator() {
        assert_eq!(match_expression("but cro").as_deref(), Some("\"but\"* \"cro\"*"));
        assert_eq!(match_expression("a\" OR \"b").as_deref(), Some("\"a\"\"\"* \"OR\"* \"\"\"b\"*"));
        assert_eq!(match_expression("NEAR(a b)").as_deref(), Some("\"NEAR(a\"* \"b)\"*"));
        assert_eq!(match_expression("BAK-201").as_deref(), Some("\"BAK-201\"*"));
        for nothing in ["", "  ", "\"", "*", "% ^ -", "🥐", "\0"] {
            assert_eq!(match_expression(nothing), None, "{nothing:?}");
        }
    }
}
