//! The whole queue in a few figures.

use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension};

use crate::columns::{Ms, Stored, time};

/// How the queue stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations that are not final and need nobody's attention: `saved`, `sending`, `unknown`.
    pub unsettled: u32,
    /// Of these, those that a call runs for, or that the bank said it is at.
    pub sending: u32,
    /// The rest of them.
    pub waiting: u32,
    /// What the unsettled come to, in minor units for each currency.
    pub amounts: Vec<(Currency, i64)>,
    /// When the oldest unsettled one was saved.
    pub oldest_at: Option<Timestamp>,
    /// Operations that a person must look at.
    pub needs_attention: u32,
    /// Unsettled operations that belong to another bank or merchant than the one that is asked now.
    pub other_bank: u32,
    /// Why nothing at all is sent: the bank refuses our secret.
    pub paused: Option<String>,
    /// Whether the bank answered when it was last asked; none before the first time.
    pub bank_reachable: Option<bool>,
    /// How it failed to, where it did.
    pub bank_problem: Option<String>,
    /// When a valid answer last came.
    pub last_contact_at: Option<Timestamp>,
    /// When the bank is asked next for an unsettled operation; none while it is being asked for all that it may be asked for.
    pub next_attempt_at: Option<Timestamp>,
}

/// How the queue stands at `now`.
///
/// # Errors
/// The file could not be read.
pub fn summary(conn: &Connection, now: Timestamp) -> rusqlite::Result<Summary> {
    let mut summary = conn
        .prepare_cached("SELECT paused, reachable, why, last_contact_at FROM outbox WHERE id = 1")?
        .query_row([], |row| {
        Ok(Summary {
            paused: row.get("paused")?,
            bank_reachable: row.get("reachable")?,
            bank_problem: row.get("why")?,
            last_contact_at: time(row, "last_contact_at")?,
            ..Summary::default()
        })
    })?;
    let mut by_currency = conn.prepare_cached(concat!(
        "SELECT currency, count(*), sum(state = 'sending'), sum(amount), min(created_at), \
             sum(bank_id IS NOT NULL AND (bank_id, merchant) IS NOT (SELECT bank_id, merchant FROM outbox)) \
         FROM operations INDEXED BY operations_open \
         WHERE ",
        open!(),
        " AND state <> 'needs_attention' \
         GROUP BY currency ORDER BY currency"
    ))?;
    let rows = by_currency.query_map([], |row| {
        let Stored(currency) = row.get(0)?;
        let count: u32 = row.get(1)?;
        let sending: u32 = row.get(2)?;
        let amount: i64 = row.get(3)?;
        let Ms(oldest) = row.get(4)?;
        let elsewhere: u32 = row.get(5)?;
        Ok((currency, count, sending, amount, oldest, elsewhere))
    })?;
    for row in rows {
        let (currency, count, sending, amount, oldest, elsewhere) = row?;
        summary.unsettled += count;
        summary.sending += sending;
        summary.other_bank += elsewhere;
        summary.amounts.push((currency, amount));
        summary.oldest_at = Some(summary.oldest_at.map_or(oldest, |at| at.min(oldest)));
    }
    summary.waiting = summary.unsettled - summary.sending;
    summary.needs_attention = conn
        .prepare_cached(
            "SELECT count(*) FROM operations INDEXED BY operations_attention WHERE state = 'needs_attention'",
        )?
        .query_row([], |row| row.get(0))?;
    summary.next_attempt_at = next_attempt_at(conn, now)?;
    Ok(summary)
}

/// The earliest due time of those that may be asked for (not of another bank, not behind an older one of its lane), but not before the bank's `Retry-After`, nor before the next probe while the bank is away.
fn next_attempt_at(conn: &Connection, now: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
    let due = conn
        .prepare_cached(concat!(
            "SELECT min(max(due_at, coalesce(not_before, 0))) FROM operations AS o INDEXED BY operations_open \
             WHERE ",
            open!(),
            " AND state <> 'needs_attention' \
               AND due_at IS NOT NULL AND body IS NOT NULL \
               AND (bank_id IS NULL OR (bank_id, merchant) IS (SELECT bank_id, merchant FROM outbox)) \
               AND NOT EXISTS ( \
                   SELECT 1 FROM operations AS older WHERE older.lane = o.lane AND older.seq < o.seq \
                      AND older.state IN ('saved', 'sending', 'unknown'))"
        ))?
        .query_row([], |row| row.get::<_, Option<Ms>>(0))
        .optional()?
        .flatten();
    let Some(Ms(due)) = due else { return Ok(None) };
    let (hold, probe) = conn
        .prepare_cached("SELECT hold_until, probe_at FROM outbox WHERE id = 1")?
        .query_row([], |row| Ok((time(row, "hold_until")?, time(row, "probe_at")?)))?;
    Ok(Some([hold, probe, Some(now)].into_iter().flatten().fold(due, Timestamp::max)))
}
