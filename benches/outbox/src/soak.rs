//! Many operations settled by one process: whether its memory stays flat.

use crate::{kill, stage::Stage, target::MEMORY_OFF};
use anyhow::{Context, Result, ensure};
use measure::{
    machine::resident_kib,
    table::{Table, count, rounded},
};
use std::time::{Duration, Instant};

/// Between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Memory after a number of settled operations.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Resident {
    done: u64,
    kib: u64,
}

/// What a soak came to.
pub(crate) struct Soaked {
    /// For the document.
    pub(crate) text: String,
    /// The memory in the last quarter that is furthest from the mean of the first, as a multiple of that.
    pub(crate) furthest: f64,
}

/// Settles that many operations with a real bank by `kassa-till sync`.
pub(crate) async fn soak(stage: &mut Stage, operations: u64) -> Result<Soaked> {
    ensure!(operations >= 1_000, "name at least 1,000 operations");
    let dir = stage.place()?;
    kill::pay(stage, &dir, usize::try_from(operations)?).await?;
    let bank = stage.fresh_bank().await?;
    let begin = Instant::now();
    let mut child = kill::sync(stage, &dir, &bank.url, true)?;
    let pid = child.id().context("`sync` is gone")?;
    let mut seen = Vec::new();
    while child.try_wait()?.is_none() {
        let done = stage.ledger().await?.distinct_keys;
        // It may end between the two looks.
        if let Ok(kib) = resident_kib(pid) {
            seen.push(Resident { done, kib });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    kill::settled(child).await?;
    let took = begin.elapsed();
    stage.check_charges(operations).await?;
    bank.clear().await?;
    std::fs::remove_dir_all(dir)?;
    let memory = Memory::of(&seen, operations)?;
    let text = format!(
        "{} operations settled by one `kassa-till sync`, {} a second.\n\n{}",
        count(operations),
        rounded(operations as f64 / took.as_secs_f64()),
        memory.text()
    );
    Ok(Soaked { text, furthest: memory.furthest() })
}

/// Memory by quarters of the operations, in KiB: least, mean and most.
#[derive(Debug, Clone, PartialEq)]
struct Memory {
    quarters: [(u64, f64, u64); 4],
}

impl Memory {
    fn of(seen: &[Resident], operations: u64) -> Result<Self> {
        let quarter = |number: u64| -> Result<(u64, f64, u64)> {
            let of = |done: u64| (done * 4 / operations.max(1)).min(3) == number;
            let kib: Vec<u64> = seen.iter().filter(|resident| of(resident.done)).map(|resident| resident.kib).collect();
            let mean = kib.iter().sum::<u64>() as f64 / kib.len() as f64;
            let least = kib.iter().min().with_context(|| format!("memory was not looked at in quarter {}", number + 1));
            Ok((*least?, mean, kib.iter().max().copied().unwrap_or_default()))
        };
        Ok(Self { quarters: [quarter(0)?, quarter(1)?, quarter(2)?, quarter(3)?] })
    }

    /// What of the last quarter is furthest from the first one's mean, as a multiple of that.
    fn furthest(&self) -> f64 {
        let (_, first, _) = self.quarters[0];
        let (least, _, most) = self.quarters[3];
        let [least, most] = [least, most].map(|kib| kib as f64 / first);
        if 1.0 - least > most - 1.0 { least } else { most }
    }

    fn text(&self) -> String {
        let mut table = Table::new(&["memory in use, MiB", "least", "mean", "most"]);
        let names = ["first quarter", "second quarter", "third quarter", "last quarter"];
        for (name, (least, mean, most)) in names.into_iter().zip(self.quarters) {
            let mib = |kib: f64| format!("{:.1}", kib / 1_024.0);
            table.row(vec![name.to_owned(), mib(least as f64), mib(mean), mib(most as f64)]);
        }
        let verdict = if (self.furthest() - 1.0).abs() <= MEMORY_OFF { "Flat" } else { "**Not flat**" };
        format!("{}\n{verdict} within ± {:.0} % of the first quarter's mean.\n", table.text(), MEMORY_OFF * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(kib: [u64; 8]) -> Memory {
        let seen = kib.into_iter().zip(0..).map(|(kib, place)| Resident { done: place * 100, kib });
        Memory::of(&seen.collect::<Vec<_>>(), 800).unwrap()
    }

    #[test]
    fn the_last_quarter_is_held_against_the_first() {
        assert!(memory([90, 110, 500, 500, 1, 1, 109, 100]).text().contains("\nFlat "));
        let grown = memory([100, 100, 100, 100, 100, 100, 100, 111]);
        assert!(grown.text().contains("**Not flat**") && (grown.furthest() - 1.11).abs() < 1e-9);
        assert!(memory([100, 100, 100, 100, 100, 100, 89, 101]).text().contains("**Not flat**"));
        assert!(Memory::of(&[Resident { done: 0, kib: 1 }], 800).is_err(), "three quarters were not seen");
    }
}
