//! Where the built programs stand, and what to type where one is missing.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The desktop app.
pub(crate) fn app() -> Result<PathBuf> {
    if !Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/dist/index.html").is_file() {
        bail!("the window is not built: type `cargo xtask ui`, and `cargo build --workspace` after it");
    }
    Ok(PathBuf::from(env!("CARGO_BIN_EXE_kassa")))
}

/// The bank.
pub(crate) fn bank() -> Result<PathBuf> {
    beside("kassa-bank")
}

/// The till without a window.
pub(crate) fn till() -> Result<PathBuf> {
    beside("kassa-till")
}

fn beside(name: &str) -> Result<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_kassa")).with_file_name(name);
    if !program.is_file() {
        bail!("{name} is not built: type `cargo build --workspace`");
    }
    Ok(program)
}
