//! Damage of a file that nobody meets before he comes to it.
#![cfg(unix)]

use std::os::unix::fs::FileExt as _;

use rusqlite::Connection;
use store::{Migration, Priority, Schema, StorageError, Store};

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
