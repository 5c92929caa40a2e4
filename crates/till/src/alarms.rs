//! Alarms: the bank said another end of an operation than the one that holds here. Money may have moved that this till knows
//! nothing of. Nothing changes by it, and a person must look.

use crate::{Operation, Till, TillError, audit, columns, operations};
use outbox::State;
use protocol::Key;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

/// The bank's other word about an operation that has its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    /// Its place in the audit.
    pub seq: i64,
    /// The operation as it holds here, unchanged.
    pub operation: Operation,
    /// How it ended, or is, by what the bank said.
    pub came: State,
}

impl Till {
    /// The end of the audit, for [`Till::alarms_since`].
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn audit_end(&self) -> Result<i64, TillError> {
        self.read(audit::end).await
    }

    /// The alarms that came after a place in the audit, oldest first.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn alarms_since(&self, place: i64) -> Result<Vec<Alarm>, TillError> {
        self.read(move |conn| since(conn, place)).await
    }
}

/// The alarms that came after a place, and the end of the audit at that moment: the place to look from next.
pub(crate) fn look(conn: &Connection, place: i64) -> Result<(Vec<Alarm>, i64), TillError> {
    Ok((since(conn, place)?, audit::end(conn)?))
}

fn since(conn: &Connection, place: i64) -> Result<Vec<Alarm>, TillError> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, details ->> 'key', details ->> 'came' FROM audit WHERE seq > ?1 AND what = ?2 ORDER BY seq",
    )?;
    let found = statement.query_map((place, audit::LATE_ANSWER), |row| {
        Ok((row.get(0)?, columns::key(row, 1)?, columns::word(row, 2, State::parse)?))
    })?;
    let found: Vec<(i64, Key, State)> = found.collect::<Result<_, _>>()?;
    found
        .into_iter()
        .map(|(seq, key, came)| Ok(Alarm { seq, operation: operations::by_key(conn, key)?, came }))
        .collect()
}

/// The reason to look at an operation that has its end: what the bank said last of another one.
pub(crate) fn reason(conn: &Connection, sale_id: Uuid, key: Key) -> Result<Option<String>, TillError> {
    let came: Option<String> = conn
        .prepare_cached(
            "SELECT details ->> 'came' FROM audit
             WHERE sale_id = ?1 AND what = ?2 AND details ->> 'key' = ?3 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row((sale_id.to_string(), audit::LATE_ANSWER, key.to_string()), |row| row.get(0))
        .optional()?;
    Ok(came.map(|came| format!("{}: the bank says {came}", audit::LATE_ANSWER)))
}
