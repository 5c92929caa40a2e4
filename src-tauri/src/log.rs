//! The log: a file a day beside the till's data, and warnings on stderr.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::{Context, Result};
use tracing_appender::{
    non_blocking::WorkerGuard,
    rolling::{RollingFileAppender, Rotation},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::folder::private_folder;

/// How much goes to the file, in the spelling of `tracing`; by default what an owner could act on.
const LEVELS: &str = "KASSA_LOG";
const LEVELS_DEFAULT: &str = "info,hyper=warn,reqwest=warn";
/// The target of what stderr is told in words of its own.
pub(crate) const NOT_ON_STDERR: &str = "kassa::told";
/// Older days are removed.
const DAYS_MAX: usize = 14;

/// Begins to write the log. What is waiting is written when the guard is dropped.
///
/// # Errors
/// Where the folder can't be written.
pub(crate) fn start(data_dir: &Path) -> Result<WorkerGuard> {
    let folder = data_dir.join("logs");
    private_folder(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("kassa")
        .filename_suffix("log")
        .max_log_files(DAYS_MAX)
        .build(&folder)
        .with_context(|| format!("cannot write the log in {}", folder.display()))?;
    let (writer, guard) = tracing_appender::non_blocking(file);
    let levels = EnvFilter::try_from_env(LEVELS).unwrap_or_else(|_| EnvFilter::new(LEVELS_DEFAULT));
    tracing_subscriber::registry()
        .with(fmt::layer().with_ansi(false).log_internal_errors(false).with_writer(writer).with_filter(levels))
        .with(
            fmt::layer()
                .with_ansi(io::stderr().is_terminal())
                .with_writer(io::stderr)
                // A line that can't be written is lost, and nothing else.
                .log_internal_errors(false)
                .without_time()
                .with_target(false)
                .with_filter(
                    Targets::new().with_default(LevelFilter::WARN).with_target(NOT_ON_STDERR, LevelFilter::OFF),
                ),
        )
        .try_init()
        .context("the log is written already")?;
    Ok(guard)
}
