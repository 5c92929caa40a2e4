//! `cargo xtask run`: the window, from nothing.

use std::env;

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    setup,
    step::{cargo, program, step, succeed, target},
    ui,
};

#[derive(Args)]
pub(crate) struct Options {
    /// Build with optimisation: slower to build, quicker to run
    #[arg(long)]
    release: bool,
}

/// Sets up, builds and opens the till, until its window is closed.
///
/// # Errors
/// Where there is no display, and where set-up, build or the till itself fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let shown = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "linux") && !shown("DISPLAY") && !shown("WAYLAND_DISPLAY") {
        bail!("there is no display to open a window on: type this on a desktop, or set DISPLAY");
    }
    setup::for_run()?;
    ui::prepare()?;
    let release: &[&str] = if options.release { &["--release"] } else { &[] };
    // As part of the workspace, and with one of the tests: cargo gives the packages beneath other features where the other
    // crates or tests are built too, and the first `cargo xtask test` after this would compile nearly everything a second
    // time. Not by `cargo run`, for the same reason.
    let app = ["--workspace", "--bin", "kassa", "--test", "processes"];
    step("Building the till", || succeed(cargo().arg("build").args(app).args(release)))?;
    let profile = if options.release { "release" } else { "debug" };
    step("The till is open; close its window to end", || succeed(&mut program(target().join(profile).join("kassa"))))
}

/// Writes the window's types of commands and events anew.
///
/// # Errors
/// Where they can't be written.
pub(crate) fn bindings() -> Result<()> {
    setup::for_run()?;
    step("Writing ui/src/lib/ipc.gen.ts", || {
        succeed(cargo().args(["test", "--package", "kassa", "--lib", "bindings"]).env("UPDATE", "1"))
    })
}
