//! How settling starts, why it can't, and that nothing of it is left behind.

use super::{Checked, Scene};
use crate::{Bank, Secret, TillError};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(20);

fn nobody() -> Option<Bank> {
    Some(Bank { url: "http://127.0.0.1:9".to_owned(), token: Secret::new("sk_test") })
}

/// Only one who may come later is told to come again: what somebody must mend first is told as that.
#[test]
fn why_settling_cannot_start_is_told_as_what_it_is() -> Checked {
    let scene = Scene::new()?;
    let start = || scene.till.start_settling(nobody(), CancellationToken::new());
    let told = start();
    assert!(matches!(told, Err(TillError::Internal(_))), "outside of a runtime: {told:?}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let lock = scene.dir.path().join("data/till.db.settling");
    std::fs::create_dir(&lock)?;
    let told = start();
    assert!(matches!(&told, Err(TillError::NotOpened(why)) if why.contains("till.db.settling")), "{told:?}");
    std::fs::remove_dir(&lock)?;

    let held = store::LockFile::acquire(&lock)?;
    let told = start();
    assert!(matches!(&told, Err(TillError::InUse(why)) if why.contains("in use by")), "{told:?}");
    drop(held);

    scene.file()?.execute_batch("DROP TRIGGER operations_kept")?;
    let told = start();
    assert!(matches!(&told, Err(TillError::Internal(why)) if why.contains("outbox's tables")), "{told:?}");
    Ok(())
}

#[tokio::test]
async fn after_another_took_over_nothing_of_this_one_keeps_the_file() -> Checked {
    let scene = Scene::new()?;
    let mut settling = scene.till.start_settling(nobody(), CancellationToken::new())?;
    // Only a loop that has begun can be taken over from.
    let begun = Instant::now();
    while scene.count("SELECT epoch FROM outbox")? == 0 {
        assert!(begun.elapsed() < LIMIT, "it never began");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    scene.file()?.execute("UPDATE outbox SET epoch = epoch + 1", [])?;
    let ended = timeout(LIMIT, settling.stopped()).await?;
    assert!(matches!(ended, Err(TillError::InUse(_))), "{ended:?}");
    let Scene { till, dir } = scene;
    drop(till);
    // The last to close a file takes its log along.
    let log = dir.path().join("data/till.db-wal");
    let begun = Instant::now();
    while log.exists() {
        assert!(begun.elapsed() < LIMIT, "somebody keeps the file open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
