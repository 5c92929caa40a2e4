//! One owner at a time.

use store::{LockError, LockFile};

#[test]
fn the_second_owner_is_told_who_the_first_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/till.lock");
    let first = LockFile::acquire(&path).unwrap();
    let refused = LockFile::acquire(&path).unwrap_err();
    let LockError::Held { pid, .. } = &refused else { panic!("{refused}") };
    assert_eq!(*pid, Some(std::process::id()));
    let text = refused.to_string();
    assert!(text.ends_with("in use by this process already"), "{text}");
    drop(first);
    LockFile::acquire(&path).unwrap();
}

#[test]
fn a_file_left_behind_by_a_dead_owner_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("till.lock");
    std::fs::write(&path, "999999999 and more than a number").unwrap();
    let lock = LockFile::acquire(&path).unwrap();
    assert_eq!(std::fs::read_to_string(lock.path()).unwrap(), format!("{}\n", std::process::id()));
}

/// Names the folder to the same test in a process of its own, that can write no byte into any file.
const NO_ROOM: &str = "STORE_TEST_NO_ROOM";

#[cfg(unix)]
#[test]
fn what_has_no_room_for_a_name_is_locked_all_the_same() {
    if let Some(folder) = std::env::var_os(NO_ROOM) {
        let path = std::path::Path::new(&folder).join("till.lock");
        assert!(std::fs::write(path.with_extension("other"), "1").is_err(), "there is room after all");
        let lock = LockFile::acquire(&path).unwrap();
        assert_eq!(std::fs::read_to_string(lock.path()).unwrap(), "", "nobody is named rather than somebody else");
        let refused = LockFile::acquire(&path).unwrap_err();
        assert!(matches!(refused, LockError::Held { pid: None, .. }), "{refused}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("till.lock"), "999999\n").unwrap();
    // A file may have no bytes, and what is written beyond is an error and no signal.
    let ran = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "what_has_no_room_for_a_name_is_locked_all_the_same"])
        .env(NO_ROOM, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}
