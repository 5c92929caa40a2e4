//! What is kept of the bank: the one row of the table `outbox`, and which operations wait for another bank.

use rusqlite::{Connection, named_params, params};

use super::{RowError, check_epoch};
use crate::columns::ms;
use crate::step::{BankIdentity, Record};

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
