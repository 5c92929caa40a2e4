//! What is to be reached, and whether it is: a table whose rows may come from different runs.

use crate::{document, table::Table};
use std::fmt;

/// What is wanted of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
    /// Not further from 1 than this.
    Around(f64),
}

impl Wanted {
    /// Whether the figure is as wanted.
    #[must_use]
    pub fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
            Self::Around(off) => (figure - 1.0).abs() <= off,
        }
    }
}

/// From here on figures are written without decimals.
const WHOLE: f64 = 100.0;

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |figure: f64| if figure < WHOLE { 2 } else { 0 };
        match self {
            Self::AtLeast(least) => write!(f, "at least {least:.*}", digits(*least)),
            Self::AtMost(most) => write!(f, "at most {most:.*}", digits(*most)),
            Self::Around(off) => write!(f, "{:.2} to {:.2}", 1.0 - off, 1.0 + off),
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it begins with, by which it is found again.
    pub name: String,
    /// What is wanted.
    pub wanted: Wanted,
    /// What this run measured; none where it did not.
    pub measured: Option<f64>,
}

/// The table, in which rows that this run has nothing to say of stay as an earlier one wrote them in the part of that name.
#[must_use]
pub fn table(document: &str, part: &str, rows: &[Row]) -> String {
    let before = document::part(document, part).unwrap_or_default();
    let mut table = Table::new(&["", "wanted", "measured", "verdict"]);
    for Row { name, wanted, measured } in rows {
        let (figure, verdict) = match measured {
            Some(figure) => {
                let verdict = if wanted.is_met(*figure) { "met" } else { "**not met**" };
                // A digit more than is wanted: what misses by a hair is not to look as if it had hit.
                (format!("{figure:.*}", if *figure < WHOLE { 3 } else { 1 }), verdict.to_owned())
            }
            None => earlier(before, name).unwrap_or_else(|| ("–".to_owned(), "not measured".to_owned())),
        };
        table.row(vec![name.clone(), wanted.to_string(), figure, verdict]);
    }
    table.text()
}

/// Figure and verdict of an earlier run's row.
fn earlier(part: &str, name: &str) -> Option<(String, String)> {
    part.lines().find_map(|line| match line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
        ["", row, _, figure, verdict, ""] if row == name => Some((figure.to_owned(), verdict.to_owned())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(measured: [Option<f64>; 3]) -> Vec<Row> {
        let rate = ("req/s, × other", Wanted::AtLeast(3.0));
        let kinds = [rate, ("p99, × other", Wanted::AtMost(1.0)), ("memory", Wanted::Around(0.1))];
        let row = |((name, wanted), measured): ((&str, _), _)| Row { name: name.to_owned(), wanted, measured };
        kinds.into_iter().zip(measured).map(row).collect()
    }

    #[test]
    fn a_row_is_met_or_not_and_stays_where_nothing_new_is_known() {
        let row = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split('|').map(str::trim).collect::<Vec<_>>().join(" | ")
        };
        let first = table("", "targets", &rows([Some(2.999), Some(1.0), None]));
        assert!(row(&first, "req/s").contains("2.999") && row(&first, "req/s").contains("**not met**"), "{first}");
        assert!(row(&first, "p99").contains(" met "), "{first}");
        assert!(row(&first, "memory").contains("not measured"), "{first}");
        let document = document::replaced("", "targets", &first).unwrap();
        let second = table(&document, "targets", &rows([None, Some(1.001), Some(0.9)]));
        assert_eq!(row(&second, "req/s"), row(&first, "req/s"));
        assert!(row(&second, "p99").contains("**not met**"), "{second}");
        assert!(row(&second, "memory").contains(" met "), "{second}");
    }

    #[test]
    fn what_is_wanted_reads_as_it_is_judged() {
        assert!(Wanted::Around(0.1).is_met(0.91) && !Wanted::Around(0.1).is_met(1.11));
        assert_eq!(Wanted::AtMost(300.0).to_string(), "at most 300");
        assert_eq!(Wanted::AtMost(1.25).to_string(), "at most 1.25");
    }
}
