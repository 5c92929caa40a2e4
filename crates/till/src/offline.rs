//! Taken offline: goods handed over before the bank has answered, at the shop's risk and within its limits. The payment goes on being
//! tried; what is computed against the limits is computed from the file, in the commit that takes the risk.

use crate::{
    Measure, OfflineLimits, Operation, Right, SaleState, Settings, TenderKind, TillError, amounts::format_amount,
    audit, audit::Signature, columns, editing, operations, pay, rights, sales, settings, tenders, tenders::TenderRow,
};
use jiff::{SignedDuration, Timestamp};
use outbox::{AcceptError, State};
use protocol::Currency;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// Characters of a contact at most.
const CONTACT_CHARS_MAX: usize = 200;

/// An open card payment whose goods are to be handed over.
#[derive(Debug, Clone)]
pub struct TakeOffline {
    /// Its tender.
    pub tender_id: Uuid,
    /// How the customer can be reached, if the card turns out not to pay: a name, a number, an address. No card numbers.
    pub contact: Option<String>,
    /// It was seen that it is over the limit, and who may take it all the same does.
    pub over_limit: bool,
}

/// What somebody must know before taking a payment offline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfflineAsk {
    /// The payment's tender.
    pub tender_id: Uuid,
    /// What would be at risk with it, in minor units.
    pub amount: i64,
    /// Its currency.
    pub currency: Currency,
    /// What is at risk already, in minor units of the shop's currency.
    pub stored: i64,
    /// How much may be, together.
    pub sum_max: i64,
    /// How much may be, with one payment.
    pub payment_max: i64,
    /// How many payments are at risk already.
    pub payments: i64,
    /// How many may be.
    pub count_max: u32,
    /// When the oldest of them was clicked.
    pub oldest_at: Option<Timestamp>,
    /// From which age of it on nothing more is taken, in hours.
    pub age_max_h: u32,
    /// Which limits it is over.
    pub over: Vec<OverLimit>,
    /// It was taken offline already.
    pub is_taken: bool,
    /// Cash may be taken in its place: it was never sent.
    pub cash_instead: bool,
}

/// A limit that a payment is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OverLimit {
    /// It is in another currency than the limits.
    Currency,
    /// For one payment.
    Payment,
    /// For all together.
    Sum,
    /// Of their number.
    Count,
    /// Of the age of the oldest.
    Age,
}

/// What would be taken offline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Risk {
    pub(crate) amount: i64,
    pub(crate) currency: Currency,
    /// It is wanted over the limit.
    pub(crate) over_limit: bool,
}

/// That it may be, and who says so.
pub(crate) struct Taking {
    pub(crate) signature: Signature,
    stored: Stored,
    over_limit: bool,
}

/// What is at risk already.
#[derive(Debug, Clone, Copy)]
struct Stored {
    amount: i64,
    payments: i64,
    oldest_at: Option<Timestamp>,
}

fn stored(conn: &Connection) -> Result<Stored, TillError> {
    Ok(conn.prepare_cached("SELECT amount, payments, oldest_at FROM offline_stored")?.query_row([], |row| {
        let oldest_at = columns::optional_timestamp(row, 2)?;
        Ok(Stored { amount: row.get(0)?, payments: row.get(1)?, oldest_at })
    })?)
}

/// Whether the clock was set back behind what is stored, so that nobody can tell how old that is. Small steps are a clock being kept.
fn is_behind(age: SignedDuration) -> bool {
    age < -SignedDuration::from_mins(5)
}

/// Which limits a payment would be over. The file's own trigger says the same.
fn over(shop: &Settings, risk: Risk, stored: Stored, now: Timestamp) -> Vec<OverLimit> {
    let OfflineLimits { payment_max, sum_max, count_max, age_max_h } = shop.offline;
    let is_old = stored.oldest_at.is_some_and(|at| {
        let age = now.duration_since(at);
        age >= SignedDuration::from_hours(i64::from(age_max_h)) || is_behind(age)
    });
    [
        (OverLimit::Currency, risk.currency != shop.currency),
        (OverLimit::Payment, risk.amount > payment_max),
        (OverLimit::Sum, risk.amount.saturating_add(stored.amount) > sum_max),
        (OverLimit::Count, stored.payments >= i64::from(count_max)),
        (OverLimit::Age, is_old),
    ]
    .into_iter()
    .filter_map(|(limit, is_over)| is_over.then_some(limit))
    .collect()
}

/// The refusal, with the figures.
fn refusal(shop: &Settings, risk: Risk, stored: Stored, over: &[OverLimit], now: Timestamp) -> TillError {
    let amount = |minor_units| format_amount(minor_units, shop.currency);
    let words = over.iter().map(|limit| match limit {
        OverLimit::Currency => format!("it is in {}, and the limits are in {}", risk.currency, shop.currency),
        OverLimit::Payment => format!(
            "{} is over the limit of {} for one payment",
            format_amount(risk.amount, risk.currency),
            amount(shop.offline.payment_max)
        ),
        OverLimit::Sum => format!(
            "with the {} stored it comes to {}, over the limit of {} together",
            amount(stored.amount),
            amount(risk.amount.saturating_add(stored.amount)),
            amount(shop.offline.sum_max)
        ),
        OverLimit::Count => {
            format!("{} payments are stored, of {} that may be", stored.payments, shop.offline.count_max)
        }
        OverLimit::Age if stored.oldest_at.is_some_and(|at| is_behind(now.duration_since(at))) => {
            "the clock was set back, so that nobody can tell how long the oldest that is stored has waited".to_owned()
        }
        OverLimit::Age => format!("the oldest that is stored has waited for {} h or more", shop.offline.age_max_h),
    });
    let words = words.collect::<Vec<_>>().join("; ");
    TillError::OfflineLimit(format!("over the offline limit: {words}. Wait for the bank, or ask a manager"))
}

/// Whether a payment may be taken offline at this moment, and by whose word.
///
/// # Errors
/// [`TillError::OfflineLimit`] with the figures; [`TillError::NotAllowed`] where it is wanted over the limit by somebody who may not.
pub(crate) fn allow(tx: &Connection, signature: &Signature, shop: &Settings, risk: Risk) -> Result<Taking, TillError> {
    let stored = stored(tx)?;
    let over = over(shop, risk, stored, signature.at);
    if over.is_empty() {
        return Ok(Taking { signature: signature.clone(), stored, over_limit: false });
    }
    let exceeding = if risk.over_limit { exceeding(tx, signature)? } else { None };
    let signature = exceeding.ok_or_else(|| refusal(shop, risk, stored, &over, signature.at))?;
    Ok(Taking { signature, stored, over_limit: true })
}

/// Who takes a payment over the limits: a person who may. Nobody, where people are not told apart.
fn exceeding(tx: &Connection, signature: &Signature) -> Result<Option<Signature>, TillError> {
    let signed = rights::allow(tx, signature, Right::OfflineOverLimit, Measure::Whole)?;
    Ok(signed.person.is_some().then_some(signed))
}

/// Writes the mark beside a tender, with its entry of the audit.
pub(crate) fn mark(tx: &Connection, taking: &Taking, tender_id: Uuid, contact: Option<&str>) -> Result<(), TillError> {
    let Taking { signature, stored, over_limit } = taking;
    tx.prepare_cached("INSERT INTO taken_offline (tender_id, at, over_limit, contact) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![tender_id.to_string(), signature.at.as_millisecond(), over_limit, contact])?;
    let tender = tenders::by_id(tx, tender_id)?.ok_or(TillError::NotFound("payment"))?;
    // Not the contact itself: it is the customer's to have taken away, and the audit stays.
    let details = json!({
        "tender": tender_id, "amount": tender.amount, "stored": stored.amount, "payments": stored.payments,
        "over_limit": over_limit, "contact": contact.is_some(),
    });
    audit::append(tx, signature, "payment-taken-offline", Some(tender.sale_id), &details)
}

/// Takes an open card payment offline, and completes its sale where that was the last of it. The same again changes nothing.
pub(crate) fn take(tx: &Connection, signature: &Signature, take: &TakeOffline) -> Result<Operation, TillError> {
    let contact = checked_contact(take.contact.as_deref())?;
    let tender = card_tender(tx, take.tender_id)?;
    let operation = of_tender(tx, &tender)?;
    if tender.taken_offline_at.is_some() {
        return operations::show(tx, &operation);
    }
    let sale = sales::by_id(tx, tender.sale_id)?;
    if sale.state != SaleState::Paying {
        return Err(TillError::SaleChanged("the goods of this sale were handed over before".to_owned()));
    }
    if operation.state == State::NeedsAttention {
        return Err(TillError::NeedsLook(
            "somebody must look at this payment first: the card may be charged".to_owned(),
        ));
    }
    let shop = settings::read(tx)?;
    let risk = Risk { amount: tender.amount, currency: sale.currency, over_limit: take.over_limit };
    // What can't be taken any more is said before what is over a limit.
    let accepted = outbox::accept_offline(tx, &operation.key, signature.at).map_err(|error| match error {
        AcceptError::Final(operation) => {
            TillError::AlreadyFinal(format!("there is nothing to take offline: it is {} already", operation.state))
        }
        AcceptError::CancelWished(_) => {
            TillError::AlreadyFinal("it is being cancelled: wait for the bank's answer".to_owned())
        }
        AcceptError::Unknown => TillError::NotFound("payment"),
        AcceptError::Sqlite(error) => error.into(),
    })?;
    let taking = allow(tx, signature, &shop, risk)?;
    mark(tx, &taking, tender.id, contact.as_deref())?;
    pay::complete_if_paid(tx, signature, sale.id)?;
    operations::show(tx, &accepted)
}

/// The sales that an older program left waiting for what it took offline, though nothing else is to be paid of them: there, a sale completed
/// by the bank's word alone.
pub(crate) fn left_waiting(conn: &Connection) -> Result<Vec<Uuid>, TillError> {
    let mut statement = conn.prepare(
        "SELECT DISTINCT sales.id FROM taken_offline CROSS JOIN tenders ON tenders.id = taken_offline.tender_id
             CROSS JOIN sales ON sales.id = tenders.sale_id
         WHERE taken_offline.settled_at IS NULL AND sales.state = 'paying' AND sales.voided_at IS NULL
             AND sales.total < sales.cash_step + (SELECT sum(paying.amount) FROM tenders AS paying
                 WHERE paying.sale_id = sales.id AND paying.state NOT IN ('declined', 'cancelled'))
             AND NOT EXISTS (SELECT 1 FROM tenders AS open WHERE open.sale_id = sales.id AND open.state IN ('settling', 'needs_attention')
                 AND NOT EXISTS (SELECT 1 FROM taken_offline AS taken WHERE taken.tender_id = open.id))
         ORDER BY sales.number",
    )?;
    let rows = statement.query_map([], |row| columns::uuid(row, 0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What taking this payment offline would mean.
pub(crate) fn ask(conn: &Connection, tender_id: Uuid, now: Timestamp) -> Result<OfflineAsk, TillError> {
    let tender = card_tender(conn, tender_id)?;
    let operation = of_tender(conn, &tender)?;
    let (shop, sale, stored) = (settings::read(conn)?, sales::by_id(conn, tender.sale_id)?, stored(conn)?);
    let risk = Risk { amount: tender.amount, currency: sale.currency, over_limit: false };
    let is_taken = tender.taken_offline_at.is_some();
    Ok(OfflineAsk {
        tender_id,
        amount: tender.amount,
        currency: sale.currency,
        stored: stored.amount,
        sum_max: shop.offline.sum_max,
        payment_max: shop.offline.payment_max,
        payments: stored.payments,
        count_max: shop.offline.count_max,
        oldest_at: stored.oldest_at,
        age_max_h: shop.offline.age_max_h,
        over: if is_taken { Vec::new() } else { over(&shop, risk, stored, now) },
        is_taken,
        cash_instead: operation.state == State::Saved && !is_taken && sale.state == SaleState::Paying,
    })
}

/// Notes how the customer of a payment that was taken offline can be reached, or takes the note away.
pub(crate) fn note_contact(
    tx: &Connection,
    signature: &Signature,
    tender_id: Uuid,
    contact: Option<&str>,
) -> Result<(), TillError> {
    let after = checked_contact(contact)?;
    let tender = card_tender(tx, tender_id)?;
    if tender.taken_offline_at.is_none() {
        return Err(TillError::NotFound("payment that was taken offline"));
    }
    let before = self::contact(tx, tender_id)?;
    if before == after {
        return Ok(());
    }
    tx.prepare_cached("UPDATE taken_offline SET contact = ?2 WHERE tender_id = ?1")?
        .execute(params![tender_id.to_string(), after])?;
    let details = json!({"tender": tender_id, "before": before.is_some(), "after": after.is_some()});
    audit::append(tx, signature, "contact-noted", Some(tender.sale_id), &details)
}

/// How the customer can be reached.
pub(crate) fn contact(conn: &Connection, tender_id: Uuid) -> Result<Option<String>, TillError> {
    let found = conn
        .prepare_cached("SELECT contact FROM taken_offline WHERE tender_id = ?1")?
        .query_row([tender_id.to_string()], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

fn checked_contact(contact: Option<&str>) -> Result<Option<String>, TillError> {
    Ok(contact.map(|contact| editing::checked_text(contact, "contact", CONTACT_CHARS_MAX)).transpose()?.flatten())
}

/// A card's tender.
pub(crate) fn card_tender(conn: &Connection, id: Uuid) -> Result<TenderRow, TillError> {
    tenders::by_id(conn, id)?.filter(|tender| tender.kind == TenderKind::Card).ok_or(TillError::NotFound("payment"))
}

/// The one operation of a card's tender.
pub(crate) fn of_tender(conn: &Connection, tender: &TenderRow) -> Result<outbox::Operation, TillError> {
    let found = outbox::by_intent(conn, tender.id)?;
    found.ok_or_else(|| TillError::Internal("a card's tender has no operation".to_owned()))
}
