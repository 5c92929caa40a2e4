//! Shifts: the drawer from its float to its count, and what went through it. A sale belongs to the shift in which it completed, cash to the
//! one in which it was taken; what happens while none is open belongs to the next one.
//!
//! What a drawer should hold is its float, the cash that was taken and stayed, what was put in, less what was taken out and given back. The
//! file computes it (the view `drawers`), for this module and for the triggers that guard it.

pub(crate) mod drawer;
pub(crate) mod removed;
pub(crate) mod report;
mod sums;
pub(crate) mod text;
pub(crate) mod written;

use crate::{
    TillError,
    amounts::format_amount,
    audit,
    audit::Signature,
    columns, rights,
    rights::{Measure, Right},
    settings,
};
use jiff::{Timestamp, civil::Date};
use protocol::Currency;
use report::{ReportKind, ShiftReport};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The most that one move or count can be, in minor units: a slip of the finger is more, and no sum of them ever too large.
pub(crate) const AMOUNT_MAX: i64 = 100_000_000_000;
/// How many closed shifts one answer holds at most.
const SHIFTS_MAX: u32 = 500;

/// The time between the float and the count of a drawer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shift {
    /// 1, 2, 3, without gaps: also that of its Z report.
    pub number: i64,
    /// The day that it counts for, by the shop's zone and the hour at which its day begins.
    pub business_day: Date,
    /// What the drawer holds.
    pub currency: Currency,
    /// What was in the drawer to begin with, in minor units.
    pub float_amount: i64,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// Who opened it.
    pub opened_by: String,
    /// How it ended; none while it is open.
    pub closed: Option<ShiftEnd>,
}

/// How a shift ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShiftEnd {
    /// When.
    pub at: Timestamp,
    /// Who closed it.
    pub by: String,
    /// What the drawer should have held; none for who may not see reports, as who counts must not know.
    pub expected: Option<i64>,
    /// What was counted.
    pub counted: i64,
    /// What was too much, or with a minus missing; none as that.
    pub difference: Option<i64>,
}

impl Shift {
    /// The same for who may not see what its drawer should have held.
    fn unseen(mut self) -> Self {
        if let Some(end) = &mut self.closed {
            (end.expected, end.difference) = (None, None);
        }
        self
    }
}

/// A shift to be opened.
#[derive(Debug, Clone, Copy)]
pub struct ShiftOpening {
    /// Names the intent: the same again gives the same shift back.
    pub intent_id: Uuid,
    /// What is in the drawer, in minor units.
    pub float_amount: i64,
}

const COLUMNS: &str =
    "number, business_day, currency, float_amount, opened_at, opened_by, closed_at, closed_by, expected, counted";

fn shift(row: &Row<'_>) -> rusqlite::Result<Shift> {
    let closed = match columns::optional_timestamp(row, 6)? {
        Some(at) => {
            let (expected, counted): (i64, i64) = (row.get(8)?, row.get(9)?);
            let difference = Some(counted - expected);
            Some(ShiftEnd { at, by: row.get(7)?, expected: Some(expected), counted, difference })
        }
        None => None,
    };
    Ok(Shift {
        number: row.get(0)?,
        business_day: columns::date(row, 1)?,
        currency: columns::currency(row, 2)?,
        float_amount: row.get(3)?,
        opened_at: columns::timestamp(row, 4)?,
        opened_by: row.get(5)?,
        closed,
    })
}

fn one(conn: &Connection, which: &str, value: impl rusqlite::ToSql) -> Result<Option<Shift>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM shifts WHERE {which}"))?
        .query_row([value], shift)
        .optional()?;
    Ok(found)
}

/// The open shift.
pub(crate) fn open_now(conn: &Connection) -> Result<Option<Shift>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM shifts WHERE closed_at IS NULL"))?
        .query_row([], shift)
        .optional()?;
    Ok(found)
}

/// The shift that an intent opened. How it ended is told to nobody by this.
pub(crate) fn by_intent(conn: &Connection, intent_id: Uuid) -> Result<Option<Shift>, TillError> {
    Ok(one(conn, "intent_id = ?1", intent_id.to_string())?.map(Shift::unseen))
}

/// Closed shifts, the newest first, before a number; with what their drawers should have held where that may be seen.
pub(crate) fn closed(
    conn: &Connection,
    before: Option<i64>,
    limit: u32,
    is_seen: bool,
) -> Result<Vec<Shift>, TillError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM shifts WHERE closed_at IS NOT NULL AND number < ?1 ORDER BY number DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit.clamp(1, SHIFTS_MAX)], shift)?;
    Ok(rows.map(|row| row.map(|shift| if is_seen { shift } else { shift.unseen() })).collect::<Result<_, _>>()?)
}

fn needed(conn: &Connection) -> Result<Shift, TillError> {
    open_now(conn)?.ok_or_else(no_shift)
}

fn no_shift() -> TillError {
    TillError::NoShift("no shift is open: open one with the float in the drawer".to_owned())
}

/// Whether cash may be taken now. Before a first shift was ever opened there is none to be in; afterwards each cash tender is in one. A card
/// needs none: its money is in no drawer, the bank may answer at night, and a sale that completes so is of the next shift.
pub(crate) fn check_cash(conn: &Connection, currency: Currency) -> Result<(), TillError> {
    let shift = open_now(conn)?;
    match shift {
        Some(shift) if shift.currency != currency => Err(TillError::NoShift(format!(
            "the drawer of this shift holds {}, and this sale is in {currency}: take a card",
            shift.currency
        ))),
        Some(_) => Ok(()),
        None if any(conn)? => Err(no_shift()),
        None => Ok(()),
    }
}

fn any(conn: &Connection) -> Result<bool, TillError> {
    Ok(conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM shifts)")?.query_row([], |row| row.get(0))?)
}

/// Opens a shift. The same intent gives the same shift back.
pub(crate) fn open(tx: &Connection, signature: &Signature, opening: ShiftOpening) -> Result<Shift, TillError> {
    if let Some(shift) = by_intent(tx, opening.intent_id)? {
        let is_same = shift.float_amount == opening.float_amount;
        return if is_same { Ok(shift) } else { Err(reused()) };
    }
    if let Some(open) = open_now(tx)? {
        return Err(TillError::ShiftOpen(format!("shift {} is open: close it first", open.number)));
    }
    let settings = settings::read(tx)?;
    check_amount(opening.float_amount, 0, &settings)?;
    let day = settings.business_day(signature.at);
    let number: i64 = tx
        .prepare_cached(
            "INSERT INTO shifts (number, intent_id, currency, float_amount, business_day, opened_at, opened_by, opened_seq)
             VALUES ((SELECT coalesce(max(number), 0) + 1 FROM shifts), ?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING number",
        )?
        .query_row(
            params![
                opening.intent_id.to_string(),
                settings.currency.code(),
                opening.float_amount,
                day.to_string(),
                signature.at.as_millisecond(),
                signature.who(),
                opened_after(tx)?
            ],
            |row| row.get(0),
        )?;
    let details = json!({
        "shift": number, "float": opening.float_amount, "currency": settings.currency, "business_day": day.to_string(),
    });
    audit::append(tx, signature, "shift-opened", None, &details)?;
    needed(tx)
}

/// The last entry of the audit that belongs to no later shift than the one before: the end of that one's Z report. What was done since,
/// while none was open, belongs to the shift that is opened now. What was done before the first one belongs to none.
fn opened_after(conn: &Connection) -> Result<i64, TillError> {
    let last: Option<i64> = conn
        .prepare_cached("SELECT json_extract(report, '$.auditSeq') FROM shifts ORDER BY number DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    last.map_or_else(|| audit::end(conn), Ok)
}

fn reused() -> TillError {
    TillError::IntentReused("this was already asked for with another amount or reason".to_owned())
}

/// Whether an amount can be put into a drawer or taken out: in coins that there are.
fn check_amount(amount: i64, least: i64, settings: &settings::Settings) -> Result<(), TillError> {
    if !(least..=AMOUNT_MAX).contains(&amount) {
        return Err(TillError::InvalidAmount("this is no amount that a drawer holds".to_owned()));
    }
    if !settings.cash.takes(amount) {
        let step = format_amount(settings.cash.step(), settings.currency);
        return Err(TillError::InvalidAmount(format!(
            "there are no coins for this amount: cash comes in steps of {step}"
        )));
    }
    Ok(())
}

/// What the drawer of a shift should hold.
fn expected(conn: &Connection, number: i64) -> Result<i64, TillError> {
    Ok(conn.prepare_cached("SELECT expected FROM drawers WHERE shift = ?1")?.query_row([number], |row| row.get(0))?)
}

fn fault(error: impl std::fmt::Display) -> TillError {
    TillError::Internal(format!("the report of a shift: {error}"))
}

/// Closes the open shift with its last count, and gives its Z report, which never changes from then on. What is unsettled is named on it and
/// stays as it is. The same number again gives the same report back.
pub(crate) fn close(tx: &Connection, signature: &Signature, number: i64) -> Result<ShiftReport, TillError> {
    let signature = &rights::allow(tx, signature, Right::CloseShift, Measure::Whole)?;
    if let Some(report) = z_report(tx, number)? {
        // A click that comes again is of who closed it; to others it is a report like any other.
        if report.made_by != signature.who() {
            rights::allow(tx, signature, Right::ShiftReport, Measure::Whole)?;
        }
        return Ok(report);
    }
    let shift = open_now(tx)?
        .filter(|shift| shift.number == number)
        .ok_or_else(|| TillError::NoShift(format!("shift {number} is not open")))?;
    let expected = expected(tx, number)?;
    let last: Option<(i64, i64)> = tx
        .prepare_cached("SELECT counted, expected FROM drawer_counts WHERE shift = ?1 ORDER BY id DESC LIMIT 1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let counted = match last {
        Some((counted, then)) if then == expected => counted,
        Some(_) => {
            return Err(TillError::CountNeeded(
                "cash went through the drawer since it was counted: count again".to_owned(),
            ));
        }
        None => return Err(TillError::CountNeeded("count the drawer first".to_owned())),
    };
    let mut made = report::make(tx, &shift, signature, ReportKind::Z)?;
    made.drawer.counted = Some(counted);
    made.drawer.difference = Some(counted - expected);
    let text = serde_json::to_string(&made).map_err(fault)?;
    tx.prepare_cached(
        "UPDATE shifts SET expected = ?2, counted = ?3, closed_at = ?4, closed_by = ?5, report = ?6 WHERE number = ?1",
    )?
    .execute(params![number, expected, counted, signature.at.as_millisecond(), signature.who(), text])?;
    let details = json!({
        "shift": number, "expected": expected, "counted": counted, "difference": counted - expected, "currency": shift.currency,
        "unsettled": made.unsettled.len(), "report_sha256": hex(&Sha256::digest(text.as_bytes())),
    });
    audit::append(tx, signature, "shift-closed", None, &details)?;
    Ok(made)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Z report of a closed shift, or without a number the running report of the open one, for who may see it; with the signature of who
/// sees it.
pub(crate) fn report_of(
    conn: &Connection,
    signature: &Signature,
    number: Option<i64>,
) -> Result<(ShiftReport, Signature), TillError> {
    let signature = rights::allow(conn, signature, Right::ShiftReport, Measure::Whole)?;
    let report = match number {
        Some(number) => z_report(conn, number)?.ok_or(TillError::NotFound("report"))?,
        None => report::make(conn, &needed(conn)?, &signature, ReportKind::X)?,
    };
    Ok((report, signature))
}

/// The same for who came with another's PIN: where it was needed, the audit names whose it was.
pub(crate) fn show(tx: &Connection, signature: &Signature, number: Option<i64>) -> Result<ShiftReport, TillError> {
    let (report, signature) = report_of(tx, signature, number)?;
    if signature.approver.is_some() {
        let details = json!({"report": report.kind, "shift": report.number});
        audit::append(tx, &signature, "report-seen", None, &details)?;
    }
    Ok(report)
}

/// Lets who came with another's PIN see how shifts ended: where it was needed, the audit names whose it was.
pub(crate) fn see(tx: &Connection, signature: &Signature) -> Result<(), TillError> {
    let signature = rights::allow(tx, signature, Right::ShiftReport, Measure::Whole)?;
    match signature.approver {
        Some(_) => audit::append(tx, &signature, "shifts-seen", None, &json!({})),
        None => Ok(()),
    }
}

/// The Z report of a closed shift, as it was when it was closed.
pub(crate) fn z_report(conn: &Connection, number: i64) -> Result<Option<ShiftReport>, TillError> {
    let text: Option<Option<String>> = conn
        .prepare_cached("SELECT report FROM shifts WHERE number = ?1")?
        .query_row([number], |row| row.get(0))
        .optional()?;
    text.flatten().map(|text| serde_json::from_str(&text).map_err(fault)).transpose()
}
