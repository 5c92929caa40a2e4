//! One writer: groups, refusals, panics, locks and full disks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use rusqlite::{Connection, ErrorCode};
use store::{Migration, Priority, ReadError, Schema, StorageError, Store, WriteError};
use tokio::sync::oneshot::{self, error::RecvError};
use tokio::task::JoinHandle;

const SQL: &str = "
    CREATE TABLE t (n INTEGER NOT NULL UNIQUE, text TEXT) STRICT;
    CREATE TABLE parent (id INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED) STRICT;";

type Write<T> = Result<T, WriteError<rusqlite::Error>>;

fn open(folder: &Path) -> Result<Store, store::OpenError> {
    let migrations = vec![Migration { version: 1, name: "first", sql: SQL }];
    Store::open(&folder.join("a.db"), &Schema { application_id: 7, migrations })
}

async fn insert(store: &Store, priority: Priority, n: i64) -> Write<usize> {
    store.write(priority, move |tx| tx.execute("INSERT INTO t (n) VALUES (?1)", [n])).await
}

/// Occupies the writer until the sender is used or dropped; returns once it is occupied.
async fn hold(store: &Store) -> Result<(JoinHandle<Write<()>>, Sender<()>), RecvError> {
    let (held, started, sender) = holding(store, Priority::Click);
    started.await?;
    Ok((held, sender))
}

/// The same; says once it is occupied.
fn holding(store: &Store, priority: Priority) -> (JoinHandle<Write<()>>, oneshot::Receiver<()>, Sender<()>) {
    let (sender, receiver) = channel();
    let (started, at_start) = oneshot::channel();
    let held = tokio::spawn(store.write(priority, move |_: &Connection| {
        let _ = started.send(());
        let _ = receiver.recv();
        Ok(())
    }));
    (held, at_start, sender)
}

async fn let_go(sender: Sender<()>) {
    drop(sender);
}

async fn numbers(store: &Store) -> Result<Vec<i64>, ReadError<rusqlite::Error>> {
    store.read(|c| c.prepare("SELECT n FROM t ORDER BY n")?.query_map([], |row| row.get(0))?.collect()).await
}

#[tokio::test]
async fn what_was_waiting_shares_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let before = store.work().commits;
    let (held, sender) = hold(&store).await.unwrap();
    let writes = futures::future::join_all((0..40).map(|n| insert(&store, Priority::Background, n)));
    let (held, written, ()) = tokio::join!(held, writes, let_go(sender));
    held.unwrap().unwrap();
    assert!(written.iter().all(Result::is_ok));
    assert_eq!(numbers(&store).await.unwrap().len(), 40);
    assert_eq!(store.work().commits - before, 2, "the one that was running, and one for all that came meanwhile");
}

#[tokio::test]
async fn the_first_of_a_group_can_refuse_or_panic_by_itself_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    // Clicks would join the group that is held; these wait for the next, in this order.
    let refusing = |n: i64| {
        store.write(Priority::Background, move |tx| {
            tx.execute("INSERT INTO t (n) VALUES (?1)", [n]).unwrap();
            Err::<(), &str>("not today")
        })
    };
    for panics in [false, true] {
        let (held, sender) = hold(&store).await.unwrap();
        let before = store.work().commits;
        let first = async {
            if panics {
                let panicking = store.write(Priority::Background, |tx| -> Result<(), &str> {
                    tx.execute("INSERT INTO t (n) VALUES (50)", []).unwrap();
                    panic!("a mistake")
                });
                assert!(matches!(panicking.await, Err(WriteError::Storage(StorageError::Panicked(_)))));
            } else {
                assert!(matches!(refusing(50).await, Err(WriteError::Refused("not today"))));
            }
        };
        let n = if panics { 2 } else { 1 };
        let second = insert(&store, Priority::Background, n);
        let (held, (), second, third, ()) = tokio::join!(held, first, second, refusing(51), let_go(sender));
        held.unwrap().unwrap();
        assert_eq!(second.unwrap(), 1);
        assert!(matches!(third, Err(WriteError::Refused("not today"))));
        assert_eq!(numbers(&store).await.unwrap(), (1..=n).collect::<Vec<_>>(), "nothing of those that refused");
        assert_eq!(store.work().commits - before, 2, "the one that was held, and one for the group");
    }
    // Alone it is the first of its group as well, and leaves no transaction behind.
    assert!(matches!(refusing(52).await, Err(WriteError::Refused("not today"))));
    insert(&store, Priority::Background, 3).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn a_lone_write_is_committed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..3 {
        insert(&store, Priority::Click, n).await.unwrap();
        assert_eq!(store.work().commits, u64::try_from(n).unwrap() + 1);
    }
}

#[tokio::test]
async fn a_probe_really_writes_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    insert(&store, Priority::Click, 1).await.unwrap();
    let log_bytes = || std::fs::metadata(folder.path().join("a.db-wal")).unwrap().len();
    let version = || store.read(|c| c.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)));
    let before = log_bytes();
    store.write(Priority::Click, |_| Ok::<_, rusqlite::Error>(())).await.unwrap();
    assert_eq!(log_bytes(), before, "a write that changes nothing proves nothing");
    let probing = store.clone();
    tokio::task::spawn_blocking(move || probing.probe_blocking()).await.unwrap().unwrap();
    let after_one = log_bytes();
    assert!(after_one > before);
    store.probe().await.unwrap();
    assert!(log_bytes() > after_one);
    assert_eq!((version().await.unwrap(), numbers(&store).await.unwrap()), (1, vec![1]));
}

#[tokio::test]
async fn one_that_refuses_leaves_the_others_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let before = store.work().commits;
    let (held, sender) = hold(&store).await.unwrap();
    let refusing = store.write(Priority::Click, |tx| {
        tx.execute("INSERT INTO t (n) VALUES (50)", []).unwrap();
        Err::<(), &str>("not today")
    });
    let (held, first, refused, constrained, last, ()) = tokio::join!(
        held,
        insert(&store, Priority::Click, 1),
        refusing,
        insert(&store, Priority::Click, 1),
        insert(&store, Priority::Click, 2),
        let_go(sender)
    );
    held.unwrap().unwrap();
    first.unwrap();
    last.unwrap();
    assert!(matches!(refused, Err(WriteError::Refused("not today"))));
    assert!(matches!(constrained, Err(WriteError::Refused(_))));
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
    assert_eq!(store.work().commits - before, 1, "all of them were one group");
}

#[tokio::test]
async fn a_panic_is_rolled_back_and_the_writer_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    let panicking = store.write(Priority::Click, |tx| -> rusqlite::Result<()> {
        tx.execute("INSERT INTO t (n) VALUES (50)", [])?;
        panic!("a mistake")
    });
    let (held, panicked, other, ()) = tokio::join!(held, panicking, insert(&store, Priority::Click, 1), let_go(sender));
    held.unwrap().unwrap();
    other.unwrap();
    assert!(matches!(panicked, Err(WriteError::Storage(StorageError::Panicked(text))) if &*text == "a mistake"));
    insert(&store, Priority::Click, 2).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn clicks_overtake_background_work() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |priority, name: &'static str| {
        let order = order.clone();
        store.write(priority, move |_| {
            order.lock().unwrap().push(name);
            Ok::<_, rusqlite::Error>(())
        })
    };
    let (held, sender) = hold(&store).await.unwrap();
    let (held, a, b, c, d, ()) = tokio::join!(
        held,
        note(Priority::Background, "settle 1"),
        note(Priority::Background, "settle 2"),
        note(Priority::Click, "click 1"),
        note(Priority::Click, "click 2"),
        let_go(sender)
    );
    held.unwrap().unwrap();
    for result in [a, b, c, d] {
        result.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["click 1", "click 2", "settle 1", "settle 2"]);
}

#[tokio::test]
async fn clicks_overtake_background_work_also_where_they_fill_more_than_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let before = store.work().commits;
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |priority| {
        let order = order.clone();
        store.write(priority, move |_| {
            order.lock().unwrap().push(priority);
            Ok::<_, rusqlite::Error>(())
        })
    };
    let (held, sender) = hold(&store).await.unwrap();
    let settles = futures::future::join_all((0..3).map(|_| note(Priority::Background)));
    let clicks = futures::future::join_all((0..200).map(|_| note(Priority::Click)));
    let (held, settled, clicked, ()) = tokio::join!(held, settles, clicks, let_go(sender));
    held.unwrap().unwrap();
    assert!(settled.into_iter().chain(clicked).all(|result| result.is_ok()));
    let order = order.lock().unwrap();
    assert!(order[..200].iter().all(|&priority| priority == Priority::Click));
    assert_eq!(
        (order.len(), store.work().commits - before),
        (203, 3),
        "two of clicks, and one of what they passed over"
    );
}

#[tokio::test]
async fn a_click_that_meets_a_batch_is_not_made_to_wait_for_the_rest_of_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let commits_before = |priority| {
        let counting = store.clone();
        store.write(priority, move |_| Ok::<_, rusqlite::Error>(counting.work().commits))
    };
    let (first, sender) = hold(&store).await.unwrap();
    let (second, started, second_sender) = holding(&store, Priority::Background);
    let settles: Vec<_> = (0..4).map(|_| commits_before(Priority::Background)).collect();
    drop(sender);
    started.await.unwrap();
    let clicks = [commits_before(Priority::Click), commits_before(Priority::Click)];
    drop(second_sender);
    for held in [first, second] {
        held.await.unwrap().unwrap();
    }
    let mut seen = Vec::new();
    for write in clicks.into_iter().chain(settles) {
        seen.push(write.await.unwrap());
    }
    assert_eq!(seen, [1, 1, 2, 2, 2, 2], "the clicks share the commit that is being made, the rest has the next");
    assert_eq!(store.work().commits, 3);
}

/// A click that is followed by the next as it runs, so that the writer never finds the clicks run dry.
fn endless_click(store: Store, run: Arc<AtomicU32>, end: Arc<AtomicBool>) -> BoxFuture<'static, Write<()>> {
    let piece = {
        let store = store.clone();
        move |_: &Connection| {
            // An end of its own, so that the writer is let go where background work never comes through.
            if run.fetch_add(1, Ordering::SeqCst) < 20_000 && !end.load(Ordering::SeqCst) {
                // Polled once it will run, whoever waits for it.
                assert!(endless_click(store, run, end).now_or_never().is_none());
            }
            Ok(())
        }
    };
    async move { store.write(Priority::Click, piece).await }.boxed()
}

#[tokio::test]
async fn background_work_comes_through_though_clicks_never_run_dry() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (run, end) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (held, sender) = hold(&store).await.unwrap();
    let at = futures::future::join_all((0..100).map(|_| {
        let run = run.clone();
        store.write(Priority::Background, move |_| Ok::<_, rusqlite::Error>(run.load(Ordering::SeqCst)))
    }));
    let clicks = endless_click(store.clone(), run.clone(), end.clone());
    let (held, at, click, ()) = tokio::join!(held, at, clicks, let_go(sender));
    end.store(true, Ordering::SeqCst);
    held.unwrap().unwrap();
    click.unwrap();
    let at: Vec<u32> = at.into_iter().map(Result::unwrap).collect();
    // Sixteen in each group of 128.
    assert!(at.iter().all(|&clicks| clicks <= 1_000), "{at:?}");
    assert!(at[0] >= 100, "clicks go first all the same: {at:?}");
}

#[tokio::test]
async fn what_the_writer_has_done_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    insert(&store, Priority::Click, 1).await.unwrap();
    let before = store.work();
    let (held, sender) = hold(&store).await.unwrap();
    let waiting = futures::future::join_all((2..5).map(|n| insert(&store, Priority::Background, n)));
    let look = async {
        let work = store.work();
        drop(sender);
        work
    };
    let (held, waiting, looked) = tokio::join!(held, waiting, look);
    held.unwrap().unwrap();
    assert!(waiting.into_iter().all(|result| result.is_ok()));
    assert_eq!((looked.clicks_waiting, looked.background_waiting), (0, 3));
    assert_eq!(looked.unanswered, 4, "the one that runs too");
    let after = store.work();
    assert_eq!((after.pieces - before.pieces, after.commits - before.commits), (4, 2));
    assert!(after.commit_time > before.commit_time);
    assert_eq!((after.background_waiting, after.overloaded), (0, 0));
    // Each is taken off the count once its caller has been told.
    let told = std::time::Instant::now();
    while store.work().unanswered > 0 {
        assert!(told.elapsed().as_secs() < 10, "{:?}", store.work());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lock_held_by_another_program_fails_the_write_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    insert(&store, Priority::Click, 1).await.unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = std::time::Instant::now();
    let refused = insert(&store, Priority::Click, 2).await;
    assert!(matches!(&refused, Err(WriteError::Storage(error)) if error.is_locked()), "{refused:?}");
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "the wait for the lock is short");
    assert_eq!(numbers(&store).await.unwrap(), [1], "reading goes on meanwhile");
    other.execute_batch("ROLLBACK").unwrap();
    insert(&store, Priority::Click, 3).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [1, 3]);
}

#[tokio::test]
async fn a_full_disk_fails_the_write_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    insert(&store, Priority::Click, 1).await.unwrap();
    let limit = |tx: &Connection, pages: i64| {
        tx.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0))
    };
    let pages =
        store.write(Priority::Click, move |tx| limit(tx, tx.pragma_query_value(None, "page_count", |row| row.get(0))?));
    pages.await.unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    let large =
        store.write(Priority::Click, |tx| tx.execute("INSERT INTO t (n, text) VALUES (2, ?1)", ["x".repeat(100_000)]));
    let (held, full, ()) = tokio::join!(held, large, let_go(sender));
    let Err(WriteError::Refused(error)) = full else { panic!("{full:?}") };
    assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DiskFull));
    // SQLite may or may not have rolled back the whole group; either way each caller was told the truth.
    assert!(matches!(held, Ok(Ok(()) | Err(WriteError::Storage(StorageError::RolledBack)))), "{held:?}");
    assert_eq!(numbers(&store).await.unwrap(), [1]);
    store.write(Priority::Click, move |tx| limit(tx, 1_000_000)).await.unwrap();
    insert(&store, Priority::Click, 3).await.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [1, 3]);
}

#[tokio::test]
async fn a_transaction_that_sqlite_rolled_back_is_told_to_all_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    // `OR ROLLBACK` ends the transaction as a failing disk may.
    let before = insert(&store, Priority::Click, 1);
    let ending = async {
        let ending = store.write(Priority::Click, |tx| {
            tx.execute("INSERT INTO t (n) VALUES (5)", [])?;
            tx.execute("INSERT OR ROLLBACK INTO t (n) VALUES (5)", [])
        });
        ending.await
    };
    let (held, before, ended, after, ()) =
        tokio::join!(held, before, ending, insert(&store, Priority::Click, 2), let_go(sender));
    assert!(matches!(held, Ok(Err(WriteError::Storage(StorageError::RolledBack)))), "{held:?}");
    assert!(matches!(before, Err(WriteError::Storage(StorageError::RolledBack))), "{before:?}");
    assert!(matches!(ended, Err(WriteError::Refused(_))), "{ended:?}");
    after.unwrap();
    assert_eq!(numbers(&store).await.unwrap(), [2]);
}

#[tokio::test]
async fn a_failing_commit_is_uncertain_for_all_and_the_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    let orphan = store.write(Priority::Click, |tx| tx.execute("INSERT INTO child VALUES (404)", []));
    let (held, other, orphan, ()) = tokio::join!(held, insert(&store, Priority::Click, 1), orphan, let_go(sender));
    assert!(matches!(held, Ok(Err(WriteError::Uncertain(_)))), "{held:?}");
    assert!(matches!(other, Err(WriteError::Uncertain(_))), "{other:?}");
    assert!(matches!(orphan, Err(WriteError::Uncertain(_))), "{orphan:?}");
    assert_eq!(numbers(&store).await.unwrap(), [0_i64; 0]);
    insert(&store, Priority::Click, 2).await.unwrap();
    let synchronous: i64 =
        store.write(Priority::Click, |tx| tx.pragma_query_value(None, "synchronous", |row| row.get(0))).await.unwrap();
    assert_eq!(synchronous, 2, "the new connection is set like the first");
    assert_eq!(numbers(&store).await.unwrap(), [2]);
}

#[tokio::test]
async fn a_piece_that_commits_by_itself_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let ended = store.write(Priority::Click, |tx| tx.execute_batch("COMMIT")).await;
    assert!(matches!(ended, Err(WriteError::Uncertain(StorageError::TransactionEnded))), "{ended:?}");
    insert(&store, Priority::Click, 1).await.unwrap();
}

#[tokio::test]
async fn too_much_waiting_is_refused_and_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    let writes = futures::future::join_all((0..3_000).map(|n| insert(&store, Priority::Background, n)));
    let (held, written, ()) = tokio::join!(held, writes, let_go(sender));
    held.unwrap().unwrap();
    let refused = written.iter().filter(|result| matches!(result, Err(WriteError::Overloaded))).count();
    let saved = written.iter().filter(|result| result.is_ok()).count();
    assert!(refused > 0);
    assert_eq!(refused + saved, 3_000);
    assert_eq!(numbers(&store).await.unwrap().len(), saved);
}

#[tokio::test]
async fn what_was_accepted_is_committed_before_the_last_handle_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    // Dropped after its first poll: nobody waits for the answer any more.
    tokio::select! {
        biased;
        _ = insert(&store, Priority::Background, 1) => {}
        () = async {} => {}
    }
    drop(sender);
    held.await.unwrap().unwrap();
    drop(store);
    assert_eq!(numbers(&open(folder.path()).unwrap()).await.unwrap(), [1]);
}

#[tokio::test]
async fn the_last_handle_may_go_inside_a_piece() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (held, sender) = hold(&store).await.unwrap();
    let inside = store.clone();
    tokio::select! {
        biased;
        _ = store.write(Priority::Click, move |_| { drop(inside); Ok::<_, rusqlite::Error>(()) }) => {}
        () = async {} => {}
    }
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    let dropping = tokio::task::spawn_blocking(move || drop(store));
    drop(sender);
    dropping.await.unwrap();
    // Whoever let go last, the file can be opened and written again.
    insert(&open(folder.path()).unwrap(), Priority::Click, 1).await.unwrap();
}

#[tokio::test]
async fn a_look_sees_one_state_and_a_panic_in_it_hurts_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    insert(&store, Priority::Click, 1).await.unwrap();
    let (started, at_start) = channel::<()>();
    let (go_on, wait) = channel::<()>();
    let look = store.read(move |c| {
        let count = || c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        let first = count()?;
        let _ = started.send(());
        let _ = wait.recv();
        Ok::<_, rusqlite::Error>((first, count()?))
    });
    let write = async {
        tokio::task::spawn_blocking(move || at_start.recv()).await.unwrap().unwrap();
        insert(&store, Priority::Click, 2).await.unwrap();
        go_on.send(()).unwrap();
    };
    let (seen, ()) = tokio::join!(look, write);
    assert_eq!(seen.unwrap(), (1, 1));
    for _ in 0..10 {
        let panicked = store.read(|_| -> rusqlite::Result<()> { panic!("a mistake") }).await;
        assert!(matches!(panicked, Err(ReadError::Storage(StorageError::Panicked(_)))));
    }
    assert_eq!(numbers(&store).await.unwrap(), [1, 2]);
}

#[test]
fn no_statement_is_prepared_anew_for_another_value() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let partial = "CREATE INDEX t_seven ON t (n) WHERE n = 7; CREATE INDEX t_some ON t (n) WHERE n IN (8, 9);";
    store.write_blocking(Priority::Click, move |tx| tx.execute_batch(partial)).unwrap();
    let anew = |connection: &Connection, sql: &str| -> rusqlite::Result<i32> {
        // It has read the schema as it is now.
        connection.query_row("SELECT count(*) FROM t", [], |_| Ok(()))?;
        let mut statement = connection.prepare(sql)?;
        for n in 0..10 {
            statement.query([n])?.next()?;
        }
        Ok(statement.get_status(rusqlite::StatementStatus::RePrepare))
    };
    let (update, select) = ("UPDATE t SET n = n WHERE n = ?1", "SELECT n FROM t WHERE n = ?1");
    assert_eq!(store.write_blocking(Priority::Click, move |tx| anew(tx, update)).unwrap(), 0);
    assert_eq!(store.read_blocking(move |conn| anew(conn, select)).unwrap(), 0);
}

/// A refused piece gives the lock back and takes it again, and another program may come in between.
#[test]
fn a_lock_that_another_took_after_a_refusal_costs_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    // It lives as long as the connection.
    store.write_blocking(Priority::Click, |tx| tx.execute_batch("CREATE TEMP TABLE mark (n INTEGER)")).unwrap();
    let other = Connection::open(folder.path().join("a.db")).unwrap();
    let (sender, receiver) = channel();
    let refused = store.write_blocking(Priority::Click, move |tx| {
        tx.execute_batch("ROLLBACK")?;
        other.execute_batch("BEGIN IMMEDIATE")?;
        sender.send(other).unwrap();
        tx.execute_batch("BEGIN")?;
        Err::<(), _>(rusqlite::Error::InvalidQuery)
    });
    assert!(matches!(refused, Err(WriteError::Refused(rusqlite::Error::InvalidQuery))), "{refused:?}");
    assert!(store.trouble().is_some_and(|error| error.is_locked()), "it was never locked: {:?}", store.trouble());
    drop(receiver.recv().unwrap());
    let marks = store.write_blocking(Priority::Click, |tx| {
        tx.query_row("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'mark'", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(marks.unwrap(), 1, "the connection was replaced");
    assert!(store.trouble().is_none());
}
