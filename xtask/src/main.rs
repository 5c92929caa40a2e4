//! The project's commands, `cargo xtask run` and `cargo xtask test`: each does all of its set-up itself, says what it
//! does and how long that took, and does nothing a second time that has not changed.

mod bench;
mod left_out;
mod run;
mod schemathesis;
mod setup;
mod step;
mod test;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, runs and tests Kassa.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set up, build and open the till
    Run(run::Options),
    /// Set up, build and test everything: format, lints, Rust, window, bank
    Test(test::Options),
    /// Measure how quick it is
    Bench(bench::Options),
    /// Ask the bank, with thousands of made-up requests, whether its OpenAPI document is true (needs Python)
    Schemathesis(schemathesis::Options),
    /// Build the window into ui/dist
    Ui,
    /// Write the window's types of commands and events anew (ui/src/lib/ipc.gen.ts)
    Bindings,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Schemathesis(options) => schemathesis::run(&options),
        Command::Ui => ui::prepare(),
        Command::Bindings => run::bindings(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ncargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
