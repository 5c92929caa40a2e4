//! Many payments against one bank: whether its memory stays flat, and what a payment takes on the disk.

use crate::{
    load::Event,
    run::{
        machine::resident_kib,
        measuring::Driver,
        stage::{Contender, Stage},
        table::{count, rounded},
    },
};
use anyhow::{Result, bail, ensure};
use std::{fs, path::Path};

const CONNECTIONS: usize = 32;
/// Payments before memory has to be flat.
const SETTLED_AFTER: u64 = 50_000;
/// How much memory may differ from what it was then, in either direction.
const TOLERANCE: f64 = 0.10;

/// Memory after a number of payments.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Resident {
    done: u64,
    kib: u64,
}

/// Makes the payments, and gives the text for the document.
pub(crate) async fn soak(stage: &mut Stage, payments: u64) -> Result<String> {
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
        (measured.requests, ledger.distinct_keys, ledger.reused) == (payments, payments, 0),
        "{} payments were answered, and the stub counts {ledger:?}",
        measured.requests
    );
    let db = stage.db(&place);
    let bytes = sized(&db)? + sized(&db.with_file_name("bank.db-wal"))?;
    let memory = Memory::of(&seen)?;
    stage.clear(running, place).await?;
    let verdict = if memory.is_flat() { "flat" } else { "**not flat**" };
    Ok(format!(
        "{} payments over {CONNECTIONS} connections, {} a second (p50 {:.2} ms, p99 {:.2} ms, longest {:.0} ms).\n\n\
         - Memory in use after the first {}: {:.1} MiB at first, at least {:.1}, at most {:.1}, {:.1} at last: {verdict} (± {:.0} %).\n\
         - File and its log: {:.1} MiB, which is {} bytes per payment.",
        count(payments),
        rounded(measured.requests as f64 / measured.seconds),
        measured.p50_us as f64 / 1e3,
        measured.p99_us as f64 / 1e3,
        measured.max_us as f64 / 1e3,
        count(SETTLED_AFTER),
        mib(memory.first),
        mib(memory.least),
        mib(memory.most),
        mib(memory.last),
        TOLERANCE * 100.0,
        bytes as f64 / f64::from(1 << 20),
        rounded(bytes as f64 / payments as f64),
    ))
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

    fn is_flat(&self) -> bool {
        let first = self.first as f64;
        self.least as f64 >= first * (1.0 - TOLERANCE) && self.most as f64 <= first * (1.0 + TOLERANCE)
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}

fn sized(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)?.len())
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
        assert!(Memory::of(&[]).is_err());
    }
}
