//! Each operation against the tender or refund that it is of, and within itself.

use super::{Notes, late, money::Money, sale::TenderFacts};
use crate::{TenderState, TillError, operations::tender_state};
use outbox::{Filter, Kind, Operation, State};
use rusqlite::{Connection, OptionalExtension as _, params};
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
        Ok(id) => match notes.legible(&format!("operation of {subject}"), outbox::by_intent(conn, id))? {
            Some(found) => found,
            None => return Ok(()),
        },
        Err(_) => None,
    };
    let Some(operation) = operation else {
        notes.found("operation-missing", subject, format!("it is {}, and its operation is not there", tender.state));
        return Ok(());
    };
    let codes = ["tender-amount", "tender-state"];
    let row = Row { kind: Kind::Payment, amount: tender.amount, currency, state: &tender.state, subject, codes };
    row.compare(&operation, notes);
    late::check_mark(tender, operation.accepted_offline_at.is_some(), subject, notes);
    check_refunds(conn, tender, currency, subject, &operation, notes)
}

/// A tender or a refund as its row has it, to be compared with its operation.
struct Row<'a> {
    kind: Kind,
    amount: i64,
    currency: &'a str,
    state: &'a str,
    subject: &'a str,
    /// The words for another amount and another state.
    codes: [&'static str; 2],
}

impl Row<'_> {
    fn compare(&self, operation: &Operation, notes: &mut Notes<'_>) {
        let [amount_code, state_code] = self.codes;
        let asked = operation.money.map(|money| (money.amount, money.currency.code()));
        if asked != Some((self.amount, self.currency)) || operation.kind != self.kind {
            let of = asked.map_or_else(|| "nothing".to_owned(), |(amount, currency)| Money(currency).of(amount));
            let ours = Money(self.currency).of(self.amount);
            let what = format!("it is of {ours}, and its operation {} asks for {of}", operation.key);
            notes.found(amount_code, self.subject, what);
        }
        let (is, should) = (self.state, tender_state(operation.state).as_str());
        if is != should {
            let what = format!("it is {is}, and its operation {} is {}", operation.key, operation.state.as_str());
            notes.found(state_code, self.subject, what);
        }
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
    let mut statement = conn.prepare_cached(
        "SELECT id, state, amount, coalesce(return_id, void_id) IS NOT NULL, replaces IS NOT NULL
         FROM refunds WHERE tender_id = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query([&tender.id])?;
    let has_paid = TenderState::read(&tender.state).is_some_and(TenderState::counts);
    let mut given = 0_i128;
    while let Some(row) = rows.next()? {
        let (id, state, amount): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let of = format!("refund {id} of {subject}");
        // What went to a return or a void stays its own, also where the bank refused it: it is tried again in its place, or paid out.
        let (is_leg, in_place): (bool, bool) = (row.get(3)?, row.get(4)?);
        let may_go = !matches!(state.as_str(), "declined" | "cancelled");
        if if has_paid { !in_place && (is_leg || may_go) } else { may_go } {
            given += i128::from(amount);
        }
        let operation = match Uuid::try_parse(&id) {
            Ok(id) => match notes.legible(&format!("operation of {of}"), outbox::by_intent(conn, id))? {
                Some(found) => found,
                None => continue,
            },
            Err(_) => None,
        };
        let Some(operation) = operation else {
            notes.found("operation-missing", of, "its operation is not there");
            continue;
        };
        if operation.payment_key != Some(payment.key) {
            notes.found("refund-amount", &of, "its operation gives back another payment");
        }
        let codes = ["refund-amount", "refund-state"];
        Row { kind: Kind::Refund, amount, currency, state: &state, subject: &of, codes }.compare(&operation, notes);
    }
    let paid = if has_paid { i128::from(tender.amount) } else { 0 };
    if given > paid {
        let money = Money(currency);
        notes.found("refund-over", subject, format!("{} is given back of {}", money.of(given), money.of(paid)));
    }
    Ok(())
}

/// Looks at each operation, and gives their number.
pub(super) fn check_all(conn: &Connection, notes: &mut Notes<'_>) -> Result<u64, TillError> {
    let (mut after_seq, mut done) = (None, 0);
    loop {
        let seqs = seqs_after(conn, after_seq.unwrap_or(i64::MIN))?;
        let Some(last) = seqs.last() else { return Ok(done) };
        let page = match outbox::list(conn, Filter { after_seq, limit: PAGE, ..Filter::default() }) {
            Ok(page) => page,
            // One of them can't be read: each by itself.
            Err(_) => one_by_one(conn, &seqs, notes)?,
        };
        after_seq = Some(*last);
        for operation in &page {
            let looked = check_one(conn, operation, notes);
            notes.part(&subject(operation), looked)?;
        }
        done += seqs.len() as u64;
    }
}

fn seqs_after(conn: &Connection, seq: i64) -> Result<Vec<i64>, TillError> {
    let mut statement = conn.prepare_cached("SELECT seq FROM operations WHERE seq > ?1 ORDER BY seq LIMIT ?2")?;
    let seqs = statement.query_map(params![seq, PAGE], |row| row.get(0))?;
    Ok(seqs.collect::<Result<_, _>>()?)
}

/// Those of these operations that can be read; the others are named.
fn one_by_one(conn: &Connection, seqs: &[i64], notes: &mut Notes<'_>) -> Result<Vec<Operation>, TillError> {
    let mut legible = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let filter = Filter { after_seq: Some(seq - 1), limit: 1, ..Filter::default() };
        if let Some(found) = notes.legible(&format!("operation number {seq}"), outbox::list(conn, filter))? {
            legible.extend(found);
        }
    }
    Ok(legible)
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
            let should = match (member, money) {
                ("amount", Some(money)) => Money(money.currency.code()).of(money.amount),
                _ => should.as_str().unwrap_or_default().to_owned(),
            };
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
