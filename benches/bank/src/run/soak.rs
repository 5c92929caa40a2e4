//! Many payments against one bank: whether its memory stays flat, and what a payment takes on the disk.

use crate::{
    load::{Event, PROGRESS_EVERY},
    run::{
        measuring::Driver,
        stage::{Contender, Stage},
        target::MEMORY_OFF,
    },
};
use anyhow::{Result, bail, ensure};
use measure::{
    machine::resident_kib,
    table::{Table, count, rounded},
};
use std::fs;

const CONNECTIONS: usize = 32;
/// Payments before memory has to be flat.
const SETTLED_AFTER: u64 = 50_000;

/// Memory after a number of payments.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Resident {
    done: u64,
    kib: u64,
}

/// What a soak came to.
pub(crate) struct Soaked {
    /// For the document.
    pub(crate) text: String,
    /// The memory that is furthest from what it was at first, as a multiple of that.
    pub(crate) furthest: f64,
}

/// Makes the payments.
pub(crate) async fn soak(stage: &mut Stage, payments: u64) -> Result<Soaked> {
    ensure!(payments > SETTLED_AFTER, "name more than {SETTLED_AFTER} payments");
    let place = stage.place()?;
    let running = stage.start(Contender::Kassa, &place, None).await?;
    stage.empty_stub().await?;
    let pid = running.process.pid;
    let arguments = [format!("--connections={CONNECTIONS}"), format!("--count={payments}")];
    let mut driver = Driver::start(stage, &running.url, &arguments)?;
    let mut seen = Vec::new();
    loop {
        match driver.event().await? {
            Event::Open => {}
            Event::Progress { done } => {
                let resident = Resident { done, kib: resident_kib(pid)? };
                println!("    {} payments, {:.1} MiB", count(done), mib(resident.kib));
                seen.push(resident);
            }
            Event::Closed => break,
            Event::Done(_) => bail!("the load told its events in another order"),
        }
    }
    let measured = driver.done().await?;
    let ledger = stage.ledger().await?;
    ensure!(
        (measured.latencies.count(), ledger.distinct_keys, ledger.reused) == (payments, payments, 0),
        "{} payments were answered, and the stub counts {ledger:?}",
        measured.latencies.count()
    );
    let db = stage.db(&place);
    let log_bytes = fs::metadata(db.with_file_name("bank.db-wal"))?.len();
    // In order, so that what is in the log is in the file.
    stage.end(running).await?;
    let file_bytes = fs::metadata(&db)?.len();
    stage.remove(place)?;
    let memory = Memory::of(&seen)?;
    let text = format!(
        "{} payments over {CONNECTIONS} connections, {} a second (p50 {:.2} ms, p99 {:.2} ms, longest {:.0} ms). Memory was looked at every \
         {} payments.\n\n{}\nAfter the end the file is {:.1} MiB: {} bytes per payment. At the end its write-ahead log was {:.1} MiB.",
        count(payments),
        rounded(measured.latencies.count() as f64 / measured.seconds),
        measured.latencies.quantile_ms(0.50),
        measured.latencies.quantile_ms(0.99),
        measured.latencies.max_ms(),
        count(PROGRESS_EVERY),
        memory.table(),
        file_bytes as f64 / f64::from(1 << 20),
        rounded(file_bytes as f64 / payments as f64),
        log_bytes as f64 / f64::from(1 << 20),
    );
    Ok(Soaked { text, furthest: memory.furthest() })
}

/// Memory from the time on from which it has to be flat, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    first: u64,
    least: u64,
    most: u64,
    last: u64,
}

impl Memory {
    fn of(seen: &[Resident]) -> Result<Self> {
        let kib: Vec<u64> =
            seen.iter().filter(|resident| resident.done >= SETTLED_AFTER).map(|resident| resident.kib).collect();
        match (kib.first(), kib.iter().min(), kib.iter().max(), kib.last()) {
            (Some(&first), Some(&least), Some(&most), Some(&last)) => Ok(Self { first, least, most, last }),
            _ => bail!("memory was never looked at"),
        }
    }

    /// The one that is further from the first of least and most, as a multiple of the first.
    fn furthest(&self) -> f64 {
        let [least, most] = [self.least, self.most].map(|kib| kib as f64 / self.first as f64);
        if 1.0 - least > most - 1.0 { least } else { most }
    }

    fn is_flat(&self) -> bool {
        (self.furthest() - 1.0).abs() <= MEMORY_OFF
    }

    fn table(&self) -> String {
        let mut table = Table::new(&["memory in use", "MiB", "× first"]);
        let first = format!("first, after {}", count(SETTLED_AFTER));
        for (name, kib) in
            [(first.as_str(), self.first), ("least", self.least), ("most", self.most), ("last", self.last)]
        {
            table.row(vec![
                name.to_owned(),
                format!("{:.1}", mib(kib)),
                format!("{:.3}", kib as f64 / self.first as f64),
            ]);
        }
        let verdict = if self.is_flat() { "Flat" } else { "**Not flat**" };
        format!("{}\n{verdict} within ± {:.0} %.\n", table.text(), MEMORY_OFF * 100.0)
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(kib: &[u64]) -> Memory {
        let seen = |(place, kib): (usize, &u64)| Resident { done: 10_000 * (place as u64 + 1), kib: *kib };
        Memory::of(&kib.iter().enumerate().map(seen).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn only_what_comes_after_the_first_payments_has_to_be_flat() {
        assert!(memory(&[1, 1, 1, 1, 100, 109, 91]).is_flat());
        assert!(!memory(&[1, 1, 1, 1, 100, 111, 100]).is_flat());
        assert!(!memory(&[1, 1, 1, 1, 100, 89, 100]).is_flat());
        assert_eq!(memory(&[1, 1, 1, 1, 100, 109, 80]).furthest(), 0.8);
        assert!(memory(&[1, 1, 1, 1, 100, 115, 95]).table().contains("**Not flat**"));
        assert!(Memory::of(&[]).is_err());
    }
}
