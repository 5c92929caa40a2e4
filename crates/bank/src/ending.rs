//! Letting go of a store however a service ends.

use crate::lab::Lab;
use idempotency::{Engine, Work};
use std::{sync::Arc, time::Duration};

/// How long the end of killed tasks is waited for: only until they have been dropped.
pub(crate) const KILL_TIME_MAX: Duration = Duration::from_secs(1);

/// Ends what still runs when it is dropped, so that a service whose future is dropped lets go of its store.
pub(crate) struct KilledAtLast<W: Work> {
    pub(crate) engine: Engine<W>,
    pub(crate) lab: Option<Arc<Lab>>,
}

impl<W: Work> Drop for KilledAtLast<W> {
    fn drop(&mut self) {
        self.engine.kill();
        if let Some(lab) = &self.lab {
            lab.clear();
        }
    }
}
