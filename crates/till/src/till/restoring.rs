//! Bringing a copy back, and matching what the bank has since.

use super::{
    FILE_NAME, lock, not_opened, not_written,
    payments_at_bank::{self, Stopped},
};
use crate::{
    Event, Matched, Restored, Till, TillError, audit::Signature, begun, clock, restore, restore::Taken, schema,
    settings, trouble,
};
use outbox::{Bank, BankIdentity, HttpTransport};
use protocol::{POLICY_PATH, Policy};
use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};
use std::time::Duration;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use store::{Priority, Store};
use tokio_util::sync::CancellationToken;

/// Pages that are copied at a time.
const STEP_PAGES: i32 = 1_000;
/// How often a bank that does not answer is asked for its list.
const MATCH_TRY_AGAIN: Duration = Duration::from_secs(10);
/// Who brings a copy back.
const WHO: &str = "restore";

impl Till {
    /// Brings a copy back into a data folder that no process has, as a till of a new name: the one it had with `-r` and six characters by
    /// chance, or `name`. Its numbers go on under that name. A file that is there is put aside as `till.db.before-restore-N`, and only
    /// where nothing in it is unsettled, and the bank has heard of all that was cancelled in it. Nothing is paid or sent on the restored
    /// file until [`Till::match_restored`] was done, which [`Till::start_settling`] does by itself. Blocks.
    ///
    /// # Errors
    /// [`TillError::InUse`], [`TillError::Refused`] where the copy is none, or what is there is unsettled or can't be read,
    /// [`TillError::InvalidSetting`] for a name that can't be one or that it ever had, [`TillError::Storage`]. What was there is there
    /// still.
    pub fn restore(data_dir: &Path, from: &Path, name: Option<&str>) -> Result<Restored, TillError> {
        check_is_file(from)?;
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
        self.read(restore::waits).await
    }

    /// Goes through the bank's payments since the copy was made, takes over those of this till that the file does not know, and lets it be
    /// paid on again. A sale that was paid meanwhile is closed as paid. What has no place is kept, and its sale takes no money until it has,
    /// or [`Till::acknowledge_payment`] was done. Sales that were there when the copy was made are paid on only after a second time, at least five minutes after
    /// the first: what the lost file had sent last may be with the bank still. Where nothing is due it does nothing, and asks nobody.
    ///
    /// # Errors
    /// [`TillError::NoBank`] where the bank can't be asked or is another one, [`TillError::Storage`]. It can be done again: what was
    /// taken over is known then.
    pub async fn match_restored(&self, bank: &Bank) -> Result<Matched, TillError> {
        let now = clock::now();
        let restores = self.read(move |conn| restore::due(conn, now)).await?;
        if restores.is_empty() {
            return Ok(Matched::default());
        }
        let transport = HttpTransport::new(bank).map_err(|error| TillError::NoBank(error.to_string()))?;
        let policy: Policy =
            payments_at_bank::known(payments_at_bank::ask(&transport, POLICY_PATH).await).map_err(not_asked)?;
        let identity = BankIdentity { bank_id: policy.bank_id, merchant: policy.merchant };
        let asked = identity.clone();
        self.read(move |conn| restore::check_bank(conn, &asked)).await?;
        let (mut matched, mut pages) =
            (Matched::default(), payments_at_bank::Pages::since(restore::list_from(&restores)));
        while let Some(page) = pages.next(&transport).await.map_err(not_asked)? {
            for payment in page {
                let look = payment.clone();
                if !self.read(move |conn| restore::is_missing(conn, &look)).await? {
                    continue;
                }
                let bank = identity.clone();
                match self.match_one(move |tx, signature| restore::take_over(tx, signature, &payment, &bank)).await? {
                    Taken::Paid(sale) => matched.paid.push(sale),
                    Taken::Kept(why) => matched.unknown.push(why),
                    Taken::Nothing => {}
                }
            }
        }
        let done = matched.clone();
        self.match_one(move |tx, signature| restore::set_matched(tx, signature, now, &done)).await?;
        self.tell_matched(&matched).await?;
        Ok(matched)
    }

    /// Whoever shows these sales looks at them again; and what is to be cancelled now goes out.
    async fn tell_matched(&self, matched: &Matched) -> Result<(), TillError> {
        self.inner.queue.outbox.wake();
        for &number in &matched.paid {
            if let Some(sale_id) = self.read(move |conn| restore::sale_id(conn, number)).await? {
                self.tell(Event::SaleChanged { sale_id });
            }
        }
        self.tell_summary().await;
        Ok(())
    }

    /// Matches a restored file as soon as the bank answers, so that it can be paid on; until then nothing is sent. False where it was to end
    /// before.
    pub(crate) async fn match_before_settling(&self, shutdown: &CancellationToken) -> bool {
        loop {
            let Some(bank) = self.inner.queue.bank() else { return false };
            let matched = tokio::select! {
                biased;
                () = shutdown.cancelled() => return false,
                matched = self.match_restored(&bank) => matched,
            };
            match matched {
                Ok(matched) => {
                    log_matched(&matched);
                    return true;
                }
                Err(error) => tracing::warn!(%error, "a restored file waits for the bank's payments to be matched"),
            }
            self.tell_summary().await;
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return false,
                () = self.inner.queue.asked_again.notified() => {}
                () = tokio::time::sleep(MATCH_TRY_AGAIN) => {}
            }
        }
    }

    /// Matches a restored file once more when that is due.
    pub(crate) async fn match_again_when_due(&self) {
        loop {
            let open = match self.read(restore::open).await {
                Ok(open) if open.is_empty() => return,
                Ok(open) => open,
                Err(error) => {
                    tracing::warn!(%error, "it could not be read whether a restore is to be matched again");
                    Vec::new()
                }
            };
            let (now, due) = (clock::now(), open.iter().filter_map(restore::OpenRestore::due_at).min());
            // Looked at again now and then all the same: the clock may be set meanwhile, and a machine that sleeps stops its timers.
            let wait = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
            tokio::time::sleep(wait.unwrap_or(MATCH_TRY_AGAIN).min(MATCH_TRY_AGAIN)).await;
            if due.is_none_or(|due| due > clock::now()) {
                continue;
            }
            let Some(bank) = self.inner.queue.bank() else { return };
            match self.match_restored(&bank).await {
                Ok(matched) => log_matched(&matched),
                Err(error) => {
                    tracing::warn!(%error, "the bank's payments could not be matched again after a restore");
                    tokio::time::sleep(MATCH_TRY_AGAIN).await;
                }
            }
        }
    }

    /// One change of a match. Whoever is logged in did not make it.
    async fn match_one<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Connection, &Signature) -> Result<T, TillError> + Send + 'static,
    ) -> Result<T, TillError> {
        self.as_program(WHO).change_unlocked(change).await
    }
}

fn log_matched(matched: &Matched) {
    for sale in &matched.paid {
        tracing::warn!(sale, "a sale was paid after the copy was made, and is closed as paid");
    }
    for why in &matched.unknown {
        tracing::error!(payment = %why, "a payment of the bank's has no place here: a person must look");
    }
}

fn not_asked(stopped: Stopped) -> TillError {
    match stopped {
        Stopped::Bank(why) => TillError::NoBank(format!("the bank's payments could not be listed: {why}")),
        Stopped::Till(error) => error,
    }
}

/// Refuses what is no file before it is opened: a pipe would be waited for without end.
fn check_is_file(from: &Path) -> Result<(), TillError> {
    let refused = |why: String| Err(TillError::Refused(format!("{} can't be brought back: {why}", from.display())));
    match fs::metadata(from) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) if found.is_dir() => refused("it is a folder, and not the file of a copy".to_owned()),
        Ok(_) => refused("it is a device or a pipe, and not the file of a copy".to_owned()),
        Err(error) => refused(error.to_string()),
    }
}

fn is_same(file: &Path, other: &Path) -> bool {
    matches!((file.canonicalize(), other.canonicalize()), (Ok(file), Ok(other)) if file == other)
}

/// Copies the file there, brings it up to date and marks it. Gives the name before and after.
fn prepare(from: &Path, partial: &Path, name: Option<&str>) -> Result<(String, String), TillError> {
    let refused = |why: String| TillError::Refused(format!("{} can't be brought back: {why}", from.display()));
    let sqlite = |error: rusqlite::Error| refused(trouble::of_sqlite(&error));
    // What is wrong is so with the file that was named, and not with the copy of it that is being made here.
    let named = |error: TillError| match error {
        TillError::Refused(why) => {
            TillError::Refused(why.replace(&partial.display().to_string(), &from.display().to_string()))
        }
        error => error,
    };
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
        .map_err(|error| named(not_opened(&error, partial)))?;
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
        check_is_settled(&conn, refused, not_read)?;
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

/// Refuses a file of which the bank has not heard all: what a copy of it would do then is not what this one meant.
fn check_is_settled(
    conn: &Connection,
    refused: impl Fn(String) -> TillError,
    not_read: impl Fn(rusqlite::Error) -> TillError,
) -> Result<(), TillError> {
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(&not_read);
    let unsettled = count("SELECT count(*) FROM operations WHERE settled_at IS NULL")?;
    if unsettled > 0 {
        return Err(refused(format!(
            "{unsettled} of its payments are not settled: settle them first (`kassa-till sync`). Nothing was changed"
        )));
    }
    // The first files knew no cancellation.
    if count("SELECT count(*) FROM pragma_table_info('operations') WHERE name = 'tombstone'")? == 0 {
        return Ok(());
    }
    let untold = count("SELECT count(*) FROM operations WHERE tombstone = 1")?;
    if untold > 0 {
        return Err(refused(format!(
            "{untold} of its payments were cancelled, and the bank has not heard of it, so that the copy might have them charged: tell it first (`kassa-till sync`). Nothing was changed"
        )));
    }
    Ok(())
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
