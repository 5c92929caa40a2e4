//! Late declines: payments that were taken offline and then did not pay. The goods are gone, so each is either collected again, by
//! another payment of the same sale, or written off; and until one of both is done, somebody is told of it.

mod figures;
mod listing;

pub(crate) use figures::of_span;
pub use figures::{LateFigures, LateTotal};
pub use listing::{LateDeclines, LateQuery};
pub(crate) use listing::{by_last, by_tender, list, of_operations};

use crate::{
    CashTaken, Measure, Operation, Right, TenderBegun, TenderKind, TenderState, TillError, amounts::format_amount,
    audit, audit::Signature, columns, editing, offline, pay, pay::NewCard, refunds, rights, sale, sales, settings,
    shifts, tenders, tenders::TenderRow,
};
use checkout::CashDue;
use jiff::Timestamp;
use outbox::{CancelAs, CancelError};
use protocol::{Amount, Currency};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// How far a late decline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LateState {
    /// The bank has not said whether it charged: its people, or ours, must look.
    Attention,
    /// Not charged, and nobody has done anything yet.
    Open,
    /// Another payment for it is with the bank.
    Collecting,
    /// Nothing is owed any more: it was collected, it had paid after all, or its goods came back before.
    Settled,
    /// Given up before the bank's last word, which is awaited.
    WritingOff,
    /// Given up.
    WrittenOff,
}

impl LateState {
    const ALL: [Self; 6] =
        [Self::Attention, Self::Open, Self::Collecting, Self::Settled, Self::WritingOff, Self::WrittenOff];

    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attention => "attention",
            Self::Open => "open",
            Self::Collecting => "collecting",
            Self::Settled => "settled",
            Self::WritingOff => "writing_off",
            Self::WrittenOff => "written_off",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Nothing comes after it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Settled | Self::WrittenOff)
    }
}

/// A payment that was taken offline and did not pay. Amounts in minor units.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LateDecline {
    /// Its place in the order of their coming up.
    pub seq: i64,
    /// The tender that was taken offline: by it, it is collected again or written off.
    pub tender_id: Uuid,
    /// Its sale.
    pub sale_id: Uuid,
    /// The number of that sale.
    pub sale_number: Option<i64>,
    /// The number of that sale's receipt.
    pub receipt_number: Option<i64>,
    /// When the goods were handed over.
    pub taken_at: Timestamp,
    /// When it was known that it does not pay.
    pub declined_at: Option<Timestamp>,
    /// How far it is.
    pub state: LateState,
    /// What is to be collected, or was.
    pub amount: i64,
    /// What of the payment is not, as those goods came back before.
    pub returned: i64,
    /// The currency of both.
    pub currency: Currency,
    /// How the customer can be reached.
    pub contact: Option<String>,
    /// The card payment that was begun last for it: the declined one, or the one that collects again.
    pub operation: Operation,
    /// What was taken for it in cash, where it was collected so.
    pub cash: Option<i64>,
    /// When it came to its end.
    pub ended_at: Option<Timestamp>,
    /// Why it was given up.
    pub reason: Option<String>,
    /// Who gave it up.
    pub written_off_by: Option<String>,
}

/// A payment that collects again what was declined late.
#[derive(Debug, Clone)]
pub struct CollectAgain {
    /// The id given when its dialog opened.
    pub tender_id: Uuid,
    /// The tender that was taken offline.
    pub late_tender_id: Uuid,
    /// What the card reader gave.
    pub card: String,
}

/// Cash that collects again what was declined late: the customer came back with it.
#[derive(Debug, Clone)]
pub struct CollectInCash {
    /// The id given when its dialog opened.
    pub tender_id: Uuid,
    /// The tender that was taken offline.
    pub late_tender_id: Uuid,
    /// What the customer handed over, in minor units: all that is owed, or more.
    pub tendered: i64,
}

/// A row of `late_declines`.
#[derive(Debug, Clone)]
pub(crate) struct LateRow {
    seq: i64,
    tender_id: Uuid,
    last_tender_id: Uuid,
    pub(crate) state: LateState,
    pub(crate) amount: i64,
    returned: i64,
    rounding: i64,
    declined_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    reason: Option<String>,
    written_off_by: Option<String>,
}

const COLUMNS: &str =
    "seq, tender_id, last_tender_id, state, amount, returned, declined_at, ended_at, reason, written_off_by, rounding";

fn late_row(row: &Row<'_>) -> rusqlite::Result<LateRow> {
    Ok(LateRow {
        seq: row.get(0)?,
        tender_id: columns::uuid(row, 1)?,
        last_tender_id: columns::uuid(row, 2)?,
        state: columns::word(row, 3, LateState::read)?,
        amount: row.get(4)?,
        returned: row.get(5)?,
        declined_at: columns::optional_timestamp(row, 6)?,
        ended_at: columns::optional_timestamp(row, 7)?,
        reason: row.get(8)?,
        written_off_by: row.get(9)?,
        rounding: row.get(10)?,
    })
}

/// The late decline in which this tender is the first or the last one.
fn of_tender(conn: &Connection, which: &str, tender_id: Uuid) -> Result<Option<LateRow>, TillError> {
    let found = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM late_declines WHERE {which} = ?1"))?
        .query_row([tender_id.to_string()], late_row)
        .optional()?;
    Ok(found)
}

/// What late declines mean for what their sale is still owed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Since {
    /// Not to be paid any more, though no tender covers it: written off, or its goods came back.
    pub(crate) waived: i64,
    /// What collecting in cash added for the coins, or with a minus took away.
    pub(crate) rounding: i64,
}

/// What became of a sale's payments that were declined after it was completed.
pub(crate) fn since(conn: &Connection, tenders: &[TenderRow]) -> Result<Since, TillError> {
    let mut since = Since::default();
    for tender in tenders.iter().filter(|tender| tender.taken_offline_at.is_some() && !tender.state.counts()) {
        if let Some(row) = of_tender(conn, "tender_id", tender.id)? {
            since.waived += row.returned + if row.state == LateState::WrittenOff { row.amount } else { 0 };
            since.rounding += row.rounding;
        }
    }
    Ok(since)
}

/// What the end of a card payment, or that it needs a look, means where its goods were gone before. Runs in the commit that stores it.
pub(crate) fn settled(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    state: TenderState,
) -> Result<(), TillError> {
    if tender.taken_offline_at.is_none() && tender.replaces.is_none() {
        return Ok(());
    }
    if let Some(row) = of_tender(tx, "last_tender_id", tender.id)? {
        return moved(tx, signature, tender, &row, state);
    }
    let comes_late = matches!(state, TenderState::Declined | TenderState::Cancelled | TenderState::NeedsAttention);
    let sale = sales::by_id(tx, tender.sale_id)?;
    if tender.taken_offline_at.is_none() || !comes_late || sale.completed_at.is_none() {
        return Ok(());
    }
    let attention = state == TenderState::NeedsAttention;
    let returned = if attention { 0 } else { given_back(tx, tender)? };
    let after = match (attention, tender.amount - returned) {
        (true, _) => LateState::Attention,
        (false, 0) => LateState::Settled,
        (false, _) => LateState::Open,
    };
    begin(tx, signature, tender, after, returned, None)
}

/// A sale completed: what of it needs a look is late from now on.
pub(crate) fn completed(tx: &Connection, signature: &Signature, tenders: &[TenderRow]) -> Result<(), TillError> {
    let attention = tenders.iter().filter(|tender| tender.state == TenderState::NeedsAttention);
    attention.into_iter().try_for_each(|tender| begin(tx, signature, tender, LateState::Attention, 0, None))
}

/// What of a payment was to be given back when its end came: goods that came back before, so that nobody owes for them, also where
/// somebody cancelled that refund. In the commit that stores the end, the open ones are still open; they are cancelled right after.
fn given_back(tx: &Connection, tender: &TenderRow) -> Result<i64, TillError> {
    Ok(tender.amount - refunds::left_of(tx, tender)?)
}

/// Whether a payment is being given up before the bank's word: its operation is being cancelled, and can give nothing back.
pub(crate) fn is_written_off(conn: &Connection, tender_id: Uuid) -> Result<bool, TillError> {
    Ok(of_tender(conn, "last_tender_id", tender_id)?.is_some_and(|row| row.state == LateState::WritingOff))
}

fn begin(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    state: LateState,
    returned: i64,
    reason: Option<&str>,
) -> Result<(), TillError> {
    let at = signature.at.as_millisecond();
    let is_declined = matches!(state, LateState::Open | LateState::Settled);
    tx.prepare_cached(
        "INSERT INTO late_declines (tender_id, last_tender_id, state, amount, returned, declined_at, declined_shift, ended_at, ended_shift,
             reason, written_off_by)
         SELECT ?1, ?1, ?2, ?3, ?4, ?5, iif(?5 IS NULL, NULL, number), ?6, iif(?6 IS NULL, NULL, number), ?7, ?8 FROM shift_now",
    )?
    .execute(params![
        tender.id.to_string(),
        state.as_str(),
        tender.amount - returned,
        returned,
        is_declined.then_some(at),
        state.is_final().then_some(at),
        reason,
        reason.map(|_| signature.who())
    ])?;
    note(tx, signature, tender, None, state, json!({"amount": tender.amount - returned, "returned": returned}))
}

/// A step of a late decline whose last payment is now in this state.
fn moved(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    row: &LateRow,
    state: TenderState,
) -> Result<(), TillError> {
    let is_declined = matches!(state, TenderState::Declined | TenderState::Cancelled);
    let returned = if is_declined { given_back(tx, tender)? } else { 0 };
    let left = row.amount - returned;
    let after = match (row.state, state) {
        (LateState::Attention | LateState::Collecting | LateState::WritingOff, TenderState::Approved) => {
            LateState::Settled
        }
        (LateState::Attention | LateState::Collecting | LateState::WritingOff, _) if is_declined && left == 0 => {
            LateState::Settled
        }
        (LateState::Attention | LateState::Collecting, _) if is_declined => LateState::Open,
        (LateState::WritingOff, _) if is_declined => LateState::WrittenOff,
        // It needs a look while it is being collected or given up: that is seen at its operation.
        _ => return Ok(()),
    };
    let at = signature.at.as_millisecond();
    tx.prepare_cached(
        "UPDATE late_declines SET state = ?2, amount = amount - ?3, returned = returned + ?3,
             declined_shift = coalesce(declined_shift, iif(?4 IS NULL, NULL, (SELECT number FROM shift_now))),
             declined_at = coalesce(declined_at, ?4), ended_shift = iif(?5 IS NULL, NULL, (SELECT number FROM shift_now)), ended_at = ?5
         WHERE seq = ?1",
    )?
    .execute(params![
        row.seq,
        after.as_str(),
        returned,
        is_declined.then_some(at),
        after.is_final().then_some(at)
    ])?;
    let details = json!({"amount": left, "returned": row.returned + returned});
    note(tx, signature, tender, Some(row.state), after, details)
}

/// Writes a step into the audit.
fn note(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    before: Option<LateState>,
    after: LateState,
    mut details: serde_json::Value,
) -> Result<(), TillError> {
    details["tender"] = json!(tender.id);
    details["before"] = json!(before);
    details["after"] = json!(after);
    audit::append(tx, signature, "late-decline", Some(tender.sale_id), &details)
}

fn of_late(conn: &Connection, late_tender_id: Uuid) -> Result<LateRow, TillError> {
    of_tender(conn, "tender_id", late_tender_id)?.ok_or(TillError::NotFound("late decline"))
}

/// Collects again what was declined, all of it, by a payment in the place of the last one. The same tender id gives the same operation
/// back; while one is with the bank, there is no other.
pub(crate) fn collect_again(
    tx: &Connection,
    signature: &Signature,
    collect: &CollectAgain,
) -> Result<Operation, TillError> {
    let card = pay::card_token(&collect.card)?;
    let row = of_late(tx, collect.late_tender_id)?;
    let first = offline::card_tender(tx, row.tender_id)?;
    let sale = sales::by_id(tx, first.sale_id)?;
    if let Some(tender) = tenders::by_id(tx, collect.tender_id)? {
        let is_same = tender.collects == Some(row.tender_id);
        let amount = Amount::new(tender.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
        return if is_same { pay::again(tx, signature, &sale, &tender, amount, card) } else { Err(pay::reused()) };
    }
    row.check_to_collect()?;
    let amount = Amount::new(row.amount).map_err(|error| TillError::InvalidAmount(error.to_string()))?;
    let reference = pay::reference(&settings::read(tx)?, &sale)?;
    let (tender_id, replaces, collects) = (collect.tender_id, Some(row.last_tender_id), Some(row.tender_id));
    let new = NewCard { tender_id, amount, card, reference, replaces, collects };
    let operation = pay::begin_card(tx, signature, &sale, new)?;
    tx.prepare_cached("UPDATE late_declines SET state = 'collecting', last_tender_id = ?2 WHERE seq = ?1")?
        .execute(params![row.seq, tender_id.to_string()])?;
    let details = json!({"amount": row.amount, "by": tender_id});
    note(tx, signature, &first, Some(row.state), LateState::Collecting, details)?;
    Ok(operation)
}

impl LateRow {
    fn check_to_collect(&self) -> Result<(), TillError> {
        match self.state {
            LateState::Open => Ok(()),
            LateState::Collecting => {
                Err(TillError::SaleFrozen("this is being collected already: wait for the bank's answer".to_owned()))
            }
            LateState::Attention | LateState::WritingOff => Err(TillError::CardMayBeCharged(
                "the card may be charged: nothing is collected before the bank has said that it was not".to_owned(),
            )),
            LateState::Settled => Err(TillError::AlreadyFinal("nothing is owed any more".to_owned())),
            LateState::WrittenOff => Err(TillError::AlreadyFinal("this was written off".to_owned())),
        }
    }
}

/// What is owed, and an id for the tender that is to collect it.
pub(crate) fn begin_collecting(conn: &Connection, late_tender_id: Uuid) -> Result<TenderBegun, TillError> {
    let row = of_late(conn, late_tender_id)?;
    row.check_to_collect()?;
    let sale = sales::by_id(conn, offline::card_tender(conn, late_tender_id)?.sale_id)?;
    pay::begun(&sale, row.amount)
}

/// Collects again what was declined, all of it, in cash: it goes into the drawer of the open shift, and nothing is owed any more. The
/// same tender id gives the same answer back.
pub(crate) fn collect_in_cash(
    tx: &Connection,
    signature: &Signature,
    collect: &CollectInCash,
) -> Result<CashTaken, TillError> {
    let row = of_late(tx, collect.late_tender_id)?;
    if let Some(tender) = tenders::by_id(tx, collect.tender_id)? {
        let is_same = tender.collects == Some(row.tender_id)
            && tender.kind == TenderKind::Cash
            && tender.tendered == Some(collect.tendered);
        return if is_same { pay::taken(tx, &tender) } else { Err(pay::reused()) };
    }
    row.check_to_collect()?;
    let first = offline::card_tender(tx, row.tender_id)?;
    let sale = sales::by_id(tx, first.sale_id)?;
    shifts::check_cash(tx, sale.currency)?;
    let CashDue { due, rounding } = checkout::cash_due(row.amount, sale.cash).map_err(sale::broken)?;
    if !sale.cash.takes(collect.tendered) {
        return Err(TillError::InvalidAmount("there are no coins for this amount".to_owned()));
    }
    if collect.tendered < due {
        let due = format_amount(due, sale.currency);
        return Err(TillError::InvalidAmount(format!("all of it is collected at once: {due} is owed")));
    }
    let tender = TenderRow {
        id: collect.tender_id,
        sale_id: sale.id,
        position: pay::next_position(&tenders::of_sale(tx, sale.id)?),
        kind: TenderKind::Cash,
        state: TenderState::Taken,
        amount: due,
        tendered: Some(collect.tendered),
        change: Some(collect.tendered - due),
        reference: None,
        replaces: Some(row.last_tender_id),
        collects: Some(row.tender_id),
        created_at: signature.at,
        taken_offline_at: None,
    };
    tenders::insert(tx, &tender)?;
    let details = json!({
        "sale": sale.number, "tender": tender.id, "kind": "cash", "amount": due, "tendered": tender.tendered, "change": tender.change,
        "rounding": rounding, "currency": sale.currency, "replaces": tender.replaces, "collects": tender.collects,
    });
    audit::append(tx, signature, "cash-taken", Some(sale.id), &details)?;
    tx.prepare_cached(
        "UPDATE late_declines SET state = 'settled', last_tender_id = ?2, rounding = ?3, ended_at = ?4,
             ended_shift = (SELECT number FROM shift_now)
         WHERE seq = ?1",
    )?
    .execute(params![row.seq, tender.id.to_string(), rounding, signature.at.as_millisecond()])?;
    let details = json!({"amount": row.amount, "by": tender.id, "cash": due, "rounding": rounding});
    note(tx, signature, &first, Some(row.state), LateState::Settled, details)?;
    pay::taken(tx, &tender)
}

/// Gives a payment up that was taken offline: at once where it is known not to pay; else the bank is told to cancel it, and the loss is
/// there once it says so. The same again changes nothing.
pub(crate) fn write_off(
    tx: &Connection,
    signature: &Signature,
    late_tender_id: Uuid,
    reason: &str,
) -> Result<LateDecline, TillError> {
    let why = || TillError::InvalidText("say why it is written off".to_owned());
    let reason = editing::checked_text(reason, "reason", editing::REASON_CHARS_MAX)?.ok_or_else(why)?;
    let tender = offline::card_tender(tx, late_tender_id)?;
    match of_tender(tx, "tender_id", late_tender_id)? {
        Some(row) => match row.state {
            LateState::WrittenOff | LateState::WritingOff => {}
            LateState::Settled => return Err(TillError::AlreadyFinal("nothing is owed any more".to_owned())),
            LateState::Collecting => {
                return Err(TillError::SaleFrozen(
                    "this is being collected: cancel that payment first, or wait for the bank's answer".to_owned(),
                ));
            }
            LateState::Open | LateState::Attention => give_up(tx, signature, &tender, &row, &reason)?,
        },
        None => give_up_before(tx, signature, &tender, &reason)?,
    }
    by_tender(tx, late_tender_id)?.ok_or_else(|| TillError::Internal("a write-off was not saved".to_owned()))
}

fn give_up(
    tx: &Connection,
    signature: &Signature,
    tender: &TenderRow,
    row: &LateRow,
    reason: &str,
) -> Result<(), TillError> {
    let signature = &rights::allow(tx, signature, Right::WriteOff, Measure::Whole)?;
    let after = if row.state == LateState::Open { LateState::WrittenOff } else { LateState::WritingOff };
    tx.prepare_cached(
        "UPDATE late_declines SET state = ?2, reason = ?3, written_off_by = ?4, ended_at = ?5,
             ended_shift = iif(?5 IS NULL, NULL, (SELECT number FROM shift_now))
         WHERE seq = ?1",
    )?
    .execute(params![
        row.seq,
        after.as_str(),
        reason,
        signature.who(),
        after.is_final().then_some(signature.at.as_millisecond())
    ])?;
    note(tx, signature, tender, Some(row.state), after, json!({"amount": row.amount, "reason": reason}))?;
    if after == LateState::WritingOff { cancel(tx, signature, tender) } else { Ok(()) }
}

/// Gives up what the bank has not answered yet.
fn give_up_before(tx: &Connection, signature: &Signature, tender: &TenderRow, reason: &str) -> Result<(), TillError> {
    let sale = sales::by_id(tx, tender.sale_id)?;
    if tender.taken_offline_at.is_none() || sale.completed_at.is_none() {
        return Err(TillError::NotFound("payment that was taken offline"));
    }
    if !matches!(tender.state, TenderState::Settling | TenderState::NeedsAttention) {
        return Err(TillError::AlreadyFinal("the card has paid: there is nothing to write off".to_owned()));
    }
    let signature = &rights::allow(tx, signature, Right::WriteOff, Measure::Whole)?;
    begin(tx, signature, tender, LateState::WritingOff, 0, Some(reason))?;
    cancel(tx, signature, tender)
}

/// Has the bank told that a payment is not to charge any more, though its goods are gone.
fn cancel(tx: &Connection, signature: &Signature, tender: &TenderRow) -> Result<(), TillError> {
    let operation = offline::of_tender(tx, tender)?;
    let cancelled =
        outbox::cancel(tx, &operation.key, CancelAs::WriteOff, signature.at).map_err(|error| match error {
            CancelError::Sqlite(error) => error.into(),
            error => TillError::AlreadyFinal(error.to_string()),
        })?;
    for operation in std::iter::once(&cancelled.operation).chain(&cancelled.refunds) {
        pay::settled(tx, signature, operation)?;
    }
    Ok(())
}
