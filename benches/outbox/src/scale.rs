//! How much of everything is measured, and what that takes of time and disk.

use std::time::Duration;

use crate::{dead, run::Part, target::MANY};

/// The operations in the files that targets are about, and some in between.
pub(crate) const SIZES: [u64; 3] = [0, 100_000, MANY];

/// What a settled charge takes of a till's file, in bytes; of an outbox's file it takes less.
const CHARGE_BYTES: u64 = 2_500;
/// What a settled operation takes of an outbox's file, in bytes.
const OPERATION_BYTES: u64 = 1_000;
/// What banks, logs and small files take beside, in bytes.
const BESIDE_BYTES: u64 = 512 << 20;
/// How long it takes to put a charge into a file that is filled, in seconds.
const FILL_S: f64 = 60e-6;
/// How many syncs of the disk a saved operation takes of a run, the raw commit beside it included.
const SYNCS_OF_A_CLICK: f64 = 4.0;
/// How many syncs it takes to settle one at a bank, four at once.
const SYNCS_OF_A_RESULT: f64 = 2.0;
/// What it takes beside of two cores that all share, in seconds.
const RESULT_S: f64 = 1e-3;
/// How long a till's click is waited after, for the figures of the queue: they are told no more often.
const TOLD_EVERY_S: f64 = 0.2;
/// How long a kill and what follows take, in seconds.
const KILL_S: f64 = 0.5;
/// How long an hour that leaps takes, in seconds.
const DEAD_HOUR_S: f64 = 8.0;

/// How much of everything.
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    /// Operations in the file before a measurement.
    pub(crate) sizes: Vec<u64>,
    /// Clicks of a round, each with a raw commit beside it.
    pub(crate) pairs: u64,
    /// Till clicks of a round.
    pub(crate) till_pairs: u64,
    /// Operations that are drained, or wait.
    pub(crate) operations: u64,
    pub(crate) kills: usize,
    /// How long a bank is dead, in time that leaps.
    pub(crate) dead_for: Duration,
    pub(crate) sample_s: f64,
    /// Jobs that a queue saves one by one.
    pub(crate) saved: u64,
    /// Jobs of the kill in the middle.
    pub(crate) killed: u64,
    /// How long a queue may take to finish what was left behind by a kill.
    pub(crate) patience: Duration,
}

impl Scale {
    /// A short round of little of everything.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 1,
            sizes: vec![0, 2_000],
            pairs: 100,
            till_pairs: 20,
            operations: 300,
            kills: 2,
            dead_for: Duration::from_secs(600),
            sample_s: 1.0,
            saved: 100,
            killed: 100,
            patience: Duration::from_secs(2),
        }
    }

    /// What the targets are about.
    pub(crate) fn whole(rounds: usize, sizes: Vec<u64>) -> Self {
        Self {
            rounds,
            sizes,
            pairs: 1_500,
            till_pairs: 200,
            operations: 10_000,
            kills: 20,
            dead_for: dead::HOUR,
            sample_s: 60.0,
            saved: 2_000,
            killed: 1_000,
            patience: Duration::from_secs(150),
        }
    }

    /// The most that lies on the disk at a time, in bytes.
    pub(crate) fn bytes_max(&self, part: Part) -> u64 {
        let filled = match part {
            // All files at once, each with its twin.
            Part::Click => 2 * OPERATION_BYTES * self.sizes.iter().sum::<u64>(),
            Part::Till => 2 * CHARGE_BYTES * self.sizes.iter().max().copied().unwrap_or_default(),
            Part::Drain | Part::Dead | Part::Peers => 0,
        };
        filled + BESIDE_BYTES
    }

    /// About how long a part takes on a disk with syncs that long.
    pub(crate) fn time(&self, part: Part, sync: Duration) -> Duration {
        let (sync_s, rounds, sizes) = (sync.as_secs_f64(), self.rounds as f64, self.sizes.len() as f64);
        let clicks = |count: u64| count as f64 * SYNCS_OF_A_CLICK * sync_s;
        let settled = |count: u64| count as f64 * SYNCS_OF_A_RESULT.mul_add(sync_s, RESULT_S);
        let filled_s = self.sizes.iter().sum::<u64>() as f64 * FILL_S;
        let seconds = match part {
            Part::Click => filled_s + rounds * sizes * (clicks(self.pairs) + settled(self.operations)),
            Part::Till => {
                let told_s = self.till_pairs as f64 * TOLD_EVERY_S;
                filled_s + rounds * sizes * (clicks(self.till_pairs) + told_s) + 2.0 * KILL_S * self.kills as f64
            }
            Part::Drain => rounds * 3.0 * settled(self.operations),
            Part::Dead => {
                let hours = 5.0 * DEAD_HOUR_S * self.dead_for.as_secs_f64() / dead::HOUR.as_secs_f64();
                hours + self.sample_s + self.sample_s.min(dead::RUN_UP.as_secs_f64())
            }
            Part::Peers => {
                rounds * 5.0 * (clicks(self.saved) + settled(self.operations)) + 4.0 * self.patience.as_secs_f64()
            }
        };
        Duration::from_secs_f64(seconds)
    }
}

/// About how long it takes to save and settle that many operations by a whole till, on a disk with syncs that long.
pub(crate) fn soak_time(operations: u64, sync: Duration) -> Duration {
    (sync.mul_f64(SYNCS_OF_A_CLICK + SYNCS_OF_A_RESULT) + Duration::from_secs_f64(RESULT_S)).mul_f64(operations as f64)
}

/// What such a till and its bank have on the disk in the end, in bytes.
pub(crate) fn soak_bytes(operations: u64) -> u64 {
    operations * (CHARGE_BYTES + OPERATION_BYTES) + BESIDE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_takes_less_than_hours_and_a_quick_one_minutes() {
        let minutes = |scale: &Scale| {
            let time = |part| scale.time(part, Duration::from_millis(1));
            Part::ALL.into_iter().map(time).sum::<Duration>().as_secs() / 60
        };
        let whole = Scale::whole(3, SIZES.to_vec());
        assert!((20..120).contains(&minutes(&whole)), "{}", minutes(&whole));
        assert!(minutes(&Scale::quick()) < 2);
        assert!(whole.bytes_max(Part::Till) > whole.bytes_max(Part::Drain));
    }
}
