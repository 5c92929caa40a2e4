//! The run: what is measured, in which order, and what becomes of the figures.

use crate::{
    catalogue,
    report::{self, SEARCH_MAX_MS, Searched},
    sales,
    search::{self, Typed},
};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use measure::{document, machine};
use std::{
    path::{Path, PathBuf},
    time::Instant,
};
use till::{ImportMode, Till};

/// The name of the generated part about the search.
const SEARCH: &str = "bench till search";
/// The name of the generated part about many sales.
const SALES: &str = "bench till sales";
/// Articles in the catalogues that are searched.
const SIZES: [usize; 2] = [50, 50_000];

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The search over catalogues of 50 and of 50,000 articles
    Search,
    /// Everything over files with few sales and with many
    Sales,
}

/// Measures the till's search over catalogues of 50 and of 50,000 articles, and what is done at it over files with no sales and with up to
/// a million. Writes the tables into docs/PERFORMANCE.md.
#[derive(Args)]
pub(crate) struct Options {
    /// Few searches in small catalogues and few sales, to see that it works; writes nothing
    #[arg(long)]
    quick: bool,
    /// Only this part
    #[arg(long)]
    only: Option<Part>,
    /// Completed sales in the files that are compared with the first
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "0,100000,1000000",
        conflicts_with = "quick"
    )]
    sales: Vec<u64>,
    /// Rounds over these files
    #[arg(long, value_name = "N", default_value_t = 30, conflicts_with = "quick")]
    rounds: usize,
    /// Searches of each kind
    #[arg(long, value_name = "N", default_value_t = 500, conflicts_with = "quick")]
    times: usize,
    /// Where all files are made, on the disk to measure; they are removed at the end
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The document to write to
    #[arg(long, value_name = "FILE", default_value = "docs/PERFORMANCE.md")]
    document: PathBuf,
}

/// Runs what the options ask for. What was made is gone at the end.
pub(crate) fn run(options: &Options) -> Result<()> {
    // As many threads as the till has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(all(options))
}

async fn all(options: &Options) -> Result<()> {
    let place = options.dir.clone().unwrap_or_else(|| PathBuf::from("target"));
    std::fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
    let folder = tempfile::Builder::new().prefix("till-bench-").tempdir_in(&place)?;
    let mut parts = Vec::new();
    if options.only != Some(Part::Sales) {
        parts.push((SEARCH, search_tables(options, folder.path()).await?));
    }
    if options.only != Some(Part::Search) {
        let (sizes, rounds) = if options.quick { (&[0, 2_000][..], 2) } else { (&options.sales[..], options.rounds) };
        let table = report::sales(&sales::measure(folder.path(), sizes, rounds).await?)?;
        println!("\n{table}");
        parts.push((SALES, table));
    }
    if !options.quick {
        let machine = machine::describe(folder.path(), machine::sync_time(folder.path())?)?;
        let parts = parts.into_iter().map(|(name, table)| (name, format!("{machine}\n\n{table}")));
        document::write(&options.document, &parts.collect::<Vec<_>>())?;
    }
    Ok(())
}

async fn search_tables(options: &Options, folder: &Path) -> Result<String> {
    let (sizes, times) = if options.quick { ([50, 1_000], 20) } else { (SIZES, options.times) };
    let mut searched = Vec::new();
    for articles in sizes {
        searched.push(searches(&folder.join(articles.to_string()), articles, times).await?);
    }
    let table = report::search(&searched);
    println!("\n{table}");
    for all in &searched {
        let (typed, ms) = report::slowest(all).context("nothing was searched")?;
        println!("{} articles: the slowest is {}, {ms:.1} ms", all.articles, typed.name());
        ensure!(options.quick || ms < SEARCH_MAX_MS, "a search must take less than {SEARCH_MAX_MS} ms");
    }
    Ok(table)
}

async fn searches(folder: &Path, articles: usize, times: usize) -> Result<Searched> {
    let till = Till::open(folder)?;
    let begin = Instant::now();
    let done = till.import_catalogue(catalogue::csv(articles).into_bytes(), ImportMode::Replace, |_| {}).await?;
    let import_s = begin.elapsed().as_secs_f64();
    ensure!(done.added == articles, "{done:?}");
    println!("{articles} articles imported in {import_s:.1} s");
    let mut latencies = Vec::new();
    for typed in Typed::ALL {
        // Once for the cache: a till that was searched never is one that nobody uses.
        search::measure(&till, articles, typed, times.div_ceil(10)).await?;
        latencies.push((typed, search::measure(&till, articles, typed, times).await?));
    }
    Ok(Searched { articles, import_s, latencies })
}
