//! The figures of a run, and the text that they become.

use crate::{
    click::Clicks,
    dead::{Death, Passed, STORM, Sample},
    drain::Way,
    kill::Survived,
    peers::{Contender, Said, Saving},
};
use jiff::Timestamp;
use measure::{
    latency::Latencies,
    ready::Setting,
    table::{Table, count, rounded, times},
};
use std::{collections::BTreeMap, time::Duration};

/// What was seen of a job queue, or of the outbox as one.
#[derive(Default)]
pub(crate) struct PeerFigures {
    pub(crate) saving: Option<Saving>,
    /// Jobs per second, of each round.
    pub(crate) drain: Vec<f64>,
    pub(crate) survived: Option<Survived>,
}

/// Everything that was seen.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) machine: String,
    /// How the store's writer and the raw connection say that they are set.
    pub(crate) settings: Option<[Vec<Setting>; 2]>,
    /// By operations in the file.
    pub(crate) click: BTreeMap<u64, Clicks>,
    pub(crate) draining: BTreeMap<u64, Clicks>,
    pub(crate) till: BTreeMap<u64, Clicks>,
    /// Payments per second, of each round.
    pub(crate) drain: BTreeMap<Way, Vec<f64>>,
    pub(crate) hours: BTreeMap<Death, Passed>,
    pub(crate) sample: Option<Sample>,
    /// By operations in the file: from the kill to the first request, of each round.
    pub(crate) kills: BTreeMap<u64, Vec<Duration>>,
    pub(crate) peers: BTreeMap<Contender, PeerFigures>,
    /// Who could not be measured, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

/// The middle of some figures.
pub(crate) fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper)) }
}

/// The middle and the longest of some times, in seconds.
pub(crate) fn middle_and_most_s(times: &[Duration]) -> Option<(f64, f64)> {
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    Some((median(&seconds)?, seconds.iter().copied().max_by(f64::total_cmp)?))
}

impl Figures {
    /// A text with when, where and by which command it was made.
    pub(crate) fn under_heading(&self, text: &str, flags: &str) -> String {
        let date = Timestamp::now().strftime("%Y-%m-%d");
        format!("Measured on {date} by `cargo xtask bench outbox{flags}`, on {}.\n\n{text}", self.machine)
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        let parts = [
            self.click_text(),
            self.draining_text(),
            self.till_text(),
            self.drain_text(),
            self.dead_text(),
            self.kill_text(),
            self.peers_text(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn click_text(&self) -> Option<String> {
        let mut table = against_raw(&self.click, "operations in the file")?;
        table += &format!("\nWhere the time goes:\n\n{}", parts(&self.click));
        if let Some([ours, raw]) = &self.settings {
            let said = |settings: &[Setting]| {
                let all = settings.iter().map(|Setting { name, value }| format!("`{name}` {value}"));
                all.collect::<Vec<_>>().join(", ")
            };
            table += &format!("\nThe store's writer says {}; the raw connection says {}.\n", said(ours), said(raw));
        }
        Some(format!("### Click to durable, alone\n\n{table}"))
    }

    fn draining_text(&self) -> Option<String> {
        let mut text = against_raw(&self.draining, "operations in the file")?;
        let mut table = Table::new(&[
            "operations in the file",
            "batches waited for: p50",
            "p99",
            "most",
            "COMMIT ms",
            "over alone, in COMMITs: p50",
            "raw",
            "p99",
            "raw",
        ]);
        for (size, clicks) in &self.draining {
            let alone = self.click.get(size);
            let over = |of: fn(&Clicks) -> &Latencies, share: f64| {
                let alone = alone.map(|alone| of(alone).quantile_ms(share));
                let over = alone.map(|alone| (of(clicks).quantile_ms(share) - alone) / clicks.commit_ms());
                over.map_or_else(|| "–".to_owned(), |over| format!("{over:.2}"))
            };
            table.row(vec![
                count(*size),
                format!("{:.0}", clicks.waited_for(0.5)),
                format!("{:.0}", clicks.waited_for(0.99)),
                format!("{:.0}", clicks.waited_for(1.0)),
                format!("{:.2}", clicks.commit_ms()),
                over(|clicks| &clicks.ours, 0.5),
                over(|clicks| &clicks.raw, 0.5),
                over(|clicks| &clicks.ours, 0.99),
                over(|clicks| &clicks.raw, 0.99),
            ]);
        }
        text += &format!("\n{}", table.text());
        Some(format!("### Click to durable, while the queue drains\n\n{text}"))
    }

    fn till_text(&self) -> Option<String> {
        let table = against_raw(&self.till, "charges in the file")?;
        Some(format!("### The till's whole click\n\n{table}"))
    }

    fn drain_text(&self) -> Option<String> {
        let middle = |way: Way| self.drain.get(&way).and_then(|rates| median(rates));
        middle(Way::Outbox)?;
        let mut table = Table::new(&["", "payments/s", "least–most", "× bare client"]);
        for (way, rates) in &self.drain {
            let Some(rate) = median(rates) else { continue };
            table.row(vec![way.name().to_owned(), rounded(rate), range(rates), times(rate, middle(Way::Bare))]);
        }
        Some(format!("### Drain\n\n{}", table.text()))
    }

    fn dead_text(&self) -> Option<String> {
        if self.hours.is_empty() {
            return None;
        }
        let mut table = Table::new(&["a bank that is dead", "requests", "in s", "an hour"]);
        for (death, passed) in &self.hours {
            let seconds = rounded(passed.passed.as_secs_f64());
            let (requests, an_hour) = if passed.calls < STORM {
                (count(passed.calls), rounded(passed.per_hour()))
            } else {
                (format!("{}, then stopped", count(passed.calls)), format!("{} or more", rounded(passed.per_hour())))
            };
            table.row(vec![death.name().to_owned(), requests, seconds, an_hour]);
        }
        let mut text = format!("### Requests to a dead bank\n\n{}", table.text());
        if let Some(Sample { run_up, calls, seconds }) = &self.sample {
            text += &format!(
                "\nIn real time, to a port that nobody listens on: {run_up} requests while the back-off grew, then {calls} in {seconds:.0} s, \
                 which would be {} an hour (a sample this small is off by a third and more).\n",
                rounded(*calls as f64 * 3_600.0 / seconds)
            );
        }
        Some(text)
    }

    fn kill_text(&self) -> Option<String> {
        if self.kills.is_empty() {
            return None;
        }
        let mut table = Table::new(&["operations in the file", "kills", "p50 ms", "most ms"]);
        for (size, took) in &self.kills {
            let Some((middle, most)) = middle_and_most_s(took) else { continue };
            let cells =
                [count(*size), took.len().to_string(), format!("{:.0}", middle * 1e3), format!("{:.0}", most * 1e3)];
            table.row(cells.to_vec());
        }
        Some(format!("### From `kill -9` to the first resend\n\n{}", table.text()))
    }

    fn peers_text(&self) -> Option<String> {
        if self.peers.is_empty() && self.left_out.is_empty() {
            return None;
        }
        let mut text = "### Job queues\n\n".to_owned();
        for (name, why) in &self.left_out {
            text += &format!("**LEFT OUT**: {name}: {why}.\n\n");
        }
        if !self.peers.is_empty() {
            text += &format!("{}\n{}", self.peers_speed(), self.peers_survival());
        }
        Some(text)
    }

    fn peers_speed(&self) -> String {
        let ours = self.peers.get(&Contender::Outbox);
        let ours_saving = ours.and_then(|ours| ours.saving.as_ref());
        let ours_rate = ours.and_then(|ours| median(&ours.drain));
        let p50 = |saving: &Saving| saving.latencies.quantile_ms(0.5);
        let mut table = Table::new(&[
            "",
            "`journal_mode`",
            "`synchronous`",
            "flushes per save",
            "save p50 ms",
            "p99 ms",
            "× outbox p50",
            "drained/s",
            "least–most",
            "× outbox",
        ]);
        for (contender, PeerFigures { saving, drain, .. }) in &self.peers {
            let said = saving.as_ref().map(|saving| &saving.said.settings[..]);
            let flushes = saving.as_ref().and_then(Saving::flushes_each);
            let of = |share: f64| saving.as_ref().map(|saving| saving.latencies.quantile_ms(share));
            let rate = median(drain);
            table.row(vec![
                contender.name(),
                setting(said, "journal_mode"),
                setting(said, "synchronous"),
                flushes.map_or_else(dash, |flushes| format!("{flushes:.2}")),
                of(0.5).map_or_else(dash, |ms| format!("{ms:.2}")),
                of(0.99).map_or_else(dash, |ms| format!("{ms:.2}")),
                of(0.5).map_or_else(dash, |ms| times(ms, ours_saving.map(p50))),
                rate.map_or_else(dash, rounded),
                range(drain),
                rate.map_or_else(dash, |rate| times(rate, ours_rate)),
            ]);
        }
        let mut text = table.text();
        let versions: Vec<_> =
            self.peers.values().filter_map(|peer| peer.saving.as_ref()).map(|saving| version(&saving.said)).collect();
        let mut versions: Vec<_> = versions.iter().map(String::as_str).collect();
        versions.dedup();
        if !versions.is_empty() {
            text += &format!("\n{}.\n", versions.join("; "));
        }
        text
    }

    fn peers_survival(&self) -> String {
        let mut table = Table::new(&[
            "killed in the middle",
            "saved",
            "answered before",
            "never run",
            "asked for again",
            "all run after",
        ]);
        for (contender, PeerFigures { survived, .. }) in &self.peers {
            let (name, Some(survived)) = (contender.name(), survived) else { continue };
            let Survived { saved, before, missing, twice, took } = survived;
            let took =
                took.map_or_else(|| "not within the time".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
            let [saved, before, missing, twice] = [saved, before, missing, twice].map(|number| count(*number));
            table.row(vec![name, saved, before, missing, twice, took]);
        }
        table.text()
    }
}

fn dash() -> String {
    "–".to_owned()
}

/// What a queue's database said of one of its settings.
fn setting(settings: Option<&[Setting]>, name: &str) -> String {
    let all: Vec<_> = settings.unwrap_or_default().iter().filter(|setting| setting.name == name).collect();
    if all.is_empty() {
        dash()
    } else {
        all.iter().map(|setting| setting.value.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn version(said: &Said) -> String {
    let sqlite = said.settings.iter().find(|setting| setting.name == "version");
    format!("{} with SQLite {}", said.version, sqlite.map_or("–", |setting| setting.value.as_str()))
}

/// The least and the most of some rates.
fn range(rates: &[f64]) -> String {
    let least = rates.iter().copied().min_by(f64::total_cmp);
    let most = rates.iter().copied().max_by(f64::total_cmp);
    least.zip(most).map_or_else(dash, |(least, most)| format!("{}–{}", rounded(least), rounded(most)))
}

/// Clicks beside raw commits, by what is in the file.
fn against_raw(by_size: &BTreeMap<u64, Clicks>, head: &str) -> Option<String> {
    let (_, smallest) = by_size.first_key_value()?;
    let mut table = Table::new(&[
        head,
        "pairs",
        "p50 ms",
        "raw",
        "×",
        "p95 ms",
        "raw",
        "×",
        "p99 ms",
        "raw",
        "×",
        "p50, × empty",
        "p99, × empty",
    ]);
    for (size, clicks) in by_size {
        let mut cells = vec![count(*size), count(clicks.ours.count())];
        for share in [0.5, 0.95, 0.99] {
            let (ours, raw) = (clicks.ours.quantile_ms(share), clicks.raw.quantile_ms(share));
            cells.extend([format!("{ours:.3}"), format!("{raw:.3}"), format!("{:.2}", ours / raw)]);
        }
        for share in [0.5, 0.99] {
            cells.push(times(clicks.ours.quantile_ms(share), Some(smallest.ours.quantile_ms(share))));
        }
        table.row(cells);
    }
    Some(table.text())
}

/// Where the time of clicks and raw commits went.
fn parts(by_size: &BTreeMap<u64, Clicks>) -> String {
    let mut table = Table::new(&[
        "p50 ms of",
        "operations in the file",
        "to the writer's turn",
        "statements",
        "COMMIT and back",
        "COMMIT, mean",
    ]);
    for (size, clicks) in by_size {
        let [ours, raw] = &clicks.parts;
        let commit = format!("{:.3}", clicks.commit_ms());
        for (name, parts, commit) in [("click", ours, commit), ("raw commit", raw, dash())] {
            let p50 = |latencies: &Latencies| format!("{:.3}", latencies.quantile_ms(0.5));
            table.row(vec![
                name.to_owned(),
                count(*size),
                p50(&parts.turn),
                p50(&parts.rows),
                p50(&parts.rest),
                commit,
            ]);
        }
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clicks(ours_ms: u64, raw_ms: u64) -> Clicks {
        let mut clicks = Clicks::new().unwrap();
        for _ in 0..100 {
            clicks.ours.record(Duration::from_millis(ours_ms)).unwrap();
            clicks.raw.record(Duration::from_millis(raw_ms)).unwrap();
        }
        (clicks.commits, clicks.commit_time) = (10, Duration::from_millis(20));
        clicks
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        assert_eq!(Figures::default().text(), "");
    }

    #[test]
    fn a_click_stands_beside_the_raw_commit_and_the_empty_file() {
        let click = BTreeMap::from([(0, clicks(3, 2)), (1_000, clicks(6, 2))]);
        let draining = BTreeMap::from([(0, clicks(7, 2))]);
        let text = Figures { click, draining, ..Figures::default() }.text();
        let row = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap().to_owned();
        assert!(row("| 1,000 ").contains(" 3.00 |") && row("| 1,000 ").ends_with(" 2.00 |         2.00 |"), "{text}");
        // Seven after three are two COMMITs of two more.
        assert!(text.contains(" 2.00 | "), "{text}");
    }

    #[test]
    fn who_was_left_out_is_named() {
        let left_out = vec![("effectum".to_owned(), "it could not be built".to_owned())];
        let text = Figures { left_out, ..Figures::default() }.text();
        assert!(text.contains("**LEFT OUT**: effectum: it could not be built."), "{text}");
    }

    #[test]
    fn a_storm_is_told_as_one() {
        let hours = BTreeMap::from([
            (Death::Refused, Passed { calls: 251, passed: Duration::from_secs(3_600) }),
            (Death::Page, Passed { calls: STORM, passed: Duration::from_secs(2) }),
        ]);
        let text = Figures { hours, ..Figures::default() }.text();
        assert!(
            text.contains(" 251 | 3,600 |               251 |")
                && text.contains("| 3,000, then stopped |     2 | 5,400,000 or more |"),
            "{text}"
        );
    }
}
