//! The figures of a run, and the text that they become.

use crate::run::{
    guarantee::Checked,
    measuring::{Sample, Summary},
    stage::Contender,
    table::{Table, count, rounded, times},
};
use jiff::Timestamp;
use std::{collections::BTreeMap, fmt};

/// What a row of the comparison is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) connections: usize,
    pub(crate) contender: Contender,
}

/// Everything that was seen.
pub(crate) struct Figures {
    machine: String,
    checked: Vec<(Contender, Checked)>,
    pub(crate) pay: BTreeMap<Cell, Vec<Sample>>,
    pub(crate) replay: BTreeMap<Cell, Vec<Sample>>,
    /// By whether keys are random, keys in the store, and connections.
    pub(crate) size: BTreeMap<(bool, u64, usize), Vec<Sample>>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, repeats, told, untold } = self;
        let [keys, repeats, told, untold] = [keys, repeats, told, untold].map(|number| count(*number));
        write!(
            f,
            "{keys} keys, as many charges; {repeats} repeats and, after three kills, {told} told answers came with the same bytes; \
             {untold} torn requests were finished once; another body was refused"
        )
    }
}

impl Figures {
    pub(crate) fn new(machine: String) -> Self {
        let (pay, replay, size) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { machine, checked: Vec::new(), pay, replay, size }
    }

    pub(crate) fn checked(&mut self, contender: Contender, checked: Checked) {
        self.checked.push((contender, checked));
    }

    /// A text with when, where and by which command it was made.
    pub(crate) fn under_heading(&self, text: &str, flags: &str) -> String {
        let date = Timestamp::now().strftime("%Y-%m-%d");
        format!("Measured on {date} by `cargo xtask bench bank {flags}`, on {}.\n\n{text}", self.machine)
    }

    /// All of it.
    pub(crate) fn text(&self, how: &str) -> String {
        let date = Timestamp::now().strftime("%Y-%m-%d");
        let mut text = format!("Measured on {date} by `cargo xtask bench bank` ({how}), on {}.\n", self.machine);
        if let Some(others) = self.others() {
            text += &others;
        }
        if !self.checked.is_empty() {
            text += "\n### The promise, checked before\n\n";
            for (contender, checked) in &self.checked {
                text += &format!("- {}: {checked}.\n", contender.name());
            }
        }
        if !self.pay.is_empty() {
            text += "\n### New payments\n\n";
            text += &compared(&self.pay).text();
        }
        if !self.replay.is_empty() {
            text += "\n### Known keys\n\n";
            text += &compared(&self.replay).text();
        }
        if !self.size.is_empty() {
            text += "\n### Keys in the store (Kassa)\n\n";
            text += &sized(&self.size).text();
        }
        text
    }
}

impl Figures {
    /// What others took of the cores meanwhile: whether the figures can be trusted.
    fn others(&self) -> Option<String> {
        let all = self.pay.values().chain(self.replay.values()).chain(self.size.values()).flatten();
        let mut others: Vec<f64> = all.map(|sample| sample.others * 100.0).collect();
        others.sort_by(f64::total_cmp);
        let (middle, most) = (others.get(others.len() / 2)?, others.last()?);
        Some(format!(
            "Other processes and the kernel's own took {middle:.0} % of the cores in the middle, {most:.0} % at most.\n"
        ))
    }
}

fn compared(cells: &BTreeMap<Cell, Vec<Sample>>) -> Table {
    let mut table = Table::new(&[
        "",
        "connections",
        "req/s",
        "least–most",
        "× SQLite",
        "× PostgreSQL",
        "× ceiling",
        "p50 ms",
        "p99 ms",
        "CPU µs/req",
        "flushes/req",
    ]);
    for (cell, samples) in cells {
        let Some(summary) = Summary::of(samples) else { continue };
        let rate = summary.median.requests_per_s;
        let of = |contender| {
            let other = cells.get(&Cell { contender, ..*cell }).and_then(|samples| Summary::of(samples));
            times(rate, other.map(|other| other.median.requests_per_s))
        };
        table.row(vec![
            cell.contender.name().to_owned(),
            cell.connections.to_string(),
            rounded(rate),
            format!("{}–{}", rounded(summary.least), rounded(summary.most)),
            of(Contender::Sqlite),
            of(Contender::Postgres),
            of(Contender::Memory),
            format!("{:.2}", summary.median.p50_ms),
            format!("{:.2}", summary.median.p99_ms),
            rounded(summary.median.cpu_us),
            summary.median.flushes.map_or_else(|| "–".to_owned(), |flushes| format!("{flushes:.3}")),
        ]);
    }
    table
}

fn sized(cells: &BTreeMap<(bool, u64, usize), Vec<Sample>>) -> Table {
    let mut table = Table::new(&[
        "keys in the store",
        "connections",
        "req/s",
        "least–most",
        "× empty",
        "p50 ms",
        "p99 ms",
        "CPU µs/req",
    ]);
    for ((random, size, connections), samples) in cells {
        let Some(summary) = Summary::of(samples) else { continue };
        let empty = cells.get(&(*random, 0, *connections)).and_then(|samples| Summary::of(samples));
        let kind = if *random { "at random (v4)" } else { "by time (v7), as the till makes them" };
        table.row(vec![
            format!("{}, {kind}", count(*size)),
            connections.to_string(),
            rounded(summary.median.requests_per_s),
            format!("{}–{}", rounded(summary.least), rounded(summary.most)),
            times(summary.median.requests_per_s, empty.map(|empty| empty.median.requests_per_s)),
            format!("{:.2}", summary.median.p50_ms),
            format!("{:.2}", summary.median.p99_ms),
            rounded(summary.median.cpu_us),
        ]);
    }
    table
}
