//! Files of every version before the newest, and a till that dies while it brings them up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use store::points::Point;

use crate::{
    deaths::Deaths,
    harness::bank::Bank,
    place::{PAY, Place, SETTLE_LIMIT, SYNC},
};

/// A till's file, in SQLite's header: `KaTi`.
const APPLICATION_ID: i32 = 0x4b61_5469;

/// The steps of the schema up to the last version that is old, as they were shipped.
const STEPS: [&str; 10] = [
    include_str!("../../crates/outbox/src/migrations/001_outbox.sql"),
    include_str!("../../crates/till/src/migrations/002_till.sql"),
    include_str!("../../crates/outbox/src/migrations/002_outbox.sql"),
    include_str!("../../crates/till/src/migrations/004_refunds.sql"),
    include_str!("../../crates/till/src/migrations/005_sale.sql"),
    include_str!("../../crates/till/src/migrations/006_people.sql"),
    include_str!("../../crates/till/src/migrations/007_refunds.sql"),
    include_str!("../../crates/till/src/migrations/008_receipts.sql"),
    include_str!("../../crates/till/src/migrations/009_waived.sql"),
    include_str!("../../crates/till/src/migrations/010_restores.sql"),
];

/// A file of an old version.
#[derive(Clone, Copy)]
struct Old {
    version: u32,
    /// What was written into it, by a program of which version. It was brought up from there to its own.
    written: Option<(u32, &'static str)>,
}

/// Thirteen operations in every state that there was. Those that are open and were sent belong to the bank of `OPEN_AT`.
const WRITTEN_BY_2: Option<(u32, &str)> = Some((2, include_str!("old/version_2.sql")));

/// Every version before the newest.
const OLD: [Old; 10] = [
    // No till has ever worked with it: a first start left it that died between two steps.
    Old { version: 1, written: None },
    Old { version: 2, written: WRITTEN_BY_2 },
    // Nor with this one: somebody died between the two steps that follow version 2.
    Old { version: 3, written: WRITTEN_BY_2 },
    // A till of a later version that brought its file up from there.
    Old { version: 4, written: WRITTEN_BY_2 },
    Old { version: 5, written: WRITTEN_BY_2 },
    Old { version: 6, written: WRITTEN_BY_2 },
    Old { version: 7, written: WRITTEN_BY_2 },
    Old { version: 8, written: WRITTEN_BY_2 },
    Old { version: 9, written: WRITTEN_BY_2 },
    Old { version: 10, written: WRITTEN_BY_2 },
];

/// The bank that the open operations in the old files were sent to, as SQL writes it.
const OPEN_AT: &str = "X'0B0B0B0B0B0B4B0B8B0B0B0B0B0B0B0B'";

/// The version that the program under test makes.
pub(crate) async fn newest() -> Result<u32> {
    let place = Place::new()?;
    place.till.done("pay", PAY).await?;
    Ok(version(&Connection::open(place.file())?)?)
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Kills the till at each point of bringing each old file up to date. What was in the file must be in it afterwards, the copy
/// readable, and what was open must settle, charged once each.
pub(crate) async fn in_migrations(deaths: &Deaths) -> Result<()> {
    let newest = newest().await?;
    ensure!(OLD.map(|old| old.version).into_iter().eq(1..newest), "how does a file of version {} look?", newest - 1);
    let folder = tempfile::tempdir()?;
    let bank = Bank::start(folder.path()).await?;
    let mut charged = BTreeSet::new();
    for old in OLD {
        let steps = (1..=newest - old.version).flat_map(|step| [(Point::Migrating, step), (Point::Migrated, step)]);
        for (point, pass) in [(Point::Copying, 1), (Point::Copied, 1)].into_iter().chain(steps) {
            let at = || format!("from version {}, {}:{pass}", old.version, point.name());
            charged.extend(in_migration(old, (point, pass), &bank, deaths).await.with_context(at)?);
        }
    }
    let moved = bank.charges().await?.count;
    // One file is made again and again: what is open in it has one key each time.
    ensure!(
        usize::try_from(moved)? == charged.len(),
        "{moved} charges for {} operations that were open",
        charged.len()
    );
    Ok(())
}

/// One death; gives the keys that were charged for in the end.
async fn in_migration(old: Old, death: (Point, u32), bank: &Bank, deaths: &Deaths) -> Result<Vec<String>> {
    let mut place = Place::new()?;
    fs::create_dir(place.till.data())?;
    make(&place.file(), old, &bank_id(bank).await?)?;
    let before = operations_in(&place.file())?;

    place.die_at(death.0, death.1, PAY, None, deaths).await?;
    let copies = copies(&place, &before)?;
    ensure!(copies == usize::from(death.0 != Point::Copying), "{copies} copies are there");

    // The next start, which goes on with it.
    place.pay(1).await?;
    ensure!(self::copies(&place, &before)? >= 1, "there is no copy");
    let listed = place.till.operations().await?;
    let after: BTreeMap<_, _> = listed.iter().map(|one| (word(one, "key"), word(one, "state"))).collect();
    for (key, state) in &before {
        ensure!(after.get(key) == Some(state), "{key} was {state} and is {:?}", after.get(key));
    }
    ensure!(after.len() == before.len() + 1 && listed.len() == after.len(), "one more was clicked: {after:?}");

    let mut sync = place.till.start("settling", SYNC, Some(&bank.url))?;
    let status = sync.ended(SETTLE_LIMIT).await?;
    let has_attention = before.values().any(|state| state == "needs_attention");
    ensure!(status.code() == Some(if has_attention { 4 } else { 0 }), "{status}: {}", sync.said()?);
    let mut charged = Vec::new();
    for operation in place.till.operations().await? {
        let (key, state) = (word(&operation, "key"), word(&operation, "state"));
        match before.get(&key).map(String::as_str) {
            Some(was @ ("approved" | "declined" | "cancelled" | "needs_attention")) => {
                ensure!(state == was, "{key} was {was} and is {state}");
                ensure!(bank.operation(&key).await?.is_none(), "{key} was {was} and was sent again");
            }
            _ => {
                ensure!(state == "approved", "{operation}");
                let gateway_key = bank.gateway_key(&key).await?.context("it was charged")?;
                let moved = bank.gateway_ledger(Some(&gateway_key)).await?;
                ensure!(moved["charges"] == 1, "{key}: {moved}");
                charged.push(key);
            }
        }
    }
    Ok(charged)
}

/// Writes a file of an old version.
fn make(file: &Path, old: Old, bank_id: &str) -> Result<()> {
    let connection = Connection::open(file)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    ensure!(mode == "wal", "{mode}");
    till::prepare(&connection)?;
    // A step makes tables anew that others refer to.
    connection.execute_batch("PRAGMA foreign_keys = OFF")?;
    for (step, version) in STEPS.into_iter().zip(1..=old.version) {
        connection.execute_batch(step)?;
        if let Some((_, data)) = old.written.filter(|&(by, _)| by == version) {
            write(&connection, &data.replace(OPEN_AT, bank_id))?;
        }
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", old.version)?;
    Ok(())
}

fn write(connection: &Connection, data: &str) -> rusqlite::Result<()> {
    // They guard how a till works, and this is what it has come to.
    let triggers: Vec<(String, String)> = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    connection.execute_batch(data)?;
    for (_, trigger) in &triggers {
        connection.execute_batch(trigger)?;
    }
    Ok(())
}

/// The id of the bank under test, as SQL writes it.
async fn bank_id(bank: &Bank) -> Result<String> {
    let policy = bank.policy().await?;
    let id = policy["bank_id"].as_str().context("the bank has no id")?;
    Ok(format!("X'{}'", id.replace('-', "").to_uppercase()))
}

/// State by key, read with no program of ours.
fn operations_in(file: &Path) -> Result<BTreeMap<String, String>> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut rows = connection.prepare("SELECT lower(hex(key)), state FROM operations")?;
    let rows = rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    rows.map(|row| {
        let (hex, state) = row?;
        let key = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        Ok((key, state))
    })
    .collect()
}

/// How many copies stand beside the file. Each is whole, of the version that its name says, and holds what was there.
fn copies(place: &Place, before: &BTreeMap<String, String>) -> Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(place.till.data())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        // What is half copied has another name, and so have the side files of a reader.
        let Some(next) = name.strip_prefix("till.db.before-").and_then(|next| next.parse::<u32>().ok()) else {
            continue;
        };
        let copy = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let said: String = copy.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
        ensure!(said == "ok", "{name}: {said}");
        ensure!(version(&copy)? == next - 1, "{name}: it is of version {}", version(&copy)?);
        if operations_in(&path)? != *before {
            bail!("{name}: it holds {:?}", operations_in(&path)?);
        }
        found += 1;
    }
    Ok(found)
}

fn word(operation: &Value, name: &str) -> String {
    operation[name].as_str().unwrap_or_default().to_owned()
}
