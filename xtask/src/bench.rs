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
    Bank(Flags),
    /// The outbox beside raw SQLite, a bare client and two job queues; `--help` builds it and tells its flags
    #[command(disable_help_flag = true)]
    Outbox(Flags),
    /// The till over files of every size; `--help` builds it and tells its flags
    #[command(disable_help_flag = true)]
    Till(Flags),
}

#[derive(Args)]
struct Flags {
    /// Passed on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// Builds what is measured with optimisation, and measures it.
///
/// # Errors
/// Where it can't be built, where a contender breaks its promise, and where a measurement fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.what {
        What::Bank(Flags { flags }) => bank(flags),
        What::Outbox(Flags { flags }) => outbox(flags),
        What::Till(Flags { flags }) => till(flags),
    }
}

/// Builds packages by name: the whole workspace needs what only the window needs.
fn build(packages: &[&str]) -> Result<()> {
    succeed(cargo().args(["build", "--release"]).args(packages.iter().flat_map(|name| ["--package", name])))
}

fn bank(flags: &[OsString]) -> Result<()> {
    step("Building the bank and its bench", || build(&["bank", "bank-bench"]))?;
    let bench = target().join("release/bank-bench");
    step("Measuring the bank", || succeed(program(bench).arg("run").args(flags)))
}

/// Job queues that the outbox is measured beside, each in a workspace of its own.
const PEERS: [&str; 2] = ["effectum", "apalis-sqlite"];

fn outbox(flags: &[OsString]) -> Result<()> {
    step("Building the till, the bank and the outbox's bench", || build(&["till", "bank", "outbox-bench"]))?;
    for peer in PEERS {
        // One that can't be built is left out by name: it says nothing of the outbox.
        if let Err(error) = step(&format!("Building {peer}"), || build_peer(peer)) {
            println!("    {peer} will be left out: {error:#}");
        }
    }
    let bench = target().join("release/outbox-bench");
    step("Measuring the outbox", || succeed(program(bench).arg("run").args(flags)))
}

fn till(flags: &[OsString]) -> Result<()> {
    step("Building the till's bench", || build(&["till-bench"]))?;
    let bench = target().join("release/till-bench");
    step("Measuring the till", || succeed(program(bench).arg("run").args(flags)))
}

fn build_peer(peer: &str) -> Result<()> {
    let manifest = format!("benches/peers/{peer}/Cargo.toml");
    let built = target().join(format!("release/{peer}-peer"));
    // What an earlier build left there must not pass for this one.
    match std::fs::remove_file(&built) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    succeed(
        cargo().args(["build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir"]).arg(target()),
    )
}
