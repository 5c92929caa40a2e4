//! One owner, its death, and the next one.

use anyhow::{Context, Result};
use outbox::{Ended, StartError, State};
use tokio_util::sync::CancellationToken;

use crate::bank::{Bank, Do};
use crate::till::{Till, transport, until};

#[tokio::test]
async fn a_second_owner_is_refused() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    till.start(&bank)?;
    let second = till.outbox.start(transport(&bank)?, CancellationToken::new());
    assert!(matches!(second, Err(StartError::Locked(_))), "{second:?}");
    assert_eq!(till.stop().await?, Ended::Stopped);
    till.start(&bank)?;
    Ok(())
}

#[tokio::test]
async fn a_file_without_the_outboxs_tables_is_refused_at_the_start_and_nothing_is_asked() -> Result<()> {
    let bank = Bank::new().await?;
    let migrations =
        [("own", "CREATE TABLE parcels (name TEXT) STRICT"), ("outbox", outbox::MIGRATIONS[0])].map(|step| vec![step]);
    for (found, steps) in migrations.into_iter().enumerate() {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("shop.db");
        let migrations =
            (1..).zip(steps).map(|(version, (name, sql))| store::Migration { version, name, sql }).collect();
        let store = store::Store::open(&path, &store::Schema { application_id: 7, migrations })?;
        let started =
            outbox::Outbox::new(store, outbox::BankContract).start(transport(&bank)?, CancellationToken::new());
        let Err(error @ StartError::Tables { .. }) = started else { anyhow::bail!("it started: {started:?}") };
        let text = error.to_string();
        let expected = format!("shop.db: has {found} of the {} steps of the outbox's tables", outbox::MIGRATIONS.len());
        assert!(text.contains(&expected) && text.ends_with("outbox::MIGRATIONS among its migrations"), "{text}");
        assert!(!folder.path().join("shop.db.settling").exists(), "it is nobody's");
    }
    assert_eq!(bank.seen("/").len(), 0);
    Ok(())
}

#[test]
fn what_a_killed_owner_had_in_flight_goes_out_again_with_the_same_bytes_and_key() -> Result<()> {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let bank_runtime = runtime()?;
    let bank = bank_runtime.block_on(Bank::new())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("till.db");
    bank.next([Do::HangAfter, Do::HangAfter, Do::HangAfter]);
    let mut key = None;
    for deaths in 0..3_usize {
        let till_runtime = runtime()?;
        till_runtime.block_on(async {
            let mut till = Till::at(&path)?;
            till.start(&bank)?;
            if key.is_none() {
                key = Some(till.pay(2490).await?.key);
            }
            let key = key.context("a key")?;
            until("the payment", || bank.payments().len() > deaths).await?;
            let sending = till.until_state(key, State::Sending).await?;
            assert_eq!(usize::try_from(sending.attempts)?, deaths + 1, "counted before it was sent");
            anyhow::Ok(())
        })?;
        // As a kill does it: nothing gets to end.
        till_runtime.shutdown_timeout(std::time::Duration::from_secs(10));
    }
    let key = key.context("a key")?;
    bank_runtime.block_on(async {
        let mut till = Till::at(&path)?;
        till.start(&bank)?;
        let paid = till.until_state(key, State::Approved).await?;
        let payments = bank.payments();
        assert_eq!((paid.attempts, payments.len(), bank.charges()), (4, 4, 1));
        assert!(payments.iter().all(|seen| seen.key == payments[0].key && seen.body == payments[0].body));
        let resumed = till.log(key).await?.into_iter().filter(|entry| entry.event == "resumed").count();
        assert_eq!(resumed, 3);
        let deaths = |conn: &rusqlite::Connection| {
            conn.query_row("SELECT deaths FROM operations", [], |row| row.get::<_, u32>(0))
        };
        assert_eq!(till.store.read(deaths).await?, 0, "deaths are counted in a row, and this one came through");
        anyhow::Ok(())
    })
}

#[tokio::test]
async fn at_the_end_what_is_in_flight_is_unknown() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    bank.next([Do::HangAfter]);
    till.start(&bank)?;
    let key = till.pay(2490).await?.key;
    until("the payment", || bank.payments().len() == 1).await?;
    assert_eq!(till.stop().await?, Ended::Stopped);
    let left = till.operation(key).await?;
    assert_eq!(left.state, State::Unknown);
    assert_eq!(till.tender(key).await?.0, "unknown");
    till.start(&bank)?;
    till.until_state(key, State::Approved).await?;
    assert_eq!(bank.charges(), 1);
    Ok(())
}

#[tokio::test]
async fn an_owner_that_was_replaced_writes_and_sends_nothing_more() -> Result<()> {
    let (bank, mut till) = (Bank::new().await?, Till::new()?);
    till.start(&bank)?;
    let first = till.pay(100).await?.key;
    till.until_state(first, State::Approved).await?;
    // Somebody without respect for locks.
    let other = rusqlite::Connection::open(till.path())?;
    other.execute("UPDATE outbox SET epoch = epoch + 1", [])?;
    let key = till.pay(2490).await?.key;
    assert_eq!(till.ended().await?, Ended::TakenOver);
    let saved = till.operation(key).await?;
    assert_eq!((saved.state, saved.attempts), (State::Saved, 0));
    assert_eq!(bank.payments().len(), 1);
    Ok(())
}
