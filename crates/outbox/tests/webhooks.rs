//! The example, run as a stranger would run it: so that it stays true.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The built example. It is built together with the tests, unless this file alone was asked for.
fn program() -> Checked<PathBuf> {
    let deps = std::env::current_exe()?;
    let profile = deps.parent().and_then(Path::parent).ok_or("no build folder")?;
    let program = profile.join(format!("examples/webhooks{}", std::env::consts::EXE_SUFFIX));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/webhooks.rs");
    let built = std::fs::metadata(&program).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if built < std::fs::metadata(source)?.modified()? {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--package", "outbox", "--example", "webhooks"]);
        cargo.arg("--target-dir").arg(profile.parent().ok_or("no target folder")?);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        if !cargo.status()?.success() {
            return Err("the example does not build".into());
        }
    }
    Ok(program)
}

fn run(arguments: &[&str]) -> Checked<(Output, String)> {
    // It ends by itself, within its own limit.
    let output = Command::new(program()?).args(arguments).output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok((output, text))
}

/// The number that stands before those words.
fn number_before(words: &str, text: &str) -> Checked<u32> {
    let (before, _) = text.split_once(words).ok_or_else(|| format!("no {words:?} in {text}"))?;
    Ok(before.rsplit([' ', '\n']).next().unwrap_or_default().parse()?)
}

#[test]
fn webhooks_through_a_partner_that_misbehaves_count_exactly_once() -> Checked {
    let (output, text) = run(&[])?;
    assert!(output.status.success(), "{text}");
    assert_eq!(number_before(" webhooks saved", &text)?, 31);
    assert!(number_before(" waited for the partner over a restart", &text)? > 0);
    let (requests, lost) = (number_before(" requests came", &text)?, number_before(" answers were lost", &text)?);
    assert!(lost > 0 && requests > 31, "{text}");
    assert_eq!(number_before(" said to come later", &text)?, 1);
    assert_eq!((number_before(" deliveries counted", &text)?, number_before(" parcels;", &text)?), (30, 30));
    assert!(text.ends_with("each exactly once\n"), "{text}");
    Ok(())
}

#[test]
fn a_partner_that_keeps_no_keys_counts_twice_and_the_program_says_so() -> Checked {
    let (output, text) = run(&["--forgetful"])?;
    assert!(!output.status.success(), "{text}");
    assert!(number_before(" deliveries counted", &text)? > number_before(" parcels;", &text)?, "{text}");
    assert!(number_before(" parcels were not counted exactly once", &text)? > 0, "{text}");
    Ok(())
}
