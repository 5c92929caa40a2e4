//! A table for spreadsheets, after RFC 4180: commas, CRLF, quotes doubled, and a mark at the begin by which UTF-8 is known.

use super::Cell;
use std::io::{self, Write};

/// By which spreadsheets know UTF-8.
const MARK: &str = "\u{feff}";

pub(super) struct Csv<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Csv<'a> {
    pub(super) fn begin(out: &'a mut dyn Write, columns: &[&str]) -> io::Result<Self> {
        out.write_all(MARK.as_bytes())?;
        let mut csv = Self { out };
        let head: Vec<_> = columns.iter().map(|&name| Cell::Plain(name.to_owned())).collect();
        csv.row(&head)?;
        Ok(csv)
    }

    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.out.write_all(b",")?;
            }
            let text = match cell {
                Cell::Text(text) => guarded(text),
                Cell::Plain(text) => text.clone(),
                Cell::Nothing => String::new(),
            };
            self.out.write_all(quoted(&text).as_bytes())?;
        }
        self.out.write_all(b"\r\n")
    }
}

/// A text that no spreadsheet runs: one that begins as formulas do, also after spaces or in their wide forms, has an apostrophe first.
fn guarded(text: &str) -> String {
    let begins = |c| matches!(c, '=' | '+' | '-' | '@' | '|' | '%' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠');
    let is_formula = text.starts_with(begins) || text.trim_start().starts_with(begins);
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', ';', '\r', '\n', '\t']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[Cell<'_>]) -> io::Result<String> {
        let mut out = Vec::new();
        Csv::begin(&mut out, &["a", "b"])?.row(cells)?;
        String::from_utf8(out).map_err(io::Error::other)
    }

    #[test]
    fn a_table_is_as_rfc_4180_has_it() -> io::Result<()> {
        let cells = [Cell::Text("say \"hi\", twice\nor more"), Cell::Plain("-0.02".to_owned()), Cell::Nothing];
        assert_eq!(row(&cells)?, "\u{feff}a,b\r\n\"say \"\"hi\"\", twice\nor more\",-0.02,\r\n");
        Ok(())
    }

    #[test]
    fn no_text_is_a_formula() {
        for evil in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "|calc", "%0a", "＝1", "\n=1"] {
            assert_eq!(guarded(evil), format!("'{evil}"));
        }
        for good in ["Tea", "1-2", "a=b", ""] {
            assert_eq!(guarded(good), good);
        }
    }
}
