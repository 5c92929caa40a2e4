//! What the outbox wants to reach, and whether it does.

use crate::{
    click::Clicks,
    dead::Death,
    drain::Way,
    report::{Figures, median, middle_and_most_s},
};
use measure::{
    table::count,
    target::{Row, Wanted},
};

/// How far memory may go from what it was at first.
pub(crate) const MEMORY_OFF: f64 = 0.10;
/// The operations in the file that targets are about, beside none.
pub(crate) const MANY: u64 = 1_000_000;

/// One thing that the outbox is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// A share of the clicks, as a multiple of the raw commits', with so many operations in the file; of the whole till or of the outbox.
    Click { whole: bool, percent: u32, size: u64 },
    /// A share of the clicks with a million operations in the file, as a multiple of those with none.
    Size { percent: u32 },
    /// The batches that 99 of 100 clicks waited for while the queue drained, the most of all sizes.
    WaitedFor,
    /// The middle click while the queue drains over the middle one alone, in COMMITs, the most of all sizes. What the machine makes of
    /// it, that all share, stays in: the table has the raw commit's beside it.
    Over,
    /// Operations settled per second, as a multiple of a bare client's payments.
    Drain,
    /// Requests in an hour.
    Hour(Death),
    /// Seconds from the kill to the first request: the middle, or the most.
    Resend { most: bool, size: u64 },
    /// The memory of the last quarter that is furthest from that of the first.
    Memory,
}

/// All of them, in their order.
fn all() -> Vec<Target> {
    let mut all = Vec::new();
    for whole in [false, true] {
        for size in [0, MANY] {
            all.extend([50, 99].map(|percent| Target::Click { whole, percent, size }));
        }
    }
    all.extend([50, 99].map(|percent| Target::Size { percent }));
    all.extend([Target::WaitedFor, Target::Over, Target::Drain]);
    all.extend(Death::ALL.map(Target::Hour));
    for size in [0, MANY] {
        all.extend([false, true].map(|most| Target::Resend { most, size }));
    }
    all.push(Target::Memory);
    all
}

impl Target {
    /// What its row begins with.
    fn name(self) -> String {
        let with = |size: u64| if size == 0 { "empty file".to_owned() } else { format!("{} operations", count(size)) };
        match self {
            Self::Click { whole, percent, size } => {
                let what = if whole { "till's whole click" } else { "click" };
                format!("{what} to durable, p{percent}, × raw commit, {}", with(size))
            }
            Self::Size { percent } => format!("click with {}, p{percent}, × empty file", with(MANY)),
            Self::WaitedFor => "batches waited for while the queue drains, p99 of the clicks".to_owned(),
            Self::Over => "click while the queue drains over alone, p50, in batch commits".to_owned(),
            Self::Drain => "drain, × bare client with four connections".to_owned(),
            Self::Hour(death) => format!("requests an hour to a dead bank: {}", death.name()),
            Self::Resend { most, size } => {
                format!("seconds from kill to resend, {}, {}", if most { "most" } else { "p50" }, with(size))
            }
            Self::Memory => "memory of the soak's last quarter, × its first, the furthest".to_owned(),
        }
    }

    const fn wanted(self) -> Wanted {
        match self {
            Self::Click { percent: 50, .. } => Wanted::AtMost(1.25),
            Self::Click { .. } => Wanted::AtMost(2.0),
            Self::Size { .. } => Wanted::AtMost(1.2),
            Self::WaitedFor | Self::Over | Self::Resend { .. } => Wanted::AtMost(1.0),
            Self::Drain => Wanted::AtLeast(0.5),
            Self::Hour(_) => Wanted::AtMost(300.0),
            Self::Memory => Wanted::Around(MEMORY_OFF),
        }
    }

    /// The figure; none where it was not measured.
    fn measured(self, figures: &Figures) -> Option<f64> {
        let of = |clicks: &Clicks, percent: u32| clicks.ours.quantile_ms(f64::from(percent) / 100.0);
        match self {
            Self::Click { whole, percent, size } => {
                let clicks = if whole { &figures.till } else { &figures.click }.get(&size)?;
                Some(of(clicks, percent) / clicks.raw.quantile_ms(f64::from(percent) / 100.0))
            }
            Self::Size { percent } => {
                Some(of(figures.click.get(&MANY)?, percent) / of(figures.click.get(&0)?, percent))
            }
            Self::WaitedFor => figures.draining.values().map(|clicks| clicks.waited_for(0.99)).max_by(f64::total_cmp),
            Self::Over => {
                let over = |(size, clicks): (&u64, &Clicks)| {
                    let alone = figures.click.get(size)?;
                    Some((of(clicks, 50) - of(alone, 50)) / clicks.commit_ms())
                };
                figures.draining.iter().filter_map(over).max_by(f64::total_cmp)
            }
            Self::Drain => {
                let rate = |way| median(figures.drain.get(&way)?);
                Some(rate(Way::Outbox)? / rate(Way::Bare)?)
            }
            Self::Hour(death) => Some(figures.hours.get(&death)?.per_hour()),
            Self::Resend { most, size } => {
                let (middle, longest) = middle_and_most_s(figures.kills.get(&size)?)?;
                Some(if most { longest } else { middle })
            }
            Self::Memory => None,
        }
    }
}

/// What a run measured of the targets.
pub(crate) fn measured(figures: &Figures) -> Vec<(Target, f64)> {
    all().into_iter().filter_map(|target| Some((target, target.measured(figures)?))).collect()
}

/// Which of them were not reached, and by how much.
pub(crate) fn missed(measured: &[(Target, f64)]) -> Vec<String> {
    let missed = measured.iter().filter(|(target, figure)| !target.wanted().is_met(*figure));
    missed.map(|(target, figure)| format!("{}: {figure:.3}, wanted {}", target.name(), target.wanted())).collect()
}

/// The table, in which rows that this run has nothing to say of stay as an earlier one wrote them in `document`.
pub(crate) fn table(document: &str, part: &str, measured: &[(Target, f64)]) -> String {
    let row = |target: Target| Row {
        name: target.name(),
        wanted: target.wanted(),
        measured: measured.iter().find(|(other, _)| *other == target).map(|(_, figure)| *figure),
    };
    measure::target::table(document, part, &all().into_iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead::Passed;
    use std::{collections::BTreeMap, time::Duration};

    #[test]
    fn each_row_is_found_by_its_name_alone() {
        let names: std::collections::HashSet<_> = all().into_iter().map(Target::name).collect();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn what_is_missed_is_named_with_its_figure() {
        assert_eq!(missed(&[(Target::Drain, 0.5), (Target::WaitedFor, 1.0)]), [""; 0]);
        let missed = missed(&[(Target::Drain, 0.499), (Target::WaitedFor, 1.0), (Target::Memory, f64::NAN)]);
        assert_eq!(missed.len(), 2, "{missed:?}");
        assert_eq!(missed[0], "drain, × bare client with four connections: 0.499, wanted at least 0.50");
    }

    #[test]
    fn what_was_measured_is_judged_and_nothing_else() {
        let hours = BTreeMap::from([(Death::Refused, Passed { calls: 301, passed: Duration::from_secs(3_600) })]);
        let drain = BTreeMap::from([(Way::Bare, vec![1.0, 2.0, 9.0]), (Way::Outbox, vec![1.0])]);
        let kills = BTreeMap::from([(0, vec![Duration::from_millis(300), Duration::from_millis(1_100)])]);
        let figures = Figures { hours, drain, kills, ..Figures::default() };
        let measured = measured(&figures);
        assert_eq!(measured.len(), 4);
        let text = table("", "none", &measured);
        let row = |target: Target| text.lines().find(|line| line.contains(&target.name())).unwrap().to_owned();
        assert!(row(Target::Hour(Death::Refused)).contains("**not met**"), "{text}");
        assert!(row(Target::Drain).contains(" 0.500 |") && row(Target::Drain).contains(" met "), "{text}");
        assert!(row(Target::Resend { most: false, size: 0 }).contains(" met "), "{text}");
        assert!(row(Target::Resend { most: true, size: 0 }).contains("**not met**"), "{text}");
        assert!(row(Target::Memory).contains("not measured"), "{text}");
    }
}
