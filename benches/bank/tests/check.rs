//! The check of the promise is worth nothing unless it notices each way of breaking it.

use std::{error::Error, process::Command};

/// Checks SQLite the usual way with that fault, and gives whether it passed and what was said.
fn check(contender: &str, fault: Option<&str>) -> Result<(bool, String), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_bank-bench"));
    // Not where temporary files may be in memory.
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    command.args(["run", "--only", "check", "--contenders", contender, "--dir"]).arg(folder);
    command.arg("--document").arg(dir.path().join("none.md"));
    command.args(fault.map(|fault| format!("--broken={fault}")));
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8(said)?))
}

#[test]
fn what_keeps_the_promise_passes() -> Result<(), Box<dyn Error>> {
    let (passed, said) = check("sqlite", None)?;
    assert!(passed, "{said}");
    Ok(())
}

#[test]
fn what_is_in_memory_alone_is_seen_to_forget() -> Result<(), Box<dyn Error>> {
    let (passed, said) = check("memory", None)?;
    assert!(passed && said.contains("forgets, as it must: a known key is answered as a new one"), "{said}");
    Ok(())
}

#[test]
fn each_way_of_breaking_the_promise_is_noticed() -> Result<(), Box<dyn Error>> {
    for (fault, how) in [
        ("new-gateway-key", "keys are charged under"),
        ("any-body", "another body under a known key is answered 201"),
        ("other-bytes", "a known key is answered with other bytes"),
        ("no-recovery", "a key stays without a result (409)"),
        ("unbalanced", "a finished key stands in the books as"),
    ] {
        let (passed, said) = check("sqlite", Some(fault))?;
        assert!(!passed && said.contains(how), "{fault}: {said}");
    }
    Ok(())
}
