//! Damage of a file that nobody meets before he comes to it.
#![cfg(unix)]

use std::os::unix::fs::FileExt as _;

use rusqlite::Connection;
use store::{Migration, Priority, Schema, StorageError, Store, WriteError};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

const SQL: &str = "CREATE TABLE t (n INTEGER NOT NULL) STRICT; CREATE INDEX t_n ON t (n);
    WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 5000) INSERT INTO t SELECT n FROM many;";

fn open(path: &std::path::Path) -> Result<Store, store::OpenError> {
    let migrations = vec![Migration { version: 1, name: "first", sql: SQL }];
    Store::open(path, &Schema { application_id: 7, migrations })
}

fn by_index(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT sum(n) FROM t INDEXED BY t_n WHERE n > 0", [], |row| row.get(0))
}

#[test]
fn damage_that_a_look_or_a_piece_of_work_meets_is_known_to_all() -> Checked {
    for by_a_look in [true, false] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.db");
        drop(open(&path)?);
        let root: u64 =
            Connection::open(&path)?.query_row("SELECT rootpage FROM sqlite_schema WHERE name = 't_n'", [], |row| {
                row.get::<_, u32>(0).map(u64::from)
            })?;
        std::fs::File::options().write(true).open(&path)?.write_all_at(&[0xa5; 4_096], (root - 1) * 4_096)?;
        let store = open(&path)?;
        assert!(store.trouble().is_none(), "nobody has met it");
        let met = if by_a_look {
            store.read_blocking(by_index).is_err()
        } else {
            store.write_blocking(Priority::Background, by_index).is_err()
        };
        assert!(met, "there is no damage");
        assert!(store.trouble().is_some_and(|error| error.is_damage()), "{:?}", store.trouble());
        // What else the file takes does not hide it.
        store.probe_blocking()?;
        assert!(matches!(store.trouble(), Some(StorageError::Sqlite(_))));
    }
    Ok(())
}

/// Its own BEGIN reads the header, and what it finds there does not pass because the next one does not look.
#[test]
fn damage_that_the_writer_meets_by_itself_is_known_to_all() -> Checked {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.db");
    let store = open(&path)?;
    store.probe_blocking()?;
    let bytes = std::fs::File::options().read(true).write(true).open(&path)?;
    let other = Connection::open(&path)?;
    // From now on all of it is read from the file itself.
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let mut header = [0; 100];
    bytes.read_exact_at(&mut header, 0)?;
    bytes.write_all_at(&[0xa5; 100], 0)?;
    let refused = store.write_blocking(Priority::Click, |_| Ok::<_, rusqlite::Error>(()));
    assert!(matches!(&refused, Err(WriteError::Storage(error)) if error.is_damage()), "{refused:?}");
    bytes.write_all_at(&header, 0)?;
    store.probe_blocking()?;
    assert!(store.trouble().is_some_and(|error| error.is_damage()), "{:?}", store.trouble());
    Ok(())
}

/// What a caller keeps in an error of his own the store can't know, and he can tell it.
#[test]
fn damage_that_is_told_is_known_to_all() -> Checked {
    let folder = tempfile::tempdir()?;
    let store = open(&folder.path().join("a.db"))?;
    let failure = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
    store.met(&failure(rusqlite::ffi::SQLITE_FULL));
    assert!(store.trouble().is_none(), "a full disk is no damage");
    store.met(&failure(rusqlite::ffi::SQLITE_CORRUPT_INDEX));
    assert!(store.trouble().is_some_and(|error| error.is_damage()), "{:?}", store.trouble());
    Ok(())
}
