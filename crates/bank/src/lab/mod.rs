//! The fault lab: failing on command, at named points, so that a client's behaviour can be tested.

pub(crate) mod clock;
pub(crate) mod routes;
pub(crate) mod rules;
pub(crate) mod tamper;

use crate::http::secrets::Secret;
use clock::LabClock;
use protocol::Key;
use rules::{Action, Point, Rules};
use std::{sync::Arc, time::Duration};
use tamper::Tamper;
use tokio::sync::watch;

/// How the lab is opened.
#[derive(Debug, Clone)]
pub struct LabConfig {
    /// Calls of the lab must carry this secret; none where whoever reaches the service may use it.
    pub secret: Option<Secret>,
    /// Whether `abort` may end the process. Not where others live in it.
    pub may_abort: bool,
}

/// The lab of one service.
pub(crate) struct Lab {
    pub(crate) rules: Rules,
    pub(crate) clock: Arc<LabClock>,
    /// Counts the clearings: what hangs goes on at the next one.
    cleared: watch::Sender<u64>,
}

impl Lab {
    pub(crate) fn new(config: &LabConfig, points: &'static [Point], clock: Arc<LabClock>) -> Self {
        Self { rules: Rules::new(points, config.may_abort), clock, cleared: watch::Sender::new(0) }
    }

    /// Drops all rules and lets go whatever hangs.
    pub(crate) fn clear(&self) {
        self.rules.replace(Vec::new());
        self.cleared.send_modify(|times| *times += 1);
    }

    /// Passes a point: waits, or dies, where a rule says so, and gives what is to be done to the answer.
    pub(crate) async fn pass(&self, point: Point, key: &Key) -> Option<Tamper> {
        let mut cleared = self.cleared.subscribe();
        match self.rules.take(point, key)? {
            Action::Delay { ms } => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                None
            }
            Action::Hang => {
                // The sender lives as long as the lab; without it nothing could let go.
                let _ = cleared.changed().await;
                None
            }
            Action::Abort => std::process::abort(),
            Action::Tamper(tamper) => Some(tamper),
        }
    }
}
