//! The figures of a run, and the text that they become.

use crate::run::{
    guarantee::Checked,
    measuring::{Samples, Summary},
    stage::Contender,
};
use jiff::Timestamp;
use measure::{
    ready::Setting,
    table::{Table, count, rounded, times},
};
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
    pub(crate) pay: BTreeMap<Cell, Samples>,
    /// New payments beside the comparison: PostgreSQL with settings raised.
    pub(crate) raised: Samples,
    pub(crate) replay: BTreeMap<Cell, Samples>,
    /// By whether keys are random, keys in the store, and connections.
    pub(crate) size: BTreeMap<(bool, u64, usize), Samples>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, repeats, told, untold } = self;
        let [keys, repeats, told, untold] = [keys, repeats, told, untold].map(|number| count(*number));
        write!(
            f,
            "{keys} keys, as many charges, as many payments in the books and twice as many postings, two to a payment, which add up to \
             nothing; {repeats} repeats and, after three kills, {told} told answers came with the same bytes, and had stood in the \
             books before the restart; {untold} torn requests were finished once; another body was refused"
        )
    }
}

impl Figures {
    pub(crate) fn new(machine: String) -> Self {
        let (pay, replay, size) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { machine, checked: Vec::new(), pay, raised: Samples::default(), replay, size }
    }

    pub(crate) fn checked(&mut self, contender: Contender, checked: Checked) {
        self.checked.push((contender, checked));
    }

    /// A text with when, where and by which command it was made.
    pub(crate) fn under_heading(&self, text: &str, flags: &str) -> String {
        let date = Timestamp::now().strftime("%Y-%m-%d");
        format!("Measured on {date} by `cargo xtask bench bank {flags}`, on {}.\n\n{text}", self.machine)
    }

    /// All of it, with how the databases say that they are set.
    pub(crate) fn text(&self, how: &str, settings: &BTreeMap<Contender, Vec<Setting>>) -> String {
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
        if !settings.is_empty() {
            text += "\n### How the databases say they are set\n\n";
            for (contender, settings) in settings {
                let all: Vec<_> = settings.iter().map(|Setting { name, value }| format!("`{name}` {value}")).collect();
                text += &format!("- {}: {}.\n", contender.name(), all.join(", "));
            }
        }
        if !self.pay.is_empty() {
            text += "\n### New payments\n\n";
            text += &compared(&self.pay).text();
        }
        if let Some(table) = self.beside() {
            text += "\n### PostgreSQL with settings raised, beside the comparison\n\n";
            text += &table.text();
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
        let cells = self.pay.values().chain(self.replay.values()).chain(self.size.values()).chain([&self.raised]);
        let all = cells.flat_map(Samples::rounds);
        let mut others: Vec<f64> = all.map(|sample| sample.others * 100.0).collect();
        others.sort_by(f64::total_cmp);
        let (middle, most) = (others.get(others.len() / 2)?, others.last()?);
        Some(format!(
            "Other processes and the kernel's own took {middle:.0} % of the cores in the middle, {most:.0} % at most.\n"
        ))
    }

    /// What raising its settings brings PostgreSQL, beside it as it is and Kassa.
    fn beside(&self) -> Option<Table> {
        let connections = super::RAISED_CONNECTIONS;
        let of = |contender| self.pay.get(&Cell { contender, connections })?.summary();
        let raised = self.raised.summary()?;
        let mut table = Table::new(&["", "connections", "req/s", "least–most", "p50 ms", "p99 ms", "Kassa × this"]);
        let kassa = of(Contender::Kassa).map(|kassa| kassa.requests_per_s);
        for (contender, summary) in [(Contender::Postgres, of(Contender::Postgres)), (Contender::Raised, Some(raised))]
        {
            let Some(summary) = summary else { continue };
            table.row(vec![
                contender.name().to_owned(),
                connections.to_string(),
                rounded(summary.requests_per_s),
                range(summary.requests_per_s_range, rounded),
                format!("{:.2}", summary.p50_ms),
                format!("{:.2}", summary.p99_ms),
                kassa.map_or_else(|| "–".to_owned(), |kassa| times(kassa, Some(summary.requests_per_s))),
            ]);
        }
        Some(table)
    }
}

fn range((least, most): (f64, f64), text: impl Fn(f64) -> String) -> String {
    format!("{}–{}", text(least), text(most))
}

/// The columns about latencies.
const LATENCIES: [&str; 3] = ["p50 ms", "p99 ms", "p99 least–most"];

fn latencies(summary: &Summary) -> [String; 3] {
    let ms = |ms: f64| format!("{ms:.2}");
    [ms(summary.p50_ms), ms(summary.p99_ms), range(summary.p99_ms_range, ms)]
}

fn compared(cells: &BTreeMap<Cell, Samples>) -> Table {
    let [p50, p99, p99_range] = LATENCIES;
    let mut table = Table::new(&[
        "",
        "connections",
        "req/s",
        "least–most",
        "× SQLite",
        "× PostgreSQL",
        "× ceiling",
        p50,
        p99,
        p99_range,
        "CPU µs/req",
        "flushes/req",
    ]);
    for (cell, samples) in cells {
        let Some(summary) = samples.summary() else { continue };
        let rate = summary.requests_per_s;
        let of = |contender| {
            let other = cells.get(&Cell { contender, ..*cell }).and_then(Samples::summary);
            times(rate, other.map(|other| other.requests_per_s))
        };
        let mut row = vec![
            cell.contender.name().to_owned(),
            cell.connections.to_string(),
            rounded(rate),
            range(summary.requests_per_s_range, rounded),
            of(Contender::Sqlite),
            of(Contender::Postgres),
            of(Contender::Memory),
        ];
        row.extend(latencies(&summary));
        row.push(rounded(summary.cpu_us));
        row.push(summary.flushes.map_or_else(|| "–".to_owned(), |flushes| format!("{flushes:.3}")));
        table.row(row);
    }
    table
}

fn sized(cells: &BTreeMap<(bool, u64, usize), Samples>) -> Table {
    let [p50, p99, p99_range] = LATENCIES;
    let mut table = Table::new(&[
        "keys in the store",
        "connections",
        "req/s",
        "least–most",
        "× empty",
        p50,
        p99,
        p99_range,
        "CPU µs/req",
    ]);
    for ((random, size, connections), samples) in cells {
        let Some(summary) = samples.summary() else { continue };
        let empty = cells.get(&(*random, 0, *connections)).and_then(Samples::summary);
        let kind = if *random { "at random (v4)" } else { "by time (v7), as the till makes them" };
        let mut row = vec![
            format!("{}, {kind}", count(*size)),
            connections.to_string(),
            rounded(summary.requests_per_s),
            range(summary.requests_per_s_range, rounded),
            times(summary.requests_per_s, empty.map(|empty| empty.requests_per_s)),
        ];
        row.extend(latencies(&summary));
        row.push(rounded(summary.cpu_us));
        table.row(row);
    }
    table
}
