//! A write-ahead log whose end is lost: the till has forgotten how far it was, and no more than that.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::{
    broken::copy,
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        relay::{Moment, Relay},
        till::Till,
        until,
    },
    said::{AMOUNT, SYNC, done},
};

const CLICKS: usize = 8;
/// The answer that the till does not live to see whole. Those before it are stored.
const DIES_AT: u32 = 5;
const LIMIT: Duration = Duration::from_secs(30);
/// Places where the log is cut, besides its very beginning; in every second one a byte is changed instead.
const CUTS: usize = 24;
/// Tills that run at one time.
const AT_ONCE: usize = 4;

/// Attempts and results are lost with the log's end, and so a payment looks as if it had never been sent. It is sent again,
/// under its key.
#[tokio::test]
async fn with_the_end_of_its_log_lost_the_till_charges_once_each() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = &Till::in_folder(folder.path());
    let bank = &Bank::start(folder.path()).await?;
    // Clicked and closed: that is in the file itself.
    let told = &till.pay(CLICKS, AMOUNT, "tok_visa").await?;
    let relay = Relay::start(&bank.url).await?;
    relay.hold_at(Moment::HalfAnswered, DIES_AT);
    let mut sync = till.start("sync", SYNC, Some(&relay.url))?;
    relay.holds(1, LIMIT).await?;
    // Read is not yet stored.
    until("the answers before it are stored", LIMIT, async || {
        Ok((approved(till).await? == DIES_AT as usize - 1).then_some(()))
    })
    .await?;
    sync.kill()?;
    relay.let_go();
    let log = &fs::read(till.data().join("till.db-wal"))?;
    ensure!(log.len() > 20 * 4_096, "there are only {} bytes in the log", log.len());

    let cuts = (0..=CUTS).map(|cut| async move {
        let at = log.len() * cut / CUTS;
        let known = with_log_cut(at, cut % 2 == 1, log, till, told, bank).await;
        known.with_context(|| format!("at byte {at} of {}", log.len()))
    });
    let known: Vec<usize> = stream::iter(cuts).buffer_unordered(AT_ONCE).try_collect().await?;
    println!("Results that the till still knew of, each time: {known:?}");
    ensure!(known.contains(&0) && known.contains(&4), "the cuts made no difference");
    Ok(())
}

async fn approved(till: &Till) -> Result<usize> {
    Ok(till.operations().await?.iter().filter(|operation| operation["state"] == "approved").count())
}

/// Cuts the log, or breaks it from there on by one wrong byte, and goes on. Gives how many results the till still knew of.
async fn with_log_cut(
    at: usize,
    by_a_byte: bool,
    log: &[u8],
    from: &Till,
    told: &[String],
    bank: &Bank,
) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    copy(from.data(), till.data())?;
    let mut log = log.to_vec();
    match log.get_mut(at).filter(|_| by_a_byte) {
        Some(byte) => *byte ^= 0x10,
        None => log.truncate(at),
    }
    fs::write(till.data().join("till.db-wal"), &log)?;
    // Where there is none, the log is read anew.
    fs::remove_file(till.data().join("till.db-shm"))?;
    let known = approved(&till).await?;
    done(&mut till.start("sync", SYNC, Some(&bank.url))?).await?;
    ensure!(checker::one_charge_each(&till, bank, told).await? == Verdict::all_approved(CLICKS));
    Ok(known)
}
