//! The tables.

use crate::{
    sales::{Done, Shop},
    search::Typed,
};
use anyhow::{Context, Result};
use measure::{
    latency::Latencies,
    table::{self, Table},
};

/// What a search may take, by its contract.
pub(crate) const SEARCH_MAX_MS: f64 = 50.0;

/// Searches over one catalogue.
pub(crate) struct Searched {
    pub(crate) articles: usize,
    pub(crate) import_s: f64,
    pub(crate) latencies: Vec<(Typed, Latencies)>,
}

/// A table of all searches: the middle one and the slowest of a hundred, over each catalogue.
pub(crate) fn search(all: &[Searched]) -> String {
    let mut head = vec!["typed".to_owned()];
    for searched in all {
        let articles = table::count(u64::try_from(searched.articles).unwrap_or(u64::MAX));
        head.extend([format!("p50 of {articles}, ms"), "p99, ms".to_owned(), "longest, ms".to_owned()]);
    }
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, typed) in Typed::ALL.into_iter().enumerate() {
        let mut cells = vec![typed.name().to_owned()];
        for (_, latencies) in all.iter().filter_map(|searched| searched.latencies.get(at)) {
            cells.extend(
                [latencies.quantile_ms(0.5), latencies.quantile_ms(0.99), latencies.max_ms()]
                    .map(|ms| format!("{ms:.2}")),
            );
        }
        table.row(cells);
    }
    let imports: Vec<String> = all
        .iter()
        .map(|searched| {
            let articles = table::count(u64::try_from(searched.articles).unwrap_or(u64::MAX));
            format!("{articles} in {:.1} s", searched.import_s)
        })
        .collect();
    format!("{}\nImported as CSV, in one commit: {}.\n", table.text(), imports.join(", "))
}

/// The slowest p99 of a catalogue, and what was typed then.
pub(crate) fn slowest(searched: &Searched) -> Option<(Typed, f64)> {
    let all = searched.latencies.iter().map(|(typed, latencies)| (*typed, latencies.quantile_ms(0.99)));
    all.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// How much longer anything may take over a file with many sales than over one with next to none.
const TIMES_MAX: f64 = 1.5;

/// A table of what was done over the files, each beside the first of them.
pub(crate) fn sales(shops: &[Shop]) -> Result<String> {
    let wanted = format!("at most {TIMES_MAX:.1} ×");
    let mut table = Table::new(&["done", "sales in the file", "p50, ms", "p99, ms", "× the first, p50", &wanted]);
    for done in Done::ALL {
        let mut first = None;
        for shop in shops {
            let latencies = shop.latencies(done).context("not measured")?;
            let (p50, p99) = (latencies.quantile_ms(0.5), latencies.quantile_ms(0.99));
            let times = p50 / *first.get_or_insert(p50);
            table.row(vec![
                done.name().to_owned(),
                table::count(shop.sales),
                format!("{p50:.2}"),
                format!("{p99:.2}"),
                format!("{times:.2}"),
                if times <= TIMES_MAX { "met" } else { "missed" }.to_owned(),
            ]);
        }
    }
    let made: Vec<String> =
        shops.iter().map(|shop| format!("{} in {:.1} s", table::count(shop.sales), shop.made_s)).collect();
    Ok(format!("{}\nFiles made: {}.\n", table.text(), made.join(", ")))
}
