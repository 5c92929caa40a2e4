//! Who may do what: that somebody can, and that nothing of it is missing.

use super::Notes;
use crate::{Right, TillError, pins};
use rusqlite::Connection;

pub(super) fn check(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut statement =
        conn.prepare("SELECT id, name, role = 'manager' AND active = 1, pin FROM people ORDER BY id")?;
    let mut rows = statement.query([])?;
    let (mut people, mut managers) = (0, 0);
    while let Some(row) = rows.next()? {
        let (id, name, is_manager, pin): (i64, String, bool, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        people += 1;
        managers += i32::from(is_manager);
        if !pins::is_kept(&pin) {
            notes.found("person-pin", format!("person {id} ({name})"), "what is kept of the PIN is none");
        }
    }
    if people > 0 && managers == 0 {
        notes.found("people-manager", "people", "there is no active manager among them");
    }
    check_rights(conn, notes)
}

/// Each role has each right, allowed or not; and a manager may see to people, else nobody ever could.
fn check_rights(conn: &Connection, notes: &mut Notes<'_>) -> Result<(), TillError> {
    let mut statement = conn.prepare("SELECT allowed FROM rights WHERE role = ?1 AND name = ?2")?;
    for role in ["cashier", "manager"] {
        for right in Right::ALL {
            let mut rows = statement.query([role, right.as_str()])?;
            let allowed: Option<bool> = rows.next()?.map(|row| row.get(0)).transpose()?;
            let subject = format!("right {} of a {role}", right.as_str());
            match allowed {
                None => notes.found("rights-missing", subject, "is not there"),
                Some(false) if role == "manager" && right == Right::People => {
                    notes.found("rights-missing", subject, "is taken away, so that nobody can give it back");
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}
