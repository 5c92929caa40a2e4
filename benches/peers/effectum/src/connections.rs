//! The connections that effectum opens and keeps to itself: what their settings are, and how to force others.
//!
//! SQLite runs an automatic extension for each connection that is opened. This one notes the first, which is effectum's writer, and
//! where it is told to sets WAL and FULL and has every later wish for another `synchronous` ignored.

use crate::Result;
use rusqlite::ffi;
use serde_json::{Value, json};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

static FORCED: AtomicBool = AtomicBool::new(false);
static WRITER: AtomicPtr<ffi::sqlite3> = AtomicPtr::new(ptr::null_mut());

/// Watches the connections that are opened from now on.
pub fn watch(forced: bool) {
    FORCED.store(forced, Ordering::Release);
    // SAFETY: the entry lives as long as the program.
    unsafe {
        ffi::sqlite3_auto_extension(Some(opened));
    }
}

unsafe extern "C" fn opened(
    db: *mut ffi::sqlite3,
    _: *mut *const c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    // The first is the writer's.
    let _ = WRITER.compare_exchange(ptr::null_mut(), db, Ordering::AcqRel, Ordering::Acquire);
    if !FORCED.load(Ordering::Acquire) {
        return ffi::SQLITE_OK;
    }
    // SAFETY: the connection is open and this thread's.
    unsafe {
        ffi::sqlite3_busy_timeout(db, 5_000);
        let set = c"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
        let done = ffi::sqlite3_exec(db, set.as_ptr(), None, ptr::null_mut(), ptr::null_mut());
        if done != ffi::SQLITE_OK {
            return done;
        }
        ffi::sqlite3_set_authorizer(db, Some(authorize), ptr::null_mut())
    }
}

unsafe extern "C" fn authorize(
    _: *mut c_void,
    action: c_int,
    name: *const c_char,
    value: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if action != ffi::SQLITE_PRAGMA || name.is_null() || value.is_null() {
        return ffi::SQLITE_OK;
    }
    // SAFETY: SQLite gives the pragma's name as a text of its own.
    let name = unsafe { CStr::from_ptr(name) };
    if name.to_bytes().eq_ignore_ascii_case(b"synchronous") { ffi::SQLITE_IGNORE } else { ffi::SQLITE_OK }
}

/// What the writer's connection says of itself. Ask while nothing is being written: then its thread waits for work.
pub fn settings() -> Result<Vec<Value>> {
    let db = WRITER.load(Ordering::Acquire);
    if db.is_null() {
        return Err("no connection was opened".into());
    }
    let read = |name: &'static str, question: &CStr| {
        let mut statement = ptr::null_mut();
        // SAFETY: the connection is open for as long as the queue is, and nobody else uses it now.
        unsafe {
            let prepared = ffi::sqlite3_prepare_v2(db, question.as_ptr(), -1, &mut statement, ptr::null_mut());
            if prepared != ffi::SQLITE_OK || ffi::sqlite3_step(statement) != ffi::SQLITE_ROW {
                ffi::sqlite3_finalize(statement);
                return Err(format!("{name} can't be read"));
            }
            let text = CStr::from_ptr(ffi::sqlite3_column_text(statement, 0).cast()).to_string_lossy().into_owned();
            ffi::sqlite3_finalize(statement);
            Ok(json!({"name": name, "value": text}))
        }
    };
    Ok(vec![
        read("journal_mode", c"PRAGMA journal_mode")?,
        read("synchronous", c"PRAGMA synchronous")?,
        json!({"name": "version", "value": rusqlite::version()}),
    ])
}
