//! The outbox as this bench uses it. Nothing else here names its types, so that a change of its API is a change of this module.

use crate::raw;
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use measure::ready::Setting;
use outbox::{Bank, BankContract, HttpTransport, NewOperation, Outbox, Request, Secret};
use protocol::{Amount, CardToken, Currency, Key, PaymentRequest};
use rusqlite::{Connection, types::Value};
use std::sync::Arc;
use store::{Priority, Schema};
use uuid::Uuid;

pub(crate) use outbox::answer::{Answer, CallError, Lost};
pub(crate) use outbox::{Call, Clock, Ended, EnqueueError, Transport};

/// What every payment is about, in minor units.
pub(crate) const AMOUNT: u32 = 2_490;

/// A file with the outbox's tables and nothing else.
pub(crate) fn schema() -> Schema {
    Schema { application_id: 0x4b61_4f42, migrations: outbox::migrations(1..) }
}

/// A payment as a till asks for it, in a lane of its own.
pub(crate) fn order() -> Result<NewOperation> {
    let sale = Uuid::now_v7();
    let request = PaymentRequest {
        amount: Amount::new(AMOUNT.into())?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: Some(format!("till-1/{}", &sale.simple().to_string()[..12])),
        accepted_offline_at: None,
    };
    Ok(NewOperation::new(Uuid::now_v7(), sale.to_string(), request))
}

/// The bytes that are sent for it.
pub(crate) fn body(order: &NewOperation) -> Result<Vec<u8>> {
    match &order.request {
        Request::Payment(request) => Ok(request.encode()),
        other => bail!("{other:?} is no payment"),
    }
}

/// Saves it, its key made inside of the transaction as the till makes it.
pub(crate) fn save(tx: &Connection, order: &NewOperation) -> Result<Key, EnqueueError> {
    let now = Timestamp::now();
    let key = Key::v7(now, rand::random());
    outbox::enqueue(tx, order, key, now).map(|_| key)
}

/// The queue of a file.
pub(crate) fn over(store: store::Store) -> Outbox {
    Outbox::new(store, BankContract)
}

/// How the store's writer says that it is set.
pub(crate) async fn settings(store: &store::Store) -> Result<Vec<Setting>> {
    let settings = store.write(Priority::Background, |tx| {
        let read = |name: &str| Setting::read(name, raw::text(tx, name)?, None);
        ["journal_mode", "synchronous"].into_iter().map(read).collect::<Result<Vec<_>>>()
    });
    Ok(settings.await?)
}

/// The real way to a bank.
pub(crate) fn http(url: &str, secret: &str) -> Result<Arc<dyn Transport>> {
    let bank = Bank { url: url.to_owned(), token: Secret::new(secret) };
    Ok(Arc::new(HttpTransport::new(&bank).context("the bank can't be asked")?))
}

/// The words of what is open, as the index `operations_open` has them.
pub(crate) const OPEN: &str = "(state IN ('saved', 'sending', 'unknown', 'needs_attention') OR tombstone = 1)";

/// Whether anything in the file is open that was saved as this one or before.
pub(crate) fn any_open(conn: &Connection, up_to_seq: i64) -> rusqlite::Result<bool> {
    conn.prepare_cached(&format!(
        "SELECT EXISTS (SELECT 1 FROM operations INDEXED BY operations_open WHERE {OPEN} AND seq <= ?1)"
    ))?
    .query_row([up_to_seq], |row| row.get(0))
}

/// How many operations are open.
pub(crate) fn count_open(conn: &Connection) -> rusqlite::Result<u64> {
    let count = format!("SELECT count(*) FROM operations INDEXED BY operations_open WHERE {OPEN}");
    conn.query_row(&count, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}

/// What a file tells of why something is open: the states, what is known of the bank, and the last lines of the log.
pub(crate) fn story(conn: &Connection) -> Result<String> {
    let mut story = format!("{:?}", states(conn)?);
    for rows in ["outbox", "(SELECT * FROM attempts ORDER BY seq DESC LIMIT 20)"] {
        let mut statement = conn.prepare(&format!("SELECT * FROM {rows}"))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut cells = Vec::new();
            for (place, column) in columns.iter().enumerate() {
                match row.get::<_, Value>(place)? {
                    Value::Null => {}
                    Value::Blob(bytes) => cells.push(format!("{column} {}", hex(&bytes))),
                    other => cells.push(format!("{column} {other:?}")),
                }
            }
            story += &format!("\n  {}", cells.join(", "));
        }
    }
    Ok(story)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last operation that was saved.
pub(crate) fn last_seq(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("SELECT coalesce(max(seq), 0) FROM operations", [], |row| row.get(0))
}

/// How many operations are in each state.
pub(crate) fn states(conn: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    conn.prepare("SELECT state, count(*) FROM operations GROUP BY state ORDER BY state")?
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
        .collect()
}

/// Whether the outbox still brings what is in that state to its end by itself.
pub(crate) fn is_unsettled(state: &str) -> bool {
    outbox::State::parse(state).is_some_and(outbox::State::is_unsettled)
}

/// How many operations are approved, where all are.
pub(crate) fn approved(conn: &Connection) -> Result<u64> {
    let states = states(conn)?;
    match &states[..] {
        [] => Ok(0),
        [(state, count)] if state == "approved" => Ok(*count),
        _ => bail!("not every operation is approved: {states:?}"),
    }
}
