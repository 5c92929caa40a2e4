//! The window: Node's version, its packages, its build and its tests. Packages and build are done again only where
//! what they are made from has changed, by content.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::step::{installed, output, program, root, step, succeed};

/// The oldest Node that the window's build tools take.
const NODE_MIN: (u32, u32) = (20, 19);

/// Installs the window's packages and builds it into `ui/dist`, each only where it is out of date.
///
/// # Errors
/// Where Node is missing or too old, and where npm or the build fails.
pub(crate) fn prepare() -> Result<()> {
    let node = node()?;
    packages(&node)?;
    build()
}

/// The window's type check and its tests.
///
/// # Errors
/// Where either fails.
pub(crate) fn check() -> Result<()> {
    step("Window: types", || succeed(npm().args(["run", "check"])))
}

/// The window's component tests.
///
/// # Errors
/// Where one fails.
pub(crate) fn test() -> Result<()> {
    step("Window: component tests", || succeed(npm().arg("test")))
}

fn node() -> Result<String> {
    let (major, minor) = NODE_MIN;
    let advice = format!("install Node {major}.{minor} or newer, with npm, and start again");
    let Some(version) = output(program("node").arg("--version")) else {
        bail!("there is no node here: {advice}");
    };
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < NODE_MIN {
        bail!("node is {version}, which is too old: {advice}");
    }
    if !installed("npm") {
        bail!("there is no npm beside node {version}: {advice}");
    }
    Ok(version)
}

fn packages(node: &str) -> Result<()> {
    let folder = root().join("ui");
    let lock = fs::read(folder.join("package-lock.json")).context("cannot read ui/package-lock.json")?;
    let mut hash = Sha256::new();
    hash.update(node);
    hash.update(&lock);
    let stamp = Stamp { path: folder.join("node_modules/.kassa-packages"), wanted: hex(hash) };
    if stamp.fits() {
        return Ok(());
    }
    step("Window: packages (npm ci)", || {
        succeed(npm().args(["ci", "--no-audit", "--no-fund"]))?;
        stamp.set()
    })
}

fn build() -> Result<()> {
    let folder = root().join("ui");
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        hash.update(file.strip_prefix(&folder)?.as_os_str().as_encoded_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    let stamp = Stamp { path: folder.join("node_modules/.kassa-build"), wanted: hex(hash) };
    if stamp.fits() && folder.join("dist/index.html").is_file() {
        return Ok(());
    }
    step("Window: build (ui/dist)", || {
        succeed(npm().args(["run", "build"]))?;
        stamp.set()
    })
}

/// What a folder was last made from.
struct Stamp {
    path: PathBuf,
    wanted: String,
}

impl Stamp {
    fn fits(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|found| found == self.wanted)
    }

    fn set(&self) -> Result<()> {
        fs::write(&self.path, &self.wanted).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// All that the window is built from: everything in its folder but what is installed or built, its tests, and hidden
/// files.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let apart = ["node_modules", "dist", "dist-demo", "tests"].iter().any(|apart| name == *apart);
        if apart || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn npm() -> Command {
    let mut command = program("npm");
    command.current_dir(root().join("ui"));
    command
}
