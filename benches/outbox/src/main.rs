//! `outbox-bench`: the outbox beside what could be had without it: a raw commit of the same rows, a bare client of the same bank, and
//! two job queues.
//!
//! Its one rule: **what is compared has been checked**. After each measurement the rows, the charges at the gateway and the requests
//! at the bank have to be as many as there were operations, else the run ends with an error.

mod bank;
mod click;
mod dead;
mod drain;
mod fill;
mod hour;
mod kill;
mod peers;
mod queue;
mod raw;
mod report;
mod run;
mod scale;
mod soak;
mod stage;
mod stub_bank;
mod target;
mod till_click;

use clap::{Parser, Subcommand};
use measure::gateway;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "outbox-bench", about = "Measures the outbox beside what could be had without it")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, check, print the tables and write docs/PERFORMANCE.md
    #[command(name = "run", bin_name = "cargo xtask bench outbox")]
    Run(run::Options),
    /// A gateway that answers at once from memory
    Stub(gateway::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(options) => run::run(options),
        Command::Stub(options) => gateway::serve(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("outbox-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
