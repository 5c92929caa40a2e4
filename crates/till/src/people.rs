//! People: cashiers and managers, who of them is logged in, and their wrong tries at a PIN.
//!
//! A file with no people has no lock: everybody is *the cashier*, as on the first start. With the first person, who is a manager,
//! that ends: from then on a face of the till changes nothing while nobody is logged in, and every start is locked.

use crate::{
    TillError, audit,
    audit::Signature,
    columns, pins, rights,
    rights::{Measure, Right},
};
use jiff::Timestamp;
use protocol::{holds_card_number, is_unseen};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use uuid::Uuid;

/// Characters of a name at most.
const NAME_CHARS_MAX: usize = 40;
/// How the audit calls those who are no person.
const TAKEN: [&str; 6] = [audit::BANK, "cashier", "command line", "restore", "window", "till"];

/// What a person is at the till.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sells.
    Cashier,
    /// Sells, and answers for the till: by default may do all.
    Manager,
}

impl Role {
    /// The word in the database and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cashier => "cashier",
            Self::Manager => "manager",
        }
    }

    pub(crate) fn read(word: &str) -> Option<Self> {
        [Self::Cashier, Self::Manager].into_iter().find(|role| role.as_str() == word)
    }
}

/// Somebody who works here, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// The id, never another's.
    pub id: i64,
    /// The name, nobody else's: the audit and the lock screen call the person so.
    pub name: String,
    /// What the person is.
    pub role: Role,
    /// Whether the person still works here. Nobody is deleted: the audit names them.
    pub active: bool,
    /// Wrong PINs in a row.
    pub wrong_tries: u32,
    /// When the last of them was counted.
    #[serde(skip)]
    pub(crate) wrong_at: Option<Timestamp>,
}

/// Somebody to be added.
#[derive(Clone)]
pub struct NewPerson {
    /// 1 to 40 characters, nobody else's.
    pub name: String,
    /// The first one must be a manager.
    pub role: Role,
    /// 4 to 12 digits that are not the first that come to mind.
    pub pin: String,
}

impl fmt::Debug for NewPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPerson").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// How somebody is to be from now on.
#[derive(Debug, Clone)]
pub struct PersonChange {
    /// Who.
    pub id: i64,
    /// As in [`NewPerson`].
    pub name: String,
    /// The role.
    pub role: Role,
    /// Whether the person works here.
    pub active: bool,
}

/// Who stands at the till.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Somebody must log in before anything is changed.
    pub locked: bool,
    /// Who is logged in; none while it is locked, and where there are no people.
    pub person: Option<Person>,
}

const COLUMNS: &str = "id, name, role, active, wrong_tries, wrong_at";

fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
    Ok(Person {
        id: row.get(0)?,
        name: row.get(1)?,
        role: columns::word(row, 2, Role::read)?,
        active: row.get(3)?,
        wrong_tries: row.get(4)?,
        wrong_at: columns::optional_timestamp(row, 5)?,
    })
}

/// Whether there are people at all.
pub(crate) fn exist(conn: &Connection) -> Result<bool, TillError> {
    Ok(conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM people)")?.query_row([], |row| row.get(0))?)
}

/// Everybody, those who left too, by name.
pub(crate) fn list(conn: &Connection) -> Result<Vec<Person>, TillError> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM people ORDER BY name"))?;
    let rows = statement.query_map([], person)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn by_id(conn: &Connection, id: i64) -> Result<Person, TillError> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM people WHERE id = ?1"))?
        .query_row([id], person)
        .optional()?
        .ok_or(TillError::NotFound("person"))
}

/// Who logged in since the program opened the file. Somebody who left is not logged in any more.
pub(crate) fn logged_in(conn: &Connection, opening: Uuid) -> Result<Option<Person>, TillError> {
    let found = conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM people
             WHERE active = 1 AND id = (SELECT person_id FROM sessions WHERE id = 1 AND opening = ?1)"
        ))?
        .query_row([opening.to_string()], person)
        .optional()?;
    Ok(found)
}

/// Who stands at the till.
pub(crate) fn session(conn: &Connection, opening: Uuid) -> Result<Session, TillError> {
    let person = logged_in(conn, opening)?;
    Ok(Session { locked: person.is_none() && exist(conn)?, person })
}

/// Logs a person in whose PIN was right.
pub(crate) fn log_in(tx: &Connection, signature: &Signature, id: i64) -> Result<Session, TillError> {
    let person = by_id(tx, id)?;
    let Some(face) = &signature.face else { return session_of_nobody() };
    if !person.active {
        return Err(inactive(&person));
    }
    let before = logged_in(tx, face.opening)?;
    if before.as_ref().map(|before| before.id) != Some(id) {
        tx.prepare_cached(
            "INSERT INTO sessions (id, person_id, opening, since) VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET person_id = excluded.person_id, opening = excluded.opening, since = excluded.since",
        )?
        .execute(params![id, face.opening.to_string(), signature.at.as_millisecond()])?;
        let details = json!({"role": person.role, "before": before.map(|before| before.name)});
        let signature = Signature { person: Some(person), ..signature.clone() };
        audit::append(tx, &signature, "logged-in", None, &details)?;
    }
    session(tx, face.opening)
}

/// Locks the till: the sale in front stays as it is. Where there are no people there is no lock.
pub(crate) fn lock(tx: &Connection, signature: &Signature) -> Result<Session, TillError> {
    let Some(face) = &signature.face else { return session_of_nobody() };
    if let Some(person) = logged_in(tx, face.opening)? {
        tx.prepare_cached("DELETE FROM sessions")?.execute([])?;
        let signature = Signature { person: Some(person), ..signature.clone() };
        audit::append(tx, &signature, "locked", None, &json!({}))?;
    }
    session(tx, face.opening)
}

fn session_of_nobody() -> Result<Session, TillError> {
    Err(TillError::NotAllowed("a program that acts by itself does not log in".to_owned()))
}

fn inactive(person: &Person) -> TillError {
    TillError::NotAllowed(format!("{} does not work here any more: a manager can set that back", person.name))
}

/// The name as it is kept, if it is one.
fn checked_name(name: &str) -> Result<&str, TillError> {
    let name = name.trim();
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count()) && !name.contains(is_unseen);
    if !fits {
        return Err(TillError::InvalidPerson(
            "a name has 1 to 40 characters on one line, and all of them are seen".to_owned(),
        ));
    }
    if holds_card_number(name) {
        return Err(TillError::InvalidPerson("a name must not hold the number of a card".to_owned()));
    }
    if TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        return Err(TillError::InvalidPerson(format!(
            "“{name}” is what the audit calls somebody else: take another name"
        )));
    }
    Ok(name)
}

/// Adds a person whose PIN was hashed. The first one, a manager, is logged in by it.
pub(crate) fn add(tx: &Connection, signature: &Signature, new: &NewPerson, pin: &str) -> Result<Person, TillError> {
    let name = checked_name(&new.name)?;
    let is_first = !exist(tx)?;
    if is_first && new.role != Role::Manager {
        return Err(TillError::InvalidPerson("the first person is a manager: only a manager can add more".to_owned()));
    }
    let signature = rights::allow(tx, signature, Right::People, Measure::Whole)?;
    tx.prepare_cached(
        "INSERT INTO people (name, role, pin, active, created_at, updated_at) VALUES (?1, ?2, ?3, 1, ?4, ?4)",
    )?
    .execute(params![name, new.role.as_str(), pin, signature.at.as_millisecond()])
    .map_err(|error| name_taken(error, name))?;
    let person = by_id(tx, tx.last_insert_rowid())?;
    let details = json!({"person": person.id, "name": person.name, "role": person.role});
    audit::append(tx, &signature, "person-added", None, &details)?;
    if is_first && signature.face.is_some() {
        log_in(tx, &signature, person.id)?;
    }
    Ok(person)
}

fn name_taken(error: rusqlite::Error, name: &str) -> TillError {
    if error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) {
        return TillError::InvalidPerson(format!("there is a {name} already: the audit must tell people apart"));
    }
    error.into()
}

/// Changes name, role, or whether the person works here.
pub(crate) fn change(tx: &Connection, signature: &Signature, new: &PersonChange) -> Result<Person, TillError> {
    let signature = &rights::allow(tx, signature, Right::People, Measure::Whole)?;
    let name = checked_name(&new.name)?;
    let before = by_id(tx, new.id)?;
    if (before.name.as_str(), before.role, before.active) == (name, new.role, new.active) {
        return Ok(before);
    }
    let still_manages = new.role == Role::Manager && new.active;
    let is_manager = |person: &Person| person.role == Role::Manager && person.active && person.id != new.id;
    if !still_manages && !list(tx)?.iter().any(is_manager) {
        return Err(TillError::InvalidPerson(
            "this is the only active manager: make somebody else one first".to_owned(),
        ));
    }
    tx.prepare_cached("UPDATE people SET name = ?2, role = ?3, active = ?4, updated_at = ?5 WHERE id = ?1")?
        .execute(params![new.id, name, new.role.as_str(), new.active, signature.at.as_millisecond()])
        .map_err(|error| name_taken(error, name))?;
    let after = by_id(tx, new.id)?;
    let shown = |person: &Person| json!({"name": person.name, "role": person.role, "active": person.active});
    let details = json!({"person": new.id, "before": shown(&before), "after": shown(&after)});
    audit::append(tx, signature, "person-changed", None, &details)?;
    Ok(after)
}

/// Gives a person another PIN, which was hashed, and forgets the wrong tries: one's own, else by the right to change people.
pub(crate) fn set_pin(tx: &Connection, signature: &Signature, id: i64, pin: &str) -> Result<(), TillError> {
    let acting = rights::acting(tx, signature)?;
    let approval = acting.approval();
    let own = acting.person.as_ref().filter(|person| person.id == id);
    let is_own_with_pin =
        own.is_some_and(|own| approval.is_some_and(|approval| approval.person_id == id && approval.take(own)));
    let signature = if is_own_with_pin { acting } else { rights::allow(tx, signature, Right::People, Measure::Whole)? };
    let person = by_id(tx, id)?;
    tx.prepare_cached("UPDATE people SET pin = ?2, wrong_tries = 0, updated_at = ?3 WHERE id = ?1")?
        .execute(params![id, pin, signature.at.as_millisecond()])?;
    audit::append(tx, &signature, "pin-set", None, &json!({"person": id, "name": person.name}))
}

/// What a try at a PIN begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Try {
    /// Too early after wrong ones.
    Wait {
        /// Seconds left.
        wait_s: u32,
    },
    /// Counted as wrong until it turns out right.
    Counted {
        /// The hash to compare with.
        kept: String,
        /// Wrong tries with this one.
        tries: u32,
    },
}

/// Counts a try before its PIN is looked at: so neither a kill nor many tries at once get past the count. What is waited for counts from
/// the last wrong try. A clock that was set back to before it has the wait begin anew, so that it never gets shorter by that, and never
/// longer than one wait from now on.
pub(crate) fn begin_try(tx: &Connection, id: i64, now: Timestamp) -> Result<Try, TillError> {
    let person = by_id(tx, id)?;
    if !person.active {
        return Err(inactive(&person));
    }
    let wait_s = i64::from(pins::wait_s(person.wrong_tries));
    if let Some(wrong_at) = person.wrong_at.filter(|_| wait_s > 0) {
        let gone_ms = now.as_millisecond() - wrong_at.as_millisecond();
        if gone_ms < 0 {
            tx.prepare_cached("UPDATE people SET wrong_at = ?2 WHERE id = ?1")?
                .execute(params![id, now.as_millisecond()])?;
        }
        let left_ms = wait_s * 1_000 - gone_ms.max(0);
        if left_ms > 0 {
            return Ok(Try::Wait { wait_s: u32::try_from((left_ms + 999) / 1_000).unwrap_or(u32::MAX) });
        }
    }
    let counted = tx
        .prepare_cached(
            "UPDATE people SET wrong_tries = min(wrong_tries + 1, 1000000), wrong_at = ?2 WHERE id = ?1 RETURNING pin, wrong_tries",
        )?
        .query_row(params![id, now.as_millisecond()], |row| Ok(Try::Counted { kept: row.get(0)?, tries: row.get(1)? }))?;
    Ok(counted)
}

/// Forgets the wrong tries of a person whose PIN was right.
pub(crate) fn was_right(tx: &Connection, id: i64) -> Result<(), TillError> {
    tx.prepare_cached("UPDATE people SET wrong_tries = 0 WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Notes a PIN that was wrong.
pub(crate) fn was_wrong(tx: &Connection, signature: &Signature, id: i64, tries: u32) -> Result<(), TillError> {
    let signature = match &signature.face {
        Some(face) => Signature { person: logged_in(tx, face.opening)?, ..signature.clone() },
        None => signature.clone(),
    };
    let details = json!({"person": id, "name": by_id(tx, id)?.name, "tries": tries, "wait_s": pins::wait_s(tries)});
    audit::append(tx, &signature, "pin-wrong", None, &details)
}
