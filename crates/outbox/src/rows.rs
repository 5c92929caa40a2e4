//! The driver's own writes to the table of operations: a call begins, and its outcome is saved. Each write names the epoch and the state that it expects, and
//! checks that it changed exactly one row.

mod bank;
mod due;
mod taking_over;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;

use jiff::Timestamp;
use protocol::Key;
use rusqlite::{Connection, named_params, params};

pub(crate) use bank::{change_address, record};
pub(crate) use due::{Due, make_due, scan};
pub(crate) use taking_over::{Started, start};

use crate::attempts::{self, Entry};
use crate::cancelling;
use crate::columns::ms;
use crate::contract::{Contract, StoredRequest};
use crate::one_row::one_row;
use crate::operations::{Operation, by_key, refunds_of};
use crate::outcome::Change;
use crate::refunds;
use crate::state::{Ask, State};
use crate::step::{BankIdentity, Row};
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
        Ok(Ok(())) => return tx.execute_batch("RELEASE hook"),
        Ok(Err(error)) => {
            tracing::error!(operation = %operation.short_code, %error, "the caller's own part of a change failed");
        }
        // What it said went to the panic hook.
        Err(_) => {
            tracing::error!(operation = %operation.short_code, "the caller's own part of a change panicked");
        }
    }
    tx.execute_batch("ROLLBACK TO hook; RELEASE hook")
}

fn check_epoch(tx: &Connection, epoch: i64) -> Result<(), RowError> {
    let found: i64 = tx.prepare_cached("SELECT epoch FROM outbox WHERE id = 1")?.query_row([], |row| row.get(0))?;
    if found == epoch { Ok(()) } else { Err(RowError::Fenced) }
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

/// Whether the call of a row that was begun some time ago is still to be made: it is this owner's, and no wish to cancel it has come
/// that holds its request back.
pub(crate) fn is_wanted(conn: &Connection, key: &Key, ask: Ask, epoch: i64) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT due_at IS NULL AND epoch = ?2 AND (cancel_wished_at IS NULL OR NOT ?3) FROM operations WHERE key = ?1",
    )?
    .query_row(params![key.as_bytes(), epoch, ask.sends()], |row| row.get(0))
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
            .execute([ms(until)])
            .and_then(one_row)?;
    }
    let is_final = saving.expected.is_final();
    let changed = if is_final { update_tombstone(tx, saving)? } else { update(tx, saving)? };
    let operation = by_key(tx, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let mut entry = Entry {
        bank_at: saving.bank_at,
        answer: saving.status,
        reading: change.reading.as_deref(),
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
                .execute(params![ms(now), key.as_bytes()])
                .and_then(one_row)?;
            return Ok(Saved::NotKept(Box::new(by_key(tx, key)?.unwrap_or(operation))));
        }
        // What came after the end and brought no other end says nothing.
        if !change.state.is_final() || is_final {
            return Ok(Saved::Done(Box::new(operation), Vec::new()));
        }
        return late(tx, operation, change.state, change.result.clone(), entry, late_hook);
    }
    if change.contact {
        tx.prepare_cached("UPDATE outbox SET last_contact_at = ?1 WHERE id = 1")?
            .execute([ms(now)])
            .and_then(one_row)?;
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

/// Where a wish to cancel came while the call ran, its cancellation is due at once. What was only counted is free again, unless an
/// earlier attempt was called for, and be it that no connection was made: the bank and the age are those of the first attempt.
fn update(tx: &Connection, saving: &Saving<'_>) -> rusqlite::Result<usize> {
    let Saving { change, .. } = *saving;
    tx.prepare_cached(
        "UPDATE operations SET state = :state, failures = :failures, panics = :panics, \
             deaths = CASE WHEN :called THEN 0 ELSE deaths END, \
             first_sent_at = CASE WHEN :state = 'saved' AND NOT :called AND attempts = 1 THEN NULL ELSE first_sent_at END, \
             bank_id = CASE WHEN :state = 'saved' AND NOT :called AND attempts = 1 THEN NULL ELSE bank_id END, \
             merchant = CASE WHEN :state = 'saved' AND NOT :called AND attempts = 1 THEN NULL ELSE merchant END, \
             ask = CASE WHEN cancel_wished_at IS NOT NULL AND NOT :final THEN 'cancel' ELSE :ask END, \
             due_at = CASE WHEN cancel_wished_at IS NOT NULL AND NOT :final AND NOT :wished THEN :now ELSE :due END, \
             not_before = :not_before, last_answer = CASE WHEN :called THEN :last ELSE last_answer END, \
             result = :result, updated_at = :now, \
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
        ":called": change.called,
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
        "UPDATE operations SET failures = :failures, panics = :panics, due_at = :due, not_before = :not_before, \
             deaths = CASE WHEN :called THEN 0 ELSE deaths END, last_answer = CASE WHEN :called THEN :last ELSE last_answer END, \
             tombstone = :due IS NOT NULL, updated_at = :now \
         WHERE key = :key AND state = :expected AND tombstone = 1 \
           AND CASE WHEN :begun THEN due_at IS NULL AND epoch = :epoch ELSE TRUE END",
    )?
    .execute(named_params! {
        ":failures": change.failures,
        ":panics": change.panics,
        ":due": change.due_at.map(ms),
        ":not_before": change.not_before.map(ms),
        ":last": change.last_answer,
        ":called": change.called,
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
             AND (:final OR (ask IN (:ask, 'cancel') AND failures = :failures AND panics = :panics AND (last_answer IS :last OR NOT :called) \
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
            ":called": change.called,
        },
        |row| row.get(0),
    )
}
