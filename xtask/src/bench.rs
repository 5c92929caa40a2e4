//! `cargo xtask bench`: how quick it is, beside other ways of building the same.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::step::{cargo, program, step, succeed, target};

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The bank beside a map in memory, SQLite the usual way and PostgreSQL; `--help` builds it and tells its flags
    #[command(disable_help_flag = true)]
    Bank(Bank),
}

#[derive(Args)]
struct Bank {
    /// Passed on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// Builds what is measured with optimisation, and measures it.
///
/// # Errors
/// Where it can't be built, where a contender breaks its promise, and where a measurement fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let What::Bank(Bank { flags }) = &options.what;
    // As packages by name: the whole workspace needs what only the window needs.
    step("Building the bank and its bench", || {
        succeed(cargo().args(["build", "--release", "--package", "bank", "--package", "bank-bench"]))
    })?;
    let bench = target().join("release/bank-bench");
    step("Measuring the bank", || succeed(program(bench).arg("run").args(flags)))
}
