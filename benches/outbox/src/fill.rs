//! Files with many operations in them, made quickly: a real operation is settled with a real bank, and its rows are copied.

use crate::{
    bank::SECRET,
    drain,
    queue::{self, AMOUNT},
    stage::Stage,
};
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use measure::rows::{self, Template};
use protocol::Key;
use rusqlite::{Connection, types::Value};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};
use store::{Priority, Store};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Operations between two commits.
const BATCH: u64 = 20_000;
/// The operations were saved over this time up to now.
const SPAN: SignedDuration = SignedDuration::from_hours(24 * 30);
/// Of those that are put in, how many are still open.
pub(crate) const OPEN: u64 = 100;

/// The rows of one operation.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    operation: Template,
    attempts: Vec<Template>,
}

/// What names a copy.
pub(crate) struct Name {
    key: Key,
    pub(crate) intent: Uuid,
    pub(crate) lane: String,
    pub(crate) at: Timestamp,
}

impl Name {
    pub(crate) fn new(at: Timestamp) -> Self {
        let (intent, lane) = (Uuid::now_v7(), Uuid::now_v7().to_string());
        Self { key: Key::v7(at, rand::random()), intent, lane, at }
    }
}

/// Values to be inserted: the copy of an operation, and of its lines in the log.
pub(crate) struct Rows {
    operation: Vec<Value>,
    attempts: Vec<Vec<Value>>,
}

impl Operation {
    /// The one of that intent.
    pub(crate) fn read(db: &Connection, intent: Uuid) -> Result<Self> {
        let operation = Template::read(db, "operations", "WHERE intent_id = ?1", [intent.as_bytes()])?;
        let operation = operation.into_iter().next().context("there is no such operation")?;
        let key = operation.value("key").cloned().context("an operation without a key")?;
        let attempts = Template::read(db, "attempts", "WHERE key = ?1 ORDER BY seq", [key])?;
        ensure!(!attempts.is_empty(), "an operation without a log");
        Ok(Self { operation, attempts })
    }

    /// Its rows under another name and at another time.
    pub(crate) fn copy(&self, name: &Name) -> Rows {
        let key = Value::Blob(name.key.as_bytes().to_vec());
        let mut named = vec![
            ("seq", Value::Null),
            ("key", key.clone()),
            ("intent_id", Value::Blob(name.intent.as_bytes().to_vec())),
            ("lane", Value::Text(name.lane.clone())),
        ];
        let at_ms = Value::Integer(name.at.as_millisecond());
        for column in ["first_sent_at", "due_at", "created_at", "updated_at", "settled_at"] {
            if self.operation.value(column).is_some_and(|value| *value != Value::Null) {
                named.push((column, at_ms.clone()));
            }
        }
        let named_attempt = [("seq", Value::Null), ("key", key), ("at", at_ms)];
        Rows {
            operation: self.operation.copy(&named),
            attempts: self.attempts.iter().map(|attempt| attempt.copy(&named_attempt)).collect(),
        }
    }

    /// Inserts what was copied.
    pub(crate) fn insert(&self, db: &Connection, rows: &Rows) -> Result<()> {
        self.operation.insert(db, &rows.operation)?;
        self.attempts.iter().zip(&rows.attempts).try_for_each(|(attempt, values)| attempt.insert(db, values))
    }
}

/// A final and an open operation, as the outbox made them.
pub(crate) struct Patterns {
    pub(crate) settled: Operation,
    pub(crate) open: Operation,
}

impl Patterns {
    /// Makes them: one is saved and settled with a bank, the other is saved.
    pub(crate) async fn make(stage: &mut Stage) -> Result<Self> {
        let place = stage.place()?;
        let path = place.join("outbox.db");
        let bank = stage.fresh_bank().await?;
        let (settled, open) = (queue::order()?, queue::order()?);
        let (first, second) = (settled.intent_id, open.intent_id);
        let store = Store::open(&path, &queue::schema())?;
        store.write(Priority::Click, move |tx| queue::save(tx, &settled)).await?;
        drain::settle(&store, queue::http(&bank.url, SECRET)?).await?;
        store.write(Priority::Click, move |tx| queue::save(tx, &open)).await?;
        drop(store);
        bank.clear().await?;
        let db = Connection::open(&path)?;
        let patterns = Self { settled: Operation::read(&db, first)?, open: Operation::read(&db, second)? };
        let amount = patterns.settled.operation.value("amount").cloned();
        ensure!(amount.is_none_or(|amount| amount == Value::Integer(AMOUNT.into())), "another amount than ours");
        drop(db);
        fs::remove_dir_all(place)?;
        Ok(patterns)
    }
}

/// Makes a file with that many final operations, and some open ones beside them where there are any.
pub(crate) fn file(path: &Path, patterns: &Patterns, operations: u64, end: &CancellationToken) -> Result<()> {
    drop(Store::open(path, &queue::schema())?);
    rows::fast(path, |db| {
        in_batches(db, operations, end, |number| {
            let name = Name::new(spread(number, operations));
            patterns.settled.insert(db, &patterns.settled.copy(&name))
        })?;
        let open = if operations == 0 { 0 } else { OPEN };
        in_batches(db, open, end, |_| patterns.open.insert(db, &patterns.open.copy(&Name::new(Timestamp::now()))))
    })
}

/// When the operation of that number was saved.
pub(crate) fn spread(number: u64, of: u64) -> Timestamp {
    let share = number as f64 / of.max(1) as f64;
    let before = SignedDuration::from_millis((SPAN.as_millis() as f64 * (1.0 - share)) as i64);
    Timestamp::now() - before
}

/// Does something so many times, in transactions of many, unless the run is told to end meanwhile.
pub(crate) fn in_batches(
    db: &Connection,
    count: u64,
    end: &CancellationToken,
    mut work: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    for begin in (0..count).step_by(usize::try_from(BATCH)?) {
        ensure!(!end.is_cancelled(), "told to end");
        db.execute_batch("BEGIN IMMEDIATE")?;
        (begin..(begin + BATCH).min(count)).try_for_each(&mut work)?;
        db.execute_batch("COMMIT")?;
    }
    Ok(())
}

/// The same file once more, to the byte.
pub(crate) fn twin(path: &Path) -> Result<PathBuf> {
    let twin = path.with_extension("raw.db");
    fs::copy(path, &twin)?;
    File::open(&twin)?.sync_all()?;
    Ok(twin)
}
