//! A full disk: really full, in a room of its own, and full by a limit on the size of a file, which needs nobody's permission.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        process::Process,
        relay::Relay,
        till::Till,
        until,
    },
    room::Room,
    said::{AMOUNT, PAY, STEP_LIMIT, SYNC, SYNC_SHORT, done, ended, keys, lines, reason, refusal},
};

/// The size of the disk. A till's first file and the log in which it is made take two thirds of it.
const KIB: u32 = 2_048;
/// Operations that wait, and how many of them are sent at once.
const WAITING: usize = 12;
const AT_ONCE: usize = 4;
/// How long nobody may be asked anything while what was answered can't be stored. Longer than the first waits of a back-off.
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test]
async fn on_a_full_disk_a_click_fails_in_the_open_and_is_never_sent() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(room) = Room::mount(&folder.path().join("disk"), KIB)? else { return Ok(()) };
    let till = Till::in_folder(&folder.path().join("disk"));
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let mut told = keys(&done(&mut room.start(&till, "pay", &[PAY, &["--times", "3"]].concat(), None)?).await?);

    room.fill()?;
    // Twice: the first look may leave the beginning of an index behind.
    for look in ["look 1", "look 2"] {
        let listed = done(&mut room.start(&till, look, &["operations", "--json"], None)?).await?;
        ensure!(keys(&listed) == told, "what is saved can't be read: {listed:?}");
    }
    let late = [PAY, &["--intent", "late"]].concat();
    for attempt in ["late 1", "late 2"] {
        let said = refusal(&mut room.start(&till, attempt, &late, None)?).await?;
        ensure!(said.contains("make room") && said.contains("nothing was "), "{said}");
    }
    let mut sync = room.start(&till, "sync-full", SYNC_SHORT, Some(&relay.url))?;
    let status = ended(&mut sync).await?;
    ensure!(matches!(status.code(), Some(1 | 3)), "{status}: {}", sync.said()?);
    let said = reason(&sync)?;
    ensure!(said.contains("make room"), "{said}");
    ensure!(relay.keyed().is_empty(), "{:?} left a till that can count nothing", relay.keyed());

    room.make_room()?;
    done(&mut room.start(&till, "sync", SYNC, Some(&relay.url))?).await?;
    ensure!(bank.charges().await?.count == 3, "{:?}: a click that failed was sent", bank.charges().await?);
    // The same click again, now that there is room: one operation.
    let saved = done(&mut room.start(&till, "late 3", &late, None)?).await?;
    ensure!(done(&mut room.start(&till, "late 4", &late, None)?).await? == saved, "it is another one");
    told.extend(keys(&saved));
    done(&mut room.start(&till, "sync", SYNC, Some(&relay.url))?).await?;
    let till = room.bring_out(&till, folder.path())?;
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(4));
    Ok(())
}

#[tokio::test]
async fn a_disk_that_clicks_fill_up_keeps_each_that_was_told_as_saved_and_no_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(room) = Room::mount(&folder.path().join("disk"), KIB)? else { return Ok(()) };
    let till = Till::in_folder(&folder.path().join("disk"));
    let bank = Bank::start(folder.path()).await?;
    let told =
        clicks_until_it_is_full(&mut room.start(&till, "pay", &[PAY, &["--times", "5000"]].concat(), None)?).await?;
    // Full as it is, it can neither count nor store: nothing may leave.
    let relay = Relay::start(&bank.url).await?;
    let mut sync = room.start(&till, "sync-full", SYNC_SHORT, Some(&relay.url))?;
    let status = ended(&mut sync).await?;
    ensure!(!status.success(), "it settled {} operations without room", told.len());
    reason(&sync)?;

    room.shell("mount -o remount,size=16m \"$0\"")?;
    done(&mut room.start(&till, "sync", SYNC, Some(&relay.url))?).await?;
    let till = room.bring_out(&till, folder.path())?;
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(told.len()));
    Ok(())
}

/// The same with a limit of the system on the size of each file: that is an I/O error to SQLite, and no full disk.
#[tokio::test]
async fn a_file_that_may_not_grow_keeps_each_click_that_was_told_as_saved_and_no_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let till = Till::in_folder(folder.path());
    let bank = Bank::start(folder.path()).await?;
    let mut told = till.pay(3, AMOUNT, "tok_visa").await?;
    let pay = [PAY, &["--times", "5000"]].concat();
    let mut limited = limited(&till.command(&pay, None)?);
    told.extend(clicks_until_it_is_full(&mut Process::start("pay-limited", &mut limited, folder.path())?).await?);
    done(&mut till.start("sync", SYNC, Some(&bank.url))?).await?;
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(told.len()));
    Ok(())
}

/// Runs clicks of which some must fail, and gives the keys that were told.
async fn clicks_until_it_is_full(pay: &mut Process) -> Result<Vec<String>> {
    let status = ended(pay).await?;
    ensure!(status.code() == Some(1), "{status}: {}", pay.said()?);
    let said = reason(pay)?;
    ensure!(said.contains("make room"), "{said}");
    let told = keys(&lines(pay)?);
    ensure!(!told.is_empty(), "none was saved before it was full");
    // Whoever takes it for all of them clicks those again that are saved.
    ensure!(said.contains(&format!("{} of ", told.len())), "{said}");
    println!("{} clicks were told as saved, then: {said}", told.len());
    Ok(told)
}

/// The same command with files of at most 400 KiB. A write beyond is an error, and not a signal.
fn limited(command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 800; exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

#[tokio::test]
async fn answers_that_find_no_room_are_kept_and_stored_when_there_is_room_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(room) = Room::mount(&folder.path().join("disk"), KIB)? else { return Ok(()) };
    let till = Till::in_folder(&folder.path().join("disk"));
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let times = WAITING.to_string();
    let told = keys(&done(&mut room.start(&till, "pay", &[PAY, &["--times", &times]].concat(), None)?).await?);

    // Charged, and no answer yet.
    bank.faults(json!([{"at": "saved", "do": "hang"}])).await?;
    let mut sync = room.start(&till, "sync", SYNC, Some(&relay.url))?;
    until("all that may be in flight is charged", STEP_LIMIT, async || {
        Ok((bank.charges().await?.count == i64::try_from(AT_ONCE)?).then_some(()))
    })
    .await?;
    room.fill()?;
    bank.no_faults().await?;
    until("the answers are there and can't be stored", STEP_LIMIT, async || {
        Ok((sync.said()?.matches("an outcome could not be saved yet").count() >= AT_ONCE).then_some(()))
    })
    .await?;
    let since = Instant::now();
    until("a while has passed", STEP_LIMIT, async || Ok((since.elapsed() > QUIET).then_some(()))).await?;
    let asked = relay.keyed();
    ensure!(asked.len() == AT_ONCE, "{} requests with nowhere to put an answer: {asked:?}", asked.len());
    ensure!(sync.printed()?.matches("approved").count() == 0, "told before it was durable: {}", sync.printed()?);

    room.make_room()?;
    let status = ended(&mut sync).await?;
    ensure!(status.success(), "{status}: {}", sync.said()?);
    for key in &told {
        let times = relay.keyed().iter().filter(|asked| asked.key.as_ref() == Some(key)).count();
        ensure!(times == 1, "{key} was asked for {times} times, and its answer was there after the first");
    }
    let till = room.bring_out(&till, folder.path())?;
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(WAITING));
    Ok(())
}
