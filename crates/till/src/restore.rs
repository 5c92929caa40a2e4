//! A file that was brought back from a copy: under another name, and with nothing paid on it before the bank's payments since the copy
//! were matched.

use crate::{
    Settings, TenderKind, TenderState, TillError, amounts::format_amount, audit, audit::Signature, clock, columns,
    doctor::BankPayment, pay, sale, sales, settings, tenders, tenders::TenderRow,
};
use jiff::Timestamp;
use outbox::BankIdentity;
use protocol::PAYMENTS_PATH;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde_json::{Value, json};

/// Characters of the mark behind a restored till's name.
const MARK_CHARS: usize = 6;
/// Characters of a till's name before its mark: with it they are no more than a name may have.
const BASE_CHARS_MAX: usize = 24;
/// The figures of the mark: those of the short code.
const FIGURES: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A restore whose payments were not matched yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmatched {
    pub(crate) id: i64,
    pub(crate) copied_at: Timestamp,
    pub(crate) till_name_before: String,
}

/// What became of the bank's payments since a copy was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Matched {
    /// Sales that were paid on the lost file: their numbers. The bank's payments stand in them now.
    pub paid: Vec<i64>,
    /// Payments of which this file has no sale that they could pay, each in a line: a person must look.
    pub unknown: Vec<String>,
}

fn unmatched_row(row: &Row<'_>) -> rusqlite::Result<Unmatched> {
    Ok(Unmatched { id: row.get(0)?, copied_at: columns::timestamp(row, 1)?, till_name_before: row.get(2)? })
}

/// The restores whose payments were not matched yet: more than one where a copy was made of a restored file.
pub(crate) fn unmatched(conn: &Connection) -> Result<Vec<Unmatched>, TillError> {
    let mut statement = conn
        .prepare_cached("SELECT id, copied_at, till_name_before FROM restores WHERE matched_at IS NULL ORDER BY id")?;
    let rows = statement.query_map([], unmatched_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The name under which a sale's number was given.
pub(crate) fn name_of_sale(conn: &Connection, number: Option<i64>, name_now: String) -> Result<String, TillError> {
    let before = conn
        .prepare_cached("SELECT till_name_before FROM restores WHERE last_sale >= ?1 ORDER BY id LIMIT 1")?
        .query_row([number.unwrap_or(i64::MAX)], |row| row.get(0))
        .optional()?;
    Ok(before.unwrap_or(name_now))
}

/// The name that the till had at a time.
pub(crate) fn name_at(conn: &Connection, at: Timestamp, name_now: String) -> Result<String, TillError> {
    let before = conn
        .prepare_cached("SELECT till_name_before FROM restores WHERE at > ?1 ORDER BY id LIMIT 1")?
        .query_row([at.as_millisecond()], |row| row.get(0))
        .optional()?;
    Ok(before.unwrap_or(name_now))
}

/// The names that this file's till ever had.
pub(crate) fn names(conn: &Connection) -> Result<Vec<String>, TillError> {
    let mut statement = conn.prepare_cached("SELECT till_name_before FROM restores")?;
    let before = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok([vec![settings::read(conn)?.till_name], before].concat())
}

/// The name of a restored till: the one it had, with a mark that no other restore of it has. By chance, because the same copy may be
/// brought back at two places.
pub(crate) fn name_after(before: &str, chance: u32) -> String {
    let marked = before
        .rsplit_once("-r")
        .filter(|(_, mark)| mark.len() == MARK_CHARS && mark.bytes().all(|byte| FIGURES.contains(&byte)));
    let base: String = marked.map_or(before, |(base, _)| base).chars().take(BASE_CHARS_MAX).collect();
    let mark: String =
        (0..MARK_CHARS).map(|at| char::from(FIGURES[(chance >> (5 * at)) as usize % FIGURES.len()])).collect();
    format!("{base}-r{mark}")
}

/// Marks a copy as brought back.
pub(crate) fn mark(tx: &Connection, signature: &Signature, till_name: &str) -> Result<String, TillError> {
    let before = settings::read(tx)?;
    settings::save(tx, &Settings { till_name: till_name.to_owned(), ..before.clone() })?;
    tx.execute(
        "INSERT INTO restores (id, at, copied_at, till_name_before, till_name, last_sale)
         VALUES ((SELECT coalesce(max(id), 0) + 1 FROM restores), ?1, (SELECT coalesce(max(at), 0) FROM audit), ?2, ?3,
             (SELECT last FROM counters WHERE name = 'sale'))",
        params![signature.at.as_millisecond(), before.till_name, till_name],
    )?;
    let details = json!({"before": before.till_name, "after": till_name});
    audit::append(tx, signature, "till-restored", None, &details)?;
    Ok(before.till_name)
}

/// Refuses a bank other than the one that the file's payments are at: another one's list would prove nothing.
pub(crate) fn check_bank(conn: &Connection, bank: &BankIdentity) -> Result<(), TillError> {
    let last: Option<(Vec<u8>, String)> = conn
        .query_row(
            "SELECT bank_id, merchant FROM operations WHERE bank_id IS NOT NULL ORDER BY seq DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    match last {
        Some((id, merchant)) if id != bank.bank_id.as_bytes() || merchant != bank.merchant => Err(TillError::NoBank(
            "this is another bank, or another shop's account at it, than the one that this till's payments are at: name that one"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Whether a payment of the bank's list is one of this till's that the file does not know.
pub(crate) fn is_missing(conn: &Connection, restores: &[Unmatched], payment: &BankPayment) -> Result<bool, TillError> {
    let is_approved = payment.status == protocol::Outcome::Approved;
    Ok(is_approved && number_of(restores, payment).is_some() && outbox::by_key(conn, &payment.operation)?.is_none())
}

/// What stands behind the till's name in the reference: the number of the sale.
fn number_of<'a>(restores: &[Unmatched], payment: &'a BankPayment) -> Option<&'a str> {
    let reference = payment.reference.as_deref()?;
    restores.iter().find_map(|restore| reference.strip_prefix(&restore.till_name_before)?.strip_prefix('/'))
}

/// Takes a payment over that the lost file made: its sale is paid by it, as it was there. Gives the number of the sale, or why there is
/// none that it could pay.
pub(crate) fn take_over(
    tx: &Connection,
    signature: &Signature,
    restores: &[Unmatched],
    payment: &BankPayment,
    bank: &BankIdentity,
) -> Result<Result<i64, String>, TillError> {
    let (amount, currency) = (payment.amount.get(), payment.currency);
    let reference = payment.reference.clone().unwrap_or_default();
    let unknown = |why: &str| {
        Ok(Err(format!(
            "payment {} of {} {currency} for {reference}, key {}: {why}",
            payment.id,
            format_amount(amount, currency),
            payment.operation
        )))
    };
    if outbox::by_key(tx, &payment.operation)?.is_some() {
        return unknown("the till came to know it meanwhile");
    }
    let Some(number) = number_of(restores, payment).and_then(|number| number.parse::<i64>().ok()) else {
        return unknown("its reference names no sale");
    };
    let id = tx
        .prepare_cached("SELECT id FROM sales WHERE number = ?1 AND state = 'paying' AND voided_at IS NULL")?
        .query_row([number], |row| columns::uuid(row, 0))
        .optional()?;
    let Some(id) = id else { return unknown("this file has no sale of that number that waits to be paid") };
    let sale = sales::by_id(tx, id)?;
    let others = tenders::of_sale(tx, id)?;
    let Some(frozen) = sale.frozen else { return unknown("its sale is not frozen") };
    if sale.currency != currency || amount > sale::balance(&sale, frozen.total, &others)?.rest {
        return unknown("it is more than is due on that sale, or of another currency");
    }
    let tender = TenderRow {
        id: clock::id_at(signature.at),
        sale_id: id,
        position: others.iter().map(|tender| tender.position).max().unwrap_or(0) + 1,
        kind: TenderKind::Card,
        state: TenderState::Settling,
        amount,
        tendered: None,
        change: None,
        reference: payment.reference.clone(),
        replaces: tenders::to_replace(&others),
        collects: None,
        created_at: signature.at,
        taken_offline_at: None,
    };
    insert_operation(tx, signature, &tender, payment, bank)?;
    tenders::insert(tx, &tender)?;
    let operation = outbox::by_key(tx, &payment.operation)?
        .ok_or_else(|| TillError::Internal("what was just taken over is not there".to_owned()))?;
    let details = json!({"sale": number, "key": payment.operation, "amount": amount, "bank_reference": payment.id});
    audit::append(tx, signature, "payment-taken-over", Some(id), &details)?;
    pay::settled(tx, signature, &operation)?;
    Ok(Ok(number))
}

/// The operation of a payment that another file sent. Its bytes went with that file: what stands here names what was asked, and is
/// never sent, because it has its end.
fn insert_operation(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    payment: &BankPayment,
    bank: &BankIdentity,
) -> Result<(), TillError> {
    let asked = json!({"amount": payment.amount.get(), "currency": payment.currency, "reference": payment.reference});
    let result: &Value = &payment.whole;
    let (key, now) = (payment.operation, signature.at.as_millisecond());
    tx.prepare_cached(
        "INSERT INTO operations (key, intent_id, replaces, lane, kind, method, path, body, body_version, amount, currency, state, ask,
             attempts, result, bank_id, merchant, created_at, updated_at, settled_at)
         VALUES (?1, ?2, ?3, ?4, 'payment', 'POST', ?5, ?6, 1, ?7, ?8, 'approved', 'look_up', 0, ?9, ?10, ?11, ?12, ?12, ?12)",
    )?
    .execute(params![
        key.as_bytes(),
        tender.id.as_bytes(),
        tender.replaces.as_ref().map(uuid::Uuid::as_bytes),
        tender.sale_id.to_string(),
        PAYMENTS_PATH,
        asked.to_string().as_bytes(),
        payment.amount.get(),
        payment.currency.code(),
        result.to_string(),
        bank.bank_id.as_bytes(),
        bank.merchant,
        now
    ])?;
    tx.execute(
        "INSERT INTO attempts (key, attempt, at, event, reading, detail) VALUES (?1, 0, ?2, 'answer', 'approved', ?3)",
        params![key.as_bytes(), now, "found in the bank's list after the file was restored"],
    )?;
    Ok(())
}

/// Lets the file be paid on again.
pub(crate) fn set_matched(
    tx: &Connection,
    signature: &Signature,
    restores: &[Unmatched],
    matched: &Matched,
) -> Result<(), TillError> {
    for restore in restores {
        tx.execute(
            "UPDATE restores SET matched_at = ?2 WHERE id = ?1",
            params![restore.id, signature.at.as_millisecond()],
        )?;
    }
    audit::append(tx, signature, "restore-matched", None, &json!({"paid": matched.paid, "unknown": matched.unknown}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_till_has_the_name_it_had_and_a_mark() {
        assert_eq!(name_after("till-1", 0), "till-1-r000000");
        assert_eq!(name_after("till-1-r000000", u32::MAX), "till-1-rZZZZZZ");
        assert_eq!(name_after("till-red", 1), "till-red-r100000");
        let long = "a".repeat(32);
        assert_eq!(name_after(&long, 7).len(), 32);
        assert_ne!(name_after("till-1", 5), name_after("till-1", 6));
    }
}
