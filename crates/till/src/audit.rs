//! The audit: who did what, when, in the commit that did it. The database refuses to change or drop an entry, and each entry is
//! chained to the one before it, so that what is changed past the database shows.

mod chain;

pub use chain::{Break, ChainCheck, ChainProgress};
pub(crate) use chain::{check, register_hash};

use crate::{TillError, columns, people::Person, rights::Approval, settings};
use chain::{Columns, Hash};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// What this program calls itself in the entries that it writes.
const APP_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Who acts, and when: what every change of the file is signed with.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    /// What acts, where no person does: the bank, the command line, a face of the till at which nobody has to log in.
    pub(crate) acting: String,
    pub(crate) at: Timestamp,
    /// Whether it comes from a face of the till with a person before it: only then are lock and rights asked.
    pub(crate) face: Option<Face>,
    /// Who is logged in at that face, once that was looked up.
    pub(crate) person: Option<Person>,
    /// Whose PIN made it allowed, where the person's own right did not reach.
    pub(crate) approver: Option<Person>,
}

/// A face of the till, such as the window.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    /// Of the file, by this program: who logged in before it is not logged in any more.
    pub(crate) opening: Uuid,
    /// Whose PIN came with the command.
    pub(crate) approval: Option<Approval>,
}

impl Signature {
    /// Of something that acts by itself, or for whoever may run programs on the file: neither lock nor rights hold it up.
    pub(crate) fn of_program(who: &str, at: Timestamp) -> Self {
        Self { acting: who.to_owned(), at, face: None, person: None, approver: None }
    }

    /// Of whoever stands before a face of the till.
    pub(crate) fn of_face(who: &str, at: Timestamp, face: Face) -> Self {
        Self { face: Some(face), ..Self::of_program(who, at) }
    }

    /// Whose PIN came with the command.
    pub(crate) fn approval(&self) -> Option<&Approval> {
        self.face.as_ref().and_then(|face| face.approval.as_ref())
    }

    /// The same with nobody's PIN.
    pub(crate) fn without_approval(&self) -> Self {
        let face = self.face.as_ref().map(|face| Face { opening: face.opening, approval: None });
        Self { face, ..self.clone() }
    }

    /// Who is named as the one who acted.
    pub(crate) fn who(&self) -> &str {
        self.person.as_ref().map_or(&self.acting, |person| &person.name)
    }
}

/// The bank, as the one whose word settled a tender.
pub(crate) const BANK: &str = "bank";

/// What an entry about an end that the bank said after another one is called.
pub(crate) const LATE_ANSWER: &str = "late-answer";

/// An entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Its place, without gaps from 1.
    pub seq: i64,
    /// When, by the till's clock.
    pub at: Timestamp,
    /// The offset of the shop's zone from UTC at that moment, in seconds, east positive.
    pub offset_s: i32,
    /// The version of the program that wrote it; none of what was written before versions were.
    pub app_version: Option<String>,
    /// Who: the person's name at that time, or what acted where no person did.
    pub who: String,
    /// The person's id.
    pub person_id: Option<i64>,
    /// Whose PIN approved it, where the person's own right did not reach: the name at that time.
    pub approved_by: Option<String>,
    /// That person's id.
    pub approver_id: Option<i64>,
    /// What was done, such as `payment-begun`.
    pub what: String,
    /// The sale it was done to.
    pub sale_id: Option<Uuid>,
    /// The particulars: before and after, amounts in minor units.
    pub details: Value,
    /// Its hash, in hexadecimal: what the next entry follows.
    pub hash: String,
}

/// Adds an entry. Called inside the transaction that makes the change. One look at the head and one insert, which moves the head.
pub(crate) fn append(
    tx: &Connection,
    signature: &Signature,
    what: &str,
    sale_id: Option<Uuid>,
    details: &Value,
) -> Result<(), TillError> {
    let (head, previous) = head(tx)?;
    let zone = settings::time_zone(tx)?;
    let (sale_id, details) = (sale_id.map(|id| id.to_string()), details.to_string());
    let entry = Columns {
        seq: head + 1,
        at: signature.at.as_millisecond(),
        offset_s: zone.to_offset(signature.at).seconds().into(),
        app_version: Some(APP_VERSION),
        who: signature.who(),
        person_id: signature.person.as_ref().map(|person| person.id),
        approved_by: signature.approver.as_ref().map(|person| person.name.as_str()),
        approver_id: signature.approver.as_ref().map(|person| person.id),
        what,
        sale_id: sale_id.as_deref(),
        details: &details,
    };
    tx.prepare_cached(
        "INSERT INTO audit (seq, at, offset_s, app_version, who, person_id, approved_by, approver_id, what, sale_id, details,
             previous, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        entry.seq,
        entry.at,
        entry.offset_s,
        entry.app_version,
        entry.who,
        entry.person_id,
        entry.approved_by,
        entry.approver_id,
        entry.what,
        entry.sale_id,
        entry.details,
        previous,
        entry.hash(&previous)
    ])?;
    Ok(())
}

/// Where the chain ends.
pub(crate) fn head(conn: &Connection) -> Result<(i64, Hash), TillError> {
    chain::head(conn)?.ok_or_else(|| TillError::Internal("the audit has lost its head".to_owned()))
}

/// The place of the last entry; 0 where there is none.
pub(crate) fn end(conn: &Connection) -> Result<i64, TillError> {
    Ok(conn.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?)
}

/// The entries of one sale, or of all with `None`; oldest first, after `after_seq`.
pub(crate) fn list(
    conn: &Connection,
    sale_id: Option<Uuid>,
    after_seq: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>, TillError> {
    // Two statements: of one that fits both, SQLite would read the whole audit for one sale.
    let which = if sale_id.is_some() { "sale_id = ?2" } else { "?2 IS NULL" };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT seq, at, offset_s, app_version, who, person_id, approved_by, approver_id, what, sale_id, details,
             lower(hex(hash))
         FROM audit WHERE seq > ?1 AND {which} ORDER BY seq LIMIT ?3",
    ))?;
    let rows = statement.query_map(params![after_seq, sale_id.map(|id| id.to_string()), limit], |row| {
        Ok(AuditEntry {
            seq: row.get(0)?,
            at: columns::timestamp(row, 1)?,
            offset_s: row.get(2)?,
            app_version: row.get(3)?,
            who: row.get(4)?,
            person_id: row.get(5)?,
            approved_by: row.get(6)?,
            approver_id: row.get(7)?,
            what: row.get(8)?,
            sale_id: columns::optional_uuid(row, 9)?,
            details: columns::json(row, 10)?,
            hash: row.get(11)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
