//! The bench in its smallest form, so that it doesn't rot.

use std::{error::Error, path::Path, process::Command};

#[test]
fn each_kind_of_search_and_all_over_many_sales_is_measured_and_written_nowhere() -> Result<(), Box<dyn Error>> {
    let document = Path::new(env!("CARGO_TARGET_TMPDIR")).join("till-bench-none.md");
    let output = Command::new(env!("CARGO_BIN_EXE_till-bench"))
        .args(["run", "--quick", "--dir", env!("CARGO_TARGET_TMPDIR"), "--document"])
        .arg(&document)
        .output()?;
    let said = String::from_utf8([output.stdout, output.stderr].concat())?;
    assert!(output.status.success(), "{said}");
    let rows = said.lines().filter(|line| line.starts_with("| ") && !line.contains('–')).count();
    // Ten kinds of search and ten things over two files, each table with its head.
    assert_eq!(rows, 11 + 21, "{said}");
    assert!(!document.exists(), "a short run is written nowhere");
    Ok(())
}
