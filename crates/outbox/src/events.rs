//! What the outbox tells while it works, for a window.

use crate::operations::Operation;
use crate::summary::Summary;

/// Something changed, by the task that settles: what the caller does itself (save, cancel, accept) it knows already. Each is sent
/// after it is durable; who misses some reads the file again, or [what changed since](crate::changed_since). Nothing rests on
/// them: to keep rows in step there is [`on_change`](crate::Outbox::on_change).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An operation is in a new state, or another attempt of it began or ended.
    OperationChanged(Box<Operation>),
    /// The figures of the queue changed. Five times a second at most, and only while somebody listens.
    Summary(Box<Summary>),
    /// The bank came into reach, went out of it, or refuses us.
    Bank {
        /// Whether it gives valid answers. True also of one that refuses us, or that can't say who it is now: see `why`.
        reachable: bool,
        /// What is in the way, where something is: how the answer was read, as in
        /// [`Operation::last_answer`](crate::Operation::last_answer).
        why: Option<String>,
    },
}
