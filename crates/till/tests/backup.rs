//! Copies of a till's file, by the library and by `kassa-till backup`, while the till sells.

use protocol::{Amount, CardToken, Currency};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};
use tempfile::TempDir;
use till::{Charge, OperationQuery, Till, Told, new_id};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

fn kassa_till(data: &Path, args: &[&str]) -> Checked<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kassa-till"));
    for name in ["KASSA_BANK_URL", "KASSA_BANK_TOKEN", "KASSA_LOG", "RUST_LOG"] {
        command.env_remove(name);
    }
    Ok(command.env("KASSA_DATA_DIR", data).args(args).output()?)
}

fn charge(amount: i64) -> Checked<Charge> {
    Ok(Charge {
        intent_id: new_id(),
        amount: Amount::new(amount)?,
        currency: Currency::EUR,
        card: CardToken::new("tok_visa".to_owned())?,
        reference: None,
        accepted_offline: false,
    })
}

async fn shop(payments: i64) -> Checked<(TempDir, PathBuf, Till)> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let till = Till::open(&data)?;
    for amount in 1..=payments {
        till.charge(charge(amount)?).await?;
    }
    Ok((dir, data, till))
}

/// A copy in a folder of its own, as a till that is only looked at.
fn opened(copy: &Path) -> Checked<(TempDir, Till)> {
    let dir = tempfile::tempdir()?;
    fs::copy(copy, dir.path().join("till.db"))?;
    let till = Till::open_read_only(dir.path())?;
    Ok((dir, till))
}

async fn amounts(till: &Till) -> Checked<Vec<i64>> {
    let query = OperationQuery { oldest_first: true, ..OperationQuery::default() };
    Ok(till.operations(query).await?.operations.iter().map(|operation| operation.amount).collect())
}

async fn findings(till: &Till) -> Checked<Vec<String>> {
    let (tell, told) = std::sync::mpsc::channel();
    till.examine(move |told| {
        if let Told::Found(finding) = told {
            // The other end lives as long as this look.
            let _ = tell.send(format!("{finding:?}"));
        }
    })
    .await?;
    Ok(told.into_iter().collect())
}

#[tokio::test]
async fn a_copy_is_the_whole_file_private_and_in_one_piece() -> Checked {
    let (dir, _, till) = shop(3).await?;
    let copy = dir.path().join("copy.db");
    let last = Arc::new(AtomicU32::new(0));
    let seen = last.clone();
    let done = till.backup(&copy, move |told| seen.store(told.done * 1_000 / told.of, Ordering::Relaxed)).await?;
    assert_eq!(last.load(Ordering::Relaxed), 1_000, "the last word on the progress is that all is done");
    assert_eq!(done.bytes, copy.metadata()?.len());
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&copy.metadata()?.permissions()) & 0o777, 0o600);
    let (_copied, copied) = opened(&copy)?;
    assert_eq!(amounts(&copied).await?, [1, 2, 3]);
    assert_eq!(findings(&copied).await?, Vec::<String>::new());
    let names: Vec<_> = fs::read_dir(dir.path())?.map(|entry| Ok(entry?.file_name())).collect::<Checked<_>>()?;
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_there_is_never_written_over() -> Checked {
    let (dir, data, till) = shop(1).await?;
    let copy = dir.path().join("copy.db");
    fs::write(&copy, "kept")?;
    for target in [copy.clone(), data.join("till.db")] {
        let before = fs::read(&target)?;
        let refused = till.backup(&target, |_| {}).await.err().ok_or("it was written over")?;
        assert_eq!(refused.code(), "backup");
        assert!(refused.to_string().contains("is there already"), "{refused}");
        assert_eq!(fs::read(&target)?, before);
    }
    let refused = kassa_till(&data, &["backup", copy.to_str().ok_or("no text")?])?;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(fs::read(&copy)?, b"kept");
    // What a kill left of an earlier one is in nobody's way.
    fs::write(dir.path().join("new.db.partial"), "half")?;
    till.backup(&dir.path().join("new.db"), |_| {}).await?;
    assert!(!dir.path().join("new.db.partial").exists());
    Ok(())
}

#[tokio::test]
async fn where_it_can_not_be_written_nothing_is_left() -> Checked {
    let (dir, _, till) = shop(1).await?;
    let refused = till.backup(&dir.path().join("nowhere/copy.db"), |_| {}).await.err().ok_or("it was written")?;
    assert_eq!(refused.code(), "backup", "{refused}");
    assert!(!dir.path().join("nowhere").exists());
    assert!(till.backup(Path::new("/"), |_| {}).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_damaged_file_gives_no_copy() -> Checked {
    let (dir, data, till) = shop(200).await?;
    drop(till);
    // A page in the middle of the file, as a failing disk leaves it.
    let file = data.join("till.db");
    let mut bytes = fs::read(&file)?;
    let table: u32 = rusqlite::Connection::open(&file)?.query_row(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'audit_by_sale'",
        [],
        |row| row.get(0),
    )?;
    let at = (table as usize - 1) * 4_096;
    bytes[at + 8..at + 64].fill(0xff);
    fs::write(&file, bytes)?;
    let copy = dir.path().join("copy.db");
    let refused = kassa_till(&data, &["backup", copy.to_str().ok_or("no text")?])?;
    assert_eq!(refused.status.code(), Some(1), "{}", String::from_utf8_lossy(&refused.stdout));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no copy was made"));
    assert!(!copy.exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_till_that_sells_is_copied_as_one_state_of_it() -> Checked {
    let (dir, data, till) = shop(20).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let selling = (0..4).map(|_| {
        let (till, is_over) = (till.clone(), is_over.clone());
        tokio::spawn(async move {
            let mut sold = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                let charge = charge(5).map_err(|error| error.to_string())?;
                till.charge(charge).await.map_err(|error| error.to_string())?;
                sold += 1;
            }
            Ok::<_, String>(sold)
        })
    });
    let selling: Vec<_> = selling.collect();
    let mut copied = Vec::new();
    for number in 0..6 {
        let copy = dir.path().join(format!("copy-{number}.db"));
        if number % 2 == 0 {
            till.backup(&copy, |_| {}).await?;
        } else {
            // By another process, as somebody at a terminal does.
            let (data, name) = (data.clone(), copy.to_str().ok_or("no text")?.to_owned());
            let done = tokio::task::spawn_blocking(move || {
                kassa_till(&data, &["backup", &name]).map_err(|error| error.to_string())
            });
            let done = done.await??;
            assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let (_folder, look) = opened(&copy)?;
        assert_eq!(findings(&look).await?, Vec::<String>::new());
        copied.push(
            rusqlite::Connection::open(&copy)?
                .query_row("SELECT count(*) FROM tenders", [], |row| row.get::<_, i64>(0))?,
        );
    }
    is_over.store(true, Ordering::Relaxed);
    let mut sold = 20_i64;
    for task in selling {
        sold += i64::from(task.await??);
    }
    assert!(copied.is_sorted() && copied.first() >= Some(&20) && copied.last() <= Some(&sold), "{copied:?} of {sold}");
    assert!(copied.first() < copied.last(), "nothing was sold meanwhile: {copied:?}");
    Ok(())
}
