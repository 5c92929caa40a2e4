//! The system's packages: finds out which are missing, and installs them where it may.

use std::{
    env,
    io::{self, BufRead, IsTerminal, Write},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::step::{cargo, installed, output, program, step, succeed};

/// How to see that a package is there, whichever way and on whichever system it got there.
enum Probe {
    /// A program of this name is in `PATH`.
    Program(&'static str),
    /// pkg-config knows a library by this name.
    Library(&'static str),
}

struct Need {
    probe: Probe,
    package: &'static str,
    why: &'static str,
}

/// What the desktop app is built and run with.
const BUILD: &[Need] = &[
    Need { probe: Probe::Program("cc"), package: "build-essential", why: "C compiler, for SQLite and TLS" },
    Need { probe: Probe::Program("pkg-config"), package: "pkg-config", why: "finds the system's libraries" },
    Need { probe: Probe::Library("webkit2gtk-4.1"), package: "libwebkit2gtk-4.1-dev", why: "the window's web view" },
    Need { probe: Probe::Library("librsvg-2.0"), package: "librsvg2-dev", why: "icons of the window" },
];

/// What the tests of the real window and of the bank need besides.
const TEST: &[Need] = &[
    Need { probe: Probe::Program("WebKitWebDriver"), package: "webkit2gtk-driver", why: "drives the real window" },
    Need { probe: Probe::Program("Xvfb"), package: "xvfb", why: "a display for the window tests" },
    Need { probe: Probe::Program("xdotool"), package: "xdotool", why: "holds keys down in the window tests" },
    Need { probe: Probe::Program("import"), package: "imagemagick", why: "pictures of a window test that failed" },
    Need { probe: Probe::Program("python3"), package: "python3", why: "runs the checks of the bank's contract" },
];

/// Parts of the toolchain that its smallest installation leaves out.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

/// Makes sure of what the checks of the Rust code need beside the compiler.
///
/// # Errors
/// Where a part of the toolchain is missing; says what to type.
pub(crate) fn for_rust_checks() -> Result<()> {
    let missing: Vec<&str> = COMPONENTS
        .iter()
        .filter(|(command, _)| output(cargo().args([command, "--version"])).is_none())
        .map(|(_, component)| *component)
        .collect();
    if !missing.is_empty() {
        bail!("this Rust has no {0}: type `rustup component add {1}`", missing.join(" and no "), missing.join(" "));
    }
    Ok(())
}

/// Makes sure of what `cargo xtask run` needs.
///
/// # Errors
/// Where a package is missing and could not, or should not, be installed; says what to type.
pub(crate) fn for_run() -> Result<()> {
    ensure(&missing(BUILD))
}

/// Makes sure of what `cargo xtask test` needs.
///
/// # Errors
/// As [`for_run`].
pub(crate) fn for_test() -> Result<()> {
    let mut needs = missing(BUILD);
    needs.extend(missing(TEST));
    ensure(&needs)
}

fn missing(needs: &'static [Need]) -> Vec<&'static Need> {
    let there = |need: &&Need| match need.probe {
        Probe::Program(name) => installed(name),
        Probe::Library(name) => output(program("pkg-config").args(["--exists", name])).is_some(),
    };
    needs.iter().filter(|need| !there(need)).collect()
}

fn ensure(missing: &[&'static Need]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    println!("\nThese system packages are missing:");
    for need in missing {
        println!("    {:<24} {}", need.package, need.why);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    let by_hand = format!("sudo apt-get update && sudo apt-get install --no-install-recommends {}", packages.join(" "));
    if !installed("apt-get") {
        bail!("there is no apt-get here: install what these packages are called on this system, and start again");
    }
    let root = output(program("id").arg("-u")).as_deref() == Some("0");
    let ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    if !root && !installed("sudo") {
        bail!("only root can install them; as root, type: {}", by_hand.replace("sudo ", ""));
    }
    if !root && !ci && !agreed()? {
        bail!("to install them yourself, type: {by_hand}");
    }
    step(&format!("Installing {}", packages.join(", ")), || {
        succeed(apt(root, ci).arg("update"))?;
        succeed(apt(root, ci).args(["install", "--yes", "--no-install-recommends"]).args(&packages))
    })
    .with_context(|| format!("to install them yourself, type: {by_hand}"))
}

fn apt(root: bool, ci: bool) -> Command {
    let mut command = if root {
        program("apt-get")
    } else {
        let mut sudo = program("sudo");
        // Nobody is there to type a password.
        sudo.args(if ci { &["-n"][..] } else { &[] }).arg("apt-get");
        sudo
    };
    // Another installation that is under way is waited for, in seconds.
    command.args(["-q", "-o", "DPkg::Lock::Timeout=300"]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn agreed() -> Result<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(false);
    }
    print!("Install them now with sudo apt-get? [Y/n] ");
    io::stdout().flush().context("cannot ask")?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}
