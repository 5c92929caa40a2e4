//! The run: what is measured, in which order, and what becomes of the figures.

use crate::{
    catalogue,
    report::{self, SEARCH_MAX_MS, Searched},
    search::{self, Typed},
};
use anyhow::{Context, Result, ensure};
use clap::Args;
use measure::{document, machine};
use std::{path::PathBuf, time::Instant};
use till::{ImportMode, Till};

/// The name of the generated part about the search.
const SEARCH: &str = "bench till search";
/// Articles in the catalogues that are searched.
const SIZES: [usize; 2] = [50, 50_000];

/// Measures the till's search over catalogues of 50 and of 50,000 articles. Writes the table into docs/PERFORMANCE.md.
#[derive(Args)]
pub(crate) struct Options {
    /// Few searches in small catalogues, to see that it works; writes nothing
    #[arg(long)]
    quick: bool,
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
    let (sizes, times) = if options.quick { ([50, 1_000], 20) } else { (SIZES, options.times) };
    let mut searched = Vec::new();
    for articles in sizes {
        searched.push(searches(&folder.path().join(articles.to_string()), articles, times).await?);
    }
    let table = report::search(&searched);
    println!("\n{table}");
    for all in &searched {
        let (typed, ms) = report::slowest(all).context("nothing was searched")?;
        println!("{} articles: the slowest is {}, {ms:.1} ms", all.articles, typed.name());
        ensure!(options.quick || ms < SEARCH_MAX_MS, "a search must take less than {SEARCH_MAX_MS} ms");
    }
    if !options.quick {
        let machine = machine::describe(folder.path(), machine::sync_time(folder.path())?)?;
        document::write(&options.document, &[(SEARCH, format!("{machine}\n\n{table}"))])?;
    }
    Ok(())
}

async fn searches(folder: &std::path::Path, articles: usize, times: usize) -> Result<Searched> {
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
