//! The whole queue in a few figures.

use jiff::Timestamp;
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension};

use crate::columns::{Ms, Stored, time};

/// How far the backlog of an outage is settled: counts, for a bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Operations of it that are settled, or need attention.
    pub settled: u32,
    /// Operations that waited when the outage ended.
    pub total: u32,
}

/// How the queue stands, as the file has it: true over restarts, and of a task that runs elsewhere. Counts are of operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations that are not final and need nobody's attention: `saved`, `sending`, `unknown`.
    pub unsettled: u32,
    /// Of these, those that a call runs for or is about to, or that the bank said it is at.
    pub sending: u32,
    /// The rest of them.
    pub waiting: u32,
    /// What the unsettled come to, payments and refunds alike, in minor units for each currency.
    pub amounts: Vec<(Currency, i64)>,
    /// When the oldest unsettled one was saved.
    pub oldest_at: Option<Timestamp>,
    /// Operations that a person must look at.
    pub needs_attention: u32,
    /// Unsettled refunds that wait for a payment that a person must look at.
    pub blocked: u32,
    /// Operations that were cancelled here, and of which the bank is still to be told. They are final, so not unsettled.
    pub tombstones: u32,
    /// How far what waited during the last outage is settled; none where nothing of it is left.
    pub backlog: Option<Backlog>,
    /// By how many seconds our clock is ahead of the bank's, behind with a minus; none before the bank told its time.
    pub clock_gap_s: Option<i64>,
    /// Unsettled operations that belong to another bank or merchant than the one that is asked now.
    pub other_bank: u32,
    /// Why nothing at all is sent: the bank refuses our secret. The problem's name, such as `unauthorized`.
    pub paused: Option<String>,
    /// Whether the bank answered when it was last asked; none before the first time.
    pub bank_reachable: Option<bool>,
    /// What is in the way, where something is: how its answer, or the absence of one, was read.
    pub bank_problem: Option<String>,
    /// When a valid answer last came, by our clock.
    pub last_contact_at: Option<Timestamp>,
    /// When the bank is asked next for an unsettled operation; none while it is being asked for all that it may be asked for.
    pub next_attempt_at: Option<Timestamp>,
}

/// How the queue stands at `now`, which only [`Summary::next_attempt_at`] depends on. It reads what is open, however much is final.
///
/// # Errors
/// The file could not be read.
pub fn summary(conn: &Connection, now: Timestamp) -> rusqlite::Result<Summary> {
    let mut summary = conn
        .prepare_cached("SELECT paused, reachable, why, last_contact_at, clock_gap_s FROM outbox WHERE id = 1")?
        .query_row([], |row| {
            Ok(Summary {
                paused: row.get("paused")?,
                bank_reachable: row.get("reachable")?,
                bank_problem: row.get("why")?,
                last_contact_at: time(row, "last_contact_at")?,
                clock_gap_s: row.get("clock_gap_s")?,
                ..Summary::default()
            })
        })?;
    let mut by_currency = conn.prepare_cached(concat!(
        "SELECT currency, count(*), sum(state = 'sending'), sum(coalesce(amount, 0)), min(created_at), \
             sum(bank_id IS NOT NULL AND (bank_id, merchant) IS NOT (SELECT bank_id, merchant FROM outbox)), \
             sum(body IS NULL AND (SELECT payment.state FROM operations AS payment WHERE payment.key = o.payment_key) \
                 = 'needs_attention') \
         FROM operations AS o INDEXED BY operations_open \
         WHERE ",
        open!(),
        " AND state IN ('saved', 'sending', 'unknown') \
         GROUP BY currency ORDER BY currency"
    ))?;
    let mut rows = by_currency.query([])?;
    while let Some(row) = rows.next()? {
        let count: u32 = row.get(1)?;
        summary.unsettled += count;
        summary.sending += row.get::<_, u32>(2)?;
        if let Some(Stored(currency)) = row.get(0)? {
            summary.amounts.push((currency, row.get(3)?));
        }
        let Ms(oldest) = row.get(4)?;
        summary.oldest_at = Some(summary.oldest_at.map_or(oldest, |at| at.min(oldest)));
        summary.other_bank += row.get::<_, u32>(5)?;
        summary.blocked += row.get::<_, u32>(6)?;
    }
    summary.waiting = summary.unsettled - summary.sending;
    summary.needs_attention = conn
        .prepare_cached(
            "SELECT count(*) FROM operations INDEXED BY operations_attention WHERE state = 'needs_attention'",
        )?
        .query_row([], |row| row.get(0))?;
    summary.tombstones = conn
        .prepare_cached(concat!(
            "SELECT count(*) FROM operations INDEXED BY operations_open WHERE ",
            open!(),
            " AND tombstone = 1"
        ))?
        .query_row([], |row| row.get(0))?;
    summary.backlog = backlog(conn)?;
    summary.next_attempt_at = next_attempt_at(conn, now)?;
    Ok(summary)
}

/// How far the backlog of the last outage is, while the bank answers.
fn backlog(conn: &Connection) -> rusqlite::Result<Option<Backlog>> {
    let known: Option<(i64, u32)> = conn
        .prepare_cached(
            "SELECT backlog_through, backlog_total FROM outbox \
             WHERE id = 1 AND reachable = 1 AND backlog_through IS NOT NULL AND backlog_total > 0",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((through, total)) = known else { return Ok(None) };
    let left: u32 = conn
        .prepare_cached(concat!(
            "SELECT count(*) FROM operations INDEXED BY operations_open WHERE ",
            open!(),
            " AND state IN ('saved', 'sending', 'unknown') AND seq <= ?1"
        ))?
        .query_row([through], |row| row.get(0))?;
    Ok((left > 0).then(|| Backlog { settled: total.saturating_sub(left), total: total.max(left) }))
}

/// The earliest due time of those that may be asked for (not of another bank, not behind an older one of its lane), but not before
/// the bank's `Retry-After`, nor before the next probe while the bank is away.
fn next_attempt_at(conn: &Connection, now: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
    let due = conn
        .prepare_cached(concat!(
            "SELECT min(max(due_at, coalesce(not_before, 0))) FROM operations AS o INDEXED BY operations_open \
             WHERE ",
            open!(),
            " AND state IN ('saved', 'sending', 'unknown') \
               AND due_at IS NOT NULL AND body IS NOT NULL \
               AND (bank_id IS NULL OR (bank_id, merchant) IS (SELECT bank_id, merchant FROM outbox)) \
               AND NOT EXISTS ( \
                   SELECT 1 FROM operations AS older WHERE older.lane = o.lane AND older.seq < o.seq \
                      AND older.state IN ('saved', 'sending', 'unknown') AND older.body IS NOT NULL)"
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
