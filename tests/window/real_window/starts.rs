//! Starts that must not succeed: each says why, and leaves everything as it is.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use anyhow::{Result, ensure};
use rusqlite::Connection;

use super::{CROISSANT, ONCE};
use crate::{
    harness::until,
    stage::{Asks, Stage},
};

const STEP_LIMIT: Duration = Duration::from_secs(20);
/// A version of the file that no Kassa of today has.
const LATER_VERSION: u32 = 65_535;

#[test]
fn a_second_start_on_one_folder_says_so_and_does_not_disturb_the_first() -> Result<()> {
    Stage::play("second-start", Asks::NamedBank, async |stage| {
        let mut second = stage.start_beside("second")?;
        let ended = second.ended(STEP_LIMIT).await?;
        ensure!(ended.code() == Some(1), "{ended}");
        let said = second.said_itself()?;
        ensure!(said.len() == 1 && said[0].contains("is in use by another process"), "{}", second.said()?);
        ensure!(said[0].contains("in front now"), "the first was not asked to come forward: {}", said[0]);
        ensure!(!stage.display.shows_window("Kassa did not start")?, "one window is enough");
        drop(second);

        let screen = stage.screen()?;
        screen.ring_up(CROISSANT).await?;
        screen.pay_by_card("tok_visa").await?;
        screen.see("pay-approved").await?;
        ensure!(stage.bank()?.charges().await? == ONCE);
        Ok(())
    })
}

#[test]
fn a_file_of_a_newer_kassa_is_refused_and_left_as_it_is() -> Result<()> {
    Stage::play("newer-file", Asks::NamedBank, async |stage| {
        stage.close().await?;
        let file = stage.data.join("till.db");
        Connection::open(&file)?.pragma_update(None, "user_version", LATER_VERSION)?;
        let before = fs::read(&file)?;

        let refused = stage.start_beside("refused")?;
        until("the start says why", STEP_LIMIT, async || Ok(refused.said()?.contains("newer").then_some(()))).await?;
        until("the start shows why", STEP_LIMIT, async || {
            Ok(stage.display.shows_window("Kassa did not start")?.then_some(()))
        })
        .await?;
        drop(refused);
        ensure!(fs::read(&file)? == before, "the file was changed");
        Ok(())
    })
}

#[test]
fn a_start_without_its_bank_is_told_in_one_line_and_in_the_log() -> Result<()> {
    Stage::play("no-bank-file", Asks::BundledBank, async |stage| {
        stage.close().await?;
        let file = stage.data.join("bank/bank.db");
        fs::remove_file(&file)?;
        fs::create_dir(&file)?;

        let refused = stage.start_beside("refused")?;
        until("the start shows why", STEP_LIMIT, async || {
            Ok(stage.display.shows_window("Kassa did not start")?.then_some(()))
        })
        .await?;
        let said = refused.said_itself()?;
        ensure!(said.len() == 1 && said[0].contains("the bundled bank did not start"), "{}", refused.said()?);
        ensure!(!refused.said()?.contains("ERROR"), "told twice: {}", refused.said()?);
        until("the log has it", STEP_LIMIT, async || {
            let mut log = String::new();
            for day in fs::read_dir(stage.data.join("logs"))? {
                log += &fs::read_to_string(day?.path())?;
            }
            Ok(log.contains("did not start: the bundled bank did not start").then_some(()))
        })
        .await
    })
}

#[test]
fn the_folder_and_all_in_it_are_the_users_alone() -> Result<()> {
    Stage::play("private-folder", Asks::BundledBank, async |stage| {
        let mut open = vec![stage.data.clone()];
        while let Some(path) = open.pop() {
            let found = fs::metadata(&path)?;
            if found.is_dir() {
                ensure!(found.permissions().mode() & 0o077 == 0, "{} can be looked into by others", path.display());
                for entry in fs::read_dir(&path)? {
                    open.push(entry?.path());
                }
            }
        }
        Ok(())
    })
}
