//! SQLite the usual way: one connection behind a mutex, WAL, `synchronous=FULL`, and a transaction for each of claim and result.
//!
//! The mutex is waited for without a thread, first come, first served: a crowd of parked threads would make the latencies those of
//! their waking, and not SQLite's.

use crate::contender::{
    Books,
    payment::{Claim, Claimed, Posting, Settled, Stored, Unfinished},
};
use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use measure::ready::Setting;
use protocol::Key;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, named_params, params, types::Value};
use std::{path::PathBuf, sync::Arc};
use tokio::sync::Mutex;

/// What makes a commit durable, as SQLite gives it back: `synchronous` is FULL.
const DURABLE: [(&str, &str); 2] = [("journal_mode", "wal"), ("synchronous", "2")];

pub(crate) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
}

impl Sqlite {
    /// Opens the file, and makes it where it isn't there.
    pub(crate) async fn open(path: PathBuf) -> Result<(Self, Vec<Setting>)> {
        let opening = tokio::task::spawn_blocking(move || {
            let connection = Connection::open(path)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            let mut settings = Vec::new();
            for (name, wanted) in DURABLE {
                let value: Value = connection.pragma_query_value(None, name, |row| row.get(0))?;
                settings.push(Setting::read(name, text(value)?, Some(wanted))?);
            }
            let version = rusqlite::version().to_owned();
            settings.push(Setting::read("version", version, None)?);
            let made: bool = connection.query_row("SELECT count(*) > 0 FROM sqlite_schema", [], |row| row.get(0))?;
            if !made {
                connection.execute_batch(&format!("BEGIN; {} COMMIT", include_str!("sqlite.sql")))?;
            }
            anyhow::Ok((connection, settings))
        });
        let (connection, settings) = opening.await??;
        Ok((Self { connection: Arc::new(Mutex::new(connection)) }, settings))
    }

    /// Runs a piece of work in a transaction of its own, on a thread where it may block.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // Before there is a thread for it: so there is never more than the one that works.
        let mut connection = self.connection.clone().lock_owned().await;
        let writing = tokio::task::spawn_blocking(move || {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&tx)?;
            tx.commit()?;
            Ok(done)
        });
        writing.await?
    }
}

impl Books for Sqlite {
    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        let (merchant, key, hash) = (claim.merchant, *claim.key.as_bytes(), claim.hash);
        let (payload, created_ms) = (claim.payload.clone(), claim.created_at.as_millisecond());
        self.write(move |tx| {
            let claimed = tx
                .prepare_cached(
                    "INSERT INTO operations (merchant, key, hash, payload, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (merchant, key) DO NOTHING RETURNING id",
                )?
                .query_row(params![merchant, key, hash, payload, created_ms], |row| row.get(0))
                .optional()?;
            match claimed {
                Some(id) => Ok(Claimed::New(id)),
                None => known(tx, merchant, key),
            }
        })
        .await
    }

    async fn settle(&self, operation: i64, settled: &Settled) -> Result<()> {
        let (merchant, payment, stored) = (settled.merchant, settled.payment.clone(), settled.stored.clone());
        let postings = settled.postings.clone();
        let completed_ms = settled.completed_at.as_millisecond();
        self.write(move |tx| {
            let updated = tx
                .prepare_cached(
                    "UPDATE operations SET completed_ms = ?2, status = ?3, payment_id = ?4, body = ?5, payload = NULL
                     WHERE id = ?1 AND status IS NULL",
                )?
                .execute(params![operation, completed_ms, stored.status, stored.payment_id, stored.body])?;
            ensure!(updated == 1, "operation {operation} is settled already");
            tx.prepare_cached(
                "INSERT INTO payments (operation, id, merchant, amount, currency, brand, last4, reference, approval_code)
                 VALUES (:operation, :id, :merchant, :amount, :currency, :brand, :last4, :reference, :approval_code)",
            )?
            .execute(named_params! {
                ":operation": operation, ":id": payment.id, ":merchant": merchant, ":amount": payment.amount.get(),
                ":currency": payment.currency.code(), ":brand": payment.card.as_ref().map(|card| &card.brand),
                ":last4": payment.card.as_ref().map(|card| &card.last4), ":reference": payment.reference,
                ":approval_code": payment.approval_code,
            })?;
            let mut posting = tx.prepare_cached(
                "INSERT INTO postings (operation, account, currency, amount) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for Posting { account, amount } in &postings {
                posting.execute(params![operation, account, payment.currency.code(), amount])?;
            }
            Ok(())
        })
        .await
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>> {
        self.write(|tx| {
            let mut statement =
                tx.prepare("SELECT id, key, payload, created_ms FROM operations WHERE status IS NULL")?;
            let rows = statement.query_map([], |row| {
                Ok((row.get(0)?, row.get::<_, [u8; 16]>(1)?, row.get(2)?, row.get::<_, i64>(3)?))
            })?;
            rows.map(|row| {
                let (operation, key, payload, created_ms) = row?;
                let created_at = Timestamp::from_millisecond(created_ms)?;
                Ok(Unfinished { operation, key: Key::from_bytes(key)?, payload, created_at })
            })
            .collect()
        })
        .await
    }
}

fn text(value: Value) -> Result<String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        other => bail!("a setting that is {other:?}"),
    }
}

fn known(tx: &Connection, merchant: &str, key: [u8; 16]) -> Result<Claimed> {
    tx.prepare_cached("SELECT hash, status, payment_id, body FROM operations WHERE merchant = ?1 AND key = ?2")?
        .query_row((merchant, key), |row| {
            let stored = match row.get(1)? {
                Some(status) => Some(Stored { status, payment_id: row.get(2)?, body: row.get(3)? }),
                None => None,
            };
            Ok(Claimed::Known { hash: row.get(0)?, stored })
        })
        .context("a key that is known and not there")
}
