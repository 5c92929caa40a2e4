//! A file that is removed, moved or replaced while it is open: SQLite goes on writing into what no name leads to.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Migration, Priority, ReadError, Schema, StorageError, Store, WriteError};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

struct Scene {
    store: Store,
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Scene {
    /// A file with the number 1 in it, in its log at least.
    fn new() -> Checked<Scene> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.db");
        let scene = Scene { store: open(&path)?, path, folder };
        scene.insert(1)?;
        Ok(scene)
    }

    fn insert(&self, n: i64) -> Result<usize, WriteError<rusqlite::Error>> {
        self.store.write_blocking(Priority::Click, move |tx| tx.execute("INSERT INTO t VALUES (?1)", [n]))
    }

    fn numbers(&self) -> Result<Vec<i64>, ReadError<rusqlite::Error>> {
        self.store.read_blocking(numbers)
    }

    fn elsewhere(&self) -> PathBuf {
        self.folder.path().join("elsewhere.db")
    }

    /// Nothing is written, nothing is shown, and both say why.
    fn is_refused(&self) {
        let written = self.insert(2);
        assert!(matches!(written, Err(WriteError::Storage(StorageError::Moved { .. }))), "{written:?}");
        let probed = self.store.probe_blocking();
        assert!(matches!(probed, Err(WriteError::Storage(StorageError::Moved { .. }))), "{probed:?}");
        let shown = self.numbers();
        assert!(matches!(shown, Err(ReadError::Storage(StorageError::Moved { .. }))), "{shown:?}");
        assert!(matches!(self.store.trouble(), Some(StorageError::Moved { .. })));
    }
}

fn open(path: &Path) -> Result<Store, store::OpenError> {
    let sql = "CREATE TABLE t (n INTEGER NOT NULL UNIQUE) STRICT";
    Store::open(path, &Schema { application_id: 7, migrations: vec![Migration { version: 1, name: "first", sql }] })
}

fn numbers(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection.prepare("SELECT n FROM t ORDER BY n")?.query_map([], |row| row.get(0))?.collect()
}

#[test]
fn nothing_is_written_into_a_file_that_was_removed() -> Checked {
    let scene = Scene::new()?;
    fs::remove_file(&scene.path)?;
    scene.is_refused();
    assert!(!scene.path.exists(), "it was made anew");
    Ok(())
}

#[test]
fn what_was_moved_away_goes_on_when_it_is_back() -> Checked {
    let scene = Scene::new()?;
    fs::rename(&scene.path, scene.elsewhere())?;
    scene.is_refused();
    fs::rename(scene.elsewhere(), &scene.path)?;
    scene.insert(3)?;
    assert_eq!(scene.store.trouble().map(|error| error.to_string()), None);
    assert_eq!(scene.numbers()?, [1, 3]);
    Ok(())
}

#[test]
fn another_file_in_its_place_is_left_alone() -> Checked {
    let scene = Scene::new()?;
    // The other one, with something in its log.
    let other = open(&scene.elsewhere())?;
    other.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (7)", []))?;
    let log = |path: &Path| path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().display()));
    fs::rename(scene.elsewhere(), &scene.path)?;
    fs::rename(log(&scene.elsewhere()), log(&scene.path))?;
    let contents = || Ok::<_, std::io::Error>((fs::read(&scene.path)?, fs::read(log(&scene.path))?));
    let before = contents()?;
    scene.is_refused();
    assert!(contents()? == before, "it was written into");
    // Nor when the last connection goes.
    let Scene { store, path, folder } = scene;
    drop(store);
    assert!(fs::read(&path)? == before.0 && fs::read(log(&path))? == before.1, "it was tidied up");
    drop((other, folder));
    Ok(())
}

/// What stands in the log alone goes with it.
#[test]
fn nothing_is_written_into_a_log_that_was_removed() -> Checked {
    let scene = Scene::new()?;
    fs::remove_file(scene.folder.path().join("a.db-wal"))?;
    scene.is_refused();
    Ok(())
}

/// In the moment of its COMMIT: then nobody knows, and it is found when the file is back.
#[test]
fn what_is_committed_into_a_file_that_just_went_is_not_told_as_saved() -> Checked {
    let scene = Scene::new()?;
    let (from, to) = (scene.path.clone(), scene.elsewhere());
    let written = scene.store.write_blocking(Priority::Click, move |tx| {
        tx.execute("INSERT INTO t VALUES (2)", [])?;
        fs::rename(from, to).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    });
    assert!(matches!(written, Err(WriteError::Untrusted(StorageError::Moved { .. }))), "{written:?}");
    // Not as failed either, however often it is asked.
    let again = scene.insert(2);
    assert!(matches!(again, Err(WriteError::Untrusted(StorageError::Moved { .. }))), "{again:?}");
    fs::rename(scene.elsewhere(), &scene.path)?;
    assert!(matches!(scene.insert(2), Err(WriteError::Refused(_))), "it is there already");
    assert_eq!(scene.numbers()?, [1, 2]);
    Ok(())
}

/// A reader has no log of its own: the writer of another process makes and removes it.
#[test]
fn who_only_reads_goes_on_while_writers_come_and_go() -> Checked {
    let scene = Scene::new()?;
    let schema = Schema {
        application_id: 7,
        migrations: vec![Migration {
            version: 1,
            name: "first",
            sql: "CREATE TABLE t (n INTEGER NOT NULL UNIQUE) STRICT",
        }],
    };
    let reader = Store::open_read_only(&scene.path, &schema)?;
    let Scene { store, path, folder } = scene;
    drop(store);
    open(&path)?.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (2)", []))?;
    assert_eq!(reader.read_blocking(numbers)?, [1, 2]);
    fs::remove_file(&path)?;
    assert!(matches!(reader.read_blocking(numbers), Err(ReadError::Storage(StorageError::Moved { .. }))));
    drop(folder);
    Ok(())
}

/// Another program holds it from before the opening on, so that the writer can't prove it.
fn unproven(path: &Path) -> Checked<(Connection, Store)> {
    let holder = Connection::open(path)?;
    holder.execute_batch("BEGIN IMMEDIATE")?;
    let store = open(path)?;
    Ok((holder, store))
}

/// Whether the writer comes first with a commit of its own or not.
#[test]
fn a_log_that_goes_before_anything_was_written_is_missed() -> Checked {
    for is_free in [true, false] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.db");
        drop(open(&path)?);
        let (holder, store) = if is_free {
            (None, open(&path)?)
        } else {
            let (holder, store) = unproven(&path)?;
            (Some(holder), store)
        };
        fs::remove_file(folder.path().join("a.db-wal"))?;
        drop(holder);
        let written = store.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (1)", []));
        // Told as not saved, or as not known where the writer was not there yet.
        let is_missed = matches!(
            written,
            Err(WriteError::Storage(StorageError::Moved { .. }) | WriteError::Unproven(StorageError::Moved { .. }))
        );
        assert!(is_missed, "{written:?}");
        assert!(matches!(store.trouble(), Some(StorageError::Moved { .. })), "{:?}", store.trouble());
    }
    Ok(())
}

/// A name that can't be looked at is no other file: what is committed is where it was.
#[test]
fn what_was_committed_is_not_doubted_because_nobody_can_look() -> Checked {
    let top = tempfile::tempdir()?;
    let (folder, aside) = (top.path().join("data"), top.path().join("aside"));
    fs::create_dir(&folder)?;
    let store = open(&folder.join("a.db"))?;
    let insert = |n: i64| store.write_blocking(Priority::Click, move |tx| tx.execute("INSERT INTO t VALUES (?1)", [n]));
    insert(1)?;
    // A link to itself: every look ends with an error, and it is not that nothing is there.
    let (from, to) = (folder.clone(), aside.clone());
    store.write_blocking(Priority::Click, move |tx| {
        tx.execute("INSERT INTO t VALUES (2)", [])?;
        fs::rename(&from, to)
            .and_then(|()| std::os::unix::fs::symlink(&from, &from))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    })?;
    let refused = insert(3);
    assert!(matches!(refused, Err(WriteError::Storage(StorageError::NotSeen { .. }))), "{refused:?}");
    let shown = store.read_blocking(numbers);
    assert!(matches!(shown, Err(ReadError::Storage(StorageError::NotSeen { .. }))), "{shown:?}");
    assert!(matches!(store.trouble(), Some(StorageError::NotSeen { .. })), "{:?}", store.trouble());
    fs::remove_file(&folder)?;
    fs::rename(&aside, &folder)?;
    insert(4)?;
    assert_eq!(store.trouble().map(|error| error.to_string()), None);
    assert_eq!(store.read_blocking(numbers)?, [1, 2, 4]);
    Ok(())
}

/// What the log brought back may be on no disk, and a row that is found in it neither.
#[test]
fn of_a_file_that_goes_before_it_was_proven_nothing_is_told() -> Checked {
    let folder = tempfile::tempdir()?;
    let (path, elsewhere) = (folder.path().join("a.db"), folder.path().join("elsewhere.db"));
    drop(open(&path)?);
    let (holder, store) = unproven(&path)?;
    fs::rename(&path, &elsewhere)?;
    let insert = || store.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (1)", []));
    let written = insert();
    assert!(matches!(written, Err(WriteError::Unproven(StorageError::Moved { .. }))), "{written:?}");
    drop(holder);
    fs::rename(&elsewhere, &path)?;
    insert()?;
    Ok(())
}

/// The log lies beside the file, and not beside a link to it.
#[test]
fn a_log_is_missed_also_where_the_file_was_opened_by_a_link() -> Checked {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("real"))?;
    let (real, link) = (folder.path().join("real/a.db"), folder.path().join("link.db"));
    drop(open(&real)?);
    std::os::unix::fs::symlink(&real, &link)?;
    let store = open(&link)?;
    let insert = |n: i64| store.write_blocking(Priority::Click, move |tx| tx.execute("INSERT INTO t VALUES (?1)", [n]));
    insert(1)?;
    fs::remove_file(folder.path().join("real/a.db-wal"))?;
    let written = insert(2);
    assert!(matches!(written, Err(WriteError::Storage(StorageError::Moved { .. }))), "{written:?}");
    Ok(())
}

/// Where the program goes afterwards changes nothing.
#[test]
fn a_relative_path_is_kept_as_the_whole_of_it() -> Checked {
    let folder = tempfile::tempdir_in(".")?;
    let name = folder.path().file_name().ok_or("no name")?;
    let relative = Path::new(name).join("a.db");
    assert!(relative.is_relative());
    let store = open(&relative)?;
    assert_eq!(store.path(), std::env::current_dir()?.canonicalize()?.join(&relative));
    drop(store);
    let schema = |sql| Schema { application_id: 7, migrations: vec![Migration { version: 1, name: "first", sql }] };
    let reader = Store::open_read_only(&relative, &schema("CREATE TABLE t (n INTEGER NOT NULL UNIQUE) STRICT"))?;
    assert!(reader.path().is_absolute(), "{}", reader.path().display());
    Ok(())
}

/// Not even for the moment that it takes to see that it is another: the last to close a file tidies it up.
#[test]
fn another_file_is_not_opened_when_a_connection_is_replaced() -> Checked {
    let scene = Scene::new()?;
    let log = |path: &Path| path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().display()));
    // The other one is a copy in the middle of its work, which nobody has open.
    let source = scene.folder.path().join("source.db");
    let other = open(&source)?;
    other.write_blocking(Priority::Click, |tx| tx.execute("INSERT INTO t VALUES (7)", []))?;
    fs::copy(&source, scene.elsewhere())?;
    fs::copy(log(&source), log(&scene.elsewhere()))?;
    let before = (fs::read(scene.elsewhere())?, fs::read(log(&scene.elsewhere()))?);
    let (from, to) = (scene.elsewhere(), scene.path.clone());
    let ended = scene.store.write_blocking(Priority::Click, move |tx| {
        tx.execute("INSERT INTO t VALUES (2)", [])?;
        fs::rename(log(&from), log(&to))
            .and_then(|()| fs::rename(&from, &to))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        // By this the connection is used no more.
        tx.execute_batch("COMMIT")
    });
    assert!(matches!(ended, Err(WriteError::Untrusted(StorageError::TransactionEnded))), "{ended:?}");
    assert!(fs::read(&scene.path)? == before.0, "it was written into");
    assert!(fs::read(log(&scene.path)).ok() == Some(before.1), "its log was tidied up");
    Ok(())
}
