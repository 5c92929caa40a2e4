//! A file of an earlier version is brought up to date with everything in it, and the constraints of the new one hold.

use std::path::Path;

use outbox::State;
use protocol::Key;
use rusqlite::Connection;
use rusqlite::types::Value;
use store::{Priority, Schema, Store};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn open(path: &Path, steps: usize) -> Result<Store, store::OpenError> {
    Store::open(path, &Schema { application_id: 7, migrations: outbox::migrations((1..).take(steps)) })
}

/// Every state, with a refund, a replacement and a log, as the first version wrote them.
const FIRST_VERSION: &str = "
    INSERT INTO operations (key, intent_id, lane, kind, method, path, body, body_version, amount, currency, state, ask, epoch, attempts,
        failures, panics, deaths, first_sent_at, due_at, not_before, reason, last_answer, result, bank_id, merchant, created_at,
        updated_at, settled_at)
    SELECT unhex(printf('0194f3a01c2d7e3f8a4b5c6d7e8f%04x', value)), unhex(printf('%032x', value)), 'sale-' || value, 'payment', 'POST',
        '/v1/payments', CAST('{\"amount\":' || value || '}' AS BLOB), 1, value, 'EUR',
        CASE value WHEN 1 THEN 'saved' WHEN 2 THEN 'sending' WHEN 3 THEN 'unknown' WHEN 4 THEN 'approved' WHEN 5 THEN 'declined'
            WHEN 6 THEN 'cancelled' ELSE 'needs_attention' END,
        CASE value WHEN 7 THEN 'look_up' ELSE 'send' END, 3, value, 2, 1, 0, 100, 200, NULL, 'why', 'time-out',
        CASE value WHEN 4 THEN '{\"id\":\"pay_4\"}' END, zeroblob(16), 'demo', 10, 20,
        CASE WHEN value IN (4, 5, 6) THEN 30 END
    FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 7) SELECT value FROM n);
    INSERT INTO operations (key, intent_id, replaces, lane, kind, method, path, body, body_version, amount, currency, state, due_at,
        created_at, updated_at)
    SELECT unhex('0194f3a01c2d7e3f8a4b5c6d7e8f0008'), unhex(printf('%032x', 8)), intent_id, 'sale-5', 'payment', 'POST', '/v1/payments',
        x'7b7d', 1, 8, 'EUR', 'saved', 1, 1, 1 FROM operations WHERE state = 'declined';
    INSERT INTO operations (key, intent_id, payment_key, lane, kind, method, path, body, body_version, amount, currency, state, due_at,
        created_at, updated_at)
    SELECT unhex('0194f3a01c2d7e3f8a4b5c6d7e8f0009'), unhex(printf('%032x', 9)), key, 'sale-4', 'refund', 'POST', '/v1/refunds',
        x'7b7d', 1, 2, 'EUR', 'saved', 1, 1, 1 FROM operations WHERE state = 'approved';
    INSERT INTO attempts (key, attempt, at, event) SELECT key, 1, 5, 'sent' FROM operations;
    UPDATE outbox SET epoch = 41, address = 'http://127.0.0.1:8460/', hold_until = 77;";

/// Every row of a table, by the columns that the first version had.
fn rows(conn: &Connection, table: &str, columns: &[String]) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = conn.prepare(&format!("SELECT {} FROM {table} ORDER BY 1", columns.join(", ")))?;
    statement.query_map([], |row| (0..columns.len()).map(|at| row.get(at)).collect())?.collect()
}

fn columns(conn: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

#[test]
fn everything_of_the_first_version_comes_along() -> Checked {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("till.db");
    open(&path, 1)?.write_blocking(Priority::Click, |tx| tx.execute_batch(FIRST_VERSION))?;
    let old = Connection::open(&path)?;
    let tables = ["operations", "attempts", "outbox"];
    let before: Vec<_> = tables
        .map(|table| columns(&old, table).and_then(|columns| Ok((rows(&old, table, &columns)?, columns))))
        .into_iter()
        .collect::<Result<_, _>>()?;
    assert_eq!(before[0].0.len(), 9);
    drop(old);

    let store = open(&path, outbox::MIGRATIONS.len())?;
    let new = Connection::open(&path)?;
    for (table, (rows_before, columns)) in tables.iter().zip(&before) {
        assert_eq!(rows(&new, table, columns)?, *rows_before, "{table}");
    }
    let check: String = new.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    assert_eq!(check, "ok");
    let states: Vec<State> = store
        .read_blocking(|conn| outbox::list(conn, outbox::Filter::default()))?
        .iter()
        .map(|operation| operation.state)
        .collect();
    assert_eq!(
        states[..7],
        [
            State::Saved,
            State::Sending,
            State::Unknown,
            State::Approved,
            State::Declined,
            State::Cancelled,
            State::NeedsAttention
        ]
    );
    // The copy beside it is the file as it was.
    let copy = Connection::open(folder.path().join("till.db.before-2"))?;
    assert_eq!(rows(&copy, "operations", &before[0].1)?, before[0].0);

    // And it goes on: what referred to the old table refers to the new one.
    let saved: Key = "0194f3a0-1c2d-7e3f-8a4b-5c6d7e8f0001".parse()?;
    let now = jiff::Timestamp::now();
    let cancelled =
        store.write_blocking(Priority::Click, move |tx| outbox::cancel(tx, &saved, outbox::CancelAs::Wish, now))?;
    assert!(cancelled.operation.tombstone);
    let orphan = store.write_blocking(Priority::Click, |tx| {
        tx.execute("INSERT INTO attempts (key, attempt, at, event) VALUES (zeroblob(16), 1, 1, 'sent')", [])
    });
    assert!(orphan.is_err(), "an attempt of no operation");
    Ok(())
}
