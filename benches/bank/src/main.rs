//! `bank-bench`: Kassa's bank beside other ways of building one, all over the same HTTP against the same stub gateway.
//!
//! `run` measures and `soak` watches one bank for long; both start everything else here (`stub`, `contender`, `load`) as
//! processes of their own. Their one rule: **what is compared has been checked**. A contender whose guarantee does not hold, or an
//! answer that is not the expected one, ends the run.

mod contender;
mod load;
mod run;
mod wire;

use clap::{Parser, Subcommand};
use measure::gateway;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "bank-bench", about = "Measures the bank beside other ways of building one")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check, measure, print the tables and write docs/PERFORMANCE.md
    #[command(name = "run", bin_name = "cargo xtask bench bank")]
    Run(run::Options),
    /// A gateway that answers at once from memory
    Stub(gateway::Options),
    /// One of the other ways of building a bank
    Contender(contender::Options),
    /// A number of connections that pay, each one payment after the other
    Load(load::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(options) => run::run(options),
        Command::Stub(options) => gateway::serve(&options),
        Command::Contender(options) => contender::serve(options),
        Command::Load(options) => load::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bank-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
