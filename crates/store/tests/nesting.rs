//! Work on the file that waits for more of it: it would wait for the very thread that it runs on, and everybody after it too.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rusqlite::Connection;
use store::{Migration, Priority, ReadError, Schema, StorageError, Store, WriteError};

fn open(folder: &Path) -> Result<Store, store::OpenError> {
    let migrations = vec![Migration { version: 1, name: "first", sql: "CREATE TABLE t (n INTEGER NOT NULL) STRICT" }];
    Store::open(&folder.join("a.db"), &Schema { application_id: 7, migrations })
}

fn insert(n: i64) -> impl FnOnce(&Connection) -> rusqlite::Result<usize> {
    move |tx| tx.execute("INSERT INTO t VALUES (?1)", [n])
}

fn numbers(store: &Store) -> Result<Vec<i64>, ReadError<rusqlite::Error>> {
    store.read_blocking(|c| c.prepare("SELECT n FROM t ORDER BY n")?.query_map([], |row| row.get(0))?.collect())
}

fn is_nested<T>(written: &Result<T, WriteError<rusqlite::Error>>) -> bool {
    matches!(written, Err(WriteError::Storage(StorageError::Nested)))
}

/// Does it on a thread of its own: an error where it never ends.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RecvTimeoutError> {
    let (done, wait) = channel();
    std::thread::spawn(move || done.send(work()));
    wait.recv_timeout(Duration::from_secs(10))
}

#[test]
fn a_piece_that_waits_for_another_is_refused_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (outer, inner) = (store.clone(), store.clone());
    let nested = in_time(move || {
        outer.write_blocking(Priority::Click, move |tx| {
            insert(1)(tx)?;
            let blocking = inner.write_blocking(Priority::Click, insert(2));
            Ok::<_, rusqlite::Error>([is_nested(&blocking), is_nested(&inner.probe_blocking())])
        })
    });
    assert_eq!(nested.expect("the writer waits for itself").unwrap(), [true; 2]);
    store.write_blocking(Priority::Click, insert(4)).unwrap();
    assert_eq!(numbers(&store).unwrap(), [1, 4]);
}

/// One that waits for another may find a thread that is free; as many as there are threads never do.
#[test]
fn a_look_that_waits_for_another_is_refused_and_the_readers_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.write_blocking(Priority::Click, insert(1)).unwrap();
    let looks: Vec<_> = (0..8)
        .map(|_| {
            let (outer, inner) = (store.clone(), store.clone());
            let look = move |_: &Connection| Ok::<_, rusqlite::Error>(numbers(&inner));
            std::thread::spawn(move || in_time(move || outer.read_blocking(look)))
        })
        .collect();
    for look in looks {
        let nested = look.join().unwrap().expect("the readers wait for themselves").unwrap();
        assert!(matches!(nested, Err(ReadError::Storage(StorageError::Nested))), "{nested:?}");
    }
    assert_eq!(numbers(&store).unwrap(), [1]);
}

#[test]
fn a_piece_may_wait_for_a_look_and_for_another_file() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, other) = (open(here.path()).unwrap(), open(there.path()).unwrap());
    let (inner, of_other) = (store.clone(), other.clone());
    let piece = move |tx: &Connection| {
        insert(1)(tx)?;
        of_other.write_blocking(Priority::Click, insert(2)).map_err(|error| error.to_string()).unwrap();
        Ok::<_, rusqlite::Error>(numbers(&inner).unwrap())
    };
    // What is not committed is not seen.
    let seen = in_time(move || store.write_blocking(Priority::Click, piece)).expect("it hangs").unwrap();
    assert_eq!((seen, numbers(&other).unwrap()), (vec![], vec![2]));
}
