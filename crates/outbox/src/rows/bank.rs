//! What is kept of the bank: the one row of the table `outbox`, and which operations wait for another bank.

use jiff::Timestamp;
use protocol::Key;
use rusqlite::{Connection, named_params, params};

use super::{Hook, RowError, check_epoch, leniently};
use crate::attempts::{self, Entry};
use crate::columns::{ms, stored};
use crate::one_row::one_row;
use crate::operations::{Operation, by_key};
use crate::step::{BankIdentity, Record};

/// Keeps what is known of the bank.
/// Gives the operations that now wait for another bank, or wait for one no more.
pub(crate) fn record(
    tx: &Connection,
    record: &Record,
    epoch: i64,
    now: Timestamp,
    hook: Hook<'_>,
) -> Result<Vec<Operation>, RowError> {
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
    })
    .and_then(one_row)?;
    match &record.bank {
        Some(bank) => mark_other_bank(tx, bank, now, hook),
        None => Ok(Vec::new()),
    }
}

/// Rows that were first sent to another bank wait, and say for whom: `other-bank: MERCHANT at BANK`. Those that this bank is asked
/// for again say so no more. Gives those that changed, oldest first.
fn mark_other_bank(
    tx: &Connection,
    bank: &BankIdentity,
    now: Timestamp,
    hook: Hook<'_>,
) -> Result<Vec<Operation>, RowError> {
    let mut marked: Vec<(i64, Key)> = tx
        .prepare_cached(concat!(
            "UPDATE operations INDEXED BY operations_open SET updated_at = ?3, \
                 reason = CASE WHEN (bank_id, merchant) IS NOT (?1, ?2) THEN 'other-bank: ' || merchant || ' at ' || \
                     lower(substr(hex(bank_id), 1, 8) || '-' || substr(hex(bank_id), 9, 4) || '-' || \
                     substr(hex(bank_id), 13, 4) || '-' || substr(hex(bank_id), 17, 4) || '-' || substr(hex(bank_id), 21)) END \
             WHERE ",
            open!(),
            " AND state IN ('saved', 'sending', 'unknown') AND bank_id IS NOT NULL \
               AND (reason IS NOT NULL AND reason LIKE 'other-bank:%') IS NOT ((bank_id, merchant) IS NOT (?1, ?2)) \
             RETURNING seq, key"
        ))?
        .query_map(params![bank.bank_id.as_bytes(), bank.merchant, ms(now)], |row| {
            Ok((row.get("seq")?, stored(row, "key")?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    marked.sort_unstable();
    let mut changed = Vec::with_capacity(marked.len());
    for (_, key) in marked {
        let operation = by_key(tx, &key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let event = if operation.reason.is_some() { "other-bank" } else { "bank-back" };
        let detail = operation.reason.as_deref().unwrap_or_default();
        attempts::append(tx, &Entry { detail, ..Entry::new(&key, operation.attempts, now, event) })?;
        leniently(tx, &operation, hook)?;
        changed.push(operation);
    }
    Ok(changed)
}

/// Another secret or address: whose Retry-After the file keeps from now on.
pub(crate) fn change_address(tx: &Connection, address: &str, epoch: i64) -> Result<(), RowError> {
    check_epoch(tx, epoch)?;
    tx.prepare_cached("UPDATE outbox SET address = ?1 WHERE id = 1")?.execute([address]).and_then(one_row)?;
    Ok(())
}
