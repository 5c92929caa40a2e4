//! What the cardholders really paid, and how often the gateway was asked.

use protocol::Key;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;
use std::collections::BTreeMap;

/// The gateway's count, of everything or of one key.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Ledger {
    requests: i64,
    distinct_keys: i64,
    charges: i64,
    refunds: i64,
    charged: BTreeMap<String, i64>,
    refunded: BTreeMap<String, i64>,
}

/// Counts a request, also one that is dropped or refused afterwards.
pub(crate) fn count(tx: &Connection, key: &Key) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO requests (key, count) VALUES (?1, 1) ON CONFLICT (key) DO UPDATE SET count = count + 1",
    )?
    .execute([key.as_bytes()])
    .map(|_| ())
}

/// Adds everything up.
pub(crate) fn read(connection: &Connection, key: Option<&Key>) -> rusqlite::Result<Ledger> {
    let key = key.map(|key| *key.as_bytes());
    let (requests, distinct_keys) = connection
        .prepare_cached("SELECT coalesce(sum(count), 0), count(*) FROM requests WHERE ?1 IS NULL OR key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (charges, charged) = sum(connection, "charges", key)?;
    let (refunds, refunded) = sum(connection, "refunds", key)?;
    Ok(Ledger { requests, distinct_keys, charges, refunds, charged, refunded })
}

fn sum(connection: &Connection, table: &str, key: Option<[u8; 16]>) -> rusqlite::Result<(i64, BTreeMap<String, i64>)> {
    let of_key = if key.is_some() { "AND operation IN (SELECT id FROM operations WHERE key = ?1)" } else { "" };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT currency, count(*), sum(amount) FROM {table} WHERE status = 'approved' {of_key} GROUP BY currency"
    ))?;
    let rows = statement.query_map(params_from_iter(key), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    let mut count = 0;
    let mut sums = BTreeMap::new();
    for row in rows {
        let (currency, of_currency, amount) = row?;
        count += of_currency;
        sums.insert(currency, amount);
    }
    Ok((count, sums))
}
