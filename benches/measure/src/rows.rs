//! Rows that are copied in every column as their program wrote them, but for what names them: so they follow its own schema.

use anyhow::{Result, ensure};
use rusqlite::{Connection, Params, params_from_iter, types::Value};
use std::{fs::File, path::Path};

/// A row to copy, with its columns' names.
#[derive(Debug, Clone)]
pub struct Template {
    table: &'static str,
    columns: Vec<String>,
    values: Vec<Value>,
    insert: String,
}

impl Template {
    /// The rows of a table that the rest of the question finds: `WHERE …`, `ORDER BY …`.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn read(db: &Connection, table: &'static str, rest: &str, params: impl Params) -> Result<Vec<Self>> {
        let mut statement = db.prepare(&format!("SELECT * FROM {table} {rest}"))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let read = statement.query_map(params, |row| (0..columns.len()).map(|column| row.get(column)).collect())?;
        let read = read.collect::<rusqlite::Result<Vec<Vec<Value>>>>()?;
        let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
        let insert = format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(","), places.join(","));
        let template = |values| Self { table, columns: columns.clone(), values, insert: insert.clone() };
        Ok(read.into_iter().map(template).collect())
    }

    /// What stands in a column; none where there is no such column.
    #[must_use]
    pub fn value(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)
    }

    /// The values of a copy that differs in the columns named.
    #[must_use]
    pub fn copy(&self, named: &[(&str, Value)]) -> Vec<Value> {
        let value = |(column, value): (&String, &Value)| {
            named.iter().find(|(name, _)| name == column).map_or_else(|| value.clone(), |(_, own)| own.clone())
        };
        self.columns.iter().zip(&self.values).map(value).collect()
    }

    /// The same with other values in the columns named.
    #[must_use]
    pub fn with(&self, named: &[(&str, Value)]) -> Self {
        Self { values: self.copy(named), ..self.clone() }
    }

    /// Inserts such a copy.
    ///
    /// # Errors
    /// The table does not take it.
    pub fn insert(&self, db: &Connection, values: &[Value]) -> Result<()> {
        let inserted = db.prepare_cached(&self.insert)?.execute(params_from_iter(values))?;
        ensure!(inserted == 1, "{} took {inserted} rows", self.table);
        Ok(())
    }
}

/// Works on a file without syncs, its triggers out of the way, and then makes all of it durable.
///
/// # Errors
/// The file can't be written, or the work fails.
pub fn fast(path: &Path, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
    let db = Connection::open(path)?;
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; PRAGMA foreign_keys = OFF")?;
    db.set_prepared_statement_cache_capacity(64);
    let triggers: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (name, _) in &triggers {
        db.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    work(&db)?;
    for (_, sql) in &triggers {
        db.execute_batch(sql)?;
    }
    db.execute_batch("PRAGMA synchronous = FULL")?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(db);
    Ok(File::open(path)?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_differs_in_what_is_named_alone() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (id INTEGER, a TEXT, b BLOB); INSERT INTO t VALUES (1, 'x', x'07')").unwrap();
        let [template] = Template::read(&db, "t", "WHERE id = ?1", [1]).unwrap().try_into().unwrap();
        template.insert(&db, &template.copy(&[("id", Value::Integer(2))])).unwrap();
        let copied: (String, Vec<u8>) =
            db.query_row("SELECT a, b FROM t WHERE id = 2", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(copied, ("x".to_owned(), vec![7]));
        assert_eq!((template.value("a"), template.value("c")), (Some(&Value::Text("x".to_owned())), None));
    }
}
