//! Columns of the till's tables as the types they stand for.

use rusqlite::{
    Error, Row,
    types::{FromSqlError, Type, ValueRef},
};
use std::str::FromStr;

fn wrong(index: usize, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::FromSqlConversionFailure(index, Type::Text, Box::new(error))
}

fn parsed<T: FromStr>(row: &Row<'_>, index: usize) -> Result<T, Error>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get_ref(index)?
        .as_str()
        .map_err(|error: FromSqlError| wrong(index, error))?
        .parse()
        .map_err(|e| wrong(index, e))
}

/// A time as the file keeps it: Unix milliseconds.
pub(crate) fn timestamp(row: &Row<'_>, index: usize) -> Result<jiff::Timestamp, Error> {
    jiff::Timestamp::from_millisecond(row.get(index)?).map_err(|error| wrong(index, error))
}

pub(crate) fn optional_timestamp(row: &Row<'_>, index: usize) -> Result<Option<jiff::Timestamp>, Error> {
    if row.get_ref(index)? == ValueRef::Null { Ok(None) } else { timestamp(row, index).map(Some) }
}

pub(crate) fn date(row: &Row<'_>, index: usize) -> Result<jiff::civil::Date, Error> {
    parsed(row, index)
}

pub(crate) fn uuid(row: &Row<'_>, index: usize) -> Result<uuid::Uuid, Error> {
    parsed(row, index)
}

pub(crate) fn optional_uuid(row: &Row<'_>, index: usize) -> Result<Option<uuid::Uuid>, Error> {
    if row.get_ref(index)? == ValueRef::Null { Ok(None) } else { uuid(row, index).map(Some) }
}

pub(crate) fn key(row: &Row<'_>, index: usize) -> Result<protocol::Key, Error> {
    parsed(row, index)
}

pub(crate) fn json(row: &Row<'_>, index: usize) -> Result<serde_json::Value, Error> {
    parsed(row, index)
}

/// A word of a closed list, such as a state.
pub(crate) fn word<T>(row: &Row<'_>, index: usize, read: fn(&str) -> Option<T>) -> Result<T, Error> {
    let text = row.get_ref(index)?.as_str().map_err(|error: FromSqlError| wrong(index, error))?;
    read(text).ok_or_else(|| wrong(index, std::io::Error::other("a word that this program does not know")))
}

pub(crate) fn quantity(row: &Row<'_>, index: usize) -> Result<checkout::Quantity, Error> {
    checkout::Quantity::from_thousandths(row.get(index)?).map_err(|error| wrong(index, error))
}

pub(crate) fn rate(row: &Row<'_>, index: usize) -> Result<checkout::Rate, Error> {
    checkout::Rate::from_thousandths(row.get(index)?).map_err(|error| wrong(index, error))
}

pub(crate) fn currency(row: &Row<'_>, index: usize) -> Result<protocol::Currency, Error> {
    parsed(row, index)
}
