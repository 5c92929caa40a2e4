//! What is opened, how it is set, and what is refused.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Migration, OpenError, Priority, Schema, StorageError, Store, WriteError};

const FIRST: Migration = Migration { version: 1, name: "first", sql: "CREATE TABLE t (n INTEGER NOT NULL) STRICT" };
const SECOND: Migration = Migration { version: 2, name: "second", sql: "ALTER TABLE t ADD COLUMN m INTEGER" };

fn schema(migrations: &[Migration]) -> Schema {
    Schema { application_id: 0x4b41_5401, migrations: migrations.to_vec() }
}

fn insert(store: &Store, n: i64) -> Result<usize, WriteError<rusqlite::Error>> {
    store.write_blocking(Priority::Click, move |tx| tx.execute("INSERT INTO t (n) VALUES (?1)", [n]))
}

fn numbers(path: &Path) -> rusqlite::Result<Vec<i64>> {
    let connection = Connection::open(path)?;
    let mut statement = connection.prepare("SELECT n FROM t ORDER BY n")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Every file of a folder with its bytes.
fn contents(folder: &Path) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        files.push((path.clone(), std::fs::read(path)?));
    }
    files.sort();
    Ok(files)
}

#[test]
fn a_clean_end_leaves_nothing_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Store::open(&path, &schema(&[FIRST])).unwrap();
    insert(&store, 1).unwrap();
    // A connection that has read holds the log open.
    store.read_blocking(|c| c.query_row("SELECT n FROM t", [], |row| row.get::<_, i64>(0))).unwrap();
    assert!(folder.path().join("a.db-wal").exists());
    drop(store);
    assert!(!folder.path().join("a.db-wal").exists());
}

#[test]
fn the_writer_is_set_to_survive_a_power_loss() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a.db"), &schema(&[FIRST])).unwrap();
    let read = |name: &'static str| {
        store
            .write_blocking(Priority::Click, move |tx| {
                tx.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            })
            .unwrap()
    };
    assert_eq!(read("journal_mode"), "wal".to_owned().into());
    for (name, wanted) in [
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("recursive_triggers", 1),
        ("trusted_schema", 0),
        ("mmap_size", 0),
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("journal_size_limit", 8 * 1024 * 1024),
        ("busy_timeout", 1_000),
        ("application_id", 0x4b41_5401),
        ("user_version", 1),
    ] {
        assert_eq!(read(name), wanted.into(), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn what_it_makes_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/deep/a.db");
    let store = Store::open(&path, &schema(&[FIRST])).unwrap();
    insert(&store, 1).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_newer_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    insert(&Store::open(&path, &schema(&[FIRST, SECOND])).unwrap(), 1).unwrap();
    let before = contents(folder.path()).unwrap();
    let refused = Store::open(&path, &schema(&[FIRST])).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 2, newest: 1, .. }), "{refused}");
    assert_eq!(contents(folder.path()).unwrap(), before);
}

#[test]
fn a_newer_file_whose_last_commits_are_still_in_the_log_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(Store::open(&path, &schema(&[FIRST])).unwrap());
    // The newer version's migration is only in the write-ahead log, as after a kill.
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("BEGIN; INSERT INTO t VALUES (7); PRAGMA user_version = 9; COMMIT").unwrap();
    let copy = tempfile::tempdir().unwrap();
    let copied = copy.path().join("a.db");
    for suffix in ["", "-wal"] {
        let name = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::copy(name(&path), name(&copied)).unwrap();
    }
    let kept = |path: &Path| {
        let mut files = contents(path).unwrap();
        files.retain(|(path, _)| !path.to_string_lossy().ends_with("-shm"));
        files
    };
    let before = kept(copy.path());
    let refused = Store::open(&copied, &schema(&[FIRST])).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 9, newest: 1, .. }), "{refused}");
    assert_eq!(kept(copy.path()), before);
}

#[test]
fn another_programs_file_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sql) in
        [("marked.db", "PRAGMA application_id = 5; CREATE TABLE x (y)"), ("bare.db", "CREATE TABLE x (y)")]
    {
        let path = folder.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        let refused = Store::open(&path, &schema(&[FIRST])).unwrap_err();
        assert!(matches!(refused, OpenError::WrongApplication { .. }), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn something_that_is_no_database_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    std::fs::write(&path, "Dear shop, ".repeat(500)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = Store::open(&path, &schema(&[FIRST])).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_copy_is_made_before_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space & more.db");
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 1).unwrap();
    insert(&Store::open(&path, &schema(&[FIRST, SECOND])).unwrap(), 2).unwrap();
    assert_eq!(numbers(&path).unwrap(), [1, 2]);
    let copy = folder.path().join("with space & more.db.before-2");
    assert_eq!(numbers(&copy).unwrap(), [1]);
    let version: i64 =
        Connection::open(&copy).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}

#[test]
fn a_new_file_needs_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(&folder.path().join("a.db"), &schema(&[FIRST, SECOND])).unwrap());
    let names: Vec<_> = contents(folder.path()).unwrap().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [folder.path().join("a.db")]);
}

#[test]
fn a_migration_that_fails_leaves_the_file_at_the_version_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 1).unwrap();
    let broken = Migration { version: 2, name: "broken", sql: "DELETE FROM t; ALTER TABLE nothing ADD COLUMN m" };
    let failed = Store::open(&path, &schema(&[FIRST, broken])).unwrap_err();
    assert!(matches!(failed, OpenError::Migration { version: 2, .. }), "{failed}");
    assert_eq!(numbers(&path).unwrap(), [1]);
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 2).unwrap();
}

const FAMILY: &str = "CREATE TABLE parents (id INTEGER PRIMARY KEY CHECK (id < 10));
     CREATE TABLE children (parent INTEGER NOT NULL REFERENCES parents (id));
     INSERT INTO parents VALUES (1), (2);
     INSERT INTO children VALUES (1), (2);";

fn family(second: &'static str) -> Schema {
    let first = Migration { version: 1, name: "family", sql: FAMILY };
    schema(&[first, Migration { version: 2, name: "wider", sql: second }])
}

fn foreign_keys(store: &Store) -> i64 {
    store
        .write_blocking(Priority::Click, |tx| tx.pragma_query_value(None, "foreign_keys", |row| row.get(0)))
        .unwrap_or(-1)
}

#[test]
fn a_table_that_others_refer_to_can_be_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let anew = "CREATE TABLE parents_new (id INTEGER PRIMARY KEY CHECK (id < 20));
         INSERT INTO parents_new SELECT id FROM parents;
         DROP TABLE parents;
         ALTER TABLE parents_new RENAME TO parents;
         INSERT INTO parents VALUES (15);";
    let store = Store::open(&folder.path().join("a.db"), &family(anew)).unwrap();
    assert_eq!(foreign_keys(&store), 1);
    let orphan = store.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO children VALUES (3)", []));
    assert!(matches!(orphan, Err(WriteError::Refused(_))), "{orphan:?}");
    let child = store.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO children VALUES (15)", []));
    assert_eq!(child.unwrap(), 1);
}

#[test]
fn a_migration_that_loses_what_others_refer_to_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let refused = Store::open(&path, &family("DELETE FROM parents WHERE id = 2")).unwrap_err();
    assert!(refused.to_string().contains("children"), "{refused}");
    let store = Store::open(&path, &family("SELECT 1")).unwrap();
    let parents =
        store.read_blocking(|conn| conn.query_row("SELECT count(*) FROM parents", [], |row| row.get::<_, i64>(0)));
    assert_eq!(parents.unwrap(), 2);
}

#[test]
fn migrations_are_numbered_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Store::open(&folder.path().join("a.db"), &schema(&[SECOND])).unwrap_err();
    assert!(matches!(refused, OpenError::Numbering { version: 2, expected: 1, .. }), "{refused}");
}

#[test]
fn a_reading_command_works_beside_the_owner_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let missing = Store::open_read_only(&path, &schema(&[FIRST])).unwrap_err();
    assert!(matches!(missing, OpenError::Missing { .. }), "{missing}");
    let owner = Store::open(&path, &schema(&[FIRST])).unwrap();
    insert(&owner, 1).unwrap();
    let reading = Store::open_read_only(&path, &schema(&[FIRST])).unwrap();
    insert(&owner, 2).unwrap();
    let count = |store: &Store| {
        store.read_blocking(|c| c.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))).unwrap()
    };
    assert_eq!(count(&reading), 2);
    assert!(matches!(insert(&reading, 3), Err(WriteError::Storage(StorageError::ReadOnly))));
    reading.read_blocking(|c| c.execute("INSERT INTO t (n) VALUES (3)", [])).unwrap_err();
    assert_eq!(count(&owner), 2);
    let older = Store::open_read_only(&path, &schema(&[FIRST, SECOND])).unwrap_err();
    assert!(matches!(older, OpenError::NeedsMigration { found: 1, newest: 2, .. }), "{older}");
}

#[test]
fn a_cause_is_told_once_in_the_whole_chain() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("a-file"), "")?;
    let error = store::LockFile::acquire(&dir.path().join("a-file/till.lock")).err().ok_or("it was locked")?;
    let mut chain = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        chain.push_str(&cause.to_string());
        source = cause.source();
    }
    assert_eq!(chain.matches("os error").count(), 1, "{chain}");
    Ok(())
}

/// A cashier waits for it: a file that another program holds is told as held after one wait for its lock, and not after one for
/// each step.
#[test]
fn that_a_file_is_held_is_told_after_one_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(Store::open(&path, &schema(&[FIRST])).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::Instant::now();
    let store = Store::open(&path, &schema(&[FIRST])).unwrap();
    let told = insert(&store, 1);
    let took = began.elapsed();
    assert!(matches!(told, Err(WriteError::Unproven(_))), "{told:?}");
    assert!((900..1_900).contains(&took.as_millis()), "told after {took:?}");
    // Once it is free all goes on, and what was refused is not there.
    other.execute_batch("ROLLBACK").unwrap();
    insert(&store, 2).unwrap();
    assert_eq!(numbers(&path).unwrap(), [2]);
}

#[test]
fn what_is_no_file_is_refused_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.db");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&pipe, folder.path()] {
        for opened in [Store::open(path, &schema(&[FIRST])), Store::open_read_only(path, &schema(&[FIRST]))] {
            assert!(matches!(opened, Err(OpenError::NotAFile { .. })), "{}: {opened:?}", path.display());
        }
    }
}

/// Each name would have a lock and a log of its own.
#[test]
fn a_file_with_a_second_name_is_refused_until_one_of_them_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.db"), folder.path().join("b.db"));
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 1).unwrap();
    std::fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        for opened in [Store::open(name, &schema(&[FIRST])), Store::open_read_only(name, &schema(&[FIRST]))] {
            assert!(matches!(opened, Err(OpenError::SecondName { .. })), "{}: {opened:?}", name.display());
        }
    }
    std::fs::remove_file(&other).unwrap();
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 2).unwrap();
    assert_eq!(numbers(&path).unwrap(), [1, 2]);
}

#[test]
fn a_step_has_the_functions_that_the_connection_was_prepared_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("till.db");
    insert(&Store::open(&path, &schema(&[FIRST])).unwrap(), 7).unwrap();
    let doubling = Migration { version: 2, name: "doubling", sql: "UPDATE t SET n = doubled(n)" };
    let failed = Store::open(&path, &schema(&[FIRST, doubling])).unwrap_err();
    assert!(matches!(failed, OpenError::Migration { version: 2, .. }), "{failed}");
    let prepare = |connection: &Connection| {
        let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
        connection.create_scalar_function("doubled", 1, flags, |call| Ok(2 * call.get::<i64>(0)?))
    };
    Store::open_prepared(&path, &schema(&[FIRST, doubling]), prepare).unwrap();
    assert_eq!(numbers(&path).unwrap(), [14]);
}
