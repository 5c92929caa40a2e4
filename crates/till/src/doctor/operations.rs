//! Each operation against the tender or refund that it is of, and within itself.

use super::{Notes, late, sale::TenderFacts};
use crate::{TenderState, TillError, amounts::format_amount, operations::tender_state};
use outbox::{Filter, Kind, Operation, State};
use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;
use uuid::Uuid;

/// Operations that are read at a time.
const PAGE: u32 = 500;

/// An operation as a finding names it.
pub(super) fn subject(operation: &Operation) -> String {
    format!("operation {} ({})", operation.short_code, operation.key)
}

/// A card's tender and its operation: one each, of the same amount, as far as each other.
pub(super) fn check_tender(
    conn: &Connection,
    tender: &TenderFacts,
    currency: &str,
    subject: &str,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let operation = match Uuid::try_parse(&tender.id) {
        Ok(id) => outbox::by_intent(conn, id)?,
        Err(_) => None,
    };
    let Some(operation) = operation else {
        notes.found("operation-missing", subject, format!("it is {}, and its operation is not there", tender.state));
        return Ok(());
    };
    compare(
        &operation,
        Kind::Payment,
        tender.amount,
        currency,
        &tender.state,
        subject,
        "tender-amount",
        "tender-state",
        notes,
    );
    late::check_mark(tender, operation.accepted_offline_at.is_some(), subject, notes);
    check_refunds(conn, tender, currency, subject, &operation, notes)
}

/// An amount as people read it. Of a currency that there is not, nobody knows how: then as it stands in the file.
fn money(amount: i64, currency: &str) -> String {
    match currency.parse() {
        Ok(known) => format!("{} {currency}", format_amount(amount, known)),
        Err(_) => format!("{amount} minor units of {currency}"),
    }
}

#[expect(clippy::too_many_arguments, reason = "two things of five figures each are compared")]
fn compare(
    operation: &Operation,
    kind: Kind,
    amount: i64,
    currency: &str,
    state: &str,
    subject: &str,
    amount_code: &'static str,
    state_code: &'static str,
    notes: &mut Notes<'_>,
) {
    let asked = operation.money.map(|money| (money.amount, money.currency.code()));
    if asked != Some((amount, currency)) || operation.kind != kind {
        let of = asked.map_or_else(|| "nothing".to_owned(), |(amount, currency)| money(amount, currency));
        let ours = money(amount, currency);
        let what = format!("it is of {ours}, and its operation {} asks for {of}", operation.key);
        notes.found(amount_code, subject, what);
    }
    let should = tender_state(operation.state).as_str();
    if state != should {
        let what = format!("it is {state}, and its operation {} is {}", operation.key, operation.state.as_str());
        notes.found(state_code, subject, what);
    }
}

/// The refunds of a tender: each with its operation, and never more than was paid.
fn check_refunds(
    conn: &Connection,
    tender: &TenderFacts,
    currency: &str,
    subject: &str,
    payment: &Operation,
    notes: &mut Notes<'_>,
) -> Result<(), TillError> {
    let mut statement =
        conn.prepare_cached("SELECT id, state, amount, return_id IS NOT NULL, replaces IS NOT NULL FROM refunds WHERE tender_id = ?1 ORDER BY id")?;
    let mut rows = statement.query([&tender.id])?;
    let has_paid = TenderState::read(&tender.state).is_some_and(TenderState::counts);
    let mut given = 0_i128;
    while let Some(row) = rows.next()? {
        let (id, state, amount): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let of = format!("refund {id} of {subject}");
        // What went to a return stays that return's, also where the bank refused it: it is tried again in its place, or paid out.
        let (of_return, in_place): (bool, bool) = (row.get(3)?, row.get(4)?);
        let may_go = !matches!(state.as_str(), "declined" | "cancelled");
        if if has_paid { !in_place && (of_return || may_go) } else { may_go } {
            given += i128::from(amount);
        }
        let operation = match Uuid::try_parse(&id) {
            Ok(id) => outbox::by_intent(conn, id)?,
            Err(_) => None,
        };
        let Some(operation) = operation else {
            notes.found("operation-missing", of, "its operation is not there");
            continue;
        };
        if operation.payment_key != Some(payment.key) {
            notes.found("refund-amount", &of, "its operation gives back another payment");
        }
        compare(&operation, Kind::Refund, amount, currency, &state, &of, "refund-amount", "refund-state", notes);
    }
    let paid = if has_paid { i128::from(tender.amount) } else { 0 };
    if given > paid {
        notes.found("refund-over", subject, format!("{given} is given back of {paid}"));
    }
    Ok(())
}

/// Looks at each operation, and gives their number.
pub(super) fn check_all(conn: &Connection, notes: &mut Notes<'_>) -> Result<u64, TillError> {
    let (mut after_seq, mut done) = (None, 0);
    loop {
        let page = outbox::list(conn, Filter { after_seq, limit: PAGE, ..Filter::default() })?;
        let Some(last) = page.last() else { return Ok(done) };
        after_seq = Some(last.seq);
        for operation in &page {
            check_one(conn, operation, notes)?;
            done += 1;
        }
    }
}

fn check_one(conn: &Connection, operation: &Operation, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let subject = subject(operation);
    let table = match operation.kind {
        Kind::Payment => "tenders",
        Kind::Refund => "refunds",
        Kind::Message => {
            notes.found("operation-strange", subject, "a till sends no messages");
            return Ok(());
        }
    };
    let is_there = conn
        .prepare_cached(&format!("SELECT 1 FROM {table} WHERE id = ?1"))?
        .query_row([operation.intent_id.to_string()], |_| Ok(()))
        .optional()?;
    if is_there.is_none() {
        notes.found("operation-strange", &subject, format!("it belongs to no row of {table}"));
    }
    if operation.settled_at.is_some() != operation.state.is_final() {
        notes.found(
            "operation-state",
            &subject,
            format!("it is {}, and the time of its end says otherwise", operation.state.as_str()),
        );
    }
    check_result(operation, &subject, notes);
    check_body(conn, operation, &subject, notes)
}

/// What the bank said at the end is about this operation.
fn check_result(operation: &Operation, subject: &str, notes: &mut Notes<'_>) {
    let is_said = matches!(operation.state, State::Approved | State::Declined);
    let Some(result) = operation.result.as_ref().filter(|_| is_said) else {
        if is_said {
            notes.found(
                "operation-result",
                subject,
                format!("it is {} without the bank's word", operation.state.as_str()),
            );
        }
        return;
    };
    let differs = |member: &str, should: Value| result.get(member).is_some_and(|is| *is != should);
    let money = operation.money;
    let wrong: [(&str, Option<Value>); 3] = [
        ("status", Some(operation.state.as_str().into())),
        ("amount", money.map(|money| money.amount.into())),
        ("currency", money.map(|money| money.currency.code().into())),
    ];
    for (member, should) in wrong {
        if let Some(should) = should.filter(|should| differs(member, should.clone())) {
            notes.found("operation-result", subject, format!("the bank's word has another {member} than {should}"));
        }
    }
}

/// The bytes that are sent ask for what the row says.
fn check_body(conn: &Connection, operation: &Operation, subject: &str, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let body: Option<Vec<u8>> = conn
        .prepare_cached("SELECT body FROM operations WHERE seq = ?1")?
        .query_row([operation.seq], |row| row.get(0))?;
    let Some(body) = body.filter(|body| !body.is_empty()) else { return Ok(()) };
    let asked: Option<Value> = serde_json::from_slice(&body).ok();
    let amount = asked.as_ref().and_then(|asked| asked.get("amount")?.as_i64());
    if amount != operation.money.map(|money| money.amount) {
        notes.found("operation-request", subject, "the bytes that it sends ask for another amount");
    }
    Ok(())
}
