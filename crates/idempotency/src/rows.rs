//! The SQL of the one table. Everything that writes names the state and the owner that it expects.

use crate::{
    counts::Backlog,
    flight::Name,
    meaning::Meaning,
    record::{Owner, Record, Response, State},
};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use std::sync::Arc;

/// Columns in the order in which [`read`] takes them.
const COLUMNS: &str = "id, scope, key, state, kind, subject, cancel_wanted, owner, created_ms, completed_ms, outcome, reason, \
                       meaning_made, meaning, members, payload, status, content_type, location, body";

/// What a new claim is written with.
#[derive(Clone)]
pub(crate) struct NewClaim {
    pub(crate) scope: Arc<str>,
    pub(crate) key: [u8; 16],
    pub(crate) kind: &'static str,
    pub(crate) version: i64,
    pub(crate) meaning: Meaning,
    pub(crate) payload: Arc<[u8]>,
    pub(crate) owner: Owner,
    pub(crate) now: Timestamp,
}

impl NewClaim {
    /// The row as it stands in the file after [`claim`].
    pub(crate) fn into_record(self, id: i64) -> Record {
        Record {
            id,
            scope: self.scope,
            key: self.key,
            state: State::Processing,
            kind: Some(self.kind.to_owned()),
            subject: None,
            cancel_wanted: false,
            owner: self.owner,
            created_at: self.now,
            completed_at: None,
            response: None,
            meaning: Some((self.version, self.meaning)),
            payload: Some(self.payload),
        }
    }
}

/// Claims the key: one insert under the unique index. None where the key is known already.
pub(crate) fn claim(tx: &Connection, new: &NewClaim) -> rusqlite::Result<Option<i64>> {
    tx.prepare_cached(
        "INSERT INTO operations (scope, key, state, kind, meaning, meaning_made, members, payload, owner, created_ms)
         VALUES (:scope, :key, 0, :kind, :meaning, :made, :members, :payload, :owner, :now)
         ON CONFLICT (scope, key) DO NOTHING RETURNING id",
    )?
    .query_row(
        named_params! {
            ":scope": new.scope, ":key": new.key, ":kind": new.kind, ":meaning": new.meaning.digest, ":made": new.version,
            ":members": new.meaning.members, ":payload": &new.payload[..], ":owner": new.owner.to_column(), ":now": new.now.as_millisecond(),
        },
        |row| row.get(0),
    )
    .optional()
}

/// Writes a tombstone, under which a late original is refused. None where the key is known already.
pub(crate) fn claim_cancelled(
    tx: &Connection,
    scope: &str,
    key: &[u8; 16],
    owner: Owner,
    now: Timestamp,
) -> rusqlite::Result<Option<i64>> {
    tx.prepare_cached(
        "INSERT INTO operations (scope, key, state, owner, created_ms, completed_ms) VALUES (?1, ?2, 2, ?3, ?4, ?4)
         ON CONFLICT (scope, key) DO NOTHING RETURNING id",
    )?
    .query_row((scope, key, owner.to_column(), now.as_millisecond()), |row| row.get(0))
    .optional()
}

/// Reads the row of a key.
pub(crate) fn by_key(connection: &Connection, scope: &str, key: &[u8; 16]) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE scope = ?1 AND key = ?2"))?
        .query_row((scope, key), read)
        .optional()
}

/// Reads a row by the engine's number.
pub(crate) fn by_id(connection: &Connection, id: i64) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE id = ?1"))?
        .query_row([id], read)
        .optional()
}

/// Makes `owner` the owner of a row whose owner is provably dead. False where the row is not processing any more.
pub(crate) fn adopt(tx: &Connection, id: i64, dead: Owner, owner: Owner) -> rusqlite::Result<bool> {
    tx.prepare_cached("UPDATE operations SET owner = ?3 WHERE id = ?1 AND owner = ?2 AND state = 0")?
        .execute((id, dead.to_column(), owner.to_column()))
        .map(|rows| rows == 1)
}

/// Stores a final result. False where the row is not processing any more, is another's, or is wanted cancelled
/// and `even_so` is not set.
pub(crate) fn settle(
    tx: &Connection,
    (id, owner): (i64, Owner),
    outcome: &str,
    subject: Option<&str>,
    response: &Response,
    now: Timestamp,
    even_so: bool,
) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "UPDATE operations SET state = 1, outcome = :outcome, subject = :subject, completed_ms = :now, status = :status,
                content_type = :content_type, location = :location, body = :body, payload = NULL
         WHERE id = :id AND owner = :owner AND state = 0 AND (cancel_wanted = 0 OR :even_so)",
    )?
    .execute(named_params! {
        ":id": id, ":owner": owner.to_column(), ":outcome": outcome, ":subject": subject, ":now": now.as_millisecond(),
        ":status": response.status, ":content_type": response.content_type, ":location": response.location,
        ":body": &response.body[..], ":even_so": even_so,
    })
    .map(|rows| rows == 1)
}

/// Stores that the operation was cancelled.
pub(crate) fn cancelled(tx: &Connection, id: i64, owner: Owner, now: Timestamp) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "UPDATE operations SET state = 2, completed_ms = ?3, payload = NULL WHERE id = ?1 AND owner = ?2 AND state = 0",
    )?
    .execute((id, owner.to_column(), now.as_millisecond()))
    .map(|rows| rows == 1)
}

/// Stores that a person must look. The payload stays: the operation may be tried again after the look.
pub(crate) fn attention(tx: &Connection, id: i64, owner: Owner, reason: &str) -> rusqlite::Result<bool> {
    tx.prepare_cached("UPDATE operations SET state = 3, reason = ?3 WHERE id = ?1 AND owner = ?2 AND state = 0")?
        .execute((id, owner.to_column(), reason))
        .map(|rows| rows == 1)
}

/// Stores that a person must look at a row whose owner is dead and that can't be read. It has no response that could be lost:
/// what stands in these columns while it is processing is what something else wrote there.
pub(crate) fn set_aside(tx: &Connection, scope: &str, key: &[u8; 16], reason: &str) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "UPDATE operations SET state = 3, reason = ?3, status = NULL, content_type = NULL, location = NULL, body = NULL
         WHERE scope = ?1 AND key = ?2 AND state = 0",
    )?
    .execute((scope, key, reason))
    .map(|rows| rows == 1)
}

/// Puts an operation that a person has looked at back to work, and says who ran it last. None where it didn't need attention.
pub(crate) fn requeue(tx: &Connection, scope: &str, key: &[u8; 16]) -> rusqlite::Result<Option<Owner>> {
    tx.prepare_cached(
        "UPDATE operations SET state = 0, reason = NULL WHERE scope = ?1 AND key = ?2 AND state = 3 RETURNING owner",
    )?
    .query_row((scope, key), |row| row.get(0).map(Owner::from_column))
    .optional()
}

/// Stores the wish to cancel a running operation.
pub(crate) fn want_cancelled(tx: &Connection, scope: &str, key: &[u8; 16]) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE operations SET cancel_wanted = 1 WHERE scope = ?1 AND key = ?2 AND state = 0")?
        .execute((scope, key))
        .map(|_| ())
}

/// The keys of rows that are processing, after number `after`, oldest first, each with its number. Nothing more is read of them:
/// this is asked again and again, and what runs may have large payloads.
pub(crate) fn processing(connection: &Connection, after: i64, limit: u32) -> rusqlite::Result<Vec<(i64, Name)>> {
    connection
        .prepare_cached("SELECT id, scope, key FROM operations WHERE state = 0 AND id > ?1 ORDER BY id LIMIT ?2")?
        .query_map((after, limit), |row| Ok((row.get(0)?, (row.get::<_, String>(1)?.into(), row.get(2)?))))?
        .collect()
}

/// Rows that need attention, after number `after`, oldest first.
pub(crate) fn needing_attention(connection: &Connection, after: i64, limit: u32) -> rusqlite::Result<Vec<Record>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM operations WHERE state = 3 AND id > ?1 ORDER BY id LIMIT ?2"))?
        .query_map((after, limit), read)?
        .collect()
}

/// How many rows are processing.
pub(crate) fn count_processing(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM operations WHERE state = 0")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(|count| count.unsigned_abs())
}

/// What is not final, where `epoch` is the one of the living process.
pub(crate) fn backlog(connection: &Connection, epoch: u32) -> rusqlite::Result<Backlog> {
    let ours = Owner { epoch, run: 0 }.to_column();
    connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM operations WHERE state = 0),
                    (SELECT count(*) FROM operations WHERE state = 0 AND owner < ?1),
                    (SELECT created_ms FROM operations WHERE state = 0 ORDER BY id LIMIT 1),
                    (SELECT count(*) FROM operations WHERE state = 3)",
        )?
        .query_row([ours], |row| {
            Ok(Backlog {
                processing: row.get::<_, i64>(0)?.unsigned_abs(),
                not_taken_over: row.get::<_, i64>(1)?.unsigned_abs(),
                oldest_processing: row.get::<_, Option<i64>>(2)?.map(time),
                needing_attention: row.get::<_, i64>(3)?.unsigned_abs(),
            })
        })
}

/// Drops the stored responses of at most `limit` operations that were final before `before`. The rows stay.
pub(crate) fn purge(tx: &Connection, before: Timestamp, limit: u32) -> rusqlite::Result<usize> {
    tx.prepare_cached(
        "UPDATE operations SET status = NULL, content_type = NULL, location = NULL, body = NULL
         WHERE id IN (SELECT id FROM operations WHERE body IS NOT NULL AND completed_ms < ?1 ORDER BY completed_ms LIMIT ?2)",
    )?
    .execute((before.as_millisecond(), limit))
}

/// Counts one more process on this store and gives its number.
pub(crate) fn next_epoch(tx: &Connection) -> rusqlite::Result<u32> {
    tx.query_row("UPDATE operations_epoch SET epoch = epoch + 1 RETURNING epoch", [], |row| row.get(0))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Record> {
    let state = match row.get::<_, i64>(3)? {
        1 => State::Settled { outcome: row.get(10)? },
        2 => State::Cancelled,
        3 => State::NeedsAttention { reason: row.get::<_, Option<String>>(11)?.unwrap_or_default() },
        _ => State::Processing,
    };
    let meaning = match row.get::<_, Option<i64>>(12)? {
        None => None,
        Some(version) => Some((version, Meaning { digest: row.get(13)?, members: row.get(14)? })),
    };
    let response = match row.get::<_, Option<Vec<u8>>>(19)? {
        None => None,
        Some(body) => Some(Response {
            status: row.get(16)?,
            content_type: row.get(17)?,
            location: row.get(18)?,
            body: body.into(),
        }),
    };
    Ok(Record {
        id: row.get(0)?,
        scope: row.get::<_, String>(1)?.into(),
        key: row.get(2)?,
        state,
        kind: row.get(4)?,
        subject: row.get(5)?,
        cancel_wanted: row.get(6)?,
        owner: Owner::from_column(row.get(7)?),
        created_at: time(row.get(8)?),
        completed_at: row.get::<_, Option<i64>>(9)?.map(time),
        response,
        meaning,
        payload: row.get::<_, Option<Vec<u8>>>(15)?.map(Into::into),
    })
}

/// A time out of a column. Only times of [`whole_milliseconds`] are written, so nothing is cut off.
fn time(unix_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The time cut to what a column holds, so that what is told first and what is read later are equal.
pub(crate) fn whole_milliseconds(now: Timestamp) -> Timestamp {
    time(now.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    use std::{collections::BTreeSet, sync::Mutex};

    #[test]
    fn a_look_for_what_is_processing_reads_no_payloads() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::SCHEMA).unwrap();
        let insert = "INSERT INTO operations (scope, key, state, kind, payload, owner, created_ms) VALUES ('a', ?1, 0, 'k', x'', 0, 0)";
        for key in [[1; 16], [2; 16], [3; 16]] {
            connection.execute(insert, [key]).unwrap();
        }
        let columns = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = columns.clone();
        let hook = move |context: AuthContext<'_>| {
            if let AuthAction::Read { column_name, .. } = context.action {
                seen.lock().unwrap().insert(column_name.to_owned());
            }
            Authorization::Allow
        };
        connection.authorizer(Some(hook)).unwrap();
        let name = |key| (Arc::from("a"), [key; 16]);
        assert_eq!(processing(&connection, 1, 9).unwrap(), [(2, name(2)), (3, name(3))]);
        assert_eq!(processing(&connection, 0, 1).unwrap(), [(1, name(1))]);
        assert_eq!(columns.lock().unwrap().iter().collect::<Vec<_>>(), ["id", "key", "scope", "state"]);
    }
}
