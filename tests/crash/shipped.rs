//! The points are in the till that is built for tests, and in none that ships.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

/// The features of `store`, where it is built along these edges of the workspace.
fn features_of_store(edges: &str) -> Result<String> {
    let told = Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args([
            "tree",
            "--offline",
            "--workspace",
            "--edges",
            edges,
            "--prefix",
            "none",
            "--format",
            "{p} features: {f}",
        ])
        .output()?;
    ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told = String::from_utf8(told.stdout)?;
    let of_store = told.lines().find(|line| line.starts_with("store v"));
    let (_, features) = of_store.and_then(|line| line.split_once(" features: ")).context("no store in the tree")?;
    Ok(features.to_owned())
}

#[test]
fn what_ships_has_no_points() -> Result<()> {
    ensure!(features_of_store("normal,build")?.is_empty(), "something that ships turns features of store on");
    // The question can be answered otherwise.
    ensure!(features_of_store("normal,build,dev")? == "points", "the tests have no points");
    Ok(())
}
