//! How values stand in the file.

use jiff::Timestamp;
use protocol::{Currency, Key};
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Type, ValueRef};
use uuid::Uuid;

use crate::operations::Kind;
use crate::state::{Next, State};

/// A time as the file keeps it: Unix milliseconds. Finer parts are cut off.
pub(crate) fn ms(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// A time as it comes back out of the file.
pub(crate) fn kept(at: Timestamp) -> rusqlite::Result<Timestamp> {
    Timestamp::from_millisecond(ms(at)).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// A time out of the file.
pub(crate) struct Ms(pub(crate) Timestamp);

impl FromSql for Ms {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let ms = value.as_i64()?;
        Timestamp::from_millisecond(ms).map(Ms).map_err(FromSqlError::other)
    }
}

/// Values that stand as a word or as 16 bytes, out of the file.
pub(crate) struct Stored<T>(pub(crate) T);

fn word<T>(value: ValueRef<'_>, parse: impl FnOnce(&str) -> Option<T>) -> FromSqlResult<Stored<T>> {
    parse(value.as_str()?).map(Stored).ok_or(FromSqlError::InvalidType)
}

impl FromSql for Stored<State> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        word(value, State::parse)
    }
}

impl FromSql for Stored<Next> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        word(value, Next::parse)
    }
}

impl FromSql for Stored<Kind> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        word(value, Kind::parse)
    }
}

impl FromSql for Stored<Currency> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        word(value, |word| Currency::parse(word).ok())
    }
}

impl FromSql for Stored<Key> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Key::from_bytes(<[u8; 16]>::column_result(value)?).map(Stored).map_err(FromSqlError::other)
    }
}

impl FromSql for Stored<Uuid> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Stored(Uuid::from_bytes(<[u8; 16]>::column_result(value)?)))
    }
}

pub(crate) fn stored<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    Stored<T>: FromSql,
{
    row.get::<_, Stored<T>>(column).map(|Stored(value)| value)
}

pub(crate) fn optional<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    Stored<T>: FromSql,
{
    Ok(row.get::<_, Option<Stored<T>>>(column)?.map(|Stored(value)| value))
}

pub(crate) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<Ms>>(column)?.map(|Ms(at)| at))
}

/// JSON that the file holds as text.
pub(crate) fn json(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<serde_json::Value>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}
