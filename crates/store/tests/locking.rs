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
