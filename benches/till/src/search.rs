//! The search of articles as a cashier types it, with few articles and with many.

use crate::catalogue;
use anyhow::{Result, ensure};
use measure::latency::Latencies;
use std::time::Instant;
use till::{ArticleQuery, Till};

/// How many articles one answer holds at most.
const SHOWN_MAX: usize = 200;

/// What is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Nothing: the first page.
    Nothing,
    /// Nothing, in one category.
    Category,
    /// One letter, which many words begin with.
    Letter,
    /// The beginning of a word.
    Beginning,
    /// A word.
    Word,
    /// Two words.
    TwoWords,
    /// A word that is in every name.
    Common,
    /// That word with another.
    CommonAndWord,
    /// A whole barcode, as a scanner gives it to the search.
    Barcode,
    /// A word that is nowhere.
    Unknown,
}

impl Typed {
    pub(crate) const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Category,
        Self::Letter,
        Self::Beginning,
        Self::Word,
        Self::TwoWords,
        Self::Common,
        Self::CommonAndWord,
        Self::Barcode,
        Self::Unknown,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing: the first page",
            Self::Category => "nothing, in one category",
            Self::Letter => "one letter",
            Self::Beginning => "three letters",
            Self::Word => "a word",
            Self::TwoWords => "two words",
            Self::Common => "a word that is in every name",
            Self::CommonAndWord => "that word and another",
            Self::Barcode => "a barcode",
            Self::Unknown => "a word that is nowhere",
        }
    }

    /// What is typed to find this article.
    fn query(self, number: usize) -> ArticleQuery {
        let words = catalogue::words(number);
        let first = |text: &str, letters| text.chars().take(letters).collect::<String>();
        let text = match self {
            Self::Nothing | Self::Category => String::new(),
            Self::Letter => first(words.good, 1),
            Self::Beginning => first(words.good, 3),
            Self::Word => words.good.to_lowercase(),
            Self::TwoWords => format!("{} {}", words.good, words.brand),
            Self::Common => "packung".to_owned(),
            Self::CommonAndWord => format!("packung {}", words.good),
            Self::Barcode => catalogue::barcode(number),
            Self::Unknown => format!("xyz{number}"),
        };
        let category = (self == Self::Category).then(|| format!("c{}", number % 20));
        ArticleQuery { text, category }
    }
}

/// Times searches for articles all over the catalogue.
pub(crate) async fn measure(till: &Till, articles: usize, typed: Typed, times: usize) -> Result<Latencies> {
    let mut latencies = Latencies::new()?;
    for time in 0..times {
        // Steps that reach every part of the catalogue, each with other words.
        let number = time * 7_919 % articles;
        let query = typed.query(number);
        let begin = Instant::now();
        let found = till.articles(query.clone()).await?;
        latencies.record(begin.elapsed())?;
        let sku = catalogue::sku(number);
        let is_there = found.articles.iter().any(|article| article.sku == sku);
        match typed {
            Typed::Unknown => ensure!(found.articles.is_empty(), "{query:?} found something"),
            Typed::Barcode => {
                ensure!(is_there && found.articles.len() == 1, "{query:?} found {}", found.articles.len())
            }
            _ => ensure!(is_there || found.articles.len() == SHOWN_MAX && found.more, "{query:?} did not find {sku}"),
        }
        let favourites = found.articles.iter().map(|article| article.favourite);
        ensure!(favourites.is_sorted_by(|one, next| one >= next), "{query:?}: favourites come first");
    }
    Ok(latencies)
}
