//! Kassa, the desktop till.

// No console window beside the app on Windows.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

use clap::Parser;

/// The till: one window for a cashier.
///
/// It is told by its surroundings, and needs none of them.
#[derive(Parser)]
#[command(
    version,
    after_help = "Environment:
  KASSA_DATA_DIR    The folder with the till's data [default: this system's folder for application data]
  KASSA_BANK_URL    The bank's address; https, unless it is on this machine [default: the bundled play bank]
  KASSA_BANK_TOKEN  The secret that names this shop at that bank
  KASSA_LOG         How much is logged, such as debug [default: info]"
)]
struct Cli {}

fn main() -> ExitCode {
    let Cli {} = Cli::parse();
    kassa::run()
}
