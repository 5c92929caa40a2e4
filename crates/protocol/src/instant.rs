//! The machine's clock as an instant, wherever it stands.

use jiff::Timestamp;
use std::time::SystemTime;
use thiserror::Error;

/// Why nothing is begun by a clock: both ends keep and send times, and people read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClockError {
    /// It stands where no time of ours can be.
    #[error("this machine's clock stands before 1970: set it right and start again")]
    Before1970,
    /// It stands where no time can be written down as RFC 3339 has it.
    #[error("this machine's clock stands after the year 9999: set it right and start again")]
    After9999,
}

/// The last instant that is still one when it comes back from a file that keeps milliseconds.
const LAST: Timestamp = Timestamp::constant(253_402_207_200, 0);

/// What the clock says, of any time that it can say: beyond the years that can be told it stands still at their end. For who is
/// at work and must go on; [`check_clock`] is for who begins.
#[must_use]
pub fn instant(at: SystemTime) -> Timestamp {
    let end = if at < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { LAST };
    Timestamp::try_from(at).unwrap_or(end).min(LAST)
}

/// Whether a clock stands where work can be begun by it: between 1970 and 9999.
///
/// # Errors
/// [`ClockError`] elsewhere: one line for whoever can set it right.
pub fn check_clock(at: SystemTime) -> Result<(), ClockError> {
    if at < SystemTime::UNIX_EPOCH {
        return Err(ClockError::Before1970);
    }
    Timestamp::try_from(at).map(|_| ()).map_err(|_| ClockError::After9999)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(second: i64) -> SystemTime {
        let distance = Duration::from_secs(second.unsigned_abs());
        if second < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
    }

    #[test]
    fn a_clock_can_stand_anywhere() {
        for second in [i64::MIN / 4, -400_000_000_000, -1, 0, 1_800_000_000, 253_402_300_800, i64::MAX / 4] {
            let now = instant(at(second));
            if second.unsigned_abs() < 200_000_000_000 {
                assert_eq!(now.as_second(), second);
            }
            assert_eq!(now < Timestamp::UNIX_EPOCH, second < 0, "{second}");
            assert!(Timestamp::from_millisecond(now.as_millisecond()).is_ok(), "{second}");
        }
    }

    #[test]
    fn work_is_begun_between_1970_and_9999() {
        for second in [i64::MIN / 4, -62_135_596_801, -1] {
            assert_eq!(check_clock(at(second)), Err(ClockError::Before1970), "{second}");
        }
        for second in [0, 1_800_000_000, 253_402_000_000] {
            assert_eq!(check_clock(at(second)), Ok(()), "{second}");
        }
        for second in [253_402_300_800, i64::MAX / 4] {
            assert_eq!(check_clock(at(second)), Err(ClockError::After9999), "{second}");
        }
    }
}
