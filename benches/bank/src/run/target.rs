//! What the bank wants to reach, and whether it does.

use crate::run::{
    report::{Cell, Figures},
    stage::Contender,
};
use measure::target::{Row, Wanted};

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
    let row = |target: Target| Row {
        name: target.name(),
        wanted: target.wanted(),
        measured: measured.iter().find(|(other, _)| *other == target).map(|(_, figure)| *figure),
    };
    measure::target::table(document, super::TARGETS, &TARGETS.map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_found_by_its_name_alone() {
        let names: std::collections::HashSet<_> = TARGETS.into_iter().map(Target::name).collect();
        assert_eq!(names.len(), TARGETS.len());
    }

    #[test]
    fn a_figure_stands_in_the_row_of_its_target() {
        let text = table("", &[(Target::Memory, 0.91)]);
        let row = text.lines().find(|line| line.contains(&Target::Memory.name())).unwrap();
        assert!(row.contains("0.910") && row.contains(" met "), "{text}");
    }
}
