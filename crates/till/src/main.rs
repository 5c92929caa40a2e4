//! `kassa-till`: the till with no window, for support, automation and tests.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
