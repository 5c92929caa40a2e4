//! The tables.

use crate::search::Typed;
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
