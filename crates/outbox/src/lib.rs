//! The durable queue of operations and the task that settles them.
