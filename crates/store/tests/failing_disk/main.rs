//! A disk whose sync really fails at COMMIT, in a process of its own: the whole commit stands in the write-ahead log then, and
//! SQLite brings it back at the next start unless it is written over. What was told must hold after that start too.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use store::{Migration, Priority, ReadError, Schema, Store, WriteError};

/// Names the scene in the process that plays it.
const SCENE: &str = "STORE_SCENE";
/// The file that makes every sync of the log fail; with `.once` after it, one.
const FAIL_SYNC: &str = "FAIL_SYNC";

type Anyhow<T> = Result<T, Box<dyn std::error::Error>>;

fn open(folder: &Path) -> Result<Store, store::OpenError> {
    let migrations = vec![Migration { version: 1, name: "first", sql: "CREATE TABLE t (n INTEGER NOT NULL) STRICT" }];
    Store::open(&folder.join("a.db"), &Schema { application_id: 7, migrations })
}

fn numbers(store: &Store) -> Result<Vec<i64>, ReadError<rusqlite::Error>> {
    store.read_blocking(|c| c.prepare("SELECT n FROM t ORDER BY n")?.query_map([], |row| row.get(0))?.collect())
}

/// What a write is answered, in one word.
fn word<T>(result: Result<T, WriteError<rusqlite::Error>>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(WriteError::Uncertain(_)) => "look",
        Err(WriteError::Untrusted(_)) => "untrusted",
        Err(WriteError::Unproven(_)) => "not run",
        Err(WriteError::Storage(_)) => "nothing",
        Err(_) => "other",
    }
}

fn insert(store: &Store, n: i64) -> &'static str {
    word(store.write_blocking(Priority::Click, move |tx| tx.execute("INSERT INTO t VALUES (?1)", [n])))
}

/// A click that finds its row, or makes it: what it answers is told as saved.
fn click(store: &Store, n: i64) -> &'static str {
    word(store.write_blocking(Priority::Click, move |tx| {
        tx.execute("INSERT INTO t SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE n = ?1)", [n])
    }))
}

/// Plays a scene in a process that ends as by a kill, and gives the words that it said.
fn play(scene: &str, folder: &Path) -> Anyhow<Vec<String>> {
    let library = folder.join("sync.so");
    if !library.exists() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/failing_disk/sync.c");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).output()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    let played = Command::new(std::env::current_exe()?)
        .args(["--exact", "the_scene_in_the_process_that_plays_it", "--nocapture"])
        .env(SCENE, scene)
        .env(FAIL_SYNC, folder.join("fail"))
        .env("LD_PRELOAD", &library)
        .current_dir(folder)
        .output()?;
    let said = String::from_utf8(played.stdout)?;
    eprintln!("{scene}: {said}\n{}", String::from_utf8_lossy(&played.stderr));
    Ok(said.lines().filter_map(|line| line.split_once("said: ")).map(|(_, word)| word.to_owned()).collect())
}

#[test]
fn the_scene_in_the_process_that_plays_it() {
    let (Ok(scene), Ok(fail)) = (std::env::var(SCENE), std::env::var(FAIL_SYNC)) else { return };
    let fail = Path::new(&fail);
    let store = open(fail.parent().unwrap()).unwrap();
    let say = |word: &str| println!("\nsaid: {word}");
    let seen = |store: &Store| say(&format!("{:?}", numbers(store).unwrap()));
    match scene.as_str() {
        "fails once" => {
            say(insert(&store, 1));
            seen(&store);
            std::fs::write(fail.with_extension("once"), "").unwrap();
            say(insert(&store, 2));
            seen(&store);
        }
        "fails for a while" | "fails for a while, nobody has looked" => {
            say(insert(&store, 1));
            if scene == "fails for a while" {
                seen(&store);
            }
            std::fs::write(fail, "").unwrap();
            say(insert(&store, 2));
            say(insert(&store, 3));
            say(word(store.probe_blocking()));
            std::fs::remove_file(fail).unwrap();
            say(word(store.probe_blocking()));
            say(insert(&store, 4));
            seen(&store);
        }
        "dies in the commit" => {
            say(insert(&store, 1));
            std::fs::write(fail.with_extension("die"), "").unwrap();
            say(insert(&store, 2));
        }
        "nothing" => say(insert(&store, 0)),
        "the same click again" => say(click(&store, 2)),
        other => panic!("{other}"),
    }
    say("end");
    std::process::exit(0);
}

#[test]
fn what_a_look_finds_after_a_failed_commit_holds_after_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let said = play("fails once", folder.path()).unwrap();
    assert_eq!(said, ["done", "[1]", "look", "[1]", "end"]);
    assert_eq!(numbers(&open(folder.path()).unwrap()).unwrap(), [1], "what was told as not saved came back");
}

#[test]
fn while_the_disk_fails_nothing_is_told_as_failed_or_saved_and_nothing_runs() {
    for scene in ["fails for a while", "fails for a while, nobody has looked"] {
        let folder = tempfile::tempdir().unwrap();
        let said = play(scene, folder.path()).unwrap();
        let words: Vec<_> = said.iter().filter(|word| !word.starts_with("[1]")).collect();
        assert_eq!(words[..6], ["done", "untrusted", "untrusted", "untrusted", "done", "done"], "{scene}");
        let found = numbers(&open(folder.path()).unwrap()).unwrap();
        assert_eq!(words[6], &format!("{found:?}"), "{scene}");
        assert_eq!(found, [1, 4], "{scene}");
    }
}

/// The commit may have reached the log and not its index, which SQLite makes anew only for the first who opens the file: where a
/// reader keeps it open, the next process doesn't see the row, and the one after it does.
#[test]
fn what_stands_in_a_log_that_was_left_is_not_told_as_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(play("nothing", folder.path()).unwrap(), ["done", "end"]);
    // One that writes would tidy the log up when it goes, by the index.
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader = rusqlite::Connection::open_with_flags(folder.path().join("a.db"), flags).unwrap();
    reader.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(play("dies in the commit", folder.path()).unwrap(), ["done"]);
    std::fs::write(folder.path().join("fail"), "").unwrap();
    assert_eq!(play("the same click again", folder.path()).unwrap(), ["untrusted", "end"]);
    drop(reader);
    std::fs::remove_file(folder.path().join("fail")).unwrap();
    assert_eq!(numbers(&open(folder.path()).unwrap()).unwrap(), [0, 1, 2], "it came back");
}

#[test]
fn where_nothing_was_left_in_the_log_what_was_not_run_is_told_as_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    std::fs::write(folder.path().join("fail"), "").unwrap();
    assert_eq!(play("the same click again", folder.path()).unwrap(), ["not run", "end"]);
    std::fs::remove_file(folder.path().join("fail")).unwrap();
    assert_eq!(numbers(&open(folder.path()).unwrap()).unwrap(), [0; 0]);
}

#[test]
fn a_click_is_told_as_saved_only_after_a_sync_that_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(play("dies in the commit", folder.path()).unwrap(), ["done"]);
    // The row is found in what the system has in memory, of which nothing was ever synced.
    std::fs::write(folder.path().join("fail"), "").unwrap();
    assert_eq!(play("the same click again", folder.path()).unwrap(), ["untrusted", "end"]);
    std::fs::remove_file(folder.path().join("fail")).unwrap();
    assert_eq!(play("the same click again", folder.path()).unwrap(), ["done", "end"]);
    // The log's pages whose sync failed may be on no disk: what was told must not rest on them.
    let apart = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("a.db"), apart.path().join("a.db")).unwrap();
    assert_eq!(numbers(&open(apart.path()).unwrap()).unwrap(), [1, 2]);
}
