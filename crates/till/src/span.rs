//! Which of what happened a sum is over: a time, or a shift.

use jiff::Timestamp;

/// Over what a sum is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    /// From a moment on and before another.
    Time(Timestamp, Timestamp),
    /// A shift, with what happened while none was open before it.
    Shift(i64),
}

impl Span {
    /// The condition in SQL, of a column that holds a time and one that holds a shift, over `?1` and `?2`. Each has its index.
    pub(crate) fn within(self, time: &str, shift: &str) -> String {
        match self {
            Self::Time(..) => format!("{time} >= ?1 AND {time} < ?2"),
            Self::Shift(_) => format!("{shift} = ?1 AND {shift} > 0 AND ?1 = ?2"),
        }
    }

    /// `?1` and `?2`.
    pub(crate) fn ends(self) -> (i64, i64) {
        match self {
            Self::Time(from, before) => (from.as_millisecond(), before.as_millisecond()),
            Self::Shift(number) => (number, number),
        }
    }
}
