//! What stands in a contender's books, read from outside: one payment and two postings for each key, and nothing beside.
//!
//! All books name these tables and columns alike, Kassa's too, so it is one and the same question to all.

use crate::run::{
    guarantee::promised,
    stage::{Contender, Place, Stage},
};
use anyhow::{Context, Result, ensure};
use protocol::Key;
use rusqlite::{Connection, OpenFlags};
use std::{collections::HashMap, path::Path};
use uuid::Uuid;

/// For each key: its payments, its postings, and the sum of their amounts.
const BY_KEY: &str = "SELECT o.key,
        (SELECT count(*) FROM payments p WHERE p.operation = o.id),
        (SELECT count(*) FROM postings e WHERE e.operation = o.id),
        (SELECT CAST(coalesce(sum(e.amount), 0) AS bigint) FROM postings e WHERE e.operation = o.id)
    FROM operations o";

/// All payments and all postings, whatever they belong to.
const ALL: &str = "SELECT (SELECT count(*) FROM payments), (SELECT count(*) FROM postings)";

/// What stands under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    payments: i64,
    postings: i64,
    /// Of the amounts of the postings, in minor units.
    sum: i64,
}

impl Row {
    const PAID: Self = Self { payments: 1, postings: 2, sum: 0 };

    /// A payment and its two postings stand there, or nothing of them.
    fn is_whole(self) -> bool {
        self == Self::PAID || self == Self { payments: 0, postings: 0, sum: 0 }
    }
}

/// The books as they stand.
#[derive(Debug)]
pub(crate) struct Rows {
    by_key: HashMap<Key, Row>,
    payments: i64,
    postings: i64,
}

impl Rows {
    /// Reads them, whether the contender runs or not; none where they are in memory alone.
    ///
    /// # Errors
    /// Where they can't be read.
    pub(crate) async fn read(stage: &mut Stage, contender: Contender, place: &Place) -> Result<Option<Self>> {
        match contender {
            Contender::Memory => Ok(None),
            Contender::Kassa | Contender::Sqlite => {
                let db = stage.db(place);
                tokio::task::spawn_blocking(move || Self::of_file(&db)).await?.map(Some)
            }
            Contender::Postgres | Contender::Raised => {
                let client = stage.database(contender, place).await?;
                Self::of_database(&client).await.map(Some)
            }
        }
    }

    /// Reads them on a connection that can't write, so that a dead process's log stays as it left it.
    fn of_file(path: &Path) -> Result<Self> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        ensure!(journal == "wal", "the file's journal_mode is {journal}, and has to be wal");
        // In one transaction: what is added meanwhile would make the counts differ.
        let tx = db.unchecked_transaction()?;
        let mut statement = tx.prepare(BY_KEY)?;
        let read = statement.query_map([], |row| {
            Ok((row.get::<_, [u8; 16]>(0)?, Row { payments: row.get(1)?, postings: row.get(2)?, sum: row.get(3)? }))
        })?;
        let read = read.map(|read| {
            let (key, row) = read?;
            anyhow::Ok((Key::from_bytes(key)?, row))
        });
        let by_key = read.collect::<Result<_>>()?;
        let (payments, postings) = tx.query_row(ALL, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { by_key, payments, postings })
    }

    async fn of_database(client: &tokio_postgres::Client) -> Result<Self> {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let mut by_key = HashMap::new();
        for row in client.query(BY_KEY, &[]).await? {
            let key = Key::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes())?;
            by_key.insert(key, Row { payments: row.try_get(1)?, postings: row.try_get(2)?, sum: row.try_get(3)? });
        }
        let all = client.query_one(ALL, &[]).await?;
        client.batch_execute("COMMIT").await?;
        Ok(Self { by_key, payments: all.try_get(0)?, postings: all.try_get(1)? })
    }

    /// Directly after a kill: what was told is there, and nothing is there by half.
    ///
    /// # Errors
    /// [`Broken`](crate::run::guarantee::Broken) where not.
    pub(crate) fn hold(&self, told: &[Key]) -> Result<()> {
        for key in told {
            let row = self.by_key.get(key);
            promised(row == Some(&Row::PAID), || format!("a key that was told as 201 stands in the books as {row:?}"))?;
        }
        for row in self.by_key.values() {
            promised(row.is_whole(), || format!("a key stands in the books as {row:?}"))?;
        }
        Ok(())
    }

    /// Once all is finished: one payment and two postings for each of that many keys, and none more.
    ///
    /// # Errors
    /// [`Broken`](crate::run::guarantee::Broken) where not.
    pub(crate) fn add_up(&self, keys: u64) -> Result<()> {
        let keys = i64::try_from(keys).context("too many keys")?;
        for row in self.by_key.values() {
            promised(*row == Row::PAID, || format!("a finished key stands in the books as {row:?}"))?;
        }
        let held = i64::try_from(self.by_key.len()).context("too many keys")?;
        promised((held, self.payments, self.postings) == (keys, keys, 2 * keys), || {
            format!(
                "{keys} keys were paid under, and the books hold {held} keys, {} payments and {} postings",
                self.payments, self.postings
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Keys;

    fn rows(of_each: &[Row]) -> (Rows, Vec<Key>) {
        let keys: Vec<Key> = of_each.iter().map(|_| Keys::V4.make().unwrap()).collect();
        let by_key: HashMap<_, _> = keys.iter().copied().zip(of_each.iter().copied()).collect();
        let (payments, postings) = of_each.iter().fold((0, 0), |(p, e), row| (p + row.payments, e + row.postings));
        (Rows { by_key, payments, postings }, keys)
    }

    #[test]
    fn what_was_told_has_to_stand_there_whole() {
        let claimed = Row { payments: 0, postings: 0, sum: 0 };
        let (books, keys) = rows(&[Row::PAID, claimed]);
        assert!(books.hold(&keys[..1]).is_ok(), "what was not told may be claimed alone");
        assert!(books.hold(&keys).is_err(), "what was told may not");
        assert!(books.hold(&[Keys::V4.make().unwrap()]).is_err(), "nor be absent");
        for half in
            [Row { postings: 1, sum: 5, ..Row::PAID }, Row { payments: 0, ..Row::PAID }, Row { sum: 1, ..Row::PAID }]
        {
            assert!(rows(&[Row::PAID, half]).0.hold(&keys[..0]).is_err(), "{half:?}");
        }
    }

    #[test]
    fn nothing_may_stand_there_twice_or_beside() {
        let (mut books, _) = rows(&[Row::PAID, Row::PAID]);
        assert!(books.add_up(2).is_ok());
        assert!(books.add_up(1).is_err() && books.add_up(3).is_err());
        books.payments += 1;
        assert!(books.add_up(2).is_err(), "a payment of no key");
        assert!(rows(&[Row::PAID, Row { payments: 2, ..Row::PAID }]).0.add_up(2).is_err());
    }
}
