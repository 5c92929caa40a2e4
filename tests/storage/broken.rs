//! A file that a newer program has written, or that is damaged: refused in one clear line, left as it is, and nothing sent.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::{RngCore as _, SeedableRng as _, rngs::StdRng};
use rusqlite::Connection;

use crate::{
    harness::{bank::Bank, relay::Relay, till::Till},
    said::{AMOUNT, PAY, SYNC, SYNC_SHORT, done, ended, keys, lines, reason, refusal},
};

/// A page of SQLite's, in bytes.
const PAGE: usize = 4_096;
const CLICKS: usize = 12;
/// Tills that run at one time.
const AT_ONCE: usize = 6;

/// Every command that opens the file, the key aside.
fn commands(key: &str) -> [Vec<&str>; 7] {
    [
        PAY.to_vec(),
        SYNC_SHORT.to_vec(),
        vec!["refund", key, "--amount", "100"],
        vec!["cancel", key],
        vec!["operations"],
        vec!["log", key],
        vec!["export", "payments", "--format", "json"],
    ]
}

/// Refused by every command, in a line with these words, with the file as it was and nobody asked.
async fn is_refused(till: &Till, key: &str, words: &[&str], relay: &Relay) -> Result<()> {
    let file = till.data().join("till.db");
    let before = fs::read(&file)?;
    for (number, command) in commands(key).iter().enumerate() {
        let url = (command == SYNC_SHORT).then_some(&relay.url[..]);
        let mut process = till.start(&format!("refused-{number}"), command, url)?;
        let said = refusal(&mut process).await.with_context(|| format!("{command:?}"))?;
        ensure!(process.said()?.lines().count() == 1, "{command:?}: more than a line: {}", process.said()?);
        for word in words {
            ensure!(said.contains(word), "{command:?}: no {word:?} in: {said}");
        }
        ensure!(fs::read(&file)? == before, "{command:?} changed the file");
    }
    ensure!(relay.asked().is_empty(), "the bank was asked: {:?}", relay.asked());
    Ok(())
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_as_it_is_to_the_byte() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let told = till.pay(2, AMOUNT, "tok_visa").await?;
    let file = till.data().join("till.db");
    let version: u32 = Connection::open(&file)?.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let set = |version: u32| Connection::open(&file)?.pragma_update(None, "user_version", version);
    set(version + 1)?;
    is_refused(&till, &told[0], &["till.db", "newer version", "use that version"], &relay).await?;
    ensure!(!till.data().join("till.db-wal").exists(), "something of it was written beside it");

    // The newer program was killed: what it wrote last stands in the log, the version too.
    set(version)?;
    let newer = Connection::open(&file)?;
    newer.pragma_update(None, "user_version", version + 1)?;
    let beside = tempfile::tempdir()?;
    let killed = Till::in_folder(beside.path());
    copy(till.data(), killed.data())?;
    let log = fs::read(killed.data().join("till.db-wal"))?;
    ensure!(!log.is_empty(), "there is nothing in the log");
    is_refused(&killed, &told[0], &["newer version"], &relay).await?;
    ensure!(fs::read(killed.data().join("till.db-wal"))? == log, "the log was changed");

    drop(newer);
    set(version)?;
    ensure!(keys(&till.operations().await?) == told, "the version that wrote it finds everything");
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_cut_or_no_database_is_refused_and_left_as_it_is() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let whole = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let told = whole.pay(CLICKS, AMOUNT, "tok_visa").await?;
    let bytes = fs::read(whole.data().join("till.db"))?;
    let half = bytes.len() / PAGE / 2 * PAGE;
    let header = [b"garbage garbage!", &bytes[16..]].concat();
    let text = "This is no database, whatever its name says. ".repeat(1_000).into_bytes();
    let damages: [(&str, &[u8]); 6] = [
        ("cut in half", &bytes[..half]),
        ("cut in a page", &bytes[..half + 1_000]),
        ("cut before its last page", &bytes[..bytes.len() - PAGE]),
        ("cut in its header", &bytes[..50]),
        ("with another header", &header),
        ("of text", &text),
    ];
    for (name, damage) in damages {
        let folder = tempfile::tempdir()?;
        let till = Till::in_folder(folder.path());
        copy(whole.data(), till.data())?;
        fs::write(till.data().join("till.db"), damage)?;
        is_refused(&till, &told[0], &["till.db", "damaged", "backup"], &relay).await.context(name)?;
    }
    // The bytes put back are the till again: no damage of the folder is left.
    fs::write(whole.data().join("till.db"), &bytes)?;
    done(&mut whole.start("sync", SYNC, Some(&relay.url))?).await?;
    ensure!(bank.charges().await?.count == i64::try_from(CLICKS)?, "{:?}", bank.charges().await?);
    Ok(())
}

/// Of a click whose operation is there.
const KNOWN: [&str; 2] = ["--intent", "known"];

/// What became of a till with one page of garbage.
#[derive(Default, Debug)]
struct Pages {
    refused: u32,
    set_aside: u32,
    settled: u32,
}

/// SQLite finds a broken page when it comes to it, and that may be in the middle of settling. Whatever it comes to: never a
/// second charge, never another amount, and never a good end where something is not settled.
#[tokio::test]
async fn with_any_page_broken_nothing_is_charged_twice_and_no_good_end_is_told() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let whole = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let mut told = whole.pay(CLICKS, AMOUNT, "tok_visa").await?;
    told.extend(keys(&done(&mut whole.start("known", &[PAY, &KNOWN].concat(), None)?).await?));
    let bytes = &fs::read(whole.data().join("till.db"))?;
    let (whole, bank, told) = (&whole, &bank, &told);
    let pages = (0..bytes.len() / PAGE).map(|page| async move {
        let ended = with_page_broken(page, bytes, whole, told, bank).await;
        ended.with_context(|| format!("page {page} of {}", bytes.len() / PAGE))
    });
    let ends: Vec<_> = stream::iter(pages).buffer_unordered(AT_ONCE).try_collect().await?;
    let mut pages = Pages::default();
    for end in ends {
        match end {
            0 => pages.settled += 1,
            1 => pages.refused += 1,
            _ => pages.set_aside += 1,
        }
    }
    println!("{pages:?}");
    ensure!(pages.refused > 0 && pages.settled > 0, "one kind of damage was never met");

    // They all have the same keys, so that what two of them sent is one charge.
    for key in told {
        let Some(gateway_key) = bank.gateway_key(key).await? else { continue };
        let moved = bank.gateway_ledger(Some(&gateway_key)).await?;
        ensure!(moved["charges"] == 1 && moved["charged"]["EUR"] == AMOUNT, "{key}: {moved}");
    }
    let moved = bank.charges().await?;
    ensure!(moved.count <= i64::try_from(told.len())? && moved.euros == moved.count * AMOUNT, "{moved:?}");
    Ok(())
}

async fn with_page_broken(page: usize, bytes: &[u8], whole: &Till, told: &[String], bank: &Bank) -> Result<i32> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    copy(whole.data(), till.data())?;
    let mut broken = bytes.to_vec();
    StdRng::seed_from_u64(page as u64).fill_bytes(&mut broken[page * PAGE..(page + 1) * PAGE]);
    fs::write(till.data().join("till.db"), &broken)?;
    // A click that was saved before: nobody may be told that it was not.
    let mut again = till.start("again", &[PAY, &KNOWN].concat(), None)?;
    match ended(&mut again).await?.code() {
        Some(0) => ensure!(keys(&lines(&again)?).last() == told.last(), "another operation: {}", again.printed()?),
        Some(1) => ensure!(!reason(&again)?.contains("nothing was saved"), "{}", again.said()?),
        code => anyhow::bail!("{code:?}: {}", again.said()?),
    }
    // Far longer than it takes, and not as long as this test waits.
    let mut sync = till.start("sync", &["sync", "--until-settled", "--timeout", "30s"], Some(&bank.url))?;
    let status = ended(&mut sync).await?;
    let code = status.code().with_context(|| format!("{status}"))?;
    match code {
        0 => {
            let listed = till.operations().await?;
            ensure!(keys(&listed) == told, "a good end, and not all is there");
            ensure!(
                listed.iter().all(|operation| operation["state"] == "approved"),
                "a good end, and not all is settled"
            );
        }
        1 => {
            let said = reason(&sync)?;
            ensure!(said.contains("damaged") && said.contains("backup"), "{said}");
        }
        4 => {}
        // Whoever meets the damage, a look or a change: it is no matter of time.
        3 => anyhow::bail!("it went on until its time was up: {}", sync.said()?),
        _ => anyhow::bail!("{status}: {}", sync.said()?),
    }
    Ok(code)
}

/// Copies the files of a data folder.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(to)?;
    let mut copied = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        fs::copy(entry.path(), &target)?;
        copied.push(target);
    }
    Ok(copied)
}
