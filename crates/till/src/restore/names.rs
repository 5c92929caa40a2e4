//! The names that the till had, each from the number on at which it began.

use crate::TillError;
use rusqlite::{Connection, OptionalExtension as _};

/// The name under which a sale's number was given; the one it has now for a sale that has none.
pub(crate) fn name_of_sale(conn: &Connection, number: Option<i64>) -> Result<String, TillError> {
    name_from(conn, "from_sale", number)
}

/// The name under which the number of a receipt, or of a slip, was given.
pub(crate) fn name_of_receipt(conn: &Connection, number: i64) -> Result<String, TillError> {
    name_from(conn, "from_receipt", Some(number))
}

fn name_from(conn: &Connection, column: &str, number: Option<i64>) -> Result<String, TillError> {
    let sql = format!("SELECT name FROM till_names WHERE {column} <= ?1 ORDER BY position DESC LIMIT 1");
    let name = conn.prepare_cached(&sql)?.query_row([number.unwrap_or(i64::MAX)], |row| row.get(0)).optional()?;
    name.ok_or_else(|| TillError::Internal("the till has lost its names".to_owned()))
}

/// The names that this file's till ever had, the present one last.
pub(crate) fn names(conn: &Connection) -> Result<Vec<String>, TillError> {
    let mut statement = conn.prepare_cached("SELECT name FROM till_names ORDER BY position")?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// Refuses a name that the till had before: what was given under it since is not known here.
pub(crate) fn check_new(conn: &Connection, name: &str) -> Result<(), TillError> {
    let names = names(conn)?;
    if names.last().is_none_or(|now| now == name) || !names.iter().any(|one| one == name) {
        return Ok(());
    }
    Err(TillError::InvalidSetting(
        "this till had that name before, and its numbers are with the bank and on receipts: give it a name that it never had",
    ))
}

/// What a reference at the bank says of the sale that it is for.
pub(super) struct Named {
    /// Its number, where the reference has one.
    pub(super) number: Option<i64>,
    /// This file was there when that number was given. What the lost file gave after the copy is none of this file's, whatever has the
    /// number here.
    pub(super) is_here: bool,
}

/// The sale that a reference names, where it is of a name that this till had before. Of several spans of one name, as older programs
/// allowed it, the last counts.
pub(super) fn named(conn: &Connection, reference: &str) -> Result<Option<Named>, TillError> {
    let Some((name, number)) = reference.rsplit_once('/') else { return Ok(None) };
    // Up to where the next name began. The present one has no next: another file than this one gave its numbers.
    let until: Option<i64> = conn
        .prepare_cached(
            "SELECT next.from_sale FROM till_names AS mine JOIN till_names AS next ON next.position = mine.position + 1
             WHERE mine.name = ?1 ORDER BY mine.position DESC LIMIT 1",
        )?
        .query_row([name], |row| row.get(0))
        .optional()?;
    let Some(until) = until else { return Ok(None) };
    let number = number.parse::<i64>().ok();
    Ok(Some(Named { number, is_here: number.is_some_and(|number| number < until) }))
}
