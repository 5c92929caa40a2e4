//! Who died where, by the signal that the system saw.

use std::{cell::RefCell, collections::BTreeMap, fmt, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use anyhow::{Result, ensure};

/// SIGKILL, and what `abort` ends with.
const KILL: i32 = 9;
const ABORT: i32 = 6;

/// Deaths so far, by whom and where.
#[derive(Default)]
pub(crate) struct Deaths(RefCell<BTreeMap<String, u32>>);

impl Deaths {
    /// Counts the death of a process that was killed, or fails where it ended otherwise.
    pub(crate) fn killed(&self, place: &str, status: ExitStatus) -> Result<()> {
        self.count(place, status, KILL)
    }

    /// Counts the death of a process that ended itself on the spot.
    pub(crate) fn aborted(&self, place: &str, status: ExitStatus) -> Result<()> {
        self.count(place, status, ABORT)
    }

    fn count(&self, place: &str, status: ExitStatus, signal: i32) -> Result<()> {
        ensure!(status.signal() == Some(signal), "{place}: it did not die there, its end was {status}");
        *self.0.borrow_mut().entry(place.to_owned()).or_default() += 1;
        Ok(())
    }

    pub(crate) fn at(&self, place: &str) -> u32 {
        self.0.borrow().get(place).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u32 {
        self.0.borrow().values().sum()
    }
}

impl fmt::Display for Deaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, count) in self.0.borrow().iter() {
            writeln!(f, "{count:6}  {place}")?;
        }
        write!(f, "{:6}  in all", self.total())
    }
}
