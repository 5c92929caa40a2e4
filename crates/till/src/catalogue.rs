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
const FEW: u32 = 1_000;

/// How the articles are found. Whichever way, those that are shown are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In the catalogue's order: nothing was typed.
    InOrder,
    /// By the words, and then sorted.
    ByWords,
    /// In the catalogue's order, those with the words.
    InOrderWithWords,
}

/// The articles of one way, in the order in which they are shown.
fn select(way: Way, in_category: bool) -> String {
    let order = if in_category { "articles_in_order_by_category" } else { "articles_in_order" };
    let index = if way == Way::ByWords { String::new() } else { format!("INDEXED BY {order}") };
    let mut conditions = Vec::new();
    if in_category {
        conditions.push("a.category = :category");
    }
    match way {
        Way::InOrder => {}
        Way::ByWords => conditions.push("a.id IN (SELECT value FROM json_each(:ids))"),
        Way::InOrderWithWords => {
            conditions.push("a.id IN (SELECT rowid FROM article_words WHERE article_words MATCH :words)");
        }
    }
    let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    format!(
        "SELECT a.sku, a.name, a.price, a.category,
             coalesce(a.colour, (SELECT colour FROM categories WHERE id = a.category)), a.unit, a.favourite, a.tax_rate,
             a.open_price
         FROM articles a {index} WHERE {conditions} ORDER BY a.favourite DESC, a.position, a.id LIMIT :limit"
    )
}

pub(crate) fn articles(conn: &Connection, query: &ArticleQuery) -> Result<Articles, TillError> {
    let words = match_expression(&query.text);
    if words.is_none() && !query.text.trim().is_empty() {
        return Ok(Articles { articles: Vec::new(), more: false });
    }
    let few = words.as_deref().map(|words| few_with(conn, words)).transpose()?.flatten();
    let limit = ARTICLES_MAX + 1;
    let mut params: Vec<(&str, &dyn ToSql)> = vec![(":limit", &limit)];
    let way = match (&words, &few) {
        (None, _) => Way::InOrder,
        (Some(_), Some(ids)) => {
            params.push((":ids", ids));
            Way::ByWords
        }
        (Some(words), None) => {
            params.push((":words", words));
            Way::InOrderWithWords
        }
    };
    if let Some(category) = &query.category {
        params.push((":category", category));
    }
    let mut found: Vec<Article> = conn
        .prepare_cached(&select(way, query.category.is_some()))?
        .query_map(params.as_slice(), shown)?
        .collect::<Result<_, _>>()?;
    let more = found.len() > ARTICLES_MAX as usize;
    found.truncate(ARTICLES_MAX as usize);
    Ok(Articles { articles: found, more })
}

/// The ids of the articles that hold the words, as a JSON array; none where they are more than few.
fn few_with(conn: &Connection, words: &str) -> Result<Option<String>, TillError> {
    let mut holding = conn.prepare_cached("SELECT rowid FROM article_words WHERE article_words MATCH ?1 LIMIT ?2")?;
    let ids: Vec<i64> = holding.query_map(params![words, FEW + 1], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if ids.len() > FEW as usize {
        return Ok(None);
    }
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    Ok(Some(format!("[{}]", ids.join(","))))
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

    fn found(statement: &mut rusqlite::Statement<'_>, with: Option<(&str, &str)>) -> Vec<Article> {
        let limit = ARTICLES_MAX + 1;
        let mut params: Vec<(&str, &dyn ToSql)> = vec![(":limit", &limit)];
        if let Some((name, value)) = &with {
            params.push((name, value));
        }
        statement.query_map(params.as_slice(), shown).unwrap().map(Result::unwrap).collect()
    }

    /// How many articles the search may read are as many as hold the words: with 50,000 in the catalogue, that is what keeps
    /// it under 50 ms. How long it takes here says more of the machine than of the search.
    #[test]
    fn a_search_reads_what_it_finds_and_not_the_catalogue() {
        let conn = large();
        let mut search = conn.prepare(&select(Way::ByWords, false)).unwrap();
        for (text, count) in [("SKU-31415", 1), ("croissant", 1), ("article 4919", 11), ("article 49 shelf 12", 23)] {
            let ids = few_with(&conn, &match_expression(text).unwrap()).unwrap().unwrap();
            assert_eq!(found(&mut search, Some((":ids", &ids))).len(), count, "{text:?}");
            assert!(search.reset_status(StatementStatus::Sort) <= 1);
            // Some dozens of steps for each article found; to look at each of the catalogue takes some hundred thousand.
            let steps = search.reset_status(StatementStatus::VmStep);
            assert!(steps < 2_000, "{text:?} took {steps} steps");
        }
    }

    #[test]
    fn the_first_page_and_what_very_many_hold_are_neither_sorted_nor_read_to_the_end() {
        let conn = large();
        for (way, text, steps_max) in [
            (Way::InOrder, "", 10_000),
            // Each that holds the words is noted once, some ten steps, and none is looked up that is not shown.
            (Way::InOrderWithWords, "article", 700_000),
            (Way::InOrderWithWords, "a", 700_000),
        ] {
            let words = match_expression(text);
            assert!(words.as_deref().is_none_or(|words| few_with(&conn, words).unwrap().is_none()), "{text:?}");
            let mut search = conn.prepare(&select(way, false)).unwrap();
            assert_eq!(found(&mut search, words.as_deref().map(|words| (":words", words))).len(), 201, "{text:?}");
            assert_eq!(search.reset_status(StatementStatus::Sort), 0, "{text:?} was sorted");
            let steps = search.reset_status(StatementStatus::VmStep);
            assert!(steps < steps_max, "{text:?} took {steps} steps");
        }
    }

    #[test]
    fn either_way_the_same_is_found_in_the_same_order() {
        let conn = large();
        for (text, is_few, more) in [
            ("article 12", false, true),
            ("shelf 96", true, true),
            ("4050", true, false),
            ("croissant", true, false),
            ("nowhere", true, false),
        ] {
            let words = match_expression(text).unwrap();
            let mut in_order = conn.prepare(&select(Way::InOrderWithWords, false)).unwrap();
            let many = found(&mut in_order, Some((":words", &words)));
            assert_eq!(many.len() > ARTICLES_MAX as usize, more, "{text:?}");
            let ids = few_with(&conn, &words).unwrap();
            assert_eq!(ids.is_some(), is_few, "{text:?}");
            if let Some(ids) = ids {
                let few = found(&mut conn.prepare(&select(Way::ByWords, false)).unwrap(), Some((":ids", &ids)));
                assert_eq!(few, many, "{text:?}");
            }
        }
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
