//! The driver's own writes and looks at the table of operations. Each write names the epoch and the state that it expects, and
//! checks that it changed exactly one row.

use std::panic::AssertUnwindSafe;

use jiff::{SignedDuration, Timestamp};
use protocol::Key;
use rusqlite::{Connection, Row as SqlRow, named_params, params};

use crate::answer::TRANSPORT_WORDS;
use crate::attempts::{self, Entry};
use crate::cancelling;
use crate::columns::{Ms, ms, stored, time};
use crate::contract::{Contract, StoredRequest};
use crate::operations::{Operation, by_key, refunds_of};
use crate::outcome::{Change, FAILS_BY_ITSELF};
use crate::refunds;
use crate::settings::Settings;
use crate::state::{Ask, State};
use crate::step::{BankIdentity, MakeDue, Record, Row, Which};
use crate::transport::Call;

/// What the caller does with each change of an operation, in the same commit.
pub(crate) type Hook<'a> = &'a dyn Fn(&Connection, &Operation) -> rusqlite::Result<()>;

/// Why a write of the driver was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    /// Another start of the loop, in this process or another, owns the queue now.
    #[error("another owner has taken the queue over")]
    Fenced,
    /// The file, or the caller's hook.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
}

impl RowError {
    /// Whether the file can't take anything now, rather than this one change.
    pub(crate) fn is_the_file(&self) -> bool {
        use rusqlite::ErrorCode as Code;
        match self {
            RowError::Fenced => false,
            RowError::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    Code::DiskFull
                        | Code::SystemIoFailure
                        | Code::ReadOnly
                        | Code::OutOfMemory
                        | Code::DatabaseBusy
                        | Code::DatabaseLocked
                        | Code::CannotOpen
                        | Code::DatabaseCorrupt
                        | Code::NotADatabase
                        | Code::PermissionDenied
                        | Code::FileLockingProtocolFailed
                )
            ),
        }
    }
}

/// Runs the hook so that neither its refusal nor its panic undoes the change that it belongs to.
pub(crate) fn leniently(tx: &Connection, operation: &Operation, hook: Hook<'_>) -> rusqlite::Result<()> {
    tx.execute_batch("SAVEPOINT hook")?;
    match std::panic::catch_unwind(AssertUnwindSafe(|| hook(tx, operation))) {
        Ok(Ok(())) => tx.execute_batch("RELEASE hook"),
        Ok(Err(_)) | Err(_) => {
            tracing::error!(operation = %operation.short_code, "the caller's own part of a change failed");
            tx.execute_batch("ROLLBACK TO hook; RELEASE hook")
        }
    }
}

fn check_epoch(tx: &Connection, epoch: i64) -> Result<(), RowError> {
    let found: i64 = tx.prepare_cached("SELECT epoch FROM outbox WHERE id = 1")?.query_row([], |row| row.get(0))?;
    if found == epoch { Ok(()) } else { Err(RowError::Fenced) }
}

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
    // A look by a dead owner may be of any age.
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

/// Rows of that bank that are due, oldest first, and when the next one is. What is to be looked up for a person, or told as cancelled,
/// comes after all that is to be settled, however many of it there are. A row whose call runs has no due time and is found too: where
/// nobody knows of it any more, it is a stray to be taken up. A time beyond `far` was written by a wrong clock.
pub(crate) fn look(
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

/// What a look found.
#[derive(Default)]
pub(crate) struct Due {
    pub(crate) rows: Vec<Row>,
    /// When the next is due, where all that are due were found.
    pub(crate) next_due_at: Option<Timestamp>,
    /// Whether anything waits for another bank, where all that are due were found.
    pub(crate) other_bank: Option<bool>,
}

/// What both looks ask for; what differs stands between.
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
const UNSETTLED_DUE: &str = due!(
    "state IN ('saved', 'sending', 'unknown') AND body IS NOT NULL AND NOT EXISTS ( \
         SELECT 1 FROM operations AS older WHERE older.lane = o.lane AND older.seq < o.seq \
            AND older.state IN ('saved', 'sending', 'unknown') AND older.body IS NOT NULL)"
);

const OTHERS_DUE: &str = due!("state IN ('needs_attention', 'cancelled')");

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

/// What a call sends, and for what.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) operation: Operation,
    pub(crate) request: StoredRequest,
    /// None where the contract has no such call.
    pub(crate) call: Option<Call>,
}

/// Who asks what, and until when a time in the file is believed.
pub(crate) struct Beginning<'a> {
    pub(crate) row: &'a Row,
    pub(crate) ask: Ask,
    pub(crate) bank: &'a BankIdentity,
    pub(crate) contract: &'a dyn Contract,
    pub(crate) epoch: i64,
    pub(crate) now: Timestamp,
    pub(crate) far: Timestamp,
}

/// Makes durable that a call is about to be made; a request is counted here, before its first byte. None where the row is
/// not as it was found: a wish to cancel that came since holds the request back.
pub(crate) fn begin(tx: &Connection, begin: &Beginning<'_>, hook: Hook<'_>) -> Result<Option<Prepared>, RowError> {
    let Beginning { row, ask, bank, contract, epoch, now, far } = *begin;
    check_epoch(tx, epoch)?;
    let changed = tx
        .prepare_cached(
            "UPDATE operations SET state = CASE WHEN :sends THEN 'sending' ELSE state END, attempts = attempts + :sends, \
                 ask = CASE WHEN :sends THEN 'send' ELSE ask END, \
                 epoch = :epoch, due_at = NULL, not_before = NULL, updated_at = :now, \
                 first_sent_at = CASE WHEN :sends THEN coalesce(first_sent_at, :now) ELSE first_sent_at END, \
                 bank_id = coalesce(bank_id, :bank), merchant = coalesce(merchant, :merchant) \
             WHERE key = :key AND state = :state AND ask = :ask AND (due_at IS NULL OR due_at NOT BETWEEN :now + 1 AND :far) \
               AND (not_before IS NULL OR not_before NOT BETWEEN :now + 1 AND :far) \
               AND (bank_id IS NULL OR (bank_id = :bank AND merchant = :merchant))",
        )?
        .execute(named_params! {
            ":sends": ask.sends(),
            ":epoch": epoch,
            ":now": ms(now),
            ":far": ms(far),
            ":bank": bank.bank_id.as_bytes(),
            ":merchant": bank.merchant,
            ":key": row.key.as_bytes(),
            ":state": row.state.as_str(),
            ":ask": row.ask.as_str(),
        })?;
    if changed != 1 {
        return Ok(None);
    }
    let prepared = prepare(tx, &row.key, ask, contract)?;
    let sent = prepared.call.as_ref().map(|call| format!("{} {}", call.method, call.path));
    let event = if ask.sends() { "sent" } else { "asked" };
    let entry = Entry::new(&row.key, prepared.operation.attempts, now, event);
    attempts::append(tx, &Entry { sent: sent.as_deref(), ..entry })?;
    hook(tx, &prepared.operation)?;
    Ok(Some(prepared))
}

fn prepare(tx: &Connection, key: &Key, ask: Ask, contract: &dyn Contract) -> rusqlite::Result<Prepared> {
    let operation = by_key(tx, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let request = tx
        .prepare_cached("SELECT method, path, coalesce(body, x'') AS body FROM operations WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok(StoredRequest { method: row.get("method")?, path: row.get("path")?, body: row.get("body")? })
        })?;
    let call = contract.call(ask, &operation, &request);
    Ok(Prepared { operation, request, call })
}

/// What became of a save.
pub(crate) enum Saved {
    /// Done, now or by an earlier try whose outcome was not known; with the refunds that waited for it.
    Done(Box<Operation>, Vec<Operation>),
    /// The operation is final already, with another result. Nothing was changed; the log has it.
    Late(Box<Operation>),
    /// The row is open and not as it was left, so nothing of the change was kept but its line in the log. The operation is
    /// due at once: the bank says it again.
    NotKept(Box<Operation>),
}

/// An end that came after another one was final: see [`Outbox::on_late_answer`](crate::Outbox::on_late_answer).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateAnswer {
    /// How it would have ended, or stand now: `needs_attention` where the bank's people must look at what was cancelled here.
    pub state: State,
    /// The bank's object as it wrote it, where it gave one.
    pub result: Option<String>,
}

/// What the caller does with a late answer, in the commit of its line in the log.
pub(crate) type LateHook<'a> = &'a dyn Fn(&Connection, &Operation, &LateAnswer) -> rusqlite::Result<()>;

/// The outcome of a call, to be made durable.
pub(crate) struct Saving<'a> {
    pub(crate) key: &'a Key,
    /// The state that the row must have.
    pub(crate) expected: State,
    /// Whether the call's beginning is durable.
    pub(crate) begun: bool,
    /// Whether it was wished cancelled when the call began.
    pub(crate) wished: bool,
    pub(crate) change: &'a Change,
    pub(crate) status: Option<u16>,
    pub(crate) bank_at: Option<Timestamp>,
    pub(crate) epoch: i64,
    pub(crate) now: Timestamp,
}

/// Makes the outcome of a call durable, with its line in the log.
pub(crate) fn save(
    tx: &Connection,
    saving: &Saving<'_>,
    hook: Hook<'_>,
    late_hook: LateHook<'_>,
) -> Result<Saved, RowError> {
    let Saving { key, change, now, .. } = *saving;
    check_epoch(tx, saving.epoch)?;
    if let Some(until) = change.hold_until {
        tx.prepare_cached("UPDATE outbox SET hold_until = max(coalesce(hold_until, 0), ?1) WHERE id = 1")?
            .execute([ms(until)])?;
    }
    let is_final = saving.expected.is_final();
    let changed = if is_final { update_tombstone(tx, saving)? } else { update(tx, saving)? };
    let operation = by_key(tx, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let mut entry = Entry {
        bank_at: saving.bank_at,
        answer: saving.status,
        reading: change.reading,
        detail: &change.detail,
        ..Entry::new(key, operation.attempts, now, change.event)
    };
    if changed == 0 {
        if (is_final && !operation.tombstone) || (!is_final && has_become(tx, key, change)?) {
            let refunds = refunds_of(tx, key)?;
            return Ok(Saved::Done(Box::new(operation), refunds));
        }
        if !operation.state.is_final() {
            entry.event = "not-kept";
            attempts::append(tx, &entry)?;
            tx.prepare_cached("UPDATE operations SET due_at = ?1 WHERE key = ?2")?
                .execute(params![ms(now), key.as_bytes()])?;
            return Ok(Saved::NotKept(Box::new(by_key(tx, key)?.unwrap_or(operation))));
        }
        // What came after the end and brought no other end says nothing.
        if !change.state.is_final() || is_final {
            return Ok(Saved::Done(Box::new(operation), Vec::new()));
        }
        return late(tx, operation, change.state, change.result.clone(), entry, late_hook);
    }
    if change.contact {
        tx.prepare_cached("UPDATE outbox SET last_contact_at = ?1 WHERE id = 1")?.execute([ms(now)])?;
    }
    if let Some(state) = change.contradicts
        && !is_told(tx, key, change)?
    {
        return late(tx, operation, state, change.result.clone(), entry, late_hook);
    }
    attempts::append(tx, &entry)?;
    let operation = if operation.state == State::Saved && operation.cancel_wished_at.is_some() {
        cancelling::cancel_unsent(tx, &operation, now)?;
        by_key(tx, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?
    } else {
        operation
    };
    hook(tx, &operation)?;
    let refunds = if is_final { Vec::new() } else { refunds::follow(tx, &operation, now)? };
    for refund in &refunds {
        hook(tx, refund)?;
    }
    store::points::reach(store::points::Point::ResultWritten);
    Ok(Saved::Done(Box::new(operation), refunds))
}

/// Whether there was an alarm for that answer before: what is asked again and again is told once, whatever came between.
fn is_told(tx: &Connection, key: &Key, change: &Change) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE key = ?1 AND event = 'late-answer' AND reading IS ?2)",
    )?
    .query_row(params![key.as_bytes(), change.reading], |row| row.get(0))
}

/// Another end than the one that holds: a line in the log and the caller's alarm, no change.
fn late(
    tx: &Connection,
    operation: Operation,
    state: State,
    result: Option<String>,
    mut entry: Entry<'_>,
    hook: LateHook<'_>,
) -> Result<Saved, RowError> {
    entry.event = "late-answer";
    attempts::append(tx, &entry)?;
    let late = LateAnswer { state, result };
    leniently(tx, &operation, &|tx, operation| hook(tx, operation, &late))?;
    Ok(Saved::Late(Box::new(operation)))
}

/// Where a wish to cancel came while the call ran, its cancellation is due at once.
fn update(tx: &Connection, saving: &Saving<'_>) -> rusqlite::Result<usize> {
    let Saving { change, .. } = *saving;
    tx.prepare_cached(
        "UPDATE operations SET state = :state, failures = :failures, panics = :panics, deaths = 0, \
             ask = CASE WHEN cancel_wished_at IS NOT NULL AND NOT :final THEN 'cancel' ELSE :ask END, \
             due_at = CASE WHEN cancel_wished_at IS NOT NULL AND NOT :final AND NOT :wished THEN :now ELSE :due END, \
             not_before = :not_before, last_answer = :last, result = :result, updated_at = :now, \
             reason = CASE WHEN :state = 'needs_attention' THEN coalesce(:reason, reason) END, \
             settled_at = CASE WHEN :final THEN :now END \
         WHERE key = :key AND state = :expected \
           AND CASE WHEN :begun THEN due_at IS NULL AND epoch = :epoch ELSE TRUE END",
    )?
    .execute(named_params! {
        ":state": change.state.as_str(),
        ":ask": change.ask.as_str(),
        ":failures": change.failures,
        ":panics": change.panics,
        ":due": change.due_at.map(ms),
        ":not_before": change.not_before.map(ms),
        ":reason": change.reason,
        ":last": change.last_answer,
        ":result": change.result,
        ":now": ms(saving.now),
        ":final": change.state.is_final(),
        ":wished": saving.wished,
        ":key": saving.key.as_bytes(),
        ":expected": saving.expected.as_str(),
        ":begun": saving.begun,
        ":epoch": saving.epoch,
    })
}

/// Of one that is final nothing changes but when the bank is told next, and whether it still is to be told.
fn update_tombstone(tx: &Connection, saving: &Saving<'_>) -> rusqlite::Result<usize> {
    let Saving { change, .. } = *saving;
    tx.prepare_cached(
        "UPDATE operations SET failures = :failures, panics = :panics, deaths = 0, due_at = :due, not_before = :not_before, \
             last_answer = :last, tombstone = :due IS NOT NULL, updated_at = :now \
         WHERE key = :key AND state = :expected AND tombstone = 1 \
           AND CASE WHEN :begun THEN due_at IS NULL AND epoch = :epoch ELSE TRUE END",
    )?
    .execute(named_params! {
        ":failures": change.failures,
        ":panics": change.panics,
        ":due": change.due_at.map(ms),
        ":not_before": change.not_before.map(ms),
        ":last": change.last_answer,
        ":now": ms(saving.now),
        ":key": saving.key.as_bytes(),
        ":expected": saving.expected.as_str(),
        ":begun": saving.begun,
        ":epoch": saving.epoch,
    })
}

/// Whether the row is what the change makes of it: an earlier try took, though nobody was told. Its due time may have been
/// brought forward since.
fn has_become(tx: &Connection, key: &Key, change: &Change) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM operations WHERE key = :key AND state = :state AND result IS :result \
             AND (:final OR (ask IN (:ask, 'cancel') AND failures = :failures AND panics = :panics AND last_answer IS :last \
                  AND due_at IS NOT NULL)))",
    )?
    .query_row(
        named_params! {
            ":key": key.as_bytes(),
            ":state": change.state.as_str(),
            ":result": change.result,
            ":final": change.state.is_final(),
            ":ask": change.ask.as_str(),
            ":failures": change.failures,
            ":panics": change.panics,
            ":last": change.last_answer,
        },
        |row| row.get(0),
    )
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

/// What waited for the bank while it was away: by it, whoever looks sees how far the way back is.
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
    .map(|_| ())
}

/// Keeps what is known of the bank.
pub(crate) fn record(tx: &Connection, record: &Record, epoch: i64) -> Result<(), RowError> {
    check_epoch(tx, epoch)?;
    tx.prepare_cached(
        "UPDATE outbox SET bank_id = coalesce(:bank, bank_id), merchant = coalesce(:merchant, merchant), \
             hold_until = :hold, paused = :paused, reachable = :reachable, why = :why, probe_at = :probe, clock_gap_s = :gap, \
             last_contact_at = nullif(max(coalesce(last_contact_at, 0), coalesce(:introduced, 0)), 0) \
         WHERE id = 1",
    )?
    .execute(named_params! {
        ":bank": record.bank.as_ref().map(|bank| bank.bank_id.as_bytes()),
        ":merchant": record.bank.as_ref().map(|bank| &bank.merchant),
        ":hold": record.hold_until.map(ms),
        ":paused": record.paused,
        ":reachable": record.reachable,
        ":why": record.why,
        ":probe": record.probe_at.map(ms),
        ":gap": record.clock_gap_s,
        ":introduced": record.introduced_at.map(ms),
    })?;
    if let Some(bank) = &record.bank {
        mark_other_bank(tx, bank)?;
    }
    Ok(())
}

/// Rows that were first sent to another bank wait, and say for whom: `other-bank: MERCHANT at BANK`.
fn mark_other_bank(tx: &Connection, bank: &BankIdentity) -> rusqlite::Result<()> {
    tx.prepare_cached(
        concat!("UPDATE operations INDEXED BY operations_open SET reason = CASE WHEN (bank_id, merchant) IS NOT (?1, ?2) THEN \
             'other-bank: ' || merchant || ' at ' || lower(substr(hex(bank_id), 1, 8) || '-' || substr(hex(bank_id), 9, 4) || '-' || \
             substr(hex(bank_id), 13, 4) || '-' || substr(hex(bank_id), 17, 4) || '-' || substr(hex(bank_id), 21)) END \
         WHERE ", open!(), " AND state IN ('saved', 'sending', 'unknown') AND bank_id IS NOT NULL \
           AND (reason IS NOT NULL AND reason LIKE 'other-bank:%') IS NOT ((bank_id, merchant) IS NOT (?1, ?2))"),
    )?
    .execute(params![bank.bank_id.as_bytes(), bank.merchant])
    .map(|_| ())
}

/// Another secret or address: whose Retry-After the file keeps from now on.
pub(crate) fn change_address(tx: &Connection, address: &str, epoch: i64) -> Result<(), RowError> {
    check_epoch(tx, epoch)?;
    tx.prepare_cached("UPDATE outbox SET address = ?1 WHERE id = 1")?.execute([address])?;
    Ok(())
}

#[cfg(test)]
mod tests;
