//! What was taken offline, and what became of it where it did not pay.

use super::{
    Notes,
    sale::{Facts, TenderFacts},
};
use crate::{TenderState, TillError};
use rusqlite::{CachedStatement, Connection};

/// A late decline as its row has it.
pub(super) struct LateFacts {
    tender_id: String,
    last_tender_id: String,
    state: String,
    amount: i64,
    returned: i64,
    /// What collecting it in cash added for the coins.
    pub(super) rounding: i64,
}

pub(super) fn prepare(conn: &Connection) -> Result<CachedStatement<'_>, TillError> {
    Ok(conn.prepare_cached(
        "SELECT late.tender_id, late.last_tender_id, late.state, late.amount, late.returned, late.rounding
         FROM tenders CROSS JOIN late_declines AS late ON late.tender_id = tenders.id WHERE tenders.sale_id = ?1 ORDER BY late.seq",
    )?)
}

pub(super) fn of_sale(statement: &mut CachedStatement<'_>, sale_id: &str) -> Result<Vec<LateFacts>, TillError> {
    let rows = statement.query_map([sale_id], |row| {
        Ok(LateFacts {
            tender_id: row.get(0)?,
            last_tender_id: row.get(1)?,
            state: row.get(2)?,
            amount: row.get(3)?,
            returned: row.get(4)?,
            rounding: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn is_open(state: Option<TenderState>) -> bool {
    matches!(state, Some(TenderState::Settling | TenderState::NeedsAttention))
}

/// The mark of a tender that was taken offline: beside its operation's, and settled with it.
pub(super) fn check_mark(tender: &TenderFacts, is_accepted: bool, subject: &str, notes: &mut Notes<'_>) {
    let is_marked = tender.taken_offline.is_some();
    if is_marked != is_accepted {
        let says = |is: bool| if is { "was" } else { "was not" };
        let what =
            format!("it {} taken offline, and its operation says that it {}", says(is_marked), says(is_accepted));
        notes.found("taken-offline", subject, what);
    }
    if let Some(is_settled) = tender.taken_offline
        && is_settled == is_open(TenderState::read(&tender.state))
    {
        let what = format!("it is {}, and the mark that it was taken offline says otherwise", tender.state);
        notes.found("taken-offline", subject, what);
    }
}

/// The late declines of a sale. Gives what of the sale no tender covers all the same, what is owed, given up or came back, less what
/// was taken more for the coins.
pub(super) fn check(
    conn: &Connection,
    late: &[LateFacts],
    tenders: &[TenderFacts],
    sale: &Facts,
    notes: &mut Notes<'_>,
) -> Result<i128, TillError> {
    let mut covered = 0;
    for late in late {
        covered += i128::from(late.returned) + owed(late, tenders, &sale.subject, notes);
        let mut wrong = |what: String| {
            let subject = format!("late decline of tender {} of {}", late.tender_id, sale.subject);
            notes.found("late-decline", subject, what);
        };
        let waived = waived(conn, late)?;
        if waived.iter().any(|one| one.sale_id != sale.id) {
            wrong("goods of another sale came back for it".to_owned());
        }
        check_returned(conn, late, &waived, &mut wrong)?;
        check_course(late, &waived, &mut wrong);
    }
    Ok(covered)
}

/// What of a return went to nobody because of a late decline.
struct WaivedFacts {
    sale_id: String,
    amount: i64,
    rest: i64,
    was_lost: bool,
}

/// In the order of the returns.
fn waived(conn: &Connection, late: &LateFacts) -> Result<Vec<WaivedFacts>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT returns.sale_id, waived.amount, waived.rest, waived.was_lost
         FROM return_waived AS waived CROSS JOIN returns ON returns.id = waived.return_id
         WHERE waived.tender_id = ?1 ORDER BY returns.receipt_number",
    )?;
    let rows = statement.query_map([&late.tender_id], |row| {
        Ok(WaivedFacts { sale_id: row.get(0)?, amount: row.get(1)?, rest: row.get(2)?, was_lost: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn sum(waived: &[WaivedFacts], was_lost: bool) -> i128 {
    waived.iter().filter(|one| one.was_lost == was_lost).map(|one| i128::from(one.amount)).sum()
}

/// What came back before its payments ended is what went back to them, which is nothing: all of it of returns, perhaps more of money
/// alone. What came back afterwards is waived, and nothing else is.
fn check_returned(
    conn: &Connection,
    late: &LateFacts,
    waived: &[WaivedFacts],
    wrong: &mut dyn FnMut(String),
) -> Result<(), TillError> {
    let (least, most): (i64, i64) = conn
        .prepare_cached(
            "SELECT coalesce(sum(iif(coalesce(refunds.return_id, refunds.void_id) IS NULL, 0, refunds.amount)), 0),
                 coalesce(sum(refunds.amount), 0)
             FROM tenders CROSS JOIN refunds ON refunds.tender_id = tenders.id
             WHERE (tenders.id = ?1 OR tenders.collects = ?1) AND tenders.state IN ('declined', 'cancelled') AND refunds.replaces IS NULL",
        )?
        .query_row([&late.tender_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let before = i128::from(late.returned) - sum(waived, false);
    if !(i128::from(least)..=i128::from(most)).contains(&before) {
        wrong(format!(
            "{} of it came back, and its returns come to {} and, before its payments ended, {least} to {most}",
            late.returned,
            sum(waived, false)
        ));
    }
    Ok(())
}

/// Each return left what the next one found, or more: what is owed only gets less, and a loss stays.
fn check_course(late: &LateFacts, waived: &[WaivedFacts], wrong: &mut dyn FnMut(String)) {
    let mut owed = i128::from(late.amount) + i128::from(late.returned);
    for one in waived.iter().filter(|one| !one.was_lost) {
        let found = i128::from(one.amount) + i128::from(one.rest);
        if found > owed {
            wrong(format!("{found} was owed when goods came back, and {owed} before"));
        }
        owed = i128::from(one.rest);
    }
    if i128::from(late.amount) > owed {
        wrong(format!("{} is owed, and {owed} was left when goods came back", late.amount));
    }
    let mut lost = if late.state == "written_off" { i128::from(late.amount) } else { 0 };
    for one in waived.iter().filter(|one| one.was_lost) {
        lost -= i128::from(one.amount);
        if lost != i128::from(one.rest) {
            wrong(format!("{lost} of its loss was left when goods came back, and their return says {}", one.rest));
        }
    }
}

fn owed(late: &LateFacts, tenders: &[TenderFacts], sale: &str, notes: &mut Notes<'_>) -> i128 {
    let mut wrong = |what: String| {
        notes.found("late-decline", format!("late decline of tender {} of {sale}", late.tender_id), what);
    };
    let tender = |id: &str| tenders.iter().find(|tender| tender.id == id);
    let (Some(first), Some(last)) = (tender(&late.tender_id), tender(&late.last_tender_id)) else {
        wrong("its tenders are not of this sale".to_owned());
        return 0;
    };
    if first.taken_offline.is_none() {
        wrong("its payment was never taken offline".to_owned());
    }
    let sum = i128::from(late.amount) + i128::from(late.returned);
    if sum != i128::from(first.amount) {
        wrong(format!("what is owed and what came back are {sum}, and the payment was {}", first.amount));
    }
    let state = TenderState::read(&last.state);
    let covers = state.is_some_and(TenderState::counts);
    let fits = match late.state.as_str() {
        "attention" | "collecting" | "writing_off" => is_open(state),
        "open" | "written_off" => !covers,
        "settled" => state.is_some_and(TenderState::paid) || (!covers && late.amount == 0),
        _ => false,
    };
    if !fits {
        wrong(format!("it is {}, and its last payment is {}", late.state, last.state));
    }
    if covers && i128::from(last.amount) != i128::from(late.amount) + i128::from(late.rounding) {
        wrong(format!("{} is owed, and {} is being collected", late.amount, last.amount));
    }
    if covers { -i128::from(late.rounding) } else { i128::from(late.amount) }
}

/// Whether a tender of a completed sale is one whose end may still be awaited.
pub(super) fn may_be_open(tender: &TenderFacts, late: &[LateFacts]) -> bool {
    tender.taken_offline.is_some() || late.iter().any(|late| late.last_tender_id == tender.id)
}
