//! What is due: finding it, and making it due before its time.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Row as SqlRow, named_params, params};

use super::{RowError, check_epoch};
use crate::answer::TRANSPORT_WORDS;
use crate::columns::{Ms, ms, stored, time};
use crate::one_row::one_row;
use crate::outcome::FAILS_BY_ITSELF;
use crate::step::{BankIdentity, MakeDue, Row, Which};

/// Rows of that bank that are due, oldest first, and when the next one is. What is to be looked up for a person, or told as cancelled,
/// comes after all that is to be settled, however many of it there are. A row whose call runs has no due time and is found too: where
/// nobody knows of it any more, it is a stray to be taken up. A time beyond `far` was written by a wrong clock.
pub(crate) fn scan(
    conn: &Connection,
    bank: &BankIdentity,
    limit: usize,
    now: Timestamp,
    far: Timestamp,
) -> rusqlite::Result<Due> {
    let mut rows: Vec<Row> = Vec::new();
    for sql in [UNSETTLED_DUE, OTHERS_DUE] {
        let left = limit.saturating_sub(rows.len());
        let due = named_params! {
            ":now": ms(now),
            ":far": ms(far),
            ":bank": bank.bank_id.as_bytes(),
            ":merchant": bank.merchant,
            ":limit": i64::try_from(left).unwrap_or(i64::MAX),
        };
        for row in conn.prepare_cached(sql)?.query_map(due, row_of)? {
            rows.push(row?);
        }
        if rows.len() >= limit {
            return Ok(Due { rows, ..Due::default() });
        }
    }
    let (next, other_bank) = conn
        .prepare_cached(concat!(
            "SELECT min(CASE WHEN is_here AND at > :now THEN at END), coalesce(max(NOT is_here), 0) \
             FROM (SELECT max(due_at, coalesce(not_before, 0)) AS at, \
                       bank_id IS NULL OR (bank_id = :bank AND merchant = :merchant) AS is_here \
                   FROM operations INDEXED BY operations_open \
                   WHERE ",
            open!(),
            ")"
        ))?
        .query_row(
            named_params! { ":now": ms(now), ":bank": bank.bank_id.as_bytes(), ":merchant": bank.merchant },
            |row| Ok((row.get::<_, Option<Ms>>(0)?, row.get(1)?)),
        )?;
    Ok(Due { rows, next_due_at: next.map(|Ms(at)| at), other_bank: Some(other_bank) })
}

/// What a scan found.
#[derive(Default)]
pub(crate) struct Due {
    pub(crate) rows: Vec<Row>,
    /// When the next is due, where all that are due were found.
    pub(crate) next_due_at: Option<Timestamp>,
    /// Whether anything waits for another bank, where all that are due were found.
    pub(crate) other_bank: Option<bool>,
}

/// What both statements of a scan ask for; what differs stands between.
macro_rules! due {
    ($which:literal) => {
        concat!(
            "SELECT key, lane, state, ask, failures, panics, deaths, first_sent_at \
             FROM operations AS o INDEXED BY operations_open \
             WHERE ",
            open!(),
            " AND ",
            $which,
            " AND (due_at IS NULL OR due_at NOT BETWEEN :now + 1 AND :far) \
              AND (not_before IS NULL OR not_before NOT BETWEEN :now + 1 AND :far) \
              AND (bank_id IS NULL OR (bank_id = :bank AND merchant = :merchant)) \
              ORDER BY seq LIMIT :limit"
        )
    };
}

/// One at a time of each lane.
pub(super) const UNSETTLED_DUE: &str = due!(
    "state IN ('saved', 'sending', 'unknown') AND body IS NOT NULL AND NOT EXISTS ( \
         SELECT 1 FROM operations AS older WHERE older.lane = o.lane AND older.seq < o.seq \
            AND older.state IN ('saved', 'sending', 'unknown') AND older.body IS NOT NULL)"
);

pub(super) const OTHERS_DUE: &str = due!("state IN ('needs_attention', 'cancelled')");

fn row_of(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        key: stored(row, "key")?,
        lane: row.get("lane")?,
        state: stored(row, "state")?,
        ask: stored(row, "ask")?,
        failures: row.get("failures")?,
        panics: row.get("panics")?,
        deaths: row.get("deaths")?,
        first_sent_at: time(row, "first_sent_at")?,
    })
}

/// Makes rows due at once, and moves `not_before` along with a clock that jumped.
pub(crate) fn make_due(tx: &Connection, make_due: MakeDue, epoch: i64, now: Timestamp) -> Result<(), RowError> {
    check_epoch(tx, epoch)?;
    if make_due.shift != SignedDuration::ZERO {
        let by_ms = i64::try_from(make_due.shift.as_millis()).unwrap_or(0);
        tx.prepare_cached(concat!(
            "UPDATE operations INDEXED BY operations_open SET not_before = not_before + ?1 \
             WHERE ",
            open!(),
            " AND not_before IS NOT NULL"
        ))?
        .execute([by_ms])?;
        // Set back, the clock must not make what was sent look as if it were yet to come. Set forward it may just have slept, and
        // what is older than the bank remembers must not look young.
        if by_ms < 0 {
            tx.prepare_cached(concat!(
                "UPDATE operations INDEXED BY operations_open SET first_sent_at = first_sent_at + ?1 \
                 WHERE ",
                open!(),
                " AND first_sent_at IS NOT NULL"
            ))?
            .execute([by_ms])?;
        }
    }
    if make_due.aged > SignedDuration::ZERO {
        let by_ms = i64::try_from(make_due.aged.as_millis()).unwrap_or(i64::MAX);
        tx.prepare_cached(concat!(
            "UPDATE operations INDEXED BY operations_open SET first_sent_at = max(first_sent_at - ?1, ?2) \
             WHERE ",
            open!(),
            " AND first_sent_at IS NOT NULL"
        ))?
        .execute([by_ms, ms(Timestamp::MIN)])?;
    }
    match make_due.which {
        Which::All => tx
            .prepare_cached(concat!(
                "UPDATE operations INDEXED BY operations_open SET due_at = ?1 \
                 WHERE ",
                open!(),
                " AND due_at > ?1"
            ))?
            .execute([ms(now)])?,
        Which::Transport => {
            let [a, b, c, d, e, f] = TRANSPORT_WORDS;
            tx.prepare_cached(concat!(
                "UPDATE operations INDEXED BY operations_open SET due_at = ?1 WHERE ",
                open!(),
                " \
                   AND due_at > ?1 AND last_answer IN (?2, ?3, ?4, ?5, ?6, ?7) AND failures < ?8"
            ))?
            .execute(params![ms(now), a, b, c, d, e, f, FAILS_BY_ITSELF])?
        }
    };
    if make_due.which == Which::Transport {
        mark_backlog(tx)?;
    }
    Ok(())
}

/// What waited for the bank while it was away: by it, whoever wants to know sees how far the way back is.
fn mark_backlog(tx: &Connection) -> rusqlite::Result<()> {
    tx.prepare_cached(concat!(
        "UPDATE outbox SET (backlog_through, backlog_total) = ( \
             SELECT max(seq), count(*) FROM operations INDEXED BY operations_open \
             WHERE ",
        open!(),
        " AND state IN ('saved', 'sending', 'unknown')) \
         WHERE id = 1"
    ))?
    .execute([])
    .and_then(one_row)
}
