//! A disk, and a file, that may be read and not written. Root writes to a file whatever its mode says, so it is the mount that
//! forbids it.

use anyhow::{Result, ensure};

use crate::{
    harness::{
        bank::Bank,
        checker::{self, Verdict},
        relay::Relay,
        till::Till,
    },
    room::Room,
    said::{PAY, SYNC, SYNC_SHORT, done, keys, refusal},
};

const KIB: u32 = 4_096;

/// Makes it read-only, and writable again.
const DISK: [&str; 2] = ["mount -o remount,ro \"$0\"", "mount -o remount,rw \"$0\""];
const FILE: [&str; 2] = [
    "mount --bind \"$0/till/till.db\" \"$0/till/till.db\" && mount -o remount,bind,ro \"$0/till/till.db\"",
    "umount \"$0/till/till.db\"",
];

#[tokio::test]
async fn on_a_read_only_disk_nothing_is_saved_or_sent_and_all_can_be_read() -> Result<()> {
    nothing_is_saved_or_sent(DISK).await
}

#[tokio::test]
async fn in_a_read_only_file_nothing_is_saved_or_sent_and_all_can_be_read() -> Result<()> {
    nothing_is_saved_or_sent(FILE).await
}

async fn nothing_is_saved_or_sent([forbid, allow]: [&str; 2]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(room) = Room::mount(&folder.path().join("disk"), KIB)? else { return Ok(()) };
    let till = Till::in_folder(&folder.path().join("disk"));
    let bank = Bank::start(folder.path()).await?;
    let relay = Relay::start(&bank.url).await?;
    let mut told = keys(&done(&mut room.start(&till, "pay", &[PAY, &["--times", "3"]].concat(), None)?).await?);
    let early = [PAY, &["--intent", "early"]].concat();
    told.extend(keys(&done(&mut room.start(&till, "early", &early, None)?).await?));
    let file = room.seen(&till.data().join("till.db"));
    let before = std::fs::read(&file)?;

    room.shell(forbid)?;
    let late = [PAY, &["--intent", "late"]].concat();
    let said = refusal(&mut room.start(&till, "late", &late, None)?).await?;
    ensure!(said.contains("read-only"), "{said}");
    // It was saved, and will be sent.
    let said = refusal(&mut room.start(&till, "early-again", &early, None)?).await?;
    ensure!(said.contains("read-only") && !said.contains("nothing was saved"), "{said}");
    let said = refusal(&mut room.start(&till, "sync-refused", SYNC_SHORT, Some(&relay.url))?).await?;
    ensure!(said.contains("read-only"), "{said}");
    ensure!(relay.asked().is_empty(), "{:?} left a till that can count nothing", relay.asked());
    let listed = done(&mut room.start(&till, "operations", &["operations", "--json"], None)?).await?;
    ensure!(keys(&listed) == told, "{listed:?}");
    done(&mut room.start(&till, "log", &["log", &told[0]], None)?).await?;
    ensure!(std::fs::read(&file)? == before, "it was changed");

    room.shell(allow)?;
    told.extend(keys(&done(&mut room.start(&till, "late-again", &late, None)?).await?));
    done(&mut room.start(&till, "sync", SYNC, Some(&relay.url))?).await?;
    let till = room.bring_out(&till, folder.path())?;
    ensure!(checker::one_charge_each(&till, &bank, &told).await? == Verdict::all_approved(5));
    Ok(())
}
