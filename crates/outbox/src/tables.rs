//! Whether a file has the outbox's tables, found out before anything relies on them.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::MIGRATIONS;

/// How many of [`MIGRATIONS`] the file has seen, in order from the first.
pub(crate) fn steps(conn: &Connection) -> rusqlite::Result<usize> {
    let found = names(conn)?;
    let model = Connection::open_in_memory()?;
    let mut steps = 0;
    for (step, sql) in (1..).zip(MIGRATIONS) {
        model.execute_batch(sql)?;
        // A later step may drop what an earlier one made, so the last one that fits counts.
        if names(&model)?.is_subset(&found) {
            steps = step;
        }
    }
    Ok(steps)
}

/// What the file's schema is made of: tables, indices, triggers, and the columns of each table.
fn names(conn: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    conn.prepare(
        "SELECT type || ' ' || name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' \
         UNION ALL \
         SELECT 'column ' || made.name || '.' || columns.name \
         FROM sqlite_schema AS made, pragma_table_info(made.name) AS columns WHERE made.type = 'table'",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_from_the_one_before_it_whatever_else_is_in_the_file() {
        let conn = Connection::open_in_memory().unwrap();
        assert_eq!(steps(&conn).unwrap(), 0);
        conn.execute_batch("CREATE TABLE parcels (name TEXT)").unwrap();
        assert_eq!(steps(&conn).unwrap(), 0);
        for (step, sql) in (1..).zip(MIGRATIONS) {
            conn.execute_batch(sql).unwrap();
            assert_eq!(steps(&conn).unwrap(), step);
        }
        conn.execute_batch("CREATE TRIGGER own AFTER UPDATE ON operations BEGIN SELECT 1; END").unwrap();
        assert_eq!(steps(&conn).unwrap(), MIGRATIONS.len());
    }

    #[test]
    fn tables_of_the_same_names_are_not_the_outboxs() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE operations (key BLOB); CREATE TABLE outbox (id INTEGER)").unwrap();
        assert_eq!(steps(&conn).unwrap(), 0);
    }
}
