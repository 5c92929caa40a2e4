//! A file that was brought back from a copy: under another name, and with nothing paid on it before the bank's payments since the copy
//! were matched.

mod matching;
mod names;

pub(crate) use matching::{Taken, acknowledged, is_missing, match_again, sale_id, take_over};
pub(crate) use names::{check_new, name_of_receipt, name_of_sale, names};

use crate::{Settings, TillError, audit, audit::Signature, columns, settings};
use jiff::{SignedDuration, Timestamp};
use outbox::BankIdentity;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde_json::json;

/// Characters of the mark behind a restored till's name.
const MARK_CHARS: usize = 6;
/// Characters of a till's name before its mark: with it they are no more than a name may have.
const BASE_CHARS_MAX: usize = 24;
/// The figures of the mark: those of the short code.
const FIGURES: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// How much earlier the bank's list is read to than the last payment whose end the copy knows: a bank's clock may have been set.
const LIST_EARLIER: SignedDuration = SignedDuration::from_hours(48);
/// How long after the first match the second is made. What the lost file sent last is in the bank's list by then.
pub(crate) const MATCH_AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// A restore whose payments are still to be matched, for the first time or again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenRestore {
    /// How far back the bank's list is read; all of it with none.
    pub(crate) list_from: Option<Timestamp>,
    /// When they were matched for the first time.
    pub(crate) matched_at: Option<Timestamp>,
}

impl OpenRestore {
    /// When it is to be matched next; none for at once.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        self.matched_at.map(|at| at.checked_add(MATCH_AGAIN_AFTER).unwrap_or(at))
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.due_at().is_none_or(|due| due <= now)
    }
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

fn open_row(row: &Row<'_>) -> rusqlite::Result<OpenRestore> {
    Ok(OpenRestore {
        list_from: columns::optional_timestamp(row, 0)?,
        matched_at: columns::optional_timestamp(row, 1)?,
    })
}

/// The restores whose payments are still to be matched: more than one where a copy was made of a restored file.
pub(crate) fn open(conn: &Connection) -> Result<Vec<OpenRestore>, TillError> {
    let mut statement =
        conn.prepare_cached("SELECT list_from, matched_at FROM restores WHERE closed_at IS NULL ORDER BY id")?;
    let rows = statement.query_map([], open_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Those of them that are due now.
pub(crate) fn due(conn: &Connection, now: Timestamp) -> Result<Vec<OpenRestore>, TillError> {
    Ok(open(conn)?.into_iter().filter(|restore| restore.is_due(now)).collect())
}

/// Whether nothing may be sent or paid, because the bank's payments were not matched even once.
pub(crate) fn waits(conn: &Connection) -> Result<bool, TillError> {
    Ok(conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM restores WHERE matched_at IS NULL)")?
        .query_row([], |row| row.get(0))?)
}

/// How far back the list is to be read: all of it where one of them does not say.
pub(crate) fn list_from(restores: &[OpenRestore]) -> Option<Timestamp> {
    let from: Option<Vec<_>> = restores.iter().map(|restore| restore.list_from).collect();
    from?.into_iter().min()
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
    let list_from = newest_known(tx)?.and_then(|at| at.checked_sub(LIST_EARLIER).ok());
    settings::save(tx, &Settings { till_name: till_name.to_owned(), ..before.clone() })?;
    tx.execute(
        "INSERT INTO restores (id, at, copied_at, till_name_before, till_name, last_sale, list_from)
         VALUES ((SELECT coalesce(max(id), 0) + 1 FROM restores), ?1, (SELECT coalesce(max(at), 0) FROM audit), ?2, ?3,
             (SELECT last FROM counters WHERE name = 'sale'), ?4)",
        params![signature.at.as_millisecond(), before.till_name, till_name, list_from.map(|at| at.as_millisecond())],
    )?;
    let details = json!({"before": before.till_name, "after": till_name});
    audit::append(tx, signature, "till-restored", None, &details)?;
    Ok(before.till_name)
}

/// When the bank claimed the newest payment whose end the file knows, by the bank's own clock: what the lost file asked for after the copy
/// came to it later. This machine's clock is not asked, for it may have stood anywhere.
fn newest_known(conn: &Connection) -> Result<Option<Timestamp>, TillError> {
    let mut statement = conn.prepare(
        "SELECT result ->> '$.created_at' FROM operations
         WHERE kind = 'payment' AND state IN ('approved', 'declined') AND json_valid(result) AND (bank_id, merchant) = (
             SELECT bank_id, merchant FROM operations WHERE bank_id IS NOT NULL ORDER BY seq DESC LIMIT 1)",
    )?;
    let mut newest = None;
    let rows = statement.query_map([], |row| row.get_ref(0).map(|said| said.as_str().ok().map(str::to_owned)))?;
    for said in rows {
        let at = said?.and_then(|said| said.parse::<Timestamp>().ok());
        newest = newest.max(at);
    }
    Ok(newest)
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

/// Lets the file be paid on again; the second time, also the sales that were there when the copy was made. `now`: when the look at the
/// bank's list began.
pub(crate) fn set_matched(
    tx: &Connection,
    signature: &Signature,
    now: Timestamp,
    matched: &Matched,
) -> Result<(), TillError> {
    let again_before = now.checked_sub(MATCH_AGAIN_AFTER).unwrap_or(now);
    let at = signature.at.as_millisecond();
    let closed = tx.execute(
        "UPDATE restores SET closed_at = ?1 WHERE closed_at IS NULL AND matched_at <= ?2",
        params![at, again_before.as_millisecond()],
    )?;
    let first = tx.execute("UPDATE restores SET matched_at = ?1 WHERE matched_at IS NULL", [at])?;
    if closed + first == 0 {
        // Another look at the same list was quicker.
        return Ok(());
    }
    let details = json!({"paid": matched.paid, "unknown": matched.unknown, "again": first == 0});
    audit::append(tx, signature, "restore-matched", None, &details)
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

    #[test]
    fn all_of_the_list_is_read_where_one_copy_does_not_say_how_far() {
        let at = |list_from| OpenRestore { list_from, matched_at: None };
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        assert_eq!(list_from(&[at(Some(late)), at(Some(early))]), Some(early));
        assert_eq!(list_from(&[at(Some(late)), at(None)]), None);
    }
}
