//! The bench in its smallest form, so that it doesn't rot: each part runs, checks what it measured, and says so.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

type Done = Result<(), Box<dyn Error>>;

/// The folder of the programs that cargo builds.
fn programs() -> Result<PathBuf, Box<dyn Error>> {
    let bench = Path::new(env!("CARGO_BIN_EXE_outbox-bench"));
    Ok(bench.parent().ok_or("the bench stands in no folder")?.to_owned())
}

/// Builds what the bench starts, where it isn't built yet.
fn built() -> Done {
    let programs = programs()?;
    if ["kassa-bank", "kassa-till"].iter().all(|name| programs.join(name).is_file()) {
        return Ok(());
    }
    let profile = programs.file_name().ok_or("no profile")?;
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--package", "bank", "--package", "till", "--target-dir"]);
    build.arg(programs.parent().ok_or("no target folder")?);
    if profile == "release" {
        build.arg("--release");
    }
    let status = build.status()?;
    if status.success() { Ok(()) } else { Err(format!("kassa-bank and kassa-till can't be built: {status}").into()) }
}

/// Runs some parts, and gives what was said.
fn quick(parts: &str) -> Result<String, Box<dyn Error>> {
    built()?;
    let dir = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_outbox-bench"));
    // Not where temporary files may be in memory.
    command.args(["run", "--quick", "--only", parts, "--dir"]).arg(env!("CARGO_TARGET_TMPDIR"));
    command.arg("--document").arg(dir.path().join("none.md"));
    let output = command.output()?;
    let said = String::from_utf8([output.stdout, output.stderr].concat())?;
    if !output.status.success() {
        return Err(said.into());
    }
    assert!(!dir.path().join("none.md").exists(), "a part of a run is written nowhere");
    Ok(said)
}

/// Whether a table has a row that begins so, with figures in all of its cells.
fn has_row(said: &str, begin: &str) -> bool {
    said.lines().any(|line| line.starts_with(&format!("| {begin} ")) && !line.contains('–'))
}

#[test]
fn clicks_stand_beside_raw_commits_alone_and_while_the_queue_drains() -> Done {
    let said = quick("click")?;
    assert!(has_row(&said, "0") && has_row(&said, "2,000"), "{said}");
    assert!(said.contains("### Click to durable, while the queue drains"), "{said}");
    assert!(
        said.contains(
            "`journal_mode` wal, `synchronous` 2; the raw connection says `journal_mode` wal, `synchronous` 2"
        ),
        "{said}"
    );
    Ok(())
}

#[test]
fn the_tills_click_is_measured_and_comes_back_from_kills() -> Done {
    let said = quick("till")?;
    assert!(said.contains("### The till's whole click") && has_row(&said, "2,000"), "{said}");
    assert!(said.contains("### From `kill -9` to the first resend"), "{said}");
    Ok(())
}

#[test]
fn a_drain_stands_beside_a_bare_client() -> Done {
    let said = quick("drain")?;
    assert!(said.contains("| outbox ") && said.contains("| bare client, 4 connections kept "), "{said}");
    Ok(())
}

#[test]
fn a_dead_bank_is_asked_for_an_hour() -> Done {
    let said = quick("dead")?;
    assert!(has_row(&said, "refused") && said.contains("In real time, to a port that nobody listens on"), "{said}");
    Ok(())
}

#[test]
fn who_was_not_built_is_left_out_by_name() -> Done {
    // The queues are built by `cargo xtask bench outbox` alone; where they are here, they are measured.
    let said = quick("peers")?;
    for (queue, program) in [("effectum", "effectum-peer"), ("apalis-sqlite", "apalis-sqlite-peer")] {
        let is_built = programs()?.join(program).is_file();
        let is_left_out = said.contains(&format!("**LEFT OUT**: {queue}, as it is: {program} is not built"));
        assert_ne!(is_built, is_left_out, "{said}");
    }
    Ok(())
}
