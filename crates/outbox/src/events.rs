//! What the outbox tells while it works, for a window.

use crate::operations::Operation;
use crate::summary::Summary;

/// Something changed. Each is sent after it is durable; who misses some reads the file again.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An operation is in a new state, or another attempt of it began or ended.
    OperationChanged(Box<Operation>),
    /// The figures of the queue changed.
    Summary(Box<Summary>),
    /// The bank came into reach, went out of it, or refuses us.
    Bank {
        /// Whether it gives valid answers.
        reachable: bool,
        /// What is in the way, where something is.
        why: Option<String>,
    },
}
