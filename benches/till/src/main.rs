//! `till-bench`: how quick the till is, and whether it stays so with what a shop gathers over the years.
//!
//! Its one rule: **what is measured has been checked**. Each answer that is timed is looked at, and one that is wrong ends the run.

mod catalogue;
mod report;
mod run;
mod sales;
mod search;
mod sold;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "till-bench", about = "Measures the till over files of every size")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, check, print the tables and write docs/PERFORMANCE.md
    #[command(name = "run", bin_name = "cargo xtask bench till")]
    Run(run::Options),
}

fn main() -> ExitCode {
    let Command::Run(options) = Arguments::parse().command;
    match run::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("till-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
