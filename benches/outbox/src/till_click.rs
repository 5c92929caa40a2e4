//! The whole click of the till, from `Till::charge` to its durable answer, beside a raw commit of the same rows in all of its tables.
//!
//! What the raw connection leaves out is what a till has to do beside: looking at settings and tenders, pricing, making key and
//! texts. It writes the same rows under the same schema, its triggers included.

use crate::{
    bank::SECRET,
    click::{Clicks, same_rows},
    fill::{self, Name, Operation},
    raw,
    stage::Stage,
};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use measure::rows::{self, Template};
use protocol::{Amount, CardToken, Currency};
use rusqlite::{Connection, params_from_iter, types::Value};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use till::{Bank, Charge, Event, Secret, Till};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The tables that a charge writes to.
const TABLES: [&str; 7] = ["sales", "lines", "sale_taxes", "tenders", "operations", "attempts", "audit"];
/// What of a sale is not there before its first payment.
const FROZEN: [&str; 7] = ["state", "number", "net", "tax", "tip", "discount", "total"];
/// How long the till may take to tell of its own figures.
const TOLD: Duration = Duration::from_secs(20);
/// The till's file in its folder.
pub(crate) const FILE: &str = "till.db";

/// A charge like those of the bench.
pub(crate) fn charge() -> Result<Charge> {
    Ok(Charge {
        intent_id: Uuid::now_v7(),
        amount: Amount::new(crate::queue::AMOUNT.into())?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa")?,
        reference: None,
        accepted_offline: false,
    })
}

/// The rows of one charge.
#[derive(Clone)]
struct Sale {
    sale: Template,
    parts: Vec<Template>,
    tender: Template,
    operation: Operation,
    audit: Vec<Template>,
}

/// What names a copy: the sale's and the tender's id are the operation's lane and intent.
struct Numbers {
    sale: i64,
    receipt: i64,
    audit: i64,
    /// The hash of the audit's entry before.
    previous: Value,
}

/// What stands for the hash of an audit entry: nobody checks the chain here, but each entry must name the one before it.
fn hash(seq: i64) -> Value {
    let mut bytes = vec![0; 24];
    bytes.extend(seq.to_be_bytes());
    Value::Blob(bytes)
}

/// The hash that the next entry must name.
fn head(db: &Connection) -> Result<Value> {
    Ok(db.query_row("SELECT hash FROM audit_head", [], |row| row.get(0))?)
}

/// Values to be inserted.
struct SaleRows {
    sale: Vec<Value>,
    parts: Vec<Vec<Value>>,
    tender: Vec<Value>,
    operation: fill::Rows,
    audit: Vec<Vec<Value>>,
}

impl Sale {
    /// The one that was charged under that intent.
    fn read(db: &Connection, intent: Uuid) -> Result<Self> {
        let one = |rows: Vec<Template>| rows.into_iter().next().context("there is no such charge");
        let tender = one(Template::read(db, "tenders", "WHERE id = ?1", [intent.to_string()])?)?;
        let id = tender.value("sale_id").cloned().context("a tender without a sale")?;
        let parts = ["lines", "sale_taxes"].into_iter();
        let parts = parts.map(|table| Template::read(db, table, "WHERE sale_id = ?1", [id.clone()]));
        Ok(Self {
            sale: one(Template::read(db, "sales", "WHERE id = ?1", [id.clone()])?)?,
            parts: parts.collect::<Result<Vec<_>>>()?.concat(),
            operation: Operation::read(db, intent)?,
            audit: Template::read(db, "audit", "WHERE sale_id = ?1 ORDER BY seq", [id])?,
            tender,
        })
    }

    fn copy(&self, name: &Name, numbers: &Numbers) -> SaleRows {
        let (id, at_ms) = (Value::Text(name.lane.clone()), Value::Integer(name.at.as_millisecond()));
        let mut named = vec![("id", id.clone()), ("created_at", at_ms.clone()), ("updated_at", at_ms.clone())];
        for (column, value) in
            [("number", numbers.sale), ("receipt_number", numbers.receipt), ("completed_at", name.at.as_millisecond())]
        {
            if self.sale.value(column).is_some_and(|before| *before != Value::Null) {
                named.push((column, Value::Integer(value)));
            }
        }
        let tender = [
            ("id", Value::Text(name.intent.to_string())),
            ("sale_id", id.clone()),
            ("created_at", at_ms.clone()),
            ("updated_at", at_ms.clone()),
        ];
        let part = [("id", Value::Null), ("sale_id", id.clone())];
        let audit = |(entry, seq): (&Template, i64)| {
            let previous = if seq == numbers.audit { numbers.previous.clone() } else { hash(seq - 1) };
            entry.copy(&[
                ("seq", Value::Integer(seq)),
                ("at", at_ms.clone()),
                ("sale_id", id.clone()),
                ("previous", previous),
                ("hash", hash(seq)),
            ])
        };
        SaleRows {
            sale: self.sale.copy(&named),
            parts: self.parts.iter().map(|template| template.copy(&part)).collect(),
            tender: self.tender.copy(&tender),
            operation: self.operation.copy(name),
            audit: self.audit.iter().zip(numbers.audit..).map(audit).collect(),
        }
    }

    /// All rows as they are in the end: for filling, where no trigger looks.
    fn insert(&self, db: &Connection, rows: &SaleRows) -> Result<()> {
        self.sale.insert(db, &rows.sale)?;
        self.insert_rest(db, rows)
    }

    fn insert_rest(&self, db: &Connection, rows: &SaleRows) -> Result<()> {
        self.insert_parts(db, rows)?;
        self.tender.insert(db, &rows.tender)?;
        self.operation.insert(db, &rows.operation)?;
        self.audit.iter().zip(&rows.audit).try_for_each(|(entry, values)| entry.insert(db, values))
    }

    fn insert_parts(&self, db: &Connection, rows: &SaleRows) -> Result<()> {
        self.parts.iter().zip(&rows.parts).try_for_each(|(part, values)| part.insert(db, values))
    }
}

/// A sale as the raw connection writes it: open, with its parts, and frozen then, as the triggers want it.
struct Frozen {
    sale: Sale,
    open: Template,
    freeze: String,
}

impl Frozen {
    fn new(sale: Sale) -> Result<Self> {
        let nothing = [("state", Value::Text("open".to_owned()))].into_iter();
        let nothing: Vec<_> = nothing.chain(FROZEN[1..].iter().map(|column| (*column, Value::Null))).collect();
        let open = sale.sale.with(&nothing);
        let set: Vec<_> = FROZEN.iter().zip(2..).map(|(column, place)| format!("{column} = ?{place}")).collect();
        Ok(Self { open, freeze: format!("UPDATE sales SET {} WHERE id = ?1", set.join(", ")), sale })
    }

    /// Ready-made values of a commit: for the open sale, its freezing, and the rest.
    fn copy(&self, name: &Name, numbers: &Numbers) -> Result<(Vec<Value>, Vec<Value>, SaleRows)> {
        let rows = self.sale.copy(name, numbers);
        let id = Value::Text(name.lane.clone());
        let at_ms = Value::Integer(name.at.as_millisecond());
        let open = self.open.copy(&[("id", id.clone()), ("created_at", at_ms.clone()), ("updated_at", at_ms)]);
        let frozen = FROZEN.iter().map(|column| match *column {
            "number" => Ok(Value::Integer(numbers.sale)),
            column => self.sale.sale.value(column).cloned().with_context(|| format!("a sale has no {column}")),
        });
        let freeze = std::iter::once(Ok(id)).chain(frozen).collect::<Result<Vec<_>>>()?;
        Ok((open, freeze, rows))
    }

    fn write(&self, db: &Connection, (open, freeze, rows): &(Vec<Value>, Vec<Value>, SaleRows)) -> Result<()> {
        self.open.insert(db, open)?;
        self.sale.insert_parts(db, rows)?;
        db.prepare_cached("UPDATE counters SET last = last + 1 WHERE name = 'sale'")?.execute([])?;
        let frozen = db.prepare_cached(&self.freeze)?.execute(params_from_iter(freeze))?;
        ensure!(frozen == 1, "the sale was not frozen");
        self.sale.tender.insert(db, &rows.tender)?;
        self.sale.operation.insert(db, &rows.operation)?;
        self.sale.audit.iter().zip(&rows.audit).try_for_each(|(entry, values)| entry.insert(db, values))
    }
}

/// Makes a till's folder with that many settled charges in it.
pub(crate) async fn folder(stage: &mut Stage, charges: u64) -> Result<PathBuf> {
    let dir = stage.place()?;
    if charges == 0 {
        drop(Till::open(&dir)?);
        return Ok(dir);
    }
    let first = charge()?;
    let intent = first.intent_id;
    let till = Till::open(&dir)?;
    till.charge(first).await?;
    settle(stage, &till).await?;
    drop(till);
    // On this thread, as nothing else goes on: so the run is not over while a file of it is written.
    fill_folder(&dir.join(FILE), intent, charges - 1, &stage.end)?;
    Ok(dir)
}

fn fill_folder(path: &Path, intent: Uuid, charges: u64, end: &CancellationToken) -> Result<()> {
    rows::fast(path, |db| {
        let pattern = Sale::read(db, intent)?;
        let last = |series: &str| {
            db.query_row("SELECT last FROM counters WHERE name = ?1", [series], |row| row.get::<_, i64>(0))
        };
        let (sale, receipt) = (last("sale")?, last("receipt")?);
        let audit: i64 = db.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?;
        let (entries, head) = (i64::try_from(pattern.audit.len())?, head(db)?);
        fill::in_batches(db, charges, end, |number| {
            let place = i64::try_from(number)? + 1;
            let before = audit + (place - 1) * entries;
            let numbers = Numbers {
                sale: sale + place,
                receipt: receipt + place,
                audit: before + 1,
                previous: if place == 1 { head.clone() } else { hash(before) },
            };
            let rows = pattern.copy(&Name::new(fill::spread(number, charges)), &numbers);
            pattern.insert(db, &rows)
        })?;
        db.execute("UPDATE counters SET last = last + ?1", [i64::try_from(charges)?])?;
        db.execute("UPDATE audit_head SET (seq, hash) = (SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1)", [])?;
        Ok(())
    })
}

/// Settles all that a till has open with a real bank.
async fn settle(stage: &mut Stage, till: &Till) -> Result<()> {
    let bank = stage.fresh_bank().await?;
    let at = Bank { url: bank.url.clone(), token: Secret::new(SECRET) };
    let shutdown = CancellationToken::new();
    let mut settling = till.start_settling(Some(at), shutdown.clone())?;
    let begin = Instant::now();
    while till.summary().await?.unsettled > 0 {
        ensure!(begin.elapsed() < TOLD, "a charge is not settled");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shutdown.cancel();
    settling.stopped().await?;
    bank.clear().await
}

/// Charges, each beside a raw commit of the same rows on a twin of the file.
pub(crate) async fn alone(dir: &Path, pairs: u64) -> Result<Clicks> {
    let (path, first) = (dir.join(FILE), charge()?);
    let intent = first.intent_id;
    let till = Till::open(dir)?;
    till.charge(first).await?;
    drop(till);
    wait_until_free(dir).await?;
    let twin = fill::twin(&path)?;
    let (raw, _) = raw::open(&twin)?;
    let frozen = Frozen::new(Sale::read(&raw, intent)?)?;
    let till = Till::open(dir)?;
    let clicking = async move {
        let mut clicks = Clicks::new()?;
        let mut events = till.subscribe();
        let mut numbers = Numbers {
            sale: next(&raw, "number", "sales")?,
            receipt: 0,
            audit: next(&raw, "seq", "audit")?,
            previous: head(&raw)?,
        };
        for _ in 0..pairs {
            let charge = charge()?;
            let begin = Instant::now();
            till.charge(charge).await?;
            clicks.ours.record(begin.elapsed())?;
            // What a click is followed by must not lie under the raw commit.
            told(&mut events).await?;
            let rows = frozen.copy(&Name::new(Timestamp::now()), &numbers)?;
            let begin = Instant::now();
            raw::commit(&raw, |db| frozen.write(db, &rows))?;
            clicks.raw.record(begin.elapsed())?;
            numbers.sale += 1;
            numbers.audit += i64::try_from(frozen.sale.audit.len())?;
            numbers.previous = hash(numbers.audit - 1);
        }
        anyhow::Ok(clicks)
    };
    let clicks = tokio::spawn(clicking).await??;
    wait_until_free(dir).await?;
    same_rows(&path, &twin, &TABLES)?;
    for suffix in ["", "-wal", "-shm"] {
        let mut name = twin.clone().into_os_string();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(clicks)
}

/// A number that no row has yet.
fn next(db: &Connection, column: &str, table: &str) -> Result<i64> {
    Ok(db.query_row(&format!("SELECT coalesce(max({column}), 0) + 1 FROM {table}"), [], |row| row.get(0))?)
}

/// Waits until the figures of the queue were told, with which a click ends.
async fn told(events: &mut Receiver<Event>) -> Result<()> {
    let telling = async {
        loop {
            match events.recv().await {
                Ok(Event::SummaryChanged(_)) => return Ok(()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    };
    Ok(tokio::time::timeout(TOLD, telling).await.context("the till does not tell its figures")??)
}

/// Waits until whoever had the folder has let it go: the file's writer ends after its last handle.
async fn wait_until_free(dir: &Path) -> Result<()> {
    let begin = Instant::now();
    while let Err(error) = Till::open(dir) {
        ensure!(begin.elapsed() < TOLD, "the folder is not let go: {error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
