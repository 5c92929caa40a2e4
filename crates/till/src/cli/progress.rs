//! How far a long command is, on a terminal.

use std::io::{self, IsTerminal as _, Write as _};

/// How far it is, on a terminal, in a line that is written over.
pub(super) struct Progress {
    is_shown: bool,
    is_there: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { is_shown: io::stderr().is_terminal(), is_there: false }
    }

    pub(super) fn show(&mut self, done: u64, of: u64) {
        if self.is_shown {
            // Whoever looks at a terminal that is gone sees nothing.
            let _ = write!(io::stderr(), "\r\x1b[K{done} of {of}");
            self.is_there = true;
        }
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_there) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
