//! What can be rung up.

use serde::{Deserialize, Serialize};
use specta::Type;

use super::{Minor, all};

/// A group of articles.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Category {
    pub(crate) id: String,
    pub(crate) name: String,
    /// `#rrggbb`, dark enough for white text.
    pub(crate) colour: String,
    pub(crate) count: u32,
}

/// How an article is sold.
#[derive(Debug, Clone, Copy, Serialize, Type)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Piece,
    Weight,
}

/// What is sold.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Article {
    pub(crate) sku: String,
    pub(crate) name: String,
    /// For one piece or one kilogram; 0 where it is asked for.
    pub(crate) price: Minor,
    /// The price is asked for when it is rung up: `addAtPrice`.
    pub(crate) open_price: bool,
    /// The id of its category.
    pub(crate) category: String,
    pub(crate) colour: String,
    pub(crate) unit: Unit,
    pub(crate) favourite: bool,
    /// Percent.
    pub(crate) tax_rate: String,
}

/// Which articles are asked for.
#[derive(Debug, Clone, Deserialize, Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArticleQuery {
    /// Words, or beginnings of words, of name, SKU or barcode.
    pub(crate) text: String,
    pub(crate) category: Option<String>,
}

/// The articles found, favourites first.
#[derive(Debug, Clone, Serialize, Type)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArticlePage {
    pub(crate) articles: Vec<Article>,
    /// Whether there are more than these.
    pub(crate) more: bool,
}

impl From<till::Category> for Category {
    fn from(category: till::Category) -> Self {
        let till::Category { id, name, colour, count } = category;
        Self { id, name, colour, count }
    }
}

impl From<till::Article> for Article {
    fn from(article: till::Article) -> Self {
        let till::Article { sku, name, price, open_price, category, colour, unit, favourite, tax_rate } = article;
        Self { sku, name, price: Minor(price), open_price, category, colour, unit: unit.into(), favourite, tax_rate }
    }
}

impl From<till::Articles> for ArticlePage {
    fn from(found: till::Articles) -> Self {
        Self { articles: all(found.articles), more: found.more }
    }
}

impl From<till::Unit> for Unit {
    fn from(unit: till::Unit) -> Self {
        match unit {
            till::Unit::Piece => Self::Piece,
            till::Unit::Weight => Self::Weight,
        }
    }
}
