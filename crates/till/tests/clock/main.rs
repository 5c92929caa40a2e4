//! `kassa-till` on a machine whose clock stands where it can't be right.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Output},
};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// Seconds of a year.
const YEAR_S: i64 = 31_556_952;

const PAY: [&str; 7] = ["pay", "--amount", "2490", "--currency", "EUR", "--card", "tok_visa"];
const SYNC: [&str; 6] = ["--bank-url", "http://127.0.0.1:9", "--bank-token", "sk_1", "sync", "--until-settled"];

struct Scene {
    library: PathBuf,
    data: PathBuf,
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Checked<Self> {
        let dir = tempfile::tempdir()?;
        let library = dir.path().join("clock.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clock/clock.c");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl").output()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Ok(Self { library, data: dir.path().join("data"), _dir: dir })
    }

    /// Runs a command with the clock so many years ahead.
    fn run(&self, years: i64, args: &[&str]) -> Checked<Output> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
        for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
            command.env_remove(name);
        }
        command.env("KASSA_DATA_DIR", &self.data).env("LD_PRELOAD", &self.library);
        Ok(command.env("CLOCK_AHEAD_S", (years * YEAR_S).to_string()).args(args).output()?)
    }
}

fn lines(output: &Output) -> Checked<Vec<Value>> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone())?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[test]
fn a_clock_that_cannot_be_right_begins_nothing_and_loses_nothing() -> Checked {
    let scene = Scene::new()?;
    let paid = lines(&scene.run(0, &PAY)?)?;
    let key = paid[0]["key"].as_str().ok_or("no key")?;
    for (years, words) in [(-100, "before 1970"), (-15_000, "before 1970"), (9_000, "after the year 9999")] {
        for args in [&PAY[..], &SYNC, &["refund", key, "--amount", "100"], &["cancel", key]] {
            let refused = scene.run(years, args)?;
            let said = String::from_utf8(refused.stderr)?;
            assert_eq!((refused.status.code(), said.lines().count()), (Some(1), 1), "{years} years, {args:?}: {said}");
            assert!(said.starts_with("kassa-till: this machine's clock") && said.contains(words), "{years}: {said}");
        }
        // Who only reads needs no clock.
        assert_eq!(lines(&scene.run(years, &["operations", "--json"])?)?, paid);
        assert_eq!(lines(&scene.run(years, &["log", key])?)?.len(), 1);
        assert_eq!(scene.run(years, &["operations"])?.status.code(), Some(0));
    }
    // Wrong by less than that it is used as it is: the order of clicks is not its matter.
    let (early, late) = (lines(&scene.run(-50, &PAY)?)?, lines(&scene.run(5_000, &PAY)?)?);
    assert!(early[0]["created_at"].as_str() < paid[0]["created_at"].as_str(), "the clock was not moved: {early:?}");
    assert_eq!(lines(&scene.run(0, &["operations", "--json"])?)?, [&paid[..], &early, &late].concat());
    Ok(())
}
