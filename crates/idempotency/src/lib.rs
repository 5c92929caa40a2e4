//! The server side of the idempotency key: claim, run once, store, replay, recover.
