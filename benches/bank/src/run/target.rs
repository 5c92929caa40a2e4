//! What the bank wants to reach, and whether it does: a table whose rows come from different runs.

use crate::run::{
    document,
    report::{Cell, Figures},
    stage::Contender,
    table::Table,
};
use std::fmt;

/// What is wanted of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// Not further from 1 than this.
    Around(f64),
}

impl Wanted {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
            Self::Around(off) => (figure - 1.0).abs() <= off,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least:.2}"),
            Self::AtMost(most) => write!(f, "at most {most:.2}"),
            Self::Around(off) => write!(f, "{:.2} to {:.2}", 1.0 - off, 1.0 + off),
        }
    }
}

/// One thing that Kassa's bank is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// Requests per second at that many connections, as a multiple of the contender's.
    Rate(usize, Contender, f64),
    /// The p99 at that many connections, as a multiple of PostgreSQL's.
    P99(usize),
    /// Requests per second with a million keys in the store, by time or at random, as a multiple of the empty store's.
    Size { random: bool },
    /// The memory over a long run that is furthest from what it was at first, as a multiple of that.
    Memory,
}

/// How far memory may go from what it was at first.
pub(crate) const MEMORY_OFF: f64 = 0.10;
/// The keys in the store that a target is about.
const KEYS: u64 = 1_000_000;

const TARGETS: [Target; 10] = [
    Target::Rate(64, Contender::Sqlite, 3.0),
    Target::Rate(64, Contender::Postgres, 1.5),
    Target::Rate(16, Contender::Postgres, 1.0),
    Target::P99(1),
    Target::P99(16),
    Target::P99(64),
    Target::P99(256),
    Target::Size { random: false },
    Target::Size { random: true },
    Target::Memory,
];

impl Target {
    /// What its row begins with, by which the row is found again.
    fn name(self) -> String {
        match self {
            Self::Rate(connections, contender, _) => {
                format!("req/s at {connections} connections, × {}", contender.name())
            }
            Self::P99(connections) => {
                format!("p99 at {connections} connection{}, × PostgreSQL", if connections == 1 { "" } else { "s" })
            }
            Self::Size { random } => {
                let kind = if random { "random (v4)" } else { "time-ordered (v7)" };
                format!("req/s with 1,000,000 {kind} keys, × empty, the least")
            }
            Self::Memory => "memory over the soak, × its first, the furthest".to_owned(),
        }
    }

    const fn wanted(self) -> Wanted {
        match self {
            Self::Rate(_, _, least) => Wanted::AtLeast(least),
            Self::P99(_) => Wanted::AtMost(1.0),
            Self::Size { .. } => Wanted::AtLeast(0.85),
            Self::Memory => Wanted::Around(MEMORY_OFF),
        }
    }

    /// Kassa's figure in a comparison; none where it was not measured there.
    fn measured(self, figures: &Figures) -> Option<f64> {
        let pay = |contender, connections| figures.pay.get(&Cell { contender, connections })?.summary();
        match self {
            Self::Rate(connections, contender, _) => {
                let rate = |contender| Some(pay(contender, connections)?.requests_per_s);
                Some(rate(Contender::Kassa)? / rate(contender)?)
            }
            Self::P99(connections) => {
                let p99_ms = |contender| Some(pay(contender, connections)?.p99_ms);
                Some(p99_ms(Contender::Kassa)? / p99_ms(Contender::Postgres)?)
            }
            Self::Size { random } => {
                let rate =
                    |size, connections| Some(figures.size.get(&(random, size, connections))?.summary()?.requests_per_s);
                let full = figures.size.keys().filter(|(kind, size, _)| (*kind, *size) == (random, KEYS));
                full.filter_map(|(_, _, connections)| Some(rate(KEYS, *connections)? / rate(0, *connections)?))
                    .min_by(f64::total_cmp)
            }
            Self::Memory => None,
        }
    }
}

/// What a run measured of the targets.
pub(crate) fn measured(figures: &Figures) -> Vec<(Target, f64)> {
    TARGETS.into_iter().filter_map(|target| Some((target, target.measured(figures)?))).collect()
}

/// The table, in which rows that this run has nothing to say of stay as an earlier one wrote them in `document`.
pub(crate) fn table(document: &str, measured: &[(Target, f64)]) -> String {
    let before = document::part(document, super::TARGETS).unwrap_or_default();
    let mut table = Table::new(&["", "wanted", "measured", "verdict"]);
    for target in TARGETS {
        let (name, wanted) = (target.name(), target.wanted());
        let figure = measured.iter().find(|(other, _)| *other == target).map(|(_, figure)| *figure);
        let (figure, verdict) = match figure {
            Some(figure) => {
                let verdict = if wanted.is_met(figure) { "met" } else { "**not met**" };
                // A digit more than is wanted: what misses by a hair is not to look as if it had hit.
                (format!("{figure:.3}"), verdict.to_owned())
            }
            None => earlier(before, &name).unwrap_or_else(|| ("–".to_owned(), "not measured".to_owned())),
        };
        table.row(vec![name, wanted.to_string(), figure, verdict]);
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

    #[test]
    fn a_row_is_met_or_not_and_stays_where_nothing_new_is_known() {
        let rate = TARGETS[0];
        let first = table("", &[(rate, 2.999), (Target::P99(64), 1.0)]);
        let row =
            |text: &str, target: Target| text.lines().find(|line| line.contains(&target.name())).unwrap().to_owned();
        assert!(row(&first, rate).contains("2.999") && row(&first, rate).contains("**not met**"), "{first}");
        assert!(row(&first, Target::P99(64)).contains(" met "), "{first}");
        assert!(row(&first, Target::Memory).contains("not measured"), "{first}");
        let document = document::replaced("", super::super::TARGETS, &first).unwrap();
        let second = table(&document, &[(Target::Memory, 0.9), (Target::P99(64), 1.001)]);
        assert_eq!(row(&second, rate), row(&first, rate));
        assert!(row(&second, Target::P99(64)).contains("**not met**"), "{second}");
        assert!(row(&second, Target::Memory).contains(" met "), "{second}");
    }

    #[test]
    fn each_row_is_found_by_its_name_alone() {
        let names: std::collections::HashSet<_> = TARGETS.into_iter().map(Target::name).collect();
        assert_eq!(names.len(), TARGETS.len());
        assert!(Wanted::Around(0.1).is_met(0.91) && !Wanted::Around(0.1).is_met(1.11));
    }
}
