//! PostgreSQL by the textbook: insert on conflict do nothing, gateway call, result update, over a pool of 32 connections with
//! prepared statements. The result is one statement, so that it is one round trip and one commit.

use crate::contender::{
    Books,
    payment::{Claim, Claimed, Settled, Stored, Unfinished},
};
use anyhow::{Context, Result, ensure};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use jiff::Timestamp;
use measure::ready::Setting;
use protocol::Key;
use tokio_postgres::{NoTls, Row};
use uuid::Uuid;

/// Connections at most.
const POOL_MAX: usize = 32;

const CLAIM: &str = "INSERT INTO operations (merchant, key, hash, payload, created_ms) VALUES ($1, $2, $3, $4, $5)
                     ON CONFLICT (merchant, key) DO NOTHING RETURNING id";

const KNOWN: &str = "SELECT hash, status, payment_id, body FROM operations WHERE merchant = $1 AND key = $2";

const SETTLE: &str = "WITH settled AS (
        UPDATE operations SET completed_ms = $2, status = $3, payment_id = $4, body = $5, payload = NULL
        WHERE id = $1 AND status IS NULL RETURNING id
    ), paid AS (
        INSERT INTO payments (operation, id, merchant, amount, currency, brand, last4, reference, approval_code)
        SELECT id, $4, $6, $7, $8, $9, $10, $11, $12 FROM settled
    )
    INSERT INTO postings (operation, account, currency, amount)
    SELECT id, account, $8, amount FROM settled, (VALUES ($13::text, $14::bigint), ($15, $16)) AS entry (account, amount)";

/// What makes a commit durable, and has to be on.
const DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];
/// What else is told of it.
const TOLD: [&str; 7] = [
    "server_version",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "wal_compression",
    "commit_delay",
    "commit_siblings",
];

pub(crate) struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// Connects, and makes the tables where they aren't there.
    pub(crate) async fn open(database: &str) -> Result<(Self, Vec<Setting>)> {
        let recycling_method = RecyclingMethod::Fast;
        let manager = Manager::from_config(database.parse()?, NoTls, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager).max_size(POOL_MAX).build()?;
        let client = pool.get().await?;
        let mut settings = Vec::new();
        for name in DURABLE.into_iter().chain(TOLD) {
            let value: String = client.query_one(&format!("SHOW {name}"), &[]).await?.try_get(0)?;
            settings.push(Setting::read(name, value, DURABLE.contains(&name).then_some("on"))?);
        }
        let made: bool = client.query_one("SELECT to_regclass('operations') IS NOT NULL", &[]).await?.get(0);
        if !made {
            client.batch_execute(&format!("BEGIN; {} COMMIT", include_str!("postgres.sql"))).await?;
        }
        drop(client);
        Ok((Self { pool }, settings))
    }
}

impl Books for Postgres {
    async fn claim(&self, claim: &Claim) -> Result<Claimed> {
        let client = self.pool.get().await?;
        let key = Uuid::from_bytes(*claim.key.as_bytes());
        let created_ms = claim.created_at.as_millisecond();
        let statement = client.prepare_cached(CLAIM).await?;
        let claimed = client
            .query_opt(&statement, &[&claim.merchant, &key, &&claim.hash[..], &claim.payload, &created_ms])
            .await?;
        if let Some(row) = claimed {
            return Ok(Claimed::New(row.get(0)));
        }
        let statement = client.prepare_cached(KNOWN).await?;
        let row = client.query_one(&statement, &[&claim.merchant, &key]).await?;
        let stored = match row.get::<_, Option<i32>>(1) {
            Some(status) => Some(Stored { status: status.try_into()?, payment_id: row.get(2), body: row.get(3) }),
            None => None,
        };
        Ok(Claimed::Known { hash: row.get(0), stored })
    }

    async fn settle(&self, operation: i64, settled: &Settled) -> Result<()> {
        let Settled { merchant, payment, postings: [ours, theirs], stored, completed_at } = settled;
        let (brand, last4) = payment.card.as_ref().map(|card| (&card.brand, &card.last4)).unzip();
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(SETTLE).await?;
        let posted = client
            .execute(
                &statement,
                &[
                    &operation,
                    &completed_at.as_millisecond(),
                    &i32::from(stored.status),
                    &stored.payment_id,
                    &stored.body,
                    merchant,
                    &payment.amount.get(),
                    &payment.currency.code(),
                    &brand,
                    &last4,
                    &payment.reference,
                    &payment.approval_code,
                    &ours.account,
                    &ours.amount,
                    &theirs.account,
                    &theirs.amount,
                ],
            )
            .await?;
        ensure!(posted == 2, "operation {operation} is settled already");
        Ok(())
    }

    async fn unfinished(&self) -> Result<Vec<Unfinished>> {
        let client = self.pool.get().await?;
        let rows =
            client.query("SELECT id, key, payload, created_ms FROM operations WHERE status IS NULL", &[]).await?;
        rows.iter().map(unfinished).collect::<Result<_>>().context("an operation can't be read")
    }
}

fn unfinished(row: &Row) -> Result<Unfinished> {
    Ok(Unfinished {
        operation: row.try_get(0)?,
        key: Key::from_bytes(row.try_get::<_, Uuid>(1)?.into_bytes())?,
        payload: row.try_get(2)?,
        created_at: Timestamp::from_millisecond(row.try_get(3)?)?,
    })
}
