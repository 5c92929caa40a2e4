//! Latencies as a histogram, which can be told to another process and put together with others.

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What latencies are counted up to, in microseconds.
const US_MAX: u64 = 60_000_000;
/// Digits that are kept of a latency.
const DIGITS: u8 = 3;

/// How often each latency was seen, to three digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// Never, with these bounds.
    pub fn new() -> Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, US_MAX, DIGITS)?))
    }

    /// Counts one.
    ///
    /// # Errors
    /// Never, as it is brought within the bounds.
    pub fn record(&mut self, latency: Duration) -> Result<()> {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        Ok(self.0.record(us.clamp(1, US_MAX))?)
    }

    /// Puts those of another measurement to these, each as if it had been recorded here.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// How many were seen.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that this share of all did not exceed, in milliseconds.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    /// The longest, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }
}

/// Each latency in microseconds that was seen, and how often.
impl From<Latencies> for Vec<(u64, u64)> {
    fn from(Latencies(histogram): Latencies) -> Self {
        histogram.iter_recorded().map(|seen| (seen.value_iterated_to(), seen.count_at_value())).collect()
    }
}

impl TryFrom<Vec<(u64, u64)>> for Latencies {
    type Error = anyhow::Error;

    fn try_from(all: Vec<(u64, u64)>) -> Result<Self> {
        let mut latencies = Self::new()?;
        for (us, times) in all {
            latencies.0.record_n(us, times)?;
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(ms: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new().unwrap();
        for ms in ms {
            latencies.record(Duration::from_millis(ms)).unwrap();
        }
        latencies
    }

    #[test]
    fn what_another_process_is_told_is_what_was_seen() {
        let seen = latencies((1..=1_000).chain([70_000]));
        let told: Latencies = serde_json::from_str(&serde_json::to_string(&seen).unwrap()).unwrap();
        assert_eq!(told.count(), 1_001);
        for share in [0.5, 0.99, 1.0] {
            assert!((told.quantile_ms(share) / seen.quantile_ms(share) - 1.0).abs() < 0.001, "{share}");
        }
        assert!((told.max_ms() / 60_000.0 - 1.0).abs() < 0.001, "no more than is counted up to");
    }

    #[test]
    fn a_bad_round_stays_in_the_whole() {
        // Of three rounds' own p99 the middle one is 1 ms, and the slow round would not be seen.
        let mut all = latencies([1; 100]);
        all.add(&latencies([1; 100])).unwrap();
        all.add(&latencies([50; 100])).unwrap();
        assert!(all.quantile_ms(0.5) < 1.1 && all.quantile_ms(0.99) > 49.0);
    }
}
