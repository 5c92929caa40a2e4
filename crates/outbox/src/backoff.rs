//! How long to wait after a failure, and the chance in it.

use jiff::SignedDuration;

/// A source of chance that is a value: the same seed draws the same numbers, so that a schedule can be run again.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Chance that follows from `seed` alone.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits (SplitMix64).
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A duration from nothing up to and with `most`, in milliseconds.
    pub(crate) fn up_to(&mut self, most: SignedDuration) -> SignedDuration {
        let most_ms = u64::try_from(most.as_millis()).unwrap_or(0);
        let drawn = self.next() % most_ms.saturating_add(1);
        SignedDuration::from_millis(i64::try_from(drawn).unwrap_or(0))
    }
}

/// Full jitter (as in "Exponential Backoff And Jitter", AWS Architecture Blog, 2015): anything between nothing and a bound that doubles with each failure in a row, up to a cap. The chance is drawn
/// below the cap, so that many tills that reached it don't come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first failure: 0.5 s by default.
    pub base: SignedDuration,
    /// The bound that no delay passes: 30 s by default.
    pub cap: SignedDuration,
}

impl Backoff {
    /// How long to wait after `failures` failures in a row (1 is the first), in whole milliseconds.
    pub(crate) fn delay(&self, failures: u32, random: &mut Random) -> SignedDuration {
        random.up_to(self.bound(failures))
    }

    /// The longest wait after `failures` failures in a row (1 is the first): anything between nothing and it is drawn.
    #[must_use]
    pub fn bound(&self, failures: u32) -> SignedDuration {
        let doublings = failures.saturating_sub(1).min(30);
        self.base.checked_mul(1 << doublings).unwrap_or(self.cap).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap_and_stays_there() {
        let backoff = Backoff { base: SignedDuration::from_millis(500), cap: SignedDuration::from_secs(30) };
        let bounds: Vec<_> = (1..=9).map(|failures| backoff.bound(failures).as_millis()).collect();
        assert_eq!(bounds, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(backoff.bound(0), backoff.base);
        for failures in [30, 31, 32, 33, 1_000, u32::MAX] {
            assert_eq!(backoff.bound(failures), backoff.cap, "{failures}");
        }
    }

    #[test]
    fn the_delay_is_spread_over_all_of_the_bound() {
        let backoff = Backoff { base: SignedDuration::from_millis(500), cap: SignedDuration::from_secs(30) };
        let mut random = Random::new(1);
        let delays: Vec<_> = (0..1_000).map(|_| backoff.delay(50, &mut random).as_millis()).collect();
        assert!(delays.iter().all(|delay| (0..=30_000).contains(delay)));
        let early = delays.iter().filter(|&&delay| delay < 3_000).count();
        let late = delays.iter().filter(|&&delay| delay > 27_000).count();
        assert!((50..200).contains(&early) && (50..200).contains(&late), "{early} {late}");
    }
}
