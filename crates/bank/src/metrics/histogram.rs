//! A histogram of times that many threads add to without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds of the buckets, in seconds: from a replay out of memory to the longest wait for a gateway. One more bucket
/// has no bound.
const BOUNDS_S: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0];

/// Times, by how long they were.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS_S.len() + 1],
    sum_us: AtomicU64,
}

/// What a histogram held when it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Times {
    pub(crate) sum_s: f64,
    pub(crate) count: u64,
    /// Upper bounds in seconds, each with what lies between it and the one before.
    pub(crate) buckets: Vec<(f64, u64)>,
}

impl Histogram {
    pub(crate) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Times {
        let bounds = BOUNDS_S.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> =
            bounds.zip(&self.buckets).map(|(bound, count)| (bound, count.load(Ordering::Relaxed))).collect();
        Times {
            // A microsecond is exact enough, and 2^53 of them are longer than any service lives.
            sum_s: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6,
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_under_the_first_bound_that_is_not_below_it() {
        let histogram = Histogram::default();
        for ms in [0, 1, 2, 20_000] {
            histogram.add(Duration::from_millis(ms));
        }
        let times = histogram.read();
        let under = |bound: f64| times.buckets.iter().find(|bucket| bucket.0 == bound).unwrap().1;
        assert_eq!([under(0.0005), under(0.001), under(0.0025), under(f64::INFINITY)], [1; 4]);
        assert_eq!((times.count, times.sum_s), (4, 20.003));
    }
}
