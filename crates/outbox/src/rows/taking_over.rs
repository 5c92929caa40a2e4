//! Taking the queue over at a start, whatever its last owner left in flight.

use jiff::{SignedDuration, Timestamp};
use protocol::Key;
use rusqlite::Connection;

use super::{Hook, RowError, leniently};
use crate::attempts::{self, Entry};
use crate::columns::{ms, stored, time};
use crate::operations::{Operation, by_key};
use crate::settings::Settings;

/// A new owner.
pub(crate) struct Started {
    pub(crate) epoch: i64,
    pub(crate) hold_until: Option<Timestamp>,
    pub(crate) clock_gap: Option<SignedDuration>,
    pub(crate) resumed: Vec<Operation>,
}

/// Takes the queue over: a new epoch, what a dead owner left in flight is taken up at once, and everything is due.
pub(crate) fn start(
    tx: &Connection,
    address: &str,
    settings: &Settings,
    now: Timestamp,
    hook: Hook<'_>,
) -> Result<Started, RowError> {
    let (epoch, hold_until, clock_gap_s) = tx
        .prepare_cached(
            "UPDATE outbox SET epoch = epoch + 1, hold_until = CASE WHEN address IS ?1 THEN hold_until END, \
                 clock_gap_s = CASE WHEN address IS ?1 THEN clock_gap_s END, address = ?1, \
                 reachable = NULL, paused = NULL, why = NULL, probe_at = NULL \
             WHERE id = 1 RETURNING epoch, hold_until, clock_gap_s",
        )?
        .query_row([address], |row| {
            Ok((row.get(0)?, time(row, "hold_until")?, row.get::<_, Option<i64>>("clock_gap_s")?))
        })?;
    let left: Vec<Key> = tx
        .prepare_cached(concat!(
            "SELECT key FROM operations INDEXED BY operations_open \
             WHERE ",
            open!(),
            " AND state = 'sending' ORDER BY seq"
        ))?
        .query_map([], |row| stored(row, "key"))?
        .collect::<rusqlite::Result<_>>()?;
    // A look-up by a dead owner may be of any age.
    tx.prepare_cached(concat!(
        "UPDATE operations INDEXED BY operations_open SET ask = 'look_up' \
         WHERE ",
        open!(),
        " AND ask = 'resend'"
    ))?
    .execute([])?;
    // A look-up or a cancellation may kill as well as a request.
    tx.prepare_cached(concat!(
        "UPDATE operations INDEXED BY operations_open SET deaths = deaths + 1 \
         WHERE ",
        open!(),
        " AND due_at IS NULL"
    ))?
    .execute([])?;
    // In flight when its owner died, whatever it had been before, and perhaps sent.
    tx.prepare_cached(concat!(
        "UPDATE operations INDEXED BY operations_open \
         SET state = 'unknown', updated_at = ?1, due_at = ?1 \
         WHERE ",
        open!(),
        " AND state = 'sending'"
    ))?
    .execute([ms(now)])?;
    let furthest = now.saturating_add(settings.retry_after_max).unwrap_or(now);
    tx.prepare_cached(concat!(
        "UPDATE operations INDEXED BY operations_open SET due_at = ?1, not_before = min(not_before, ?2) \
         WHERE ",
        open!()
    ))?
    .execute([ms(now), ms(furthest)])?;
    let mut resumed = Vec::with_capacity(left.len());
    for key in left {
        let operation = by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        attempts::append(tx, &Entry::new(&key, operation.attempts, now, "resumed"))?;
        leniently(tx, &operation, hook)?;
        resumed.push(operation);
    }
    store::points::reach(store::points::Point::TakingOver);
    Ok(Started { epoch, hold_until, clock_gap: clock_gap_s.map(SignedDuration::from_secs), resumed })
}
