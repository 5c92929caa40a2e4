//! `cargo xtask test`: everything that has to be green.

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    left_out::LeftOut,
    schemathesis, setup,
    step::{cargo, output, program, root, step, succeed, target},
    ui,
};

#[derive(Args)]
pub(crate) struct Options {
    /// Only this part
    #[arg(long)]
    only: Option<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Format, lints, tests and dependencies of the Rust code
    Rust,
    /// Types and component tests of the window
    Ui,
    /// Tests of the real window, with a real bank
    Window,
    /// The bank's contract and the prices with known right values, from outside
    Conformance,
    /// The bank's OpenAPI document, asked whether it is true
    Api,
}

/// Tests of the real window are a step of their own; plain `cargo test` tells them by the module they all stand in.
const WINDOW_MODULE: &str = "real_window::";

/// Sets up and runs every part, or the one asked for. A part that fails does not keep the others from being run.
///
/// # Errors
/// Where set-up fails, and at the end where anything failed, naming it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let start = Instant::now();
    let wants = |part| options.only.is_none_or(|only| only == part);
    let builds = options.only != Some(Part::Ui);
    if wants(Part::Rust) {
        setup::for_rust_checks()?;
    }
    if builds {
        setup::for_test()?;
    }
    // The window is embedded into the app, so it comes before anything is compiled.
    if !matches!(options.only, Some(Part::Conformance | Part::Api)) {
        ui::prepare()?;
    }

    let mut left_out = LeftOut::new()?;
    let mut failed: Vec<String> = Vec::new();
    let mut note = |done: Result<()>| {
        if let Err(error) = done {
            failed.push(format!("{error:#}"));
        }
    };
    if wants(Part::Rust) {
        note(step("Rust: format", || succeed(cargo().args(["fmt", "--all", "--check"]))));
    }
    if wants(Part::Ui) {
        note(ui::check());
        note(ui::test());
    }
    if builds {
        // One build for all that follows: the same packages and features each time, so that nothing is compiled twice.
        let built = step("Rust: build", || succeed(cargo().args(["build", "--workspace", "--all-targets"])));
        let runnable = built.is_ok();
        note(built);
        if wants(Part::Rust) && runnable {
            rust(&mut note, &mut left_out);
        }
        if wants(Part::Window) && runnable {
            note(step("Real window", || succeed(&mut window_tests())));
        }
        if wants(Part::Conformance) && runnable {
            conformance(&mut note, &mut left_out);
        }
        if wants(Part::Api) && runnable {
            api(&mut note, &mut left_out);
        }
    }

    println!("\n{:.0} s in all.", start.elapsed().as_secs_f64());
    let left_out = left_out.said()?;
    if !failed.is_empty() {
        bail!("{} failed:\n    {}", failed.len(), failed.join("\n    "));
    }
    println!("All green{left_out}.");
    Ok(())
}

fn rust(note: &mut impl FnMut(Result<()>), left_out: &mut LeftOut) {
    note(step("Rust: lints", || {
        succeed(cargo().args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))
    }));
    if nextest() {
        note(step("Rust: tests", || {
            let mut tests = cargo();
            tests.args(["nextest", "run", "--workspace", "--filterset", "not binary(=window)"]);
            succeed(left_out.of_tests(&mut tests))
        }));
        note(step("Rust: examples in the documentation", || succeed(cargo().args(["test", "--workspace", "--doc"]))));
    } else {
        note(step("Rust: tests, and examples in the documentation", || {
            let mut tests = cargo();
            tests.args(["test", "--workspace", "--no-fail-fast", "--", "--skip", WINDOW_MODULE]);
            succeed(left_out.of_tests(&mut tests))
        }));
    }
    if output(cargo().args(["deny", "--version"])).is_some() {
        note(step("Rust: dependencies", || {
            // Of this machine's platform alone: what only others need has never been downloaded.
            let platform = host()?;
            succeed(cargo().args(["deny", "--offline", "--target", &platform, "check", "bans", "licenses", "sources"]))
        }));
    } else {
        left_out.add("Rust: dependencies: cargo-deny is not installed");
    }
}

fn window_tests() -> Command {
    let mut command = cargo();
    if nextest() {
        command.args(["nextest", "run", "--workspace", "--filterset", "binary(=window)"]);
    } else {
        command.args(["test", "--workspace", "--test", "window"]);
    }
    command
}

/// The platform that is built for here, as Rust spells it.
fn host() -> Result<String> {
    let told = output(program("rustc").arg("-vV")).context("rustc does not tell its version")?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not tell its platform")
}

fn nextest() -> bool {
    output(cargo().args(["nextest", "--version"])).is_some()
}

/// Checks that stand outside the project, in a folder beside it: they see the programs only as a stranger does.
fn conformance(note: &mut impl FnMut(Result<()>), left_out: &mut LeftOut) {
    let Some(shared) = shared() else {
        return left_out.add("Bank's contract and prices: there is no ../shared here");
    };
    let programs = target().join("debug");
    note(step("Bank: conformance to its contract", || {
        let mut check = program("python3");
        succeed(check.arg(shared.join("conformance/run.py")).env("KASSA_BANK", programs.join("kassa-bank")))
    }));
    note(step("Till: prices with known right values", || {
        succeed(program("python3").arg(shared.join("golden/check.py")).env("KASSA_TILL", programs.join("kassa-till")))
    }));
}

/// Asks the bank whether its OpenAPI document is true. Where schemathesis can't be had, that is said and is no failure.
fn api(note: &mut impl FnMut(Result<()>), left_out: &mut LeftOut) {
    match schemathesis::install() {
        Ok(program) => note(schemathesis::check(&program, &schemathesis::Options::default())),
        Err(schemathesis::LeftOut(why)) => {
            left_out.add(&format!("the bank's OpenAPI document was not asked whether it is true: {why}"));
        }
    }
}

/// Relative to the project's folder, which every program here starts in.
fn shared() -> Option<&'static Path> {
    let shared = Path::new("../shared");
    root().join(shared).is_dir().then_some(shared)
}
