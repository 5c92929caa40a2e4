//! The tables of `docs/OUTBOX.md`: made by running `decide`, so that they say what it does. A difference fails, and
//! `UPDATE_DOCS=1 cargo test -p outbox --test table` writes them anew.

mod answers;
mod page;
mod queue;
mod seen;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OUTBOX.md")
}

/// Puts the text between the two marks of that name.
fn put(page: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}: written by a test -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("no place for {name}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no end of {name}"))?;
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[test]
fn the_tables_in_the_docs_are_what_the_code_does() {
    let written = std::fs::read_to_string(page()).unwrap();
    let mut made = written.clone();
    for (name, text) in [
        ("questions", answers::questions().unwrap()),
        ("answers", answers::answers().unwrap()),
        ("no answers", answers::no_answers().unwrap()),
        ("states", queue::names().unwrap()),
        ("queue", queue::table().unwrap()),
    ] {
        made = put(&made, name, &text).unwrap();
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), &made).unwrap();
        return;
    }
    let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(
        made == written,
        "docs/OUTBOX.md is not what the code does; to write it anew: UPDATE_DOCS=1 cargo test -p outbox --test table\n\
         the first difference (code, docs): {differs:#?}"
    );
}
