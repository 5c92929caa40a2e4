//! Bringing a copy back, and matching what the bank has since.

use super::{
    FILE_NAME, lock, not_opened, not_written,
    payments_at_bank::{self, Stopped},
};
use crate::{Matched, Restored, Till, TillError, audit::Signature, begun, clock, restore, schema, settings, trouble};
use jiff::SignedDuration;
use outbox::{Bank, BankIdentity, HttpTransport};
use protocol::{POLICY_PATH, Policy};
use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use store::{Priority, Store};

/// Pages that are copied at a time.
const STEP_PAGES: i32 = 1_000;
/// How much earlier than the copy the bank's list is read to: the two clocks may differ.
const CLOCKS_APART: SignedDuration = SignedDuration::from_hours(48);
/// Who brings a copy back.
const WHO: &str = "restore";

impl Till {
    /// Brings a copy back into a data folder that no process has, as a till of a new name: the one it had with `-r` and six characters by
    /// chance, or `name`. Its numbers go on under that name. A file that is there is put aside as `till.db.before-restore-N`, and only
    /// where nothing in it is unsettled. Nothing is paid on the restored file until [`Till::match_restored`] was done. Blocks.
    ///
    /// # Errors
    /// [`TillError::InUse`], [`TillError::Refused`] where the copy is none, or what is there is unsettled or can't be read,
    /// [`TillError::InvalidSetting`] for a name that can't be one or is the old one, [`TillError::Storage`]. What was there is there
    /// still.
    pub fn restore(data_dir: &Path, from: &Path, name: Option<&str>) -> Result<Restored, TillError> {
        let _lock = lock(data_dir)?;
        let file = data_dir.join(FILE_NAME);
        if is_same(&file, from) {
            return Err(TillError::Refused(format!("{} is this till's own file, and no copy of it", from.display())));
        }
        let is_there = fs::metadata(&file).is_ok_and(|found| found.len() > 0);
        if is_there {
            fold(&file)?;
        }
        let partial = data_dir.join(format!("{FILE_NAME}.restoring"));
        remove_beginning_with(data_dir, &partial)?;
        let (till_name_before, till_name) = prepare(from, &partial, name).inspect_err(|_| {
            // What is left is removed by the next one, too.
            if let Err(error) = remove_beginning_with(data_dir, &partial) {
                tracing::warn!(%error, "what is left of a restore could not be removed");
            }
        })?;
        let io = |error: io::Error| TillError::Storage(trouble::of_io(&error, &file));
        let aside = if is_there { Some(put_aside(&file)?) } else { None };
        fs::rename(&partial, &file).map_err(io)?;
        #[cfg(unix)]
        fs::File::open(data_dir).and_then(|folder| folder.sync_all()).map_err(io)?;
        remove_beginning_with(data_dir, &partial)?;
        begun::set(&file);
        Ok(Restored { till_name, till_name_before, aside })
    }

    /// Whether the file was brought back from a copy and the bank's payments since then were not matched yet, so that nothing can be paid.
    ///
    /// # Errors
    /// [`TillError::NotRead`] or [`TillError::Damaged`] where the file can't be read.
    pub async fn waits_for_match(&self) -> Result<bool, TillError> {
        Ok(!self.read(restore::unmatched).await?.is_empty())
    }

    /// Goes through the bank's payments since the copy was made, takes over those of this till that the file does not know, and lets it be
    /// paid on again. A sale that was paid meanwhile is closed as paid. Where there is nothing to match it does nothing, and asks nobody.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the bank can't be asked or is another one, [`TillError::Storage`]. It can be done again: what was
    /// taken over is known then.
    pub async fn match_restored(&self, bank: &Bank) -> Result<Matched, TillError> {
        let restores = self.read(restore::unmatched).await?;
        let Some(since) = restores.iter().map(|restore| restore.copied_at).min() else { return Ok(Matched::default()) };
        let since = since.checked_sub(CLOCKS_APART).unwrap_or(since);
        let transport = HttpTransport::new(bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let policy: Policy =
            payments_at_bank::known(payments_at_bank::ask(&transport, POLICY_PATH).await).map_err(not_asked)?;
        let identity = BankIdentity { bank_id: policy.bank_id, merchant: policy.merchant };
        let asked = identity.clone();
        self.read(move |conn| restore::check_bank(conn, &asked)).await?;
        let (mut matched, mut pages) = (Matched::default(), payments_at_bank::Pages::since(Some(since)));
        while let Some(page) = pages.next(&transport).await.map_err(not_asked)? {
            for payment in page {
                let (known, look) = (restores.clone(), payment.clone());
                if !self.read(move |conn| restore::is_missing(conn, &known, &look)).await? {
                    continue;
                }
                let (known, bank) = (restores.clone(), identity.clone());
                let taken = self
                    .change_unlocked(move |tx, signature| restore::take_over(tx, signature, &known, &payment, &bank))
                    .await?;
                match taken {
                    Ok(sale) => matched.paid.push(sale),
                    Err(why) => matched.unknown.push(why),
                }
            }
        }
        let done = matched.clone();
        self.change_unlocked(move |tx, signature| restore::set_matched(tx, signature, &restores, &done)).await?;
        Ok(matched)
    }
}

fn not_asked(stopped: Stopped) -> TillError {
    match stopped {
        Stopped::Bank(why) => TillError::NoBank(format!("the bank's payments could not be listed: {why}")),
        Stopped::Till(error) => error,
    }
}

fn is_same(file: &Path, other: &Path) -> bool {
    matches!((file.canonicalize(), other.canonicalize()), (Ok(file), Ok(other)) if file == other)
}

/// Copies the file there, brings it up to date and marks it. Gives the name before and after.
fn prepare(from: &Path, partial: &Path, name: Option<&str>) -> Result<(String, String), TillError> {
    let refused = |why: String| TillError::Refused(format!("{} can't be brought back: {why}", from.display()));
    let sqlite = |error: rusqlite::Error| refused(trouble::of_sqlite(&error));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags).map_err(sqlite)?;
    let said: String = source.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
    if said != "ok" {
        return Err(refused(format!("it is damaged ({said})")));
    }
    if source.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)).map_err(sqlite)? == 0 {
        return Err(refused("it is empty".to_owned()));
    }
    store::make_private(partial).map_err(|error| TillError::Storage(trouble::of_io(&error, partial)))?;
    let mut copy = Connection::open(partial).map_err(sqlite)?;
    let backup = Backup::new(&source, &mut copy).map_err(sqlite)?;
    loop {
        match backup.step(STEP_PAGES).map_err(sqlite)? {
            StepResult::Done => break,
            StepResult::More => {}
            _ => return Err(refused("another program holds it".to_owned())),
        }
    }
    drop(backup);
    copy.close().map_err(|(_, error)| sqlite(error))?;
    let store = Store::open_prepared(partial, &schema::schema(), schema::prepare)
        .map_err(|error| not_opened(&error, partial))?;
    let name = name.map(str::to_owned);
    let names = store
        .write_blocking(Priority::Click, move |tx| {
            if !settings::exist(tx)? {
                return Err(TillError::Refused("no till was ever set up in that file".to_owned()));
            }
            let before = settings::read(tx)?.till_name;
            let name = name.unwrap_or_else(|| restore::name_after(&before, rand::random()));
            if name == before {
                return Err(TillError::InvalidSetting("a restored till needs another name than it had"));
            }
            let signature = Signature::of_program(WHO, clock::now());
            Ok((restore::mark(tx, &signature, &name)?, name))
        })
        .map_err(not_written)?;
    drop(store);
    fold(partial)?;
    Ok(names)
}

/// Brings what stands in a file's log into the file, so that it is all there is; refuses where something in it is unsettled and it is the
/// till's own.
fn fold(file: &Path) -> Result<(), TillError> {
    let refused = |why: String| TillError::Refused(format!("{}: {why}", file.display()));
    let not_read = |error: rusqlite::Error| {
        refused(format!(
            "it is not known whether anything in it is unsettled ({}): move it away yourself where you are sure",
            trouble::of_sqlite(&error)
        ))
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags).map_err(not_read)?;
    if file.file_name().is_some_and(|name| name == FILE_NAME) {
        let unsettled: i64 = conn
            .query_row("SELECT count(*) FROM operations WHERE settled_at IS NULL", [], |row| row.get(0))
            .map_err(not_read)?;
        if unsettled > 0 {
            return Err(refused(format!(
                "{unsettled} of its payments are not settled: settle them first (`kassa-till sync`). Nothing was changed"
            )));
        }
    }
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0)).map_err(not_read)?;
    if mode != "delete" {
        return Err(refused("another program holds it".to_owned()));
    }
    conn.close().map_err(|(_, error)| not_read(error))?;
    fs::File::open(file)
        .and_then(|file| file.sync_all())
        .map_err(|error| TillError::Storage(trouble::of_io(&error, file)))
}

fn put_aside(file: &Path) -> Result<PathBuf, TillError> {
    let storage = |error: io::Error| TillError::Storage(trouble::of_io(&error, file));
    let mut number = 1_u32;
    loop {
        let aside = file.with_file_name(format!("{FILE_NAME}.before-restore-{number}"));
        if !aside.try_exists().map_err(storage)? {
            fs::rename(file, &aside).map_err(storage)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Removes what an earlier restore that was cut short left, and the copies that were made while the file was brought up to date.
fn remove_beginning_with(folder: &Path, partial: &Path) -> Result<(), TillError> {
    let storage = |error: io::Error| TillError::Storage(trouble::of_io(&error, folder));
    let Some(begin) = partial.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    for entry in fs::read_dir(folder).map_err(storage)? {
        let entry = entry.map_err(storage)?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(begin)) {
            fs::remove_file(entry.path()).map_err(storage)?;
        }
    }
    Ok(())
}
